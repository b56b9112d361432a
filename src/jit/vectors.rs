//! Vectors of 16 bytes: their types, and operations on whole vectors.

use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use pmderive_runtime::kernel::Scalar;

/// True if comparing unsigned 64-bit numbers needs their signs turned.
pub const TURNS_SIGNS: bool = cfg!(target_arch = "x86_64");

/// The vector of 16 bytes with lanes of a scalar.
pub fn vector_of(scalar: Scalar) -> Type {
    match scalar {
        Scalar::I32 | Scalar::U32 => types::I32X4,
        Scalar::I64 | Scalar::U64 => types::I64X2,
        Scalar::F32 => types::F32X4,
        Scalar::F64 => types::F64X2,
    }
}

/// The same bits as another type of vector, lane 0 at the lowest address.
pub fn cast(builder: &mut FunctionBuilder<'_>, to: Type, value: Value) -> Value {
    let flags = MemFlagsData::new().with_endianness(Endianness::Little);
    builder.ins().bitcast(to, flags, value)
}

/// Bytes that pick the low half of each 8-byte lane, of two vectors.
pub const LOW_HALVES: [u8; 16] = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
/// Bytes that put the low halves of two vectors together.
pub const LOW_PAIRS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
/// Bytes that bring the high half of a vector down.
pub const HIGH_PAIR: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15];

/// The lanes of one vector where a mask has all bits, of the other where it has none.
pub fn choose(
    builder: &mut FunctionBuilder<'_>,
    has_blend: bool,
    mask: Value,
    [yes, no]: [Value; 2],
) -> Value {
    let kind = builder.func.dfg.value_type(yes);
    if has_blend && kind == types::I64X2 {
        // Cranelift itself makes one instruction of a choice between other
        // types.
        let [mask, yes, no] = [mask, yes, no].map(|value| cast(builder, types::I8X16, value));
        let chosen = builder.ins().blendv(mask, yes, no);
        return cast(builder, kind, chosen);
    }
    let mask = cast(builder, kind, mask);
    builder.ins().bitselect(mask, yes, no)
}
