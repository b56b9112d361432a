//! Samples for spreadsheets and data frames: a header, then a line for each
//! value with time, metric, instance and value (RFC 4180, lines ended by LF).
//!
//! Numbers are exact. A metric without values has no line.

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{UtcTime, write_exact_double, write_exact_float};

use crate::json::text;

use super::{Finding, Renderer, Shown, append};

/// The CSV form.
pub struct Csv;

impl Renderer for Csv {
    fn begin(&mut self, out: &mut String) {
        out.push_str("time,metric,instance,value\n");
    }

    fn shows_failures(&self) -> bool {
        false
    }

    fn sample(&mut self, shown: &Shown<'_>, out: &mut String) {
        let time = UtcTime(shown.values.timestamp());
        for (index, (metric, finding)) in shown.findings().enumerate() {
            let Finding::Values(values) = finding else { continue };
            for (instance, value) in values.iter() {
                append(out, format_args!("{time},"));
                push_field(out, |out| out.push_str(&metric.name));
                out.push(',');
                if instance != -1 {
                    push_field(out, |out| match shown.instance_name(index, instance) {
                        Some(name) => out.push_str(name),
                        None => append(out, format_args!("{instance}")),
                    });
                }
                out.push(',');
                push_value(out, value);
                out.push('\n');
            }
        }
    }
}

fn push_value(out: &mut String, value: Value<'_>) {
    match value {
        Value::I32(value) => append(out, format_args!("{value}")),
        Value::U32(value) => append(out, format_args!("{value}")),
        Value::I64(value) => append(out, format_args!("{value}")),
        Value::U64(value) => append(out, format_args!("{value}")),
        Value::F32(value) => write_exact_float(out, value),
        Value::F64(value) => write_exact_double(out, value),
        Value::Text(bytes) => push_field(out, |out| out.push_str(&text(bytes))),
        Value::Bytes(bytes) => {
            out.push_str("hex:");
            bytes.iter().for_each(|byte| append(out, format_args!("{byte:02x}")));
        }
    }
}

/// Appends a field that may need quotes.
fn push_field(out: &mut String, push: impl FnOnce(&mut String)) {
    let start = out.len();
    push(out);
    if out[start..].contains([',', '"', '\n', '\r']) {
        let quoted = out[start..].replace('"', "\"\"");
        out.truncate(start);
        append(out, format_args!("\"{quoted}\""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (text, field) in [
            ("plain text", "plain text"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            let mut out = "before,".to_owned();
            push_field(&mut out, |out| out.push_str(text));
            assert_eq!(out, format!("before,{field}"));
        }
    }
}
