//! The kinds and subjects of help texts: the parts of a question, not its
//! answer.
//!
//! pmcd, archives and the texts of derived metrics use the same ones.

use super::{InDom, Pmid};

/// The two help texts of a subject (`pmLookupText(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// One line, without a newline (`PM_TEXT_ONELINE`).
    OneLine,
    /// The full text, usually several lines (`PM_TEXT_HELP`).
    Help,
}

/// The subject of a help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextSubject {
    /// A metric (`pmLookupText(3)`).
    Metric(Pmid),
    /// An instance domain (`pmLookupInDomText(3)`).
    Domain(InDom),
}
