//! Patterns of `matchinst()` and `matchvalue()`: POSIX extended regular expressions as
//! `regcomp(3)` of the GNU C library takes them.
//!
//! A pattern is checked and translated to the syntax of the `regex` crate,
//! whose matching time is linear in the text. No such engine has
//! back-references: patterns with them go to the `fancy-regex` crate, whose work
//! is bounded by a number of steps back. Letters and classes are ASCII's, as in
//! the C locale.

mod bracket;
mod translate;

use std::fmt;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use translate::{Translation, translate};

/// Longest pattern that is accepted, in bytes.
const MAX_PATTERN_BYTES: usize = 16 << 10;
/// Most memory that a compiled pattern may take, in bytes.
const MAX_COMPILED_BYTES: usize = 8 << 20;
/// Most steps of a compiled pattern with back-references.
const MAX_STEPS: usize = 1 << 16;
/// How often matching goes back, at most, where there are back-references: some
/// milliseconds, and enough for `(.*)-\1` in the longest name.
const MAX_BACKTRACKS: usize = 1 << 17;

/// A compiled pattern, cheap to clone.
#[derive(Clone, Debug)]
pub struct Pattern {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(Regex),
    /// With back-references.
    Backtracking(Arc<fancy_regex::Regex>),
}

/// Matching a pattern with back-references would take too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matching a pattern with back-references takes too long")]
pub struct TooMuchWork;

/// Why a text is no pattern; displayed in the words of `regerror(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// `[` at the end of the pattern.
    Invalid,
    /// `[x` without its end.
    UnmatchedBracket,
    /// `(` without its end.
    UnmatchedParen,
    /// `{` without its end.
    UnmatchedBrace,
    /// `{` around anything but one or two ascending numbers.
    BadInterval,
    /// `[z-a]`, `[[:digit:]-z]`.
    BadRange,
    /// `[[:nothing:]]`
    BadClass,
    /// `[[.xyz.]]`
    BadCollation,
    /// `*`, `+`, `?` or `{` with nothing to repeat.
    NothingToRepeat,
    /// A backslash at the end.
    TrailingBackslash,
    /// `\1` before the end of the first group.
    BadBackReference,
    /// A number above 32,767 in `{n,m}`.
    TooBig,
    /// Valid for `regcomp(3)`, but larger or deeper than what is taken here.
    TooLarge,
}

impl Pattern {
    /// Compiles a pattern.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLarge);
        }
        // The translation is well-formed, so only its size or depth can be refused.
        let engine = match translate(text)? {
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

    /// True if the pattern occurs anywhere in the text. Bytes that are not
    /// UTF-8 are matched by nothing; by a pattern with back-references, as
    /// U+FFFD.
    ///
    /// # Errors
    /// [`TooMuchWork`], of patterns with back-references only.
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

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatternError::Invalid => "Invalid regular expression",
            PatternError::UnmatchedBracket => "Unmatched [, [^, [:, [., or [=",
            PatternError::UnmatchedParen => "Unmatched ( or \\(",
            PatternError::UnmatchedBrace => "Unmatched \\{",
            PatternError::BadInterval => "Invalid content of \\{\\}",
            PatternError::BadRange => "Invalid range end",
            PatternError::BadClass => "Invalid character class name",
            PatternError::BadCollation => "Invalid collation character",
            PatternError::NothingToRepeat => "Invalid preceding regular expression",
            PatternError::TrailingBackslash => "Trailing backslash",
            PatternError::BadBackReference => "Invalid back reference",
            PatternError::TooBig => "Regular expression too big",
            PatternError::TooLarge => "this pattern is larger than what is taken here",
        })
    }
}

impl std::error::Error for PatternError {}

/// Compiles the first line of the data and matches the rest with it. Panics
/// where the translation is not what its target takes.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, text) = text.split_once('\n').unwrap_or((text, ""));
    match Pattern::new(pattern) {
        Ok(compiled) => {
            let _ = compiled.is_match(text);
        }
        Err(PatternError::TooLarge) if pattern.len() <= MAX_PATTERN_BYTES => {
            // The size or the depth may be refused; the syntax may not.
            let error = match translate(pattern) {
                Ok(Translation::Linear(text)) => {
                    regex::Regex::new(&text).err().map(|error| error.to_string())
                }
                Ok(Translation::Backtracking(text)) => {
                    fancy_regex::Regex::new(&text).err().map(|error| error.to_string())
                }
                Err(error) => (error == PatternError::TooLarge).then(|| "too large".to_owned()),
            };
            let size = ["size limit", "nest limit", "nest", "too big", "too large", "too complex"];
            let refused = error.unwrap_or_else(|| "size limit".to_owned());
            assert!(size.iter().any(|word| refused.contains(word)), "{pattern:?}: {refused}");
        }
        Err(_) => {}
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
