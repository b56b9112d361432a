//! Calls of unknown functions: misspelt ones, those that need a switch, and those
//! of other languages.

use crate::diag::{Code, Diagnostic, Fix};
use crate::dialect::Language;
use crate::functions;
use crate::syntax::keywords::{FUNCTION_NAMES, meant};
use crate::syntax::lexer;
use crate::syntax::token::Token;
use crate::text::Span;

use super::by;
use super::call::Call;
use super::calls;
use super::habits;
use super::repair::Repair;
use super::suggest::nearest;

/// Names of our functions in other languages; [`habits::calls`] has those whose
/// arguments differ.
const SYNONYMS: [(&str, &str); 10] = [
    ("maximum", "max"),
    ("minimum", "min"),
    ("total", "sum"),
    ("diff", "delta"),
    ("derivative", "rate"),
    ("filter", "matchinst"),
    ("absolute", "abs"),
    ("ceiling", "ceil"),
    ("ln", "log"),
    ("ema", "ewma"),
];

/// Our function for a name that another language gives it.
pub(super) fn synonym(name: &str) -> Option<&'static str> {
    meant(name, &SYNONYMS)
}

const LIST_OF_FUNCTIONS: &str = "`pmderive help functions` has all functions";

impl<'t> Repair<'_, 't> {
    /// A function that other languages have.
    fn foreign_function(&mut self, index: usize, name: &str) -> Option<usize> {
        let call = Call::new(self, index)?;
        let whole: Option<Vec<(usize, usize)>> = call.arguments.iter().copied().collect();
        let whole = whole?;
        let texts: Vec<&str> =
            whole.iter().map(|(first, last)| self.slice(*first, *last)).collect();
        let advice = habits::calls::advise(name, &texts, self.language)?;
        for unused in advice.unused {
            let (first, last) = whole[unused];
            self.retract(first, last);
        }
        let span = self.span(index, index);
        let message = format!("there is no function `{name}`");
        let diagnostic = Diagnostic::error(Code::UnknownFunction, span, message).help(advice.note);
        let place = self.span(index, call.close);
        let (before, after) = (self.before(), self.at(call.close + 1));
        self.report(match advice.write {
            Some(text) => {
                let text = habits::binding::enclosed(&text, before, after, self.language);
                diagnostic.edit(Fix { span: place, text, is_certain: advice.is_certain })
            }
            None => diagnostic,
        });
        Some(self.blot_out(index, call.close))
    }

    /// A metric with a factor in parentheses behind it, as the product of the two.
    fn product(&self, index: usize, name: &str) -> Option<(Span, String)> {
        let pair = self.delimiters.pair(index + 1).filter(|pair| pair.commas.is_empty())?;
        let close = pair.close?;
        let factor = self.slice(index + 1, close);
        let is_product =
            name.contains('.') && close > index + 2 && factor.len() <= 80 && factor.ends_with(')');
        is_product.then(|| (self.span(index, close), format!("{name} * {factor}")))
    }

    /// The replacement for `math.sqrt(x)` or `disk.dev.read.rate()`; returns the last token.
    fn without_point(
        &self,
        index: usize,
        name: &str,
        error: &Diagnostic,
    ) -> Option<(Diagnostic, usize)> {
        let (before, function) = name.rsplit_once('.')?;
        let function = synonym(function).unwrap_or(function);
        let call = Call::new(self, index)?;
        let texts = match call.arguments.as_slice() {
            [] => vec![before],
            _ => call.texts(self),
        };
        let is_known = lexer::function(function, self.language).is_some()
            || functions::named(function).is_some();
        let advice = match is_known {
            true => None,
            false => Some(habits::calls::advise(function, &texts, self.language)?),
        };
        let error = error.clone();
        let told = |error: Diagnostic| Some((error, call.close));
        // A text with a point is a metric, which would be lost.
        let has_both = !call.arguments.is_empty() && before.contains('.');
        if let Some(advice) = advice {
            let Some(text) = advice.write.filter(|_| !has_both) else {
                return told(error.help(advice.note));
            };
            let (before, after) = (self.before(), self.at(call.close + 1));
            let text = habits::binding::enclosed(&text, before, after, self.language);
            return told(error.help(advice.note).guess(self.span(index, call.close), text));
        }
        let meant = format!("{function}({})", texts.join(", "));
        let extended = Language { extensions: true, ..self.language };
        if has_both || meant.len() > 80 || !habits::is_understood(&meant, extended) {
            return told(error.help(format!(
                "`{function}()` is a function; what it takes stands between its parentheses"
            )));
        }
        told(match habits::is_understood(&meant, self.language) {
            true => error.meant(self.span(index, call.close), Some(&meant), ""),
            false => error.help(format!("did you mean `{meant}`, which needs extensions?")),
        })
    }

    /// A name with a parenthesis behind it.
    pub(super) fn unknown_function(&mut self, index: usize, name: &'t str) -> usize {
        if name == "by"
            && let Some(next) = by::before_arguments(self, index)
        {
            return next;
        }
        let span = self.span(index, index);
        let open = self.tokens[index + 1];
        let blank = open.start - self.tokens[index].end;
        if let Some(function) = lexer::function(name, self.language).filter(|_| blank > 0) {
            let gap = self.origin.span(self.tokens[index].end, open.start);
            let message = format!("blanks between `{name}` and `(`");
            self.report(
                Diagnostic::error(Code::UnknownFunction, gap, message)
                    .label(gap, "these blanks")
                    .label(span, "so this is taken for a metric's name")
                    .help(format!("write `{name}(`"))
                    .fix(gap, ""),
            );
            return calls::check(self, index, function);
        }
        if let Some(next) = self.foreign_function(index, name) {
            return next;
        }
        let message = format!("there is no function `{name}`");
        let mut diagnostic = Diagnostic::error(Code::UnknownFunction, span, message);
        if blank == 0
            && let Some((told, close)) = self.without_point(index, name, &diagnostic)
        {
            self.report(told);
            return self.blot_out(index, close);
        }
        let is_same = |known: &&str| known.eq_ignore_ascii_case(name);
        let same = functions::names().find(is_same);
        let extended = functions::names().filter(|_| self.language.extensions);
        // Functions that are available come before those that need a switch.
        let meant = synonym(name).or_else(|| {
            nearest(name, FUNCTION_NAMES.into_iter().chain(extended))
                .filter(|meant| same.is_none_or(|same| same == *meant))
                .or_else(|| nearest(name, functions::names()))
        });
        let is_extension =
            |meant: &str| !self.language.extensions && functions::named(meant).is_some();
        match meant {
            Some(meant) if is_extension(meant) && meant == name => {
                diagnostic = diagnostic.help(format!("`{name}()` needs extensions"));
            }
            Some(meant) if is_extension(meant) => {
                diagnostic =
                    diagnostic.help(format!("did you mean `{meant}`, which needs extensions?"));
            }
            Some("novalue") if name == "novalue" => {
                diagnostic = diagnostic.help("`novalue()` is understood from version 7 on");
            }
            Some(meant) => {
                diagnostic = diagnostic.meant(span, Some(meant), "");
            }
            None => {
                diagnostic = match self.product(index, name) {
                    Some((place, text)) => {
                        diagnostic.help("to multiply, write `*`").guess(place, text)
                    }
                    None => diagnostic.help(LIST_OF_FUNCTIONS),
                };
            }
        }
        self.report(diagnostic);
        let same_but_case = meant.filter(|meant| meant.eq_ignore_ascii_case(name));
        let function = same_but_case.and_then(|meant| lexer::function(meant, self.language));
        // Behind a name in capitals, keywords were read as names.
        let has_keywords =
            |function: &Token<'_>| matches!(function, Token::MkConst | Token::NoValue);
        if let Some(function) = function.filter(|function| !has_keywords(function)) {
            return calls::check(self, index, function);
        }
        let close = self.delimiters.close_of(index + 1);
        self.blot_out(index, close.unwrap_or(self.tokens.len() - 1))
    }
}
