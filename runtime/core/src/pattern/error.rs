//! Why a text is no pattern.

use std::fmt;

/// The reason why a text is no pattern. Displayed in the words of
/// `regerror(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// `[` at the end of the pattern.
    Invalid,
    /// `[x` without an end.
    UnmatchedBracket,
    /// `(` without an end.
    UnmatchedParen,
    /// `{` without an end.
    UnmatchedBrace,
    /// `{` with something other than one number or two ascending numbers.
    BadInterval,
    /// A range such as `[z-a]` or `[[:digit:]-z]`.
    BadRange,
    /// An unknown class such as `[[:nothing:]]`.
    BadClass,
    /// A collating element such as `[[.xyz.]]`.
    BadCollation,
    /// `*`, `+`, `?` or `{` with nothing to repeat.
    NothingToRepeat,
    /// A backslash at the end.
    TrailingBackslash,
    /// `\1` before the end of the first group.
    BadBackReference,
    /// A number above 32,767 in `{n,m}`.
    TooBig,
    /// Valid for `regcomp(3)`, but larger or deeper than this module's limits.
    TooLarge,
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
            PatternError::TooLarge => "this pattern is too large or too deeply nested",
        })
    }
}

impl std::error::Error for PatternError {}
