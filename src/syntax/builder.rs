//! The actions of the grammar: each builds one node.
//!
//! A [`Builder`] takes operands as identifiers of nodes already in its arena.
//! It interprets numbers, units and keyword values, and reports wrong ones. The
//! grammar alone knows precedence.

use lalrpop_util::ErrorRecovery;
use pmderive_runtime::model::UnitsError;
use pmderive_runtime::pattern::{Pattern, PatternError};

use crate::diag::{Code, Diagnostic, Diagnostics, Fix};
use crate::dialect::Language;
use crate::syntax::arguments::{self, BadArgument, NumberKind};
use crate::text::stray;
use crate::text::{Span, offset};

use super::ast::{
    Aggregate, Attributes, BinaryOp, Callee, Expr, ExprId, Literal, NodeKind, Number, Spanned,
};
use super::keywords::{self, ANON_TYPES, SEMANTICS, TYPES};
use super::lexer::unescape;
use super::mistakes::edit::Edit;
use super::mistakes::explain::{Explainer, Stop};
use super::mistakes::repair::MAX_REPORTS;
use super::mistakes::suggest::{choices, nearest};
use super::mistakes::units_help;
use super::origin::Origin;
use super::token::{Keyword, Token, TokenAt};

/// The arena under construction.
pub struct Builder<'b> {
    expr: Expr,
    origin: &'b Origin,
    language: Language,
    diagnostics: &'b mut Diagnostics,
    explainer: Explainer<'b>,
    /// Keywords read since the last `mkconst()` or `novalue()`.
    keywords: Attributes,
    /// True after a keyword that was not understood.
    bad_keyword: bool,
    recoveries: usize,
    /// True after an error node. Operands below it may be unused.
    has_errors: bool,
}

/// A token's text with its place.
#[derive(Clone, Copy, Debug)]
pub struct Word<'t> {
    /// The text, without delimiters.
    pub text: &'t str,
    /// Offset of its first byte in the expression.
    pub at: u32,
    /// The place of the token, delimiters included.
    pub span: Span,
}

impl<'b> Builder<'b> {
    /// An empty arena. `explainer` reports the mistakes at which the grammar
    /// stops, unless a diagnostic has already reported them.
    pub fn new(
        origin: &'b Origin,
        language: Language,
        explainer: Explainer<'b>,
        diagnostics: &'b mut Diagnostics,
    ) -> Builder<'b> {
        // A node has a token of its own; these tokens belong to no node.
        let is_node = |at: &&TokenAt<'_>| {
            use Token::{Colon, Comma, LeftParen, RightParen, Str};
            !matches!(at.token, LeftParen | RightParen | Comma | Colon | Str(_))
        };
        let nodes = explainer.tokens().iter().filter(is_node).count();
        Builder {
            expr: Expr::with_room(nodes),
            origin,
            language,
            diagnostics,
            explainer,
            keywords: Attributes::default(),
            bad_keyword: false,
            recoveries: 0,
            has_errors: false,
        }
    }

    /// The finished arena, without nodes that the root does not need.
    pub fn finish(mut self) -> Expr {
        if self.has_errors {
            self.expr.drop_unreachable();
        }
        self.expr.shrink();
        self.expr
    }

    /// The arena of an expression that is not understood at all.
    pub fn refuse(mut self, span: Span) -> Expr {
        self.error_node(span);
        self.finish()
    }

    /// The place of the bytes of the expression from `start` to before `end`.
    pub fn at(&self, start: u32, end: u32) -> Span {
        self.origin.span(start, end)
    }

    /// Adds a node that needs no check.
    pub fn push(&mut self, kind: NodeKind, span: Span) -> ExprId {
        self.expr.push(kind, span)
    }

    /// A token's text without delimiters.
    pub fn word<'t>(&self, text: &'t str, start: u32, end: u32) -> Word<'t> {
        Word { text, at: start, span: self.at(start, end) }
    }

    /// A token's text behind its delimiter. Typographic delimiters have several bytes.
    pub fn quoted<'t>(&self, text: &'t str, start: u32, end: u32) -> Word<'t> {
        let delimiter = self.explainer.character_at(start).map_or(1, char::len_utf8);
        Word { text, at: start + offset(delimiter), span: self.at(start, end) }
    }

    /// A value with its place.
    pub fn spanned<T>(&self, value: T, start: u32, end: u32) -> Spanned<T> {
        Spanned { value, span: self.at(start, end) }
    }

    /// `disk.dev.read`
    pub fn metric(&mut self, name: Word<'_>) -> ExprId {
        self.expr.push(NodeKind::Metric(name.text.into()), name.span)
    }

    /// `42`, `1.5`
    pub fn number(&mut self, text: &str, span: Span) -> ExprId {
        self.push(NodeKind::Number(keywords::number(text)), span)
    }

    /// `operand[instance]`
    pub fn select(&mut self, operand: ExprId, instance: Word<'_>, span: Span) -> ExprId {
        let instance = Spanned { value: unescape(instance.text), span: instance.span };
        self.push(NodeKind::Select { operand, instance }, span)
    }

    /// `matchinst(/pattern/, operand)`
    pub fn match_instances(
        &mut self,
        negated: bool,
        pattern: Word<'_>,
        operand: ExprId,
        span: Span,
    ) -> ExprId {
        match self.pattern(pattern) {
            Some(pattern) => self.push(NodeKind::Match { pattern, negated, operand }, span),
            None => self.error_node(span),
        }
    }

    /// A pattern without the backslashes, if it is valid. libpcp accepts one
    /// that is too large, so the checker reports that.
    fn pattern(&mut self, pattern: Word<'_>) -> Option<Spanned<Box<str>>> {
        let value = unescape(pattern.text);
        if let Err((error, offset)) = Pattern::new_or_place(&value)
            && error != PatternError::TooLarge
        {
            let before = value.get(..offset).unwrap_or_default().chars().count();
            let place = self.character(pattern, before);
            let message = "this pattern is no POSIX extended regular expression";
            let diagnostic =
                Diagnostic::error(Code::BadPattern, place, message).label(place, error.to_string());
            self.diagnostics.push(match (look_ahead(&value), advice_on_pattern(error)) {
                (Some(advice), _) => diagnostic.help(advice),
                (None, Some(advice)) => diagnostic.help(advice),
                (None, None) => diagnostic,
            });
            return None;
        }
        let pattern = Spanned { value, span: pattern.span };
        Some(pattern)
    }

    /// The place of a character of a text. `number` does not count the
    /// backslashes that protect others.
    fn character(&self, word: Word<'_>, number: usize) -> Span {
        let mut characters = word.text.char_indices();
        let mut plain = std::iter::from_fn(|| match characters.next()? {
            (_, '\\') => characters.next(),
            other => Some(other),
        });
        let Some((at, character)) = plain.nth(number) else { return word.span };
        // Offsets lie within a text shorter than 4 GiB.
        let start = word.at + u32::try_from(at).unwrap_or(0);
        self.at(start, start + u32::try_from(character.len_utf8()).unwrap_or(1))
    }

    /// `"init"` beside `==` or `!=`
    pub fn text(&mut self, text: Word<'_>, span: Span) -> ExprId {
        if !self.language.extensions {
            self.diagnostics.push(refused_text(text));
            return self.error_node(span);
        }
        self.expr.push(NodeKind::Text(stray::replaced(text.text).into()), text.span)
    }

    /// `abs(operand)`, `pow(operand, operand)`. An aggregate of a name is
    /// libpcp's own.
    pub fn call(
        &mut self,
        callee: Callee,
        literal: Option<Spanned<Literal>>,
        operands: &[ExprId],
        span: Span,
    ) -> ExprId {
        if let Callee::Aggregate(function) = callee
            && operands == [self.expr.root()]
            && let Some(metric) = self.expr.pop_metric()
        {
            return self.push(NodeKind::Aggregate { function, metric }, span);
        }
        let (literal, operands) = (literal.map(Box::new), operands.into());
        self.push(NodeKind::Call { callee, literal, operands }, span)
    }

    /// `sum(operand) by (rack, dc)`
    pub fn group(&mut self, operand: ExprId, labels: Vec<Word<'_>>, at: Span) -> ExprId {
        let label = |name: &Word<'_>| Spanned { value: name.text.into(), span: name.span };
        let labels = labels.iter().map(label).collect();
        self.push(NodeKind::Grouped { operand, labels }, at)
    }

    /// `topk(k, operand)`, `quantile(q, operand)`
    pub fn call_with_number(
        &mut self,
        (wanted, callee): (NumberKind, Callee),
        number: Word<'_>,
        operand: ExprId,
        span: Span,
    ) -> ExprId {
        self.call_with(callee, number, wanted.read(number.text), operand, span)
    }

    /// `avg_over(operand, "interval")`
    pub fn call_with_interval(
        &mut self,
        callee: Callee,
        operand: ExprId,
        interval: Word<'_>,
        span: Span,
    ) -> ExprId {
        let literal = arguments::interval(interval.text)
            .map(|length| Literal::Interval { text: interval.text.into(), length });
        self.call_with(callee, interval, literal, operand, span)
    }

    /// `matchvalue(/pattern/, operand)`
    pub fn call_with_pattern(
        &mut self,
        callee: Callee,
        negated: bool,
        pattern: Word<'_>,
        operand: ExprId,
        span: Span,
    ) -> ExprId {
        let Some(pattern) = self.pattern(pattern) else { return self.error_node(span) };
        let value = Literal::Pattern { pattern: pattern.value, negated };
        self.call(callee, Some(Spanned { value, span: pattern.span }), &[operand], span)
    }

    /// A call with a literal argument, unless that is wrong.
    fn call_with(
        &mut self,
        callee: Callee,
        word: Word<'_>,
        literal: Result<Literal, BadArgument>,
        operand: ExprId,
        span: Span,
    ) -> ExprId {
        match literal {
            Ok(value) => {
                let literal = Some(Spanned { value, span: word.span });
                self.call(callee, literal, &[operand], span)
            }
            Err(BadArgument { message, offset }) => {
                // The offset lies within a text shorter than 4 GiB.
                let place = offset.and_then(|offset| u32::try_from(offset).ok());
                let end_of_word = word.at + u32::try_from(word.text.len()).unwrap_or(0);
                let wrong = place.map_or(word.span, |at| self.at(word.at + at, end_of_word));
                let argument = word.text;
                let name = callee.name();
                let headline = format!("`{argument}` is no argument of `{name}()`");
                let mut diagnostic =
                    Diagnostic::error(Code::WrongArguments, wrong, headline).label(wrong, message);
                if let Callee::Function(function) = callee {
                    diagnostic = diagnostic.help(format!("as in `{}`", function.example.call));
                }
                self.diagnostics.push(diagnostic);
                self.error_node(span)
            }
        }
    }

    /// `left op right`
    pub fn binary(
        &mut self,
        op: Spanned<BinaryOp>,
        left: ExprId,
        right: ExprId,
        span: Span,
    ) -> ExprId {
        self.push(NodeKind::Binary { op: op.value, op_span: op.span, left, right }, span)
    }

    /// `guard ? novalue() : novalue()`, which is refused.
    pub fn ternary_of_novalues(&mut self, second: ExprId, span: Span) -> ExprId {
        let second = self.expr.node(second).span;
        let message = "both branches of this `?:` are `novalue()`";
        self.diagnostics.push(
            Diagnostic::error(Code::MisplacedNoValue, second, message)
                .label(second, "at most one branch may be `novalue()`"),
        );
        self.error_node(span)
    }

    /// `avg(metric)`
    pub fn aggregate(&mut self, function: Aggregate, metric: Word<'_>, span: Span) -> ExprId {
        let metric = Spanned { value: metric.text.into(), span: metric.span };
        self.push(NodeKind::Aggregate { function, metric }, span)
    }

    /// `defined(metric)`
    pub fn defined(&mut self, metric: Word<'_>, span: Span) -> ExprId {
        let metric = Spanned { value: metric.text.into(), span: metric.span };
        self.push(NodeKind::Defined(metric), span)
    }

    /// `anon(PM_TYPE_U32)`
    pub fn anon(&mut self, name: Word<'_>, span: Span) -> ExprId {
        match keywords::anon_type(name.text) {
            Some(value_type) => self.push(NodeKind::Anon(value_type), span),
            None => {
                let message = format!("`{}` is no type that `anon()` takes", name.text);
                let refused = Diagnostic::error(Code::WrongArguments, name.span, message);
                let known = ANON_TYPES.map(|(name, _)| name);
                let meant = keywords::value_type(name.text)
                    .and_then(|meant| ANON_TYPES.iter().find(|(_, of)| *of == meant))
                    .map(|(name, _)| *name)
                    .or_else(|| nearest(name.text, known));
                let otherwise = format!("one of {}", choices(known));
                self.diagnostics.push(refused.meant(name.span, meant, otherwise));
                self.error_node(span)
            }
        }
    }

    /// `rescale(operand, "units")`
    pub fn rescale(&mut self, operand: ExprId, units: Word<'_>, span: Span) -> ExprId {
        match keywords::units(units.text, self.language.dialect) {
            Ok(value) => {
                let units = Spanned { value, span: units.span };
                self.push(NodeKind::Rescale { operand, units }, span)
            }
            Err(reason) => {
                let refused = self.bad_units(units, &reason);
                self.diagnostics.push(refused);
                self.error_node(span)
            }
        }
    }

    /// One of `type=`, `semantics=`, `units=`, `indom=`.
    pub fn keyword(&mut self, keyword: Keyword, value: Word<'_>) {
        let Word { text, span, .. } = value;
        let given = &mut self.keywords;
        let refused = match keyword {
            Keyword::Type => match keywords::value_type(text) {
                Some(value) => return given.value_type = Some(Spanned { value, span }),
                None => bad_value("type", value, keywords::meant_type(text), TYPES.map(|(n, _)| n)),
            },
            Keyword::Semantics => match keywords::semantics(text) {
                Some(value) => return given.semantics = Some(Spanned { value, span }),
                None => {
                    let meant = keywords::meant_semantics(text);
                    bad_value("semantics", value, meant, SEMANTICS.map(|(name, _)| name))
                }
            },
            Keyword::Units => match keywords::units(text, self.language.dialect) {
                Ok(value) => return given.units = Some(Spanned { value, span }),
                Err(reason) => self.bad_units(value, &reason),
            },
            Keyword::Indom => match keywords::indom(text) {
                Some(value) => return given.indom = Some(Spanned { value, span }),
                None => no_value_of("indom", value).help(
                    "an instance domain is `null` or two numbers joined by a dot, \
                     domain (to 510) and serial (to 4194303): `indom=60.1`",
                ),
            },
        };
        self.bad_keyword = true;
        self.diagnostics.push(refused);
    }

    fn bad_units(&self, text: Word<'_>, error: &UnitsError) -> Diagnostic {
        // The range lies within a text shorter than 4 GiB.
        let place = |position: usize| text.at + u32::try_from(position).unwrap_or(0);
        let span = match error.range.is_empty() {
            true => text.span,
            false => self.at(place(error.range.start), place(error.range.end)),
        };
        let message = format!("`{}` is no units text", text.text);
        let advice = units_help::advise(text.text, error, self.language.dialect);
        let diagnostic = Diagnostic::error(Code::BadUnits, span, message)
            .label(span, error.to_string())
            .help(advice.help);
        let Some(Edit { at, text: with, is_certain }) = advice.edit else { return diagnostic };
        let span = self.at(place(at.start), place(at.end));
        // Without quotes, only one word is allowed.
        let quoted = with.is_empty() || with.contains([' ', '/']);
        let with = match quoted && self.at(text.at, text.at).start == text.span.start {
            true => format!("\"{with}\""),
            false => with,
        };
        diagnostic.edit(Fix { span, text: with, is_certain })
    }

    /// `meta=metric`
    pub fn meta(&mut self, name: Word<'_>) {
        self.keywords.meta = Some(Spanned { value: name.text.into(), span: name.span });
    }

    /// The keywords of the call that ends here, if all were understood.
    fn take_keywords(&mut self) -> Option<Attributes> {
        let keywords = std::mem::take(&mut self.keywords);
        if std::mem::take(&mut self.bad_keyword) { None } else { Some(keywords) }
    }

    /// `mkconst(number, ...)`
    pub fn make_constant(&mut self, text: Word<'_>, span: Span) -> ExprId {
        let Some(attributes) = self.take_keywords() else { return self.error_node(span) };
        let number: Number = keywords::number(text.text);
        if let Some(wanted) = &attributes.value_type
            && !keywords::constant_fits(&number, wanted.value)
        {
            let mark = if text.text.contains('.') { "a point" } else { "an exponent" };
            let message = format!("a constant with {mark} cannot have type {}", wanted.value);
            let help =
                format!("write the constant without {mark}, or use type=float or type=double");
            self.diagnostics.push(
                Diagnostic::error(Code::BadKeywordValue, wanted.span, message)
                    .label(text.span, format!("written with {mark}"))
                    .label(wanted.span, "an integer type")
                    .help(help),
            );
            return self.error_node(span);
        }
        let number = Box::new(Spanned { value: number, span: text.span });
        let attributes = Box::new(attributes);
        self.push(NodeKind::MkConst { number, attributes }, span)
    }

    /// `novalue(...)`
    pub fn no_value(&mut self, span: Span) -> ExprId {
        match self.take_keywords() {
            Some(attributes) => self.push(NodeKind::NoValue(attributes.into()), span),
            None => self.error_node(span),
        }
    }

    /// The node in place of text that was refused and reported.
    pub fn error_node(&mut self, span: Span) -> ExprId {
        self.has_errors = true;
        self.push(NodeKind::Error, span)
    }

    /// Reports a token in the wrong place and continues after it.
    pub fn recover(
        &mut self,
        recovery: ErrorRecovery<u32, Token<'_>, Stop>,
        span: Span,
    ) -> Result<ExprId, lalrpop_util::ParseError<u32, Token<'static>, Stop>> {
        self.keywords = Attributes::default();
        self.bad_keyword = false;
        self.recoveries += 1;
        if self.recoveries > MAX_REPORTS {
            return Err(lalrpop_util::ParseError::User { error: Stop });
        }
        if let Some(diagnostic) = self.explainer.explain(&recovery.error, self.origin) {
            // A repaired token that is still wrong has its report.
            let place = (diagnostic.span.source, diagnostic.span.start);
            let mut earlier = self.diagnostics.iter();
            if !earlier.any(|earlier| (earlier.span.source, earlier.span.start) == place) {
                self.diagnostics.push(diagnostic);
            }
        }
        Ok(self.error_node(span))
    }
}

/// The mistake of a text that is compared, which needs the extensions.
fn refused_text(text: Word<'_>) -> Diagnostic {
    let Word { text, span, .. } = text;
    let refused = Diagnostic::error(Code::UnexpectedToken, span, "a text cannot be an operand");
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && text.parse::<f64>().is_ok();
    match is_number {
        true => refused.help("numbers have no quotes").guess(span, text),
        false => refused.help(
            "write a number without quotes; metrics whose values are texts are compared with extensions",
        ),
    }
}

/// Advice about Perl's groups with a question mark.
fn look_ahead(pattern: &str) -> Option<String> {
    let (before, rest) = pattern.split_once("(?")?;
    let inside =
        rest.strip_prefix('!').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.*+".contains(c);
    Some(match inside.filter(|inside| inside.chars().all(is_plain) && before.len() < 2) {
        Some(inside) => format!(
            "there is no look-ahead; `matchinst(!/^{inside}/, x)` takes the instances that do not match"
        ),
        None => "there is no look-ahead, and groups have no `?`".to_owned(),
    })
}

/// Advice about an invalid pattern.
fn advice_on_pattern(error: PatternError) -> Option<&'static str> {
    Some(match error {
        PatternError::Invalid | PatternError::UnmatchedBracket => {
            "a set of characters ends with `]`; write `\\\\[` for a bracket itself"
        }
        PatternError::UnmatchedParen => "close it with `)`; write `\\\\(` for a parenthesis itself",
        PatternError::UnmatchedBrace | PatternError::BadInterval => {
            "a count is written `{2}` or `{2,4}`; write `\\\\{` for a brace itself"
        }
        PatternError::BadRange => "a range goes from the lesser character to the greater: `[a-z]`",
        PatternError::BadClass => "classes are written `[[:alpha:]]`, `[[:digit:]]` and the like",
        PatternError::NothingToRepeat => {
            "there is nothing before it to repeat; any characters are `.*`"
        }
        PatternError::TrailingBackslash => "write `\\\\\\\\` for a backslash itself",
        PatternError::BadBackReference => "there is no group of this number before it",
        _ => return None,
    })
}

/// Refuses a value outside a small list.
fn bad_value<const N: usize>(
    keyword: &str,
    value: Word<'_>,
    meant: Option<&'static str>,
    known: [&'static str; N],
) -> Diagnostic {
    let refused = no_value_of(keyword, value);
    let meant = meant.or_else(|| nearest(value.text, known));
    refused.meant(value.span, meant, format!("one of {}", choices(known)))
}

fn no_value_of(keyword: &str, value: Word<'_>) -> Diagnostic {
    let message = format!("`{}` is no value of `{keyword}=`", value.text);
    Diagnostic::error(Code::BadKeywordValue, value.span, message)
}
