//! Date and time of day, and the way back to seconds since the epoch.

use std::fmt;

use pmderive_core::model::{Timestamp, calendar};

use super::zone::TimeZone;

/// Date and time of day in some zone (`pmLocaltime(3)`, `struct tm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenDown {
    /// The full year, such as 2024.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// Day of the month, 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
    /// Nanoseconds within the second.
    pub nanosecond: u32,
    /// 0 for Sunday.
    pub weekday: i64,
    /// 0 to 365.
    pub day_of_year: i64,
    /// True in summer time.
    pub is_dst: bool,
    /// Seconds east of UTC.
    pub utc_offset: i32,
}

pub(super) const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
pub(super) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl BrokenDown {
    /// The date and time on clocks that are `utc_offset` seconds ahead of UTC.
    pub(super) fn new(time: Timestamp, utc_offset: i32, is_dst: bool) -> BrokenDown {
        let local = time.sec.saturating_add(i64::from(utc_offset));
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = calendar::date(days);
        let first = calendar::days(year, 1, 1).unwrap_or(days);
        BrokenDown {
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            nanosecond: time.nsec,
            weekday: calendar::weekday(days),
            day_of_year: days - first,
            is_dst,
            utc_offset,
        }
    }

    /// The second since the epoch at which clocks in `zone` show this date and
    /// time (mktime(3)). Fields beyond their limits carry over: the 32nd of
    /// January is the 1st of February. Weekday, day of the year and offset are
    /// ignored.
    ///
    /// A time that clocks skip in spring counts by the offset before the
    /// change. A time that clocks show twice in autumn is the first occurrence
    /// in zones west of Greenwich, the second in others, unless `is_dst`
    /// chooses. If `is_dst` disagrees with the zone at that time of the year,
    /// the offset of the nearest time where it agrees is used.
    ///
    /// `None` if the second does not fit into 64 bits.
    pub fn second_in(&self, zone: &TimeZone, is_dst: Option<bool>) -> Option<i64> {
        let clock = self.as_if_utc()?;
        let found = match search(zone, clock, is_dst)? {
            SearchResult::Shown(second) => second,
            SearchResult::Skipped(second) => return Some(second),
        };
        let Some(wanted) = is_dst.filter(|wanted| zone.at(found).is_dst != *wanted) else {
            return Some(found);
        };
        // Searches in steps shorter than any summer time, up to the longest
        // time without one.
        const STRIDE: i64 = 601_200;
        const FURTHEST: i64 = 268_828_200;
        let distances = (1..=FURTHEST / STRIDE).flat_map(|n| [-n * STRIDE, n * STRIDE]);
        for distance in distances {
            let near = zone.at(found.checked_add(distance)?);
            if near.is_dst == wanted {
                return clock.checked_sub(i64::from(near.offset));
            }
        }
        Some(found)
    }

    /// Seconds since the epoch if the clocks showed UTC.
    fn as_if_utc(&self) -> Option<i64> {
        let seconds = calendar::days(self.year, self.month, self.day)?.checked_mul(86_400)?;
        let seconds = seconds.checked_add(self.hour.checked_mul(3600)?)?;
        seconds.checked_add(self.minute.checked_mul(60)?)?.checked_add(self.second)
    }
}

/// The result of a search, as a second since the epoch.
enum SearchResult {
    /// Clocks show the date and time at this second.
    Shown(i64),
    /// Clocks skip the date and time; this second stands for it.
    Skipped(i64),
}

/// Searches for the second at which clocks show `clock`. The search starts
/// where UTC clocks show it, as the C library's first search does.
fn search(zone: &TimeZone, clock: i64, is_dst: Option<bool>) -> Option<SearchResult> {
    let mut guess = clock;
    let (mut last_but_one, mut last, mut was_dst) = (clock, clock, false);
    // Usually three steps are enough. A few more are needed where the offset
    // changes twice in short time.
    for _ in 0..8 {
        let period = zone.at(guess);
        let next = clock.checked_sub(i64::from(period.offset))?;
        if next == guess {
            return Some(SearchResult::Shown(guess));
        }
        // The guess swings between two seconds: the clocks never show this
        // time.
        let is_skipped = guess == last_but_one && guess != last;
        let is_settled = match is_dst {
            None => !was_dst || period.is_dst,
            Some(wanted) => wanted != period.is_dst,
        };
        if is_skipped && is_settled {
            return Some(SearchResult::Skipped(guess));
        }
        (last_but_one, last, was_dst) = (last, guess, period.is_dst);
        guess = next;
    }
    Some(SearchResult::Skipped(guess))
}

/// The form of `asctime(3)` without the newline: `Wed Feb 28 10:15:30 2024`.
impl fmt::Display for BrokenDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |names: &[&'static str], index: i64| {
            usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or("???")
        };
        let (weekday, month) = (name(&WEEKDAYS, self.weekday), name(&MONTHS, self.month - 1));
        let BrokenDown { year, day, hour, minute, second, .. } = self;
        write!(f, "{weekday} {month}{day:3} {hour:02}:{minute:02}:{second:02} {year}")
    }
}
