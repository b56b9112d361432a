//! The promises of folios about any bytes, for fuzzers.

use std::path::{Path, PathBuf};

use super::folio::{entries, header, parse};

/// Parses any bytes as a folio. Then writes a folio with the words of `data` as hosts
/// and archives, and parses that.
pub fn fuzz_folio(data: &[u8]) {
    let folder = Path::new(".");
    let lines = data.split_inclusive(|byte| *byte == b'\n').count();
    match parse(data, "F", folder) {
        Ok(archives) => assert!(archives.len() + 2 <= lines),
        Err(error) => assert!(!error.is_empty() && !error.contains('\n')),
    }
    let text = String::from_utf8_lossy(data);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let pairs = || words.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let written = header("host", "time", "creator", None) + &entries(pairs());
    let archives: Vec<PathBuf> = pairs().map(|(_, archive)| folder.join(archive)).collect();
    assert_eq!(parse(written.as_bytes(), "F", folder), Ok(archives));
}
