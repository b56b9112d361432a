//! `abs(x)`: the magnitude.

use pmderive_runtime::kernel::UnaryOp;
use pmderive_runtime::model::ValueType;

use super::{Example, Function, ResultRule};
use crate::check::call::{Call, Checked, Operand};
use crate::check::not_a_counter;
use crate::check::typed::{TypedId, TypedKind};
use crate::lanes::LaneRule;
use crate::syntax::Shape;

pub static FAMILY: &[&Function] = &[&ABS];

pub static ABS: Function = Function {
    name: "abs",
    usage: "abs(x)",
    shape: Shape::OneValue,
    result: ResultRule {
        value_type: "of x",
        semantics: "instant for a counter, else of x",
        units: "of x",
        instances: "of x",
    },
    values: "Magnitude. The least integer of a signed type stays itself.",
    example: Example {
        call: "abs(delta(mem.util.free))",
        gives: "DOUBLE, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check,
};

static RULE: LaneRule = LaneRule {
    note: "the magnitude",
    write: |lanes, operands| lanes.unary(UnaryOp::Abs, operands[0]),
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let [Operand { typed, mut desc, .. }] = call.numbers()?;
    desc.semantics = not_a_counter(desc.semantics);
    match desc.value_type {
        ValueType::U32 | ValueType::U64 => Ok(call.node(TypedKind::Same(typed), desc)),
        within => Ok(call.lanes(&RULE, &[typed], within, desc)),
    }
}
