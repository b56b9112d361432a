//! The operations of a group of lanes in their [quick forms](super::super::quick).

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pmderive_runtime::kernel::{Inst, Reg, Scalar};

use super::{Group, GroupEmitter};
use crate::jit::constants;
use crate::jit::quick::Form;

/// One of two equal values, or both if they differ.
fn distinct(values: &[Value; 2]) -> &[Value] {
    if values[0] == values[1] { &values[..1] } else { values }
}

impl GroupEmitter<'_, '_> {
    /// An instruction in its [quick form](super::super::quick).
    pub(super) fn quickly(
        &mut self,
        inst: Inst,
        form: Form,
        prepared: Option<Value>,
        there: Option<Value>,
    ) -> Group {
        match (inst, form) {
            (Inst::Binary(op, a, b), Form::Watched(sign)) => {
                let difference = self.binary(op, a, b);
                let sign = self.number(usize::from(sign.0));
                let mask = there.map(|there| self.widen(true, there));
                for (number, to) in [difference, sign].into_iter().zip([0, 1]) {
                    let Group::Wide(mut lanes) = number else { unreachable!("64-bit numbers") };
                    if let Some([low, high]) = mask {
                        lanes = [
                            self.builder.ins().band(lanes[0], low),
                            self.builder.ins().band(lanes[1], high),
                        ];
                    }
                    self.watched[to].extend(distinct(&lanes));
                }
                difference
            }
            (Inst::Unary(_, a), Form::OfSmall) => {
                // The bits of 2^52 and of a number below it are those of their sum.
                let bits = self.constant(constants::TWO_TO_52);
                let base = self.cast(types::F64X2, bits);
                let a = self.wide(a);
                Group::Wide(self.both(a, |this, a| {
                    let sum = this.builder.ins().bor(a, bits);
                    let sum = this.cast(types::F64X2, sum);
                    this.builder.ins().fsub(sum, base)
                }))
            }
            (Inst::Binary(_, a, b), Form::ByReciprocal) => {
                let share = prepared.expect("a reciprocal is prepared");
                let [a, [divisor, _]] = [a, b].map(|reg| self.wide(reg));
                Group::Wide(self.both(a, |this, a| {
                    let quotient = this.builder.ins().fmul(a, share);
                    let negative = this.builder.ins().fneg(quotient);
                    let rest = this.builder.ins().fma(negative, divisor, a);
                    this.builder.ins().fma(rest, share, quotient)
                }))
            }
            (Inst::Binary(..), Form::ShiftedLeft(a)) => {
                let bits = prepared.expect("the number of bits is prepared");
                let a = self.wide(a);
                Group::Wide(self.both(a, |this, a| this.builder.ins().ishl(a, bits)))
            }
            (Inst::Binary(_, a, _), Form::ShiftedRight) => {
                let bits = prepared.expect("the number of bits is prepared");
                let signed = self.types[usize::from(a.0)].is_signed_integer();
                let a = self.wide(a);
                Group::Wide(self.both(a, |this, a| {
                    if !signed {
                        return this.builder.ins().ushr(a, bits);
                    }
                    // Towards zero: the magnitude is shifted.
                    let zero = this.zero(Scalar::I64);
                    let negative = this.builder.ins().icmp(IntCC::SignedLessThan, a, zero);
                    let flipped = this.builder.ins().bxor(a, negative);
                    let magnitude = this.builder.ins().isub(flipped, negative);
                    let shifted = this.builder.ins().ushr(magnitude, bits);
                    let flipped = this.builder.ins().bxor(shifted, negative);
                    this.builder.ins().isub(flipped, negative)
                }))
            }
            _ => unreachable!("no quick form of this instruction"),
        }
    }

    /// Adds the watched values of this group to all earlier ones.
    pub fn watched(&mut self, large: &mut Value, top: &mut Value) {
        for (all, to) in self.watched.iter().zip([large, top]) {
            for lanes in all {
                *to = self.builder.ins().bor(*to, *lanes);
            }
        }
    }

    /// A register's numbers of 8 bytes.
    fn wide(&mut self, register: Reg) -> [Value; 2] {
        match self.number(usize::from(register.0)) {
            Group::Wide(lanes) => lanes,
            _ => unreachable!("64-bit numbers"),
        }
    }
}
