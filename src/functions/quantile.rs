//! `quantile(q, x)`: the value below which a share of the instances lies.

use pmderive_runtime::kernel::ReduceOp;

use super::families::statistic;
use super::{Example, Function, NumberKind, ResultRule, Shape};
use crate::check::call::{Call, Checked};
use crate::check::typed::TypedId;

pub static QUANTILE: Function = Function {
    name: "quantile",
    usage: "quantile(q, x)",
    shape: Shape::NumberFirst(NumberKind::Fraction),
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "instant",
        units: "of x",
        instances: "single value",
    },
    values: "The value at a share q, from 0 to 1, of the ascending values, linear between the two nearest. None without instances; NaN if one is.",
    example: Example {
        call: "quantile(0.9, rate(disk.dev.total))",
        gives: "DOUBLE, instant, units count / sec, single value",
    },
    takes_by: true,
    explained: None,
    check,
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let fraction = call.fraction()?;
    statistic(call, ReduceOp::Quantile(fraction.to_bits()))
}
