//! Explains why the generated parser stopped, in the words of the language.
//!
//! It looks at the token where the parser stopped, and at the tokens around it.
//! [`super::repairs`] finds the mistakes that need no grammar.

use lalrpop_util::ParseError;

use crate::diag::{Code, Diagnostic};
use crate::dialect::Language;
use crate::syntax::keywords::FUNCTION_NAMES;
use crate::syntax::names::is_metric_name;
use crate::syntax::origin::Origin;
use crate::syntax::token::{Token, TokenAt};
use crate::text::{Span, offset};

use super::habits::binding::is_comparison;
use super::lexical::without_quotes;

const CHOICE: &str = "a choice is written `condition ? value : other value`";

/// Largest number of tokens of a branch to search for a `:`.
const MAX_BRANCH: usize = 100;

/// Longest piece of text that a message quotes, in bytes.
const MAX_QUOTED: usize = 40;

/// The parser gives up: there are more mistakes than a user reads at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// The tokens that the parser reads.
pub struct Explainer<'b> {
    text: &'b str,
    tokens: &'b [TokenAt<'b>],
    language: Language,
    /// Index of the token of the last report. A token gets only one report.
    reported: Option<usize>,
}

impl<'b> Explainer<'b> {
    /// An explainer of errors in these tokens.
    pub fn new(text: &'b str, tokens: &'b [TokenAt<'b>], language: Language) -> Explainer<'b> {
        Explainer { text, tokens, language, reported: None }
    }

    /// The tokens.
    pub fn tokens(&self) -> &[TokenAt<'b>] {
        self.tokens
    }

    /// The character of the text at an offset.
    pub fn character_at(&self, at: u32) -> Option<char> {
        self.text.get(at as usize..)?.chars().next()
    }

    /// The diagnostic for a parser's error, unless that place has one already.
    pub fn explain(
        &mut self,
        error: &ParseError<u32, Token<'_>, Stop>,
        origin: &Origin,
    ) -> Option<Diagnostic> {
        let index = match error {
            ParseError::UnrecognizedToken { token: (start, ..), .. }
            | ParseError::ExtraToken { token: (start, ..) } => {
                self.tokens.partition_point(|at| at.start < *start)
            }
            _ => self.tokens.len(),
        };
        self.explain_token(index, origin)
    }

    /// The diagnostic for an error at the token of this index, or at the end.
    pub fn explain_token(&mut self, index: usize, origin: &Origin) -> Option<Diagnostic> {
        if self.reported.replace(index) == Some(index) {
            return None;
        }
        let before = index.checked_sub(1).map(|index| self.tokens[index]);
        let at = self.tokens.get(index).copied();
        // A text in place of an operand is reported when it is read.
        let is_text = before.is_some_and(|before| matches!(before.token, Token::Str(_)));
        if is_text && at.is_none() && !self.language.extensions {
            return before.map(|text| lone_text(origin.span(text.start, text.end)));
        }
        if let Some(Token::Invalid(_)) = at.map(|at| at.token) {
            return None;
        }
        if let Some(Token::Invalid(_)) = before.map(|at| at.token) {
            return None;
        }
        // Supplied parentheses stand for the end.
        let at = at.filter(|at| at.start < at.end);
        Some(match at {
            None => self.at_end(index, before, origin),
            Some(at) => self.at_token(index, before, at, origin),
        })
    }

    fn quote(&self, at: TokenAt<'_>) -> String {
        match self.text.get(at.start as usize..at.end as usize) {
            Some(text) if text.len() <= MAX_QUOTED => format!("`{text}`"),
            _ => "this".to_owned(),
        }
    }

    /// True for a `+` before an operand, perhaps with more of them in between.
    fn is_sign(&self, index: usize) -> bool {
        let mut rest = self.tokens[index..].iter().map(|at| at.token);
        rest.find(|token| *token != Token::Plus).is_some_and(Token::begins_operand)
    }

    /// True for a text that might be an operand elsewhere.
    fn is_text(&self, at: TokenAt<'_>) -> bool {
        self.language.extensions && matches!(at.token, Token::Str(_))
    }

    fn at_end(&self, index: usize, before: Option<TokenAt<'_>>, origin: &Origin) -> Diagnostic {
        let end = offset(self.text.len());
        let span = origin.span(end, end);
        let error = |message: &str| Diagnostic::error(Code::UnexpectedEnd, span, message);
        let Some(before) = before else { return error("there is no expression") };
        let place = origin.span(before.start, before.end);
        if self.is_text(before) {
            return misplaced_text(place);
        }
        if before.token.wants_operand() {
            return error("the expression ends where an operand is expected")
                .label(place, format!("{} needs something to its right", self.quote(before)));
        }
        match self.open_question(index) {
            Some(question) => {
                let place = origin.span(question.start, question.end);
                error("the expression ends before the `:` of its `?`")
                    .label(place, "this `?` needs a `:` and a second branch")
                    .help(CHOICE)
            }
            None => error("the expression ends too early"),
        }
    }

    /// The mistake at the token where the parser stopped.
    fn at_token(
        &self,
        index: usize,
        before: Option<TokenAt<'_>>,
        at: TokenAt<'_>,
        origin: &Origin,
    ) -> Diagnostic {
        let span = origin.span(at.start, at.end);
        let found = self.quote(at);
        let error = |message: String| Diagnostic::error(Code::UnexpectedToken, span, message);
        let operand_due = before.is_none_or(|before| before.token.wants_operand());
        let behind = |error: Diagnostic, fact: &str| match before {
            Some(before) => error.label(origin.span(before.start, before.end), fact),
            None => error,
        };
        if let Some(text) = before.filter(|before| self.is_text(*before)) {
            return misplaced_text(origin.span(text.start, text.end));
        }
        if let Some(TokenAt { token: Token::Str(text), start, end }) = before {
            return text_as_operand(text, origin.span(start, end));
        }
        if at.token == Token::RightParen
            && before.is_some_and(|before| before.token == Token::LeftParen)
        {
            return error("there is nothing between the parentheses".to_owned())
                .help("write an expression between them, or remove them");
        }
        if operand_due && let Some((error, fact)) = self.left_alone(index, span) {
            return behind(error, fact);
        }
        match at.token {
            Token::Colon => error("`:` without a `?` before it".to_owned()).help(CHOICE),
            Token::RightParen | Token::Comma if let Some(question) = self.open_question(index) => {
                error(format!("{found} before the `:` of a `?`")).label(
                    origin.span(question.start, question.end),
                    "this `?` needs a `:` and a second branch",
                )
            }
            Token::Comma => {
                let end = offset(self.text.trim_end().len());
                let error = error("`,` separates arguments only".to_owned());
                match self.tokens.get(index + 1).map(|at| at.token) {
                    Some(Token::Comma) => error
                        .help("columns of pmrep have no place here; leave them out")
                        .guess(origin.span(at.start, end), ""),
                    _ => error.help("a definition is one expression; join its parts by operators"),
                }
            }
            Token::Str(text) => {
                if self.language.extensions {
                    return misplaced_text(span);
                }
                text_as_operand(text, span)
            }
            _ if operand_due => error(format!("{found} cannot stand where an operand is expected")),
            Token::Bang => behind(
                error("`!` cannot follow an operand".to_owned()).help("unequal is `!=`"),
                "a complete operand",
            ),
            _ if self.lacks_question(index) => {
                let place = origin.span(at.start, at.start);
                error(format!("a `?` is missing before {found}")).help(CHOICE).guess(place, "? ")
            }
            _ => {
                let error = error(format!("an operator is expected before {found}"));
                match before {
                    Some(TokenAt { token: Token::Name(name), start, .. })
                        if FUNCTION_NAMES.contains(&name) =>
                    {
                        let error = behind(error, "taken for the name of a metric");
                        match at.token {
                            Token::Name(metric) if metric.len() <= MAX_QUOTED && metric != "of" => {
                                let end = self.end_of_selection(index);
                                let text = self.text.get(at.start as usize..end as usize);
                                let call = format!("{name}({})", text.unwrap_or(metric));
                                error
                                    .help("a call has parentheses")
                                    .guess(origin.span(start, end), call)
                            }
                            _ => error.help(format!("a call is written `{name}(...)`")),
                        }
                    }
                    _ => self.no_operator(behind(error, "the operand ends here"), before, at),
                }
            }
        }
    }

    /// The end of a name with the instance that is selected behind it.
    fn end_of_selection(&self, index: usize) -> u32 {
        match self.tokens.get(index + 1) {
            Some(TokenAt { token: Token::Instance(_), end, .. }) => *end,
            _ => self.tokens[index].end,
        }
    }

    /// The mistake of a token that needs an operand to its left, where none is, and what
    /// the token before it lacks; `None` for other tokens.
    fn left_alone(&self, index: usize, span: Span) -> Option<(Diagnostic, &'static str)> {
        let at = self.tokens[index];
        let found = self.quote(at);
        let error = |message| Diagnostic::error(Code::UnexpectedToken, span, message);
        let nothing = || error(format!("{found} has nothing to its left"));
        let mistake = match at.token {
            Token::Plus if self.is_sign(index) => {
                nothing().help("there is no sign `+`; leave it out").fix(span, "")
            }
            Token::Plus => nothing().help("`+` stands between two operands"),
            token
                if is_comparison(token) && index > 0 && is_joint(self.tokens[index - 1].token) =>
            {
                nothing().help("a comparison has two sides, as in `a > 1 && a < 5`")
            }
            token if token.is_binary_operator() => nothing()
                .help("one operator stands between two operands; remove it")
                .guess(span, ""),
            Token::Question => nothing().help(CHOICE),
            Token::RightParen | Token::Colon => {
                let message = format!("an operand is expected before {found}");
                return Some((error(message), "nothing follows this"));
            }
            _ => return None,
        };
        Some((mistake, "an operand is expected after this"))
    }

    /// Advice on joining two operands. One ends and the other begins with these
    /// tokens.
    fn no_operator(
        &self,
        error: Diagnostic,
        before: Option<TokenAt<'_>>,
        at: TokenAt<'_>,
    ) -> Diagnostic {
        let slice = |at: TokenAt<'_>| self.text.get(at.start as usize..at.end as usize);
        let is_operand = |at: TokenAt<'_>| {
            matches!(at.token, Token::Name(_) | Token::Integer(_) | Token::Double(_))
        };
        // A word without a point is rarely a metric.
        let is_word =
            |at: TokenAt<'_>| matches!(at.token, Token::Name(name) if !name.contains('.'));
        let both = before.filter(|before| is_operand(*before) && is_operand(at));
        let operands = both.filter(|before| !is_word(*before) && !is_word(at));
        match operands.and_then(|before| Some((slice(before)?, slice(at)?))) {
            Some((left, right)) if left.len() + right.len() <= 2 * MAX_QUOTED => error.help(
                format!("to compute with both, write an operator between them: `{left} + {right}`"),
            ),
            _ => error.help("write an operator between the two, or leave one of them out"),
        }
    }

    /// True if a `:` follows whose `?` is missing.
    fn lacks_question(&self, index: usize) -> bool {
        let following = self.tokens.iter().skip(index).take(MAX_BRANCH).map(|at| at.token);
        let next = following.into_iter().find(|token| {
            matches!(token, Token::Colon | Token::Question | Token::LeftParen | Token::RightParen)
        });
        next == Some(Token::Colon) && self.open_question(index).is_none()
    }

    /// The innermost `?` before a token whose `:` is still to come.
    fn open_question(&self, index: usize) -> Option<TokenAt<'b>> {
        let (mut parentheses, mut colons) = (0usize, 0usize);
        for at in self.tokens[..index].iter().rev() {
            match at.token {
                Token::RightParen => parentheses += 1,
                Token::LeftParen if parentheses == 0 => return None,
                Token::LeftParen => parentheses -= 1,
                Token::Colon if parentheses == 0 => colons += 1,
                Token::Question if parentheses == 0 && colons == 0 => return Some(*at),
                Token::Question if parentheses == 0 => colons -= 1,
                _ => {}
            }
        }
        None
    }
}

/// The mistake of a text in the wrong place, where the language has a place for
/// texts.
fn misplaced_text(span: Span) -> Diagnostic {
    Diagnostic::error(Code::UnexpectedToken, span, "a text cannot stand here")
        .help("a text is compared as a whole, by `==` or `!=`, with what is no text itself")
}

/// The mistake of a text without a comparison.
fn lone_text(span: Span) -> Diagnostic {
    Diagnostic::error(Code::UnexpectedToken, span, "a text cannot be an operand")
        .help("values are numbers; a text is only compared, by `==` or `!=`, with extensions")
}

/// The mistake of a text where the language has no texts. It may be the name of
/// a metric.
fn text_as_operand(text: &str, span: Span) -> Diagnostic {
    match is_metric_name(text) {
        true => without_quotes(lone_text(span), span, text),
        false => lone_text(span),
    }
}

/// True for `&&` and `||`.
fn is_joint(token: Token<'_>) -> bool {
    matches!(token, Token::AndAnd | Token::OrOr)
}
