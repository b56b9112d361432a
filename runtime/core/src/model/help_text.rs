//! Which help text of what: the words of a question, not its answer.
//!
//! The same for pmcd, for archives and for the texts of derived metrics.

use super::{InDom, Pmid};

/// Help texts of one subject, as `pmLookupText(3)` tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// One line, without a newline (`PM_TEXT_ONELINE`).
    OneLine,
    /// All there is to say, usually several lines (`PM_TEXT_HELP`).
    Help,
}

/// What a help text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextSubject {
    /// A metric (`pmLookupText(3)`).
    Metric(Pmid),
    /// An instance domain (`pmLookupInDomText(3)`).
    Domain(InDom),
}
