//! Lints about numbers that stand for a change of scale, such as 1024.

use pmderive_runtime::model::{Conversion, Units, ValueType};

use super::subject::Subject;
use crate::check::units_name;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{BinaryOp, NodeKind};

/// Scales of space, from bytes to exabytes, and of time, from nanoseconds to hours.
const SPACE: std::ops::RangeInclusive<u8> = 0..=6;
const TIME: std::ops::RangeInclusive<u8> = 0..=5;

/// `mem.util.free / 1024`: the values change their scale, and the units do not.
pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (_, node) in subject.nodes() {
        let NodeKind::Binary { op, left, right, .. } = &node.kind else { continue };
        let (value, constant, is_divided) = match op {
            BinaryOp::Div => (*left, *right, true),
            BinaryOp::Mul if subject.number(*left).is_some() => (*right, *left, false),
            BinaryOp::Mul => (*left, *right, false),
            _ => continue,
        };
        let (Some(factor), Some(desc)) = (subject.number(constant), subject.desc(value)) else {
            continue;
        };
        let Some(target) = rescaled(desc.units, factor, is_divided) else { continue };
        let (from, to) = (units_name(&desc.units), units_name(&target));
        let at = subject.span(constant);
        let call = format!("rescale({}, \"{to}\")", subject.text(value));
        // A product of whole numbers is whole itself.
        let is_rounded = is_divided && is_whole(desc.value_type);
        let help = match is_rounded {
            true => "`rescale()` changes both; of whole numbers it gives whole numbers",
            false => "`rescale()` changes both",
        };
        diagnostics.push(
            Diagnostic::warning(Code::HiddenFactor, at, "this factor changes values, not units")
                .label(at, format!("makes {to} of {from}"))
                .label(subject.span(value), format!("units {from}, and so has the result"))
                .help(help)
                .guess(node.span, call),
        );
    }
}

fn is_whole(value_type: ValueType) -> bool {
    matches!(value_type, ValueType::I32 | ValueType::U32 | ValueType::I64 | ValueType::U64)
}

/// The true units of values in `units` after a multiplication or division by a
/// factor. `None` if there are none.
fn rescaled(units: Units, factor: f64, is_divided: bool) -> Option<Units> {
    let by = |target: &Units| {
        let Ok(Conversion { mult, div, extra: None }) = Conversion::between(units, *target) else {
            return false;
        };
        let (up, down) = if is_divided { (div, mult) } else { (mult, div) };
        down == 1 && up > 1 && up as f64 == factor
    };
    let of_space = SPACE.map(|scale_space| Units { scale_space, ..units });
    let of_time = TIME.map(|scale_time| Units { scale_time, ..units });
    let of_space = of_space.filter(|_| units.dim_space != 0);
    let of_time = of_time.filter(|_| units.dim_time != 0);
    of_space.chain(of_time).find(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_between_scales() {
        let units = |text| Units::parse(text).expect("units").units;
        for (from, factor, is_divided, to) in [
            ("Kbyte", 1024.0, true, Some("Mbyte")),
            ("Kbyte", 1024.0, false, Some("byte")),
            ("Kbyte", 1_048_576.0, true, Some("Gbyte")),
            ("Pbyte", 1024.0, true, Some("Ebyte")),
            ("millisec", 1000.0, true, Some("sec")),
            ("sec", 60.0, true, Some("min")),
            ("byte / sec", 60.0, false, Some("byte / min")),
            ("Kbyte", 1000.0, true, None),
            ("Kbyte", 1.0, true, None),
            ("count", 1000.0, true, None),
            ("", 1024.0, true, None),
        ] {
            let found = rescaled(units(from), factor, is_divided);
            assert_eq!(found.map(|units| units.to_string()).as_deref(), to, "{from} {factor}");
        }
    }
}
