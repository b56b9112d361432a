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

impl TextSubject {
    /// The type of a text in PDUs and archives (1 one line or 2 help, and 4 metric or 8
    /// instance domain), and the identifier of its subject.
    #[doc(hidden)]
    pub const fn to_wire(self, kind: TextKind) -> (u32, u32) {
        let kind = match kind {
            TextKind::OneLine => 1,
            TextKind::Help => 2,
        };
        match self {
            TextSubject::Metric(pmid) => (4 | kind, pmid.0),
            TextSubject::Domain(indom) => (8 | kind, indom.0),
        }
    }

    /// The subject and kind of a text with this type and identifier. `None` for a type
    /// without meaning.
    #[doc(hidden)]
    pub const fn from_wire(text_type: u32, ident: u32) -> Option<(TextSubject, TextKind)> {
        Some(match text_type {
            5 => (TextSubject::Metric(Pmid(ident)), TextKind::OneLine),
            6 => (TextSubject::Metric(Pmid(ident)), TextKind::Help),
            9 => (TextSubject::Domain(InDom(ident)), TextKind::OneLine),
            10 => (TextSubject::Domain(InDom(ident)), TextKind::Help),
            _ => return None,
        })
    }
}
