//! Calls to write in place of those with wrong arguments, with the user's own
//! arguments in them.
//!
//! [`super::calls`] finds the mistakes. This module suggests the replacements.

use crate::diag::{Diagnostic, Fix};
use crate::dialect::Language;
use crate::syntax::ast::{Aggregate, Callee};
use crate::syntax::keywords;
use crate::syntax::names::is_metric_name;
use crate::syntax::token::Token;

use super::call::{Argument, Call};
use super::habits;
use super::habits::binding::{enclosed, is_comparison};
use super::habits::calls::change_of_aggregate;
use super::repair::Repair;

/// The argument of an aggregate.
const ONE: &str = "it combines the instances of one metric";

/// Longest arguments to write again, in bytes.
const MAX_TEXTS: usize = 120;

impl Call {
    /// The texts of the arguments. Empty if an argument is left out.
    pub(super) fn texts<'t>(&self, repair: &Repair<'_, 't>) -> Vec<&'t str> {
        let text = |argument: &Argument| argument.map(|(first, last)| repair.slice(first, last));
        let texts: Option<Vec<&str>> = self.arguments.iter().map(text).collect();
        texts.unwrap_or_default()
    }

    /// The replacement for an argument that contains the needed name.
    pub(super) fn with_name_inside<'t>(
        &self,
        repair: &Repair<'_, 't>,
        function: Token<'t>,
        error: Diagnostic,
    ) -> Diagnostic {
        let Some((first, last)) = self.arguments.first().copied().flatten() else { return error };
        let token = |index: usize| repair.tokens[index].token;
        let call = repair.span(self.function, self.close);
        // `sum(rate(a))`
        let tokens = &repair.tokens[self.open..=self.close];
        if let Token::Aggregate(_) = function
            && let Some(meant) =
                change_of_aggregate(&self.name, repair.text, tokens, repair.language)
        {
            return error.help(format!("did you mean `{meant}`?")).guess(call, meant);
        }
        match function {
            // `sum(a + b)`
            Token::Aggregate(Aggregate::Sum) if last - first == 2 => {
                match (token(first), token(first + 1), token(last)) {
                    (Token::Name(left), Token::Plus | Token::Minus, Token::Name(right)) => {
                        let op = repair.slice(first + 1, first + 1);
                        let meant = format!("(sum({left}) {op} sum({right}))");
                        error.help(format!("did you mean `{meant}`?")).guess(call, meant)
                    }
                    _ => error,
                }
            }
            // `count(a > 5)`
            Token::Aggregate(Aggregate::Count)
                if (first..=last).any(|index| is_comparison(token(index))) =>
            {
                let text = repair.slice(first, last);
                let meant = if text.len() <= MAX_TEXTS { text } else { "..." };
                error.help(format!(
                    "a comparison is 1 or 0, so with extensions their sum counts: `sum({meant})`"
                ))
            }
            Token::Defined => {
                let metric = (first..=last).find_map(|index| match token(index) {
                    Token::Name(metric) => Some(metric),
                    _ => None,
                });
                let error = match metric {
                    Some(metric) => error
                        .help(format!("did you mean `defined({metric})`?"))
                        .guess(call, format!("defined({metric})")),
                    None => error.help("it tells whether the source has a metric"),
                };
                Diagnostic { labels: Vec::new(), ..error }.label(
                    repair.span(first, last),
                    "an expression; `defined()` asks about a metric",
                )
            }
            _ => error,
        }
    }

    /// The replacement for an aggregate of several values.
    pub(super) fn of_several<'t>(
        &self,
        repair: &Repair<'_, 't>,
        function: Token<'t>,
        error: Diagnostic,
        texts: Vec<&'t str>,
    ) -> Diagnostic {
        if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_TEXTS {
            return error;
        }
        let (Token::Aggregate(aggregate) | Token::Function(_, Callee::Aggregate(aggregate))) =
            function
        else {
            return error;
        };
        let call = repair.span(self.function, self.close);
        if let Some(meant) = over_window(aggregate, &texts) {
            return match repair.language.extensions {
                true => error.help(format!("did you mean `{meant}`?")).guess(call, meant),
                false => {
                    error.help(format!("over a window of time it is `{meant}`, with extensions"))
                }
            };
        }
        if !texts.iter().all(|text| habits::is_understood(text, repair.language)) {
            return error.help(ONE);
        }
        let language = repair.language;
        let Some(meant) = joined(aggregate, &texts, language) else { return error };
        let results = "; both results of a choice have the same type, units and semantics";
        let results = if meant.contains('?') { results } else { "" };
        if !texts.iter().all(|text| is_metric_name(text)) {
            return error.help(format!("{ONE}{results}")).guess(call, meant);
        }
        // Each metric may have other instances, so each is combined before they are joined.
        let of_each: Vec<String> =
            texts.iter().map(|text| format!("{}({text})", self.name)).collect();
        let of_each: Vec<&str> = of_each.iter().map(String::as_str).collect();
        let Some(of_all) = joined(aggregate, &of_each, language) else { return error };
        error
            .help(format!(
                "{ONE}; instance by instance it is `{meant}`, if all have the same instances\
                 {results}"
            ))
            .guess(call, of_all)
    }

    /// The replacement for `max([a, b])`, whose argument stands at a token.
    pub(super) fn of_list<'t>(
        &self,
        repair: &Repair<'_, 't>,
        argument: usize,
        list: &'t str,
    ) -> Diagnostic {
        let error = self.error(repair, Some((argument, argument)), "there are no lists".to_owned());
        let texts = list.split(',').map(str::trim).collect();
        self.of_several(repair, repair.tokens[self.function].token, error, texts)
    }

    /// The report on `matchinst(EXPR, /PATTERN/)`.
    pub(super) fn pattern_last(&self, repair: &Repair<'_, '_>) -> Option<Diagnostic> {
        let [Some((first, last)), Some((start, end))] = self.arguments.as_slice() else {
            return None;
        };
        let (value, pattern) = (repair.slice(*first, *last), repair.slice(*start, *end));
        let is_pattern = pattern.len() > 2
            && pattern.trim_start_matches('!').starts_with('/')
            && pattern.ends_with('/');
        // A text or a word may be meant as a pattern.
        let meant = match repair.tokens[*start].token {
            Token::Str(text) if start == end => Some(text),
            Token::Name(word) if start == end && !word.contains('.') => Some(word),
            _ => None,
        };
        let is_text = matches!(repair.tokens[*start].token, Token::Str(_));
        let is_metric = matches!(repair.tokens[*first].token,
            Token::Name(name) if is_text && first == last || name.contains('.'));
        let meant = meant.filter(|text| !is_pattern && is_metric && !text.contains('/'));
        let slashed = meant.map(|text| format!("/{text}/"));
        if !is_pattern && slashed.is_none()
            || value.starts_with(['/', '!', '"', '\''])
            || value.len() + pattern.len() > 120
        {
            return None;
        }
        let message = format!("`{}()` begins with its pattern", self.name);
        let fixed = format!("{}, {value}", slashed.as_deref().unwrap_or(pattern));
        let error = self
            .error(repair, Some((*start, *end)), message)
            .label(repair.span(*start, *end), "comes first")
            .help("the pattern stands before the expression");
        let whole = repair.span(*first, *end);
        Some(error.edit(Fix { span: whole, text: fixed, is_certain: is_pattern }))
    }
}

/// The replacement for an aggregate of a value and a window of time.
fn over_window(aggregate: Aggregate, texts: &[&str]) -> Option<String> {
    let [value, window] = texts else { return None };
    let window = habits::window_in_quotes(window)?;
    let name = match aggregate {
        Aggregate::Avg => "avg_over",
        Aggregate::Max => "max_over",
        Aggregate::Min => "min_over",
        _ => return None,
    };
    Some(format!("{name}({value}, \"{window}\")"))
}

/// The replacement for an aggregate of these values.
fn joined(aggregate: Aggregate, texts: &[&str], language: Language) -> Option<String> {
    let sign = match aggregate {
        Aggregate::Sum | Aggregate::Avg => Token::Plus,
        _ => Token::Greater,
    };
    let enclosed = |text: &&str| enclosed(text, Some(sign), Some(sign), language);
    let texts: Vec<String> = texts.iter().map(enclosed).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Some(match (aggregate, texts.as_slice()) {
        (Aggregate::Sum, [_, _, ..]) => format!("({})", texts.join(" + ")),
        (Aggregate::Avg, [_, _, ..]) => format!("({}) / {}", texts.join(" + "), texts.len()),
        (Aggregate::Max, [_, _] | [_, _, _]) => utmost(&texts, ">"),
        (Aggregate::Min, [_, _] | [_, _, _]) => utmost(&texts, "<"),
        _ => return None,
    })
}

/// The greatest or least of some values, by choices between two.
fn utmost(texts: &[&str], sign: &str) -> String {
    match texts {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, second] => format!("({first} {sign} {second} ? {first} : {second})"),
        [first, rest @ ..] => {
            let rest = utmost(rest, sign);
            format!("({first} {sign} {rest} ? {first} : {rest})")
        }
    }
}

/// A pattern without slashes, or between other marks, rewritten with slashes.
pub(super) fn pattern_meant(text: &str) -> Option<String> {
    let inside = text.trim_matches(|mark| matches!(mark, '|' | '#' | '~' | '@' | '%'));
    // A pattern of file names.
    if let Some(end) = inside.strip_prefix('*') {
        let pattern = end.strip_suffix('*').map_or_else(|| format!("{end}$"), str::to_owned);
        return pattern_meant(&pattern).filter(|_| !end.is_empty());
    }
    // A pattern matches anywhere in a name, unless it is anchored.
    let inside = match inside.strip_suffix(".*") {
        Some(start) if !start.starts_with('^') => format!("^{start}"),
        Some(start) => start.to_owned(),
        None => inside.to_owned(),
    };
    let is_pattern = !inside.is_empty()
        && inside.len() <= 60
        && inside.chars().all(|c| c.is_ascii_alphanumeric() || "_-.*+?^$[]".contains(c));
    is_pattern.then(|| format!("/{inside}/"))
}

/// True for letters directly behind a pattern.
pub(super) fn is_flag(repair: &Repair<'_, '_>, index: usize) -> bool {
    let at = repair.tokens[index];
    at.start == repair.tokens[index - 1].end && matches!(at.token, Token::Name(_))
}

/// A pattern that ignores case, if it is a plain one.
pub(super) fn any_case(pattern: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "^$._- *+?".contains(c);
    if pattern.len() > 32 || !pattern.chars().all(is_plain) {
        return None;
    }
    let both = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    Some(pattern.chars().map(both).collect())
}

/// The keyword that is missing before its value.
pub(super) fn keyword_of(repair: &Repair<'_, '_>, index: usize) -> Option<&'static str> {
    match repair.tokens[index].token {
        Token::Str(text) if keywords::units(text, repair.language.dialect).is_ok() => Some("units"),
        Token::Name(word) if keywords::value_type(word).is_some() => Some("type"),
        Token::Name(word) if keywords::semantics(word).is_some() => Some("semantics"),
        _ => None,
    }
}
