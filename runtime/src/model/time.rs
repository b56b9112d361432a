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
        (sec * i128::from(NSEC_PER_SEC) + nsec) as f64 / NSEC_PER_SEC as f64
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
