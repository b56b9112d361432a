//! Patterns in wrong places, and slashes inside a pattern.

use crate::diag::{Code, Diagnostic};
use crate::syntax::token::{Invalid, Token, TokenAt};

use super::characters::{Characters, FoundHabit, MAX_TOKENS};

impl<'t> Characters<'_, 't> {
    /// `x =~ "vd.*"`, `x !~ /vd/`
    pub(super) fn no_matching(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let is_mark = self.touches(index, Token::Invalid(Invalid::Character('~')));
        if !is_mark || out.last().is_none_or(|at| at.token.wants_operand()) {
            return None;
        }
        let last = self.pattern_behind(index + 1);
        let mark = self.text_of(index, index + 1);
        let diagnostic = self
            .error(index, index + 1, format!("`{mark}` is no operator: values match no patterns"))
            .help(
                "`matchinst()` chooses instances by a pattern; texts are compared as a whole, by \
                 `==` or `!=`, with extensions",
            );
        // Without the mark, two operands in a row would be reported as well.
        let token = Some(Token::Equal).filter(|_| last == index + 1);
        Some(FoundHabit { diagnostic, last, token })
    }

    /// Last token of a text that other languages match values with. The text follows a mark that
    /// ends at a token. It is a text, a pattern between slashes, or any text without blanks.
    fn pattern_behind(&self, mark: usize) -> usize {
        let first = mark + 1;
        match self.at(first) {
            Some(Token::Slash) => {
                let end = self.following(first, |token| token == Token::Slash);
                let last = end.unwrap_or(self.tokens.len() - 1);
                let is_flag = |next| matches!(self.at(next), Some(Token::Name(_)));
                last + usize::from(self.is_glued(last + 1) && is_flag(last + 1))
            }
            Some(
                Token::Str(_) | Token::Invalid(Invalid::SingleQuoted | Invalid::UnterminatedString),
            ) => first,
            _ => self.run_without_blanks(first).unwrap_or(mark),
        }
    }

    /// Last of the tokens that touch each other, from one token up to the end of an operand. There
    /// may be blanks in parentheses.
    fn run_without_blanks(&self, first: usize) -> Option<usize> {
        let (mut last, mut depth) = (None, 0_usize);
        for (index, at) in self.tokens.iter().enumerate().skip(first).take(MAX_TOKENS) {
            let is_apart = index > first && !self.is_glued(index);
            match at.token {
                Token::LeftParen if depth > 0 || !is_apart => depth += 1,
                Token::RightParen if depth > 0 => depth -= 1,
                _ if depth > 0 => {}
                Token::RightParen | Token::Comma | Token::AndAnd | Token::OrOr => break,
                _ if is_apart => break,
                _ => {}
            }
            last = Some(index);
        }
        last
    }

    /// `/[/]/`
    pub(super) fn slash_in_brackets(&self, index: usize) -> Option<FoundHabit<'t>> {
        let Token::Pattern(pattern) = self.tokens[index].token else { return None };
        let is_open = pattern.rfind('[') > pattern.rfind(']');
        let bracket = Token::Invalid(Invalid::Character(']'));
        let close = self.following(index, |token| token == bracket).filter(|_| is_open)?;
        let last = self.following(close, |token| token == Token::Slash)?;
        let slash = self.tokens[index].end - 1;
        let place = self.origin.span(slash, slash + 1);
        let message = "this `/` ends the pattern, also between brackets";
        let diagnostic = Diagnostic::error(Code::UnexpectedToken, place, message)
            .help("write `\\/` for one that belongs to the pattern")
            .fix(place, "\\/");
        Some(FoundHabit {
            diagnostic,
            last,
            token: Some(Token::Invalid(Invalid::UnterminatedPattern)),
        })
    }
}
