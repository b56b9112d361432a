//! `sqrt(x)`: the square root.

use pmderive_runtime::kernel::UnaryOp;
use pmderive_runtime::model::{Units, ValueType};

use super::{Example, Function, ResultRule};
use crate::bind::Desc;
use crate::check::call::{Call, Checked};
use crate::check::typed::TypedId;
use crate::check::{describe, units_name};
use crate::diag::{Code, Diagnostic};
use crate::lanes::LaneRule;
use crate::syntax::Shape;

pub static FAMILY: &[&Function] = &[&SQRT];

static SQRT: Function = Function {
    name: "sqrt",
    usage: "sqrt(x)",
    shape: Shape::OneValue,
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "of x; no counter",
        units: "half of each dimension, all of which have to be even",
        instances: "of x",
    },
    values: "NaN below zero.",
    example: Example {
        call: "sqrt(mem.util.free * mem.util.used)",
        gives: "DOUBLE, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check,
};

static RULE: LaneRule = LaneRule {
    note: "NaN below 0",
    write: |lanes, operands| lanes.unary(UnaryOp::Sqrt, operands[0]),
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let [x] = call.numbers()?;
    call.not_counting(x)?;
    let units = x.desc.units;
    let dimensions = [units.dim_space, units.dim_time, units.dim_count];
    let even = dimensions.iter().all(|dimension| dimension % 2 == 0);
    if !even || units.extra.quantity != 0 {
        let at = call.span_of(x);
        let message = format!("the square root of {} has no units", units_name(&units));
        return call.report(
            Diagnostic::error(Code::DimensionOverflow, at, message)
                .label(at, describe(&x.desc))
                .help("each dimension has to be even, such as byte^2; divide to get a ratio"),
        );
    }
    let units = Units {
        dim_space: units.dim_space / 2,
        dim_time: units.dim_time / 2,
        dim_count: units.dim_count / 2,
        ..units
    };
    let desc = Desc { value_type: ValueType::F64, units, ..x.desc };
    Ok(call.lanes(&RULE, &[x.typed], ValueType::F64, desc))
}
