//! Comparisons, by the names that Cranelift gives them.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use pmderive_runtime::kernel::BinaryOp;

/// Cranelift's condition under which the first of two integers is the extreme.
pub fn extreme_condition(op: BinaryOp, signed: bool) -> IntCC {
    let order = if op == BinaryOp::Min { BinaryOp::Lt } else { BinaryOp::Gt };
    integer_condition(order, signed)
}

/// Cranelift's name of a comparison of floating point numbers.
pub fn float_condition(op: BinaryOp) -> FloatCC {
    match op {
        BinaryOp::Lt => FloatCC::LessThan,
        BinaryOp::Le => FloatCC::LessThanOrEqual,
        BinaryOp::Eq => FloatCC::Equal,
        BinaryOp::Ge => FloatCC::GreaterThanOrEqual,
        BinaryOp::Gt => FloatCC::GreaterThan,
        _ => FloatCC::NotEqual,
    }
}

/// Cranelift's name of a comparison of integers.
pub fn integer_condition(op: BinaryOp, signed: bool) -> IntCC {
    match (op, signed) {
        (BinaryOp::Lt, true) => IntCC::SignedLessThan,
        (BinaryOp::Lt, false) => IntCC::UnsignedLessThan,
        (BinaryOp::Le, true) => IntCC::SignedLessThanOrEqual,
        (BinaryOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (BinaryOp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (BinaryOp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        (BinaryOp::Gt, true) => IntCC::SignedGreaterThan,
        (BinaryOp::Gt, false) => IntCC::UnsignedGreaterThan,
        (BinaryOp::Eq, _) => IntCC::Equal,
        _ => IntCC::NotEqual,
    }
}
