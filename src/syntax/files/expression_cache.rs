//! A cache of parsed expressions, for texts that are read repeatedly while a
//! user edits them.
//!
//! The key is the expression's text, the places where its lines are joined, and the language.
//! The places in a cached expression move with the text.

use std::sync::Arc;

use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::syntax::origin::Origin;
use crate::syntax::{ParsedExpr, parse_at};
use crate::text::Span;
use crate::text::cache::Remembered;

/// The expressions of one text in one language, from its last parsing.
#[derive(Clone, Debug)]
pub struct ParsedBefore {
    language: Language,
    parsed: Remembered<Parsed>,
}

#[derive(Clone, Debug)]
struct Parsed {
    /// The place in its source.
    origin: Origin,
    expr: ParsedExpr,
    diagnostics: Diagnostics,
}

impl ParsedBefore {
    /// An empty cache.
    pub fn new(language: impl Into<Language>) -> ParsedBefore {
        ParsedBefore { language: language.into(), parsed: Remembered::default() }
    }

    /// The language of the expressions.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Number of expressions parsed so far, for tests.
    pub fn count(&self) -> usize {
        self.parsed.computed()
    }

    /// Removes the expressions that the last reading of the text did not use.
    pub fn end_reading(&mut self) {
        self.parsed.end_reading();
    }

    /// True for a parsed expression without a mistake. Its place and the joints
    /// of its lines do not matter.
    pub(super) fn is_right(&mut self, text: &str) -> bool {
        self.parsed.known(text).is_some_and(|parsed| parsed.expr.error.is_none())
    }

    /// The result of parsing an expression.
    pub(super) fn parse(
        &mut self,
        origin: &Origin,
        text: &str,
        diagnostics: &mut Diagnostics,
    ) -> ParsedExpr {
        let language = self.language;
        let has_form = |parsed: &Parsed| parsed.origin.has_form_of(origin);
        let parsed = self.parsed.get(text, has_form, || {
            let mut diagnostics = Diagnostics::default();
            let expr = parse_at(origin, text, language, None, &mut diagnostics);
            Parsed { origin: origin.clone(), expr, diagnostics }
        });
        if parsed.origin != *origin {
            parsed.move_to(origin);
        }
        diagnostics.extend(parsed.diagnostics.iter().cloned());
        parsed.expr.clone()
    }
}

impl Parsed {
    fn move_to(&mut self, origin: &Origin) {
        let (from, to) = (self.origin.span(0, 0), origin.span(0, 0));
        let moved = |at: u32| at.wrapping_add(to.start).wrapping_sub(from.start);
        let mut visit = |span: &mut Span| {
            *span = Span::new(to.source, moved(span.start), moved(span.end));
        };
        // An owner of the former state keeps it.
        Arc::make_mut(&mut self.expr.expr).each_span(&mut visit);
        for diagnostic in self.diagnostics.since_mut(0) {
            diagnostic.each_span(&mut visit);
        }
        self.origin = origin.clone();
    }
}
