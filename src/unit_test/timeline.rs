//! Timelines: the results of one instance at each step of a test, in a compact
//! notation.
//!
//! ```text
//! timeline = item { blank item }
//! item     = value [ "x" ( COUNT | "*" ) ]       7x3 is 7 7 7; x* goes to the end
//! value    = NUMBER [ ("+" | "-") NUMBER ]       10+5x4 is 10 15 20 25
//!                   [ "~" NUMBER [ "%" ] ]       3.3~0.1, 3.3~1%: nearly that much
//!          | "'" TEXT "'" | '"' TEXT '"'
//!          | "_"                                 no value
//!          | PM_ERR_NAME                         the metric fails
//!          | "none" [ "(" REASON ")" ]           the metric has no values at all
//!          | "*"                                 any result
//! ```
//!
//! Runs are kept as written, so a timeline needs no more memory than its text.

use std::fmt;
use std::ops::Range;

use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::Reason;

use super::cursor::{Cursor, TextError};

/// Most steps of a test.
pub const MAX_STEPS: usize = 100_000;

/// The results of one instance, or of a metric as a whole, at each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    runs: Vec<Run>,
    /// Number of steps up to the end of each run, parallel to the runs. `None` for a last run
    /// that continues to the end of the test.
    ends: Vec<Option<usize>>,
}

/// An item. The timeline's `ends` tell how often it is repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The item.
    pub item: Item,
    /// Bytes of the text from which it was read.
    pub place: Range<usize>,
}

/// The result at a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A number.
    Number {
        /// The number at the first step of the run.
        start: Number,
        /// The number to add at each further step.
        step: Option<Number>,
        /// Largest allowed difference of a value.
        tolerance: Option<Tolerance>,
    },
    /// A text.
    Text(Box<str>),
    /// No value of this instance.
    Absent,
    /// No values of the metric, perhaps for the reason with this word.
    NoValues(Option<&'static str>),
    /// The metric fails.
    Failed(PmStatus),
    /// Any result.
    Any,
}

/// A number. Whole numbers are exact, unless they are too large and written
/// with a point or an exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Real(f64),
}

/// Largest allowed difference between a value and the expected number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// An absolute difference.
    Absolute(f64),
    /// A fraction of the expected number, such as 0.01 for 1 %.
    Relative(f64),
}

impl Number {
    /// The number in double precision.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Real(value) => value,
        }
    }

    /// This number plus `count` times `step`.
    fn plus(self, step: Number, count: usize) -> Option<Number> {
        match (self, step, i128::try_from(count)) {
            (Number::Integer(start), Number::Integer(step), Ok(count)) => {
                Some(Number::Integer(step.checked_mul(count)?.checked_add(start)?))
            }
            _ => Some(Number::Real(self.as_f64() + step.as_f64() * count as f64)),
        }
    }

    fn negated(self) -> Number {
        match self {
            Number::Integer(value) => Number::Integer(-value),
            Number::Real(value) => Number::Real(-value),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(value) => write!(f, "{value}"),
            Number::Real(value) => write_real(f, *value),
        }
    }
}

/// Writes a number; one with many zeros gets an exponent.
fn write_real(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    let size = value.abs();
    match value {
        _ if value.is_nan() => f.write_str("nan"),
        _ if size.is_finite() && (size >= 1e16 || size < 1e-5 && size > 0.0) => {
            write!(f, "{value:e}")
        }
        _ => write!(f, "{value}"),
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Absolute(distance) => {
                f.write_str("~")?;
                write_real(f, *distance)
            }
            Tolerance::Relative(part) => {
                f.write_str("~")?;
                write_real(f, part * 100.0)?;
                f.write_str("%")
            }
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Number { start, tolerance: Some(tolerance), .. } => {
                write!(f, "{start}{tolerance}")
            }
            Item::Number { start, .. } => write!(f, "{start}"),
            Item::Text(text) => write!(f, "'{text}'"),
            Item::Absent => f.write_str("no value"),
            Item::NoValues(None) => f.write_str("none"),
            Item::NoValues(Some(reason)) => write!(f, "none({reason})"),
            Item::Failed(status) => match status.name() {
                Some(name) => f.write_str(&name),
                None => write!(f, "status {}", status.0),
            },
            Item::Any => f.write_str("anything"),
        }
    }
}

impl Timeline {
    /// Reads a timeline.
    ///
    /// # Errors
    /// The first mistake in the text.
    pub fn parse(text: &str) -> Result<Timeline, TextError> {
        let mut reader = Cursor::new(text);
        let mut timeline = Timeline { runs: Vec::new(), ends: Vec::new() };
        let mut steps = 0usize;
        reader.skip_blanks();
        while reader.at < text.len() {
            let start = reader.at;
            if timeline.ends.last() == Some(&None) {
                return Err(TextError::new(start..text.len(), "nothing can follow `x*`"));
            }
            let item = reader.item()?;
            let count = reader.count()?;
            let place = start..reader.at;
            if let Some(character) = reader.peek()
                && !character.is_whitespace()
            {
                return Err(reader.wrong_word(start, "is not a value of a timeline"));
            }
            if let Item::Number { start: first, step: Some(step), .. } = &item {
                if count == Some(1) {
                    let message = "a step needs a count, as in `10+5x4`";
                    return Err(TextError::new(place, message));
                }
                if first.plus(*step, count.unwrap_or(MAX_STEPS)).is_none() {
                    return Err(TextError::new(place, "the numbers become too large"));
                }
            }
            steps = steps.saturating_add(count.unwrap_or(0));
            if steps > MAX_STEPS {
                let message = format!("more than {MAX_STEPS} steps");
                return Err(TextError::new(place, message));
            }
            timeline.runs.push(Run { item, place });
            timeline.ends.push(count.map(|_| steps));
            reader.skip_blanks();
        }
        match timeline.runs.is_empty() {
            true => Err(TextError::new(0..text.len(), "a timeline without steps")),
            false => Ok(timeline),
        }
    }

    /// The same number at all steps.
    pub fn constant(number: Number) -> Timeline {
        let item = Item::Number { start: number, step: None, tolerance: None };
        Timeline { runs: vec![Run { item, place: 0..0 }], ends: vec![None] }
    }

    /// Number of steps. `None` if it continues to the end of the test.
    pub fn steps(&self) -> Option<usize> {
        self.ends.last().copied().flatten()
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The result at a step, counted from 0. After the end there is no value.
    pub fn at(&self, step: usize) -> Item {
        let position = self.ends.partition_point(|end| end.is_some_and(|end| end <= step));
        let Some(run) = self.runs.get(position) else { return Item::Absent };
        match &run.item {
            Item::Number { start, step: Some(by), tolerance } => {
                let before = position.checked_sub(1).and_then(|before| self.ends[before]);
                let number = start.plus(*by, step - before.unwrap_or(0)).unwrap_or(*start);
                Item::Number { start: number, step: None, tolerance: *tolerance }
            }
            item => item.clone(),
        }
    }

    /// The first and the last number of each run of numbers, with its place.
    pub fn numbers(&self) -> impl Iterator<Item = (Number, &Range<usize>)> {
        let mut before = 0;
        let both = self.runs.iter().zip(&self.ends).map(move |(run, end)| {
            let count = end.map_or(MAX_STEPS, |end| end - before);
            before = end.unwrap_or(before);
            let (first, last) = match &run.item {
                Item::Number { start, step: Some(step), .. } => {
                    (Some(*start), start.plus(*step, count.saturating_sub(1)))
                }
                Item::Number { start, .. } => (Some(*start), None),
                _ => (None, None),
            };
            first.into_iter().chain(last).map(move |number| (number, &run.place))
        });
        both.flatten()
    }
}

/// The notation of timelines.
impl Cursor<'_> {
    /// The error for the word that begins at `start`.
    fn wrong_word(&self, start: usize, what: &str) -> TextError {
        let rest = &self.text[start..];
        let word = rest.split(char::is_whitespace).next().unwrap_or(rest);
        let shown: String = word.chars().take(40).collect();
        TextError::new(start..start + word.len(), format!("`{shown}` {what}"))
    }

    fn item(&mut self) -> Result<Item, TextError> {
        let start = self.at;
        if let Some(quote @ ('\'' | '"')) = self.peek() {
            self.at += 1;
            let text = self.take_while(|character| character != quote);
            if !self.take(quote.encode_utf8(&mut [0; 4])) {
                return Err(TextError::new(start..self.at, "this text has no end"));
            }
            return Ok(Item::Text(text.into()));
        }
        if self.take("*") {
            return Ok(Item::Any);
        }
        if self.take("_") {
            return Ok(Item::Absent);
        }
        if self.take("none") {
            return self.no_values(start);
        }
        if self.rest().starts_with("PM_ERR_") {
            let name = self.take_while(|c| c.is_ascii_uppercase() || c == '_');
            let status = PmStatus::from_name(name).map(Item::Failed);
            return status.ok_or_else(|| self.wrong_word(start, "is not an error of PMAPI(3)"));
        }
        let Some(number) = self.signed_number() else {
            let word = self.rest().split(char::is_whitespace).next().unwrap_or_default();
            let known = ["nan", "inf", "-inf"];
            return Err(match known.into_iter().find(|meant| word.eq_ignore_ascii_case(meant)) {
                Some(meant) => self.wrong_word(start, &format!("is written `{meant}` here")),
                None => self.wrong_word(start, "is not a value of a timeline"),
            });
        };
        let step = match self.peek() {
            Some(sign @ ('+' | '-')) => {
                self.at += 1;
                let step = self.number();
                let step = step.ok_or_else(|| self.wrong_word(start, "has no number as its step"));
                Some(if sign == '-' { step?.negated() } else { step? })
            }
            _ => None,
        };
        let tolerance = if self.take("~") { Some(self.tolerance(start)?) } else { None };
        Ok(Item::Number { start: number, step, tolerance })
    }

    fn no_values(&mut self, start: usize) -> Result<Item, TextError> {
        if !self.take("(") {
            return Ok(Item::NoValues(None));
        }
        let word = self.take_while(|character| character != ')' && !character.is_whitespace());
        let known = Reason::words().find(|known| *known == word);
        if known.is_none() || !self.take(")") {
            let words: Vec<&str> = Reason::words().collect();
            let message = format!("`{word}` is not a reason; the reasons are {}", words.join(", "));
            return Err(TextError::new(start..self.at, message));
        }
        Ok(Item::NoValues(known))
    }

    fn tolerance(&mut self, start: usize) -> Result<Tolerance, TextError> {
        let number = self.number().map(Number::as_f64).filter(|number| number.is_finite());
        let number = number.ok_or_else(|| self.wrong_word(start, "has no number after `~`"))?;
        Ok(match self.take("%") {
            true => Tolerance::Relative(number / 100.0),
            false => Tolerance::Absolute(number),
        })
    }

    fn signed_number(&mut self) -> Option<Number> {
        let start = self.at;
        let is_negative = self.take("-");
        let number = self.number();
        if number.is_none() {
            self.at = start;
        }
        number.map(|number| if is_negative { number.negated() } else { number })
    }

    /// Reads a number without a sign.
    fn number(&mut self) -> Option<Number> {
        if self.take("inf") {
            return Some(Number::Real(f64::INFINITY));
        }
        if self.take("nan") {
            return Some(Number::Real(f64::NAN));
        }
        let start = self.at;
        let digits = |character: char| character.is_ascii_digit();
        self.take_while(digits);
        if self.take(".") {
            self.take_while(digits);
        }
        let before_exponent = self.at;
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            if self.take_while(digits).is_empty() {
                self.at = before_exponent;
            }
        }
        let text = &self.text[start..self.at];
        if let Ok(integer) = text.parse() {
            return Some(Number::Integer(integer));
        }
        let real: f64 = text.parse().ok()?;
        // Below 2^53, every whole number is exact. Only a real zero has a sign.
        let is_whole = real.fract() == 0.0 && (0.5..9_007_199_254_740_992.0).contains(&real);
        Some(if is_whole { Number::Integer(real as i128) } else { Number::Real(real) })
    }

    /// Reads the number of repetitions; `None` means to the end.
    fn count(&mut self) -> Result<Option<usize>, TextError> {
        let start = self.at;
        if !self.take("x") {
            return Ok(Some(1));
        }
        if self.take("*") {
            return Ok(None);
        }
        let digits = self.take_while(|character| character.is_ascii_digit());
        let count = digits.parse().ok().filter(|count| (1..=MAX_STEPS).contains(count));
        let message = format!("a count is from 1 to {MAX_STEPS}, or `*` for the rest");
        count.map(Some).ok_or_else(|| TextError::new(start..self.at.max(start + 1), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::fuzz_timeline;
    use crate::syntax::tests::{Generator, mutations};

    fn written(text: &str) -> String {
        let timeline = Timeline::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let steps = timeline.steps().unwrap_or(6);
        let items: Vec<String> = (0..steps).map(|step| timeline.at(step).to_string()).collect();
        items.join(" | ")
    }

    #[test]
    fn runs_are_written_short() {
        for (text, steps) in [
            ("7", "7"),
            (" 1 -2.5\t1e3\n.5 ", "1 | -2.5 | 1000 | 0.5"),
            ("7x3", "7 | 7 | 7"),
            ("10+5x4 1-2x2", "10 | 15 | 20 | 25 | 1 | -1"),
            ("-1+.25x3", "-1 | -0.75 | -0.5"),
            ("1e-1x2", "0.1 | 0.1"),
            (
                "-1e308~1e308 1e20 1e15 1e-7~1e-9",
                "-1e308~1e308 | 1e20 | 1000000000000000 | 1e-7~1e-9",
            ),
            ("_x2 5 _", "no value | no value | 5 | no value"),
            ("18446744073709551615", "18446744073709551615"),
            ("inf -inf nan", "inf | -inf | nan"),
            ("'a b'x2 \"it's\" ''", "'a b' | 'a b' | 'it's' | ''"),
            ("PM_ERR_AGAINx2 none none(gap)", "PM_ERR_AGAIN | PM_ERR_AGAIN | none | none(gap)"),
            ("0.3~0.05x2 50~1%", "0.3~0.05 | 0.3~0.05 | 50~1%"),
            ("1 2+1x*", "1 | 2 | 3 | 4 | 5 | 6"),
            ("*x2 *x*", "anything | anything | anything | anything | anything | anything"),
        ] {
            assert_eq!(written(text), steps, "{text}");
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, place, message) in [
            ("", 0..0, "a timeline without steps"),
            ("1 2, 3", 2..4, "`2,` is not a value of a timeline"),
            ("1 up", 2..4, "`up` is not a value of a timeline"),
            ("1 NaN", 2..5, "`NaN` is written `nan` here"),
            ("-INFx2", 0..6, "`-INFx2` is not"),
            ("1x0", 1..3, "a count is from 1"),
            ("1x100001", 1..8, "a count is from 1"),
            ("1x60000 2x60000", 8..15, "more than 100000 steps"),
            ("1+5", 0..3, "a step needs a count"),
            ("1x* 2", 4..5, "nothing can follow `x*`"),
            ("'up", 0..3, "this text has no end"),
            ("PM_ERR_NONE", 0..11, "`PM_ERR_NONE` is not an error of PMAPI(3)"),
            ("none(why)", 0..8, "`why` is not a reason"),
            ("1~", 0..2, "`1~` has no number after `~`"),
            ("1+1e38x2 170141183460469231731687303715884105727+1x2", 9..52, "the numbers become"),
        ] {
            let error = Timeline::parse(text).expect_err(text);
            assert_eq!(error.place, place, "{text}: {error:?}");
            assert!(error.message.starts_with(message), "{text}: {error:?}");
        }
    }

    #[test]
    fn any_text_is_a_timeline_or_has_a_mistake_in_it() {
        let mut generator = Generator::new(8);
        for seed in [
            "1+2x5 _x2 7 -3.5e-2~1%x3 'a b'x2 PM_ERR_AGAIN none(counter-fell) *x*",
            "100000x99999 inf+infx3 nan~5 170141183460469231731687303715884105727-1x9",
        ] {
            mutations(seed.as_bytes(), &mut generator, fuzz_timeline);
        }
    }
}
