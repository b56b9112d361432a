//! `ewma(x, "half-life")`: a mean in which the past counts less and less.

use super::families::window;
use super::{Example, Function, ResultRule, Shape};
use crate::check::typed::WindowFunction;

pub static EWMA: Function = Function {
    name: "ewma",
    usage: "ewma(x, \"half-life\")",
    shape: Shape::IntervalLast,
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "instant; no counter",
        units: "of x",
        instances: "of x",
    },
    values: "Moving average in which the past loses half its weight in each half-life, from the first sample on.",
    example: Example {
        call: "ewma(rate(disk.dev.total), \"30 sec\")",
        gives: "DOUBLE, instant, units count / sec, instances of 60.1",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Ewma),
};
