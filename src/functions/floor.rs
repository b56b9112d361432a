//! `floor(x)`: the greatest whole number that is not above.

use pmderive_runtime::kernel::UnaryOp;

use super::families::rounded;
use super::{Example, Function, LaneRule, ResultRule, Shape};

pub static FLOOR: Function = Function {
    name: "floor",
    usage: "floor(x)",
    shape: Shape::OneValue,
    result: ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" },
    values: "Greatest whole number not above; integers stay.",
    example: Example {
        call: "floor(kernel.all.load)",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| rounded(call, &RULE),
};

static RULE: LaneRule = LaneRule {
    note: "rounded down",
    write: |lanes, operands| lanes.unary(UnaryOp::Floor, operands[0]),
};
