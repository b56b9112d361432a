//! Dates in the order of ctime(3). Every part may be missing: `[Www] [Mmm] [DD]
//! [HH[:MM[:SS[.f]]]] [am|pm] [YYYY]`.

use pmderive_core::model::{Timestamp, leading_number, trim_c_space};

use super::TimeZone;
use super::broken_down::{MONTHS, WEEKDAYS};

/// The parts of a date that were given or that follow from given ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DateParts {
    year: Option<i64>,
    /// 1 to 12.
    month: Option<i64>,
    /// 0 to 31.
    day: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    nanosecond: u32,
}

/// The place in bytes where a text stops being a date of this form, and why.
pub(super) type Fault = (usize, &'static str);

pub(super) const UNEXPECTED: &str = "unexpected value";
const MORE: &str = "more information expected";

const HALVES: &[&str] = &["am", "pm"];

/// The unread rest of a text.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - trim_c_space(self.rest()).len();
    }

    /// Consumes one of the words, in upper or lower case. Only its first three letters
    /// count.
    fn word(&mut self, words: &[&str]) -> Option<usize> {
        self.skip_space();
        let rest = self.rest();
        let length = rest.bytes().take(3).take_while(u8::is_ascii_alphabetic).count();
        let found = words.iter().position(|word| rest[..length].eq_ignore_ascii_case(word))?;
        self.at += length;
        Some(found)
    }

    fn sign(&mut self, sign: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(sign);
        self.at += usize::from(found);
        found
    }

    fn integer(&mut self, limits: std::ops::RangeInclusive<i64>) -> Option<i64> {
        self.skip_space();
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['+', '-']));
        let length = sign + rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let value = rest[..length].parse().ok().filter(|value| limits.contains(value))?;
        self.at += length;
        Some(value)
    }

    fn number(&mut self, limits: std::ops::RangeInclusive<f64>) -> Option<f64> {
        self.skip_space();
        let (value, length) = leading_number(self.rest()).ok()?;
        if !limits.contains(&value) {
            return None;
        }
        self.at += length;
        Some(value)
    }
}

impl DateParts {
    /// Reads a text. Fractions of a second are cut as by libpcp, or nearest to the written number.
    ///
    /// # Errors
    /// The text contains something else, or too little.
    pub fn parse(text: &str, as_libpcp: bool) -> Result<DateParts, Fault> {
        let mut rest = Scanner { text, at: 0 };
        let mut parts = DateParts::default();
        let weekday = rest.word(&WEEKDAYS);
        parts.month = rest.word(&MONTHS).and_then(|index| i64::try_from(index + 1).ok());
        parts.day = rest.integer(0..=31);
        parts.hour = rest.integer(0..=23);
        if parts.day == Some(0) && parts.hour.is_some() {
            parts.day = None;
        }
        // A single number is an hour if it can be one, else a day.
        let is_hour = parts.day.is_some_and(|day| day <= 23)
            && (parts.month.is_none() || rest.rest().starts_with(':'));
        if parts.hour.is_none() && is_hour {
            parts.hour = parts.day.take();
        }
        if rest.sign(':') {
            parts.hour = parts.hour.or(Some(0));
            parts.minute = rest.integer(0..=59).or(Some(0));
            if rest.sign(':')
                && let Some(seconds) = rest.number(0.0..=61.0)
            {
                // The number is small and not negative. A fraction that rounds to a
                // second stays below it.
                let nanoseconds = seconds.fract() * 1e9;
                parts.second = Some(seconds.trunc() as i64);
                parts.nanosecond = match as_libpcp {
                    true => nanoseconds as u32,
                    false => (nanoseconds.round() as u32).min(999_999_999),
                };
            }
        }
        let before = rest.at;
        if let Some(half) = rest.word(HALVES) {
            match (half, parts.hour) {
                (0, Some(12)) => parts.hour = Some(0),
                (1, Some(hour @ 0..12)) => parts.hour = Some(hour + 12),
                (_, Some(0..=12)) => {}
                _ => rest.at = before,
            }
        }
        parts.year = rest.integer(1900..=9999);
        rest.skip_space();
        if !rest.rest().is_empty() {
            return Err((rest.at, UNEXPECTED));
        }
        let has_date = parts.year.is_some() || parts.month.is_some() || parts.day.is_some();
        let is_lone_hour = parts.hour.is_some() && parts.minute.is_none() && !has_date;
        if weekday.is_some() && parts.month.is_none() && parts.day.is_none() || is_lone_hour {
            return Err((rest.at, MORE));
        }
        parts.fill();
        Ok(parts)
    }

    /// Sets each missing part after a given one to its least value.
    fn fill(&mut self) {
        let mut given = self.year.is_some();
        for (part, least) in [
            (&mut self.month, 1),
            (&mut self.day, 1),
            (&mut self.hour, 0),
            (&mut self.minute, 0),
            (&mut self.second, 0),
        ] {
            given |= part.is_some();
            if given {
                part.get_or_insert(least);
            }
        }
    }

    /// The time in a zone. Missing parts before the first given part come from
    /// `reference`. If the first given part is less than that of `reference`,
    /// the date moves on by one of the next larger unit: an earlier hour means
    /// the next day.
    pub fn time(&self, reference: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = zone.local(reference);
        let first = if let Some(year) = self.year {
            date.year = year;
            Part::Year
        } else if let Some(month) = self.month {
            date.year += i64::from(month < date.month);
            Part::Month
        } else if let Some(day) = self.day {
            date.month += i64::from(day < date.day);
            Part::Day
        } else if let Some(hour) = self.hour {
            date.day += i64::from(hour < date.hour);
            Part::Hour
        } else {
            Part::Nothing
        };
        if first <= Part::Month {
            date.month = self.month?;
        }
        if first <= Part::Day {
            date.day = self.day?;
        }
        if first <= Part::Hour {
            (date.hour, date.minute, date.second) = (self.hour?, self.minute?, self.second?);
        }
        let nsec = if first == Part::Nothing { reference.nsec } else { self.nanosecond };
        Some(Timestamp { sec: date.second_in(zone, None)?, nsec })
    }
}

/// All parts are given.
impl From<jiff::civil::DateTime> for DateParts {
    fn from(date: jiff::civil::DateTime) -> DateParts {
        DateParts {
            year: Some(date.year().into()),
            month: Some(date.month().into()),
            day: Some(date.day().into()),
            hour: Some(date.hour().into()),
            minute: Some(date.minute().into()),
            second: Some(date.second().into()),
            nanosecond: date.subsec_nanosecond().unsigned_abs(),
        }
    }
}

/// The first part that was given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Year,
    Month,
    Day,
    Hour,
    Nothing,
}
