//! `quantile(q, x)`, `stdev(x)`: statistics over instances.

use pmderive_runtime::kernel::ReduceOp;
use pmderive_runtime::model::{Semantics, ValueType};

use super::{Example, Function, ResultRule};
use crate::bind::Desc;
use crate::check::call::{Call, Checked};
use crate::check::typed::{TypedId, TypedKind};
use crate::syntax::{NumberKind, Shape};

/// The result of both functions.
const RESULT: ResultRule = ResultRule {
    value_type: "DOUBLE",
    semantics: "instant",
    units: "of x",
    instances: "single value",
};

pub static FAMILY: &[&Function] = &[&QUANTILE, &STDEV];

static QUANTILE: Function = Function {
    name: "quantile",
    usage: "quantile(q, x)",
    shape: Shape::NumberFirst(NumberKind::Fraction),
    result: RESULT,
    values: "The value at a share q, from 0 to 1, of the ascending values, linear between the two nearest. None without instances; NaN if one is.",
    example: Example {
        call: "quantile(0.9, rate(disk.dev.total))",
        gives: "DOUBLE, instant, units count / sec, single value",
    },
    takes_by: true,
    explained: None,
    check: |call| {
        let fraction = call.fraction()?;
        statistic(call, ReduceOp::Quantile(fraction.to_bits()))
    },
};

static STDEV: Function = Function {
    name: "stdev",
    usage: "stdev(x)",
    shape: Shape::OneValue,
    result: RESULT,
    values: "Standard deviation of the population; 0 of one value. None without instances; NaN if one is.",
    example: Example {
        call: "stdev(filesys.free)",
        gives: "DOUBLE, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check: |call| statistic(call, ReduceOp::StdDev),
};

fn statistic(call: &mut Call<'_, '_>, op: ReduceOp) -> Checked<TypedId> {
    let [x] = call.numbers()?;
    let desc = Desc {
        value_type: ValueType::F64,
        indom: None,
        semantics: Semantics::Instant,
        units: x.desc.units,
    };
    Ok(call.node(TypedKind::Statistic { op, operand: x.typed }, desc))
}
