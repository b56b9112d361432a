//! `topk(k, x)`: the instances with the greatest values.

use super::families::ranked;
use super::{Example, Function, NumberKind, ResultRule, Shape};

pub static TOPK: Function = Function {
    name: "topk",
    usage: "topk(k, x)",
    shape: Shape::NumberFirst(NumberKind::Rank),
    result: ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" },
    values: "The k instances with the greatest values, in x's order; of equal values those that come first; NaN last. k is a whole number of 1 or more.",
    example: Example {
        call: "topk(3, rate(disk.dev.total))",
        gives: "DOUBLE, instant, units count / sec, instances of 60.1",
    },
    takes_by: true,
    explained: None,
    check: |call| ranked(call, true),
};
