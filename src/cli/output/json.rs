//! Samples for programs: one JSON object for each, on one line.
//!
//! ```text
//! {"t": "SEC.NNNNNNNNN", "source": NAME, "metrics": [METRIC, ...]}
//! METRIC = {"name", "desc", "n", "values": [[INST, NAME, VALUE], ...]}
//!        | {"name", "desc", "n": 0, "values": [], "why": {"reason", "text"}}
//!        | {"name", "desc", "err", "errname", "text"}
//!        | {"name", "err", "errname", "text", "why": {"reason": "definition", "text"}}
//! ```
//!
//! A value without a domain has instance -1 and no name. Integers are exact,
//! other numbers have as many digits as give the same bits again, and a point
//! or an exponent; what is not finite is the string `inf`, `-inf` or `nan`.
//! Bytes that are no text are the string `hex:` with two digits for each.

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{PmStatus, write_exact_double, write_exact_float};
use pmderive_runtime::program::Reason;

use crate::check::typed::Desc;
use crate::engine::Metric;

use super::{Finding, Renderer, Shown, Why, append, push_text};

/// The JSON form.
pub struct Json;

impl Renderer for Json {
    fn sample(&mut self, shown: &Shown<'_>, out: &mut String) {
        append(out, format_args!("{{\"t\":\"{}\",\"source\":", shown.values.timestamp()));
        push_string(out, shown.source);
        out.push_str(",\"metrics\":[");
        for (index, (metric, finding)) in shown.findings().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_metric(out, shown, index, metric, finding);
        }
        out.push_str("]}\n");
    }
}

fn push_metric(
    out: &mut String,
    shown: &Shown<'_>,
    index: usize,
    metric: &Metric,
    finding: Finding<'_>,
) {
    out.push_str("{\"name\":");
    push_string(out, &metric.name);
    if let Ok(desc) = metric.desc {
        push_desc(out, desc);
    }
    match finding {
        Finding::Values(values) => {
            append(out, format_args!(",\"n\":{},\"values\":[", values.len()));
            for (position, (instance, value)) in values.iter().enumerate() {
                let comma = if position > 0 { "," } else { "" };
                append(out, format_args!("{comma}[{instance},"));
                match shown.instance_name(index, instance) {
                    Some(name) => push_string(out, name),
                    None => out.push_str("null"),
                }
                out.push(',');
                push_value(out, value);
                out.push(']');
            }
            out.push_str("]}");
        }
        Finding::Empty(reason) => {
            let word = reason_word(reason);
            append(
                out,
                format_args!(",\"n\":0,\"values\":[],\"why\":{{\"reason\":\"{word}\",\"text\":"),
            );
            push_string(out, &Why(reason).to_string());
            out.push_str("}}");
        }
        Finding::Failed(status) => {
            push_status(out, status);
            out.push('}');
        }
        Finding::Unusable(status, mistake) => {
            push_status(out, status);
            out.push_str(",\"why\":{\"reason\":\"definition\",\"text\":");
            push_string(out, mistake);
            out.push_str("}}");
        }
    }
}

fn push_desc(out: &mut String, desc: Desc) {
    let Desc { value_type, indom, semantics, units } = desc;
    append(out, format_args!(",\"desc\":{{\"type\":\"{value_type}\",\"indom\":"));
    match indom {
        Some(indom) => append(out, format_args!("\"{indom}\"")),
        None => out.push_str("null"),
    }
    append(out, format_args!(",\"sem\":\"{semantics}\",\"units\":\"{units}\""));
    let dim = [units.dim_space, units.dim_time, units.dim_count];
    let scale =
        [i32::from(units.scale_space), i32::from(units.scale_time), i32::from(units.scale_count)];
    let scale_of = |axis: usize| if dim[axis] == 0 { 0 } else { scale[axis] };
    append(out, format_args!(",\"dim\":[{},{},{}]", dim[0], dim[1], dim[2]));
    append(out, format_args!(",\"scale\":[{},{},{}]}}", scale_of(0), scale_of(1), scale_of(2)));
}

fn push_status(out: &mut String, status: PmStatus) {
    append(out, format_args!(",\"err\":{},\"errname\":", status.0));
    match status.name() {
        Some(name) => push_string(out, &name),
        None => out.push_str("null"),
    }
    out.push_str(",\"text\":");
    push_string(out, &status.to_string());
}

/// The word of a reason, which does not change.
fn reason_word(reason: Reason) -> &'static str {
    match reason {
        Reason::FirstSample => "first-sample",
        Reason::Gap => "gap",
        Reason::CounterFell => "counter-fell",
        Reason::OperandEmpty => "operand-empty",
        Reason::OperandFailed(_) => "operand-failed",
        Reason::InstanceMissing => "instance-missing",
        Reason::NoValue => "novalue",
    }
}

fn push_value(out: &mut String, value: Value<'_>) {
    match value {
        Value::I32(value) => append(out, format_args!("{value}")),
        Value::U32(value) => append(out, format_args!("{value}")),
        Value::I64(value) => append(out, format_args!("{value}")),
        Value::U64(value) => append(out, format_args!("{value}")),
        Value::F32(value) if value.is_finite() => write_exact_float(out, value),
        Value::F64(value) if value.is_finite() => write_exact_double(out, value),
        Value::F32(value) => push_not_finite(out, f64::from(value)),
        Value::F64(value) => push_not_finite(out, value),
        Value::Text(bytes) => {
            out.push('"');
            push_text(out, bytes, push_escaped);
            out.push('"');
        }
        Value::Bytes(bytes) => {
            out.push_str("\"hex:");
            bytes.iter().for_each(|byte| append(out, format_args!("{byte:02x}")));
            out.push('"');
        }
    }
}

fn push_not_finite(out: &mut String, value: f64) {
    out.push('"');
    write_exact_double(out, value);
    out.push('"');
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends the inside of a JSON string.
fn push_escaped(out: &mut String, text: &str) {
    let mut plain = 0;
    // What has to be escaped is a single byte in UTF-8.
    for (at, byte) in text.bytes().enumerate() {
        if !matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f) {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            _ => append(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.push_str(&text[plain..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_back_as_they_were() {
        let all: String = (0..0x250u32).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\"", "a\"b\\c\n\t\r\u{1b}\u{7f}d", "\u{e9}\u{1f600}", &all] {
            let mut out = String::new();
            push_string(&mut out, text);
            let back: String = serde_json::from_str(&out).expect(&out);
            assert_eq!(back, text);
        }
    }

    #[test]
    fn numbers_are_exact() {
        let text = |value| {
            let mut out = String::new();
            push_value(&mut out, value);
            out
        };
        assert_eq!(text(Value::U64(u64::MAX)), "18446744073709551615");
        assert_eq!(text(Value::I64(i64::MIN)), "-9223372036854775808");
        assert_eq!(text(Value::F64(5.0)), "5.0");
        assert_eq!(text(Value::F64(0.1)), "0.1");
        assert_eq!(text(Value::F32(0.1)), "0.1");
        assert_eq!(text(Value::F64(f64::NEG_INFINITY)), "\"-inf\"");
        assert_eq!(text(Value::F32(f32::NAN)), "\"nan\"");
        assert_eq!(text(Value::Text(b"a\xffb")), "\"a\u{ff}b\"");
        assert_eq!(text(Value::Bytes(&[0, 255])), "\"hex:00ff\"");
    }
}
