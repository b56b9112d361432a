//! `log(x)`: the natural logarithm.

use pmderive_runtime::kernel::UnaryOp;
use pmderive_runtime::model::{Units, ValueType};

use super::{Example, Function, ResultRule};
use crate::bind::Desc;
use crate::check::call::{Call, Checked};
use crate::check::typed::TypedId;
use crate::lanes::LaneRule;
use crate::syntax::Shape;

pub static FAMILY: &[&Function] = &[&LOG];

static LOG: Function = Function {
    name: "log",
    usage: "log(x)",
    shape: Shape::OneValue,
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "of x; no counter",
        units: "none; x is a plain number or a count",
        instances: "of x",
    },
    values: "Natural logarithm: negative infinity of 0, NaN below.",
    example: Example {
        call: "log(kernel.all.nprocs)",
        gives: "DOUBLE, instant, units none, single value",
    },
    takes_by: false,
    explained: None,
    check,
};

static RULE: LaneRule = LaneRule {
    note: "the natural logarithm; NaN below 0",
    write: |lanes, operands| lanes.unary(UnaryOp::Log, operands[0]),
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let [x] = call.numbers()?;
    call.not_counting(x)?;
    let help = "divide by a value of the same dimension to get a ratio";
    call.plain_number(x, "the operand of `log()`", help)?;
    let desc = Desc { value_type: ValueType::F64, units: Units::NONE, ..x.desc };
    Ok(call.lanes(&RULE, &[x.typed], ValueType::F64, desc))
}
