//! `floor(x)`, `ceil(x)`, `round(x)`: whole numbers.

use pmderive_runtime::kernel::UnaryOp;
use pmderive_runtime::model::ValueType;

use super::{Example, Function, OF_X};
use crate::check::call::{Call, Checked};
use crate::check::typed::{TypedId, TypedKind};
use crate::lanes::LaneRule;
use crate::syntax::Shape;

pub static FAMILY: &[&Function] = &[&FLOOR, &CEIL, &ROUND];

static FLOOR: Function = Function {
    name: "floor",
    usage: "floor(x)",
    shape: Shape::OneValue,
    result: OF_X,
    values: "Greatest whole number not above; integers stay.",
    example: Example {
        call: "floor(kernel.all.load)",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| {
        static RULE: LaneRule = LaneRule {
            note: "rounded down",
            write: |lanes, operands| lanes.unary(UnaryOp::Floor, operands[0]),
        };
        rounded(call, &RULE)
    },
};

static CEIL: Function = Function {
    name: "ceil",
    usage: "ceil(x)",
    shape: Shape::OneValue,
    result: OF_X,
    values: "Least whole number not below; integers stay.",
    example: Example {
        call: "ceil(kernel.all.load)",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| {
        static RULE: LaneRule = LaneRule {
            note: "rounded up",
            write: |lanes, operands| lanes.unary(UnaryOp::Ceil, operands[0]),
        };
        rounded(call, &RULE)
    },
};

static ROUND: Function = Function {
    name: "round",
    usage: "round(x)",
    shape: Shape::OneValue,
    result: OF_X,
    values: "Nearest whole number, halves away from zero; integers stay.",
    example: Example {
        call: "round(mem.util.free / 3)",
        gives: "DOUBLE, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check: |call| {
        static RULE: LaneRule = LaneRule {
            note: "rounded to the nearest whole number, halves away from 0",
            write: |lanes, operands| lanes.unary(UnaryOp::Round, operands[0]),
        };
        rounded(call, &RULE)
    },
};

/// Integers are whole already, and the whole part of a counter is a counter
/// too.
fn rounded(call: &mut Call<'_, '_>, rule: &'static LaneRule) -> Checked<TypedId> {
    let [x] = call.numbers()?;
    Ok(match x.desc.value_type {
        within @ (ValueType::F32 | ValueType::F64) => call.lanes(rule, &[x.typed], within, x.desc),
        _ => call.node(TypedKind::Same(x.typed), x.desc),
    })
}
