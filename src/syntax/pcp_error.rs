//! Finds where libpcp refuses an expression, and with which words.
//!
//! Programs compare `pmRegisterDerived(3)`'s position and the text of
//! `pmDerivedErrStr(3)`. Both follow from the states of a table-driven parser
//! with error productions. This module walks the tokens with a stack of open
//! constructs, in linear time, and stops at the first mistake. It builds no
//! tree. The grammar accepts exactly what this walk accepts. With extensions it
//! walks over those too; a stop there tells only that there is a mistake.

mod extensions;

use std::fmt;

use pmderive_runtime::pattern::{Pattern, PatternError};

use crate::dialect::Language;
use crate::syntax::Shape;

use super::keywords;
use super::lexer::unescape;
use super::token::{Keyword, Token, TokenAt};

/// libpcp's own report of the first error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcpError {
    /// Byte offset into the expression, from 0: the first byte of the last token read,
    /// or the last byte if all were read; -1 for the empty text.
    pub offset: i64,
    /// libpcp's text. For some mistakes, libpcp has none.
    pub message: Option<String>,
}

/// libpcp's text with its place, which is a number of bytes from 0.
impl fmt::Display for PcpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.offset, self.message.as_deref()) {
            (-1, None) => f.write_str("the expression is empty"),
            (-1, Some(message)) => write!(f, "{message}: the expression is empty"),
            (offset, message) => {
                let message = message.unwrap_or("it cannot be used");
                write!(f, "{message}, at byte {offset} of the expression")
            }
        }
    }
}

impl std::error::Error for PcpError {}

/// Largest number of open constructs: parentheses, calls, prefix operators,
/// `?`. libpcp's stack of 10,000 holds that many parentheses or prefix
/// operators, and fewer of other constructs.
pub const MAX_NESTING: usize = 9_997;

/// The first error, and the kind of its place.
pub struct Refusal {
    /// libpcp's report.
    pub error: PcpError,
    /// The kind of place.
    pub at: RefusedAt,
}

/// Kinds of places of an error.
pub enum RefusedAt {
    /// A wrong token.
    Token {
        /// Index of the next token to read; the number of tokens at the end.
        next: usize,
    },
    /// A construct that is nested too deeply, though it may be right.
    Nesting {
        /// Index of the token that begins the level beyond the limit.
        token: usize,
    },
}

/// Finds the first error, if there is one.
pub fn find<'t>(
    text: &'t str,
    tokens: &'t [TokenAt<'t>],
    language: Language,
) -> Result<(), Refusal> {
    let end = text.char_indices().next_back().map_or(-1, |(at, _)| i64::try_from(at).unwrap_or(0));
    let mut open = Vec::with_capacity(8);
    open.push(Open::Start);
    let mut finder = Finder { text, tokens, next: 0, end, language, open };
    finder.expression().map_err(|error| {
        let at = match finder.is_too_deep() {
            true => RefusedAt::Nesting { token: finder.next.saturating_sub(1) },
            false => RefusedAt::Token { next: finder.next },
        };
        Refusal { error, at }
    })
}

/// The constructs that are open at the place of reading.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    /// The whole expression.
    Start,
    /// A parenthesis that is the very first token.
    FirstParen,
    /// Any other parenthesis.
    Paren,
    /// The expression within a call. It has words for any mistake in it.
    Call(Call),
    /// After `?`, with whether the first branch is `novalue()`.
    Question { novalue: bool },
    /// After a prefix or infix operator or `:`, which only the next operand closes.
    Operator { kind: &'static str, node: &'static str },
}

/// Calls that have an expression as argument.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// `delta(` and the like.
    Plain(&'static str),
    /// `rescale(`
    Rescale,
    /// `matchinst(/pattern/,`
    Match,
    /// A function that libpcp does not have, before this many commas.
    Values(u8),
    /// A function that libpcp does not have, before `, "interval"`.
    Interval,
    /// A function that `by` may follow.
    Aggregate,
}

/// The tokens that may follow the last operand.
#[derive(Clone, Copy, PartialEq)]
enum Operand {
    /// A name: a selector may follow, and any other token has its own message.
    Name,
    /// A parenthesised expression: a selector.
    Parenthesised,
    /// `novalue()` as first branch of a ternary: only `:`.
    FirstNoValue,
    /// The call of an aggregate: `by`.
    Aggregate,
    /// Any other operand.
    Other,
}

impl Open {
    /// The operand that `)` completes, if `)` may stand here.
    fn closed(self) -> Option<Operand> {
        match self {
            Open::FirstParen | Open::Paren => Some(Operand::Parenthesised),
            Open::Call(Call::Plain(_) | Call::Match | Call::Values(0)) => Some(Operand::Other),
            Open::Call(Call::Aggregate) => Some(Operand::Aggregate),
            _ => None,
        }
    }
}

type Found<T> = Result<T, PcpError>;

struct Finder<'t> {
    text: &'t str,
    tokens: &'t [TokenAt<'t>],
    /// Index of the next token.
    next: usize,
    /// Offset of the last byte.
    end: i64,
    language: Language,
    open: Vec<Open>,
}

impl<'t> Finder<'t> {
    fn expression(&mut self) -> Found<()> {
        loop {
            if self.is_too_deep() {
                // libpcp overflows with the next token already read, and has no
                // words.
                return self.fail(None);
            }
            let operand = self.operand()?;
            if let Some(mut operand) = operand
                && !self.after_operand(&mut operand)?
            {
                return Ok(());
            }
        }
    }

    /// The next token as it is written.
    fn spelling(&self) -> &'t str {
        let at = self.tokens.get(self.next).map(|at| at.start as usize..at.end as usize);
        at.and_then(|at| self.text.get(at)).unwrap_or_default()
    }

    fn is_too_deep(&self) -> bool {
        self.open.len() > MAX_NESTING + 1
    }

    /// The next token, `None` at the end. An invalid token is the error.
    fn peek(&self) -> Found<Option<Token<'t>>> {
        match self.tokens.get(self.next) {
            Some(TokenAt { token: Token::Invalid(why), start, .. }) => Err(PcpError {
                offset: i64::from(*start),
                message: Some(why.pcp_message().to_owned()),
            }),
            Some(at) => Ok(Some(at.token)),
            None => Ok(None),
        }
    }

    /// An error at the next token, or a lexical one if that token is invalid.
    fn fail<T>(&self, message: Option<String>) -> Found<T> {
        self.peek()?;
        let offset = match self.tokens.get(self.next) {
            Some(at) => i64::from(at.start),
            None => self.end,
        };
        Err(PcpError { offset, message })
    }

    /// An error at the token before the next one.
    fn fail_behind<T>(&self, message: String) -> Found<T> {
        let offset =
            self.tokens.get(self.next.wrapping_sub(1)).map_or(-1, |at| i64::from(at.start));
        Err(PcpError { offset, message: Some(message) })
    }

    fn fail_text<T>(&self, message: &str) -> Found<T> {
        self.fail(Some(message.to_owned()))
    }

    /// An error with the words of the innermost open construct that has any.
    fn fail_open<T>(&self) -> Found<T> {
        let message = self.open.iter().rev().find_map(|open| match open {
            Open::Start | Open::Paren => None,
            Open::Call(Call::Values(_) | Call::Interval | Call::Aggregate) => None,
            Open::FirstParen => Some("Unexpected initial '('".to_owned()),
            Open::Call(Call::Plain("instant")) => {
                Some("Metric name expected to follow instant(".to_owned())
            }
            Open::Call(Call::Plain(function)) => {
                Some(format!("<expr> expected to follow {function}("))
            }
            Open::Call(Call::Rescale) => Some(
                "Arithmetic or relational or boolean operator expected to follow rescale("
                    .to_owned(),
            ),
            Open::Call(Call::Match) => {
                Some("<expr>) expected to follow matchinst(<filter>,".to_owned())
            }
            Open::Question { .. } => {
                Some("Arithmetic expression expected to follow QUEST".to_owned())
            }
            Open::Operator { kind, node } => {
                Some(format!("{kind} expression expected to follow {node}"))
            }
        });
        self.fail(message)
    }

    /// Reads up to a complete operand. `None` after an opening token, when an
    /// operand must still follow.
    fn operand(&mut self) -> Found<Option<Operand>> {
        let Some(token) = self.peek()? else { return self.fail_open() };
        let at_start = self.next == 0;
        match token {
            Token::Name(_) => {
                self.next += 1;
                return Ok(Some(Operand::Name));
            }
            Token::Integer(_) | Token::Double(_) => {
                self.next += 1;
                return Ok(Some(Operand::Other));
            }
            Token::LeftParen => {
                self.open.push(if at_start { Open::FirstParen } else { Open::Paren })
            }
            Token::Minus => self.open.push(Open::Operator { kind: "Arithmetic", node: "NEG" }),
            Token::Bang => self.open.push(Open::Operator { kind: "Boolean", node: "NOT" }),
            Token::Str(_) if self.language.extensions && self.text_may_stand() => {
                self.next += 1;
                return Ok(Some(Operand::Other));
            }
            Token::NoValue if self.novalue_may_stand() => return self.novalue().map(Some),
            token if token.is_function() => return self.call(token),
            token
                if at_start
                    && (token.is_binary_operator()
                        || matches!(token, Token::RightParen | Token::Question | Token::Colon)) =>
            {
                let words = format!("Unexpected initial '{}'", self.spelling());
                self.next += 1;
                return self.fail(Some(words));
            }
            _ => return self.fail_open(),
        }
        self.next += 1;
        Ok(None)
    }

    /// Reads the tokens after an operand. False at the end of the expression,
    /// true if another operand must follow.
    fn after_operand(&mut self, operand: &mut Operand) -> Found<bool> {
        loop {
            let token = self.peek()?;
            match (*operand, token) {
                (Operand::Name | Operand::Parenthesised, Some(Token::Instance(_))) => {
                    self.next += 1;
                    *operand = Operand::Other;
                    continue;
                }
                (Operand::Aggregate, Some(Token::By)) => {
                    self.next += 1;
                    self.labels()?;
                    *operand = Operand::Other;
                    continue;
                }
                (Operand::FirstNoValue, Some(Token::Colon)) => {}
                (Operand::FirstNoValue, _) => return self.fail_open(),
                (Operand::Name, Some(token)) if !may_follow_name(token) => {
                    return self.fail_text(
                        "Arithmetic or relational or boolean operator expected to follow NAME",
                    );
                }
                _ => {}
            }
            // The innermost open construct decides what is allowed here, as in
            // libpcp's grammar: a comma differs between rescale() and values.
            // `continue` if the token ends an operand, fall through if another
            // operand must follow.
            self.close_operators();
            let innermost = self.open.last().copied().unwrap_or(Open::Start);
            match (token, innermost) {
                (None, Open::Start) => return Ok(false),
                (Some(Token::Question), _) => self.open.push(Open::Question { novalue: false }),
                (Some(Token::Colon), Open::Question { novalue }) => {
                    self.open.pop();
                    self.next += 1;
                    return self.second_branch(novalue, operand);
                }
                (Some(token), _) if let Some(node) = token.binary_node() => {
                    let boolean = matches!(token, Token::AndAnd | Token::OrOr);
                    let kind = if boolean { "Boolean" } else { "Arithmetic" };
                    self.open.push(Open::Operator { kind, node });
                }
                (Some(Token::RightParen), _) if let Some(closed) = innermost.closed() => {
                    self.open.pop();
                    self.next += 1;
                    *operand = closed;
                    continue;
                }
                (Some(Token::Comma), Open::Call(call @ (Call::Rescale | Call::Interval))) => {
                    self.next += 1;
                    match call {
                        Call::Rescale => self.rescale_units()?,
                        _ => self.interval()?,
                    }
                    self.open.pop();
                    *operand = Operand::Other;
                    continue;
                }
                (Some(Token::Comma), Open::Call(Call::Values(commas @ 1..))) => {
                    self.open.pop();
                    self.open.push(Open::Call(Call::Values(commas - 1)));
                }
                (Some(Token::LeftParen | Token::RightParen), Open::Start) => {
                    let words = format!("Unexpected '{}'", self.spelling());
                    self.next += 1;
                    return self.fail(Some(words));
                }
                _ => return self.fail_open(),
            }
            self.next += 1;
            return Ok(true);
        }
    }

    /// After `:`. A branch that is `novalue()` completes the ternary at once.
    fn second_branch(&mut self, first_is_novalue: bool, operand: &mut Operand) -> Found<bool> {
        if self.peek()? != Some(Token::NoValue) {
            self.open.push(Open::Operator { kind: "Arithmetic", node: "COLON" });
            return Ok(true);
        }
        let start = i64::from(self.tokens[self.next].start);
        self.open.push(Open::Operator { kind: "Arithmetic", node: "COLON" });
        self.novalue()?;
        if first_is_novalue {
            let message = "novalue() may appear at most once in a ternary expression".to_owned();
            return Err(PcpError { offset: start, message: Some(message) });
        }
        *operand = Operand::Other;
        self.after_operand(operand)
    }

    fn close_operators(&mut self) {
        while let Some(Open::Operator { .. }) = self.open.last() {
            self.open.pop();
        }
    }

    /// True directly after `?`; [`Finder::second_branch`] handles the other
    /// branch.
    fn novalue_may_stand(&self) -> bool {
        let previous = self.tokens.get(self.next.wrapping_sub(1)).map(|at| at.token);
        previous == Some(Token::Question)
    }

    /// Consumes one token, or fails with these words.
    fn expect(&mut self, wanted: impl Fn(Token<'t>) -> bool, otherwise: Words) -> Found<Token<'t>> {
        match self.peek()? {
            Some(token) if wanted(token) => {
                self.next += 1;
                Ok(token)
            }
            _ => match otherwise {
                Words::Open => self.fail_open(),
                Words::Text(text) => self.fail_text(text),
                Words::MetricName(function) => {
                    self.fail(Some(format!("Metric name expected to follow {function}(")))
                }
            },
        }
    }

    /// A call, read from its function's name on.
    fn call(&mut self, function: Token<'t>) -> Found<Option<Operand>> {
        if matches!(function, Token::NoValue | Token::MetaFunction) {
            return self.fail_open();
        }
        self.next += 1;
        self.expect(|token| token == Token::LeftParen, Words::Open)?;
        let call = match function {
            Token::Aggregate(aggregate) => {
                return self.named(Words::MetricName(aggregate.name()));
            }
            Token::NameTemporal(temporal) => {
                return self.named(Words::MetricName(temporal.name()));
            }
            Token::Defined => return self.named(Words::Open),
            Token::Anon => return self.anon(),
            Token::MkConst => return self.mkconst(),
            Token::Temporal(temporal) => Call::Plain(temporal.name()),
            Token::Scalar => Call::Plain("scalar"),
            Token::Rescale => Call::Rescale,
            Token::Function(Shape::OneValue, callee) if callee.takes_by() => Call::Aggregate,
            Token::Function(Shape::OneValue, _) => Call::Values(0),
            Token::Function(Shape::TwoValues, _) => Call::Values(1),
            Token::Function(Shape::ThreeValues, _) => Call::Values(2),
            Token::Function(Shape::IntervalLast, _) => Call::Interval,
            Token::Function(Shape::NumberFirst(wanted), callee) => {
                self.leading_number(wanted)?;
                if callee.takes_by() { Call::Aggregate } else { Call::Values(0) }
            }
            _ => {
                self.pattern()?;
                Call::Match
            }
        };
        self.open.push(Open::Call(call));
        Ok(None)
    }

    /// `NAME )`
    fn named(&mut self, otherwise: Words) -> Found<Option<Operand>> {
        self.expect(|token| matches!(token, Token::Name(_)), otherwise)?;
        self.expect(|token| token == Token::RightParen, otherwise)?;
        Ok(Some(Operand::Other))
    }

    fn anon(&mut self) -> Found<Option<Operand>> {
        let operand = self.named(Words::MetricName("anon"))?;
        let at = self.tokens[self.next - 2];
        if let Token::Name(name) = at.token
            && keywords::anon_type(name).is_none()
        {
            let message = Some(format!("Illegal type '{name}' for anon()"));
            return Err(PcpError { offset: i64::from(at.start), message });
        }
        Ok(operand)
    }

    /// `[!] PATTERN ,`
    fn pattern(&mut self) -> Found<()> {
        if self.peek()? == Some(Token::Bang) {
            self.next += 1;
        }
        let words = Words::Text("<filter>, <expr>) expected to follow matchinst(");
        let pattern = self.expect(|token| matches!(token, Token::Pattern(_)), words)?;
        if let Token::Pattern(text) = pattern
            && let Err(error) = Pattern::new(&unescape(text))
            && error != PatternError::TooLarge
        {
            return self.fail_behind(format!("bad regular expression: '{error}'"));
        }
        let words = Words::Text(", <expr>) expected to follow matchinst(<filter>");
        self.expect(|token| token == Token::Comma, words)?;
        Ok(())
    }

    /// `STRING )` of a `rescale()`
    fn rescale_units(&mut self) -> Found<()> {
        let words = Words::Text("Units string expected to follow rescale(<expr>,");
        let string = self.expect(|token| matches!(token, Token::Str(_)), words)?;
        self.expect(|token| token == Token::RightParen, words)?;
        if let Token::Str(text) = string
            && let Err(reason) = keywords::units(text, self.language.dialect)
        {
            return self.fail_behind(format!("Illegal units: '{reason}'"));
        }
        Ok(())
    }

    /// `NUMBER , keywords )`
    fn mkconst(&mut self) -> Found<Option<Operand>> {
        let is_number = |token| matches!(token, Token::Integer(_) | Token::Double(_));
        let number = self.expect(is_number, Words::Open)?;
        let words = match number {
            Token::Integer(_) if self.language.dialect.is_version_7() => {
                Words::Text("metadata keyword expected to follow mkconst(type")
            }
            _ => Words::Open,
        };
        self.expect(|token| token == Token::Comma, words)?;
        let value_type = self.keywords(words)?;
        if let (Token::Double(text), Some(value_type)) = (number, value_type)
            && !keywords::constant_fits(&keywords::number(text), value_type)
        {
            let name = value_type.name();
            return self
                .fail_behind(format!("Incompatible floating point constant and type '{name}'"));
        }
        Ok(Some(Operand::Other))
    }

    /// `novalue ( [keywords] )`
    fn novalue(&mut self) -> Found<Operand> {
        let words = Words::Text("metadata keyword expected to follow novalue(");
        self.next += 1;
        self.expect(|token| token == Token::LeftParen, Words::Open)?;
        if self.peek()? == Some(Token::RightParen) {
            self.next += 1;
        } else {
            self.keywords(words)?;
        }
        if let Some(Open::Question { novalue }) = self.open.last_mut() {
            *novalue = true;
        }
        Ok(Operand::FirstNoValue)
    }

    /// `keyword = value , ... )`; returns the type that counts.
    fn keywords(&mut self, words: Words) -> Found<Option<pmderive_runtime::model::ValueType>> {
        let mut value_type = None;
        loop {
            let is_keyword = |token| matches!(token, Token::Keyword(_) | Token::MetaKeyword);
            let keyword = self.expect(is_keyword, words)?;
            self.expect(|token| token == Token::Assign, words)?;
            let meta = keyword == Token::MetaKeyword;
            let is_version_7 = self.language.dialect.is_version_7();
            let is_value = |token| match token {
                Token::Name(_) => true,
                Token::Str(_) | Token::Integer(_) => !meta,
                // Only instance domains have this form, and version 6 has no keyword for them.
                Token::Double(_) => !meta && is_version_7,
                _ => false,
            };
            let value = self.expect(is_value, words)?;
            let (Token::Name(text) | Token::Str(text) | Token::Integer(text) | Token::Double(text)) =
                value
            else {
                return self.fail_open();
            };
            if let Token::Keyword(keyword) = keyword {
                match keyword {
                    Keyword::Type => match keywords::value_type(text) {
                        Some(known) => value_type = Some(known),
                        None => return self.unrecognized("type", text),
                    },
                    Keyword::Semantics if keywords::semantics(text).is_none() => {
                        return self.unrecognized("semantics", text);
                    }
                    Keyword::Units
                        if let Err(reason) = keywords::units(text, self.language.dialect) =>
                    {
                        return self.fail_behind(format!("Illegal units: '{reason}'"));
                    }
                    Keyword::Indom if keywords::indom(text).is_none() => {
                        return self.fail_behind(format!("Illegal indom: '{text}'"));
                    }
                    _ => {}
                }
            }
            let is_end = |token| matches!(token, Token::Comma | Token::RightParen);
            if self.expect(is_end, words)? == Token::RightParen {
                return Ok(value_type);
            }
        }
    }

    fn unrecognized<T>(&self, keyword: &str, text: &str) -> Found<T> {
        self.fail_behind(format!("Unrecognized value for {keyword} '{text}'"))
    }
}

/// The words for a missing token.
#[derive(Clone, Copy)]
enum Words {
    /// The words of the innermost open construct.
    Open,
    Text(&'static str),
    /// The words of this function, which needs a name.
    MetricName(&'static str),
}

/// Tokens that may follow a metric's name somewhere in the language.
fn may_follow_name(token: Token<'_>) -> bool {
    token.is_binary_operator()
        || matches!(
            token,
            Token::LeftParen
                | Token::RightParen
                | Token::Comma
                | Token::Question
                | Token::Colon
                | Token::Instance(_)
        )
}
