//! The code around the loop of a quick form: the conditions before it, and the test
//! of its watched values after it.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pmderive_runtime::kernel::{Body, Inst, Scalar};

use super::Emitter;
use crate::jit::quick::{DIVISORS, Form, Quick};

/// The values that the quick form needs before its loop.
pub struct Prepared {
    /// True if the conditions hold that are the same in all lanes.
    pub holds: Value,
    /// Reciprocals and numbers of bits to shift, parallel to the instructions.
    pub values: Vec<Option<Value>>,
}

impl Emitter<'_, '_> {
    /// Tests the conditions that are the same in all lanes.
    pub fn prepare(&mut self, quick: &Quick) -> Prepared {
        let ir = self.ir;
        let insts: &[Inst] = match &ir.body {
            Body::Map { insts, .. } => insts,
            Body::Reduce(_) => &[],
        };
        let mut holds = self.builder.ins().iconst(types::I8, 1);
        let mut values = vec![None; insts.len()];
        for (at, form) in quick.forms.iter().enumerate() {
            let Inst::Binary(_, a, b) = insts[at] else { continue };
            let [a, b] = [a, b].map(|reg| self.values[usize::from(reg.0)]);
            match form {
                Form::ByReciprocal => {
                    let divisor = b.expect("divisors are the same in every lane");
                    for (condition, bound) in
                        [FloatCC::GreaterThan, FloatCC::LessThan].into_iter().zip(DIVISORS)
                    {
                        let bound = self.builder.ins().f64const(bound);
                        let within = self.builder.ins().fcmp(condition, divisor, bound);
                        holds = self.builder.ins().band(holds, within);
                    }
                    let one = self.builder.ins().f64const(1.0);
                    let share = self.builder.ins().fdiv(one, divisor);
                    values[at] = Some(self.builder.ins().splat(types::F64X2, share));
                }
                Form::ShiftedLeft(_) | Form::ShiftedRight => {
                    let number = if *form == Form::ShiftedRight { b } else { a.or(b) };
                    let number = number.expect("factors are the same in every lane");
                    let less = self.builder.ins().iadd_imm_s(number, -1);
                    // One bit and no other: then the number is above those below it.
                    let rest = self.builder.ins().bxor(number, less);
                    let one_bit = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, rest, less);
                    holds = self.builder.ins().band(holds, one_bit);
                    if self.types[at] == Scalar::I64 {
                        // The least number has one bit and is not above zero.
                        let zero = self.builder.ins().iconst(types::I64, 0);
                        let above = self.builder.ins().icmp(IntCC::SignedGreaterThan, number, zero);
                        holds = self.builder.ins().band(holds, above);
                    }
                    values[at] = Some(self.builder.ins().ctz(number));
                }
                _ => {}
            }
        }
        Prepared { holds, values }
    }

    /// True if a watched difference was 2^52 or more, or a watched sign was set.
    ///
    /// Differences are modulo 2^64. Of unsigned numbers `a - b` with `b` below
    /// 2^63, and of signed ones with `a` not negative, one below 2^52 is the true
    /// difference: `a < b` would make it 2^63 at least.
    pub fn was_wrong(&mut self, large: Value, top: Value) -> Value {
        let mut mask = |bits: i64| {
            let bits = self.builder.ins().iconst(types::I64, bits);
            self.builder.ins().splat(types::I64X2, bits)
        };
        let high = mask(!0 << 52);
        let sign = mask(i64::MIN);
        let large = self.builder.ins().band(large, high);
        let top = self.builder.ins().band(top, sign);
        let wrong = self.builder.ins().bor(large, top);
        self.builder.ins().vany_true(wrong)
    }
}
