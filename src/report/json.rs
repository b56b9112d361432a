//! Writes values, descriptors and statuses as JSON, in the words of the
//! conformance corpus, for all commands that print them.
//!
//! 64-bit integers stay exact. A floating-point number has the shortest text that reads back,
//! or is a string if it is not finite.

use std::fmt::Write as _;

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::{InstanceDomain, PmStatus};
use pmderive_runtime::program::Status;

use crate::bind::Desc;
use crate::dialect::Dialect;
use crate::engine::{Finding, Metric, ReportSample};
use crate::report::plain;
use crate::text::json::{Object, write_object, write_string, write_string_or_null};

/// Writes the members `err` and `errname` of a status.
pub fn write_status(out: &mut String, status: PmStatus) {
    let _ = write!(out, "\"err\":{},\"errname\":", status.0);
    write_string_or_null(out, status.name().as_deref());
}

/// Writes a descriptor: type, domain, semantics, units as text, and the
/// dimensions and scales in the order space, time, count.
pub fn write_desc(out: &mut String, desc: &Desc) {
    let _ = write!(out, "{{\"type\":\"{}\",\"indom\":", desc.value_type);
    match desc.indom {
        Some(indom) => {
            let _ = write!(out, "\"{indom}\"");
        }
        None => out.push_str("null"),
    }
    let units = desc.units;
    let _ = write!(out, ",\"sem\":\"{}\",\"units\":\"{}\"", desc.semantics, units);
    let scale = |dim: i8, scale: i32| if dim == 0 { 0 } else { scale };
    let _ = write!(
        out,
        ",\"dim\":[{},{},{}],\"scale\":[{},{},{}]}}",
        units.dim_space,
        units.dim_time,
        units.dim_count,
        scale(units.dim_space, i32::from(units.scale_space)),
        scale(units.dim_time, i32::from(units.scale_time)),
        scale(units.dim_count, i32::from(units.scale_count)),
    );
}

/// Writes the members `n` and `values` of a metric, or `err` and `errname`.
pub fn write_values(out: &mut String, values: &Values<'_>, names: Option<&InstanceDomain>) {
    write_values_with(out, values, names, write_value);
}

/// Like [`write_values`]; `write` writes each value.
pub fn write_values_with(
    out: &mut String,
    values: &Values<'_>,
    names: Option<&InstanceDomain>,
    write: impl Fn(&mut String, Value<'_>),
) {
    if let Status::Failed(status) = values.status {
        return write_status(out, status);
    }
    let _ = write!(out, "\"n\":{},\"values\":[", values.len());
    let mut names = names.map(InstanceDomain::names);
    for (at, (instance, value)) in values.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push('[');
        plain::write_integer(out, instance);
        out.push(',');
        let name = names.as_mut().and_then(|names| names.as_text(instance));
        write_string_or_null(out, name.as_deref());
        out.push(',');
        write(out, value);
        out.push(']');
    }
    out.push(']');
}

/// Writes a sample as one object:
///
/// ```text
/// {"t": "SEC.NNNNNNNNN", "source": NAME, "metrics": [METRIC, ...]}
/// METRIC = {"name", "desc", "n", "values": [[INST, NAME, VALUE], ...]}
///        | {"name", "desc", "n": 0, "values": [], "why": {"reason", "text"}}
///        | {"name", "desc", "err", "errname", "text"}
///        | {"name", "err", "errname", "text", "why": {"reason": "definition", "text"}}
/// ```
///
/// A value without a domain has instance -1 and no name. Statuses are in the words of `dialect`.
pub fn write_sample(out: &mut String, shown: &ReportSample<'_>, dialect: Dialect) {
    write_object(out, |sample| {
        sample.value("t", format_args!("\"{}\"", shown.values.timestamp()));
        sample.text("source", shown.source);
        sample.list("metrics", shown.findings().enumerate(), |out, (index, (metric, finding))| {
            write_metric(out, shown, dialect, index, metric, finding);
        });
    });
}

fn write_metric(
    out: &mut String,
    shown: &ReportSample<'_>,
    dialect: Dialect,
    index: usize,
    metric: &Metric,
    finding: Finding<'_>,
) {
    write_object(out, |object| {
        object.text("name", &metric.name);
        if let Ok(desc) = &metric.desc {
            object.member("desc", |out| write_desc(out, desc));
        }
        match finding {
            Finding::Values(values) => {
                object.members(|out| write_values(out, &values, shown.domain(index)));
            }
            Finding::Empty(reason) => {
                object.value("n", 0);
                object.value("values", "[]");
                add_why(object, reason.word(), &reason.to_string());
            }
            Finding::Failed(status) => add_failure(object, status, dialect),
            Finding::Unusable(status, mistake) => {
                add_failure(object, status, dialect);
                add_why(object, "definition", mistake);
            }
        }
    });
}

fn add_failure(object: &mut Object<'_>, status: PmStatus, dialect: Dialect) {
    object.members(|out| write_status(out, status));
    object.text("text", &dialect.text(status));
}

/// Adds a member with the reason why there is no value.
pub fn add_why(object: &mut Object<'_>, reason: &str, text: &str) {
    object.object("why", |why| {
        why.text("reason", reason);
        why.text("text", text);
    });
}

/// Writes one value.
pub fn write_value(out: &mut String, value: Value<'_>) {
    let is_string = match value {
        Value::I32(_) | Value::U32(_) | Value::I64(_) | Value::U64(_) => false,
        Value::F32(value) => !value.is_finite(),
        Value::F64(value) => !value.is_finite(),
        Value::Text(bytes) => return write_string(out, &plain::text(bytes)),
        Value::Bytes(_) => true,
    };
    let quote = if is_string { "\"" } else { "" };
    out.push_str(quote);
    plain::write_value(out, value);
    out.push_str(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_the_words_of_the_corpus() {
        let row = |value: Value<'_>, expected: &str| {
            let mut out = String::new();
            write_value(&mut out, value);
            assert_eq!(out, expected);
        };
        row(Value::U64(u64::MAX), "18446744073709551615");
        row(Value::F64(2.0), "2.0");
        row(Value::F32(0.1), "0.1");
        row(Value::F64(f64::NEG_INFINITY), "\"-inf\"");
        row(Value::F32(f32::NAN), "\"nan\"");
        row(Value::Text(b"a\"b\n\x01"), "\"a\\\"b\\n\\u0001\"");
        row(Value::Text(b"\xff"), r#""\\xff""#);
        row(Value::Text(b"\x9b\x7f"), r#""\\x9b\u007f""#);
        row(Value::Text("\u{202e}\u{e0041}".as_bytes()), "\"\\u202e\\udb40\\udc41\"");
        row(Value::Bytes(&[0, 255]), "\"hex:00ff\"");
    }
}
