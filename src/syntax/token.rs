//! The tokens of an expression.
//!
//! A [`RawToken`] depends on its characters alone; logos finds it. The grammar reads a [`Token`];
//! the lexer makes it from raw tokens and their surroundings.

use logos::Logos;

use crate::dialect::Language;
use crate::syntax::Shape;

use super::ast::{Aggregate, Callee, Temporal};

/// A token without a text.
type Mark = Token<'static>;

/// Tokens that need no context. White space is that of `isspace(3)` in the C
/// locale.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\n\r\x0B\x0C]+")]
pub(super) enum RawToken {
    #[regex(r"[0-9]+")]
    Integer,
    #[regex(r"[0-9]*\.[0-9]*")]
    Double,
    #[regex(r"[A-Za-z][A-Za-z0-9_.]*")]
    Word,
    #[token("\"")]
    Quote,
    #[token("'")]
    SingleQuote,
    #[token("[")]
    Bracket,
    #[token("/")]
    Slash,
    /// A mark that is the same token everywhere.
    #[token("(", |_| Token::LeftParen)]
    #[token(")", |_| Token::RightParen)]
    #[token(",", |_| Token::Comma)]
    #[token("?", |_| Token::Question)]
    #[token(":", |_| Token::Colon)]
    #[token("=", |_| Token::Assign)]
    #[token("+", |_| Token::Plus)]
    #[token("-", |_| Token::Minus)]
    #[token("*", |_| Token::Star)]
    #[token("!", |_| Token::Bang)]
    #[token("<", |_| Token::Less)]
    #[token("<=", |_| Token::LessEqual)]
    #[token("==", |_| Token::Equal)]
    #[token(">=", |_| Token::GreaterEqual)]
    #[token(">", |_| Token::Greater)]
    #[token("!=", |_| Token::NotEqual)]
    #[token("&&", |_| Token::AndAnd)]
    #[token("||", |_| Token::OrOr)]
    #[token("&", |_| Token::Invalid(Invalid::HalfOperator('&')))]
    #[token("|", |_| Token::Invalid(Invalid::HalfOperator('|')))]
    Mark(Mark),
}

/// The grammar's tokens. Texts are slices of the input, without delimiters but
/// still with backslashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// `42`
    Integer(&'t str),
    /// `1.5`
    Double(&'t str),
    /// `disk.dev.read`
    Name(&'t str),
    /// `"byte/sec"`
    Str(&'t str),
    /// `[sda]`
    Instance(&'t str),
    /// `/^sd/` where `matchinst()` expects it.
    Pattern(&'t str),
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `,`
    Comma,
    /// `?`
    Question,
    /// `:`
    Colon,
    /// `=`
    Assign,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `!`
    Bang,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `==`
    Equal,
    /// `>=`
    GreaterEqual,
    /// `>`
    Greater,
    /// `!=`
    NotEqual,
    /// `&&`
    AndAnd,
    /// `||`
    OrOr,
    /// `avg`, `count`, `max`, `min`, `sum`
    Aggregate(Aggregate),
    /// `delta`, `rate`, `instant` of an expression.
    Temporal(Temporal),
    /// `delta`, `rate`, `instant` of a name, in version 6.
    NameTemporal(Temporal),
    /// `defined`
    Defined,
    /// `anon`
    Anon,
    /// `scalar`
    Scalar,
    /// `rescale`
    Rescale,
    /// `matchinst`
    MatchInst,
    /// `mkconst`
    MkConst,
    /// `novalue`
    NoValue,
    /// `meta(`: reserved as a function by libpcp 7 without being one.
    MetaFunction,
    /// `by` behind a call; libpcp does not have it.
    By,
    /// A function that libpcp does not have, with the form of its arguments.
    /// Aggregates are here too, if their argument may be an expression.
    Function(Shape, Callee),
    /// `type`, `semantics`, `units`, `indom`
    Keyword(Keyword),
    /// `meta`
    MetaKeyword,
    /// An invalid token; the lexer or the repairs have reported it.
    Invalid(Invalid),
}

/// Keywords whose value is a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `type`
    Type,
    /// `semantics`
    Semantics,
    /// `units`
    Units,
    /// `indom`
    Indom,
}

/// The reason why a token is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A character that begins no token.
    Character(char),
    /// `&` or `|` alone.
    HalfOperator(char),
    /// `'text'`
    SingleQuoted,
    /// An integer above 4294967295.
    TooLarge,
    /// `"` without its end.
    UnterminatedString,
    /// `[` without its end.
    UnterminatedInstance,
    /// `/` without its end.
    UnterminatedPattern,
    /// Tokens that were refused as a whole.
    Refused,
}

/// A token and its place, as byte offsets into the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenAt<'t> {
    /// The token.
    pub token: Token<'t>,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
}

impl Invalid {
    /// libpcp's message about it.
    pub const fn pcp_message(self) -> &'static str {
        match self {
            Invalid::TooLarge => "Constant value too large",
            Invalid::UnterminatedString => "unterminated STRING",
            Invalid::UnterminatedInstance => "unterminated instance name",
            Invalid::UnterminatedPattern => "unterminated pattern",
            Invalid::Character(_)
            | Invalid::HalfOperator(_)
            | Invalid::SingleQuoted
            | Invalid::Refused => "Illegal character",
        }
    }
}

impl Token<'_> {
    /// True for tokens that an operand must follow.
    pub fn wants_operand(self) -> bool {
        self.is_binary_operator()
            || matches!(
                self,
                Token::LeftParen | Token::Comma | Token::Question | Token::Colon | Token::Bang
            )
    }

    /// True for tokens that may begin an operand.
    pub fn begins_operand(self) -> bool {
        self.is_function()
            || matches!(
                self,
                Token::Name(_)
                    | Token::Integer(_)
                    | Token::Double(_)
                    | Token::LeftParen
                    | Token::Minus
                    | Token::Bang
            )
    }

    /// True for tokens that are a binary operator.
    pub fn is_binary_operator(self) -> bool {
        self.binary_node().is_some()
    }

    /// libpcp's name for the node of a binary operator.
    pub fn binary_node(self) -> Option<&'static str> {
        Some(match self {
            Token::Plus => "PLUS",
            Token::Minus => "MINUS",
            Token::Star => "STAR",
            Token::Slash => "SLASH",
            Token::Less => "LT",
            Token::LessEqual => "LEQ",
            Token::Equal => "EQ",
            Token::GreaterEqual => "GEQ",
            Token::Greater => "GT",
            Token::NotEqual => "NEQ",
            Token::AndAnd => "AND",
            Token::OrOr => "OR",
            _ => return None,
        })
    }

    /// True for what a call may begin with: the name of a function, known or not.
    pub fn may_be_called(self) -> bool {
        self.is_function() || matches!(self, Token::Name(_))
    }

    /// True for the names of functions, which a `(` always follows.
    pub fn is_function(self) -> bool {
        matches!(
            self,
            Token::Aggregate(_)
                | Token::Temporal(_)
                | Token::NameTemporal(_)
                | Token::Defined
                | Token::Anon
                | Token::Scalar
                | Token::Rescale
                | Token::MatchInst
                | Token::MkConst
                | Token::NoValue
                | Token::MetaFunction
                | Token::Function(..)
        )
    }
}

/// True for places of a text: as units, as the value of a keyword, or beside
/// another text in a comparison.
pub(super) fn text_expected(before: Option<Token<'_>>, language: Language) -> bool {
    match before {
        Some(Token::Assign | Token::Comma) => true,
        Some(Token::Equal | Token::NotEqual) => language.extensions,
        _ => false,
    }
}
