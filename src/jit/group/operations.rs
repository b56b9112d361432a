//! The operations of a group of lanes in their plain form, on vectors.
//!
//! Each gives the same bits as lane by lane.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use pmderive_runtime::kernel::{BinaryOp, Reg, Scalar, UnaryOp};

use super::{Group, GroupEmitter};
use crate::jit::conditions::{extreme_condition, float_condition, integer_condition};
use crate::jit::constants::{self, OfInteger};
use crate::jit::vectors::{HIGH_PAIR, LOW_HALVES, LOW_PAIRS, TURNS_SIGNS, choose, vector_of};

impl GroupEmitter<'_, '_> {
    /// All bits of a lane where a comparison is true.
    pub(super) fn compare(&mut self, op: BinaryOp, scalar: Scalar, a: Value, b: Value) -> Value {
        if scalar.is_float() {
            // `b < a`, because Cranelift recognises a choice of the greater one
            // by it.
            let (op, a, b) = match op {
                BinaryOp::Gt => (BinaryOp::Lt, b, a),
                BinaryOp::Ge => (BinaryOp::Le, b, a),
                op => (op, a, b),
            };
            self.builder.ins().fcmp(float_condition(op), a, b)
        } else {
            let signed = scalar.is_signed_integer();
            let (condition, [a, b]) = self.order(integer_condition(op, signed), scalar, [a, b]);
            self.builder.ins().icmp(condition, a, b)
        }
    }

    /// A comparison of integers and its operands, in the processor's form. x86-64
    /// compares only signed 64-bit numbers, so unsigned ones have their signs turned.
    fn order(&mut self, condition: IntCC, scalar: Scalar, of: [Value; 2]) -> (IntCC, [Value; 2]) {
        let signed = match condition {
            IntCC::UnsignedLessThan => IntCC::SignedLessThan,
            IntCC::UnsignedLessThanOrEqual => IntCC::SignedLessThanOrEqual,
            IntCC::UnsignedGreaterThan => IntCC::SignedGreaterThan,
            IntCC::UnsignedGreaterThanOrEqual => IntCC::SignedGreaterThanOrEqual,
            _ => return (condition, of),
        };
        if scalar.bytes() != 8 || !TURNS_SIGNS {
            return (condition, of);
        }
        let sign = self.constant(constants::SIGN);
        (signed, of.map(|value| self.builder.ins().bxor(value, sign)))
    }

    /// An operation on a register.
    pub(super) fn unary(&mut self, op: UnaryOp, a: Reg) -> Group {
        let register = usize::from(a.0);
        let scalar = self.types[register];
        let negate = |this: &mut Self, a| {
            if !scalar.is_float() {
                return this.builder.ins().ineg(a);
            }
            let (kind, bits) = match scalar.bytes() {
                8 => (types::I64X2, this.constant(constants::SIGN)),
                _ => {
                    let sign = this.builder.ins().iconst(types::I32, i64::from(i32::MIN as u32));
                    (types::I32X4, this.builder.ins().splat(types::I32X4, sign))
                }
            };
            let a = this.cast(kind, a);
            let negative = this.builder.ins().bxor(a, bits);
            this.cast(vector_of(scalar), negative)
        };
        match op {
            UnaryOp::Convert(to) => {
                let number = self.number(register);
                self.convert(scalar, to, number)
            }
            UnaryOp::Neg => self.map(register, negate),
            UnaryOp::Truth => self.truth(register, true),
            UnaryOp::Not => self.truth(register, false),
            UnaryOp::Abs if scalar.is_float() => {
                self.map(register, |this, a| this.builder.ins().fabs(a))
            }
            UnaryOp::Abs if scalar.is_signed_integer() => {
                self.map(register, |this, a| this.builder.ins().iabs(a))
            }
            UnaryOp::Abs => self.number(register),
            UnaryOp::Floor => self.map(register, |this, a| this.builder.ins().floor(a)),
            UnaryOp::Ceil => self.map(register, |this, a| this.builder.ins().ceil(a)),
            UnaryOp::Round => self.map(register, |this, a| this.round(scalar, a)),
            UnaryOp::Sqrt => self.map(register, |this, a| this.builder.ins().sqrt(a)),
            UnaryOp::Log => unreachable!("not suitable"),
        }
    }

    /// A register's numbers, each vector by itself.
    fn map(&mut self, register: usize, op: impl Fn(&mut Self, Value) -> Value) -> Group {
        match self.number(register) {
            Group::Wide(a) => Group::Wide(self.both(a, op)),
            Group::Narrow(a) => Group::Narrow(op(self, a)),
            Group::WideMask(_) | Group::NarrowMask(_) | Group::NarrowNot(_) => {
                unreachable!("numbers are no masks")
            }
        }
    }

    /// The nearest whole numbers, halves away from zero.
    fn round(&mut self, scalar: Scalar, a: Value) -> Value {
        let (kind, bits) =
            (vector_of(scalar), if scalar.bytes() == 8 { types::I64X2 } else { types::I32X4 });
        let mut number = |value: f64| {
            let value = match scalar {
                Scalar::F32 => self.builder.ins().f32const(value as f32),
                _ => self.builder.ins().f64const(value),
            };
            self.builder.ins().splat(kind, value)
        };
        let (half, one, sign) = (number(0.5), number(1.0), number(-0.0));
        // The fraction is exact; it is NaN for infinities, which stay.
        let whole = self.builder.ins().trunc(a);
        let rest = self.builder.ins().fsub(a, whole);
        let rest = self.builder.ins().fabs(rest);
        let far = self.builder.ins().fcmp(FloatCC::GreaterThanOrEqual, rest, half);
        let [one, sign, a] = [one, sign, a].map(|value| self.cast(bits, value));
        let step = self.builder.ins().band(far, one);
        let sign = self.builder.ins().band(a, sign);
        let step = self.builder.ins().bor(step, sign);
        let step = self.cast(kind, step);
        self.builder.ins().fadd(whole, step)
    }

    /// Numbers of a type as those of another.
    pub fn convert(&mut self, from: Scalar, to: Scalar, number: Group) -> Group {
        let signed = from.is_signed_integer();
        match (number, from.is_float(), to) {
            (Group::Wide(a), false, Scalar::I32 | Scalar::U32) => {
                Group::Narrow(self.shuffle(types::I32X4, a, &LOW_HALVES))
            }
            (Group::Wide(a), false, Scalar::F64) => {
                Group::Wide(self.both(a, |this, a| this.double_of(from, a)))
            }
            (Group::Narrow(a), false, Scalar::I64 | Scalar::U64) => {
                Group::Wide(self.widen(signed, a))
            }
            (Group::Narrow(a), false, Scalar::F32) => {
                Group::Narrow(self.float_of(types::F32X4, signed, a))
            }
            (Group::Narrow(a), false, Scalar::F64) => {
                // The upper half is moved down, because there is one
                // instruction for the lower one.
                let high = self.shuffle(types::I32X4, [a, a], &HIGH_PAIR);
                Group::Wide(self.both([a, high], |this, a| {
                    let a = match signed {
                        true => this.builder.ins().swiden_low(a),
                        false => this.builder.ins().uwiden_low(a),
                    };
                    this.float_of(types::F64X2, signed, a)
                }))
            }
            (Group::Narrow(a), true, Scalar::F64) => {
                let high = self.shuffle(types::F32X4, [a, a], &HIGH_PAIR);
                Group::Wide([a, high].map(|a| self.builder.ins().fvpromote_low(a)))
            }
            (Group::Wide(a), true, Scalar::F32) => {
                let a = self.both(a, |this, a| this.builder.ins().fvdemote(a));
                Group::Narrow(self.shuffle(types::F32X4, a, &LOW_PAIRS))
            }
            // Types of one size, whose bits are the same.
            (same, ..) => same,
        }
    }

    /// Four integers of 4 bytes as two vectors of 8 bytes a lane.
    pub(super) fn widen(&mut self, signed: bool, a: Value) -> [Value; 2] {
        if signed {
            [self.builder.ins().swiden_low(a), self.builder.ins().swiden_high(a)]
        } else {
            [self.builder.ins().uwiden_low(a), self.builder.ins().uwiden_high(a)]
        }
    }

    /// Doubles of 64-bit integers, in vectors. The halves of a number become the low
    /// bits of 2^52 and of 2^84. The sum of both, less these additions, is rounded
    /// once.
    fn double_of(&mut self, scalar: Scalar, a: Value) -> Value {
        let OfInteger { lower, of_low, of_high, added } = OfInteger::of(scalar);
        let [lower, of_low, of_high, added] =
            [lower, of_low, of_high, added].map(|bits| self.constant(bits));
        let low = self.builder.ins().band(a, lower);
        let low = self.builder.ins().bor(low, of_low);
        let bits = self.builder.ins().iconst(types::I32, 32);
        let high = self.builder.ins().ushr(a, bits);
        let high = self.builder.ins().bxor(high, of_high);
        let [low, high, added] = [low, high, added].map(|lanes| self.cast(types::F64X2, lanes));
        let high = self.builder.ins().fsub(high, added);
        self.builder.ins().fadd(high, low)
    }

    fn float_of(&mut self, to: Type, signed: bool, a: Value) -> Value {
        let ins = self.builder.ins();
        if signed { ins.fcvt_from_sint(to, a) } else { ins.fcvt_from_uint(to, a) }
    }

    /// An operation on two registers.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Group {
        let [a, b] = [a, b].map(|reg| usize::from(reg.0));
        let scalar = self.types[a];
        let is_number = !op.is_comparison();
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let [a, b] = [a, b].map(|register| self.truth(register, true));
            let join = |this: &mut Self, a, b| match op {
                BinaryOp::And => this.builder.ins().band(a, b),
                _ => this.builder.ins().bor(a, b),
            };
            return match (a, b) {
                (Group::WideMask(a), Group::WideMask(b)) => {
                    Group::WideMask(self.each_pair(a, b, join))
                }
                (a, b) => {
                    let (a, b) = (self.narrow(a), self.narrow(b));
                    Group::NarrowMask(join(self, a, b))
                }
            };
        }
        let apply = |this: &mut Self, a, b| match is_number {
            true => this.arithmetic(op, scalar, a, b),
            false => this.compare(op, scalar, a, b),
        };
        match (self.number(a), self.number(b)) {
            (Group::Wide(a), Group::Wide(b)) => {
                let lanes = self.each_pair(a, b, apply);
                if is_number { Group::Wide(lanes) } else { Group::WideMask(lanes) }
            }
            // Processors compare unsigned numbers only for one order or the other.
            (Group::Narrow(a), Group::Narrow(b))
                if matches!(op, BinaryOp::Lt | BinaryOp::Gt) && scalar == Scalar::U32 =>
            {
                let not = if op == BinaryOp::Lt { BinaryOp::Ge } else { BinaryOp::Le };
                Group::NarrowNot(self.compare(not, scalar, a, b))
            }
            (Group::Narrow(a), Group::Narrow(b)) => {
                let lanes = apply(self, a, b);
                if is_number { Group::Narrow(lanes) } else { Group::NarrowMask(lanes) }
            }
            _ => unreachable!("both operands are of one type"),
        }
    }

    fn arithmetic(&mut self, op: BinaryOp, scalar: Scalar, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match (op, scalar.is_float()) {
            (BinaryOp::Add, true) => ins.fadd(a, b),
            (BinaryOp::Sub, true) => ins.fsub(a, b),
            (BinaryOp::Mul, true) => ins.fmul(a, b),
            (BinaryOp::Div, _) => ins.fdiv(a, b),
            (BinaryOp::Add, false) => ins.iadd(a, b),
            (BinaryOp::Sub, false) => ins.isub(a, b),
            (BinaryOp::Mul, false) => ins.imul(a, b),
            (BinaryOp::Min, true) => ins.fmin(a, b),
            (BinaryOp::Max, true) => ins.fmax(a, b),
            (BinaryOp::Min | BinaryOp::Max, false) => {
                let condition = extreme_condition(op, scalar.is_signed_integer());
                let (condition, turned) = self.order(condition, scalar, [a, b]);
                let first = self.builder.ins().icmp(condition, turned[0], turned[1]);
                self.choose(first, a, b)
            }
            (BinaryOp::Ratio, _) => {
                let quotient = ins.fdiv(a, b);
                let zero = self.zero(scalar);
                let nothing = self.builder.ins().fcmp(FloatCC::Equal, a, zero);
                // Zero has no bits.
                let quotient = self.cast(types::I64X2, quotient);
                let quotient = self.builder.ins().band_not(quotient, nothing);
                self.cast(types::F64X2, quotient)
            }
            _ => unreachable!("not suitable"),
        }
    }

    fn choose(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        choose(self.builder, self.has_blend, mask, [yes, no])
    }

    /// The lanes of one register where a guard is not zero, of another where it is.
    pub(super) fn select(&mut self, guard: Reg, yes: Reg, no: Reg) -> Group {
        let [guard, yes, no] = [guard, yes, no].map(|reg| usize::from(reg.0));
        match (self.number(yes), self.number(no)) {
            (Group::Wide([a, c]), Group::Wide([b, d])) => {
                let [low, high] = self.wide_mask(guard);
                let first = self.choose(low, a, b);
                if (low, a, b) == (high, c, d) {
                    return Group::Wide([first; 2]);
                }
                Group::Wide([first, self.choose(high, c, d)])
            }
            (Group::Narrow(a), Group::Narrow(b)) => {
                let mask = self.narrow_mask(guard);
                Group::Narrow(self.choose(mask, a, b))
            }
            _ => unreachable!("both branches are of one type"),
        }
    }
}
