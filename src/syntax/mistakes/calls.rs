//! Mistakes in the arguments of functions.
//!
//! This module checks the shape of a call by its tokens: the number of
//! arguments, and which must be a name, a text, a pattern or a keyword. The
//! grammar reads arguments that are expressions. Any other mistake of a call is
//! reported here, and the call then counts as one reported operand.

use crate::diag::{Code, Diagnostic, Fix};
use crate::syntax::keywords;
use crate::syntax::names::is_metric_name;
use crate::syntax::token::{Invalid, Token};

use super::call::{Argument, Call, MISSING_COMMA, Verdict};
use super::calls_meant::{any_case, is_flag, keyword_of, pattern_meant};
use super::extension_calls;
use super::repair::Repair;
use super::suggest::{choices, nearest};

/// Largest number of tokens in units without quotes.
const MAX_UNITS: usize = 8;

/// Advice about a pattern with a slash in it.
const SLASHES: &str = "within a pattern a slash is written `\\/`, as in `/^\\/dev\\/sda/`";

/// Keywords of `mkconst()` and `novalue()`.
pub(in crate::syntax) const KEYWORDS: [&str; 5] = ["type", "semantics", "units", "indom", "meta"];

/// Checks the call whose function's name stands at `index`; returns the index
/// of the next token to read.
pub(super) fn check<'t>(repair: &mut Repair<'_, 't>, index: usize, function: Token<'t>) -> usize {
    let Some(call) = Call::new(repair, index) else {
        // The lexer makes only a word before a parenthesis a function.
        repair.push(function, index, index);
        return index + 1;
    };
    let verdict = match function {
        Token::Aggregate(_) | Token::Defined | Token::Anon | Token::NameTemporal(_) => {
            call.takes_name(repair, function)
        }
        Token::Temporal(_) | Token::Scalar => call.takes_expression(repair),
        Token::Rescale => call.rescale(repair),
        Token::MatchInst => call.pattern_first(repair, "as in `matchinst(/^sd/, disk.dev.read)`"),
        Token::MkConst => call.make_constant(repair),
        Token::NoValue => call.no_value(repair),
        Token::Function(shape, callee) => extension_calls::check(&call, repair, shape, callee),
        _ => call.reserved(repair),
    };
    match verdict {
        Verdict::Sound => call.keep(repair, function),
        Verdict::Refused => repair.blot_out(index, call.close),
    }
}

impl Call {
    /// Keeps the call; the grammar reads its arguments.
    fn keep<'t>(&self, repair: &mut Repair<'_, 't>, function: Token<'t>) -> usize {
        repair.push(function, self.function, self.function);
        let mut index = self.function + 1;
        // Keywords and their `=` are right here and wrong everywhere else.
        let literal = matches!(function, Token::MkConst | Token::NoValue);
        while literal && index <= self.close || index == self.open {
            repair.push(repair.tokens[index].token, index, index);
            index += 1;
        }
        index
    }

    /// `avg(NAME)`
    fn takes_name<'t>(&self, repair: &mut Repair<'_, 't>, function: Token<'t>) -> Verdict {
        let name = &self.name;
        let what = if function == Token::Anon { "a type's name" } else { "the name of a metric" };
        let mut diagnostic = match self.arguments.as_slice() {
            [] if function == Token::Anon => {
                self.missing(repair, format!("`{name}()` is missing {what}"))
            }
            [] => self
                .missing(repair, format!("`{name}()` is missing {what}"))
                .help(format!("write `{name}(NAME)` with the name of a metric")),
            [Some(_), None] => self.comma_at_end(repair),
            [Some((first, last))] if first == last => match repair.tokens[*first].token {
                Token::Name(_) | Token::Invalid(_) => return Verdict::Sound,
                Token::Instance(list) if list.contains(',') => self.of_list(repair, *first, list),
                Token::Str(text) => {
                    let span = repair.span(*first, *first);
                    let message = format!("`{name}()` takes {what}, not a text");
                    let error = self.error(repair, Some((*first, *last)), message);
                    match is_metric_name(text) {
                        true => error.help("remove the quotes").fix(span, text),
                        false => error,
                    }
                }
                _ => {
                    let message = format!("`{name}()` takes {what} and nothing else");
                    self.error(repair, Some((*first, *last)), message)
                }
            },
            [Some(argument)] => {
                let message = format!("`{name}()` takes {what}, not an expression");
                let label = repair.span(argument.0, argument.1);
                let error = self.error(repair, Some(*argument), message);
                self.with_name_inside(repair, function, error.label(label, "an expression"))
            }
            _ => {
                let message = format!("`{name}()` takes {what} and no other argument");
                let error = self.error(repair, self.whole(), message);
                self.of_several(repair, function, error, self.texts(repair))
            }
        };
        if diagnostic.help.is_none() {
            diagnostic.help = match function {
                Token::Aggregate(_) => Some(format!(
                    "`{name}()` combines the instances of one metric, as in \
                     `{name}(disk.dev.read)`; combine the results, or use extensions"
                )),
                Token::NameTemporal(_) => {
                    Some(format!("expressions within `{name}()` are understood from version 7 on"))
                }
                _ => None,
            };
        }
        repair.refuse(diagnostic)
    }

    /// The mistake of a comma before the last parenthesis.
    fn comma_at_end(&self, repair: &Repair<'_, '_>) -> Diagnostic {
        let comma = self.close - 1;
        let place = repair.span(comma, comma);
        self.error(repair, Some((comma, comma)), "nothing follows this `,`".to_owned())
            .help("remove it")
            .fix(place, "")
    }

    /// The mistake of an argument that is missing before the last parenthesis.
    fn missing(&self, repair: &Repair<'_, '_>, message: String) -> Diagnostic {
        let at = repair.span(self.close, self.close);
        self.error(repair, Some((self.close, self.close)), message)
            .label(at, "it is missing before this")
    }

    /// `delta(EXPR)`
    fn takes_expression(&self, repair: &mut Repair<'_, '_>) -> Verdict {
        let name = &self.name;
        let diagnostic = match self.arguments.as_slice() {
            [Some(_)] => return Verdict::Sound,
            [] => self
                .missing(repair, format!("`{name}()` is missing its expression"))
                .help(format!("write `{name}(NAME)` with the name of a metric")),
            [Some(_), None] => self.comma_at_end(repair),
            _ => {
                let message = format!("`{name}()` takes one expression");
                let comma = self.arguments[0].map_or(self.open + 1, |(_, last)| last + 1);
                let rest = repair.span(comma, self.close - 1);
                let error = self
                    .error(repair, Some((comma, self.close - 1)), message)
                    .label(rest, "one argument too many");
                match name.as_str() {
                    "scalar" => error.help("leave it out").guess(rest, ""),
                    _ => error
                        .help("it looks back to the previous sample, however long that is; leave it out")
                        .guess(rest, ""),
                }
            }
        };
        repair.refuse(diagnostic)
    }

    /// `rescale(EXPR, "UNITS")`
    fn rescale(&self, repair: &mut Repair<'_, '_>) -> Verdict {
        let example = "as in `rescale(mem.util.free, \"Mbyte\")`";
        let is_text = |at: usize| matches!(repair.tokens[at].token, Token::Str(_));
        let diagnostic = match self.arguments.as_slice() {
            [Some(units), Some(value)] if self.is_swapped(repair, *units, *value) => {
                let (units_text, value_text) =
                    (repair.slice(units.0, units.1), repair.slice(value.0, value.1));
                let message = "the arguments of `rescale()` are swapped".to_owned();
                self.error(repair, Some((units.0, value.1)), message)
                    .label(repair.span(units.0, units.1), "units come last")
                    .help("the expression comes first")
                    .fix(
                        repair.span(self.function, self.close),
                        format!("rescale({value_text}, {units_text})"),
                    )
            }
            [Some(_), Some(_), None] => self.comma_at_end(repair),
            [Some(_), Some((first, last))] => {
                let token = repair.tokens[*first].token;
                if first == last && matches!(token, Token::Str(_) | Token::Invalid(_)) {
                    return Verdict::Sound;
                }
                let message = "the units of `rescale()` are a text in double quotes".to_owned();
                let error = self.error(repair, Some((*first, *last)), message).help(example);
                let text = repair.slice(*first, *last);
                match text.len() <= 80 && !text.contains('"') && token != Token::LeftParen {
                    true => error.fix(repair.span(*first, *last), format!("\"{text}\"")),
                    false => error,
                }
            }
            [Some((first, last))] if is_text(*last) && first < last => {
                let message = format!("{MISSING_COMMA} before the units");
                let before = repair.tokens[*last - 1];
                // Another mark may stand in place of the comma.
                let marks = match before.token {
                    Token::Name(name) if name.ends_with('.') => 1,
                    Token::Colon | Token::Assign => 1,
                    _ => 0,
                };
                let place = repair.origin.span(before.end - marks, before.end);
                self.error(repair, Some((*last, *last)), message).fix(place, ",")
            }
            [Some((first, last))]
                if let Some(start) = self.units_behind(repair, (*first, *last)) =>
            {
                let message = format!("{MISSING_COMMA} before the units, and quotes around them");
                let units = repair.slice(start, *last);
                let before = repair.tokens[start - 1].end;
                let place = repair.origin.span(before, repair.tokens[*last].end);
                self.error(repair, Some((start, *last)), message)
                    .fix(place, format!(", \"{units}\""))
            }
            [Some(_)] => {
                let message = "`rescale()` is missing its second argument, the units".to_owned();
                let end = repair.tokens[self.close].start;
                let place = repair.origin.span(end, end);
                Diagnostic::error(Code::WrongArguments, place, message)
                    .label(place, "units are missing here")
                    .help("add the units to convert to, such as `, \"Mbyte\"`")
            }
            _ => {
                let message = "`rescale()` takes an expression and units".to_owned();
                self.error(repair, self.whole(), message).help(example)
            }
        };
        repair.refuse(diagnostic)
    }

    /// The first token of units that stand behind an operand without a comma.
    fn units_behind(
        &self,
        repair: &Repair<'_, '_>,
        (first, last): (usize, usize),
    ) -> Option<usize> {
        let ends_operand =
            |token| matches!(token, Token::Name(_) | Token::RightParen | Token::Instance(_));
        (first + 1..=last).rev().take(MAX_UNITS).find(|index| {
            matches!(repair.tokens[*index].token, Token::Name(_))
                && ends_operand(repair.tokens[*index - 1].token)
                && keywords::units(repair.slice(*index, last), repair.language.dialect).is_ok()
        })
    }

    /// True for `"Mbyte", m`.
    fn is_swapped(
        &self,
        repair: &Repair<'_, '_>,
        units: (usize, usize),
        value: (usize, usize),
    ) -> bool {
        let is_text = |(first, last): (usize, usize)| {
            first == last && matches!(repair.tokens[first].token, Token::Str(_))
        };
        is_text(units) && !is_text(value) && repair.slice(value.0, value.1).len() <= 80
    }

    /// `matchinst(/PATTERN/, EXPR)`
    pub fn pattern_first(&self, repair: &mut Repair<'_, '_>, example: &str) -> Verdict {
        let name = &self.name;
        let mut filter = self.arguments.first().copied().flatten();
        if let Some((first, last)) = filter
            && repair.tokens[first].token == Token::Bang
            && first < last
        {
            filter = Some((first + 1, last));
        }
        let Some((first, last)) = filter else {
            let message = format!("`{name}()` takes a pattern and an expression");
            return repair.refuse(self.error(repair, None, message).help(example));
        };
        if let Some(diagnostic) = self.pattern_last(repair) {
            repair.retract(self.open, self.close);
            return repair.refuse(diagnostic);
        }
        match repair.tokens[first].token {
            Token::Pattern(_) if first == last => {}
            Token::Invalid(Invalid::UnterminatedPattern) => return Verdict::Refused,
            Token::Pattern(text) if last == first + 1 && is_flag(repair, first + 1) => {
                let flag = repair.span(last, last);
                let message = "patterns have no flags".to_owned();
                let error = self.error(repair, Some((last, last)), message).label(flag, "a flag");
                let whole = repair.span(first, last);
                return repair.refuse(match (repair.slice(last, last), any_case(text)) {
                    ("i", Some(text)) => error
                        .help("each letter is written in both cases")
                        .fix(whole, format!("/{text}/")),
                    _ => error.help("leave it out").guess(flag, ""),
                });
            }
            Token::Pattern(_) => {
                let goes_on = repair.tokens[first + 1].start == repair.tokens[first].end;
                let (message, help) = match goes_on {
                    true => ("this pattern ends at its second `/`".to_owned(), SLASHES),
                    false => (format!("{MISSING_COMMA} after the pattern"), example),
                };
                return repair
                    .refuse(self.error(repair, Some((first + 1, last)), message).help(help));
            }
            token => {
                let message = format!("`{name}()` begins with a pattern between slashes");
                let error = self.error(repair, Some((first, last)), message).help(example);
                let fixed = match token {
                    Token::Str(text) if first == last => {
                        let inside = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
                        match inside.unwrap_or(text) {
                            text if text.contains('/') => error.help(SLASHES),
                            text => {
                                let is_certain = inside.is_some() || text.starts_with('^');
                                let meant = pattern_meant(text).filter(|_| text.starts_with('*'));
                                let text = meant.unwrap_or_else(|| format!("/{text}/"));
                                let span = repair.span(first, last);
                                error.edit(Fix { span, text, is_certain })
                            }
                        }
                    }
                    _ => match pattern_meant(repair.slice(first, last)) {
                        Some(pattern) => {
                            repair.retract(first, last);
                            error.guess(repair.span(first, last), pattern)
                        }
                        None => error,
                    },
                };
                return repair.refuse(fixed);
            }
        }
        if let [_, Some(_)] = self.arguments.as_slice() {
            return Verdict::Sound;
        }
        if self.arguments.len() == 1 {
            let message = format!("`{name}()` is missing its second argument, an expression");
            return repair.refuse(self.missing(repair, message).help(example));
        }
        let message = format!("`{name}()` takes one expression after its pattern");
        repair.refuse(self.error(repair, self.whole(), message).help(example))
    }

    /// `mkconst(NUMBER, keywords)`
    fn make_constant(&self, repair: &mut Repair<'_, '_>) -> Verdict {
        let example = "as in `mkconst(8, type=u64, units=\"byte\")`";
        let argument = self.arguments.first().copied().flatten();
        let number = argument.filter(|(first, _)| {
            matches!(
                repair.tokens[*first].token,
                Token::Integer(_) | Token::Double(_) | Token::Invalid(_)
            )
        });
        if let Some((first, last)) = number
            && first < last
        {
            if repair.tokens[first + 1].token.is_binary_operator() {
                let message = "no expression stands in `mkconst()`".to_owned();
                let error = self.error(repair, Some((first, last)), message);
                return repair.refuse(error.help("write the number that it gives"));
            }
            let message = format!("{MISSING_COMMA} after the number");
            let error = self.error(repair, Some((first + 1, last)), message).help(example);
            let end = repair.tokens[first].end;
            return repair.refuse(error.guess(repair.origin.span(end, end), ","));
        }
        if number.is_none() {
            let error = self.not_of_number(repair, argument, example);
            return repair.refuse(error);
        }
        if self.arguments.len() == 1 {
            let message = "`mkconst()` needs at least one keyword after its number".to_owned();
            return repair.refuse(self.error(repair, self.whole(), message).help(example));
        }
        self.keywords(repair, &self.arguments[1..])
    }

    /// The mistake of a first argument of `mkconst()` that is not a number.
    fn not_of_number(
        &self,
        repair: &Repair<'_, '_>,
        argument: Argument,
        example: &str,
    ) -> Diagnostic {
        let message = "`mkconst()` begins with a number".to_owned();
        let error = self.error(repair, argument, message);
        let Some((first, _)) = argument else { return error.help(example) };
        match repair.tokens[first].token {
            Token::Minus if first < self.close - 1 => {
                let rest = repair.slice(first + 1, self.close);
                let help = "numbers have no sign; negate the result";
                match self.arguments.len() > 1 && rest.len() <= 80 && rest.ends_with(')') {
                    true => error
                        .help(help)
                        .fix(repair.span(self.function, self.close), format!("-mkconst({rest}")),
                    false => error.help(format!("{help}: `-mkconst(1, type=32)`")),
                }
            }
            Token::Name(name) if name.len() <= 80 => error.help(format!(
                "a metric has its type and units; others have `rescale({name}, \"UNITS\")`"
            )),
            _ => error.help(example),
        }
    }

    /// `novalue(keywords)`, which only a branch of a ternary can be.
    fn no_value(&self, repair: &mut Repair<'_, '_>) -> Verdict {
        let before = self.function.checked_sub(1).map(|before| repair.tokens[before].token);
        let after = repair.tokens.get(self.close + 1).map(|at| at.token);
        let placed = match before {
            Some(Token::Question) => after == Some(Token::Colon),
            Some(Token::Colon) => true,
            _ => false,
        };
        if !placed {
            let span = repair.span(self.function, self.close);
            let message = "`novalue()` stands only as a whole branch of `?:`";
            return repair.refuse(
                Diagnostic::error(Code::MisplacedNoValue, span, message)
                    .help("as in `defined(a) ? a : novalue()`, without parentheses around it"),
            );
        }
        self.keywords(repair, &self.arguments)
    }

    /// `meta(`
    fn reserved(&self, repair: &mut Repair<'_, '_>) -> Verdict {
        let span = repair.span(self.function, self.function);
        let message = format!("`{}` is a reserved word and no function", self.name);
        repair.refuse(Diagnostic::error(Code::UnknownFunction, span, message))
    }

    /// `keyword=value` each.
    fn keywords(&self, repair: &mut Repair<'_, '_>, arguments: &[Argument]) -> Verdict {
        let mut verdict = Verdict::Sound;
        // The token before the argument: a comma or the opening parenthesis.
        let mut before = match self.arguments.len() - arguments.len() {
            0 => self.open,
            _ => self.arguments[0].map_or(self.open, |(_, last)| last + 1),
        };
        for argument in arguments {
            let diagnostic = self.keyword(repair, *argument, before);
            before = argument.map_or(before, |(_, last)| last) + 1;
            if let Some(diagnostic) = diagnostic {
                repair.report(diagnostic);
                verdict = Verdict::Refused;
            }
        }
        verdict
    }

    fn keyword(
        &self,
        repair: &Repair<'_, '_>,
        argument: Argument,
        before: usize,
    ) -> Option<Diagnostic> {
        let name = &self.name;
        let known =
            if repair.language.dialect.is_version_7() { &KEYWORDS[..] } else { &KEYWORDS[..3] };
        let list = format!("`keyword=value` with {}", choices(known.iter().copied()));
        let Some((first, last)) = argument else {
            let message = format!("an argument of `{name}()` is missing after this");
            return Some(self.error(repair, Some((before, before)), message).help(list));
        };
        let at = |index: usize| repair.tokens[index].token;
        let written = repair.slice(first, first);
        if !matches!(at(first), Token::Keyword(_) | Token::MetaKeyword) {
            let message = match at(first) {
                Token::Name(_) => format!("`{written}` is no keyword of `{name}()`"),
                _ => format!("`{name}()` takes keywords with values here"),
            };
            let error = self.error(repair, Some((first, first)), message);
            if first == last
                && let Some(keyword) = keyword_of(repair, first)
            {
                let meant = format!("{keyword}={written}");
                let place = repair.span(first, first);
                return Some(error.help(format!("write `{meant}`")).fix(place, meant));
            }
            let meant = nearest(written, known.iter().copied()).filter(|meant| *meant != written);
            return Some(error.meant(repair.span(first, first), meant, list));
        }
        if first + 1 < last && at(first + 1) == Token::Colon {
            let colon = repair.span(first + 1, first + 1);
            let message = format!("`=` stands between `{written}` and its value");
            let error = self.error(repair, Some((first + 1, first + 1)), message);
            return Some(error.help("write `=`").fix(colon, "="));
        }
        if last == first || at(first + 1) != Token::Assign {
            let message = format!("`{written}` has no value");
            return Some(
                self.error(repair, Some((first, last)), message)
                    .help(format!("write `{written}=` and the value")),
            );
        }
        let meta = at(first) == Token::MetaKeyword;
        let value = (first + 2 <= last).then_some(first + 2);
        let right_kind = value.map(|value| match at(value) {
            Token::Name(_) | Token::Invalid(_) => true,
            Token::Str(_) | Token::Integer(_) => !meta,
            Token::Double(_) => !meta && repair.language.dialect.is_version_7(),
            _ => false,
        });
        match (value, right_kind) {
            (Some(value), Some(true)) if value == last => None,
            (Some(value), Some(true)) => {
                let message = format!("there is more than one value after `{written}=`");
                let help = match at(first) {
                    Token::Keyword(crate::syntax::token::Keyword::Units) => {
                        "units of more than one word stand in double quotes"
                    }
                    _ => "a comma goes between two keywords",
                };
                Some(self.error(repair, Some((value + 1, last)), message).help(help))
            }
            (Some(value), _) => {
                let wanted = if meta {
                    "the name of a metric, without quotes"
                } else {
                    "a word, a number or a text"
                };
                let message = format!("the value of `{written}=` is {wanted}");
                Some(self.error(repair, Some((value, last)), message))
            }
            (None, _) => {
                let message = format!("`{written}=` has no value");
                Some(self.error(repair, Some((first, last)), message))
            }
        }
    }
}
