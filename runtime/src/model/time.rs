//! Points in time as PCP stamps results with them.

use std::fmt;

/// Nanoseconds in a second.
const NSEC_PER_SEC: i64 = 1_000_000_000;

/// Time since the epoch, in seconds and nanoseconds. `nsec` is below 10^9 for
/// every value built by [`Timestamp::new`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds, negative before 1970.
    pub sec: i64,
    /// Nanoseconds within the second.
    pub nsec: u32,
}

impl Timestamp {
    /// Builds a time stamp, carrying nanoseconds beyond a second (peers and
    /// archives deliver such values) into the seconds.
    pub fn new(sec: i64, nsec: i64) -> Timestamp {
        Timestamp {
            sec: sec.saturating_add(nsec.div_euclid(NSEC_PER_SEC)),
            // The remainder is below 10^9 and not negative.
            nsec: nsec.rem_euclid(NSEC_PER_SEC) as u32,
        }
    }

    /// Seconds from `earlier` to `self`; negative when time went backwards.
    ///
    /// Everything up to the division is exact, and rates agree with libpcp's
    /// to the last digit only if the interval is rounded just once.
    pub fn seconds_since(self, earlier: Timestamp) -> f64 {
        let sec = i128::from(self.sec) - i128::from(earlier.sec);
        let nsec = i128::from(self.nsec) - i128::from(earlier.nsec);
        let nsec = sec * i128::from(NSEC_PER_SEC) + nsec;
        // The same number either way; 64 bits, of 292 years, are converted faster.
        let nsec = i64::try_from(nsec).map_or_else(|_| nsec as f64, |nsec| nsec as f64);
        nsec / NSEC_PER_SEC as f64
    }
}

/// A point in time as date and time of day in UTC, to the nanosecond:
/// `2026-01-31T23:59:59.123456789Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime(pub Timestamp);

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timestamp { sec, nsec } = self.0;
        let (days, second) = (sec.div_euclid(86_400), sec.rem_euclid(86_400));
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let (year, month, day) = date(days);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nsec:09}Z")
    }
}

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    // Counted in years that begin with March, so that the leap day is the
    // last of its year, and in eras of 400 years, which all have as many days.
    let since_era_zero = days + 719_468;
    let (era, day) = (since_era_zero.div_euclid(146_097), since_era_zero.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months since March; five of them have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + i64::from(is_next_year), month, day)
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
        // Whatever a peer may say.
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
    }
}
