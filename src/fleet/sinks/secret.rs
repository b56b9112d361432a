//! Passwords and tokens. They are read from files, compared in constant time, and never shown.

use std::fmt;
use std::path::Path;

use pmderive_runtime::{bounded, escape};
use subtle::ConstantTimeEq;

/// Largest file of a secret, a certificate or a key, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;

/// A text that must not be shown.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Reads the first line of a file, without blanks around it.
    ///
    /// # Errors
    /// The file has no secret; the text names it and says why.
    pub fn read(path: &Path) -> Result<Secret, String> {
        let shown = escape::path(path);
        let text =
            String::from_utf8(read(path)?).map_err(|_| format!("{shown} holds more than text"))?;
        let secret = text.lines().next().unwrap_or_default().trim();
        if secret.is_empty() {
            return Err(format!("the first line of {shown} is empty"));
        }
        // It becomes part of a header.
        if secret.contains(|c: char| c.is_ascii_control()) {
            return Err(format!("{shown} holds control characters"));
        }
        Ok(Secret(secret.into()))
    }

    /// The text, for code that sends it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// True if this is the text. The comparison has the same duration for all wrong texts.
    pub fn equals(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The bytes of a small file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    bounded::read_file(path, MAX_FILE_BYTES)
        .map_err(|error| format!("{}: {error}", escape::path(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_and_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("it can be written");
            Secret::read(&path).map_err(|error| error.replace(&*escape::path(&path), "FILE"))
        };
        let secret = read(b" s3cret \nrest").expect("a secret");
        assert_eq!(format!("{secret:?}"), "***");
        assert!(secret.equals(b"s3cret") && !secret.equals(b"s3cre") && !secret.equals(b"s3creT"));
        let errors = [&b""[..], b"\nx", b"a\tb", b"\xff", &[b'x'; 1 << 21]];
        let errors = errors.map(|bytes| read(bytes).map(|_| ()).expect_err("no secret"));
        assert_eq!(
            errors,
            [
                "the first line of FILE is empty",
                "the first line of FILE is empty",
                "FILE holds control characters",
                "FILE holds more than text",
                "FILE: larger than 1048576 bytes"
            ]
        );
    }
}
