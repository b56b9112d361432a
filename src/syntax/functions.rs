//! Functions that libpcp does not have: their names, the shapes of their
//! arguments, and the arguments that are written as such.
//!
//! The table decides what the lexer, the grammar and the reports of mistakes
//! know of a function. What its values mean is the checker's business;
//! `grammar/extensions.md` is the description for users.

use std::time::Duration;

use pmderive_runtime::model::parse_interval;

use super::ast::{Aggregate, Function, NumberValue};
use super::keywords;

/// How the arguments of a function are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value.
    OneValue,
    /// Two values.
    TwoValues,
    /// Three values.
    ThreeValues,
    /// A number, then a value.
    NumberFirst,
    /// A value, then an interval in double quotes.
    IntervalLast,
    /// A pattern, perhaps with `!` before it, then a value.
    PatternFirst,
}

/// A row of [`SIGNATURES`].
pub struct Signature {
    /// Name of the function.
    pub name: &'static str,
    /// The function.
    pub function: Function,
    /// How its arguments are written.
    pub shape: Shape,
    /// The call with its arguments by name.
    pub usage: &'static str,
    /// A call as one may meet it.
    pub example: &'static str,
}

/// Longest interval: more than thirty years, so that arithmetic with it is safe.
const MAX_INTERVAL: Duration = Duration::from_secs(1_000_000_000);

const fn row(
    name: &'static str,
    function: Function,
    shape: Shape,
    usage: &'static str,
    example: &'static str,
) -> Signature {
    Signature { name, function, shape, usage, example }
}

/// All functions that libpcp does not have.
pub const SIGNATURES: [Signature; 17] = {
    use Function::*;
    use Shape::{IntervalLast, NumberFirst, OneValue, PatternFirst, ThreeValues, TwoValues};
    [
        row("abs", Abs, OneValue, "abs(x)", "abs(delta(mem.util.free))"),
        row("floor", Floor, OneValue, "floor(x)", "floor(kernel.all.load)"),
        row("ceil", Ceil, OneValue, "ceil(x)", "ceil(kernel.all.load)"),
        row("round", Round, OneValue, "round(x)", "round(kernel.all.load)"),
        row("sqrt", Sqrt, OneValue, "sqrt(x)", "sqrt(kernel.all.load)"),
        row("log", Log, OneValue, "log(x)", "log(kernel.all.nprocs)"),
        row("pow", Pow, TwoValues, "pow(x, y)", "pow(kernel.all.load, 2)"),
        row("clamp", Clamp, ThreeValues, "clamp(x, low, high)", "clamp(kernel.all.load, 0, 10)"),
        row("topk", TopK, NumberFirst, "topk(k, x)", "topk(3, rate(disk.dev.read))"),
        row("bottomk", BottomK, NumberFirst, "bottomk(k, x)", "bottomk(3, filesys.free)"),
        row(
            "quantile",
            Quantile,
            NumberFirst,
            "quantile(q, x)",
            "quantile(0.9, disk.dev.avactive)",
        ),
        row("stdev", StdDev, OneValue, "stdev(x)", "stdev(kernel.percpu.cpu.user)"),
        row(
            "avg_over",
            AvgOver,
            IntervalLast,
            "avg_over(x, \"interval\")",
            "avg_over(kernel.all.load, \"5 min\")",
        ),
        row(
            "max_over",
            MaxOver,
            IntervalLast,
            "max_over(x, \"interval\")",
            "max_over(kernel.all.load, \"5 min\")",
        ),
        row(
            "min_over",
            MinOver,
            IntervalLast,
            "min_over(x, \"interval\")",
            "min_over(mem.util.free, \"1 hour\")",
        ),
        row(
            "ewma",
            Ewma,
            IntervalLast,
            "ewma(x, \"half-life\")",
            "ewma(kernel.all.load, \"30 sec\")",
        ),
        row(
            "matchvalue",
            MatchValue,
            PatternFirst,
            "matchvalue(/pattern/, x)",
            "matchvalue(/^nginx/, proc.psinfo.cmd)",
        ),
    ]
};

/// The row of a name.
pub fn signature(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|row| row.name == name)
}

/// Names of all functions that libpcp does not have.
pub fn names() -> impl Iterator<Item = &'static str> {
    SIGNATURES.iter().map(|row| row.name)
}

impl Function {
    /// Name of the function.
    pub fn name(self) -> &'static str {
        match self {
            Function::Aggregate(function) => function.name(),
            _ => self.signature().map_or("", |row| row.name),
        }
    }

    /// Its row, which aggregates do not have.
    pub fn signature(self) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|row| row.function == self)
    }
}

/// The aggregate of this name.
pub fn aggregate(name: &str) -> Option<Aggregate> {
    use Aggregate::{Avg, Count, Max, Min, Sum};
    [Avg, Count, Max, Min, Sum].into_iter().find(|function| function.name() == name)
}

/// An argument that a function does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadArgument {
    /// What is wrong.
    pub message: String,
    /// Where in the text, if that is narrower than all of it.
    pub offset: Option<usize>,
}

fn bad(message: impl Into<String>) -> BadArgument {
    BadArgument { message: message.into(), offset: None }
}

/// The `k` of `topk()` and `bottomk()`.
pub fn rank(text: &str) -> Result<u32, BadArgument> {
    match keywords::number(text).value {
        NumberValue::Integer(k) if k > 0 => Ok(k),
        _ => Err(bad("the number of instances is a whole number of 1 or more")),
    }
}

/// The `q` of `quantile()`.
pub fn fraction(text: &str) -> Result<f64, BadArgument> {
    let value = match keywords::number(text).value {
        NumberValue::Integer(value) => f64::from(value),
        NumberValue::Double(value) => value,
    };
    match value {
        0.0..=1.0 => Ok(value),
        _ => Err(bad("a quantile is a number from 0 to 1; 0.5 is the median")),
    }
}

/// An interval as PCP's tools take it, `pmParseInterval(3)`, but for `ms`,
/// which is minutes to them and milliseconds to almost everyone else.
pub fn interval(text: &str) -> Result<Duration, BadArgument> {
    let is_letter = |c: char| c.is_ascii_alphabetic();
    let mut words = text.split(|c| !is_letter(c));
    if let Some(word) = words.find(|word| word.eq_ignore_ascii_case("ms")) {
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        let message = "`ms` would be minutes here; write `msec` or `min`".to_owned();
        return Err(BadArgument { message, offset: Some(offset) });
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
    fn every_function_has_one_row() {
        for row in &SIGNATURES {
            assert_eq!(row.function.name(), row.name);
            assert!(row.usage.starts_with(&format!("{}(", row.name)), "{}", row.usage);
            assert!(row.example.starts_with(&format!("{}(", row.name)), "{}", row.example);
            assert!(names().filter(|name| *name == row.name).count() == 1, "{}", row.name);
        }
    }

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
