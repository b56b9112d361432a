//! Finds habits in single characters, or in several tokens that touch: label
//! matchers, percentages, variables, comments, numbers in groups or with units,
//! quotation marks of print.
//!
//! It looks at neighbours, never at the structure of the expression.

use crate::diag::{Code, Diagnostic, Fix};
use crate::dialect::Language;
use crate::text::Span;

use super::super::ast::Aggregate;
use super::super::lexer;
use super::super::lexical::without_quotes;
use super::super::names::is_metric_name;
use super::super::origin::{Origin, offset};
use super::super::token::{Invalid, Token, TokenAt, text_expected};
use super::super::unknown_calls::synonym;
use super::binding::{self, is_looser_than_product};
use super::calls::{self, Advice};
use super::matchers::{Matcher, matchers};
use super::{is_understood, of_number};

/// Most tokens that one habit is made of.
const MAX_TOKENS: usize = 400;

/// The tokens of a refused text.
pub(in crate::syntax) struct Characters<'c, 't> {
    pub text: &'t str,
    pub tokens: &'c [TokenAt<'t>],
    pub origin: &'c Origin,
    pub language: Language,
}

/// A habit.
pub(in crate::syntax) struct Found<'t> {
    pub diagnostic: Diagnostic,
    /// Index of its last token.
    pub last: usize,
    /// What the grammar is to read in its place.
    pub token: Option<Token<'t>>,
}

impl<'t> Characters<'_, 't> {
    /// The habit that begins at a token; `out` are the tokens before it as far
    /// as they count.
    pub fn find(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        match self.tokens[index].token {
            Token::Invalid(Invalid::Character('{')) => self.matchers(index, out),
            Token::Invalid(Invalid::Character('$')) => self.variable(index),
            Token::Invalid(Invalid::Character('%')) => self.percent(index, out),
            Token::Invalid(Invalid::Character('~')) => self.complement(index, out),
            Token::Invalid(Invalid::Character(';')) => self.semicolon(index, out),
            Token::Invalid(Invalid::Character('#')) => self.instance_of_pmie(index, out),
            Token::Invalid(Invalid::Character(quote)) if is_print_quote(quote) => {
                self.print_quotes(index, out)
            }
            Token::Invalid(Invalid::Character('\u{ff08}')) => self.wide_parentheses(index),
            Token::Invalid(Invalid::Character(']')) => self.brackets_twice(index, out),
            Token::Invalid(Invalid::Character(character)) if is_invisible(character) => {
                Some(self.invisible(index, character))
            }
            Token::Assign | Token::Bang => self.no_matching(index, out),
            Token::Pattern(_) => self.slash_in_brackets(index),
            Token::Slash if self.touches(index, Token::Slash) => Some(self.two_slashes(index)),
            Token::Slash if self.touches(index, Token::Star) => Some(self.comment(index)),
            Token::Minus if self.touches(index, Token::Greater) => Some(self.action(index, out)),
            token @ (Token::Less | Token::Greater) if self.touches(index, token) => {
                Some(self.shift(index))
            }
            Token::Integer(_) => {
                self.with_commas(index, out).or_else(|| self.with_unit(index, out))
            }
            Token::Double(_) => self.with_unit(index, out),
            _ => None,
        }
    }

    /// A number that has units behind it, in the tokens from the first to the last.
    pub fn number_with_units(
        &self,
        (first, last): (usize, usize),
        number: &str,
        units: &str,
        out: &[TokenAt<'t>],
    ) -> Diagnostic {
        let whole = self.span(first, last);
        let message = "units do not stand behind a number";
        let error = Diagnostic::error(Code::UnexpectedToken, whole, message);
        let beside = [out.last().map(|at| at.token), self.at(last + 1)];
        if !beside.into_iter().flatten().any(binding::is_comparison) {
            return error
                .help("`mkconst()` gives a number its units")
                .guess(whole, format!("mkconst({number}, units=\"{units}\")"));
        }
        let example = format!("`rescale(NAME, \"{units}\") > {number}`");
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
                    .help("a comparison does not convert; convert the metric")
                    .guess(place, format!("rescale({name}, \"{units}\"){sign}{number}"))
            }
            _ => no_edit,
        }
    }

    fn at(&self, index: usize) -> Option<Token<'t>> {
        self.tokens.get(index).map(|at| at.token)
    }

    /// True if the next token is this one and nothing stands between.
    fn touches(&self, index: usize, token: Token<'_>) -> bool {
        self.is_glued(index + 1) && self.at(index + 1) == Some(token)
    }

    /// True if nothing stands between a token and the one before it.
    fn is_glued(&self, index: usize) -> bool {
        index > 0 && self.tokens.get(index).is_some_and(|at| at.start == self.tokens[index - 1].end)
    }

    fn span(&self, first: usize, last: usize) -> Span {
        self.origin.span(self.tokens[first].start, self.tokens[last].end)
    }

    fn slice(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    fn error(&self, first: usize, last: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::IllegalCharacter, self.span(first, last), message)
    }

    /// Index of the first of the following tokens that is wanted.
    fn following(&self, index: usize, is_wanted: impl Fn(Token<'_>) -> bool) -> Option<usize> {
        let mut following = self.tokens.iter().enumerate().skip(index + 1).take(MAX_TOKENS);
        following.find(|(_, at)| is_wanted(at.token)).map(|(index, _)| index)
    }

    /// `{device="vda"}`
    fn matchers(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let end = |token: Token<'_>| token == Token::Invalid(Invalid::Character('}'));
        let last = self.following(index, end)?;
        let inside = self.slice(self.tokens[index].end, self.tokens[last].start);
        let braces = self.span(index, last);
        let is_due = out.last().is_none_or(|at| at.token.wants_operand());
        // Behind a metric or a call it may be an instance.
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
            return Some(Found { diagnostic, last, token });
        }
        let Some(matchers) = matchers(inside) else {
            return self.instance_in_braces(index, last, out);
        };
        let message = "label matchers are PromQL's; here instances are chosen by their names";
        let error = self.error(index, last, message);
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
            (Some((_, _)), [Matcher { op: "=", value }]) if !value.contains([']', '\\']) => {
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
            (None, _) => error.help(choosing("disk.dev.read")),
        };
        Some(Found { diagnostic, last, token: None })
    }

    /// `{vda}`, or an argument between braces
    fn instance_in_braces(
        &self,
        index: usize,
        last: usize,
        out: &[TokenAt<'t>],
    ) -> Option<Found<'t>> {
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
        Some(Found { diagnostic, last, token: Some(Token::Instance(inside)) })
    }

    /// `$host`, `${host}`
    fn variable(&self, index: usize) -> Option<Found<'t>> {
        let is_part = |token: Token<'_>| {
            let character = matches!(
                token,
                Token::Invalid(Invalid::Character('_' | '{' | '}')) | Token::Integer(_)
            );
            character || matches!(token, Token::Name(_) | Token::Keyword(_) | Token::MetaKeyword)
        };
        let mut last = index;
        while self.is_glued(last + 1) && self.at(last + 1).is_some_and(is_part) {
            last += 1;
        }
        if last == index {
            return None;
        }
        let name = self.slice(self.tokens[index].start, self.tokens[last].end);
        let diagnostic = self
            .error(index, last, "definitions have no variables")
            .help(format!("write what `{name}` stands for; several instances take `matchinst()`"));
        Some(Found { diagnostic, last, token: Some(Token::Invalid(Invalid::Refused)) })
    }

    /// `90%`; a remainder where an operand follows.
    fn percent(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
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
            let diagnostic = diagnostic.help(format!("with --extensions it is `{meant}`"));
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
            return Some(Found { diagnostic, last: index, token });
        }
        if matches!(before.token, Token::Name(_) | Token::RightParen) {
            let diagnostic = self
                .error(index, index, "`%` is no operator")
                .help("a percentage is a plain number; leave `%` out")
                .fix(self.span(index, index), "");
            return Some(Found { diagnostic, last: index, token: None });
        }
        let (Token::Integer(number) | Token::Double(number)) = before.token else { return None };
        let share = number.parse::<f64>().ok()? / 100.0;
        let diagnostic = self
            .error(index, index, "numbers have no `%`")
            .help(format!("for values in percent write `{number}`, for a ratio `{share}`"))
            .guess(self.span(index, index), "");
        Some(Found { diagnostic, last: index, token: None })
    }

    /// `x =~ "vd.*"`, `x !~ /vd/`
    fn no_matching(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let is_mark = self.touches(index, Token::Invalid(Invalid::Character('~')));
        if !is_mark || out.last().is_none_or(|at| at.token.wants_operand()) {
            return None;
        }
        let last = self.pattern_behind(index + 1);
        let mark = self.slice(self.tokens[index].start, self.tokens[index + 1].end);
        let diagnostic = self
            .error(index, index + 1, format!("`{mark}` is no operator: values match no patterns"))
            .help(
                "`matchinst()` chooses instances by a pattern; texts are compared as a whole, by \
                 `==` or `!=`, with --extensions",
            );
        // Two operands without the mark would be told as well.
        let token = Some(Token::Equal).filter(|_| last == index + 1);
        Some(Found { diagnostic, last, token })
    }

    /// Last token of what values are matched with elsewhere, behind a mark that ends at a
    /// token: a text, a pattern between slashes, or whatever has no blanks.
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

    /// Last token of those that touch from one on, up to what ends an operand; in parentheses
    /// there may be blanks.
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

    /// `~x`
    fn complement(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let is_sign = out.last().is_none_or(|at| at.token.wants_operand())
            && self.at(index + 1).is_some_and(Token::begins_operand);
        let diagnostic = self
            .error(index, index, "`~` is no operator")
            .help("there are no operators on bits; `!` gives 1 for 0, and 0 for all others");
        is_sign.then_some(Found { diagnostic, last: index, token: None })
    }

    /// `;` at the end, or between arguments.
    fn semicolon(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let place = self.span(index, index);
        let open = innermost(out).is_some();
        if open && index + 1 < self.tokens.len() {
            let diagnostic = self
                .error(index, index, "`;` separates no arguments")
                .help("write `,`")
                .fix(place, ",");
            return Some(Found { diagnostic, last: index, token: Some(Token::Comma) });
        }
        (index + 1 == self.tokens.len()).then(|| {
            let diagnostic = self
                .error(index, index, "`;` ends nothing: a definition ends with its line")
                .fix(place, "");
            Found { diagnostic, last: index, token: None }
        })
    }

    /// `metric #'instance'`
    fn instance_of_pmie(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let next = self.tokens.get(index + 1).filter(|_| self.is_glued(index + 1))?;
        if !matches!(next.token, Token::Invalid(Invalid::SingleQuoted) | Token::Str(_)) {
            return None;
        }
        let inside = self.slice(next.start + 1, next.end - 1);
        let before = out.last().filter(|at| matches!(at.token, Token::Name(_)))?;
        if inside.contains(['\'', ']', '\\']) {
            return None;
        }
        let place = self.origin.span(before.end, next.end);
        let diagnostic = self
            .error(index, index + 1, "`#` chooses instances in pmie only")
            .help("an instance stands in brackets")
            .fix(place, format!("[{inside}]"));
        Some(Found { diagnostic, last: index + 1, token: Some(Token::Instance(inside)) })
    }

    /// Parentheses as wide as Chinese characters.
    fn wide_parentheses(&self, index: usize) -> Option<Found<'t>> {
        let is_close =
            |at: &TokenAt<'_>| at.token == Token::Invalid(Invalid::Character('\u{ff09}'));
        let last = self.tokens.iter().rposition(is_close).filter(|last| *last > index)?;
        let text = self.slice(self.tokens[index].start, self.tokens[last].end);
        let plain = text.replace('\u{ff08}', "(").replace('\u{ff09}', ")").replace('\u{ff0c}', ",");
        let diagnostic = self
            .error(index, last, "these parentheses are wider than those of expressions")
            .help("parentheses are `(` and `)`")
            .fix(self.span(index, last), plain);
        Some(Found { diagnostic, last, token: Some(Token::Invalid(Invalid::Refused)) })
    }

    /// A character without width, which came with a copied text; what touches it is a
    /// part of the same name.
    fn invisible(&self, index: usize, character: char) -> Found<'t> {
        let is_part = |token| {
            matches!(token, Token::Name(_) | Token::Integer(_) | Token::Double(_))
                || matches!(token, Token::Invalid(Invalid::Character('.' | '_')))
        };
        let mut last = index;
        while self.is_glued(last + 1) && self.at(last + 1).is_some_and(is_part) {
            last += 1;
        }
        let message = format!("an invisible character (U+{:04X})", u32::from(character));
        let diagnostic = self
            .error(index, index, message)
            .help("remove it; it came with a copied text")
            .fix(self.span(index, index), "");
        Found { diagnostic, last, token: Some(Token::Invalid(Invalid::Refused)) }
    }

    /// `/[/]/`
    fn slash_in_brackets(&self, index: usize) -> Option<Found<'t>> {
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
        Some(Found { diagnostic, last, token: Some(Token::Invalid(Invalid::UnterminatedPattern)) })
    }

    /// `[[vda]]`
    fn brackets_twice(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let [.., metric, TokenAt { token: Token::Instance(inside), start, .. }] = out else {
            return None;
        };
        if !matches!(metric.token, Token::Name(_)) {
            return None;
        }
        let inside = inside.strip_prefix('[').filter(|_| self.is_glued(index))?;
        let whole = self.origin.span(*start, self.tokens[index].end);
        let diagnostic = Diagnostic::error(Code::IllegalCharacter, whole, "brackets stand once")
            .help("an instance has one pair of brackets, and definitions have no variables")
            .guess(whole, format!("[{inside}]"));
        Some(Found { diagnostic, last: index, token: None })
    }

    /// Quotation marks of print.
    fn print_quotes(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
        let end = |token: Token<'_>| matches!(token, Token::Invalid(Invalid::Character(quote)) if is_print_quote(quote));
        let last = self.following(index, end)?;
        let inside = self.slice(self.tokens[index].end, self.tokens[last].start);
        let whole = self.span(index, last);
        let error = self.error(index, last, "these are curly quotes, as in print");
        let before = out.last().map(|at| at.token);
        let (diagnostic, token) = if text_expected(before, self.language) {
            let quoted = format!("\"{inside}\"");
            (error.help("texts stand in plain quotes").fix(whole, quoted), Token::Str(inside))
        } else if is_metric_name(inside) {
            (without_quotes(error, whole, inside), Token::Name(inside))
        } else {
            let refused = Token::Invalid(Invalid::Refused);
            (error.help("a text has plain quotes, `\"`, and cannot stand here"), refused)
        };
        Some(Found { diagnostic, last, token: Some(token) })
    }

    /// `//`: a comment, or a division whose result is a whole number.
    fn two_slashes(&self, index: usize) -> Found<'t> {
        let mut last = index + 1;
        while self.touches(last, Token::Slash) {
            last += 1;
        }
        let is_word = match self.at(last + 1) {
            Some(Token::Name(name)) => !name.contains('.') && last + 2 == self.tokens.len(),
            _ => false,
        };
        if !is_word && self.is_division(index, last) {
            let diagnostic = self
                .error(index, last, "`//` is no operator")
                .help("`/` always gives a double, of which `floor()` makes a whole number, with --extensions")
                .guess(self.span(index, last), "/");
            return Found { diagnostic, last, token: Some(Token::Slash) };
        }
        // A remark has words; what else there is may be a divisor with another mistake.
        let remark = self.slice(self.tokens[last].end, self.end());
        let has_words = remark.chars().all(|c| c.is_alphabetic() || c == ' ');
        let is_remark = has_words && (remark.trim().is_empty() || remark.trim().contains(' '));
        self.no_comment(index, offset(self.text.len()), "//", is_remark && !is_word)
    }

    /// True if slashes have an operand behind them, or the text is right with one.
    fn is_division(&self, first: usize, last: usize) -> bool {
        let (before, after) = (
            self.slice(0, self.tokens[first].start),
            self.slice(self.tokens[last].end, self.end()),
        );
        let is_operand = match self.at(last + 1) {
            Some(Token::Integer(_) | Token::Double(_) | Token::LeftParen) => true,
            Some(Token::Name(name)) => {
                let next = self.at(last + 2);
                name.contains('.')
                    && next
                        .is_none_or(|next| next.is_binary_operator() || next == Token::RightParen)
            }
            _ => false,
        };
        is_operand
            || is_understood(after, self.language)
            || is_understood(&[before, "/", after].concat(), self.language)
    }

    fn end(&self) -> u32 {
        offset(self.text.len())
    }

    /// `/* comment */`
    fn comment(&self, index: usize) -> Found<'t> {
        let start = self.tokens[index + 1].end;
        match self.slice(start, self.end()).find("*/") {
            Some(at) => self.no_comment(index, start + offset(at + 2), "/*", true),
            None => self.no_comment(index, self.end(), "/*", false),
        }
    }

    fn no_comment(&self, index: usize, end: u32, mark: &str, is_certain: bool) -> Found<'t> {
        let last = self.tokens.partition_point(|at| at.start < end).saturating_sub(1).max(index);
        let place = self.origin.span(self.tokens[index].start, end);
        // At the end of a line the blanks before it go, too.
        let is_last = end as usize == self.text.len() && index > 0;
        let removed = match is_last {
            true => self.origin.span(self.tokens[index - 1].end, end),
            false => place,
        };
        let message = format!("`{mark}` begins no comment");
        let diagnostic = Diagnostic::error(Code::IllegalCharacter, place, message)
            .help("a comment has a line of its own, which begins with `#`")
            .edit(Fix { span: removed, text: String::new(), is_certain });
        Found { diagnostic, last, token: None }
    }

    /// `-> action`
    fn action(&self, index: usize, out: &[TokenAt<'t>]) -> Found<'t> {
        let last = self.tokens.len() - 1;
        let end = offset(self.text.trim_end().len());
        let place = self.origin.span(out.last().map_or(0, |at| at.end), end);
        let diagnostic = self
            .error(index, index + 1, "`->` begins an action, which only pmie takes")
            .help("a definition computes a value and does nothing; leave out what follows it")
            .guess(place, "");
        Found { diagnostic, last, token: None }
    }

    /// `<< 3`
    fn shift(&self, index: usize) -> Found<'t> {
        let text = self.slice(self.tokens[index].start, self.tokens[index + 1].end);
        let error = self.error(index, index + 1, format!("`{text}` is no operator"));
        let by = match self.at(index + 2) {
            Some(Token::Integer(number)) => number.parse::<u32>().ok().filter(|by| *by < 32),
            _ => None,
        };
        let Some(by) = by else {
            let help = "there are no operators on bits; multiply or divide by a power of two";
            let token = Some(Token::Star);
            return Found { diagnostic: error.help(help), last: index + 1, token };
        };
        let (symbol, token) = if text == "<<" { ("*", Token::Star) } else { ("/", Token::Slash) };
        let meant = format!("{symbol} {}", 1u32 << by);
        let diagnostic =
            error.help("there are no operators on bits").guess(self.span(index, index + 2), meant);
        Found { diagnostic, last: index + 1, token: Some(token) }
    }

    /// `0,5` and `1,000,000`, unless the comma separates arguments.
    fn with_commas(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
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
        let is_call = innermost(out).is_some_and(|open| {
            let before = open.checked_sub(1).map(|before| out[before].token);
            before.is_some_and(|token| token.is_function() || matches!(token, Token::Name(_)))
        });
        if is_call {
            return None;
        }
        let whole = self.span(index, last);
        let spelling = self.slice(self.tokens[index].start, self.tokens[last].end);
        let groups: Vec<&str> = spelling.split(',').collect();
        let joined = groups.concat();
        let token = Some(Token::Integer("0"));
        let error = |message: &str| Diagnostic::error(Code::UnexpectedToken, whole, message);
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
                error("a fraction has a point, not a comma").fix(whole, format!("{number}.{part}"))
            }
            _ => return None,
        };
        Some(Found { diagnostic, last, token })
    }

    /// `10 Mbyte`
    fn with_unit(&self, index: usize, out: &[TokenAt<'t>]) -> Option<Found<'t>> {
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
            None => units.to_owned(),
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
        let number = self.slice(self.tokens[index].start, self.tokens[index].end);
        let diagnostic = self.number_with_units((index, last), number, &units, out);
        Some(Found { diagnostic, last, token: Some(Token::Integer("0")) })
    }
}

fn choosing(metric: &str) -> String {
    format!("choose instances by `{metric}[NAME]` or `matchinst(/PATTERN/, {metric})`")
}

/// True for characters that no editor shows.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

fn is_print_quote(character: char) -> bool {
    matches!(character, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

/// True for what takes no part of a product or quotient beside it.
fn is_loose(token: Token<'_>) -> bool {
    matches!(token, Token::LeftParen | Token::Comma) || is_looser_than_product(token)
}

/// Index of the innermost parenthesis that is open behind these tokens.
fn innermost(out: &[TokenAt<'_>]) -> Option<usize> {
    let mut closed = 0usize;
    for (index, at) in out.iter().enumerate().rev() {
        match at.token {
            Token::RightParen => closed += 1,
            Token::LeftParen if closed == 0 => return Some(index),
            Token::LeftParen => closed -= 1,
            _ => {}
        }
    }
    None
}
