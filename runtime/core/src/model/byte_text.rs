//! Text that comes as bytes: in values, PDUs, archives and files of the kernel.

use std::borrow::Cow;

/// The text of bytes without a declared encoding. If they are not UTF-8, each byte
/// becomes the character of that number.
pub fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The bytes up to the first NUL, or all of them.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf_8_or_bytes() {
        assert_eq!(text_of_bytes("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(text_of_bytes(b"gr\xfcn"), "gr\u{fc}n");
        assert_eq!(until_nul(b"ab\0c\0"), b"ab");
        assert_eq!(until_nul(b"ab"), b"ab");
    }
}
