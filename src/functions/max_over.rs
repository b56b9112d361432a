//! `max_over(x, "interval")`: the greatest value of the latest interval.

use super::families::window;
use super::{Example, Function, ResultRule, Shape};
use crate::check::typed::WindowFunction;

pub static MAX_OVER: Function = Function {
    name: "max_over",
    usage: "max_over(x, \"interval\")",
    shape: Shape::IntervalLast,
    result: ResultRule {
        value_type: "of x",
        semantics: "instant; no counter",
        units: "of x",
        instances: "of x",
    },
    values: "Greatest of those samples; NaN if one is.",
    example: Example {
        call: "max_over(kernel.all.load, \"5 min\")",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Max),
};
