//! Habits that change the kind of an operand: a host before a metric, wildcards, casts, metrics in
//! quotes.

use crate::diag::Diagnostic;
use crate::syntax::names::is_metric_name;
use crate::syntax::token::{Token, TokenAt};
use crate::text::Span;

use super::super::habits;
use super::super::lexical::without_quotes;
use super::super::repair::{Repair, unexpected};
use super::calls::{self, Advice};

impl<'t> Repair<'_, 't> {
    /// The name of a metric, perhaps with a host before it or for more than one.
    pub(in crate::syntax) fn name(&mut self, index: usize, name: &'t str) -> usize {
        let colon = self.touching(index).filter(|next| self.tokens[*next].token == Token::Colon);
        let metric = colon.and_then(|colon| self.touching(colon));
        if let (Some(colon), Some(metric)) = (colon, metric)
            && matches!(self.tokens[metric].token, Token::Name(_))
            && !self.is_in_choice()
        {
            return self.with_colon(index, name, colon, metric);
        }
        if name.ends_with('.')
            && let Some(star) = self.touching(index)
            && self.tokens[star].token == Token::Star
        {
            let span = self.span(index, star);
            self.report(
                unexpected(span, "names of metrics have no wildcards")
                    .label(span, "would be several metrics")
                    .help("an expression names each metric that it computes with"),
            );
            return self.blot_out(index, star);
        }
        self.push(Token::Name(name), index, index);
        index + 1
    }

    /// `host:metric`, or an instance or a host behind the metric.
    fn with_colon(&mut self, index: usize, name: &'t str, colon: usize, other: usize) -> usize {
        let another = self.touching(other).filter(|next| self.tokens[*next].token == Token::Colon);
        if let Some(end) = another.and_then(|colon| self.touching(colon)) {
            self.report(self.no_host(index, end));
            return self.blot_out(index, end);
        }
        let right = self.slice(other, other);
        match (name.contains('.'), right.contains('.')) {
            (true, false) => {
                let span = self.span(colon, other);
                let message = "`:` chooses neither an instance nor a host";
                self.report(
                    unexpected(span, message)
                        .help("an instance stands in brackets, and no host in a definition")
                        .guess(span, format!("[{right}]")),
                );
                self.push(Token::Name(name), index, index);
                self.push(Token::Instance(right), colon, other);
                other + 1
            }
            _ => {
                let span = self.span(index, colon);
                self.report(self.no_host(index, colon).guess(span, ""));
                other
            }
        }
    }

    fn no_host(&self, first: usize, last: usize) -> Diagnostic {
        let span = self.span(first, last);
        unexpected(span, "an expression chooses no host")
            .label(span, "a host in pmie")
            .help("a definition is evaluated on whatever host it is asked of; leave the host out")
    }

    /// `metric :host` of pmie.
    pub(in crate::syntax) fn colon(&mut self, index: usize) -> usize {
        let host = self.touching(index).filter(|next| {
            matches!(self.tokens[*next].token, Token::Name(_)) && !self.is_in_choice()
        });
        if let (Some(host), false) = (host, self.operand_is_due()) {
            let span = self.span(index, host);
            self.report(self.no_host(index, host).guess(span, ""));
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
            let error = unexpected(self.span(index, index + 2), "types are not converted by hand");
            let end = self.operand_end(index + 3);
            let operand = match after.token {
                Token::LeftParen if end > index + 4 => self.slice(index + 4, end - 1),
                _ => self.slice(index + 3, end),
            };
            let is_double = matches!(name, "double" | "float");
            let whole = calls::advise("int", &[operand], self.language).filter(|_| !is_double);
            self.report(match whole {
                Some(Advice { note, write, .. }) => match write {
                    Some(text) => error.help(note).guess(self.span(index, end), text),
                    None => error.help(note),
                },
                None => error
                    .help("`/` always gives a double, and other types follow from the operands")
                    .guess(self.origin.span(self.tokens[index].start, after.start), ""),
            });
            return index + 3;
        }
        self.push(Token::LeftParen, index, index);
        index + 1
    }

    /// Last token of the operand that begins at a token: a call, parentheses, or one token.
    fn operand_end(&self, first: usize) -> usize {
        let close = |open| self.delimiters.close_of(open);
        close(first).or_else(|| close(first + 1)).unwrap_or(first)
    }

    /// A text in place of an operand. Only another operand beside `==` makes it right.
    pub(in crate::syntax) fn text(&mut self, index: usize, text: &'t str) -> usize {
        if self.tokens.len() == 1
            && !is_metric_name(text)
            && habits::is_understood(text, self.language)
        {
            let span = self.span(index, index);
            self.report(
                unexpected(span, "an expression has no quotes")
                    .help("leave them out")
                    .fix(span, text),
            );
            return self.blot_out(index, index);
        }
        let is_equality = |token| matches!(token, Some(Token::Equal | Token::NotEqual));
        let before = self.before();
        if is_text_branch(text, before, self.at(index + 1)) {
            if let Some(told) = text_in_choice(&self.out, self.has_choice, self.span(index, index))
            {
                self.report(told);
            }
            return self.blot_out(index, index);
        }
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
        let error = unexpected(span, "a text cannot be an operand");
        self.report(without_quotes(error, span, text));
        self.blot_out(index, index)
    }
}

/// True for a text between these tokens that is a branch of a choice. A text with a
/// point in it is rather the name of a metric.
pub(in crate::syntax) fn is_text_branch(
    text: &str,
    before: Option<Token<'_>>,
    after: Option<Token<'_>>,
) -> bool {
    matches!(before, Some(Token::Question | Token::Colon))
        && !matches!(after, Some(Token::Equal | Token::NotEqual))
        && !text.contains('.')
}

/// The mistake of a text as a branch of a choice behind these tokens, if there is a `?`
/// among them. One report is enough for both branches, and one for a `:` without its `?`.
pub(in crate::syntax) fn text_in_choice(
    before: &[TokenAt<'_>],
    has_choice: bool,
    span: Span,
) -> Option<Diagnostic> {
    let mut before = before.iter().rev().map(|at| at.token);
    let is_second = before.next() == Some(Token::Colon);
    if is_second && (!has_choice || matches!(before.next(), Some(Token::Invalid(_)))) {
        return None;
    }
    let error = unexpected(span, "a text cannot be a branch of `?:`");
    Some(error.help(
        "values are numbers, such as 1 and 0; a text is only compared, by `==` or `!=`, \
         with extensions",
    ))
}
