//! `min_over(x, "interval")`: the least value of the latest interval.

use super::families::window;
use super::{Example, Function, ResultRule, Shape};
use crate::check::typed::WindowFunction;

pub static MIN_OVER: Function = Function {
    name: "min_over",
    usage: "min_over(x, \"interval\")",
    shape: Shape::IntervalLast,
    result: ResultRule {
        value_type: "of x",
        semantics: "instant; no counter",
        units: "of x",
        instances: "of x",
    },
    values: "Least of those samples; NaN if one is.",
    example: Example {
        call: "min_over(mem.util.free, \"1 hour\")",
        gives: "U64, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Min),
};
