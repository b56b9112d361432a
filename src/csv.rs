//! Values and fields as CSV (RFC 4180, lines ended by LF); shared by all
//! commands that print them. Numbers are exact.

use std::fmt::Write as _;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{write_exact_double, write_exact_float};

use crate::json::text;

/// Writes one value.
pub fn write_value(out: &mut String, value: Value<'_>) {
    let _ = match value {
        Value::I32(value) => write!(out, "{value}"),
        Value::U32(value) => write!(out, "{value}"),
        Value::I64(value) => write!(out, "{value}"),
        Value::U64(value) => write!(out, "{value}"),
        Value::F32(value) => {
            write_exact_float(out, value);
            Ok(())
        }
        Value::F64(value) => {
            write_exact_double(out, value);
            Ok(())
        }
        Value::Text(bytes) => {
            write_field(out, |out| out.push_str(&text(bytes)));
            Ok(())
        }
        Value::Bytes(bytes) => {
            out.push_str("hex:");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
    };
}

/// Writes a field, with quotes if it needs them.
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
