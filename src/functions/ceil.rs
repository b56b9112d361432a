//! `ceil(x)`: the least whole number that is not below.

use pmderive_runtime::kernel::UnaryOp;

use super::families::rounded;
use super::{Example, Function, LaneRule, ResultRule, Shape};

pub static CEIL: Function = Function {
    name: "ceil",
    usage: "ceil(x)",
    shape: Shape::OneValue,
    result: ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" },
    values: "Least whole number not below; integers stay.",
    example: Example {
        call: "ceil(kernel.all.load)",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| rounded(call, &RULE),
};

static RULE: LaneRule = LaneRule {
    note: "rounded up",
    write: |lanes, operands| lanes.unary(UnaryOp::Ceil, operands[0]),
};
