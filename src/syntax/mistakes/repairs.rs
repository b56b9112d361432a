//! Recognises common mistakes in a text that libpcp refuses.
//!
//! It goes over the tokens and reports each certain mistake together with the probable intention.
//! It repairs these mistakes or blots them out. The grammar then finds the others without reporting
//! the same place again. Correct expressions never come here.

use crate::diag::{Code, Diagnostic, Diagnostics, Fix};
use crate::dialect::Language;
use crate::functions;
use crate::syntax::keywords::FUNCTION_NAMES;
use crate::syntax::names::is_metric_name;
use crate::syntax::origin::Origin;
use crate::syntax::token::{Invalid, Token, TokenAt};
use crate::text::offset;

use super::by;
use super::calls;
use super::delimiters::Delimiters;
use super::habits;
use super::habits::quotes::Quotes;
use super::lexical;
use super::repair::{MAX_REPORTS, Repair, WINDOWS, unexpected};

/// Most tokens before a `)` among which its function is looked for.
const MAX_LOOKED_BACK: usize = 20;

/// Functions whose names begin few names of metrics.
const GLUED: [&str; 5] = ["rate", "delta", "instant", "rescale", "matchinst"];

/// Reports the mistakes in `tokens`, and returns repaired ones.
pub fn repair<'t>(
    text: &'t str,
    tokens: &[TokenAt<'t>],
    origin: &Origin,
    language: Language,
    diagnostics: &mut Diagnostics,
) -> Vec<TokenAt<'t>> {
    if let Some(Quotes { message, edit }) = habits::quotes::mended(text, language) {
        let fix = edit.placed(origin);
        diagnostics.push(
            Diagnostic::error(Code::IllegalCharacter, fix.span, message)
                .help("texts stand in double quotes")
                .edit(fix),
        );
        return nothing(text);
    }
    if let Some(error) = unopened_call(text, tokens, origin, language) {
        diagnostics.push(error);
        return nothing(text);
    }
    let marked = habits::words::marks(text, tokens, origin, language, diagnostics);
    let tokens = marked.as_deref().unwrap_or(tokens);
    let tokens = lexical::repair(text, tokens, origin, language, diagnostics);
    let mut repair = Repair::new(text, tokens, origin, language, diagnostics);
    repair.close_parentheses();
    habits::words::clauses(&mut repair);
    let mut index = 0;
    while index < repair.tokens.len() {
        index = repair.token(index);
    }
    repair.out
}

/// A token in place of a whole text whose mistake is reported.
fn nothing(text: &str) -> Vec<TokenAt<'_>> {
    let token = Token::Invalid(Invalid::Refused);
    vec![TokenAt { token, start: 0, end: offset(text.len()) }]
}

/// The report on a function's name before a `)` without a partner, if a `(` behind the name
/// makes the text right: `sum filesys.free)`, `ratedisk.dev.total)`.
fn unopened_call(
    text: &str,
    tokens: &[TokenAt<'_>],
    origin: &Origin,
    language: Language,
) -> Option<Diagnostic> {
    let [stray] = *Delimiters::new(tokens).stray else { return None };
    let functions = || FUNCTION_NAMES.into_iter().chain(functions::names());
    let behind = |at: &TokenAt<'_>| {
        let Token::Name(name) = at.token else { return None };
        let is_glued_to = |function: &&str| {
            let rest = name.strip_prefix(*function);
            rest.is_some_and(|rest| rest.contains('.') && is_metric_name(rest))
        };
        let function = match functions().find(|function| *function == name) {
            Some(function) => function,
            None => GLUED.into_iter().find(is_glued_to)?,
        };
        Some((at.start as usize + function.len(), function))
    };
    // Another bracket may stand in its place.
    let wrong = |at: usize| usize::from(text[at..].starts_with(['<', '{', '[']));
    let is_right = |(at, _): &(usize, &str)| {
        let (before, after) = (&text[..*at], &text[at + wrong(*at)..]);
        habits::is_understood(&[before, "(", after].concat(), language)
    };
    let before = tokens[..stray].iter().rev().take(MAX_LOOKED_BACK);
    let (at, function) = before.filter_map(behind).find(is_right)?;
    let place = origin.span(offset(at), offset(at + wrong(at)));
    let message = format!("`(` is missing behind `{function}`");
    Some(
        Diagnostic::error(Code::UnbalancedDelimiter, place, message)
            .label(origin.span(tokens[stray].start, tokens[stray].end), "closes it")
            .guess(place, "("),
    )
}

impl<'t> Repair<'_, 't> {
    /// Reports parentheses without a partner, and supplies or removes them.
    fn close_parentheses(&mut self) {
        let stray = std::mem::take(&mut self.delimiters.stray);
        let has_one_order = !stray.is_empty() && self.has_one_order();
        for &index in stray.iter().take(MAX_REPORTS) {
            let span = self.span(index, index);
            let error = Diagnostic::error(Code::UnbalancedDelimiter, span, "`)` closes nothing")
                .help("remove it, or open a parenthesis before it");
            let next = self.tokens[index..].iter().find(|at| at.token != Token::RightParen);
            self.report(match next.map(|at| at.token) {
                None if has_one_order => error.fix(span, ""),
                Some(Token::Star | Token::Slash) => error.guess(self.origin.span(0, 0), "("),
                _ => error.guess(span, ""),
            });
        }
        let unclosed: Vec<usize> = self.delimiters.unclosed().collect();
        if unclosed.is_empty() && stray.is_empty() {
            return;
        }
        let end = offset(self.text.len());
        // A text, name or pattern without its end has swallowed the rest, parentheses included.
        let swallowed = self.tokens.last().is_some_and(|at| {
            let has_end = self.text[..at.end as usize].ends_with(']');
            matches!(at.token, Token::Instance(_)) && !has_end
                || matches!(
                    at.token,
                    Token::Invalid(
                        Invalid::UnterminatedString
                            | Invalid::UnterminatedInstance
                            | Invalid::UnterminatedPattern
                    )
                )
        });
        if let (Some(&first), false) = (unclosed.first(), swallowed) {
            let message = match unclosed.len() {
                1 => "this `(` is never closed".to_owned(),
                count => format!("{count} parentheses are never closed"),
            };
            let mut diagnostic =
                Diagnostic::error(Code::UnbalancedDelimiter, self.origin.span(end, end), message)
                    .label(self.origin.span(end, end), "`)` is missing here or earlier");
            for &open in unclosed.iter().take(3) {
                diagnostic = diagnostic.label(self.span(open, open), "opened here");
            }
            let all = ")".repeat(unclosed.len());
            let forced = self.forced_close(first).filter(|_| unclosed.len() == 1);
            diagnostic = match forced {
                Some(place) => {
                    let place = self.origin.span(place, place);
                    // A further operator may belong to both sides of it.
                    let goes_on = self.at(first + 2).is_some_and(Token::is_binary_operator);
                    diagnostic.edit(Fix { span: place, text: all, is_certain: !goes_on })
                }
                None if habits::is_understood(&format!("{}{all}", self.text), self.language) => {
                    diagnostic.guess(self.origin.span(end, end), all)
                }
                None => diagnostic,
            };
            self.report(diagnostic);
        }
        let mut tokens = Vec::with_capacity(self.tokens.len() + unclosed.len());
        let mut stray = stray.into_iter().peekable();
        let mut missing = unclosed.len();
        let mut unclosed = unclosed.into_iter().peekable();
        let mut close_after = None;
        for (index, at) in self.tokens.iter().enumerate() {
            if stray.next_if_eq(&index).is_some() {
                continue;
            }
            tokens.push(*at);
            if unclosed.next_if_eq(&index).is_some() && self.forced_close(index).is_some() {
                close_after = Some(index + 1);
            }
            if close_after == Some(index) {
                tokens.push(TokenAt { token: Token::RightParen, start: at.end, end: at.end });
                missing -= 1;
            }
        }
        let close = TokenAt { token: Token::RightParen, start: end, end };
        tokens.extend(std::iter::repeat_n(close, missing));
        self.tokens = tokens;
        self.delimiters = Delimiters::new(&self.tokens);
    }

    /// True if no parentheses would change the order of computation.
    fn has_one_order(&self) -> bool {
        let orders = |at: &&TokenAt<'_>| {
            habits::binding::level(at.token).is_some()
                || matches!(at.token, Token::Question | Token::Invalid(_))
        };
        self.tokens.iter().filter(orders).count() <= 1
    }

    /// The place where an open parenthesis must be closed: behind the name that
    /// is the function's only argument.
    fn forced_close(&self, open: usize) -> Option<u32> {
        let function = self.at(open.checked_sub(1)?)?;
        let takes_name = matches!(
            function,
            Token::Aggregate(_) | Token::Defined | Token::Anon | Token::NameTemporal(_)
        );
        match (takes_name, self.at(open + 1)) {
            (true, Some(Token::Name(_))) => self.tokens.get(open + 1).map(|at| at.end),
            _ => None,
        }
    }

    /// Handles the token at `index`, and returns the index of the next one.
    fn token(&mut self, index: usize) -> usize {
        let at = self.tokens[index];
        match at.token {
            Token::Assign => self.assign(index),
            Token::Instance(_) => self.instance(index),
            Token::Keyword(_) | Token::MetaKeyword => self.keyword(index),
            Token::Name(name) => {
                if let Some(next) = habits::words::operator(self, index, name) {
                    return next;
                }
                if self.at(index + 1) == Some(Token::LeftParen) {
                    return self.unknown_function(index, name);
                }
                self.name(index, name)
            }
            Token::LeftParen => self.parenthesis(index),
            Token::Colon => self.colon(index),
            Token::Str(text) => self.text(index, text),
            Token::By => by::check(self, index),
            token if token.is_function() => calls::check(self, index, token),
            Token::Less
            | Token::LessEqual
            | Token::Greater
            | Token::GreaterEqual
            | Token::Equal
            | Token::NotEqual
            | Token::Bang
            | Token::Star => self.two_operators(index),
            token => {
                self.push(token, index, index);
                index + 1
            }
        }
    }

    /// `=` outside the keywords of a call.
    fn assign(&mut self, index: usize) -> usize {
        let touching = self.tokens.get(index + 1).filter(|at| at.start == self.tokens[index].end);
        let (meant, token, last) = match touching.map(|at| at.token) {
            Some(Token::Less) => ("<=", Token::LessEqual, index + 1),
            Some(Token::Greater) => (">=", Token::GreaterEqual, index + 1),
            Some(Token::Bang) => ("!=", Token::NotEqual, index + 1),
            // With a blank between the two.
            _ if self.at(index + 1) == Some(Token::Assign) => ("==", Token::Equal, index + 1),
            _ => ("==", Token::Equal, index),
        };
        let span = self.span(index, last);
        if index == 0 && last == 0 {
            let message = "an expression begins with no `=`";
            self.report(unexpected(span, message).guess(span, ""));
            return 1;
        }
        if self.begins_definition(index) {
            let name = self.span(index - 1, index - 1);
            // The tokens before it may have been reported.
            if !matches!(self.at(index - 2), Some(Token::Invalid(_))) {
                let message = "this line has two definitions";
                self.report(
                    unexpected(span, message)
                        .label(name, "the second of them")
                        .help("each definition has a line of its own"),
                );
            }
            self.out.pop();
            return self.blot_out(index - 1, self.tokens.len() - 1);
        }
        let message = format!("`{}` is no operator", self.slice(index, last));
        let error = unexpected(span, message);
        // With a refused character before it, it would become another operator.
        let is_glued = self.text[..self.tokens[index].start as usize].ends_with(|c: char| {
            c.is_ascii_punctuation() && !matches!(c, ')' | ']' | '_' | '.' | '"' | '\'')
        });
        let is_name = |index: usize| matches!(self.at(index), Some(Token::Name(_)));
        // Elsewhere `a = b = 4` sets both.
        let is_of_chain = |at: usize| match at % 2 {
            0 => is_name(at),
            _ => self.at(at) == Some(Token::Assign),
        };
        let is_chain = index == last && index % 2 == 1 && (0..index).all(is_of_chain);
        let is_of_call = index > 2
            && is_name(index - 1)
            && match self.tokens[index - 2].token {
                Token::LeftParen => {
                    let before = self.tokens[index - 3].token;
                    let is_word = habits::binding::level(before).is_some();
                    before.is_function() || is_name(index - 3) && !is_word
                }
                token => token == Token::Comma,
            };
        let text = meant.to_owned();
        let is_certain = !is_chain && !is_of_call;
        self.report(match is_glued {
            true => error.help("to compare, write `==` alone"),
            false if is_chain => error
                .help(format!("leave out `{}`; to compare, write `==`", self.slice(0, index)))
                .edit(Fix { span, text, is_certain }),
            false => error.help(format!("to compare, write `{meant}`")).edit(Fix {
                span,
                text,
                is_certain,
            }),
        });
        self.push(token, index, last);
        last + 1
    }

    /// True for the `=` of a further definition: a name stands before it, and before that the
    /// beginning of a line, or no operator.
    fn begins_definition(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(2) else { return false };
        let (end, start) = (self.tokens[before].end, self.tokens[index - 1].start);
        let begins_line = self.origin.is_joined(end, start);
        let is_operand = matches!(
            self.tokens[before].token,
            Token::Name(_)
                | Token::Integer(_)
                | Token::Double(_)
                | Token::Str(_)
                | Token::Instance(_)
                | Token::RightParen
                | Token::Invalid(_)
        );
        (is_operand || begins_line) && matches!(self.tokens[index - 1].token, Token::Name(_))
    }

    /// Two tokens for one operator: `< =` with a blank, or `<>`, `===`, `!==`,
    /// `**` of other languages.
    fn two_operators(&mut self, index: usize) -> usize {
        let token = self.tokens[index].token;
        let whole = match (token, self.at(index + 1)) {
            (Token::Less, Some(Token::Assign)) => Some(("<=", Token::LessEqual)),
            (Token::Greater, Some(Token::Assign)) => Some((">=", Token::GreaterEqual)),
            (Token::Bang, Some(Token::Assign)) => Some(("!=", Token::NotEqual)),
            _ => None,
        };
        if let Some((meant, token)) = whole {
            let span = self.span(index, index + 1);
            self.report(lexical::broken_operator(span, meant));
            self.push(token, index, index + 1);
            return index + 2;
        }
        let is_assign = self.at(index + 1) == Some(Token::Assign);
        let next = self.tokens.get(index + 1).filter(|at| at.start == self.tokens[index].end);
        let meant = match (token, next.map(|at| at.token)) {
            (Token::Less, Some(Token::Greater)) => Some(("!=", Token::NotEqual)),
            (Token::Equal, _) if is_assign => Some(("==", Token::Equal)),
            (Token::NotEqual, _) if is_assign => Some(("!=", Token::NotEqual)),
            (Token::LessEqual, _) if is_assign => Some(("<=", Token::LessEqual)),
            (Token::GreaterEqual, _) if is_assign => Some((">=", Token::GreaterEqual)),
            (Token::Star, Some(Token::Star)) => None,
            _ => {
                self.push(token, index, index);
                return index + 1;
            }
        };
        let span = self.span(index, index + 1);
        let message = format!("`{}` is no operator", self.slice(index, index + 1));
        let diagnostic = unexpected(span, message);
        match meant {
            Some((text, token)) => {
                self.report(diagnostic.help(format!("write `{text}`")).fix(span, text));
                self.push(token, index, index + 1);
            }
            None => {
                self.report(diagnostic.help(lexical::NO_POWER));
                self.push(Token::Star, index, index + 1);
            }
        }
        index + 2
    }

    /// `[...]` behind something that it cannot select from.
    fn instance(&mut self, index: usize) -> usize {
        let Some(before) = index.checked_sub(1) else {
            return self.misplaced_instance(index, "there is no metric before it");
        };
        match self.tokens[before].token {
            Token::Name(_) => {}
            Token::RightParen => {
                if let Some((_, Some(function))) = self.delimiters.call_before(&self.tokens, before)
                {
                    let call = self.slice(function, before);
                    let span = self.span(index, index);
                    if habits::calls::is_window(self.tokens[index].token) {
                        self.report(
                            unexpected(span, "there are no windows of time in brackets")
                                .label(span, "brackets choose an instance by its name")
                                .help(WINDOWS)
                                .guess(span, ""),
                        );
                        return index + 1;
                    }
                    let mut diagnostic = unexpected(
                        span,
                        "an instance cannot be selected from a function call directly",
                    )
                    .label(self.span(function, before), "a function call")
                    .help("put the call in parentheses");
                    if call.len() <= 80 {
                        let fixed = format!("({call}){}", self.slice(index, index));
                        diagnostic = diagnostic.fix(self.span(function, index), fixed);
                    }
                    self.report(diagnostic);
                    return index + 1;
                }
            }
            Token::Instance(_) => {
                let span = self.span(index, index);
                self.report(
                    unexpected(span, "a second instance is selected")
                        .label(self.span(before, before), "the first")
                        .help("a metric has one instance of a name at most; keep one selector"),
                );
                return index + 1;
            }
            Token::Integer(_) | Token::Double(_) => {
                let span = self.span(index, index);
                self.report(
                    unexpected(span, "a constant has no instances")
                        .label(self.span(before, before), "a constant"),
                );
                return index + 1;
            }
            Token::Invalid(_) => return index + 1,
            _ => return self.misplaced_instance(index, "there is no metric before it"),
        }
        let token = self.tokens[index].token;
        self.push(token, index, index);
        index + 1
    }

    fn misplaced_instance(&mut self, index: usize, why: &str) -> usize {
        let span = self.span(index, index);
        if let (Token::Instance(inside), 1) = (self.tokens[index].token, self.tokens.len()) {
            let error = unexpected(span, "there are no lists");
            self.report(match inside.contains([',', ']']) {
                true => error.help("write a definition for each, on a line of its own"),
                false => error.help("leave the brackets out").guess(span, inside.trim()),
            });
            return self.blot_out(index, index);
        }
        let bracket = Some(Token::Invalid(Invalid::Character(']')));
        if self.slice(index, index).starts_with("[[") && self.at(index + 1) == bracket {
            let span = self.span(index, index + 1);
            self.retract(index, index + 1);
            self.report(
                Diagnostic::error(Code::IllegalCharacter, span, "brackets stand once")
                    .help("an instance has one pair, behind the name of its metric"),
            );
            return self.blot_out(index, index + 1);
        }
        self.report(
            unexpected(span, "an instance of nothing is selected")
                .label(span, why)
                .help("write the metric first: `disk.dev.read[sda]`"),
        );
        self.blot_out(index, index)
    }

    /// A reserved word outside the arguments of `mkconst()` and `novalue()`.
    fn keyword(&mut self, index: usize) -> usize {
        let span = self.span(index, index);
        let message = format!("`{}` is a reserved word", self.slice(index, index));
        self.report(
            unexpected(span, message)
                .label(span, "not the name of a metric")
                .help("libpcp keeps this word for the arguments of `mkconst()` and `novalue()`"),
        );
        self.blot_out(index, index)
    }
}
