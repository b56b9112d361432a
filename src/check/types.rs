//! Result types of operators.

use pmderive_runtime::model::ValueType;

use ValueType::{F32, F64, I32, I64, U32, U64};

/// Common type of two numeric operands: rows and columns in the order of the
/// PMAPI's type codes. `+ - *` compute in it, comparisons compare in it.
const COMMON: [[ValueType; 6]; 6] = [
    [I32, U32, I64, U64, F32, F64],
    [U32, U32, I64, U64, F32, F64],
    [I64, I64, I64, U64, F32, F64],
    [U64, U64, U64, U64, F32, F64],
    [F32, F32, F32, F32, F32, F64],
    [F64, F64, F64, F64, F64, F64],
];

/// The type that two operands are converted to; `None` if one is not numeric.
pub fn common(left: ValueType, right: ValueType) -> Option<ValueType> {
    let index = |value_type: ValueType| usize::try_from(value_type.code()).ok();
    COMMON.get(index(left)?)?.get(index(right)?).copied()
}

/// The narrowest type that holds all values of two numeric types, or double
/// precision if there is none. Functions that libpcp does not have compute in
/// it, and so no number wraps on the way.
pub fn lossless(left: ValueType, right: ValueType) -> ValueType {
    match (left, right) {
        (left, right) if left == right => left,
        (I32, I64) | (I64, I32) | (U32, I64) | (I64, U32) | (I32, U32) | (U32, I32) => I64,
        (U32, U64) | (U64, U32) => U64,
        _ => F64,
    }
}

/// Type of `-operand`: unsigned types become signed ones of their size.
pub fn negated(operand: ValueType) -> ValueType {
    match operand {
        U32 => I32,
        U64 => I64,
        other => other,
    }
}

/// Type of `delta(operand)`: wide enough for most differences.
pub fn delta(operand: ValueType) -> ValueType {
    match operand {
        U32 => I64,
        U64 => F64,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_types_are_symmetric_and_idempotent() {
        for left in [I32, U32, I64, U64, F32, F64] {
            assert_eq!(common(left, left), Some(left));
            for right in [I32, U32, I64, U64, F32, F64] {
                assert_eq!(common(left, right), common(right, left));
            }
        }
        assert_eq!(lossless(I32, U32), I64);
        assert_eq!(lossless(U64, I32), F64);
        assert_eq!(lossless(F32, I32), F64);
        assert_eq!(common(ValueType::String, I32), None);
        assert_eq!(common(I32, ValueType::NoSupport), None);
    }
}
