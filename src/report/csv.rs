//! Writes values and fields as CSV (RFC 4180, lines ended by LF), for all
//! commands that print it. Numbers are exact.

use std::fmt::Write as _;

use pmderive_runtime::eval::Value;

use crate::report::plain;

/// Writes one value.
pub fn write_value(out: &mut String, value: Value<'_>) {
    match value {
        Value::Text(_) => write_field(out, |out| plain::write_value(out, value)),
        _ => plain::write_value(out, value),
    }
}

/// Writes a field, in quotes if necessary.
pub fn write_field(out: &mut String, push: impl FnOnce(&mut String)) {
    let start = out.len();
    push(out);
    if out.as_bytes()[start..].iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        let quoted = out[start..].replace('"', "\"\"");
        out.truncate(start);
        let _ = write!(out, "\"{quoted}\"");
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
            write_field(&mut out, |out| out.push_str(text));
            assert_eq!(out, format!("before,{field}"));
        }
    }
}
