//! temporary
use lalrpop_util::ParseError;

use crate::diag::{Code, Diagnostic};

use super::builder::Stop;
use super::origin::Origin;
use super::token::{Token, TokenAt};

pub struct Explainer<'b> {
    text: &'b str,
    tokens: &'b [TokenAt<'b>],
}

impl<'b> Explainer<'b> {
    pub fn new(text: &'b str, tokens: &'b [TokenAt<'b>]) -> Explainer<'b> {
        Explainer { text, tokens }
    }

    pub fn explain(
        &self,
        error: &ParseError<u32, Token<'_>, Stop>,
        origin: &Origin,
    ) -> Option<Diagnostic> {
        let _ = (self.text, self.tokens, error);
        Some(Diagnostic::error(Code::UnexpectedToken, origin.span(0, 0), "syntax error"))
    }
}

/// `a`, `b` or `c`
pub fn choices<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}
