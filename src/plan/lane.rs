//! The kernel instructions of each operation of the language, for one lane.
//!
//! Each operation is written once here. The general path uses it as a kernel by
//! itself. Steps fuse it with others.

use pmderive_runtime::kernel::{BinaryOp, Reg, Scalar, UnaryOp};
use pmderive_runtime::model::Conversion;

use crate::check::typed::{Decrease, Precision, Scale};
use crate::lanes::LaneBuilder;
use crate::syntax::ast;

impl LaneBuilder {
    /// `-operand`. An unsigned type gives the signed type of the same size.
    pub fn negate(&mut self, operand: Reg, to: Scalar) -> Reg {
        let operand = self.convert(operand, to);
        self.unary(UnaryOp::Neg, operand)
    }

    /// `!operand`, as 0 or 1 in a 32-bit type.
    pub fn not(&mut self, operand: Reg, to: Scalar) -> Reg {
        let not = self.unary(UnaryOp::Not, operand);
        self.convert(not, to)
    }

    /// `left op right`, computed in `common`.
    pub fn operator(
        &mut self,
        op: ast::BinaryOp,
        common: Scalar,
        (left, left_scale): (Reg, Scale),
        (right, right_scale): (Reg, Scale),
    ) -> Reg {
        let left = self.convert(left, common);
        let left = self.scale(left, left_scale);
        let right = self.convert(right, common);
        let right = self.scale(right, right_scale);
        let op = match op {
            ast::BinaryOp::Add => BinaryOp::Add,
            ast::BinaryOp::Sub => BinaryOp::Sub,
            ast::BinaryOp::Mul => BinaryOp::Mul,
            ast::BinaryOp::Div => BinaryOp::Ratio,
            ast::BinaryOp::Lt => BinaryOp::Lt,
            ast::BinaryOp::Le => BinaryOp::Le,
            ast::BinaryOp::Eq => BinaryOp::Eq,
            ast::BinaryOp::Ge => BinaryOp::Ge,
            ast::BinaryOp::Gt => BinaryOp::Gt,
            ast::BinaryOp::Ne => BinaryOp::Ne,
            ast::BinaryOp::And => BinaryOp::And,
            ast::BinaryOp::Or => BinaryOp::Or,
        };
        self.binary(op, left, right)
    }

    /// Divides before it multiplies, because results must equal libpcp's.
    fn scale(&mut self, value: Reg, scale: Scale) -> Reg {
        if scale.is_one() {
            return value;
        }
        let div = self.double(scale.div);
        let mul = self.double(scale.mul);
        let value = self.binary(BinaryOp::Div, value, div);
        self.binary(BinaryOp::Mul, value, mul)
    }

    /// `guard ? yes : no`. If a branch is missing, the flag is set in lanes
    /// that choose it.
    pub fn choose(&mut self, guard: Reg, yes: Option<Reg>, no: Option<Reg>) -> Reg {
        match (yes, no) {
            (Some(yes), Some(no)) => {
                let truth = self.unary(UnaryOp::Truth, guard);
                self.select(truth, yes, no)
            }
            (Some(value), None) | (None, Some(value)) => {
                let op = if yes.is_none() { UnaryOp::Truth } else { UnaryOp::Not };
                let missing = self.unary(op, guard);
                self.flag(missing);
                value
            }
            // The grammar allows at most one missing branch.
            (None, None) => guard,
        }
    }

    /// `delta()`: exact if the result's type allows it. libpcp, however, rounds both
    /// numbers of U64 before it subtracts them.
    pub fn delta(&mut self, now: Reg, before: Reg, precision: Precision) -> Reg {
        let wide = match self.type_of(now) {
            Scalar::U64 if precision == Precision::Exact => return self.difference(now, before),
            Scalar::U64 if precision == Precision::OfCounter => {
                let difference = self.binary(BinaryOp::Sub, now, before);
                let difference = self.convert(difference, Scalar::I64);
                return self.convert(difference, Scalar::F64);
            }
            Scalar::U32 => Scalar::I64,
            Scalar::U64 => Scalar::F64,
            other => other,
        };
        let (now, before) = (self.convert(now, wide), self.convert(before, wide));
        self.binary(BinaryOp::Sub, now, before)
    }

    /// `rate()`: the difference per second of elapsed time.
    pub fn rate(
        &mut self,
        [now, before, elapsed]: [Reg; 3],
        decrease: Decrease,
        time_factor: Option<f64>,
    ) -> Reg {
        let scalar = self.type_of(now);
        if decrease == Decrease::Drop {
            let fell = self.binary(BinaryOp::Lt, now, before);
            self.flag(fell);
        }
        let difference = match (scalar, decrease) {
            (_, Decrease::Negative) | (Scalar::I32, Decrease::Drop) => self.difference(now, before),
            _ => {
                let difference = self.binary(BinaryOp::Sub, now, before);
                self.convert(difference, Scalar::F64)
            }
        };
        let rate = self.binary(BinaryOp::Div, difference, elapsed);
        match time_factor {
            None => rate,
            Some(factor) => {
                let factor = self.double(factor);
                self.binary(BinaryOp::Mul, rate, factor)
            }
        }
    }

    /// The difference of two numbers as `F64`: exact, and then rounded once.
    fn difference(&mut self, now: Reg, before: Reg) -> Reg {
        let wide = match self.type_of(now) {
            Scalar::I32 | Scalar::U32 => Scalar::I64,
            Scalar::I64 | Scalar::U64 => {
                // The magnitude of a difference fits into 64 bits without a sign.
                let rose = self.binary(BinaryOp::Ge, now, before);
                let [now, before] = [now, before].map(|number| self.convert(number, Scalar::U64));
                let up = self.binary(BinaryOp::Sub, now, before);
                let down = self.binary(BinaryOp::Sub, before, now);
                let magnitude = self.select(rose, up, down);
                let magnitude = self.convert(magnitude, Scalar::F64);
                let down = self.unary(UnaryOp::Neg, magnitude);
                return self.select(rose, magnitude, down);
            }
            float => float,
        };
        let [now, before] = [now, before].map(|number| self.convert(number, wide));
        let difference = self.binary(BinaryOp::Sub, now, before);
        self.convert(difference, Scalar::F64)
    }

    /// `rescale()`: the formulas of the functions of [`Conversion`].
    pub fn rescale(&mut self, value: Reg, conversion: &Conversion, precision: Precision) -> Reg {
        let scalar = self.type_of(value);
        let Conversion { mult, div, extra } = *conversion;
        let is_exact = precision == Precision::Exact;
        let scaled = match scalar {
            Scalar::F32 => {
                let factor = mult as f32 / div as f32;
                let factor = self.constant(scalar, u64::from(factor.to_bits()));
                self.binary(BinaryOp::Mul, value, factor)
            }
            Scalar::F64 => {
                let factor = self.double(mult as f64 / div as f64);
                self.binary(BinaryOp::Mul, value, factor)
            }
            _ if is_exact => self.rescale_whole(value, conversion.of_integers()),
            _ => {
                let wide = if scalar == Scalar::U64 { Scalar::U64 } else { Scalar::I64 };
                let mut number = self.convert(value, wide);
                // Some of libpcp's divisors have wrapped and are negative, but quotients of
                // kernels have positive divisors. For a signed number, the quotient by the
                // magnitude differs only in its sign.
                let is_turned = div < 0 && wide == Scalar::I64;
                let half = div / 2;
                let div = if is_turned { div.wrapping_neg() } else { div };
                if mult != 1 {
                    let mult = self.constant(wide, mult as u64);
                    number = self.binary(BinaryOp::Mul, number, mult);
                }
                if div != 1 {
                    let half = self.constant(wide, half as u64);
                    let div = self.constant(wide, div as u64);
                    number = self.binary(BinaryOp::Add, number, half);
                    number = self.binary(BinaryOp::Div, number, div);
                }
                if is_turned {
                    let zero = self.constant(wide, 0);
                    number = self.binary(BinaryOp::Sub, zero, number);
                }
                self.convert(number, scalar)
            }
        };
        let Some((a, b, c, d)) = extra else { return scaled };
        let value = self.convert(scaled, Scalar::F64);
        let [a, b, c, d] = [a, b, c, d].map(|number| self.double(number));
        let value = self.binary(BinaryOp::Add, value, c);
        let value = self.binary(BinaryOp::Mul, b, value);
        let value = self.binary(BinaryOp::Div, value, d);
        let mut value = self.binary(BinaryOp::Add, a, value);
        if is_exact && !scalar.is_float() {
            value = self.unary(UnaryOp::Round, value);
        }
        self.convert(value, scalar)
    }

    /// An integer times a fraction, rounded to the nearest integer, halves away from zero.
    /// If the product of numerator and denominator does not overflow, only the result can.
    fn rescale_whole(&mut self, value: Reg, (mult, div): (i64, i64)) -> Reg {
        let scalar = self.type_of(value);
        let wide = if scalar == Scalar::U64 { Scalar::U64 } else { Scalar::I64 };
        let value = self.convert(value, wide);
        let number = if div == 1 {
            let mult = self.constant(wide, mult as u64);
            self.binary(BinaryOp::Mul, value, mult)
        } else if mult == 1 && div % 2 == 0 {
            // Whole halves of the divisor, one more, and then pairs of them.
            let half = self.constant(wide, (div / 2) as u64);
            let halves = self.binary(BinaryOp::Div, value, half);
            let one = self.away_from_zero(value, scalar, 1);
            let halves = self.binary(BinaryOp::Add, halves, one);
            let two = self.constant(wide, 2);
            self.binary(BinaryOp::Div, halves, two)
        } else {
            // Only the remainder by the divisor is multiplied first.
            let half = self.away_from_zero(value, scalar, div / 2);
            let [mult, div] = [mult, div].map(|number| self.constant(wide, number as u64));
            let multiples = self.binary(BinaryOp::Div, value, div);
            let taken = self.binary(BinaryOp::Mul, multiples, div);
            let left = self.binary(BinaryOp::Sub, value, taken);
            let left = self.binary(BinaryOp::Mul, left, mult);
            let left = self.binary(BinaryOp::Add, left, half);
            let left = self.binary(BinaryOp::Div, left, div);
            let whole = self.binary(BinaryOp::Mul, multiples, mult);
            self.binary(BinaryOp::Add, whole, left)
        };
        self.convert(number, scalar)
    }

    /// A positive number with the sign of a value of 64 bits, whose operand is of type `from`.
    fn away_from_zero(&mut self, value: Reg, from: Scalar, number: i64) -> Reg {
        let wide = self.type_of(value);
        let number = self.constant(wide, number as u64);
        if !from.is_signed_integer() {
            return number;
        }
        let zero = self.constant(wide, 0);
        let is_negative = self.binary(BinaryOp::Lt, value, zero);
        let negative = self.unary(UnaryOp::Neg, number);
        self.select(is_negative, negative, number)
    }
}
