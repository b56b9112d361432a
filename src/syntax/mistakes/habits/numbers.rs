//! Numbers with percentages, in groups of digits, or with units behind them.

use crate::diag::{Diagnostic, Fix};
use crate::functions;
use crate::syntax::token::{Token, TokenAt};

use super::super::lexical::as_double;
use super::super::repair::unexpected;
use super::binding::{self, is_looser_than_product};
use super::characters::{Characters, FoundHabit, MAX_TOKENS, innermost};
use super::of_number;

impl<'t> Characters<'_, 't> {
    /// A number with units behind it. The tokens go from the first to the last.
    pub fn number_with_units(
        &self,
        (first, last): (usize, usize),
        number: &str,
        units: &str,
        out: &[TokenAt<'t>],
    ) -> Diagnostic {
        let whole = self.span(first, last);
        let message = "units do not stand behind a number";
        let error = unexpected(whole, message);
        let spelling = self.text_of(first, last);
        let letter = spelling.strip_prefix(number).unwrap_or_default().trim();
        if let Some(written) = in_full(number, letter) {
            return error
                .help(format!(
                    "numbers have no multipliers; if bytes are meant, convert the metric: \
                     `rescale(NAME, \"{units}\")`"
                ))
                .guess(whole, written);
        }
        let is_argument = out.last().is_some_and(|at| at.token == Token::Comma);
        match self.function_around(out).filter(|_| is_argument) {
            Some(function) if function.ends_with("_over") => {
                let text = format!("\"{number} {units}\"");
                return error.help("a window of time is a text").guess(whole, text);
            }
            // The call says that it takes no window.
            Some("rate" | "delta") => return Diagnostic { is_consequence: true, ..error },
            _ => {}
        }
        let beside = [out.last().map(|at| at.token), self.at(last + 1)];
        if !beside.into_iter().flatten().any(binding::is_comparison) {
            return error
                .help("`mkconst()` gives a number its units")
                .guess(whole, format!("mkconst({number}, units=\"{units}\")"));
        }
        // rescale() of a whole number is a whole number.
        let example = format!("`rescale(NAME / 1, \"{units}\") > {number}`");
        let no_edit = error
            .clone()
            .help(format!("a comparison does not convert; convert the metric, as in {example}"));
        let (metric, sign, before) = match out {
            [metric, sign] => (metric, sign, None),
            [.., before, metric, sign] => (metric, sign, Some(before.token)),
            _ => return no_edit,
        };
        let is_alone = before.is_none_or(|before| {
            before.wants_operand() && !binding::is_tight(before) && before != Token::Comma
        });
        match metric.token {
            Token::Name(name) if binding::is_comparison(sign.token) && is_alone => {
                let sign = self.slice(metric.end, self.tokens[first].start);
                let place = self.origin.span(metric.start, self.tokens[last].end);
                error
                    .help("a comparison does not convert; convert the metric, where `/ 1` keeps fractions")
                    .guess(place, format!("rescale({name} / 1, \"{units}\"){sign}{number}"))
            }
            _ => no_edit,
        }
    }

    /// The name before the innermost open parenthesis, if it is a function's.
    fn function_around(&self, out: &[TokenAt<'t>]) -> Option<&'t str> {
        let at = out.get(innermost(out)?.checked_sub(1)?)?;
        let name = self.slice(at.start, at.end);
        (at.token.is_function() || functions::named(name).is_some()).then_some(name)
    }

    /// `90%`; a remainder where an operand follows.
    pub(super) fn percent(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let before = out.last()?;
        if self.at(index + 1).is_some_and(Token::begins_operand) {
            let right = self.tokens[index + 1];
            let is_simple =
                |token| matches!(token, Token::Name(_) | Token::Integer(_) | Token::Double(_));
            let diagnostic = self.error(index, index, "there is no operator for remainders");
            let (a, b) = match is_simple(before.token) && is_simple(right.token) {
                true => (self.slice(before.start, before.end), self.slice(right.start, right.end)),
                false => ("a", "b"),
            };
            let meant = format!("{a} - {b} * floor({a} / {b})");
            let diagnostic = diagnostic.help(format!("with extensions it is `{meant}`"));
            let whole = self.origin.span(before.start, right.end);
            let is_whole = is_simple(before.token)
                && is_simple(right.token)
                && out.iter().rev().nth(1).is_none_or(|at| is_loose(at.token))
                && self
                    .at(index + 2)
                    .is_none_or(|token| is_loose(token) || token == Token::RightParen);
            let diagnostic = match self.language.extensions && is_whole {
                true => diagnostic.guess(whole, format!("({meant})")),
                false => diagnostic,
            };
            let token = Some(Token::Star);
            return Some(FoundHabit { diagnostic, last: index, token });
        }
        if matches!(before.token, Token::Name(_) | Token::RightParen) {
            let diagnostic = self
                .error(index, index, "`%` is no operator")
                .help("a percentage is a plain number; leave `%` out")
                .guess(self.span(index, index), "");
            return Some(FoundHabit { diagnostic, last: index, token: None });
        }
        let (Token::Integer(number) | Token::Double(number)) = before.token else { return None };
        let share = number.parse::<f64>().ok()? / 100.0;
        let diagnostic = self
            .error(index, index, "numbers have no `%`")
            .help(format!("for values in percent write `{number}`, for a ratio `{share}`"))
            .guess(self.span(index, index), "");
        Some(FoundHabit { diagnostic, last: index, token: None })
    }

    /// `0,5` and `1,000,000`, unless the comma separates arguments.
    pub(super) fn with_commas(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let mut last = index;
        while last - index < MAX_TOKENS
            && self.touches(last, Token::Comma)
            && self.is_glued(last + 2)
            && matches!(self.at(last + 2), Some(Token::Integer(_)))
        {
            last += 2;
        }
        if last == index {
            return None;
        }
        let before = innermost(out).and_then(|open| open.checked_sub(1));
        let is_call = before.is_some_and(|before| out[before].token.may_be_called());
        if is_call {
            return None;
        }
        let whole = self.span(index, last);
        let spelling = self.text_of(index, last);
        let groups: Vec<&str> = spelling.split(',').collect();
        let joined = groups.concat();
        let token = Some(Token::Integer("0"));
        let error = |message: &str| unexpected(whole, message);
        let of_three = groups[1..].iter().all(|group| group.len() == 3);
        let diagnostic = match (of_three, groups.as_slice()) {
            (true, [_, part]) if groups[0] != "0" => {
                let number = groups[0];
                error("numbers have no commas")
                    .help(format!("write `{joined}`, or `{number}.{part}` for a fraction"))
            }
            (true, [_, _, _, ..]) => {
                error("digits are not grouped").help("numbers have no commas").fix(whole, joined)
            }
            (_, [number, part]) => {
                let is_list = out.last().is_some_and(|at| at.token == Token::Comma)
                    || self.at(last + 1) == Some(Token::Comma);
                let text = format!("{number}.{part}");
                let fix = Fix { span: whole, text, is_certain: !is_list };
                error("a fraction has a point, not a comma").edit(fix)
            }
            _ => return None,
        };
        Some(FoundHabit { diagnostic, last, token })
    }

    /// `10 Mbyte`
    pub(super) fn with_unit(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let Some(Token::Name(word)) = self.at(index + 1) else { return None };
        if self.is_glued(index + 1) {
            return None;
        }
        let units = of_number(word, self.language.dialect)?;
        let per = match (self.at(index + 2), self.at(index + 3)) {
            (Some(Token::Slash), Some(Token::Name(time))) => {
                of_number(time, self.language.dialect).filter(|_| self.at(index + 4).is_none())
            }
            _ => None,
        };
        let last = if per.is_some() { index + 3 } else { index + 1 };
        let units = match per {
            Some(time) => format!("{units} / {time}"),
            None => units,
        };
        let after = self.at(last + 1);
        let is_end = after.is_none_or(|token| {
            token.is_binary_operator()
                || matches!(token, Token::RightParen | Token::Question | Token::Colon)
        });
        // The interval of a window, whose quotes are missing.
        let before = out.last().map(|at| at.token);
        let is_letter = word.len() < 2 && !before.is_some_and(binding::is_comparison);
        if !is_end || before == Some(Token::Comma) || is_letter {
            return None;
        }
        let number = self.text_of(index, index);
        let diagnostic = self.number_with_units((index, last), number, &units, out);
        Some(FoundHabit { diagnostic, last, token: Some(Token::Integer("0")) })
    }
}

/// A whole number with the letter of a power of a thousand behind it, in full.
fn in_full(number: &str, letter: &str) -> Option<String> {
    let zeros = match letter {
        "k" | "K" => "000",
        "M" => "000000",
        "G" => "000000000",
        "T" => "000000000000",
        _ => return None,
    };
    let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let digits = format!("{number}{zeros}");
    is_whole.then(|| if digits.parse::<u32>().is_ok() { digits } else { as_double(digits) })
}

/// True for tokens that bind no part of a product or quotient beside them.
fn is_loose(token: Token<'_>) -> bool {
    matches!(token, Token::LeftParen | Token::Comma) || is_looser_than_product(token)
}
