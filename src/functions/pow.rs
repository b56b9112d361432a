//! `pow(x, y)`: x to the power of y.

use pmderive_runtime::kernel::BinaryOp;
use pmderive_runtime::model::{Units, ValueType};

use super::{Example, Function, ResultRule};
use crate::bind::Desc;
use crate::check::call::{Call, Checked, Operand, Spelled, plain_semantics};
use crate::check::describe;
use crate::check::typed::TypedId;
use crate::diag::{Code, Diagnostic};
use crate::lanes::LaneRule;
use crate::syntax::Shape;

pub static FAMILY: &[&Function] = &[&POW];

static POW: Function = Function {
    name: "pow",
    usage: "pow(x, y)",
    shape: Shape::TwoValues,
    result: ResultRule {
        value_type: "DOUBLE",
        semantics: "discrete if both are, else instant; no counters",
        units: "x's dimensions times y if y is a whole number spelled as such; else none, and x and y are plain numbers or counts",
        instances: "those that both have",
    },
    values: "As `pow(3)`: 1 where y is 0, NaN for a negative x with a y that is not whole.",
    example: Example {
        call: "pow(mem.util.free, 2)",
        gives: "DOUBLE, instant, units Kbyte^2, single value",
    },
    takes_by: false,
    explained: None,
    check,
};

static RULE: LaneRule = LaneRule {
    note: "the first operand to the power of the second",
    write: |lanes, operands| lanes.binary(BinaryOp::Pow, operands[0], operands[1]),
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let [base, exponent] = call.numbers()?;
    call.not_counting(base)?;
    call.not_counting(exponent)?;
    call.plain_number(exponent, "the exponent of `pow()`", "divide to get a ratio")?;
    let units = match call.spelled(exponent) {
        Some(Spelled::Integer(exponent)) => power_units(call, base, exponent)?,
        _ => {
            let help = "a value with a dimension takes a literal whole number as exponent";
            call.plain_number(base, "the base of `pow()`", help)?;
            Units::NONE
        }
    };
    let indom = call.one_domain(&[base, exponent])?;
    let semantics = plain_semantics(&[base.desc, exponent.desc]);
    let desc = Desc { value_type: ValueType::F64, indom, semantics, units };
    Ok(call.lanes(&RULE, &[base.typed, exponent.typed], ValueType::F64, desc))
}

/// Units of a value to the power of a literal number.
fn power_units(call: &mut Call<'_, '_>, base: Operand, exponent: i64) -> Checked<Units> {
    let units = base.desc.units;
    let dimension = |dimension: i8| {
        let product = i64::from(dimension).checked_mul(exponent)?;
        i8::try_from(product).ok().filter(|dimension| (-8..=7).contains(dimension))
    };
    if exponent == 0 {
        return Ok(Units::NONE);
    }
    let dimensions =
        (dimension(units.dim_space), dimension(units.dim_time), dimension(units.dim_count));
    let at = call.span_of(base);
    match dimensions {
        _ if units.extra.quantity != 0 && exponent != 1 => call.report(
            Diagnostic::error(Code::ExtraUnits, at, "`pow()` of a value that has extra units")
                .label(at, describe(&base.desc)),
        ),
        (Some(dim_space), Some(dim_time), Some(dim_count)) => {
            Ok(Units { dim_space, dim_time, dim_count, ..units })
        }
        _ => {
            let message = "the result's dimension is beyond what units can express (-8 to 7)";
            call.report(
                Diagnostic::error(Code::DimensionOverflow, at, message)
                    .label(at, describe(&base.desc)),
            )
        }
    }
}
