//! Dates in free form: `29 Feb 2024 18:30`, `2024-02-29`, `next week`, `2 hours
//! ago`, `Monday 5 pm EST`.
//!
//! The grammar is the old one of `getdate`, with its peculiarities: `next`
//! means two, a year stands after a time or after `DD Mon`, and each of date,
//! time, zone and weekday may be given once.

use pmderive_core::model::{Timestamp, calendar};

use super::TimeZone;
use super::broken_down::BrokenDown;
use super::date_words::{Token, Unit, Zone, tokens};

/// Reads a text. Missing parts come from `reference`, in its zone. Fractions of
/// seconds are lost. `None` if the text is not a date, or a date before 1970.
pub(super) fn date(text: &str, reference: Timestamp, zone: &TimeZone) -> Option<i64> {
    let local = zone.local(reference);
    let mut date = Date {
        year: local.year,
        month: local.month,
        day: local.day,
        // The offset in winter.
        west: -i64::from(local.utc_offset) / 60 + if local.is_dst { 60 } else { 0 },
        ..Date::default()
    };
    let tokens = tokens(text)?;
    let mut rest = &*tokens;
    while !rest.is_empty() {
        rest = date.item(rest)?;
    }
    date.second(reference, &local, zone)
}

/// The parts of a date read so far.
#[derive(Debug, Default)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// For twelve-hour times: true for the afternoon.
    half: Option<bool>,
    /// Minutes west of UTC, in winter.
    west: i64,
    is_dst: Option<bool>,
    /// The ordinal (`next` is 2) and the day of the week.
    weekday: (i64, i64),
    later_seconds: i64,
    later_months: i64,
    /// The number of times each kind of item was given.
    dates: u32,
    times: u32,
    zones: u32,
    weekdays: u32,
    whole_days: u32,
    has_distance: bool,
}

impl Date {
    /// Consumes the next item and returns the remaining tokens. A number
    /// belongs to the longest item that it can begin.
    fn item<'t>(&mut self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        use Token::{Ago, Dst, Half, Month, Number, Sign, Signed, Weekday};
        match *tokens {
            [Number(hour), Half(half), ..] => {
                self.time(hour, 0, 0, Some(half));
                Some(&tokens[2..])
            }
            [Number(hour), Sign(':'), Number(minute), Sign(':'), Number(second), ..] => {
                self.time(hour, minute, second, None);
                Some(self.after_time(&tokens[5..]))
            }
            [Number(_), Sign(':'), Number(_), Sign(':'), ..] => None,
            [Number(hour), Sign(':'), Number(minute), ..] => {
                self.time(hour, minute, 0, None);
                Some(self.after_time(&tokens[3..]))
            }
            [Number(first), Sign('/'), Number(second), Sign('/'), Number(third), ..] => {
                if first >= 100 {
                    self.date(third, second, Some(first));
                } else {
                    self.date(second, first, Some(third));
                }
                Some(&tokens[5..])
            }
            [Number(_), Sign('/'), Number(_), Sign('/'), ..] => None,
            [Number(month), Sign('/'), Number(day), ..] => {
                self.date(day, month, None);
                Some(&tokens[3..])
            }
            [Number(_), Sign(':' | '/'), ..] => None,
            [Number(ordinal), Weekday(day), ..] => {
                self.weekday(ordinal, day);
                Some(&tokens[2..])
            }
            [Number(year), Signed(month), Signed(day), ..] => {
                self.date(day.checked_neg()?, month.checked_neg()?, Some(year));
                Some(&tokens[3..])
            }
            [Number(_), Signed(_), ..] => None,
            [Number(day), Month(month), Signed(year), ..] => {
                self.date(day, month, Some(year.checked_neg()?));
                Some(&tokens[3..])
            }
            [Number(day), Month(month), Number(year), ..] => {
                self.date(day, month, Some(year));
                Some(&tokens[3..])
            }
            [Number(day), Month(month), ..] => {
                self.date(day, month, None);
                Some(&tokens[2..])
            }
            [Number(count) | Signed(count), Token::Unit(unit), ..] => {
                self.distance(count, unit)?;
                Some(self.after_distance(&tokens[2..]))
            }
            [Token::Unit(unit), ..] => {
                self.distance(1, unit)?;
                Some(self.after_distance(&tokens[1..]))
            }
            [Number(number), ..] => {
                self.number(number);
                Some(&tokens[1..])
            }
            [Month(month), Number(day), Sign(','), Number(year), ..] => {
                self.date(day, month, Some(year));
                Some(&tokens[4..])
            }
            [Month(_), Number(_), Sign(','), ..] => None,
            [Month(month), Number(day), ..] => {
                self.date(day, month, None);
                Some(&tokens[2..])
            }
            [Weekday(day), ref after @ ..] => {
                self.weekday(0, day);
                Some(after.strip_prefix(&[Sign(',')]).unwrap_or(after))
            }
            [Token::Zone(Zone { west, is_dst }), ref after @ ..] => {
                let summer = if is_dst { None } else { after.strip_prefix(&[Dst]) };
                self.zones += 1;
                (self.west, self.is_dst) = (west, Some(is_dst || summer.is_some()));
                Some(summer.unwrap_or(after))
            }
            [Ago | Dst | Half(_) | Month(_) | Sign(_) | Signed(_) | Token::Other, ..] | [] => None,
        }
    }

    fn time(&mut self, hour: i64, minute: i64, second: i64, half: Option<bool>) {
        self.times += 1;
        (self.hour, self.minute, self.second, self.half) = (hour, minute, second, half);
    }

    /// Consumes the half of the day or the distance from UTC that may follow a
    /// time.
    fn after_time<'t>(&mut self, tokens: &'t [Token]) -> &'t [Token] {
        match *tokens {
            [Token::Half(half), ref after @ ..] => {
                self.half = Some(half);
                after
            }
            [Token::Signed(east), ref after @ ..] => {
                self.west = (east / 100).saturating_mul(60).saturating_add(east % 100);
                self.west = self.west.saturating_neg();
                self.is_dst = Some(false);
                after
            }
            _ => tokens,
        }
    }

    fn date(&mut self, day: i64, month: i64, year: Option<i64>) {
        self.dates += 1;
        (self.day, self.month, self.year) = (day, month, year.unwrap_or(self.year));
    }

    fn weekday(&mut self, ordinal: i64, day: i64) {
        self.weekdays += 1;
        self.weekday = (ordinal, day);
    }

    fn distance(&mut self, count: i64, unit: Unit) -> Option<()> {
        let (sum, size) = match unit {
            Unit::Seconds(size) => (&mut self.later_seconds, size),
            Unit::WholeDays(size) => {
                self.whole_days += 1;
                (&mut self.later_seconds, size)
            }
            Unit::Months(size) => (&mut self.later_months, size),
        };
        *sum = sum.checked_add(count.checked_mul(size)?)?;
        self.has_distance = true;
        Some(())
    }

    /// Consumes `ago`, which reverses all distances so far.
    fn after_distance<'t>(&mut self, tokens: &'t [Token]) -> &'t [Token] {
        let Some(after) = tokens.strip_prefix(&[Token::Ago]) else { return tokens };
        self.later_seconds = self.later_seconds.saturating_neg();
        self.later_months = self.later_months.saturating_neg();
        after
    }

    /// Consumes a number alone: the year after a date and time, else `YYYYMMDD`
    /// or `HHMM`.
    fn number(&mut self, number: i64) {
        if self.times > 0 && self.dates > 0 && !self.has_distance {
            self.year = number;
        } else if number > 10_000 {
            self.date(number % 100, number / 100 % 100, Some(number / 10_000));
        } else if number < 100 {
            self.time(number, 0, 0, None);
        } else {
            self.time(number / 100, number % 100, 0, None);
        }
    }

    /// The second since the epoch.
    fn second(&self, reference: Timestamp, local: &BrokenDown, zone: &TimeZone) -> Option<i64> {
        let counts = [self.dates, self.times, self.zones, self.weekdays, self.whole_days];
        if counts.iter().any(|count| *count > 1) {
            return None;
        }
        let is_absolute = self.dates + self.times + self.weekdays + self.whole_days > 0;
        let start = if is_absolute {
            self.absolute(zone)?
        } else if self.has_distance {
            reference.sec
        } else {
            reference.sec - (local.hour * 3600 + local.minute * 60 + local.second)
        };
        let start = start.checked_add(self.later_seconds)?;
        let start = self.months_later(start, zone)?;
        if self.weekdays == 0 || self.dates > 0 {
            return Some(start);
        }
        let (ordinal, weekday) = self.weekday;
        let days = (weekday - hour_and_weekday(zone, start).1).rem_euclid(7);
        let weeks = if ordinal <= 0 { ordinal } else { ordinal - 1 };
        let days = weeks.checked_mul(7)?.checked_add(days)?;
        let later = start.checked_add(days.checked_mul(86_400)?)?;
        same_hour(start, later, zone)
    }

    /// The second of the date and time, at midnight if there is no time.
    fn absolute(&self, zone: &TimeZone) -> Option<i64> {
        let hour = match self.half {
            None => self.hour,
            Some(afternoon) => {
                let hour = Some(self.hour).filter(|hour| (1..=12).contains(hour))? % 12;
                if afternoon { hour + 12 } else { hour }
            }
        };
        let is_time = (0..=23).contains(&hour)
            && (0..=59).contains(&self.minute)
            && (0..=59).contains(&self.second);
        if !is_time {
            return None;
        }
        let of_day = hour * 3600 + self.minute * 60 + self.second;
        clock_second(self.year, self.month, self.day, of_day, self.west, self.is_dst, zone)
    }

    fn months_later(&self, start: i64, zone: &TimeZone) -> Option<i64> {
        if self.later_months == 0 {
            return Some(start);
        }
        let local = zone.local(Timestamp { sec: start, nsec: 0 });
        let months = local.year.checked_mul(12)?.checked_add(local.month - 1)?;
        let months = months.checked_add(self.later_months)?;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let of_day = local.hour * 3600 + local.minute * 60 + local.second;
        let later = clock_second(year, month, local.day, of_day, self.west, None, zone)?;
        same_hour(start, later, zone)
    }
}

/// The second since the epoch of a date and a second of the day, on clocks that
/// are `west` minutes behind UTC in winter. Without a word about summer time,
/// the zone decides. A year has two digits or four.
fn clock_second(
    year: i64,
    month: i64,
    day: i64,
    of_day: i64,
    west: i64,
    is_dst: Option<bool>,
    zone: &TimeZone,
) -> Option<i64> {
    let year = match year.checked_abs()? {
        year @ ..69 => year + 2000,
        year @ 69..100 => year + 1900,
        year => year,
    };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let first = calendar::days(year, month, 1)?;
    let length = calendar::days(year, month + 1, 1)?.checked_sub(first)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    let second = (first + day - 1) * 86_400 + of_day;
    let second = second.checked_add(west.checked_mul(60)?)?;
    let is_dst = is_dst.unwrap_or_else(|| zone.at(second).is_dst);
    Some(if is_dst { second - 3600 } else { second }).filter(|second| *second >= 0)
}

/// Moves `later` so that clocks show the same hour as at `start`, even if
/// summer time begins or ends between the two.
fn same_hour(start: i64, later: i64, zone: &TimeZone) -> Option<i64> {
    // 23 hours counts as next to 0 hours.
    let next_hour = |second| (hour_and_weekday(zone, second).0 + 1) % 24;
    later.checked_add((next_hour(start) - next_hour(later)) * 3600)
}

fn hour_and_weekday(zone: &TimeZone, second: i64) -> (i64, i64) {
    let local = zone.local(Timestamp { sec: second, nsec: 0 });
    (local.hour, local.weekday)
}
