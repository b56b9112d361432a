//! Patterns of `matchinst()` and `matchvalue()`: POSIX extended regular
//! expressions, as `regcomp(3)` of the GNU C library reads them.
//!
//! A pattern is checked and translated to the syntax of the `regex` crate,
//! which matches in linear time. Such an engine has no back-references, so
//! patterns with them go to the `fancy-regex` crate. A limit on its
//! backtracking bounds the time. Letters and classes are those of ASCII, as in
//! the C locale. A character is one of UTF-8, as in locales with it.

mod bracket;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod translate;

use std::sync::Arc;

pub use error::PatternError;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_pattern;
use regex::bytes::{Regex, RegexBuilder};
use translate::{Translation, translate};

/// Longest pattern that is accepted, in bytes.
const MAX_PATTERN_BYTES: usize = 16 << 10;
/// Largest memory of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 8 << 20;
/// Largest number of instructions of a compiled pattern with back-references.
const MAX_STEPS: usize = 1 << 16;
/// Largest number of backtracking steps of a match with back-references. They
/// need some milliseconds and are enough for `(.*)-\1` in the longest name.
const MAX_BACKTRACKS: usize = 1 << 17;

/// A compiled pattern, cheap to clone.
#[derive(Clone, Debug)]
pub struct Pattern {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(Regex),
    /// A pattern with back-references.
    Backtracking(Arc<fancy_regex::Regex>),
}

/// The error for a match with back-references that would be too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matching a pattern with back-references takes too long")]
pub struct TooMuchWork;

impl Pattern {
    /// Compiles an extended regular expression of POSIX (`regcomp(3)`), which matches
    /// characters of UTF-8.
    ///
    /// # Errors
    /// The text is not a pattern, or is too large. The error prints as `regerror(3)` does.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        Pattern::new_or_place(text).map_err(|(error, _)| error)
    }

    /// Compiles a pattern.
    ///
    /// # Errors
    /// The text is not a pattern. The offset is that of the wrong character, or
    /// of the construct without its end.
    pub fn new_or_place(text: &str) -> Result<Pattern, (PatternError, usize)> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err((PatternError::TooLarge, 0));
        }
        let translation = translate(text)?;
        Pattern::compiled(translation).map_err(|error| (error, 0))
    }

    fn compiled(translation: Translation) -> Result<Pattern, PatternError> {
        // The translation is well-formed, so only its size or depth can be refused.
        let engine = match translation {
            Translation::Linear(text) => RegexBuilder::new(&text)
                .dot_matches_new_line(true)
                .size_limit(MAX_COMPILED_BYTES)
                .build()
                .map(Engine::Linear)
                .map_err(|_| PatternError::TooLarge)?,
            Translation::Backtracking(text) => fancy_regex::RegexBuilder::new(&text)
                .dot_matches_new_line(true)
                .delegate_size_limit(MAX_COMPILED_BYTES)
                .max_prog_size(MAX_STEPS)
                .backtrack_limit(MAX_BACKTRACKS)
                .build()
                .map(|regex| Engine::Backtracking(Arc::new(regex)))
                .map_err(|_| PatternError::TooLarge)?,
        };
        Ok(Pattern { engine })
    }

    /// True if the pattern occurs anywhere in the text. No pattern matches
    /// bytes that are not UTF-8, except that a pattern with back-references
    /// sees them as U+FFFD.
    ///
    /// # Errors
    /// [`TooMuchWork`], only for patterns with back-references.
    pub fn is_match(&self, text: impl AsRef<[u8]>) -> Result<bool, TooMuchWork> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text.as_ref())),
            Engine::Backtracking(regex) => {
                let text = String::from_utf8_lossy(text.as_ref());
                regex.is_match(&*text).map_err(|_| TooMuchWork)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_up_patterns_translate_or_are_refused() {
        let pieces = [
            "a",
            "b",
            "(",
            ")",
            "[",
            "]",
            "^",
            "$",
            "*",
            "+",
            "?",
            "{",
            "}",
            "{2}",
            "{1,3}",
            "{,2}",
            "|",
            ".",
            "\\",
            "\\w",
            "\\<",
            "\\b",
            "-",
            ":",
            "[:digit:]",
            "[=a=]",
            "[.-.]",
            "]-",
            ",",
            "1",
            "\u{e9}",
            "&&",
            "~",
            "\n",
            "\\1",
            "\\2",
            "\\>",
            "#",
            " ",
        ];
        let mut state = 7u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % limit
        };
        for _ in 0..20_000 {
            let pattern: String = (0..below(12)).map(|_| pieces[below(pieces.len())]).collect();
            fuzz_pattern(pattern.as_bytes());
        }
    }
}
