//! Habits that change what an operand is: a host before a metric, wildcards,
//! casts, metrics in quotes.

use crate::diag::{Code, Diagnostic};

use super::super::habits;
use super::super::names::is_metric_name;
use super::super::repair::Repair;
use super::super::token::Token;

impl<'t> Repair<'_, 't> {
    /// The name of a metric, perhaps with a host before it or for more than one.
    pub(in crate::syntax) fn name(&mut self, index: usize, name: &'t str) -> usize {
        let colon = self.touching(index).filter(|next| self.tokens[*next].token == Token::Colon);
        let metric = colon.and_then(|colon| self.touching(colon));
        if let (Some(colon), Some(metric)) = (colon, metric)
            && matches!(self.tokens[metric].token, Token::Name(_))
            && !self.is_in_choice()
        {
            self.report(self.no_host(index, colon));
            return metric;
        }
        if name.ends_with('.')
            && let Some(star) = self.touching(index)
            && self.tokens[star].token == Token::Star
        {
            let span = self.span(index, star);
            self.report(
                Diagnostic::error(
                    Code::UnexpectedToken,
                    span,
                    "names of metrics have no wildcards",
                )
                .label(span, "would be several metrics")
                .help("an expression names each metric that it computes with"),
            );
            return self.blot_out(index, star);
        }
        self.push(Token::Name(name), index, index);
        index + 1
    }

    fn no_host(&self, first: usize, last: usize) -> Diagnostic {
        let span = self.span(first, last);
        Diagnostic::error(Code::UnexpectedToken, span, "an expression chooses no host")
            .label(span, "a host in pmie")
            .help("a definition is evaluated on whatever host it is asked of; leave the host out")
            .fix(span, "")
    }

    /// `metric :host` of pmie.
    pub(in crate::syntax) fn colon(&mut self, index: usize) -> usize {
        let host = self.touching(index).filter(|next| {
            matches!(self.tokens[*next].token, Token::Name(_)) && !self.is_in_choice()
        });
        if let (Some(host), false) = (host, self.operand_is_due()) {
            self.report(self.no_host(index, host));
            return host + 1;
        }
        self.push(Token::Colon, index, index);
        index + 1
    }

    /// `(double) x`
    pub(in crate::syntax) fn parenthesis(&mut self, index: usize) -> usize {
        const TYPES: [&str; 8] =
            ["double", "float", "int", "long", "unsigned", "uint32_t", "uint64_t", "int64_t"];
        let after = self.tokens.get(index + 3).filter(|at| at.token.begins_operand());
        if let (Some(Token::Name(name)), Some(Token::RightParen), Some(after)) =
            (self.at(index + 1), self.at(index + 2), after)
            && TYPES.contains(&name)
        {
            let span = self.span(index, index + 2);
            let error =
                Diagnostic::error(Code::UnexpectedToken, span, "types are not converted by hand")
                    .help("`/` always gives a double, and other types follow from the operands");
            let start = self.tokens[index].start;
            self.report(match after.token {
                Token::Name(operand) if self.at(index + 4) != Some(Token::LeftParen) => {
                    error.fix(self.origin.span(start, after.end), operand)
                }
                _ => error.fix(self.origin.span(start, after.start), ""),
            });
            return index + 3;
        }
        self.push(Token::LeftParen, index, index);
        index + 1
    }

    /// A text where an operand is due, which only another operand beside `==` makes right.
    pub(in crate::syntax) fn text(&mut self, index: usize, text: &'t str) -> usize {
        if self.tokens.len() == 1
            && !is_metric_name(text)
            && habits::is_understood(text, self.language)
        {
            let span = self.span(index, index);
            self.report(
                Diagnostic::error(Code::UnexpectedToken, span, "an expression has no quotes")
                    .help("leave them out")
                    .fix(span, text),
            );
            return self.blot_out(index, index);
        }
        let is_equality = |token| matches!(token, Some(Token::Equal | Token::NotEqual));
        let before = self.before();
        let is_argument = matches!(before, Some(Token::Comma | Token::Assign));
        if self.language.extensions
            || !self.operand_is_due()
            || is_argument
            || is_equality(before)
            || is_equality(self.at(index + 1))
            || !is_metric_name(text)
        {
            self.push(Token::Str(text), index, index);
            return index + 1;
        }
        let span = self.span(index, index);
        self.report(
            Diagnostic::error(Code::UnexpectedToken, span, "a text cannot be an operand")
                .help("metrics are named without quotes")
                .fix(span, text),
        );
        self.blot_out(index, index)
    }
}
