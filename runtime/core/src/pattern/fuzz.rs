//! The promises of patterns about any text, for fuzzers.

use super::*;

/// Compiles the first line of the data and matches the rest with it. Panics if
/// the engine does not accept the translation.
pub fn fuzz_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, text) = text.split_once('\n').unwrap_or((text, ""));
    if let Err((_, place)) = Pattern::new_or_place(pattern) {
        assert!(pattern.is_char_boundary(place), "{pattern:?} at {place}");
    }
    match Pattern::new(pattern) {
        Ok(compiled) => {
            let _ = compiled.is_match(text);
        }
        Err(PatternError::TooLarge) if pattern.len() <= MAX_PATTERN_BYTES => {
            // The engine may refuse the size or depth, but not the syntax.
            let error = match translate(pattern) {
                Ok(Translation::Linear(text)) => {
                    regex::Regex::new(&text).err().map(|error| error.to_string())
                }
                Ok(Translation::Backtracking(text)) => {
                    fancy_regex::Regex::new(&text).err().map(|error| error.to_string())
                }
                Err((error, _)) => {
                    (error == PatternError::TooLarge).then(|| "too large".to_owned())
                }
            };
            let size = ["size limit", "nest limit", "nest", "too big", "too large", "too complex"];
            let refused = error.unwrap_or_else(|| "size limit".to_owned());
            assert!(size.iter().any(|word| refused.contains(word)), "{pattern:?}: {refused}");
        }
        Err(_) => {}
    }
}
