//! Writes values as plain text: exact numbers, and bytes as digits. Each format
//! separates such text from its own signs.

use std::borrow::Cow;
use std::fmt::Write as _;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{write_exact_double, write_exact_float};

use crate::escape::escaped;

/// Writes one value.
pub fn write_value(out: &mut String, value: Value<'_>) {
    match value {
        Value::I32(value) => write_integer(out, value),
        Value::U32(value) => write_integer(out, value),
        Value::I64(value) => write_integer(out, value),
        Value::U64(value) => write_integer(out, value),
        Value::F32(value) => write_exact_float(out, value),
        Value::F64(value) => write_exact_double(out, value),
        Value::Text(bytes) => out.push_str(&text(bytes)),
        Value::Bytes(bytes) => {
            out.push_str("hex:");
            for byte in bytes {
                // Writing to a string does not fail.
                let _ = write!(out, "{byte:02x}");
            }
        }
    }
}

/// Writes an integer in decimal.
pub fn write_integer(out: &mut String, value: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Bytes as text. Those that are not UTF-8 are `\xNN`.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    escaped(bytes, |_| false)
}
