//! `avg_over(x, "interval")`: the mean over the latest interval.

use super::families::window;
use super::{Example, Function, ResultRule, Shape};
use crate::check::typed::WindowFunction;

pub static AVG_OVER: Function = Function {
    name: "avg_over",
    usage: "avg_over(x, \"interval\")",
    shape: Shape::IntervalLast,
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "instant; no counter",
        units: "of x",
        instances: "of x",
    },
    values: "Plain mean of the samples of the latest interval, the one just that old not included, from the first sample on. An instance that goes begins anew when it comes back, as does each after a gap.",
    example: Example {
        call: "avg_over(kernel.all.load, \"5 min\")",
        gives: "DOUBLE, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Avg),
};
