//! Constants that loops keep in registers.
//!
//! Cranelift reads a constant vector from memory at each use. In a loop that does little
//! else, this costs more than the arithmetic. Cranelift keeps a vector in a register if it
//! cannot see the bits. So this module adds to each constant a zero that Cranelift cannot
//! see through.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use pmderive_runtime::kernel::{BinaryOp, Inst, ReduceOp, Scalar, UnaryOp};

use super::map::Map;
use super::quick::{Form, Quick};

/// Zero of any type.
pub const ZERO: u64 = 0;
/// The sign of 64 bits.
pub const SIGN: u64 = 1 << 63;
/// One in each lane of 32 bits.
pub const ONES: u64 = 1 << 32 | 1;
/// The bits of 2^52, to which a number below it is added by `or`.
pub const TWO_TO_52: u64 = 0x4330_0000_0000_0000;

/// Constants with which 64-bit integers become doubles.
pub struct OfInteger {
    /// Mask of the lower half.
    pub lower: u64,
    /// The bits that make the lower half a double.
    pub of_low: u64,
    /// The bits that make the upper half a double, by `xor`.
    pub of_high: u64,
    /// The sum of the numbers that both halves have added.
    pub added: u64,
}

/// Of integers without sign: 2^52 and 2^84.
pub const OF_UNSIGNED: OfInteger = OfInteger {
    lower: 0xffff_ffff,
    of_low: TWO_TO_52,
    of_high: 0x4530_0000_0000_0000,
    added: 0x4530_0000_0010_0000,
};
/// Of integers with sign, which `of_high` turns: 2^52, and 2^84 + 2^63.
pub const OF_SIGNED: OfInteger = OfInteger {
    lower: 0xffff_ffff,
    of_low: TWO_TO_52,
    of_high: 0x4530_0000_8000_0000,
    added: 0x4530_0000_8010_0000,
};

impl OfInteger {
    /// The constants for a type of 8 bytes.
    pub fn of(scalar: Scalar) -> OfInteger {
        if scalar.is_signed_integer() { OF_SIGNED } else { OF_UNSIGNED }
    }

    fn all(&self) -> [u64; 4] {
        [self.lower, self.of_low, self.of_high, self.added]
    }
}

/// Vectors that loops keep in registers, by the 64 bits in each half.
#[derive(Default)]
pub struct ConstantVectors {
    vectors: Vec<(u64, Value)>,
}

impl ConstantVectors {
    /// Vectors of some constants. `nothing` is a 64-bit zero that Cranelift cannot see
    /// through.
    pub fn new(
        builder: &mut FunctionBuilder<'_>,
        nothing: Value,
        constants: impl IntoIterator<Item = u64>,
    ) -> ConstantVectors {
        let mut kept = ConstantVectors::default();
        for bits in constants {
            if kept.vectors.iter().all(|(of, _)| *of != bits) {
                let constant = builder.ins().iconst(types::I64, bits as i64);
                let unknown = builder.ins().iadd(nothing, constant);
                kept.vectors.push((bits, builder.ins().splat(types::I64X2, unknown)));
            }
        }
        kept
    }

    /// The constant in both halves of a vector of 64-bit integers. If it is not kept, it
    /// is read from memory.
    pub fn vector(&self, builder: &mut FunctionBuilder<'_>, bits: u64) -> Value {
        if let Some((_, vector)) = self.vectors.iter().find(|(of, _)| *of == bits) {
            return *vector;
        }
        let bits = builder.ins().iconst(types::I64, bits as i64);
        builder.ins().splat(types::I64X2, bits)
    }
}

/// The constants that the loops of a map use; `is_uniform` and `types` are parallel to
/// the instructions.
pub fn of_map(
    map: &Map<'_>,
    types: &[Scalar],
    is_uniform: &[bool],
    quick: Option<&Quick>,
) -> Vec<u64> {
    let form = |at: usize| quick.map_or(Form::Plain, |quick| quick.forms[at]);
    let mut constants = Vec::new();
    for (at, inst) in map.insts.iter().enumerate().filter(|(at, _)| !is_uniform[*at]) {
        match (*inst, form(at)) {
            (_, Form::OfSmall) => constants.push(TWO_TO_52),
            (Inst::Unary(UnaryOp::Convert(Scalar::F64), a), Form::Plain) => {
                constants.extend(of_conversion(types[usize::from(a.0)]));
            }
            (Inst::Binary(BinaryOp::Ratio, ..), Form::Plain) => constants.push(ZERO),
            (Inst::Unary(UnaryOp::Neg, _), Form::Plain) if types[at] == Scalar::F64 => {
                constants.push(SIGN);
            }
            (Inst::Binary(op, a, _), Form::Plain)
                if is_ordered(op) && types[usize::from(a.0)] == Scalar::U64 =>
            {
                constants.push(SIGN);
            }
            _ => {}
        }
    }
    if is_truth(&map.insts[map.result]) {
        constants.push(ONES);
    }
    constants
}

/// The constants that the loop of a reduction uses.
pub fn of_reduction(op: ReduceOp, scalar: Scalar) -> Vec<u64> {
    match op.of_numbers() {
        ReduceOp::SumDouble | ReduceOp::AvgDouble => of_conversion(scalar),
        ReduceOp::Max | ReduceOp::Min if scalar == Scalar::U64 => vec![SIGN],
        _ => Vec::new(),
    }
}

/// The constants that convert an integer to a double.
fn of_conversion(from: Scalar) -> Vec<u64> {
    match from {
        Scalar::U64 | Scalar::I64 => OfInteger::of(from).all().to_vec(),
        _ => Vec::new(),
    }
}

/// True if an instruction gives 1 or 0.
fn is_truth(inst: &Inst) -> bool {
    match inst {
        Inst::Unary(op, _) => matches!(op, UnaryOp::Truth | UnaryOp::Not),
        Inst::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
        _ => false,
    }
}

/// True if an operation compares the sizes of two numbers.
fn is_ordered(op: BinaryOp) -> bool {
    use BinaryOp::{Ge, Gt, Le, Lt, Max, Min};
    matches!(op, Lt | Le | Ge | Gt | Min | Max)
}
