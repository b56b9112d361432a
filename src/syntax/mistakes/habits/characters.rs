//! Finds habits in single characters or in several tokens that touch: variables,
//! comments, typographic quotation marks. [`super::braces`], [`super::numbers`]
//! and [`super::patterns`] find some of them.
//!
//! It looks at neighbours, never at the structure of the expression.

use crate::diag::{Code, Diagnostic, Fix};
use crate::dialect::Language;
use crate::syntax::names::is_metric_name;
use crate::syntax::origin::Origin;
use crate::syntax::token::{Invalid, Token, TokenAt, text_expected};
use crate::text::{Span, offset};

use super::super::lexical::without_quotes;
use super::is_understood;

/// Largest number of tokens in one habit.
pub(super) const MAX_TOKENS: usize = 400;

/// The tokens of a refused text.
#[derive(Clone, Copy)]
pub(in crate::syntax) struct Characters<'c, 't> {
    pub text: &'t str,
    pub tokens: &'c [TokenAt<'t>],
    pub origin: &'c Origin,
    pub language: Language,
}

/// A habit.
pub(in crate::syntax) struct FoundHabit<'t> {
    pub diagnostic: Diagnostic,
    /// Index of its last token.
    pub last: usize,
    /// The token for the grammar in its place.
    pub token: Option<Token<'t>>,
}

impl<'t> Characters<'_, 't> {
    /// The habit that begins at a token. `out` are the earlier tokens that
    /// count.
    pub fn find(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
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

    pub(super) fn at(&self, index: usize) -> Option<Token<'t>> {
        self.tokens.get(index).map(|at| at.token)
    }

    /// True if the next token is this one and nothing stands between.
    pub(super) fn touches(&self, index: usize, token: Token<'_>) -> bool {
        self.is_glued(index + 1) && self.at(index + 1) == Some(token)
    }

    /// True if nothing stands between a token and the one before it.
    pub(super) fn is_glued(&self, index: usize) -> bool {
        index > 0 && self.tokens.get(index).is_some_and(|at| at.start == self.tokens[index - 1].end)
    }

    pub(super) fn span(&self, first: usize, last: usize) -> Span {
        self.origin.span(self.tokens[first].start, self.tokens[last].end)
    }

    /// The text from one token to another.
    pub(super) fn text_of(&self, first: usize, last: usize) -> &'t str {
        self.slice(self.tokens[first].start, self.tokens[last].end)
    }

    pub(super) fn slice(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    pub(super) fn error(
        &self,
        first: usize,
        last: usize,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(Code::IllegalCharacter, self.span(first, last), message)
    }

    /// Index of the first following token that `wanted` accepts.
    pub(super) fn following(
        &self,
        index: usize,
        is_wanted: impl Fn(Token<'_>) -> bool,
    ) -> Option<usize> {
        let mut following = self.tokens.iter().enumerate().skip(index + 1).take(MAX_TOKENS);
        following.find(|(_, at)| is_wanted(at.token)).map(|(index, _)| index)
    }

    /// `$host`, `${host}`
    fn variable(&self, index: usize) -> Option<FoundHabit<'t>> {
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
        let name = self.text_of(index, last);
        let diagnostic = self
            .error(index, last, "definitions have no variables")
            .help(format!("write the value of `{name}`; `matchinst()` selects several instances"));
        Some(FoundHabit { diagnostic, last, token: Some(Token::Invalid(Invalid::Refused)) })
    }

    /// `~x`
    fn complement(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let is_sign = out.last().is_none_or(|at| at.token.wants_operand())
            && self.at(index + 1).is_some_and(Token::begins_operand);
        let diagnostic = self
            .error(index, index, "`~` is no operator")
            .help("there are no operators on bits; `!` gives 1 for 0, and 0 for all others");
        is_sign.then_some(FoundHabit { diagnostic, last: index, token: None })
    }

    /// `;` at the end, or between arguments.
    fn semicolon(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let place = self.span(index, index);
        let open = innermost(out).is_some();
        if open && index + 1 < self.tokens.len() {
            // Where fractions have commas, `;` separates arguments.
            let is_fraction = |three: &[TokenAt<'_>]| {
                let [whole, comma, part] = three else { return false };
                matches!((whole.token, part.token), (Token::Integer(_), Token::Integer(_)))
                    && comma.token == Token::Comma
                    && (whole.end, comma.end) == (comma.start, part.start)
            };
            let is_certain = !self.tokens.windows(3).any(is_fraction);
            let diagnostic = self
                .error(index, index, "`;` separates no arguments")
                .help(if is_certain { "write `,`" } else { "write `,`, and `.` in fractions" })
                .edit(Fix { span: place, text: ",".to_owned(), is_certain });
            return Some(FoundHabit { diagnostic, last: index, token: Some(Token::Comma) });
        }
        (index + 1 == self.tokens.len()).then(|| {
            let diagnostic = self
                .error(index, index, "`;` ends nothing: a definition ends with its line")
                .fix(place, "");
            FoundHabit { diagnostic, last: index, token: None }
        })
    }

    /// `metric #'instance'`
    fn instance_of_pmie(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
        let next = self.tokens.get(index + 1).filter(|_| self.is_glued(index + 1))?;
        if !matches!(next.token, Token::Invalid(Invalid::SingleQuoted) | Token::Str(_)) {
            return None;
        }
        let inside = self.slice(next.start + 1, next.end - 1);
        let before = out.last().filter(|at| matches!(at.token, Token::Name(_)))?;
        let is_hash = |index| self.at(index) == Some(Token::Invalid(Invalid::Character('#')));
        let mut last = index + 1;
        while is_hash(last + 1) && self.is_glued(last + 2) {
            last += 2;
        }
        let error = self.error(index, last, "`#` chooses instances in pmie only");
        if last > index + 1 {
            let diagnostic =
                error.help("brackets have one instance; `matchinst()` chooses several");
            return Some(FoundHabit { diagnostic, last, token: Some(Token::Instance(inside)) });
        }
        if inside.contains(['\'', ']', '\\']) {
            return None;
        }
        let place = self.origin.span(before.end, next.end);
        let diagnostic =
            error.help("an instance stands in brackets").fix(place, format!("[{inside}]"));
        Some(FoundHabit { diagnostic, last, token: Some(Token::Instance(inside)) })
    }

    /// Parentheses as wide as Chinese characters.
    fn wide_parentheses(&self, index: usize) -> Option<FoundHabit<'t>> {
        let is_close =
            |at: &TokenAt<'_>| at.token == Token::Invalid(Invalid::Character('\u{ff09}'));
        let last = self.tokens.iter().rposition(is_close).filter(|last| *last > index)?;
        let text = self.text_of(index, last);
        let plain = text.replace('\u{ff08}', "(").replace('\u{ff09}', ")").replace('\u{ff0c}', ",");
        let diagnostic = self
            .error(index, last, "these parentheses are wider than those of expressions")
            .help("parentheses are `(` and `)`")
            .fix(self.span(index, last), plain);
        Some(FoundHabit { diagnostic, last, token: Some(Token::Invalid(Invalid::Refused)) })
    }

    /// A character without width, from a copied text. The text that touches it
    /// belongs to the same name.
    fn invisible(&self, index: usize, character: char) -> FoundHabit<'t> {
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
        FoundHabit { diagnostic, last, token: Some(Token::Invalid(Invalid::Refused)) }
    }

    /// `[[vda]]`
    fn brackets_twice(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
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
        Some(FoundHabit { diagnostic, last: index, token: None })
    }

    /// Typographic quotation marks.
    fn print_quotes(&self, index: usize, out: &[TokenAt<'t>]) -> Option<FoundHabit<'t>> {
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
        Some(FoundHabit { diagnostic, last, token: Some(token) })
    }

    /// `//`: a comment, or a division whose result is a whole number.
    fn two_slashes(&self, index: usize) -> FoundHabit<'t> {
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
                .help("`/` always gives a double, of which `floor()` makes a whole number, with extensions")
                .guess(self.span(index, last), "/");
            return FoundHabit { diagnostic, last, token: Some(Token::Slash) };
        }
        // A remark has words; other text may be a divisor with another mistake.
        let remark = self.slice(self.tokens[last].end, self.end());
        let has_words = remark.chars().all(|c| c.is_alphabetic() || c == ' ');
        let is_remark = has_words && (remark.trim().is_empty() || remark.trim().contains(' '));
        self.no_comment(index, offset(self.text.len()), "//", is_remark && !is_word)
    }

    /// True if slashes have an operand behind them, or if the text is right with
    /// one.
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
    fn comment(&self, index: usize) -> FoundHabit<'t> {
        let start = self.tokens[index + 1].end;
        match self.slice(start, self.end()).find("*/") {
            Some(at) => self.no_comment(index, start + offset(at + 2), "/*", true),
            None => self.no_comment(index, self.end(), "/*", false),
        }
    }

    fn no_comment(&self, index: usize, end: u32, mark: &str, is_certain: bool) -> FoundHabit<'t> {
        let last = self.tokens.partition_point(|at| at.start < end).saturating_sub(1).max(index);
        let place = self.origin.span(self.tokens[index].start, end);
        // At the end of a line, the blanks before it go too.
        let is_last = end as usize == self.text.len() && index > 0;
        let removed = match is_last {
            true => self.origin.span(self.tokens[index - 1].end, end),
            false => place,
        };
        let message = format!("`{mark}` begins no comment");
        let diagnostic = Diagnostic::error(Code::IllegalCharacter, place, message)
            .help("a comment has a line of its own, which begins with `#`")
            .edit(Fix { span: removed, text: String::new(), is_certain });
        FoundHabit { diagnostic, last, token: None }
    }

    /// `-> action`
    fn action(&self, index: usize, out: &[TokenAt<'t>]) -> FoundHabit<'t> {
        let last = self.tokens.len() - 1;
        let end = offset(self.text.trim_end().len());
        let place = self.origin.span(out.last().map_or(0, |at| at.end), end);
        let diagnostic = self
            .error(index, index + 1, "`->` begins an action, which only pmie takes")
            .help("a definition computes a value and does nothing; leave out what follows it")
            .guess(place, "");
        FoundHabit { diagnostic, last, token: None }
    }

    /// `<< 3`
    fn shift(&self, index: usize) -> FoundHabit<'t> {
        let text = self.text_of(index, index + 1);
        let error = self.error(index, index + 1, format!("`{text}` is no operator"));
        let by = match self.at(index + 2) {
            Some(Token::Integer(number)) => number.parse::<u32>().ok().filter(|by| *by < 32),
            _ => None,
        };
        let Some(by) = by else {
            let help = "there are no operators on bits; multiply or divide by a power of two";
            let token = Some(Token::Star);
            return FoundHabit { diagnostic: error.help(help), last: index + 1, token };
        };
        let (symbol, token) = if text == "<<" { ("*", Token::Star) } else { ("/", Token::Slash) };
        let meant = format!("{symbol} {}", 1u32 << by);
        let diagnostic =
            error.help("there are no operators on bits").guess(self.span(index, index + 2), meant);
        FoundHabit { diagnostic, last: index + 1, token: Some(token) }
    }
}

/// True for characters that no editor shows.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

fn is_print_quote(character: char) -> bool {
    matches!(character, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

/// Index of the innermost parenthesis that these tokens leave open.
pub(super) fn innermost(out: &[TokenAt<'_>]) -> Option<usize> {
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
