//! The form of a kernel: typed registers, assigned once, no control flow.
//!
//! A kernel reads lane `i` of each column operand (or the only lane of a
//! single one), its constants, and computes lane `i` of its output. A
//! reduction computes one value from all lanes of its only operand. Kernels
//! cannot fail: every operation is defined for all bit patterns.

use std::fmt;

/// Type of a register, an operand or a column's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Scalar {
    /// All scalars, in the order of the PMAPI's type codes.
    pub const ALL: [Scalar; 6] =
        [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64, Scalar::F32, Scalar::F64];

    /// Bytes of one lane: 4 or 8.
    pub const fn bytes(self) -> usize {
        match self {
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// True for `F32` and `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// True for `I32` and `I64`.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Scalar::I32 | Scalar::I64)
    }
}

/// Register: the result of the instruction at that position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub u16);

/// The way in which a kernel reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Lane `i` for output lane `i`.
    Column,
    /// The same lane for every output lane.
    Single,
}

/// An operand of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Type of its lanes.
    pub scalar: Scalar,
    /// The way to read it.
    pub access: Access,
    /// True for the previous sample of an operand, which lives with the host
    /// and not in the workspace.
    pub previous: bool,
}

/// Operations on one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// To another type, as a C cast does; floating point to integer saturates
    /// and turns NaN into 0.
    Convert(Scalar),
    /// Negation; integers wrap.
    Neg,
    /// `U32`: 1 unless zero; NaN is not zero.
    Truth,
    /// `U32`: 1 if zero; NaN is not zero.
    Not,
    /// Magnitude; of the least integer of a signed type that integer itself.
    Abs,
    /// The greatest whole number that is not above it; floating point only,
    /// as the others that round.
    Floor,
    /// The least whole number that is not below it.
    Ceil,
    /// The nearest whole number, halves away from zero.
    Round,
    /// Square root, floating point only; NaN below zero.
    Sqrt,
    /// Natural logarithm, `F64` only; see [`super::math::log`].
    Log,
}

impl UnaryOp {
    /// All operations except conversions.
    pub const PLAIN: [UnaryOp; 9] = [
        UnaryOp::Neg,
        UnaryOp::Truth,
        UnaryOp::Not,
        UnaryOp::Abs,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::Round,
        UnaryOp::Sqrt,
        UnaryOp::Log,
    ];

    /// Type of the result for an operand of type `scalar`; `None` if there is
    /// no such operation.
    pub fn result(self, scalar: Scalar) -> Option<Scalar> {
        match self {
            UnaryOp::Convert(to) => Some(to),
            UnaryOp::Truth | UnaryOp::Not => Some(Scalar::U32),
            UnaryOp::Neg | UnaryOp::Abs => Some(scalar),
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Sqrt => {
                scalar.is_float().then_some(scalar)
            }
            UnaryOp::Log => (scalar == Scalar::F64).then_some(scalar),
        }
    }
}

/// Operations on two registers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Product; integers wrap.
    Mul,
    /// Quotient: IEEE division, or towards zero for integers, where a divisor
    /// below one counts as one.
    Div,
    /// Division of the expression language, `F64` only: 0 if the dividend is 0,
    /// whatever the divisor is, else IEEE division.
    Ratio,
    /// `U32` 0 or 1, as are all comparisons; false with NaN.
    Lt,
    /// Less or equal.
    Le,
    /// Equal.
    Eq,
    /// Greater or equal.
    Ge,
    /// Greater.
    Gt,
    /// Not equal; true with NaN.
    Ne,
    /// `U32`: 1 if neither is zero.
    And,
    /// `U32`: 1 if one is not zero.
    Or,
    /// The lesser one; NaN if one is NaN; of two zeros the negative one.
    Min,
    /// The greater one; NaN if one is NaN; of two zeros the positive one.
    Max,
    /// The first to the power of the second, `F64` only; see [`super::math::pow`].
    Pow,
}

impl BinaryOp {
    /// All binary operations.
    pub const ALL: [BinaryOp; 16] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Ratio,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Eq,
        BinaryOp::Ge,
        BinaryOp::Gt,
        BinaryOp::Ne,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::Pow,
    ];

    /// True for comparisons of two numbers.
    pub const fn is_comparison(self) -> bool {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        matches!(self, Lt | Le | Eq | Ge | Gt | Ne)
    }

    /// Type of the result for operands of type `scalar`; `None` if there is
    /// no such operation.
    pub fn result(self, scalar: Scalar) -> Option<Scalar> {
        match self {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => Some(scalar),
            BinaryOp::Min | BinaryOp::Max => Some(scalar),
            BinaryOp::Ratio | BinaryOp::Pow => (scalar == Scalar::F64).then_some(scalar),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq => Some(Scalar::U32),
            BinaryOp::Ge | BinaryOp::Gt | BinaryOp::Ne => Some(Scalar::U32),
            BinaryOp::And | BinaryOp::Or => Some(Scalar::U32),
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// Loads an operand.
    Operand(u16),
    /// Loads a constant.
    Constant(u16),
    /// Applies an operation to one register.
    Unary(UnaryOp, Reg),
    /// Applies an operation to two registers.
    Binary(BinaryOp, Reg, Reg),
    /// The second register where the first (`U32`) is not zero, else the third.
    Select(Reg, Reg, Reg),
}

/// Reductions over the lanes of a column, in the order of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum in the operand's type, from zero; integers wrap.
    Sum,
    /// The first lane, then each that is greater.
    Max,
    /// The first lane, then each that is less.
    Min,
    /// As `Max`, but the first lane that is NaN if there is one.
    Greatest,
    /// As `Min`, but the first lane that is NaN if there is one.
    Least,
    /// `F32`: summed in double precision, rounded once.
    SumDouble,
    /// `F32`: each lane is rounded to single precision and divided by the
    /// number of lanes before it is added, in single precision.
    AvgSingle,
    /// `F32`: summed in double precision, divided once, rounded once.
    AvgDouble,
    /// `F64`: standard deviation of the population; see [`super::statistic::std_dev`].
    StdDev,
    /// `F64`: the quantile that these bits of an `F64` say; see
    /// [`super::statistic::quantile`].
    Quantile(u64),
}

impl ReduceOp {
    /// All reductions except quantiles.
    pub const PLAIN: [ReduceOp; 9] = [
        ReduceOp::Sum,
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::Greatest,
        ReduceOp::Least,
        ReduceOp::SumDouble,
        ReduceOp::AvgSingle,
        ReduceOp::AvgDouble,
        ReduceOp::StdDev,
    ];

    /// False for reductions that have no form in other code than this crate's:
    /// they are functions that either backend calls.
    pub const fn is_compiled(self) -> bool {
        !matches!(self, ReduceOp::StdDev | ReduceOp::Quantile(_))
    }

    /// A reduction with the same result if no lane is NaN. It may be faster.
    pub const fn of_numbers(self) -> ReduceOp {
        match self {
            ReduceOp::Greatest => ReduceOp::Max,
            ReduceOp::Least => ReduceOp::Min,
            op => op,
        }
    }

    /// True if an empty column has a value: zero.
    pub const fn has_value_of_nothing(self) -> bool {
        use ReduceOp::{AvgDouble, AvgSingle, Sum, SumDouble};
        matches!(self, Sum | SumDouble | AvgSingle | AvgDouble)
    }
}

/// The computation of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// One output lane per lane.
    Map {
        /// Instructions; each register is the result of the one at its position.
        insts: Vec<Inst>,
        /// The output.
        result: Reg,
        /// `U32` registers: the kernel's answer is not zero when one of them
        /// is not zero in any lane. Then the output is not to be used.
        flags: Vec<Reg>,
    },
    /// One output lane from all lanes of the only operand, a column.
    Reduce(ReduceOp),
}

/// A kernel's form; its identity is its key in caches of native code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelIr {
    /// Operands, in the order of a segment row's offsets.
    pub operands: Vec<Operand>,
    /// Types of the constants, 8 bytes each.
    pub constants: Vec<Scalar>,
    /// The computation.
    pub body: Body,
}

/// A kernel's form is not well formed; always a defect of the compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel is not well formed at instruction {at}: {what}")]
pub struct IrError {
    /// Position of the instruction, or the number of instructions for the result and flags.
    pub at: usize,
    /// The fault.
    pub what: &'static str,
}

impl KernelIr {
    /// Words of one segment row: lane count, operand offsets, output offset,
    /// offset of the constants.
    pub fn row_words(&self) -> usize {
        self.operands.len() + 3
    }

    /// Type of each register of a map, in order; empty for a reduction.
    ///
    /// # Errors
    /// The first instruction that is not well formed.
    pub fn register_types(&self) -> Result<Vec<Scalar>, IrError> {
        let Body::Map { insts, .. } = &self.body else { return Ok(Vec::new()) };
        let mut types: Vec<Scalar> = Vec::with_capacity(insts.len());
        for (at, inst) in insts.iter().enumerate() {
            let fault = |what| IrError { at, what };
            let reg = |reg: Reg| {
                let known = types.get(usize::from(reg.0)).copied();
                known.ok_or(fault("register used before it is assigned"))
            };
            let scalar = match *inst {
                Inst::Operand(index) => {
                    let operand = self.operands.get(usize::from(index));
                    operand.ok_or(fault("no such operand"))?.scalar
                }
                Inst::Constant(index) => {
                    let constant = self.constants.get(usize::from(index));
                    *constant.ok_or(fault("no such constant"))?
                }
                Inst::Unary(op, operand) => {
                    let result = op.result(reg(operand)?);
                    result.ok_or(fault("no such operation on this type"))?
                }
                Inst::Binary(op, left, right) => {
                    let scalar = reg(left)?;
                    if reg(right)? != scalar {
                        return Err(fault("operands of different types"));
                    }
                    op.result(scalar).ok_or(fault("no such operation on this type"))?
                }
                Inst::Select(guard, yes, no) => {
                    if reg(guard)? != Scalar::U32 {
                        return Err(fault("guard is not U32"));
                    }
                    let scalar = reg(yes)?;
                    if reg(no)? != scalar {
                        return Err(fault("branches of different types"));
                    }
                    scalar
                }
            };
            types.push(scalar);
        }
        Ok(types)
    }

    /// Checks that the form is well formed, and returns the types of its registers.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn verify(&self) -> Result<Vec<Scalar>, IrError> {
        let types = self.register_types()?;
        match &self.body {
            Body::Map { insts, result, flags } => {
                let at = insts.len();
                if at > usize::from(u16::MAX) {
                    return Err(IrError { at, what: "too many instructions" });
                }
                if types.get(usize::from(result.0)).is_none() {
                    return Err(IrError { at, what: "result is not assigned" });
                }
                let flag = |reg: &Reg| types.get(usize::from(reg.0)) == Some(&Scalar::U32);
                if !flags.iter().all(flag) {
                    return Err(IrError { at, what: "flag is not U32" });
                }
            }
            Body::Reduce(_) => {
                let column = |o: &Operand| o.access == Access::Column && !o.previous;
                if self.operands.len() != 1 || !column(&self.operands[0]) {
                    return Err(IrError { at: 0, what: "a reduction takes one current column" });
                }
            }
        }
        Ok(types)
    }

    /// Type of the output. Only for verified forms.
    pub fn output(&self) -> Scalar {
        match &self.body {
            Body::Map { result, .. } => {
                let types = self.register_types().unwrap_or_default();
                types.get(usize::from(result.0)).copied().unwrap_or(Scalar::F64)
            }
            Body::Reduce(ReduceOp::SumDouble | ReduceOp::AvgSingle | ReduceOp::AvgDouble) => {
                Scalar::F32
            }
            Body::Reduce(ReduceOp::StdDev | ReduceOp::Quantile(_)) => Scalar::F64,
            Body::Reduce(_) => self.operands.first().map_or(Scalar::F64, |o| o.scalar),
        }
    }

    /// False for a kernel that cannot become native code and need not: its
    /// work is done by one function whichever way it is run.
    pub fn is_compiled(&self) -> bool {
        match &self.body {
            Body::Map { .. } => true,
            Body::Reduce(op) => op.is_compiled(),
        }
    }

    /// True if the output always has one lane: a reduction, or a map without
    /// column operands.
    pub fn is_single(&self) -> bool {
        matches!(self.body, Body::Reduce(_))
            || self.operands.iter().all(|operand| operand.access == Access::Single)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scalar::I32 => "i32",
            Scalar::U32 => "u32",
            Scalar::I64 => "i64",
            Scalar::U64 => "u64",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        })
    }
}
