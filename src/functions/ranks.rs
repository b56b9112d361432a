//! `topk(k, x)`, `bottomk(k, x)`: the instances with the greatest or least values.

use super::{Example, Function, OF_X};
use crate::check::call::{Call, Checked};
use crate::check::typed::{TypedId, TypedKind};
use crate::syntax::{NumberKind, Shape};

pub static FAMILY: &[&Function] = &[&TOPK, &BOTTOMK];

static TOPK: Function = Function {
    name: "topk",
    usage: "topk(k, x)",
    shape: Shape::NumberFirst(NumberKind::Rank),
    result: OF_X,
    values: "The k instances with the greatest values, in x's order; of equal values those that come first; NaN last. k is a whole number of 1 or more.",
    example: Example {
        call: "topk(3, rate(disk.dev.total))",
        gives: "DOUBLE, instant, units count / sec, instances of 60.1",
    },
    takes_by: true,
    explained: None,
    check: |call| ranked(call, true),
};

static BOTTOMK: Function = Function {
    name: "bottomk",
    usage: "bottomk(k, x)",
    shape: Shape::NumberFirst(NumberKind::Rank),
    result: OF_X,
    values: "The k instances with the least values, in the same manner.",
    example: Example {
        call: "bottomk(1, filesys.free)",
        gives: "U64, instant, units Kbyte, instances of 60.5",
    },
    takes_by: true,
    explained: None,
    check: |call| ranked(call, false),
};

fn ranked(call: &mut Call<'_, '_>, top: bool) -> Checked<TypedId> {
    let k = call.rank()?;
    let [x] = call.numbers()?;
    Ok(call.node(TypedKind::Ranked { k, top, operand: x.typed }, x.desc))
}
