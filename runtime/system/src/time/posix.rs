//! Rules of a time zone as text, in the form of the `TZ` environment variable:
//! `EST5EDT,M3.2.0,M11.1.0`.
//!
//! The text is read as glibc 2.36 reads it, because libpcp's answers are
//! glibc's. glibc is lenient and never fails; text that it does not understand
//! is UTC. Crates for time zones refuse texts that glibc accepts, such as
//! `EST5EDT` without rules.

use std::borrow::Cow;

use pmderive_core::model::calendar;

/// The offset of a zone during some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Period<'z> {
    /// Seconds east of UTC.
    pub offset: i32,
    pub is_dst: bool,
    /// Such as `CET` or `CEST`.
    pub abbreviation: Cow<'z, str>,
}

/// Standard time and summer time, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PosixZone {
    halves: [Half; 2],
}

/// One of the two parts of a year.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Half {
    abbreviation: Box<str>,
    /// Seconds east of UTC.
    offset: i32,
    /// The end of this half. Standard time ends where summer time begins.
    end: Change,
}

/// A day of every year and the second of that day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    day: Date,
    second: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Date {
    /// `Jn`: counted from 1, never the leap day.
    Julian(i64),
    /// `n`: counted from 0, with the leap day.
    OfYear(i64),
    /// `Mm.w.d`: that weekday in week `w` of a month. Week 5 is the last one.
    Weekday { month: i64, week: i64, weekday: i64 },
}

impl Default for Date {
    fn default() -> Date {
        Date::OfYear(0)
    }
}

/// The beginning and end of summer time if the text gives none: those of the
/// USA since 2007.
const USUAL_CHANGES: [Date; 2] = [
    Date::Weekday { month: 3, week: 2, weekday: 0 },
    Date::Weekday { month: 11, week: 1, weekday: 0 },
];

/// The usual time of a change is two o'clock.
const USUAL_SECOND: i32 = 2 * 3600;

impl PosixZone {
    /// Reads a text. A text that is not a zone becomes UTC without a name.
    pub fn parse(text: &str) -> PosixZone {
        let mut zone = PosixZone::default();
        let mut rest = text;
        let Some(name) = abbreviation(&mut rest) else { return zone };
        zone.halves[0].abbreviation = name.into();
        if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-') {
            return zone;
        }
        let Some(offset) = offset(&mut rest) else { return zone };
        zone.halves[0].offset = offset;
        if rest.is_empty() {
            zone.halves[1] = zone.halves[0].clone();
            return zone;
        }
        if let Some(name) = abbreviation(&mut rest) {
            zone.halves[1].abbreviation = name.into();
            zone.halves[1].offset = self::offset(&mut rest).unwrap_or(offset + 3600);
        }
        for (half, usual) in zone.halves.iter_mut().zip(USUAL_CHANGES) {
            let Some(change) = change(&mut rest, usual) else { break };
            half.end = change;
        }
        zone
    }

    /// True if the text began with a zone.
    pub fn is_zone(&self) -> bool {
        !self.halves[1].abbreviation.is_empty()
    }

    /// The period at a second since the epoch.
    pub fn at(&self, second: i64) -> Period<'_> {
        let (year, ..) = calendar::date(second.div_euclid(86_400));
        let [end_of_standard, end_of_summer] = [0, 1].map(|index| {
            let half = &self.halves[index];
            half.end.instant(year).saturating_sub(i64::from(half.offset))
        });
        let is_dst = if end_of_standard > end_of_summer {
            !(end_of_summer..end_of_standard).contains(&second)
        } else {
            (end_of_standard..end_of_summer).contains(&second)
        };
        let half = &self.halves[usize::from(is_dst)];
        Period { offset: half.offset, is_dst, abbreviation: Cow::Borrowed(&half.abbreviation) }
    }
}

impl Change {
    /// The time of the change in a year, in seconds since the epoch on the
    /// zone's own clocks.
    fn instant(self, year: i64) -> i64 {
        let first = calendar::days(year, 1, 1).unwrap_or_default();
        let leap = i64::from(calendar::is_leap_year(year));
        let day = match self.day {
            Date::Julian(day) if day >= 60 => first + day - 1 + leap,
            Date::Julian(day) => first + day - 1,
            Date::OfYear(day) => first + day,
            Date::Weekday { month, week, weekday } => {
                let start = calendar::days(year, month, 1).unwrap_or_default();
                let next = calendar::days(year, month + 1, 1).unwrap_or_default();
                let day = start + (weekday - calendar::weekday(start)).rem_euclid(7);
                let day = day + 7 * (week - 1);
                if day < next { day } else { day - 7 }
            }
        };
        day.saturating_mul(86_400).saturating_add(i64::from(self.second))
    }
}

/// Consumes a name: at least three letters, or letters, digits and signs in
/// `<>`.
fn abbreviation<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let (name, after) = match rest.strip_prefix('<') {
        Some(quoted) => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '-';
            let end = quoted.find(|c| !is_part(c))?;
            (&quoted[..end], quoted[end..].strip_prefix('>')?)
        }
        None => rest.split_at(rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())),
    };
    if name.len() < 3 {
        return None;
    }
    *rest = after;
    Some(name)
}

/// Consumes an offset. The text counts it to the west; the result counts to the
/// east.
fn offset(rest: &mut &str) -> Option<i32> {
    let (sign, after) = match rest.as_bytes().first() {
        Some(b'-') => (1, &rest[1..]),
        Some(b'+') => (-1, &rest[1..]),
        _ => (-1, *rest),
    };
    *rest = after;
    let [hours, minutes, seconds] = clock(rest);
    let hours = hours?.min(24);
    let (minutes, seconds) = (minutes.unwrap_or(0).min(59), seconds.unwrap_or(0).min(59));
    Some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// Consumes a day with its time. An empty text stands for `usual`.
fn change(rest: &mut &str, usual: Date) -> Option<Change> {
    let mut text = rest.strip_prefix(',').unwrap_or(rest);
    let day = match text.as_bytes().first() {
        None => usual,
        Some(b'J') => {
            text = &text[1..];
            Date::Julian(number(&mut text).filter(|day| (1..=365).contains(day))?)
        }
        Some(b'0'..=b'9') => Date::OfYear(number(&mut text).filter(|day| *day <= 365)?),
        Some(b'M') => {
            text = &text[1..];
            let mut field = |limits: std::ops::RangeInclusive<i64>, last: bool| {
                let value = i64::from(short(&mut text)?);
                if !last {
                    text = text.strip_prefix('.')?;
                }
                limits.contains(&value).then_some(value)
            };
            let (month, week) = (field(1..=12, false)?, field(1..=5, false)?);
            Date::Weekday { month, week, weekday: field(0..=6, true)? }
        }
        Some(_) => return None,
    };
    let second = match text.as_bytes().first() {
        None | Some(b',') => USUAL_SECOND,
        Some(b'/') if text.len() > 1 => {
            text = &text[1..];
            let negative = text.strip_prefix('-');
            text = negative.unwrap_or(text);
            let [hours, minutes, seconds] = clock(&mut text);
            let second =
                hours.unwrap_or(2) * 3600 + minutes.unwrap_or(0) * 60 + seconds.unwrap_or(0);
            if negative.is_some() { -second } else { second }
        }
        Some(_) => return None,
    };
    *rest = text;
    Some(Change { day, second })
}

/// Consumes as much of `HH[:MM[:SS]]` as there is. A colon without a number
/// stays.
fn clock(rest: &mut &str) -> [Option<i32>; 3] {
    let mut fields = [None; 3];
    let mut text = *rest;
    for field in &mut fields {
        let Some(value) = short(&mut text) else { break };
        *field = Some(value);
        *rest = text;
        let Some(after) = text.strip_prefix(':') else { break };
        text = after;
    }
    fields
}

/// Consumes a 16-bit number as `scanf` does: blanks and a sign may precede it,
/// and a number that is too large loses its upper bits.
fn short(rest: &mut &str) -> Option<i32> {
    let text = rest.trim_ascii_start();
    let (negative, mut digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = number(&mut digits)?;
    *rest = digits;
    let value = value as u16;
    Some(i32::from(if negative { value.wrapping_neg() } else { value }))
}

/// Consumes digits. A number beyond 64 bits becomes all ones.
fn number(rest: &mut &str) -> Option<i64> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(length);
    if digits.is_empty() {
        return None;
    }
    *rest = after;
    // Only the low bits matter, and only those of small numbers.
    Some(digits.parse::<u64>().map_or(-1, |value| i64::try_from(value).unwrap_or(-1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_every_form() {
        for (text, second, offset, is_dst) in [
            ("EST5EDT", 1_720_000_000, -4 * 3600, true),
            ("EST5EDT", 1_709_115_330, -5 * 3600, false),
            ("EST5EDT4,M3.2.0/2,M11.1.0/2", 1_720_000_000, -4 * 3600, true),
            // The last second before summer time, and the first second of it.
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_711_846_799, 3600, false),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_711_846_800, 7200, true),
            ("EST-11EST-10,87/2:00,297/2:00", 1_720_000_000, 36000, true),
            ("EST-11EST-10,87/2:00,297/2:00", 1_709_115_330, 39600, false),
            ("XXX0YYY,J60,J300", 1_709_251_200 + 7200, 3600, true),
            ("XXX0YYY,J60,J300", 1_709_251_200 + 7199, 0, false),
            ("<+0330>-3:30", 0, 12_600, false),
            ("FOO-24:59:59", 0, 24 * 3600 + 3599, false),
            ("FOO-25:60:60", 0, 24 * 3600 + 59 * 60 + 59, false),
            ("nosuch/zone", 0, 0, false),
            ("", 0, 0, false),
            ("AB5", 0, 0, false),
            ("UTC", 0, 0, false),
            // A change may come days before or after the named day.
            ("WGT3WGST,M3.5.0/-2,M10.5.0/-1", 1_720_000_000, -7200, true),
            ("IST-2IDT,M3.4.4/26,M10.5.0", 1_711_670_399, 7200, false),
        ] {
            let zone = PosixZone::parse(text);
            let period = zone.at(second);
            assert_eq!((period.offset, period.is_dst), (offset, is_dst), "{text} at {second}");
        }
        assert!(PosixZone::parse("EST5").is_zone() && PosixZone::parse("A-B-C1").at(0).offset == 0);
        assert!(!PosixZone::parse("nosuch/zone").is_zone() && !PosixZone::parse("EST").is_zone());
        let zone = PosixZone::parse("CET-1CEST");
        assert_eq!(zone.at(1_720_000_000).abbreviation, "CEST");
        // Any second that a peer may send.
        for second in [i64::MIN, i64::MAX] {
            assert!(zone.at(second).offset > 0);
        }
    }
}
