//! A builder of map kernels. A map kernel takes one value, a lane, of each operand and gives
//! one value.
//!
//! `plan::lane` writes the operations of the language with this builder, and each file of
//! `functions` writes those of its functions.

use std::fmt;
use std::mem::take;

use pmderive_runtime::kernel::interp::read;
use pmderive_runtime::kernel::{
    Access, BinaryOp, Body, Inst, Kernel, KernelIr, Operand, Reg, Scalar, UnaryOp,
};
use pmderive_runtime::model::ValueType;
use pmderive_runtime::program::scalar_of;

/// Builds a map kernel.
#[derive(Debug, Default)]
pub struct LaneBuilder {
    operands: Vec<Operand>,
    constants: Vec<Scalar>,
    /// Values of the constants, 8 bytes each in native byte order.
    values: Vec<u8>,
    insts: Vec<Inst>,
    types: Vec<Scalar>,
    flags: Vec<Reg>,
    /// Registers of a kernel that is added, kept for the next one.
    added: Vec<Reg>,
}

/// A function of the values of one instance, as a rule for kernels.
pub struct LaneRule {
    /// The words of `explain` about it.
    pub note: &'static str,
    /// Adds its instructions. The operands' registers are of the type that the
    /// node is computed in, and so is the result's.
    pub(crate) write: fn(&mut LaneBuilder, &[Reg]) -> Reg,
}

impl fmt::Debug for LaneRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.note)
    }
}

/// The scalar of a numeric type. Values of any other type take 64 bits.
pub fn lane_scalar(value_type: ValueType) -> Scalar {
    scalar_of(value_type).unwrap_or(Scalar::U64)
}

impl LaneBuilder {
    /// Adds an instruction, unless the kernel has it.
    fn push(&mut self, inst: Inst, scalar: Scalar) -> Reg {
        if let Some(at) = self.insts.iter().rposition(|have| *have == inst)
            && !matches!(inst, Inst::Constant(_))
        {
            return Reg(at as u16);
        }
        self.insts.push(inst);
        self.types.push(scalar);
        Reg((self.insts.len() - 1) as u16)
    }

    /// Adds an operand and loads it.
    pub fn operand(&mut self, scalar: Scalar, access: Access, previous: bool) -> Reg {
        self.operands.push(Operand { scalar, access, previous });
        let index = (self.operands.len() - 1) as u16;
        self.push(Inst::Operand(index), scalar)
    }

    /// Adds a constant and loads it.
    pub fn constant(&mut self, scalar: Scalar, bits: u64) -> Reg {
        self.constants.push(scalar);
        // A lane of four bytes is read from the first four.
        if scalar.bytes() == 4 {
            self.values.extend_from_slice(&(bits as u32).to_ne_bytes());
            self.values.extend_from_slice(&[0; 4]);
        } else {
            self.values.extend_from_slice(&bits.to_ne_bytes());
        }
        let index = (self.constants.len() - 1) as u16;
        self.push(Inst::Constant(index), scalar)
    }

    /// Adds a constant of type `F64` and loads it.
    pub fn double(&mut self, value: f64) -> Reg {
        self.constant(Scalar::F64, value.to_bits())
    }

    /// The type of a register.
    pub fn type_of(&self, reg: Reg) -> Scalar {
        self.types[usize::from(reg.0)]
    }

    /// Converts to a type, unless the value already has it.
    pub fn convert(&mut self, reg: Reg, to: Scalar) -> Reg {
        if self.type_of(reg) == to {
            return reg;
        }
        self.push(Inst::Unary(UnaryOp::Convert(to), reg), to)
    }

    /// An operation on one value, in the value's type.
    pub fn unary(&mut self, op: UnaryOp, reg: Reg) -> Reg {
        let scalar = self.type_of(reg);
        self.push(Inst::Unary(op, reg), op.result(scalar).unwrap_or(scalar))
    }

    /// An operation on two values of the same type.
    pub fn binary(&mut self, op: BinaryOp, left: Reg, right: Reg) -> Reg {
        let scalar = self.type_of(left);
        self.push(Inst::Binary(op, left, right), op.result(scalar).unwrap_or(scalar))
    }

    /// `yes` in lanes whose guard is true, else `no`; both have the same type.
    pub fn select(&mut self, guard: Reg, yes: Reg, no: Reg) -> Reg {
        let scalar = self.type_of(yes);
        self.push(Inst::Select(guard, yes, no), scalar)
    }

    /// Lanes in which a register is not 0 have no value.
    pub fn flag(&mut self, reg: Reg) {
        if !self.flags.contains(&reg) {
            self.flags.push(reg);
        }
    }

    /// Adds the instructions of another kernel. Its operands are `args`, and
    /// its constants are at the beginning of `constants`.
    pub fn inline(&mut self, kernel: &Kernel, args: &[Reg], constants: &[u8]) -> Reg {
        let Body::Map { insts, result, flags } = &kernel.ir().body else {
            unreachable!("only maps are nodes' own kernels")
        };
        let types = kernel.register_types().iter().copied();
        let mut regs = std::mem::take(&mut self.added);
        regs.clear();
        for (inst, scalar) in insts.iter().zip(types) {
            let reg = |reg: &Reg| regs[usize::from(reg.0)];
            let inlined = match inst {
                Inst::Operand(index) => args[usize::from(*index)],
                Inst::Constant(index) => {
                    let bits = read(scalar, constants, usize::from(*index) * 8);
                    self.constant(scalar, bits)
                }
                Inst::Unary(op, a) => self.push(Inst::Unary(*op, reg(a)), scalar),
                Inst::Binary(op, a, b) => self.push(Inst::Binary(*op, reg(a), reg(b)), scalar),
                Inst::Select(a, b, c) => self.push(Inst::Select(reg(a), reg(b), reg(c)), scalar),
            };
            regs.push(inlined);
        }
        for flag in flags {
            self.flag(regs[usize::from(flag.0)]);
        }
        let result = regs[usize::from(result.0)];
        self.added = regs;
        result
    }

    /// Ends the kernel and returns it with its constants.
    pub fn finish(&mut self, result: Reg) -> (KernelIr, Vec<u8>) {
        let LaneBuilder { operands, constants, values, insts, types, flags, .. } = self;
        types.clear();
        let body = Body::Map { insts: take(insts), result, flags: take(flags) };
        (KernelIr { operands: take(operands), constants: take(constants), body }, take(values))
    }

    /// Builds the next kernel in the memory of one that was finished.
    pub fn reuse(&mut self, ir: KernelIr, values: Vec<u8>) {
        if let Body::Map { insts, flags, .. } = ir.body {
            let (added, types) = (take(&mut self.added), take(&mut self.types));
            let KernelIr { operands, constants, .. } = ir;
            *self = LaneBuilder { operands, constants, values, insts, types, flags, added };
            self.clear();
        }
    }

    /// Removes everything, so that the builder can be used again.
    pub fn clear(&mut self) {
        self.operands.clear();
        self.constants.clear();
        self.values.clear();
        self.insts.clear();
        self.types.clear();
        self.flags.clear();
    }
}
