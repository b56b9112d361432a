//! The readable form of a kernel, for people and snapshots.

use std::fmt;

use super::ir::{Access, Body, Inst, KernelIr, ReduceOp, UnaryOp};

impl fmt::Display for KernelIr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kernel(")?;
        for (index, operand) in self.operands.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let shape = match operand.access {
                Access::Column => "[]",
                Access::Single => "",
            };
            let age = if operand.previous { "previous " } else { "" };
            write!(f, "{comma}o{index}: {age}{}{shape}", operand.scalar)?;
        }
        f.write_str(")")?;
        for (index, scalar) in self.constants.iter().enumerate() {
            let comma = if index == 0 { " with " } else { ", " };
            write!(f, "{comma}c{index}: {scalar}")?;
        }
        let (insts, result, flags) = match &self.body {
            Body::Reduce(ReduceOp::Quantile(q)) => {
                return writeln!(f, " -> {} = Quantile({}) o0", self.output(), f64::from_bits(*q));
            }
            Body::Reduce(op) => return writeln!(f, " -> {} = {op:?} o0", self.output()),
            Body::Map { insts, result, flags } => (insts, result, flags),
        };
        writeln!(f, " -> {}", self.output())?;
        let types = self.register_types().unwrap_or_default();
        for (index, (inst, scalar)) in insts.iter().zip(&types).enumerate() {
            write!(f, "  r{index}: {scalar} = ")?;
            match inst {
                Inst::Operand(operand) => writeln!(f, "o{operand}")?,
                Inst::Constant(constant) => writeln!(f, "c{constant}")?,
                Inst::Unary(UnaryOp::Convert(_), reg) => writeln!(f, "convert r{}", reg.0)?,
                Inst::Unary(op, reg) => {
                    writeln!(f, "{} r{}", format!("{op:?}").to_lowercase(), reg.0)?;
                }
                Inst::Binary(op, left, right) => {
                    let name = format!("{op:?}").to_lowercase();
                    writeln!(f, "{name} r{}, r{}", left.0, right.0)?;
                }
                Inst::Select(guard, yes, no) => {
                    writeln!(f, "select r{}, r{}, r{}", guard.0, yes.0, no.0)?;
                }
            }
        }
        for flag in flags {
            writeln!(f, "  flag r{}", flag.0)?;
        }
        writeln!(f, "  return r{}", result.0)
    }
}
