//! `round(x)`: the nearest whole number, halves away from zero.

use pmderive_runtime::kernel::UnaryOp;

use super::families::rounded;
use super::{Example, Function, LaneRule, ResultRule, Shape};

pub static ROUND: Function = Function {
    name: "round",
    usage: "round(x)",
    shape: Shape::OneValue,
    result: ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" },
    values: "Nearest whole number, halves away from zero; integers stay.",
    example: Example {
        call: "round(mem.util.free / 3)",
        gives: "DOUBLE, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check: |call| rounded(call, &RULE),
};

static RULE: LaneRule = LaneRule {
    note: "rounded to the nearest whole number, halves away from 0",
    write: |lanes, operands| lanes.unary(UnaryOp::Round, operands[0]),
};
