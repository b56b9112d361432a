//! The promises of host specifications about any text, for fuzzers.

use super::*;

/// Parses any text. The place of a mistake must be within the text.
pub fn fuzz_host_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<HostSpec>() {
        Ok(spec) => assert_eq!(spec.to_string(), without_password(&text)),
        Err(error) => {
            assert!(error.offset <= error.spec.len());
            assert!(error.to_string().contains(error.problem));
        }
    }
}
