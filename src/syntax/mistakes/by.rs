//! Mistakes in `by (label, ...)`, which may follow the call of an aggregate.
//!
//! This module looks at tokens only, as [`super::calls`] does for arguments. It
//! reports a wrong `by` and removes it; the grammar then reads the call without
//! it.

use crate::diag::{Code, Diagnostic};
use crate::functions;
use crate::syntax::ast::{Aggregate, MAX_LABELS};
use crate::syntax::token::Token;

use super::repair::Repair;
use super::suggest::choices;

const EXAMPLE: &str = "as in `sum(shop.requests) by (rack, dc)`";

/// Checks the `by` at `index`; returns the index of the next token to read.
pub(super) fn check(repair: &mut Repair<'_, '_>, index: usize) -> usize {
    let (last, wrong) = labels(repair, index);
    let wrong = not_an_aggregate(repair, index, last).or(wrong);
    if let Some(diagnostic) = wrong {
        repair.report(diagnostic);
        return last + 1;
    }
    if repair.ends_in_error() {
        return last + 1;
    }
    for at in index..=last {
        let token = repair.tokens[at].token;
        repair.push(token, at, at);
    }
    last + 1
}

/// Reports `sum by (rack) (x)` and `x by (rack)`, whose `by` stands at `index`;
/// returns the index of the next token to read. `None` if no name stands before
/// it.
pub(super) fn before_arguments(repair: &mut Repair<'_, '_>, index: usize) -> Option<usize> {
    let name = index.checked_sub(1)?;
    let Token::Name(function) = repair.tokens[name].token else { return None };
    let close = repair.delimiters.close_of(index + 1)?;
    let span = repair.span(index, close);
    if !aggregates().any(|known| known == function) {
        let message = format!("`by` cannot follow the metric `{function}`");
        repair.report(Diagnostic::error(Code::MisplacedBy, span, message).help(EXAMPLE));
        return Some(close + 1);
    }
    let message = "`by` comes after the arguments";
    let mut diagnostic = Diagnostic::error(Code::MisplacedBy, span, message).help(EXAMPLE);
    let arguments = repair.delimiters.pair(close + 1).and_then(|pair| pair.close);
    if let Some(end) = arguments {
        let (labels, arguments) = (repair.slice(index, close), repair.slice(close + 1, end));
        if labels.len() + arguments.len() <= 160 {
            let meant = format!("{function}{arguments} {labels}");
            diagnostic = diagnostic.fix(repair.span(name, end), meant);
        }
    }
    repair.report(diagnostic);
    Some(repair.blot_out(index, arguments.unwrap_or(close)))
}

/// Functions that `by` may follow.
fn aggregates() -> impl Iterator<Item = &'static str> {
    let own = functions::functions().filter(|function| function.takes_by);
    Aggregate::ALL.into_iter().map(Aggregate::name).chain(own.map(|function| function.name))
}

/// The mistake in the tokens before the `by`.
fn not_an_aggregate(repair: &Repair<'_, '_>, index: usize, last: usize) -> Option<Diagnostic> {
    let before = index.checked_sub(1)?;
    let Token::RightParen = repair.tokens[before].token else { return None };
    let (open, function) = repair.delimiters.call_before(&repair.tokens, before)?;
    let first = function.unwrap_or(open);
    match repair.tokens[first].token {
        Token::Function(_, callee) if callee.takes_by() => return None,
        // An unknown function is reported as such.
        Token::Name(_) if function.is_some() => return None,
        _ => {}
    }
    let message = match function {
        Some(function) => format!("`by` cannot follow `{}()`", repair.slice(function, function)),
        None => "`by` follows a parenthesis that is no call".to_owned(),
    };
    let label = match function {
        Some(_) => "this function does not take hosts together",
        None => "`by` stands directly behind the arguments of an aggregate",
    };
    let help = format!("`by` groups what {} take together, {EXAMPLE}", choices(aggregates()));
    let span = repair.span(index, last);
    Some(
        Diagnostic::error(Code::MisplacedBy, span, message)
            .label(repair.span(first, before), label)
            .help(help),
    )
}

/// Last token of the `by` at `index`, and the mistake in its labels.
fn labels(repair: &Repair<'_, '_>, index: usize) -> (usize, Option<Diagnostic>) {
    let error = |first: usize, last: usize, message: String| {
        Diagnostic::error(Code::MisplacedBy, repair.span(first, last), message)
    };
    let at = |index: usize| repair.tokens.get(index).map(|at| at.token);
    if at(index + 1) != Some(Token::LeftParen) {
        let mut last = index;
        while let Some(Token::Name(_)) = at(last + 1) {
            last += 1;
            if at(last + 1) == Some(Token::Comma) && matches!(at(last + 2), Some(Token::Name(_))) {
                last += 1;
            }
        }
        let message = "the labels of `by` stand in parentheses".to_owned();
        let diagnostic = error(index, last, message).help(EXAMPLE);
        if last == index {
            return (last, Some(diagnostic));
        }
        let fixed = format!("({})", repair.slice(index + 1, last));
        return (last, Some(diagnostic.fix(repair.span(index + 1, last), fixed)));
    }
    let Some((close, commas)) = repair
        .delimiters
        .pair(index + 1)
        .and_then(|pair| Some((pair.close?, pair.commas.as_slice())))
    else {
        // An earlier pass has closed the parentheses.
        return (repair.tokens.len() - 1, None);
    };
    let mut first = index + 2;
    let mut known: Vec<&str> = Vec::new();
    for end in commas.iter().copied().chain([close]) {
        let wrong = match (end - first, at(first)) {
            (0, _) if commas.is_empty() => {
                let message = "`by` names no label".to_owned();
                let help = format!("{EXAMPLE}; without `by` all hosts are one group");
                Some(error(index + 1, close, message).help(help))
            }
            (0, _) => {
                let message = "a label is missing".to_owned();
                let label = "write the name of a label here";
                let place = repair.span(end, end);
                Some(error(end, end, message).label(place, label).help(EXAMPLE))
            }
            (1, Some(Token::Name(name))) if known.contains(&name) => {
                Some(error(first, first, format!("the label `{name}` comes twice")))
            }
            (1, Some(Token::Name(_))) if known.len() == MAX_LABELS => {
                Some(error(first, first, format!("`by` takes {MAX_LABELS} labels at most")))
            }
            (1, Some(Token::Name(name))) => {
                known.push(name);
                None
            }
            (1, Some(Token::Str(text))) => {
                let error = error(first, first, "labels are named without quotes".to_owned());
                let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                Some(match is_word {
                    true => error.fix(repair.span(first, first), text),
                    false => error,
                })
            }
            _ => {
                let message = "`by` takes names of labels".to_owned();
                Some(error(first, end - 1, message).help(EXAMPLE))
            }
        };
        if wrong.is_some() {
            return (close, wrong);
        }
        first = end + 1;
    }
    (close, None)
}
