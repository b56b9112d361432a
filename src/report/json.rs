//! Writes values, descriptors and statuses as JSON, in the words of the
//! conformance corpus, for all commands that print them.
//!
//! The text is appended piece by piece to one string. 64-bit integers stay
//! exact. A floating-point number has the shortest text that reads back, or is
//! a string if it is not finite.

use std::fmt::{Display, Write as _};

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::{InstanceDomain, PmStatus};
use pmderive_runtime::program::Status;

use crate::check::typed::Desc;
use crate::engine::{Finding, Metric, Shown};
use crate::escape::is_unshown;
use crate::report::plain;

/// Writes a string with its quotes. Characters that a terminal would obey are
/// escaped, because JSON may be read there.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    // Most texts are names, in which nothing is escaped.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let plain = text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len());
    let (plain, rest) = text.split_at(plain);
    out.push_str(plain);
    for character in rest.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            unshown if is_unshown(unshown) => write_escape(out, unshown),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The members of an object while it is written.
pub struct Object<'o> {
    out: &'o mut String,
    is_empty: bool,
}

/// Writes an object. `write` adds its members.
pub fn write_object(out: &mut String, write: impl FnOnce(&mut Object<'_>)) {
    out.push('{');
    write(&mut Object { out, is_empty: true });
    out.push('}');
}

impl Object<'_> {
    /// Adds members. `write` writes them with their names.
    pub fn members(&mut self, write: impl FnOnce(&mut String)) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
        write(self.out);
    }

    /// Adds a member. `write` writes its value.
    pub fn member(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.members(|out| {
            write_string(out, name);
            out.push(':');
            write(out);
        });
    }

    /// Adds an object. `write` adds its members.
    pub fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) {
        self.member(name, |out| write_object(out, write));
    }

    /// Adds a string.
    pub fn text(&mut self, name: &str, text: &str) {
        self.member(name, |out| write_string(out, text));
    }

    /// Adds a string, or `null`.
    pub fn text_or_null(&mut self, name: &str, text: Option<&str>) {
        self.member(name, |out| match text {
            Some(text) => write_string(out, text),
            None => out.push_str("null"),
        });
    }

    /// Adds a value that displays as JSON, such as a number.
    pub fn value(&mut self, name: &str, value: impl Display) {
        self.member(name, |out| _ = write!(out, "{value}"));
    }

    /// Adds a list.
    pub fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut String, T),
    ) {
        self.member(name, |out| {
            out.push('[');
            for (at, item) in items.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        });
    }

    /// Adds a list of objects. `write` adds the members of each.
    pub fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Object<'_>, T),
    ) {
        self.list(name, items, |out, item| write_object(out, |object| write(object, item)));
    }

    /// Adds a list of strings.
    pub fn texts(&mut self, name: &str, texts: &[String]) {
        self.list(name, texts, |out, text| write_string(out, text));
    }
}

/// The JSON with strings escaped as [`write_string`] does it.
pub fn shown(json: String) -> String {
    if !json.contains(is_unshown) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        match is_unshown(character) && character != '\n' {
            true => write_escape(&mut out, character),
            false => out.push(character),
        }
    }
    out
}

fn write_escape(out: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a string does not fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Writes the members `err` and `errname` of a status.
pub fn write_status(out: &mut String, status: PmStatus) {
    let _ = write!(out, "\"err\":{},\"errname\":", status.0);
    match status.name() {
        Some(name) => write_string(out, &name),
        None => out.push_str("null"),
    }
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
        match names.as_mut().and_then(|names| names.as_text(instance)) {
            Some(name) => write_string(out, &name),
            None => out.push_str("null"),
        }
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
/// A value without a domain has instance -1 and no name.
pub fn write_sample(out: &mut String, shown: &Shown<'_>) {
    write_object(out, |sample| {
        sample.value("t", format_args!("\"{}\"", shown.values.timestamp()));
        sample.text("source", shown.source);
        sample.list("metrics", shown.findings().enumerate(), |out, (index, (metric, finding))| {
            write_metric(out, shown, index, metric, finding);
        });
    });
}

fn write_metric(
    out: &mut String,
    shown: &Shown<'_>,
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
            Finding::Failed(status) => add_failure(object, status),
            Finding::Unusable(status, mistake) => {
                add_failure(object, status);
                add_why(object, "definition", mistake);
            }
        }
    });
}

fn add_failure(object: &mut Object<'_>, status: PmStatus) {
    object.members(|out| write_status(out, status));
    object.text("text", &status.to_string());
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
    fn json_of_others_is_escaped_where_it_has_strings() {
        let json = serde_json::json!({ "a\u{9b}\n": "gr\u{fc}n \"\u{202e}" }).to_string() + "\n";
        let escaped = shown(json.clone());
        assert_eq!(escaped, "{\"a\\u009b\\n\":\"gr\u{fc}n \\\"\\u202e\"}\n");
        let read =
            |json: &str| serde_json::from_str::<serde_json::Value>(json).expect("it is JSON");
        assert_eq!(read(&escaped), read(&json));
    }

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
