//! Turns text into tokens. The meaning of a word or mark may depend on its
//! surroundings.
//!
//! A word is a function only if `(` follows it directly. A `/` begins a pattern
//! only as the first argument of `matchinst()`. The dialect determines the
//! keywords. Only the extensions have exponents of numbers and `by` after a
//! parenthesis. Lexing never fails: text that is no token becomes a
//! [`Token::Invalid`], which [`super::mistakes`] reports.

use logos::Logos;

use crate::dialect::{Dialect, Language};
use crate::functions;
use crate::syntax::Shape;
use crate::text::{offset, stray};

use super::ast::{Aggregate, Callee, Temporal};
use super::token::{Invalid, Keyword, RawToken, Token, TokenAt};

/// All tokens of a text shorter than 4 GiB.
pub fn lex(text: &str, language: Language) -> Vec<TokenAt<'_>> {
    let mut lexer =
        Lexer { language, pattern: AwaitPattern::No, open: Vec::new(), previous: Previous::Other };
    let mut raw = RawToken::lexer(text);
    // Most tokens, with the blanks around them, have more bytes than this.
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    while let Some(kind) = raw.next() {
        let start = raw.span().start;
        let token = match kind {
            Ok(kind) => lexer.token(kind, &mut raw),
            Err(()) => illegal(&mut raw),
        };
        lexer.follow(token);
        let end = raw.span().end;
        tokens.push(TokenAt { token, start: offset(start), end: offset(end) });
    }
    tokens
}

/// The function or reserved function word of this spelling.
pub fn function(word: &str, language: Language) -> Option<Token<'static>> {
    let dialect = language.dialect;
    let temporal = |function| {
        if dialect.is_version_7() {
            Token::Temporal(function)
        } else {
            Token::NameTemporal(function)
        }
    };
    if let Some(aggregate) = Aggregate::named(word) {
        return Some(match language.extensions {
            true => Token::Function(Shape::OneValue, Callee::Aggregate(aggregate)),
            false => Token::Aggregate(aggregate),
        });
    }
    if language.extensions
        && let Some(function) = functions::named(word)
    {
        return Some(Token::Function(function.shape, Callee::Function(function)));
    }
    Some(match word {
        "delta" => temporal(Temporal::Delta),
        "rate" => temporal(Temporal::Rate),
        "instant" => temporal(Temporal::Instant),
        "anon" => Token::Anon,
        "defined" => Token::Defined,
        "matchinst" => Token::MatchInst,
        "mkconst" => Token::MkConst,
        "rescale" => Token::Rescale,
        "scalar" => Token::Scalar,
        "novalue" if dialect.is_version_7() => Token::NoValue,
        "meta" if dialect == Dialect::Pcp7_2 => Token::MetaFunction,
        _ => return None,
    })
}

/// The keyword of this spelling.
fn keyword(word: &str, dialect: Dialect) -> Option<Token<'static>> {
    Some(match word {
        "type" => Token::Keyword(Keyword::Type),
        "semantics" => Token::Keyword(Keyword::Semantics),
        "units" => Token::Keyword(Keyword::Units),
        "indom" if dialect.is_version_7() => Token::Keyword(Keyword::Indom),
        "meta" if dialect.is_version_7() => Token::MetaKeyword,
        _ => return None,
    })
}

/// Removes each backslash and keeps the byte after it, for instance names and
/// patterns, which are UTF-8.
pub fn unescape(raw: &str) -> Box<str> {
    let text = stray::replaced(raw);
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain.into()
}

/// The distance to the pattern of a `matchinst()` or `matchvalue()`.
#[derive(Clone, Copy, PartialEq)]
enum AwaitPattern {
    No,
    /// After `matchinst`.
    AtParen,
    /// After `matchinst(`.
    AtBang,
    /// After `matchinst(!`.
    AtPattern,
}

/// The state that determines the meaning of the next token.
struct Lexer {
    language: Language,
    pattern: AwaitPattern,
    /// For each open parenthesis, whether it contains keywords.
    open: Vec<ParenthesisKind>,
    previous: Previous,
}

#[derive(Clone, Copy, PartialEq)]
enum ParenthesisKind {
    Expressions,
    Keywords,
    /// Names of labels, which are never functions or reserved words.
    Labels,
}

/// The token before, as far as it matters.
#[derive(Clone, Copy, PartialEq)]
enum Previous {
    /// `mkconst` or `novalue`
    KeywordFunction,
    /// The parenthesis after it.
    KeywordParen,
    RightParen,
    By,
    Comma,
    Other,
}

impl Lexer {
    fn token<'t>(&self, kind: RawToken, raw: &mut logos::Lexer<'t, RawToken>) -> Token<'t> {
        match kind {
            RawToken::Integer | RawToken::Double => self.number(kind, raw),
            RawToken::Word => self.word(raw),
            RawToken::Quote => match quoted(raw, '"', Escapes::None) {
                Some(text) => Token::Str(text),
                None => Token::Invalid(Invalid::UnterminatedString),
            },
            RawToken::SingleQuote => {
                // After a mistake, the rest of the text may be right.
                if raw.remainder().contains('\'') {
                    quoted(raw, '\'', Escapes::None);
                }
                Token::Invalid(Invalid::SingleQuoted)
            }
            RawToken::Bracket => match quoted(raw, ']', Escapes::Backslash) {
                Some(text) => Token::Instance(text),
                None => Token::Invalid(Invalid::UnterminatedInstance),
            },
            RawToken::Slash
                if matches!(self.pattern, AwaitPattern::AtBang | AwaitPattern::AtPattern) =>
            {
                match quoted(raw, '/', Escapes::Backslash) {
                    Some(text) => Token::Pattern(text),
                    None => Token::Invalid(Invalid::UnterminatedPattern),
                }
            }
            RawToken::Slash => Token::Slash,
            RawToken::Mark(token) => token,
        }
    }

    fn number<'t>(&self, kind: RawToken, raw: &mut logos::Lexer<'t, RawToken>) -> Token<'t> {
        if self.language.extensions
            && let Some(length) = exponent(raw)
        {
            raw.bump(length);
            return Token::Double(raw.slice());
        }
        match kind {
            RawToken::Integer if raw.slice().parse::<u32>().is_err() => {
                Token::Invalid(Invalid::TooLarge)
            }
            RawToken::Integer => Token::Integer(raw.slice()),
            _ => Token::Double(raw.slice()),
        }
    }

    fn word<'t>(&self, raw: &logos::Lexer<'t, RawToken>) -> Token<'t> {
        let word = raw.slice();
        if self.open.last() == Some(&ParenthesisKind::Labels) {
            return Token::Name(word);
        }
        if word == "by" && self.previous == Previous::RightParen && self.language.extensions {
            return Token::By;
        }
        let called = raw.remainder().starts_with('(');
        if called && let Some(token) = function(word, self.language) {
            return token;
        }
        // libpcp reserves the keywords everywhere, which hides metrics of these names.
        let reserved = self.language.dialect != Dialect::Fixed
            || self.previous == Previous::KeywordParen
            || self.previous == Previous::Comma
                && self.open.last() == Some(&ParenthesisKind::Keywords);
        if reserved && let Some(token) = keyword(word, self.language.dialect) {
            return token;
        }
        Token::Name(word)
    }

    /// Updates the state after a token.
    fn follow(&mut self, token: Token<'_>) {
        self.pattern = match (self.pattern, token) {
            (_, Token::MatchInst | Token::Function(Shape::PatternFirst, _)) => {
                AwaitPattern::AtParen
            }
            (AwaitPattern::AtParen, Token::LeftParen) => AwaitPattern::AtBang,
            (AwaitPattern::AtBang, Token::Bang) => AwaitPattern::AtPattern,
            _ => AwaitPattern::No,
        };
        self.previous = match token {
            Token::MkConst | Token::NoValue => Previous::KeywordFunction,
            Token::Comma => Previous::Comma,
            Token::LeftParen if self.previous == Previous::KeywordFunction => {
                self.open.push(ParenthesisKind::Keywords);
                Previous::KeywordParen
            }
            Token::LeftParen => {
                self.open.push(match self.previous {
                    Previous::By => ParenthesisKind::Labels,
                    _ => ParenthesisKind::Expressions,
                });
                Previous::Other
            }
            Token::RightParen => {
                self.open.pop();
                Previous::RightParen
            }
            Token::By => Previous::By,
            _ => Previous::Other,
        };
    }
}

/// Length of the exponent behind a number. `None` if the number has none that
/// makes it double precision.
fn exponent(raw: &logos::Lexer<'_, RawToken>) -> Option<usize> {
    let rest = raw.remainder().as_bytes();
    let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
    let digits = rest.get(1 + sign..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = 1 + sign + digits;
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    if !matches!(rest[0], b'e' | b'E') || digits == 0 || rest.get(end).is_some_and(is_word) {
        return None;
    }
    let spelling = format!("{}{}", raw.slice(), raw.remainder().get(..end)?);
    let value: f64 = spelling.parse().ok()?;
    let is_held = value.is_finite() && (value != 0.0 || is_zero(raw.slice()));
    is_held.then_some(end)
}

/// True for digits whose value is zero, whatever their exponent is.
pub(super) fn is_zero(digits: &str) -> bool {
    digits.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

/// True if a backslash hides the end of a quoted text.
#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    None,
    Backslash,
}

/// The text up to `end`, which is skipped too. If `end` is missing, the rest of
/// the input is skipped, and the result is `None`.
fn quoted<'t>(
    raw: &mut logos::Lexer<'t, RawToken>,
    end: char,
    escapes: Escapes,
) -> Option<&'t str> {
    let rest = raw.remainder();
    let mut escaped = false;
    for (position, character) in rest.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' && escapes == Escapes::Backslash {
            escaped = true;
        } else if character == end {
            raw.bump(position + character.len_utf8());
            return Some(&rest[..position]);
        }
    }
    raw.bump(rest.len());
    None
}

/// One character that begins no token.
fn illegal<'t>(raw: &mut logos::Lexer<'t, RawToken>) -> Token<'t> {
    let character = raw.slice().chars().next().unwrap_or('\u{fffd}');
    Token::Invalid(Invalid::Character(character))
}
