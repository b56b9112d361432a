//! `clamp(x, low, high)`: x between two bounds.

use pmderive_runtime::kernel::BinaryOp;
use pmderive_runtime::model::{Conversion, ValueType};

use super::{Example, Function, ResultRule};
use crate::bind::Desc;
use crate::check::call::{Call, Checked, Operand, Spelled, plain_semantics};
use crate::check::typed::{TypedId, TypedKind};
use crate::check::units::dimensions_agree;
use crate::check::{constant_desc, describe, types, units_name};
use crate::diag::{Code, Diagnostic};
use crate::lanes::LaneRule;
use crate::syntax::{Shape, ast};

pub static FAMILY: &[&Function] = &[&CLAMP];

static CLAMP: Function = Function {
    name: "clamp",
    usage: "clamp(x, low, high)",
    shape: Shape::ThreeValues,
    result: ResultRule {
        value_type: "of x if the bounds are of that type or numbers that it holds, else the narrowest that loses nothing",
        semantics: "discrete if all are, else instant; no counters",
        units: "of x; the bounds have its dimension and are brought to its scale",
        instances: "those that all have",
    },
    values: "The lesser of high and the greater of x and low, so high where low is above high.",
    example: Example {
        call: "clamp(kernel.all.load, 0, 2.5)",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: Some("the first operand, raised to the second, cut to the third"),
    check,
};

/// NaN if an operand is NaN.
static RAISED: LaneRule = LaneRule {
    note: "the greater one",
    write: |lanes, operands| lanes.binary(BinaryOp::Max, operands[0], operands[1]),
};

/// NaN if an operand is NaN.
static CUT: LaneRule = LaneRule {
    note: "the lesser one",
    write: |lanes, operands| lanes.binary(BinaryOp::Min, operands[0], operands[1]),
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let operands: [Operand; 3] = call.numbers()?;
    let [x, low, high] = operands;
    for operand in operands {
        call.not_counting(operand)?;
    }
    let mut common = x.desc.value_type;
    let [low, high] = [bound(call, x, low)?, bound(call, x, high)?];
    for (bound, given) in [(low, operands[1]), (high, operands[2])] {
        // A number that fits the value's type does not change that type.
        if bound.typed != given.typed || !fits(call.spelled(bound), common) {
            common = types::lossless(common, bound.desc.value_type);
        }
    }
    let indom = call.one_domain(&[x, low, high])?;
    let semantics = plain_semantics(&operands.map(|operand| operand.desc));
    let desc = Desc { value_type: common, indom, semantics, ..x.desc };
    let without_high = [x.desc.indom, low.desc.indom].into_iter().flatten().next();
    let raised = Desc { indom: without_high, ..desc };
    let raised = call.lanes(&RAISED, &[x.typed, low.typed], common, raised);
    Ok(call.lanes(&CUT, &[raised, high.typed], common, desc))
}

/// A bound in the units of the value, in double precision if it needs a conversion.
fn bound(call: &mut Call<'_, '_>, x: Operand, bound: Operand) -> Checked<Operand> {
    let (from, to) = (bound.desc.units, x.desc.units);
    let at = call.span_of(bound);
    let conversion = match dimensions_agree(&from, &to) && from.extra == to.extra {
        true => Conversion::between(from, to).ok(),
        false => None,
    };
    let Some(conversion) = conversion else {
        let (from, to) = (units_name(&from), units_name(&to));
        // Such as watts beside kilowatts.
        let is_scale = dimensions_agree(&bound.desc.units, &x.desc.units);
        let what = if is_scale { "unit" } else { "dimension" };
        let message =
            format!("a bound of `clamp()` has another {what} than the value: {from}, not {to}");
        let diagnostic = Diagnostic::error(Code::DimensionMismatch, at, message)
            .label(call.span_of(x), describe(&x.desc))
            .label(at, describe(&bound.desc));
        return call.report(match call.number_text(bound) {
            Some(number) => diagnostic
                .help("give the constant units with mkconst()")
                .guess(at, format!("mkconst({number}, units=\"{to}\")")),
            None if is_scale => {
                diagnostic.help("rescale() brings one of them to the unit of the other")
            }
            None => diagnostic.help("rescale() cannot change a dimension"),
        });
    };
    // A number without units combines with a count of any scale, as in `x + 1`.
    if conversion.is_identity() || from.dim_count != to.dim_count {
        return Ok(bound);
    }
    let value_type = ValueType::F64;
    let factor = TypedKind::Constant((conversion.mult as f64 / conversion.div as f64).to_bits());
    let kind = TypedKind::Binary {
        op: ast::BinaryOp::Mul,
        left: bound.typed,
        right: call.node(factor, constant_desc(value_type)),
        common: value_type,
        scales: None,
    };
    let desc = Desc { value_type, units: to, ..bound.desc };
    Ok(Operand { typed: call.node(kind, desc), desc, ..bound })
}

/// True if a type holds the number exactly.
fn fits(number: Option<Spelled>, value_type: ValueType) -> bool {
    match (number, value_type) {
        (None, _) => false,
        (Some(Spelled::Integer(value)), ValueType::I32) => i32::try_from(value).is_ok(),
        (Some(Spelled::Integer(value)), ValueType::U32) => u32::try_from(value).is_ok(),
        (Some(Spelled::Integer(value)), ValueType::U64) => value >= 0,
        // Only integers of more than 24 bits do not fit single precision.
        (Some(Spelled::Integer(value)), ValueType::F32) => value.unsigned_abs() <= 1 << 24,
        (Some(Spelled::Integer(_)), _) => true,
        (Some(Spelled::Double(value)), ValueType::F32) => f64::from(value as f32) == value,
        (Some(Spelled::Double(_)), value_type) => value_type == ValueType::F64,
    }
}
