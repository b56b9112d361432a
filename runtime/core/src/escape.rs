//! Makes text from others safe to show. Names, values and files may hold
//! characters that control a terminal, or that show a different text.
//!
//! ```text
//! control characters of ASCII, bytes that are not UTF-8     \xNN
//! other control and format characters, ends of lines       \u{NNNN}
//! everything else                                           unchanged
//! ```
//!
//! A backslash is not escaped, so an escaped text cannot be read back. This
//! module does not know where text goes, or whether it must be escaped there.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;

/// Characters beyond ASCII that are escaped: Unicode's general categories Cc,
/// Cf, Zl and Zp, ascending.
const UNSHOWN: [(char, char); 22] = [
    ('\u{80}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{2066}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// True for a character that is always escaped: a control or format character,
/// or one that ends a line or paragraph.
pub fn is_unshown(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    let at = UNSHOWN.partition_point(|(_, last)| *last < character);
    UNSHOWN.get(at).is_some_and(|(first, _)| *first <= character)
}

/// The text on one line, with all escapes.
pub fn line(text: &[u8]) -> Cow<'_, str> {
    escaped(text, is_unshown)
}

/// The text on one line, with all escapes; at once where it is printable ASCII, as
/// nearly all names are.
pub fn line_of(text: &str) -> Cow<'_, str> {
    // Many bytes are looked at at once.
    match text.bytes().fold(true, |all, byte| all & matches!(byte, b' '..=b'~')) {
        true => Cow::Borrowed(text),
        false => line(text.as_bytes()),
    }
}

/// The text on several lines. Tabs and line ends stay; the rest is escaped.
pub fn lines(text: &[u8]) -> Cow<'_, str> {
    escaped(text, |character| !matches!(character, '\n' | '\t') && is_unshown(character))
}

/// The text on one line: escapes only the tabs and line ends that [`lines`]
/// keeps. The writer of the line escapes the rest.
pub fn joined(text: &str) -> Cow<'_, str> {
    escaped(text.as_bytes(), |character| matches!(character, '\n' | '\t'))
}

/// The name of a file as text. Only bytes that are not UTF-8 are escaped.
pub fn path(name: &(impl AsRef<OsStr> + ?Sized)) -> Cow<'_, str> {
    escaped(name.as_ref().as_bytes(), |_| false)
}

/// Text from others in a message of several lines. It is unchanged, except
/// under the flag `#`, which asks for a form to show: then it is escaped, on
/// one line.
#[derive(Clone, Copy, Debug)]
pub struct Foreign<'t>(pub &'t str);

impl fmt::Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.form(f.alternate()))
    }
}

impl<'t> Foreign<'t> {
    /// The text. If it is to be shown, escaped and on one line.
    pub fn form(self, is_shown: bool) -> Cow<'t, str> {
        if is_shown { line(self.0.as_bytes()) } else { self.0.into() }
    }
}

/// The text, with bytes that are not UTF-8 and the characters that `is_escaped`
/// accepts escaped.
pub fn escaped(text: &[u8], is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Nearly all text is ASCII, so many bytes are compared at once.
    let is_plain = |byte: &u8| byte.is_ascii() && !is_escaped(char::from(*byte));
    let are_plain = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & is_plain(byte));
    let is_plain = text.chunks(64).all(are_plain);
    if let Ok(text) = std::str::from_utf8(text)
        && (is_plain || !text.chars().any(&is_escaped))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match is_escaped(character) {
                true => push(&mut out, character),
                false => out.push(character),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

/// Appends a character in its escaped form.
fn push(out: &mut String, character: char) {
    let number = u32::from(character);
    let _ = match character.is_ascii() {
        true => write!(out, "\\x{number:02x}"),
        false => write!(out, "\\u{{{number:x}}}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_what_unicode_says() {
        let unshown = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]$").expect("a pattern");
        let mut buffer = [0; 4];
        for character in '\0'..=char::MAX {
            let expected = unshown.is_match(character.encode_utf8(&mut buffer));
            assert_eq!(is_unshown(character), expected, "U+{:04X}", u32::from(character));
        }
    }

    #[test]
    fn texts_are_escaped() {
        for (text, on_one_line, on_lines) in [
            (&b""[..], "", ""),
            (b"sda \\x1b", "sda \\x1b", "sda \\x1b"),
            ("grün 中文 👍".as_bytes(), "grün 中文 👍", "grün 中文 👍"),
            (
                b"\x1b[31m\x07\0\x7f\r",
                "\\x1b[31m\\x07\\x00\\x7f\\x0d",
                "\\x1b[31m\\x07\\x00\\x7f\\x0d",
            ),
            (b"a\tb\nc", "a\\x09b\\x0ac", "a\tb\nc"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m", "\\u{9b}31m"),
            (
                b"\x9b31m gr\xfcn \xe2\x82",
                "\\x9b31m gr\\xfcn \\xe2\\x82",
                "\\x9b31m gr\\xfcn \\xe2\\x82",
            ),
            ("a\u{202e}b\u{2028}".as_bytes(), "a\\u{202e}b\\u{2028}", "a\\u{202e}b\\u{2028}"),
            ("\u{e0041}\u{feff}".as_bytes(), "\\u{e0041}\\u{feff}", "\\u{e0041}\\u{feff}"),
        ] {
            assert_eq!(line(text), on_one_line);
            if let Ok(text) = std::str::from_utf8(text) {
                assert_eq!(line_of(text), on_one_line);
            }
            assert_eq!(lines(text), on_lines);
            // Escaping twice changes nothing.
            assert_eq!(line(line(text).as_bytes()), on_one_line);
        }
        assert_eq!(path(OsStr::from_bytes(b"gr\xc3\xbcn\xff\n")), "gr\u{fc}n\\xff\n");
        assert_eq!(joined("a\tb\nc\x1b"), "a\\x09b\\x0ac\x1b");
        let foreign = Foreign("a\tb\nc\x1b");
        assert_eq!(format!("{foreign}"), "a\tb\nc\x1b");
        assert_eq!(format!("{foreign:#}"), "a\\x09b\\x0ac\\x1b");
    }
}
