//! The reasons why a text is not a pattern.

/// The reason why a text is not a pattern. Displayed in the words of
/// `regerror(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// `[` at the end of the pattern.
    #[error("Invalid regular expression")]
    Invalid,
    /// `[x` without an end.
    #[error("Unmatched [, [^, [:, [., or [=")]
    UnmatchedBracket,
    /// `(` without an end.
    #[error("Unmatched ( or \\(")]
    UnmatchedParen,
    /// `{` without an end.
    #[error("Unmatched \\{{")]
    UnmatchedBrace,
    /// `{` with something other than one number or two ascending numbers.
    #[error("Invalid content of \\{{\\}}")]
    BadInterval,
    /// A range such as `[z-a]` or `[[:digit:]-z]`.
    #[error("Invalid range end")]
    BadRange,
    /// An unknown class such as `[[:nothing:]]`.
    #[error("Invalid character class name")]
    BadClass,
    /// A collating element such as `[[.xyz.]]`.
    #[error("Invalid collation character")]
    BadCollation,
    /// `*`, `+`, `?` or `{` with nothing to repeat.
    #[error("Invalid preceding regular expression")]
    NothingToRepeat,
    /// A backslash at the end.
    #[error("Trailing backslash")]
    TrailingBackslash,
    /// `\1` before the end of the first group.
    #[error("Invalid back reference")]
    BadBackReference,
    /// A number above 32,767 in `{n,m}`.
    #[error("Regular expression too big")]
    TooBig,
    /// Valid for `regcomp(3)`, but larger or deeper than this module's limits.
    #[error("this pattern is too large or too deeply nested")]
    TooLarge,
}
