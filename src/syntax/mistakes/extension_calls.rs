//! Mistakes in the arguments of functions that libpcp does not have.
//!
//! As [`super::calls`] does for libpcp's functions, this module checks calls by
//! their tokens. The table of [`crate::functions`] says how many arguments a
//! call has, and which must be literals. The builder checks the range of
//! numbers and intervals.

use crate::diag::Diagnostic;
use crate::syntax::arguments::{NumberKind, Shape, interval};
use crate::syntax::ast::Callee;
use crate::syntax::token::{Invalid, Token};

use super::call::{Call, MISSING_COMMA, Verdict};
use super::habits::window;
use super::repair::Repair;

/// Checks the call of a function.
pub(super) fn check(
    call: &Call,
    repair: &mut Repair<'_, '_>,
    shape: Shape,
    callee: Callee,
) -> Verdict {
    let checked = Extended { call, callee };
    let diagnostic = match shape {
        Shape::OneValue => checked.values(repair, 1),
        Shape::TwoValues => checked.values(repair, 2),
        Shape::ThreeValues => checked.values(repair, 3),
        Shape::NumberFirst(number) => checked.number_first(repair, number),
        Shape::IntervalLast => checked.interval_last(repair),
        Shape::PatternFirst => {
            return call.pattern_first(repair, &checked.example());
        }
    };
    match diagnostic {
        Some(diagnostic) => {
            // The interval, named with its quotes, is not a number with units.
            if shape == Shape::IntervalLast
                && let [_, Some((first, last))] = call.arguments.as_slice()
            {
                repair.retract(*first, *last);
            }
            repair.refuse(diagnostic)
        }
        None => Verdict::Sound,
    }
}

struct Extended<'c> {
    call: &'c Call,
    callee: Callee,
}

impl Extended<'_> {
    fn usage(&self) -> String {
        match self.callee {
            Callee::Function(function) => function.usage.to_owned(),
            Callee::Aggregate(_) => format!("{}(x)", self.call.name),
        }
    }

    fn example(&self) -> String {
        match self.callee {
            Callee::Function(function) => format!("as in `{}`", function.example.call),
            Callee::Aggregate(_) => String::new(),
        }
    }

    /// The mistake of too many arguments, too few, or an empty one.
    fn wrong_count(&self, repair: &Repair<'_, '_>, wanted: usize) -> Diagnostic {
        let call = self.call;
        let name = &call.name;
        let help = format!("it is written `{}`", self.usage());
        let count = match wanted {
            1 => "one argument",
            2 => "two arguments",
            _ => "three arguments",
        };
        if let Some(missing) = call.arguments.iter().position(Option::is_none) {
            let message = format!("an argument of `{name}()` is missing");
            let before = (0..missing).rev().find_map(|index| call.arguments[index]);
            // The token before the gap: a parenthesis or a comma.
            let at = before.map_or(call.open, |(_, last)| last + 1);
            return call
                .error(repair, Some((at, at)), message)
                .label(repair.span(at, at), "nothing follows this")
                .help(help);
        }
        let message = format!("`{name}()` takes {count}");
        let given = call.arguments.len();
        if let Callee::Aggregate(_) = self.callee
            && given > 1
        {
            let function = repair.tokens[call.function].token;
            let error = call.error(repair, call.whole(), message);
            return call.of_several(repair, function, error, call.texts(repair));
        }
        match call.arguments.get(wanted) {
            Some(Some((first, _))) if wanted > 0 => {
                let extra = Some((*first, call.close - 1));
                let label = if given == wanted + 1 { "one too many" } else { "too many" };
                call.error(repair, extra, message)
                    .label(repair.span(*first, call.close - 1), label)
                    .help(help)
            }
            _ => {
                let label = match given {
                    0 => "there is none",
                    1 => "there is only one",
                    _ => "there are only two",
                };
                call.error(repair, None, message)
                    .label(repair.span(call.open, call.close), label)
                    .help(help)
            }
        }
    }

    /// `pow(x, y)`
    fn values(&self, repair: &Repair<'_, '_>, count: usize) -> Option<Diagnostic> {
        if let Callee::Aggregate(_) = self.callee
            && let [Some((first, last))] = self.call.arguments.as_slice()
            && let Token::Instance(list) = repair.tokens[*first].token
            && first == last
            && list.contains(',')
        {
            return Some(self.call.of_list(repair, *first, list));
        }
        let sound =
            self.call.arguments.len() == count && self.call.arguments.iter().all(Option::is_some);
        (!sound).then(|| self.wrong_count(repair, count))
    }

    /// `topk(k, x)`
    fn number_first(&self, repair: &Repair<'_, '_>, wanted: NumberKind) -> Option<Diagnostic> {
        let call = self.call;
        let [Some(number), Some(value)] = call.arguments.as_slice() else {
            return Some(self.wrong_count(repair, 2));
        };
        let is_number = |(first, last): (usize, usize)| {
            first == last
                && matches!(
                    repair.tokens[first].token,
                    Token::Integer(_) | Token::Double(_) | Token::Invalid(_)
                )
        };
        if is_number(*number) {
            return None;
        }
        let name = &call.name;
        let wanted = wanted.wanted();
        let message = format!("`{name}()` begins with {wanted}, written as such");
        let error = call.error(repair, Some(*number), message).help(self.example());
        let (first, second) = (repair.slice(number.0, number.1), repair.slice(value.0, value.1));
        Some(match is_number(*value) && first.len() <= 80 {
            true => error
                .label(repair.span(value.0, value.1), "the number comes first")
                .fix(repair.span(number.0, value.1), format!("{second}, {first}")),
            false => error,
        })
    }

    /// `avg_over(x, "interval")`
    fn interval_last(&self, repair: &Repair<'_, '_>) -> Option<Diagnostic> {
        let call = self.call;
        let (first, last) = match call.arguments.as_slice() {
            [Some(_), Some(argument)] => *argument,
            [Some((first, last))]
                if matches!(repair.tokens[*last].token, Token::Str(_)) && first < last =>
            {
                let message = format!("{MISSING_COMMA} before the interval");
                let error = call.error(repair, Some((*last, *last)), message);
                return Some(error.help(self.example()));
            }
            _ => return Some(self.wrong_count(repair, 2)),
        };
        if first == last
            && let Token::Str(_) | Token::Invalid(Invalid::UnterminatedString) =
                repair.tokens[first].token
        {
            return None;
        }
        let name = &call.name;
        if let [Some(text), Some(value)] = call.arguments.as_slice()
            && text.0 == text.1
            && matches!(repair.tokens[text.0].token, Token::Str(_))
        {
            let message = format!("the arguments of `{name}()` are swapped");
            let error = call.error(repair, Some((text.0, value.1)), message);
            let swapped =
                format!("{}, {}", repair.slice(value.0, value.1), repair.slice(text.0, text.1));
            let error = error.label(repair.span(text.0, text.1), "the interval comes last");
            return Some(match swapped.len() <= 80 {
                true => error.guess(repair.span(text.0, value.1), swapped),
                false => error.help(self.example()),
            });
        }
        let message = format!("the interval of `{name}()` is a text in double quotes");
        let error = call.error(repair, Some((first, last)), message).help(self.example());
        let text = repair.slice(first, last);
        if let Some(interval) = window(text) {
            return Some(error.fix(repair.span(first, last), format!("\"{interval}\"")));
        }
        // Elsewhere a bare number is a number of samples, or a weight.
        Some(match text.parse::<f64>().is_err() && interval(text).is_ok() {
            true => error.fix(repair.span(first, last), format!("\"{text}\"")),
            false => error,
        })
    }
}
