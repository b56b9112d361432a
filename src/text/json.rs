//! Writes JSON: objects, lists and strings.
//!
//! Callers append piece by piece to one string.

use std::fmt::{Display, Write as _};

use crate::escape::is_unshown;

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

/// Writes a string, or `null`.
pub fn write_string_or_null(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => write_string(out, text),
        None => out.push_str("null"),
    }
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
        self.member(name, |out| write_string_or_null(out, text));
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
}
