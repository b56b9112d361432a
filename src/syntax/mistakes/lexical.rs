//! Mistakes within tokens: characters, numbers and quotes.
//!
//! This module reports text that the lexer did not understand, and replaces it by the
//! certainly intended tokens. It joins numbers with characters that touch them. It
//! looks at neighbours and counts parentheses.

use crate::diag::{Code, Diagnostic, Diagnostics, Fix};
use crate::dialect::Language;
use crate::syntax::Shape;
use crate::syntax::lexer::is_zero;
use crate::syntax::names::{is_metric_name, name_mistake};
use crate::syntax::origin::Origin;
use crate::syntax::token::{Invalid, Token, TokenAt, text_expected};
use crate::text::stray;
use crate::text::{Span, offset};

use super::habits::characters::Characters;
use super::habits::operands::{is_text_branch, text_in_choice};
use super::habits::{MAX_TOKENS, of_number};

/// Reports lexical mistakes, and returns the tokens without them.
pub fn repair<'t>(
    text: &'t str,
    tokens: &[TokenAt<'t>],
    origin: &Origin,
    language: Language,
    diagnostics: &mut Diagnostics,
) -> Vec<TokenAt<'t>> {
    let habits = Characters { text, tokens, origin, language };
    let out = Vec::with_capacity(tokens.len());
    let mut repair = LexicalRepair { habits, out, has_choice: false, diagnostics };
    let mut index = 0;
    while index < tokens.len()
        && let Some(next) = repair.token(index)
    {
        index = next;
    }
    repair.out
}

/// The tokens that are read, and those that count so far.
struct LexicalRepair<'c, 't> {
    habits: Characters<'c, 't>,
    out: Vec<TokenAt<'t>>,
    /// True after a `?`.
    has_choice: bool,
    diagnostics: &'c mut Diagnostics,
}

impl<'t> LexicalRepair<'_, 't> {
    /// Takes the token at `index`, perhaps with those behind it; returns the index of the
    /// next one. `None` if nothing behind it counts.
    fn token(&mut self, index: usize) -> Option<usize> {
        let at = self.habits.tokens[index];
        self.has_choice |= at.token == Token::Question;
        if let Some(next) = self.glued_run(index) {
            return Some(next);
        }
        if let Some(next) = self.habit(index) {
            return Some(next);
        }
        match at.token {
            Token::Invalid(why) if why != Invalid::Refused => self.invalid(index, why),
            // A text that was refused as a whole has its report.
            _ => {
                self.out.push(at);
                Some(index + 1)
            }
        }
    }

    /// A number with tokens that touch it.
    fn glued_run(&mut self, index: usize) -> Option<usize> {
        let Characters { text, tokens, origin, language } = self.habits;
        let glued = glued_to_number(tokens, index);
        if glued == index {
            return None;
        }
        let (start, end) = (tokens[index].start, tokens[glued].end);
        let spelling = &text[start as usize..end as usize];
        if !self.diagnostics.is_full() {
            self.diagnostics.push(match units_behind(spelling, language) {
                Some((number, units)) => {
                    self.habits.number_with_units((index, glued), number, &units, &self.out)
                }
                None => stuck_number(spelling, origin.span(start, end), language),
            });
        }
        self.out.push(TokenAt { token: Token::Invalid(Invalid::Refused), start, end });
        Some(glued + 1)
    }

    /// A habit from another language.
    fn habit(&mut self, index: usize) -> Option<usize> {
        let tokens = self.habits.tokens;
        if self.diagnostics.is_full() || tokens.len() > MAX_TOKENS {
            return None;
        }
        let found = self.habits.find(index, &self.out)?;
        self.diagnostics.push(found.diagnostic);
        let (start, end) = (tokens[index].start, tokens[found.last].end);
        self.out.extend(found.token.map(|token| TokenAt { token, start, end }));
        Some(found.last + 1)
    }

    /// A text that is no token.
    fn invalid(&mut self, index: usize, why: Invalid) -> Option<usize> {
        let Characters { text, tokens, origin, language } = self.habits;
        let at = tokens[index];
        let rest = &tokens[index + 1..];
        let spelling = &text[at.start as usize..at.end as usize];
        let span = origin.span(at.start, at.end);
        let before = self.out.last().map(|at| at.token);
        let next = rest.first().map(|next| next.token);
        let is_full = self.diagnostics.is_full();
        let token = match why {
            Invalid::HalfOperator(half) if next == Some(at.token) => {
                let end = rest[0].end;
                let meant = if half == '&' { "&&" } else { "||" };
                self.diagnostics.push(broken_operator(origin.span(at.start, end), meant));
                let token = replacement(text, at, why, before, language);
                self.out.push(TokenAt { token, start: at.start, end });
                return Some(index + 2);
            }
            Invalid::UnterminatedString if text_expected(before, language) => {
                self.diagnostics.push(text_without_end(text, at, origin, &mut self.out));
                return Some(index + 1);
            }
            // The call reports a text in place of a pattern.
            Invalid::SingleQuoted if spelling.len() > 1 && begins_with_pattern(&self.out) => {
                Token::Str(&spelling[1..spelling.len() - 1])
            }
            Invalid::Character(bracket @ (']' | '}'))
                if !is_full && lacks_close(&self.out, rest) =>
            {
                let message = format!("`{bracket}` closes no parenthesis");
                self.diagnostics.push(
                    Diagnostic::error(Code::UnbalancedDelimiter, span, message)
                        .help("remove it, or write `)`")
                        .guess(span, ")"),
                );
                Token::RightParen
            }
            Invalid::SingleQuoted if !is_full && is_text_branch(spelling, before, next) => {
                self.diagnostics.extend(text_in_choice(&self.out, self.has_choice, span));
                Token::Invalid(Invalid::Refused)
            }
            Invalid::TooLarge if begins_constant(&self.out) => {
                self.diagnostics.push(
                    Diagnostic::error(Code::ConstantTooLarge, span, TOO_LARGE)
                        .help("a product reaches further: `mkconst(1000000, type=u64) * 1000000`"),
                );
                Token::Integer("0")
            }
            Invalid::Character('#') => {
                self.diagnostics.push(hash(text, at, origin));
                return None;
            }
            _ => {
                if !is_full {
                    self.diagnostics.push(report(text, at, why, before, origin, language));
                }
                replacement(text, at, why, before, language)
            }
        };
        self.out.push(TokenAt { token, ..at });
        Some(index + 1)
    }
}

const TOO_LARGE: &str = "this integer is larger than 4294967295";

/// A `#` behind an expression: a comment, or an instance as pmie(1) names it.
fn hash(text: &str, at: TokenAt<'_>, origin: &Origin) -> Diagnostic {
    let behind = &text[at.end as usize..];
    let span = origin.span(at.start, offset(text.len()));
    let error = Diagnostic::error(Code::IllegalCharacter, span, "`#` begins no comment here");
    let ends_word = |one: char| one.is_whitespace() || matches!(one, ',' | ')');
    let word = behind.split(ends_word).next().unwrap_or("");
    let rest = behind[word.len()..].trim_start();
    let is_name = word.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    if behind.starts_with(['\'', '"']) {
        return error.help("an instance is named as in `metric[name]`");
    }
    // Behind a comment's first word there is another one.
    let is_remark = !is_name || rest.starts_with(char::is_alphabetic);
    // pmie has `metric #5 minute` and `metric #'5 minute'`.
    if is_remark && !word.starts_with(|first: char| first.is_ascii_digit()) {
        return error.help("a comment has a line of its own").fix(span, "");
    }
    let error =
        error.help("an instance is named as in `metric[name]`; a comment has a line of its own");
    match is_remark || behind[word.len()..].starts_with(',') {
        true => error,
        false => {
            let name = origin.span(at.start, at.end + offset(word.len()));
            error.guess(name, format!("[{word}]"))
        }
    }
}

/// A text without its end, which is the last token. The parentheses behind it
/// probably do not belong to it.
fn text_without_end<'t>(
    text: &'t str,
    at: TokenAt<'t>,
    origin: &Origin,
    out: &mut Vec<TokenAt<'t>>,
) -> Diagnostic {
    let all = text.get(at.start as usize + 1..at.end as usize).unwrap_or_default();
    let open = out.iter().filter(|at| at.token == Token::LeftParen).count();
    let closed = out.iter().filter(|at| at.token == Token::RightParen).count();
    let mut inside = all;
    let mut ends = Vec::new();
    while closed + ends.len() < open
        && let Some(shorter) = inside.trim_end().strip_suffix(')')
    {
        ends.push(at.start + 1 + offset(shorter.len()));
        inside = shorter;
    }
    let end = at.start + 1 + offset(inside.len());
    out.push(TokenAt { token: Token::Str(inside), start: at.start, end });
    out.extend(ends.iter().rev().map(|start| TokenAt {
        token: Token::RightParen,
        start: *start,
        end: start + 1,
    }));
    let diagnostic = unterminated(origin.span(at.start, at.start + 1), "text", "\"");
    match ends.is_empty() {
        true => diagnostic,
        false => diagnostic.fix(origin.span(end, end), "\""),
    }
}

/// The intended token in place of an invalid one.
fn replacement<'t>(
    text: &'t str,
    at: TokenAt<'t>,
    why: Invalid,
    before: Option<Token<'_>>,
    language: Language,
) -> Token<'t> {
    let inside = |trailing: u32| {
        let range = at.start as usize + 1..(at.end - trailing).max(at.start + 1) as usize;
        text.get(range).unwrap_or("")
    };
    match why {
        Invalid::HalfOperator('&') => Token::AndAnd,
        Invalid::HalfOperator(_) => Token::OrOr,
        // Operators of other languages; their meaning no longer matters.
        Invalid::Character('%' | '^') => Token::Star,
        Invalid::SingleQuoted
            if text_expected(before, language) && text_is_meant(before, inside(1), language) =>
        {
            Token::Str(inside(1))
        }
        Invalid::SingleQuoted if !text_is_meant(before, inside(1), language) => {
            Token::Name(inside(1))
        }
        Invalid::UnterminatedString if text_expected(before, language) => Token::Str(inside(0)),
        Invalid::UnterminatedInstance => Token::Instance(inside(0)),
        Invalid::TooLarge if before == Some(Token::LeftParen) => Token::Integer("0"),
        other => Token::Invalid(other),
    }
}

/// True between tokens that end like an operand and following tokens, if the latter
/// leave a parenthesis of the former open.
fn lacks_close(out: &[TokenAt<'_>], rest: &[TokenAt<'_>]) -> bool {
    let count =
        |tokens: &[TokenAt<'_>], token| tokens.iter().filter(|at| at.token == token).count();
    let of = |token| count(out, token) + count(rest, token);
    out.len() + rest.len() <= MAX_TOKENS
        && out.last().is_some_and(|at| !at.token.wants_operand())
        && count(out, Token::LeftParen) > count(out, Token::RightParen)
        && of(Token::LeftParen) > of(Token::RightParen)
}

/// True for tokens that end where `mkconst()` expects its number.
fn begins_constant(out: &[TokenAt<'_>]) -> bool {
    matches!(
        out,
        [.., TokenAt { token: Token::MkConst, .. }, TokenAt { token: Token::LeftParen, .. }]
    )
}

/// True for tokens that end where a call expects its pattern.
fn begins_with_pattern(out: &[TokenAt<'_>]) -> bool {
    matches!(
        out,
        [
            ..,
            TokenAt { token: Token::MatchInst | Token::Function(Shape::PatternFirst, _), .. },
            TokenAt { token: Token::LeftParen, .. }
        ]
    )
}

/// True for a text in single quotes that is probably not the name of a metric.
fn text_is_meant(before: Option<Token<'_>>, inside: &str, language: Language) -> bool {
    let is_compared = matches!(before, Some(Token::Equal | Token::NotEqual));
    // No text of units has a point.
    let is_metric = inside.contains('.') && is_metric_name(inside);
    text_expected(before, language) && !is_metric
        || !is_metric_name(inside)
        || is_compared && !inside.contains('.')
}

/// Offers a text as the name of a metric, which nearly always has a point.
pub(super) fn without_quotes(error: Diagnostic, span: Span, text: &str) -> Diagnostic {
    let error = error.help("metrics are named without quotes");
    let is_certain = text.contains('.') && name_mistake(text).is_none();
    error.edit(Fix { span, text: text.to_owned(), is_certain })
}

/// An operator of two characters with blanks between them.
pub(super) fn broken_operator(span: Span, meant: &str) -> Diagnostic {
    Diagnostic::error(Code::UnexpectedToken, span, format!("blanks within `{meant}`"))
        .help(format!("write `{meant}`"))
        .fix(span, meant)
}

fn report(
    text: &str,
    at: TokenAt<'_>,
    why: Invalid,
    before: Option<Token<'_>>,
    origin: &Origin,
    language: Language,
) -> Diagnostic {
    let span = origin.span(at.start, at.end);
    let first = origin.span(at.start, at.start + 1);
    let spelling = &text[at.start as usize..at.end as usize];
    match why {
        Invalid::HalfOperator(character) => {
            let meant = format!("{character}{character}");
            let message = format!("`{character}` is no operator");
            let diagnostic = Diagnostic::error(Code::IllegalCharacter, span, message);
            if before.is_none_or(Token::wants_operand) {
                return diagnostic.help("an operand is due here");
            }
            // In C, it is an operator on bits.
            diagnostic
                .help(format!("there are no operators on bits; write `{meant}`"))
                .guess(span, meant)
        }
        Invalid::SingleQuoted => {
            let diagnostic =
                Diagnostic::error(Code::IllegalCharacter, span, "single quotes mean nothing here");
            match spelling.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
                Some(inside) if !text_is_meant(before, inside, language) => {
                    without_quotes(diagnostic, span, inside)
                }
                Some(inside) if !inside.contains('"') => diagnostic
                    .help("texts stand in double quotes")
                    .fix(span, format!("\"{inside}\"")),
                _ => diagnostic.help("texts stand in double quotes"),
            }
        }
        Invalid::TooLarge => {
            let diagnostic = Diagnostic::error(Code::ConstantTooLarge, span, TOO_LARGE);
            if spelling.len() <= 40 {
                diagnostic
                    .help("written with a point it is a double, which reaches further")
                    .guess(span, format!("{spelling}."))
            } else {
                diagnostic
            }
        }
        Invalid::UnterminatedString => unterminated(first, "text", "\""),
        Invalid::UnterminatedInstance => unterminated(first, "instance name", "]"),
        Invalid::UnterminatedPattern => unterminated(first, "pattern", "/"),
        Invalid::Character(character) => {
            let message = if let Some(byte) = stray::byte(character) {
                format!("the byte 0x{byte:02x} is not UTF-8")
            } else if character.is_control() {
                format!("a control character (U+{:04X})", u32::from(character))
            } else {
                format!("`{character}` cannot stand in an expression")
            };
            let diagnostic = Diagnostic::error(Code::IllegalCharacter, span, message);
            if character == '\\' && !language.dialect.is_version_7() {
                return match text[at.end as usize..].trim().is_empty() {
                    true => diagnostic.help(JOINS_LATER),
                    false => diagnostic,
                };
            }
            if character == '\\'
                && let Some(told) = joins_nothing(text, at, &diagnostic, origin)
            {
                return told;
            }
            match advice(character) {
                Some(advice) => diagnostic.help(advice),
                None => diagnostic,
            }
        }
        Invalid::Refused => Diagnostic::error(Code::IllegalCharacter, span, "this is no token"),
    }
}

/// A backslash that would join its line with the next, but blanks or a carriage return
/// follow it.
fn joins_nothing(
    text: &str,
    at: TokenAt<'_>,
    diagnostic: &Diagnostic,
    origin: &Origin,
) -> Option<Diagnostic> {
    let rest = text.get(at.end as usize..).filter(|rest| !rest.is_empty())?;
    if !rest.trim().is_empty() {
        return None;
    }
    let (fact, what) = match rest {
        "\r" => ("a carriage return follows", "carriage return"),
        _ => ("blanks follow", "blanks"),
    };
    let behind = origin.span(at.end, offset(text.len()));
    let help =
        format!("at the very end of a line it joins the line with the next; remove the {what}");
    Some(
        Diagnostic { message: "this backslash joins no lines".to_owned(), ..diagnostic.clone() }
            .label(diagnostic.span, fact)
            .help(help)
            .fix(behind, ""),
    )
}

fn unterminated(span: Span, what: &str, end: &str) -> Diagnostic {
    Diagnostic::error(Code::Unterminated, span, format!("this {what} has no end"))
        .label(span, "begins here")
        .help(format!("end it with `{end}`"))
}

/// Advice about a line that only later versions join with the next.
const JOINS_LATER: &str =
    "before PCP 7 a backslash joins no lines: write one line, as `pmderive fmt --compat 6.0` does";

/// Advice about `^` and `**`.
pub(super) const NO_POWER: &str =
    "there is no power operator: multiply, or use pow(), which needs extensions";

/// Advice about a character that other languages use.
fn advice(character: char) -> Option<&'static str> {
    Some(match character {
        '%' => "there is no operator for remainders",
        '^' => NO_POWER,
        '{' | '}' => "group with parentheses",
        ']' => {
            "an instance name begins with `[` and ends at the first `]`; \
                write `\\]` for one that belongs to it"
        }
        '_' => "a metric's name begins with a letter",
        ';' => "nothing ends an expression but its line",
        '\\' => "a backslash joins lines only as the very last character of a line",
        '$' | '@' | '~' | '`' => "metrics are named as they are, without a mark",
        '\u{ff08}' | '\u{ff09}' => "parentheses are `(` and `)`",
        '\u{2013}' | '\u{2014}' | '\u{2212}' => "the minus sign is `-`",
        '\u{d7}' => "the multiplication sign is `*`",
        '\u{f7}' => "the division sign is `/`",
        '\u{2264}' => "less or equal is `<=`",
        '\u{2265}' => "greater or equal is `>=`",
        '\u{2260}' => "unequal is `!=`",
        '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => "texts stand in plain quotes: `\"`",
        '\u{a0}' => "a no-break space, which is no blank here",
        _ => return None,
    })
}

/// Index of the last token that touches a number in a way no correct expression
/// has: `1e5`, `1.5e-3`, `0x1f`, `1.2.3`, `5th`.
fn glued_to_number(tokens: &[TokenAt<'_>], first: usize) -> usize {
    let is_number = |token| {
        matches!(token, Token::Integer(_) | Token::Double(_) | Token::Invalid(Invalid::TooLarge))
    };
    let touches = |index: usize| {
        tokens.get(index).filter(|at| at.start == tokens[index - 1].end).map(|at| at.token)
    };
    if !is_number(tokens[first].token) {
        return first;
    }
    let mut last = first;
    while let Some(token) = touches(last + 1) {
        match token {
            Token::Name(name) => {
                last += 1;
                let exponent = matches!(name, "e" | "E");
                let sign = matches!(touches(last + 1), Some(Token::Minus | Token::Plus));
                if exponent && sign && touches(last + 2).is_some_and(is_number) {
                    last += 2;
                }
            }
            token if is_number(token) => last += 1,
            Token::Invalid(Invalid::Character('_')) => last += 1,
            _ => break,
        }
    }
    last
}

/// A number, and the units that touch it.
fn units_behind(spelling: &str, language: Language) -> Option<(&str, String)> {
    let word = spelling.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &spelling[..spelling.len() - word.len()];
    number.parse::<f64>().ok()?;
    Some((number, of_number(word, language.dialect)?))
}

/// A number without the letters for its type in C and Rust, and whether it has that type
/// here. An integer has 32 bits and no sign; all others are doubles.
fn without_suffix(spelling: &str) -> Option<(String, bool)> {
    const SUFFIXES: [&str; 12] =
        ["u", "l", "ul", "lu", "ll", "ull", "f", "lf", "u32", "u64", "i64", "f64"];
    let word = spelling.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &spelling[..spelling.len() - word.len()];
    let suffix = SUFFIXES.iter().find(|suffix| suffix.eq_ignore_ascii_case(word))?;
    let is_plain = number.len() <= 40 && number.parse::<f64>().is_ok();
    let number = || match *suffix {
        "u" | "u32" => (number.to_owned(), true),
        suffix => (as_double(number.to_owned()), suffix.contains('f')),
    };
    is_plain.then(number)
}

/// Digits with a point, as a double.
pub(super) fn as_double(digits: String) -> String {
    if digits.contains('.') { digits } else { digits + "." }
}

/// Reports a number with text that touches it.
fn stuck_number(spelling: &str, span: Span, language: Language) -> Diagnostic {
    let shown = if spelling.len() <= 40 { spelling } else { "this" };
    let hexadecimal = spelling.strip_prefix("0x").or_else(|| spelling.strip_prefix("0X"));
    let diagnostic = |message: String| Diagnostic::error(Code::UnexpectedToken, span, message);
    if let Some(value) = hexadecimal.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        let message = "numbers are written in decimal digits only".to_owned();
        let help = format!("write `{value}`");
        return diagnostic(message).help(help).fix(span, value.to_string());
    }
    let is_exponent = spelling.bytes().any(|byte| matches!(byte, b'e' | b'E'))
        && spelling
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
    if is_exponent && language.extensions && spelling.parse::<f64>().is_err() {
        let message = format!("`{shown}` is no number: its exponent is missing or given twice");
        return diagnostic(message).help("an exponent is written as in `1.5e3`");
    }
    if is_exponent && language.extensions {
        let message = format!("`{shown}` is no number that double precision can hold");
        return diagnostic(message).help("it holds numbers from about 5e-324 to 1.8e308");
    }
    if is_exponent && spelling.len() <= 40 {
        let message = "numbers have no exponents".to_owned();
        return match spelling.parse::<f64>() {
            Ok(value)
                if (1e-30..1e30).contains(&value)
                    || is_zero(spelling.split(['e', 'E']).next().unwrap_or_default()) =>
            {
                let plain = as_double(value.to_string());
                let whole = plain.strip_suffix('.').filter(|digits| digits.parse::<u32>().is_ok());
                // A number with units compares with whole plain numbers, and with no doubles.
                let help = match whole {
                    Some(digits) => format!("write `{plain}`, or `{digits}` for a whole number"),
                    None => format!("write `{plain}`"),
                };
                diagnostic(message).help(help).fix(span, plain)
            }
            _ => diagnostic(message)
                .help("with extensions they have, as far as double precision goes"),
        };
    }
    if let Some((text, is_certain)) = without_suffix(spelling) {
        let message = "numbers have no suffix".to_owned();
        let help = "an integer has 32 bits and no sign; with a point a number is a double";
        return diagnostic(message).help(help).edit(Fix { span, text, is_certain });
    }
    let joined = spelling.replace('_', "");
    if joined.len() < spelling.len() && joined.parse::<f64>().is_ok_and(|value| value < 1e9) {
        let message = "digits are not grouped".to_owned();
        return diagnostic(message).help("numbers have no `_`").fix(span, joined);
    }
    let message = match spelling.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        true => format!("`{shown}` is no number"),
        false => format!("`{shown}` is neither a number nor a name"),
    };
    diagnostic(message).help("a metric's name begins with a letter")
}
