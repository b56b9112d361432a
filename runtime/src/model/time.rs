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
    /// Seconds and nanoseconds are subtracted as integers before anything is
    /// rounded, as rates must agree with libpcp's to the last digit.
    pub fn seconds_since(self, earlier: Timestamp) -> f64 {
        let mut sec = self.sec.saturating_sub(earlier.sec);
        let mut nsec = i64::from(self.nsec) - i64::from(earlier.nsec);
        if nsec < 0 {
            nsec += NSEC_PER_SEC;
            sec = sec.saturating_sub(1);
        }
        sec as f64 + nsec as f64 / NSEC_PER_SEC as f64
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
    fn nanoseconds_carry_and_differences_borrow() {
        assert_eq!(Timestamp::new(5, 1_000_000_000), Timestamp { sec: 6, nsec: 0 });
        assert_eq!(Timestamp::new(5, -1), Timestamp { sec: 4, nsec: 999_999_999 });
        let (a, b) = (Timestamp::new(10, 250_000_000), Timestamp::new(8, 750_000_000));
        assert_eq!(a.seconds_since(b), 1.5);
        assert_eq!(b.seconds_since(a), -1.5);
    }
}
