//! The promises of recorded metadata about any bytes, for fuzzers.

use super::RecordedMetadata;

/// Reads any bytes. Accepted metadata must be the same after writing and
/// reading it.
pub fn fuzz_metadata(data: &[u8]) {
    let Ok(recorded) = RecordedMetadata::from_json(data) else { return };
    let text = recorded.to_json();
    let again = RecordedMetadata::from_json(text.as_bytes()).expect("what is written is readable");
    assert_eq!(again.to_json(), text);
    assert_eq!(again.names, recorded.names);
    assert_eq!(again.descs, recorded.descs);
}
