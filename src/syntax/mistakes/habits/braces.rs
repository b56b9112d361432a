//! Braces of other languages: label matchers, an instance, arguments, a group.

use super::super::unknown_calls::synonym;
use super::calls::{self, Advice, is_window};
use super::characters::{Characters, FoundHabit};
use super::is_understood;
use super::matchers::{Matcher, matchers};
use crate::syntax::ast::Aggregate;
use crate::syntax::lexer;
use crate::syntax::names::is_metric_name;
use crate::syntax::token::{Invalid, Token, TokenAt};

impl<'t> Characters<'_, 't> {
    /// `{device="vda"}`
    pub(super) fn matchers(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let end = |token: Token<'_>| token == Token::Invalid(Invalid::Character('}'));
        let last = self.following(index, end)?;
        let inside = self.slice(self.tokens[index].end, self.tokens[last].start);
        let braces = self.span(index, last);
        let is_due = out.last().is_none_or(|at| at.token.wants_operand());
        // Behind a metric or a call, it may be an instance.
        let is_group = match out.last().map(|at| at.token) {
            Some(Token::Name(_)) => false,
            _ => is_due || inside.contains('.'),
        };
        if is_group && is_understood(inside, self.language) {
            let is_alone = self.at(last + 1).is_none_or(|next| {
                !next.begins_operand() && next != Token::Invalid(Invalid::Character('{'))
            });
            let error = self.error(index, last, "braces group nothing");
            let diagnostic = match is_due {
                true if is_alone => {
                    error.help("group with parentheses").fix(braces, format!("({inside})"))
                }
                true => error.help("group with parentheses"),
                false => error.help(
                    "an expression is grouped by parentheses, and an instance stands in brackets \
                     behind the name of a metric",
                ),
            };
            let token = Some(Token::Invalid(Invalid::Refused));
            return Some(FoundHabit { diagnostic, last, token });
        }
        let Some(matchers) = matchers(inside) else {
            return self.instance_in_braces(index, last, out);
        };
        let message = "label matchers are PromQL's; here instances are chosen by their names";
        let error = self.error(index, last, message);
        // A window of time behind them goes, too.
        let has_window = self.is_glued(last + 1) && self.at(last + 1).is_some_and(is_window);
        let last = if has_window { last + 1 } else { last };
        let braces = self.span(index, last);
        let metric = out.last().and_then(|at| match at.token {
            Token::Name(name) => Some((name, at.start)),
            _ => None,
        });
        let aggregate = match out {
            [.., call, open, _] if open.token == Token::LeftParen => match call.token {
                Token::Aggregate(aggregate) => Some(aggregate),
                _ => None,
            },
            _ => None,
        };
        let diagnostic = match (metric, matchers.as_slice()) {
            (_, []) => error.help("leave the braces out").fix(braces, ""),
            (Some((name, _)), _) if aggregate.is_some() => {
                let aggregate = aggregate.map_or("", Aggregate::name);
                error.help(format!(
                    "`{aggregate}()` takes all instances of a metric; choose one without it, as in \
                     `{name}[NAME]`"
                ))
            }
            (Some((_, _)), [Matcher { op: "=", value, .. }]) if !value.contains([']', '\\']) => {
                let meant = format!("[{value}]");
                error.help(format!("did you mean the instance `{meant}`?")).guess(braces, meant)
            }
            (Some((name, start)), [matcher]) => match matcher.call(name) {
                Some(call) => {
                    let whole = self.origin.span(start, self.tokens[last].end);
                    error.help(format!("did you mean `{call}`?")).guess(whole, call)
                }
                None => error.help(choosing(name)),
            },
            (Some((name, _)), _) => error.help(choosing(name)),
            (None, [Matcher { label: "__name__", op: "=", value }])
                if is_due && is_metric_name(value) && is_understood(value, self.language) =>
            {
                let token = Some(Token::Name(value));
                let diagnostic = error.help("a metric is its name").guess(braces, *value);
                return Some(FoundHabit { diagnostic, last, token });
            }
            (None, _) => error.help(choosing("disk.dev.read")),
        };
        Some(FoundHabit { diagnostic, last, token: None })
    }

    /// `{vda}`, or an argument between braces
    fn instance_in_braces(
        &self,
        index: usize,
        last: usize,
        out: &[TokenAt<'t>],
    ) -> Option<FoundHabit<'t>> {
        let inside = self.slice(self.tokens[index].end, self.tokens[last].start).trim();
        let is_name = |c: char| c.is_alphanumeric() || "_-.:/ ".contains(c);
        let Some(&TokenAt { token: Token::Name(name), start, .. }) = out.last() else {
            return None;
        };
        if inside.is_empty() || !inside.chars().all(is_name) {
            return None;
        }
        let whole = self.origin.span(start, self.tokens[last].end);
        let no_call = self.error(index, last, "braces hold no arguments");
        let function = synonym(name).unwrap_or(name);
        let diagnostic = match calls::advise(function, &[inside], self.language) {
            _ if lexer::function(function, self.language).is_some() => {
                let (error, meant) =
                    (no_call.help("a call has parentheses"), format!("{function}({inside})"));
                match is_understood(&meant, self.language) {
                    true => error.guess(whole, meant),
                    false => error,
                }
            }
            Some(Advice { write: Some(text), .. }) => {
                no_call.help("a call has parentheses").guess(whole, text)
            }
            Some(Advice { note, .. }) => no_call.help(note),
            None => self
                .error(index, last, "braces choose no instance")
                .help("an instance stands in brackets")
                .guess(self.span(index, last), format!("[{inside}]")),
        };
        Some(FoundHabit { diagnostic, last, token: Some(Token::Instance(inside)) })
    }
}

fn choosing(metric: &str) -> String {
    format!("choose instances by `{metric}[NAME]` or `matchinst(/PATTERN/, {metric})`")
}
