//! The operations on one lane.
//!
//! No operation traps: integer division raises its divisor to at least one.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value, types};
use pmderive_runtime::kernel::{BinaryOp, Inst, Scalar, UnaryOp};

use super::Emitter;
use crate::jit::conditions::{extreme_condition, float_condition, integer_condition};
use crate::jit::target::type_of;

impl Emitter<'_, '_> {
    /// An instruction on computed registers.
    pub(super) fn operation(&mut self, inst: &Inst) -> Value {
        match *inst {
            Inst::Operand(_) | Inst::Constant(_) => unreachable!("loaded by the caller"),
            Inst::Unary(op, a) => {
                let register = usize::from(a.0);
                self.unary(op, self.types[register], self.value(register))
            }
            Inst::Binary(op, a, b) => {
                let register = usize::from(a.0);
                let (a, b) = (self.value(register), self.value(usize::from(b.0)));
                self.binary(op, self.types[register], a, b)
            }
            Inst::Select(guard, yes, no) => {
                let [guard, yes, no] = [guard, yes, no].map(|reg| self.value(usize::from(reg.0)));
                self.builder.ins().select(guard, yes, no)
            }
        }
    }

    /// 1 or 0 as `U32`.
    fn truth(&mut self, condition: Value) -> Value {
        self.builder.ins().uextend(types::I32, condition)
    }

    pub fn zero(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::F32 => self.builder.ins().f32const(0.0),
            Scalar::F64 => self.builder.ins().f64const(0.0),
            integer => self.builder.ins().iconst(type_of(integer), 0),
        }
    }

    fn is_zero(&mut self, scalar: Scalar, a: Value, zero: bool) -> Value {
        let nothing = self.zero(scalar);
        if scalar.is_float() {
            let condition = if zero { FloatCC::Equal } else { FloatCC::NotEqual };
            self.builder.ins().fcmp(condition, a, nothing)
        } else {
            let condition = if zero { IntCC::Equal } else { IntCC::NotEqual };
            self.builder.ins().icmp(condition, a, nothing)
        }
    }

    fn unary(&mut self, op: UnaryOp, scalar: Scalar, a: Value) -> Value {
        match op {
            UnaryOp::Convert(to) => self.convert(scalar, to, a),
            UnaryOp::Neg if scalar.is_float() => self.builder.ins().fneg(a),
            UnaryOp::Neg => self.builder.ins().ineg(a),
            UnaryOp::Truth => {
                let condition = self.is_zero(scalar, a, false);
                self.truth(condition)
            }
            UnaryOp::Not => {
                let condition = self.is_zero(scalar, a, true);
                self.truth(condition)
            }
            UnaryOp::Abs if scalar.is_float() => self.builder.ins().fabs(a),
            UnaryOp::Abs if scalar.is_signed_integer() => self.builder.ins().iabs(a),
            UnaryOp::Abs => a,
            UnaryOp::Floor => self.builder.ins().floor(a),
            UnaryOp::Ceil => self.builder.ins().ceil(a),
            UnaryOp::Round => self.round(scalar, a),
            UnaryOp::Sqrt => self.builder.ins().sqrt(a),
            UnaryOp::Log => self.call(self.calls.log, &[a]),
        }
    }

    /// The nearest whole number, halves away from zero.
    fn round(&mut self, scalar: Scalar, a: Value) -> Value {
        let (zero, half, one) =
            (self.zero(scalar), self.float(scalar, 0.5), self.float(scalar, 1.0));
        // The fraction is exact; it is NaN for infinities, which stay.
        let whole = self.builder.ins().trunc(a);
        let rest = self.builder.ins().fsub(a, whole);
        let rest = self.builder.ins().fabs(rest);
        let far = self.builder.ins().fcmp(FloatCC::GreaterThanOrEqual, rest, half);
        let step = self.builder.ins().select(far, one, zero);
        let step = self.builder.ins().fcopysign(step, a);
        self.builder.ins().fadd(whole, step)
    }

    pub fn float(&mut self, scalar: Scalar, value: f64) -> Value {
        match scalar {
            Scalar::F32 => self.builder.ins().f32const(value as f32),
            _ => self.builder.ins().f64const(value),
        }
    }

    fn call(&mut self, function: Option<FuncRef>, args: &[Value]) -> Value {
        let function = function.expect("calls were declared for what the kernel needs");
        let call = self.builder.ins().call(function, args);
        self.builder.inst_results(call)[0]
    }

    pub fn convert(&mut self, from: Scalar, to: Scalar, a: Value) -> Value {
        let (signed, target) = (from.is_signed_integer(), type_of(to));
        let ins = self.builder.ins();
        match (from.is_float(), to.is_float()) {
            (false, false) => match (from.bytes(), to.bytes()) {
                (4, 8) if signed => ins.sextend(target, a),
                (4, 8) => ins.uextend(target, a),
                (8, 4) => ins.ireduce(target, a),
                _ => a,
            },
            (false, true) if signed => ins.fcvt_from_sint(target, a),
            (false, true) => ins.fcvt_from_uint(target, a),
            (true, true) => match (from, to) {
                (Scalar::F32, Scalar::F64) => ins.fpromote(target, a),
                (Scalar::F64, Scalar::F32) => ins.fdemote(target, a),
                _ => a,
            },
            (true, false) if to.is_signed_integer() => ins.fcvt_to_sint_sat(target, a),
            (true, false) => ins.fcvt_to_uint_sat(target, a),
        }
    }

    pub fn binary(&mut self, op: BinaryOp, scalar: Scalar, a: Value, b: Value) -> Value {
        let float = scalar.is_float();
        let ins = self.builder.ins();
        match op {
            BinaryOp::Add if float => ins.fadd(a, b),
            BinaryOp::Sub if float => ins.fsub(a, b),
            BinaryOp::Mul if float => ins.fmul(a, b),
            BinaryOp::Div if float => ins.fdiv(a, b),
            BinaryOp::Add => ins.iadd(a, b),
            BinaryOp::Sub => ins.isub(a, b),
            BinaryOp::Mul => ins.imul(a, b),
            BinaryOp::Div => {
                let one = self.builder.ins().iconst(type_of(scalar), 1);
                if scalar.is_signed_integer() {
                    let divisor = self.builder.ins().smax(b, one);
                    self.builder.ins().sdiv(a, divisor)
                } else {
                    let divisor = self.builder.ins().umax(b, one);
                    self.builder.ins().udiv(a, divisor)
                }
            }
            BinaryOp::Ratio => {
                let zero = self.builder.ins().f64const(0.0);
                let nothing = self.builder.ins().fcmp(FloatCC::Equal, a, zero);
                let quotient = self.builder.ins().fdiv(a, b);
                self.builder.ins().select(nothing, zero, quotient)
            }
            BinaryOp::And | BinaryOp::Or => {
                let a = self.is_zero(scalar, a, false);
                let b = self.is_zero(scalar, b, false);
                let both = match op {
                    BinaryOp::And => self.builder.ins().band(a, b),
                    _ => self.builder.ins().bor(a, b),
                };
                self.truth(both)
            }
            BinaryOp::Min if float => ins.fmin(a, b),
            BinaryOp::Max if float => ins.fmax(a, b),
            BinaryOp::Min | BinaryOp::Max => {
                let signed = scalar.is_signed_integer();
                let first = self.builder.ins().icmp(extreme_condition(op, signed), a, b);
                self.builder.ins().select(first, a, b)
            }
            BinaryOp::Pow => self.call(self.calls.pow, &[a, b]),
            comparison => {
                let condition = if float {
                    let condition = float_condition(comparison);
                    self.builder.ins().fcmp(condition, a, b)
                } else {
                    let condition = integer_condition(comparison, scalar.is_signed_integer());
                    self.builder.ins().icmp(condition, a, b)
                };
                self.truth(condition)
            }
        }
    }
}
