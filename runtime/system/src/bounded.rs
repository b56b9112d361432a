//! Reads of whole inputs that must not be large: configurations, certificates, definitions.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All bytes of an input that has at most `limit`.
///
/// # Errors
/// It cannot be read, or has more ([`io::ErrorKind::FileTooLarge`]).
pub fn read(input: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// All bytes of a file that has at most `limit`.
///
/// # Errors
/// As [`read`].
pub fn read_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read(File::open(path)?, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_the_limit_is_refused() {
        assert_eq!(read(&b"1234"[..], 4).expect("it fits"), b"1234");
        let error = read(&b"12345"[..], 4).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "larger than 4 bytes");
    }
}
