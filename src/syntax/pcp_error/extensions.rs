//! The walk over syntax that libpcp does not have: texts as operands, and literal arguments.
//!
//! It serves only texts that libpcp refuses. If it refuses the text as well,
//! the words of the first refusal stand.

use crate::syntax::arguments::{self, NumberKind};
use crate::syntax::ast::MAX_LABELS;
use crate::syntax::token::Token;

use super::{Finder, Found, Words};

impl Finder<'_> {
    /// True for a text with `==` or `!=` on one side and no text beyond it. The
    /// comparison accepts it as an operand.
    pub(super) fn text_may_stand(&self) -> bool {
        let at = |index: Option<usize>| Some(self.tokens.get(index?)?.token);
        let before = |count: usize| at(self.next.checked_sub(count));
        let after = |count: usize| at(self.next.checked_add(count));
        let is_equality = |token| matches!(token, Some(Token::Equal | Token::NotEqual));
        let is_text = |token| matches!(token, Some(Token::Str(_)));
        if is_equality(before(1)) {
            let other_leads = is_text(before(2)) && !is_equality(before(3));
            let tighter = [Token::Plus, Token::Minus, Token::Star, Token::Slash];
            return !other_leads && !after(1).is_some_and(|token| tighter.contains(&token));
        }
        let relation_begins = matches!(
            before(1),
            None | Some(
                Token::LeftParen
                    | Token::Comma
                    | Token::Question
                    | Token::Colon
                    | Token::AndAnd
                    | Token::OrOr
                    | Token::Bang
            )
        );
        relation_begins && is_equality(after(1)) && !is_text(after(2))
    }

    /// `NUMBER ,` of a `topk()` and the like
    pub(super) fn leading_number(&mut self, wanted: NumberKind) -> Found<()> {
        let is_number = |token| matches!(token, Token::Integer(_) | Token::Double(_));
        let number = self.expect(is_number, Words::Open)?;
        if let Token::Integer(text) | Token::Double(text) = number
            && wanted.read(text).is_err()
        {
            return self.fail_open();
        }
        self.expect(|token| token == Token::Comma, Words::Open)?;
        Ok(())
    }

    /// `( NAME , ... )` of a `by`
    pub(super) fn labels(&mut self) -> Found<()> {
        self.expect(|token| token == Token::LeftParen, Words::Open)?;
        let first = self.next;
        loop {
            let label = self.expect(|token| matches!(token, Token::Name(_)), Words::Open)?;
            let earlier = &self.tokens[first..self.next - 1];
            if earlier.iter().any(|at| at.token == label) || earlier.len() >= 2 * MAX_LABELS {
                return self.fail_open();
            }
            let is_end = |token| matches!(token, Token::Comma | Token::RightParen);
            if self.expect(is_end, Words::Open)? == Token::RightParen {
                return Ok(());
            }
        }
    }

    /// `STRING )` of an `avg_over()` and the like
    pub(super) fn interval(&mut self) -> Found<()> {
        let string = self.expect(|token| matches!(token, Token::Str(_)), Words::Open)?;
        self.expect(|token| token == Token::RightParen, Words::Open)?;
        match string {
            Token::Str(text) if arguments::interval(text).is_ok() => Ok(()),
            _ => self.fail_open(),
        }
    }
}
