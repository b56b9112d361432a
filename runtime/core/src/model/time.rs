//! Points in time, as in the time stamps of PCP's results.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::calendar;
use super::seconds::seconds;

/// Nanoseconds in a second.
const NSEC_PER_SEC: i64 = 1_000_000_000;

/// Time since the epoch, in seconds and nanoseconds. [`Timestamp::new`] makes
/// `nsec` less than 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub sec: i64,
    /// Nanoseconds within the second.
    pub nsec: u32,
}

impl Timestamp {
    /// The latest time that there is.
    pub const LATEST: Timestamp = Timestamp { sec: i64::MAX, nsec: NSEC_PER_SEC as u32 - 1 };

    /// Builds a time stamp. Nanoseconds beyond a second, which peers and
    /// archives do deliver, are carried into the seconds.
    pub fn new(sec: i64, nsec: i64) -> Timestamp {
        Timestamp {
            sec: sec.saturating_add(nsec.div_euclid(NSEC_PER_SEC)),
            // The remainder is below 10^9 and not negative.
            nsec: nsec.rem_euclid(NSEC_PER_SEC) as u32,
        }
    }

    /// The current time of this machine's clock (`pmtimespecNow(3)`,
    /// `pmtimevalNow(3)`).
    pub fn now() -> Timestamp {
        SystemTime::now().into()
    }

    /// Seconds from `earlier` to `self`. Negative if time went backwards
    /// (`pmtimespecSub(3)`).
    pub fn seconds_since(self, earlier: Timestamp) -> f64 {
        let nsec = i64::from(self.nsec) - i64::from(earlier.nsec);
        seconds(self.sec.saturating_sub(earlier.sec), nsec)
    }

    /// Seconds from `earlier` to `self` as the interval of a rate
    /// (`pmtimespecDec(3)`, then `pmtimespecToReal(3)`). A negative difference
    /// of nanoseconds borrows a second before the sum is rounded, which
    /// sometimes changes the last digit.
    pub fn interval_since(self, earlier: Timestamp) -> f64 {
        let nsec = i64::from(self.nsec) - i64::from(earlier.nsec);
        let sec = self.sec.saturating_sub(earlier.sec);
        if nsec < 0 {
            seconds(sec.saturating_sub(1), nsec + NSEC_PER_SEC)
        } else {
            seconds(sec, nsec)
        }
    }

    /// Seconds since the epoch (`pmtimespecToReal(3)`). The last digit of a
    /// present-day time is worth a quarter of a microsecond.
    pub fn to_seconds(self) -> f64 {
        seconds(self.sec, i64::from(self.nsec))
    }

    /// The point in time `seconds` after the epoch, rounded to the nearest
    /// nanosecond. The earliest or latest time if that is out of range; the
    /// epoch for NaN. `pmtimespecFromReal(3)` differs: it keeps a whole second
    /// of nanoseconds and rounds negative numbers toward zero.
    pub fn from_seconds(seconds: f64) -> Timestamp {
        let whole = seconds.floor();
        let nsec = ((seconds - whole) * NSEC_PER_SEC as f64).round();
        // Conversions saturate. NaN, which remains of an infinity, becomes
        // zero.
        Timestamp::new(whole as i64, nsec as i64)
    }
}

/// The same point in time.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Timestamp {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp::default() + since,
            Err(before) => Timestamp::default() - before.duration(),
        }
    }
}

/// The same point in time.
///
/// # Errors
/// The system's clock does not reach it. The error is the time itself.
impl TryFrom<Timestamp> for SystemTime {
    type Error = Timestamp;

    fn try_from(time: Timestamp) -> Result<SystemTime, Timestamp> {
        let whole = Duration::from_secs(time.sec.unsigned_abs());
        let second = match time.sec {
            0.. => UNIX_EPOCH.checked_add(whole),
            _ => UNIX_EPOCH.checked_sub(whole),
        };
        let nanoseconds = Duration::from_nanos(time.nsec.into());
        second.and_then(|second| second.checked_add(nanoseconds)).ok_or(time)
    }
}

/// A later point in time; the latest one on overflow (`pmtimespecInc(3)`).
impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Duration) -> Timestamp {
        let sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let nsec = i64::from(self.nsec) + i64::from(duration.subsec_nanos());
        Timestamp::new(self.sec.saturating_add(sec), nsec)
    }
}

/// An earlier point in time; the earliest one on overflow (`pmtimespecDec(3)`).
impl Sub<Duration> for Timestamp {
    type Output = Timestamp;

    fn sub(self, duration: Duration) -> Timestamp {
        let sec = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let nsec = i64::from(self.nsec) - i64::from(duration.subsec_nanos());
        Timestamp::new(self.sec.saturating_sub(sec), nsec)
    }
}

/// A point in time that prints as date and time of day in UTC, to the
/// nanosecond: `2026-01-31T23:59:59.123456789Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime(pub Timestamp);

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timestamp { sec, nsec } = self.0;
        let (days, second) = (sec.div_euclid(86_400), sec.rem_euclid(86_400));
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let (year, month, day) = calendar::date(days);
        if !(0..10_000).contains(&year) || nsec >= 1_000_000_000 {
            return write!(
                f,
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nsec:09}Z"
            );
        }
        // Written by hand because exports write a time with every sample.
        let mut text = *b"0000-00-00T00:00:00.000000000Z";
        let parts = [(3, year), (6, month), (9, day), (12, hour), (15, minute), (18, second)];
        for (last, mut number) in parts.into_iter().chain([(28, i64::from(nsec))]) {
            for place in text[..=last].iter_mut().rev() {
                if number == 0 {
                    break;
                }
                *place = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.sec, self.nsec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (sec, expected) in [
            (0, "1970-01-01T00:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.000000001Z"),
            (951_782_399, "2000-02-28T23:59:59.000000001Z"),
            (951_782_400, "2000-02-29T00:00:00.000000001Z"),
            (951_868_800, "2000-03-01T00:00:00.000000001Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000001Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000000001Z"),
            (-62_135_596_800, "0001-01-01T00:00:00.000000001Z"),
        ] {
            assert_eq!(UtcTime(Timestamp { sec, nsec: 1 }).to_string(), expected, "{sec}");
        }
        let last = Timestamp { sec: 253_402_300_799, nsec: 999_999_999 };
        assert_eq!(UtcTime(last).to_string(), "9999-12-31T23:59:59.999999999Z");
        let next = Timestamp { sec: 253_402_300_800, nsec: 0 };
        assert_eq!(UtcTime(next).to_string(), "10000-01-01T00:00:00.000000000Z");
        // Any second that a peer may send.
        for sec in [i64::MIN, i64::MAX] {
            assert!(UtcTime(Timestamp { sec, nsec: 0 }).to_string().ends_with('Z'));
        }
    }

    #[test]
    fn nanoseconds_carry_and_differences_borrow() {
        assert_eq!(Timestamp::new(5, 1_000_000_000), Timestamp { sec: 6, nsec: 0 });
        assert_eq!(Timestamp::new(5, -1), Timestamp { sec: 4, nsec: 999_999_999 });
        let (a, b) = (Timestamp::new(10, 250_000_000), Timestamp::new(8, 750_000_000));
        assert_eq!(a.seconds_since(b), 1.5);
        assert_eq!(b.seconds_since(a), -1.5);
        assert_eq!([a.interval_since(b), b.interval_since(a)], [1.5, -1.5]);
    }

    #[test]
    fn seconds_as_numbers_go_back_and_forth() {
        for (seconds, sec, nsec) in [
            (0.999_999_999_9, 1, 0),
            (-1.5, -2, 500_000_000),
            (1709115330.25, 1_709_115_330, 250_000_000),
            (f64::NAN, 0, 0),
            (f64::INFINITY, i64::MAX, 0),
            (f64::NEG_INFINITY, i64::MIN, 0),
        ] {
            assert_eq!(Timestamp::from_seconds(seconds), Timestamp { sec, nsec }, "{seconds}");
        }
        assert_eq!(Timestamp::new(-2, 500_000_000).to_seconds(), -1.5);
        let half = Duration::from_millis(1500);
        assert_eq!(Timestamp::new(1, 600_000_000) + half, Timestamp::new(3, 100_000_000));
        assert_eq!(Timestamp::new(1, 100_000_000) - half, Timestamp::new(-1, 600_000_000));
        assert_eq!((Timestamp::new(i64::MAX, 0) + Duration::MAX).sec, i64::MAX);
        assert_eq!((Timestamp::new(i64::MIN, 0) - Duration::MAX).sec, i64::MIN);
        assert_eq!(Timestamp::from(UNIX_EPOCH - half), Timestamp::new(-2, 500_000_000));
        assert!(Timestamp::now().sec > 1_700_000_000);
    }
}
