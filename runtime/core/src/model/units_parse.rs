//! Parses units.
//!
//! Input: a text for `pmParseUnitsStr(3)`. Output: units with a multiplier, or
//! an error with the bytes at fault. `units_convert` changes a value's scale.

use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use super::c_number::{NumberError, is_c_space, leading_number};
use super::units_words::{Axis, EXTRA_WORDS, LAST_NUMBERED, SPACE_NUMBERED, TIME_NUMBERED, WORDS};
use super::{ExtraUnit, Units};

/// Result of [`Units::parse`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedUnits {
    /// The units.
    pub units: Units,
    /// Factor that turns a value in [`ParsedUnits::units`] into a value in the
    /// written units: 0.1 for `10 Kbyte`. It is 1 without numbers and without
    /// an axis on both sides of the slash. It is infinite or NaN if the text
    /// has a zero.
    pub multiplier: f64,
}

/// The reason why a text is not units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum UnitsErrorKind {
    /// A word that is unknown, misplaced, or of an axis that its part already
    /// names.
    #[error("unrecognized or duplicate base unit")]
    BaseUnit,
    /// A number that is malformed or out of range.
    #[error("invalid floating point literal")]
    Number,
    /// The dimension of space does not fit -8 to 7.
    #[error("space dimension out of bounds")]
    SpaceDimension,
    /// The dimension of time does not fit -8 to 7.
    #[error("time dimension out of bounds")]
    TimeDimension,
    /// The dimension of count does not fit -8 to 7.
    #[error("count dimension out of bounds")]
    CountDimension,
    /// A part has more than one extra unit.
    #[error("multiple extra units not allowed")]
    MultipleExtra,
    /// Both parts have an extra unit.
    #[error("extra units cannot appear in both dividend and divisor")]
    ExtraOnBothSides,
    /// The text has a factor, which units alone cannot keep. [`Units::parse`] gives it, so only
    /// [`FromStr`] has this error.
    #[error("a factor is not allowed")]
    Factor,
}

/// Error of [`Units::parse`]. It prints libpcp's text. `pmParseUnitsStr(3)` returns
/// `PM_ERR_CONV` for each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct UnitsError {
    /// The kind of fault.
    pub kind: UnitsErrorKind,
    /// The bytes at fault; not empty unless the text is.
    pub range: Range<usize>,
}

impl Units {
    /// Reads units as `pmParseUnitsStr(3)` of PCP 7 does: a dividend and, after
    /// a slash, a divisor. Each is a list, possibly empty, of numbers and of
    /// unit words with exponents (`10 Kbyte^2 / sec`, `temperature (C)`).
    ///
    /// # Errors
    /// A part of the text is not understood; the error has its bytes.
    pub fn parse(text: &str) -> Result<ParsedUnits, UnitsError> {
        parse(text, ExtraUnits::Known)
    }

    /// Reads units as PCP 6 does. It does not know the extra units.
    ///
    /// # Errors
    /// As [`Units::parse`].
    pub fn parse_version_6(text: &str) -> Result<ParsedUnits, UnitsError> {
        parse(text, ExtraUnits::Unknown)
    }
}

/// Reads units without a factor: `10 Kbyte` is refused. [`Units::parse`] reads it.
///
/// ```
/// use pmderive_core::model::Units;
///
/// assert_eq!("Kbyte / sec".parse::<Units>()?.to_string(), "Kbyte / sec");
/// assert!("10 Kbyte".parse::<Units>().is_err());
/// assert_eq!(Units::parse("10 Kbyte")?.multiplier, 0.1);
/// # Ok::<(), pmderive_core::model::UnitsError>(())
/// ```
impl FromStr for Units {
    type Err = UnitsError;

    fn from_str(text: &str) -> Result<Units, UnitsError> {
        match Units::parse(text)? {
            ParsedUnits { units, multiplier: 1.0 } => Ok(units),
            ParsedUnits { .. } => Err(error(UnitsErrorKind::Factor, 0..text.len())),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExtraUnits {
    Known,
    Unknown,
}

fn parse(text: &str, extra_units: ExtraUnits) -> Result<ParsedUnits, UnitsError> {
    // A second slash is an unknown word of the divisor.
    let slash = text.find('/');
    let dividend = Part::parse(text, 0..slash.unwrap_or(text.len()), extra_units)?;
    let divisor = match slash {
        Some(slash) => Part::parse(text, slash + 1..text.len(), extra_units)?,
        None => Part::default(),
    };
    let extra = match (&dividend.extra, &divisor.extra) {
        (Some(_), Some((_, range))) => {
            return Err(error(UnitsErrorKind::ExtraOnBothSides, range.clone()));
        }
        (Some((extra, _)), None) => *extra,
        (None, Some((extra, _))) => ExtraUnit { quantity: -extra.quantity, unit: extra.unit },
        (None, None) => ExtraUnit::default(),
    };
    let quotient = Quotient { dividend, divisor };
    let dim_space = quotient.dimension(Axis::Space, UnitsErrorKind::SpaceDimension)?;
    let dim_time = quotient.dimension(Axis::Time, UnitsErrorKind::TimeDimension)?;
    let dim_count = quotient.dimension(Axis::Count, UnitsErrorKind::CountDimension)?;
    // The order of the axes in the multiplier decides its last digit.
    let mut multiplier = quotient.divisor.number / quotient.dividend.number;
    let scale_space = quotient.scale(Axis::Space, dim_space, &mut multiplier)?.unsigned_abs();
    let scale_count = quotient.scale(Axis::Count, dim_count, &mut multiplier)?;
    let scale_time = quotient.scale(Axis::Time, dim_time, &mut multiplier)?.unsigned_abs();
    let units =
        Units { dim_space, dim_time, dim_count, scale_space, scale_time, scale_count, extra };
    Ok(ParsedUnits { units, multiplier })
}

fn error(kind: UnitsErrorKind, range: Range<usize>) -> UnitsError {
    UnitsError { kind, range }
}

struct Quotient {
    dividend: Part,
    divisor: Part,
}

impl Quotient {
    /// The dimension along `axis`, or the error `out_of_bounds` at the place of
    /// its word.
    fn dimension(&self, axis: Axis, out_of_bounds: UnitsErrorKind) -> Result<i8, UnitsError> {
        let (above, below) = (self.dividend.item(axis), self.divisor.item(axis));
        // Both are between -8 and 15.
        let dimension = above.dimension - below.dimension;
        if (-8..=7).contains(&dimension) {
            return Ok(dimension);
        }
        let culprit = if above.dimension == 0 { below } else { above };
        Err(error(out_of_bounds, culprit.range.clone()))
    }

    /// The scale along `axis`, in which the quotient has `dimension`. An axis
    /// on one side of the slash keeps its scale. An axis on both sides gets the
    /// basic scale, and the factor goes into the multiplier.
    fn scale(&self, axis: Axis, dimension: i8, multiplier: &mut f64) -> Result<i8, UnitsError> {
        let (above, below) = (self.dividend.item(axis), self.divisor.item(axis));
        match (above.dimension, below.dimension) {
            (_, 0) if above.dimension != 0 => return Ok(above.scale),
            (0, _) if below.dimension != 0 => return Ok(below.scale),
            _ => {}
        }
        *multiplier *= above.in_basic_units(axis)?.powf(-f64::from(above.dimension));
        *multiplier *= below.in_basic_units(axis)?.powf(f64::from(below.dimension));
        Ok(if axis == Axis::Time && dimension != 0 { SECONDS } else { 0 })
    }
}

/// The basic scale of time. The basic scales of space and count are 0.
const SECONDS: i8 = 3;

/// One axis in one part of the text; all zero if the part does not name the
/// axis.
#[derive(Clone, Default)]
struct Item {
    dimension: i8,
    scale: i8,
    range: Range<usize>,
}

impl Item {
    /// Number of bytes, seconds or events in one unit of this scale.
    fn in_basic_units(&self, axis: Axis) -> Result<f64, UnitsError> {
        const SECONDS_OF: [f64; 6] = [0.000000001, 0.000001, 0.001, 1.0, 60.0, 3600.0];
        match axis {
            Axis::Space => Ok(1024f64.powf(f64::from(self.scale))),
            Axis::Count => Ok(10f64.powf(f64::from(self.scale))),
            // `time-6` and above have no known length.
            Axis::Time => usize::try_from(self.scale)
                .ok()
                .and_then(|scale| SECONDS_OF.get(scale).copied())
                .ok_or_else(|| error(UnitsErrorKind::BaseUnit, self.range.clone())),
        }
    }
}

/// The dividend or the divisor.
struct Part {
    /// Product of all numbers.
    number: f64,
    /// By axis.
    items: [Item; 3],
    extra: Option<(ExtraUnit, Range<usize>)>,
}

impl Default for Part {
    fn default() -> Part {
        Part { number: 1.0, items: Default::default(), extra: None }
    }
}

impl Part {
    fn item(&self, axis: Axis) -> &Item {
        &self.items[axis as usize]
    }

    /// Reads the bytes of `text` in `range`, whose ends are character boundaries.
    fn parse(text: &str, range: Range<usize>, extra_units: ExtraUnits) -> Result<Part, UnitsError> {
        let text = text.get(..range.end).unwrap_or_default();
        let mut part = Part::default();
        let mut at = range.start;
        while let Some(first) = text.as_bytes().get(at).copied() {
            let rest = text.get(at..).unwrap_or_default();
            if is_c_space(first) {
                at += 1;
            } else if matches!(first, b'-' | b'.' | b'0'..=b'9') {
                let (number, length) = leading_number(rest).map_err(|cause| {
                    let length = match cause {
                        NumberError::Missing => word_length(rest),
                        NumberError::Range(length) => length,
                    };
                    error(UnitsErrorKind::Number, at..at + length)
                })?;
                part.number *= number;
                at += length;
            } else if let Some((extra, length)) = leading_extra(rest, extra_units) {
                let range = at..at + length;
                if part.extra.is_some() {
                    return Err(error(UnitsErrorKind::MultipleExtra, range));
                }
                at = range.end;
                part.extra = Some((extra, range));
            } else {
                at += part.base_unit(rest, at)?;
            }
        }
        Ok(part)
    }

    /// Consumes a word of a basic axis and its exponent at the beginning of
    /// `rest`, and returns their length. `at` is the offset of `rest` in the
    /// text.
    fn base_unit(&mut self, rest: &str, at: usize) -> Result<usize, UnitsError> {
        let unknown = |range| error(UnitsErrorKind::BaseUnit, range);
        let Some((axis, scale, length)) = leading_word(rest) else {
            return Err(unknown(at..at + word_length(rest)));
        };
        let item = &mut self.items[axis as usize];
        // After a word with exponent 0, another word of its axis may follow.
        if item.dimension != 0 {
            return Err(unknown(at..at + length));
        }
        let after = rest.get(length..).unwrap_or_default();
        let (dimension, exponent_length) = if after.starts_with('^') {
            leading_exponent(after, -8..=15)
                .ok_or_else(|| unknown(at + length..at + length + 1 + word_length(&after[1..])))?
        } else {
            (1, 0)
        };
        let length = length + exponent_length;
        *item = Item { dimension, scale, range: at..at + length };
        Ok(length)
    }
}

/// True where a word or an exponent may end.
fn at_boundary(rest: &str) -> bool {
    rest.bytes().next().is_none_or(|byte| byte == b'^' || is_c_space(byte))
}

/// Length of the text before the next white space.
fn word_length(rest: &str) -> usize {
    rest.bytes().position(is_c_space).unwrap_or(rest.len())
}

/// The extra unit at the beginning of `rest`, and its length.
fn leading_extra(rest: &str, extra_units: ExtraUnits) -> Option<(ExtraUnit, usize)> {
    if extra_units == ExtraUnits::Unknown {
        return None;
    }
    for (quantity, word) in (1i8..).zip(EXTRA_WORDS) {
        for (unit, (unit_name, _)) in (1u8..).zip(word.units) {
            let mut length = 0;
            let matches = [word.name, " (", unit_name, ")"].into_iter().all(|piece| {
                let start = length;
                length += piece.len();
                rest.get(start..length).is_some_and(|text| text.eq_ignore_ascii_case(piece))
            });
            if matches {
                return Some((ExtraUnit { quantity, unit }, length));
            }
        }
    }
    None
}

/// Axis, scale and length of the basic-axis word at the beginning of `rest`.
fn leading_word(rest: &str) -> Option<(Axis, i8, usize)> {
    if let Some((scale, length)) = leading_count_scale(rest) {
        return Some((Axis::Count, scale, length));
    }
    let length = rest.bytes().position(|byte| byte == b'^' || is_c_space(byte));
    let length = length.unwrap_or(rest.len());
    let text = rest.get(..length)?;
    if let Some(word) = WORDS.iter().find(|word| word.text.eq_ignore_ascii_case(text)) {
        return Some((word.axis, word.scale, length));
    }
    for (axis, prefix) in [(Axis::Space, SPACE_NUMBERED), (Axis::Time, TIME_NUMBERED)] {
        let has_prefix = text.get(..prefix.len()).is_some_and(|t| t.eq_ignore_ascii_case(prefix));
        if !has_prefix {
            continue;
        }
        let scale = small_number(&text[prefix.len()..])?;
        return (0..=LAST_NUMBERED).contains(&scale).then_some((axis, scale, length));
    }
    None
}

/// Scale and length of `count x 10` or `count x 10^N`. A power that is not a
/// scale is left: it is then an exponent of `count x 10`.
fn leading_count_scale(rest: &str) -> Option<(i8, usize)> {
    const TEN: &str = "count x 10";
    let is_ten = rest.get(..TEN.len()).is_some_and(|text| text.eq_ignore_ascii_case(TEN));
    let after = rest.get(TEN.len()..)?;
    if !is_ten || !at_boundary(after) {
        return None;
    }
    match leading_exponent(after, -8..=7) {
        Some((0 | 1, _)) | None => Some((1, TEN.len())),
        Some((scale, length)) => Some((scale, TEN.len() + length)),
    }
}

/// Value and length of the exponent at the beginning of `rest`.
fn leading_exponent(rest: &str, allowed: RangeInclusive<i8>) -> Option<(i8, usize)> {
    let digits = rest.strip_prefix('^')?;
    let length = digits.bytes().position(|byte| byte == b'^' || is_c_space(byte));
    let digits = &digits[..length.unwrap_or(digits.len())];
    let value = small_number(digits)?;
    allowed.contains(&value).then_some((value, 1 + digits.len()))
}

/// An integer in its canonical spelling: no plus sign, no leading zeros.
fn small_number(digits: &str) -> Option<i8> {
    (-8..=LAST_NUMBERED).find(|number| number.to_string() == digits)
}
