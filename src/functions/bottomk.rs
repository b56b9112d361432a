//! `bottomk(k, x)`: the instances with the least values.

use super::families::ranked;
use super::{Example, Function, NumberKind, ResultRule, Shape};

pub static BOTTOMK: Function = Function {
    name: "bottomk",
    usage: "bottomk(k, x)",
    shape: Shape::NumberFirst(NumberKind::Rank),
    result: ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" },
    values: "The k instances with the least values, in the same manner.",
    example: Example {
        call: "bottomk(1, filesys.free)",
        gives: "U64, instant, units Kbyte, instances of 60.5",
    },
    takes_by: true,
    explained: None,
    check: |call| ranked(call, false),
};
