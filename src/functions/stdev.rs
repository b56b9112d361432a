//! `stdev(x)`: how far the instances lie apart.

use pmderive_runtime::kernel::ReduceOp;

use super::families::statistic;
use super::{Example, Function, ResultRule, Shape};

pub static STDEV: Function = Function {
    name: "stdev",
    usage: "stdev(x)",
    shape: Shape::OneValue,
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "instant",
        units: "of x",
        instances: "single value",
    },
    values: "Standard deviation of the population; 0 of one value. None without instances; NaN if one is.",
    example: Example {
        call: "stdev(filesys.free)",
        gives: "DOUBLE, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check: |call| statistic(call, ReduceOp::StdDev),
};
