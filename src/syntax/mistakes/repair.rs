//! The repair of a refused text: its tokens, the tokens that the grammar gets in their
//! place, and the reports on the way.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Language;
use crate::syntax::origin::Origin;
use crate::syntax::token::{Invalid, Token, TokenAt};
use crate::text::Span;

use super::call::Verdict;
use super::delimiters::Delimiters;

/// Largest number of reported mistakes of one expression. The parser gives up after as
/// many syntax errors.
pub const MAX_REPORTS: usize = 20;

/// Advice in place of windows of time.
pub(crate) const WINDOWS: &str = "leave it out: `rate()` and `delta()` look back to the sample \
     before, and with extensions `avg_over(x, \"5 min\")` and the like further";

/// A mistake at tokens in the wrong place.
pub(super) fn unexpected(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::UnexpectedToken, span, message)
}

/// The tokens of a refused text, and the mistakes found so far.
pub(super) struct Repair<'r, 't> {
    pub text: &'t str,
    pub tokens: Vec<TokenAt<'t>>,
    pub delimiters: Delimiters,
    pub origin: &'r Origin,
    pub language: Language,
    diagnostics: &'r mut Diagnostics,
    /// Number of `?` so far whose `:` must still follow.
    choices: usize,
    /// True after a `?`.
    pub has_choice: bool,
    /// The tokens for the grammar.
    pub out: Vec<TokenAt<'t>>,
}

impl<'r, 't> Repair<'r, 't> {
    /// Nothing is repaired yet.
    pub fn new(
        text: &'t str,
        tokens: Vec<TokenAt<'t>>,
        origin: &'r Origin,
        language: Language,
        diagnostics: &'r mut Diagnostics,
    ) -> Repair<'r, 't> {
        Repair {
            text,
            delimiters: Delimiters::new(&tokens),
            out: Vec::with_capacity(tokens.len() + 1),
            tokens,
            origin,
            language,
            diagnostics,
            choices: 0,
            has_choice: false,
        }
    }
}

impl<'t> Repair<'_, 't> {
    /// The place of tokens.
    pub fn span(&self, first: usize, last: usize) -> Span {
        self.origin.span(self.tokens[first].start, self.tokens[last].end)
    }

    /// The text of the tokens from `first` to `last`.
    pub fn slice(&self, first: usize, last: usize) -> &'t str {
        &self.text[self.tokens[first].start as usize..self.tokens[last].end as usize]
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports the mistake of a call, which the grammar then does not read.
    pub fn refuse(&mut self, diagnostic: Diagnostic) -> Verdict {
        self.report(diagnostic);
        Verdict::Refused
    }

    /// Removes the reports on the tokens from `first` to `last`, which are part
    /// of a mistake that is reported as a whole.
    pub fn retract(&mut self, first: usize, last: usize) {
        let whole = self.span(first, last);
        self.diagnostics.retain(|one| {
            let at = one.span;
            at.source != whole.source || at.start < whole.start || at.end > whole.end
        });
    }

    /// Continues with other tokens.
    pub fn set_tokens(&mut self, tokens: Vec<TokenAt<'t>>) {
        self.delimiters = Delimiters::new(&tokens);
        self.tokens = tokens;
    }

    /// The previous token that counts.
    pub fn before(&self) -> Option<Token<'t>> {
        self.out.last().map(|at| at.token)
    }

    /// True if an operand must follow the tokens so far.
    pub fn operand_is_due(&self) -> bool {
        self.out.last().is_none_or(|at| at.token.wants_operand())
    }

    pub fn push(&mut self, token: Token<'t>, first: usize, last: usize) {
        let (start, end) = (self.tokens[first].start, self.tokens[last].end);
        match token {
            Token::Question => {
                self.choices += 1;
                self.has_choice = true;
            }
            Token::Colon => self.choices = self.choices.saturating_sub(1),
            _ => {}
        }
        self.out.push(TokenAt { token, start, end });
    }

    /// Replaces the tokens from `first` to `last` by one that needs no further
    /// report. Returns the index after them.
    pub fn blot_out(&mut self, first: usize, last: usize) -> usize {
        self.push(Token::Invalid(Invalid::Refused), first, last);
        last + 1
    }

    /// True if the previous token stands for a reported mistake.
    pub fn ends_in_error(&self) -> bool {
        matches!(self.out.last().map(|at| at.token), Some(Token::Invalid(_)))
    }

    /// The token at an index.
    pub fn at(&self, index: usize) -> Option<Token<'t>> {
        self.tokens.get(index).map(|at| at.token)
    }

    /// Index of the next token if no blank is between.
    pub fn touching(&self, index: usize) -> Option<usize> {
        let next = self.tokens.get(index + 1)?;
        (next.start == self.tokens[index].end).then_some(index + 1)
    }

    /// True between a `?` and its `:`.
    pub fn is_in_choice(&self) -> bool {
        self.choices > 0
    }
}
