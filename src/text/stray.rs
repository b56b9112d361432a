//! Represents each byte that is not UTF-8 by a character.
//!
//! libpcp reads definitions as bytes and repeats them unchanged, but the
//! compiler reads text. [`decoded`] loses nothing: a stray byte becomes a
//! private character of Unicode's last plane. If a text already has such a
//! character, each of its bytes becomes one too, so [`encoded`] restores every
//! text. A text that goes anywhere except into a message is [`replaced`] first.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The characters that stand for the bytes 0x80 to 0xff.
const STRAY: RangeInclusive<char> = '\u{10ff80}'..='\u{10ffff}';
/// Difference between such a character and its byte.
const BASE: u32 = 0x10_ff00;
/// Number of bytes in UTF-8 that such a character needs beyond the one that it
/// stands for.
pub const EXTRA_BYTES: usize = 3;

/// True for a character that stands for a byte.
pub fn is_stray(character: char) -> bool {
    STRAY.contains(&character)
}

/// The byte that a character stands for, if it is such a character.
pub fn byte(character: char) -> Option<u8> {
    is_stray(character).then(|| u8::try_from(u32::from(character) - BASE).ok()).flatten()
}

/// The character that stands for a byte of 0x80 or above.
pub const fn character(byte: u8) -> char {
    match char::from_u32(BASE + byte as u32) {
        Some(character) => character,
        None => char::REPLACEMENT_CHARACTER,
    }
}

/// Decodes bytes as text.
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(is_stray)
    {
        return text.into();
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for one in chunk.valid().chars() {
            match is_stray(one) {
                true => out.extend(one.encode_utf8(&mut [0; 4]).bytes().map(character)),
                false => out.push(one),
            }
        }
        out.extend(chunk.invalid().iter().map(|byte| character(*byte)));
    }
    out.into()
}

/// The original bytes of a text from [`decoded`].
pub fn encoded(text: &str) -> Cow<'_, [u8]> {
    if !text.contains(is_stray) {
        return text.as_bytes().into();
    }
    let mut out = Vec::with_capacity(text.len());
    for one in text.chars() {
        match byte(one) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.into()
}

/// The text with U+FFFD for each stray byte, for readers that accept only
/// UTF-8.
pub fn replaced(text: &str) -> Cow<'_, str> {
    match text.contains(is_stray) {
        true => text.replace(is_stray, "\u{fffd}").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        let private = "\u{10ff80}\u{10fffd} \u{10ff7f}".as_bytes();
        for bytes in [&b""[..], b"a = b", "caf\u{e9}".as_bytes(), b"caf\xe9\xff\x80", private] {
            assert_eq!(*encoded(&decoded(bytes)), *bytes);
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(*encoded(&decoded(&all)), all);
        assert_eq!(decoded(b"\xff\xe9a").chars().filter_map(byte).collect::<Vec<_>>(), [255, 233]);
        assert_eq!(replaced(&decoded(b"caf\xe9!")), "caf\u{fffd}!");
        assert_eq!(replaced("caf\u{e9}"), "caf\u{e9}");
    }
}
