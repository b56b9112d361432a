//! Words, numbers and names in the kernel's text files, as bytes.
//!
//! Only names with octal escapes cause an allocation.

use std::borrow::Cow;
use std::str::FromStr;

/// The lines that are not empty, without line ends.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The words between white space.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A decimal number. `None` for any other text and for a number out of range.
pub(super) fn number<T: FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The numbers of a line's words. A number is `None` where the word is missing
/// or is not a number.
pub(super) fn numbers<'a, const N: usize>(
    words: impl Iterator<Item = &'a [u8]>,
) -> [Option<u64>; N] {
    let mut numbers = [None; N];
    for (number, word) in numbers.iter_mut().zip(words) {
        *number = self::number(word);
    }
    numbers
}

/// Splits at the first `separator`.
pub(super) fn split_once(line: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let position = line.iter().position(|byte| *byte == separator)?;
    Some((&line[..position], &line[position + 1..]))
}

/// Replaces the octal escapes (`\040` for a blank) of mount tables
/// (`fstab(5)`).
pub(super) fn unescape(word: &[u8]) -> Cow<'_, [u8]> {
    if !word.contains(&b'\\') {
        return Cow::Borrowed(word);
    }
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let escape = match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                rest = &tail[3..];
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        plain.push(escape.unwrap_or(*first));
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_themselves() {
        let parsed = numbers::<5>(words(b" 7  x 18446744073709551615\t18446744073709551616"));
        assert_eq!(parsed, [Some(7), None, Some(u64::MAX), None, None]);
    }

    #[test]
    fn escapes_of_mount_tables() {
        for (escaped, plain) in [
            (&b"/a\\040b"[..], &b"/a b"[..]),
            (b"\\134040", b"\\040"),
            (b"a\\04", b"a\\04"),
            (b"\\400\\", b"\\400\\"),
            (b"\\303\\244", b"\xc3\xa4"),
        ] {
            assert_eq!(&*unescape(escaped), plain);
        }
    }
}
