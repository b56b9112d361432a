//! Points in time as options write them: after a start, before an end, or as a
//! date.
//!
//! ```text
//!   5min  +5min        after the start
//!   -5min              before the end, if there is one
//!   @10:30  @Feb 29    ctime_form: in the order of ctime(3)
//!   2024-02-29T10:30Z  rfc_3339
//!   2024-02-29         date_form, also what the others do not understand
//! ```

use pmderive_core::model::{Timestamp, parse_interval, trim_c_space};

use super::TimeZone;
use super::ctime_form::{DateParts, Fault, UNEXPECTED};
use super::date_form;
use super::date_words::UNITS;

/// The times and the zone that a text may refer to.
pub(super) struct Reference<'z> {
    pub start: Timestamp,
    /// `None` if there is no end.
    pub end: Option<Timestamp>,
    pub now: Timestamp,
    pub zone: &'z TimeZone,
    /// See [`super::WindowSpec::as_libpcp`].
    pub as_libpcp: bool,
}

/// Nanoseconds in a second.
const SECOND: u32 = 1_000_000_000;

/// A text that is not a point in time: the part that was read, and the fault in
/// it.
pub(super) type TimeFault = (String, Fault);

impl Reference<'_> {
    /// Reads a point in time.
    ///
    /// # Errors
    /// The text is not a point in time. The fault is that of the first reading,
    /// because the free form does not say where it fails.
    pub fn parse(&self, text: &str) -> Result<Timestamp, TimeFault> {
        let text = trim_c_space(text);
        if !self.as_libpcp
            && let Some(time) = self.rfc_3339(text.strip_prefix('@').unwrap_or(text))
        {
            return Ok(time);
        }
        let (rest, fault) = if let Some(rest) = text.strip_prefix('@') {
            let read = DateParts::parse(rest, self.as_libpcp)
                .and_then(|parts| parts.time(self.start, self.zone).ok_or((0, UNEXPECTED)));
            match read {
                Ok(time) => return Ok(time),
                Err(fault) => (rest, fault),
            }
        } else {
            let before_end = self.end.and_then(|end| Some((text.strip_prefix('-')?, end)));
            let (rest, from, sign) = match before_end {
                Some((rest, end)) => (rest, end, -1),
                None => (text.strip_prefix('+').unwrap_or(text), self.start, 1),
            };
            match parse_interval(rest) {
                Ok(interval) => {
                    // An interval's nanoseconds do not exceed those of 600
                    // years.
                    let nsec = i64::from(interval.subsec_nanos()) * sign;
                    let sec = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX);
                    let sec = from.sec.saturating_add(sec.saturating_mul(sign));
                    let nsec = i64::from(from.nsec) + nsec;
                    return Ok(match self.as_libpcp && nsec == i64::from(SECOND) {
                        true => Timestamp { sec, nsec: SECOND },
                        false => Timestamp::new(sec, nsec),
                    });
                }
                Err(error) => (rest, (error.offset, error.problem)),
            }
        };
        self.free(rest).ok_or_else(|| (rest.to_owned(), fault))
    }

    /// Reads a date and a time of RFC 3339, in the zone if it has no offset of its own.
    fn rfc_3339(&self, text: &str) -> Option<Timestamp> {
        let text = text.trim();
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            let nsec = i64::from(time.subsec_nanosecond());
            return Some(Timestamp::new(time.as_second(), nsec));
        }
        // Other texts with a date are in the free form, too.
        let date: jiff::civil::DateTime = text.parse().ok().filter(|_| text.contains(':'))?;
        DateParts::from(date).time(self.start, self.zone)
    }

    /// Reads a date in free form.
    fn free(&self, text: &str) -> Option<Timestamp> {
        let text = trim_c_space(text);
        let text = text.strip_prefix('@').unwrap_or(text);
        let lower = text.to_ascii_lowercase();
        // A unit behind a blank makes it relative to start or end.
        let has_unit = |(word, _): &(&str, _)| lower.trim_start().contains(&format!(" {word}"));
        let is_distance = UNITS.iter().any(has_unit);
        let is_past =
            lower.contains("last") || lower.contains("ago") || lower.trim_start().starts_with('-');
        let reference = match self.end {
            _ if !is_distance => self.now,
            Some(end) if is_past => end,
            _ => self.start,
        };
        let sec = date_form::date(text, reference, self.zone)?;
        Some(Timestamp { sec, nsec: 0 })
    }
}
