//! The promises of files of equivalent domains about any bytes, for fuzzers.

use super::parse;

/// Parses any bytes as a file of equivalent domains.
pub fn fuzz_equivalent_domains(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(lines) = parse(&text) {
        assert!(lines.iter().map(Vec::len).sum::<usize>() <= data.len());
    }
}
