//! The forms of the arguments of functions, and the values that literal
//! arguments may have.

use std::time::Duration;

use pmderive_runtime::model::{AMBIGUOUS_UNIT, ambiguous_unit, parse_interval};

use crate::syntax::ast::{Literal, NumberValue};
use crate::syntax::keywords;

/// The form of a function's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value.
    OneValue,
    /// Two values.
    TwoValues,
    /// Three values.
    ThreeValues,
    /// A number, then a value.
    NumberFirst(NumberKind),
    /// A value, then an interval in double quotes.
    IntervalLast,
    /// A pattern, perhaps with `!` before it, then a value.
    PatternFirst,
}

/// The values that a literal number may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A rank: a whole number of 1 or more.
    Rank,
    /// A share: from 0 to 1.
    Fraction,
}

impl NumberKind {
    /// The expected value, in words.
    pub fn wanted(self) -> &'static str {
        match self {
            NumberKind::Rank => "a whole number of 1 or more",
            NumberKind::Fraction => "a number from 0 to 1",
        }
    }

    /// The argument of this spelling.
    pub(crate) fn read(self, text: &str) -> Result<Literal, BadArgument> {
        match self {
            NumberKind::Rank => rank(text).map(Literal::Rank),
            NumberKind::Fraction => {
                fraction(text).map(|_| Literal::Fraction(keywords::number(text)))
            }
        }
    }
}

/// Longest interval: more than thirty years, so that arithmetic with it is safe.
const MAX_INTERVAL: Duration = Duration::from_secs(1_000_000_000);

/// An argument that a function does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadArgument {
    /// The mistake.
    pub message: String,
    /// Offset of the mistake in the text, if it is narrower than the whole.
    pub offset: Option<usize>,
}

fn bad(message: impl Into<String>) -> BadArgument {
    BadArgument { message: message.into(), offset: None }
}

/// The `k` of `topk()` and `bottomk()`.
fn rank(text: &str) -> Result<u32, BadArgument> {
    match keywords::number(text).value {
        NumberValue::Integer(k) if k > 0 => Ok(k),
        _ => Err(bad("the number of instances is a whole number of 1 or more")),
    }
}

/// The `q` of `quantile()`.
fn fraction(text: &str) -> Result<f64, BadArgument> {
    let value = keywords::number(text).value.as_f64();
    match value {
        0.0..=1.0 => Ok(value),
        _ => Err(bad("a quantile is a number from 0 to 1; 0.5 is the median")),
    }
}

/// An interval as PCP's tools read it, `pmParseInterval(3)`, except for `ms`.
pub fn interval(text: &str) -> Result<Duration, BadArgument> {
    if let Some(offset) = ambiguous_unit(text) {
        return Err(BadArgument { message: AMBIGUOUS_UNIT.to_owned(), offset: Some(offset) });
    }
    let length = parse_interval(text).map_err(|error| BadArgument {
        message: "an interval is numbers with units such as `30 sec` or `1 hour 30 min`".to_owned(),
        offset: (error.offset < text.len()).then_some(error.offset),
    })?;
    if length.is_zero() {
        return Err(bad("an interval has to be longer than nothing"));
    }
    if length > MAX_INTERVAL {
        return Err(bad(format!("an interval has at most {} seconds", MAX_INTERVAL.as_secs())));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_ranges() {
        assert_eq!(rank("3"), Ok(3));
        for text in ["0", "1.5", "1e3"] {
            assert!(rank(text).is_err(), "{text}");
        }
        assert_eq!(fraction("0.5"), Ok(0.5));
        assert_eq!(fraction("1"), Ok(1.0));
        for text in ["1.01", "2"] {
            assert!(fraction(text).is_err(), "{text}");
        }
    }

    #[test]
    fn intervals_are_those_of_the_tools_but_for_milliseconds() {
        let seconds = |text| interval(text).map(|length| length.as_secs_f64());
        assert_eq!(seconds("5 min"), Ok(300.0));
        assert_eq!(seconds("1h30m"), Ok(5400.0));
        assert_eq!(seconds("500msec"), Ok(0.5));
        assert_eq!(seconds("2"), Ok(2.0));
        for (text, offset) in
            [("", None), ("0 sec", None), ("5 fortnights", Some(2)), ("10ms", Some(2))]
        {
            assert_eq!(interval(text).map_err(|error| error.offset), Err(offset), "{text}");
        }
        assert!(interval("100000 days").is_err());
    }
}
