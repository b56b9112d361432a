//! Times in front of values.

use pmderive_runtime::model::Timestamp;
use pmderive_runtime::time::TimeZone;

/// How exactly times are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Time of day to the millisecond.
    Clock,
    /// Date and time of day to the microsecond.
    Microseconds,
    /// Date and time of day to the nanosecond.
    Nanoseconds,
}

impl Detail {
    /// Characters that a time takes.
    pub fn width(self) -> usize {
        match self {
            Detail::Clock => 12,
            Detail::Microseconds => 31,
            Detail::Nanoseconds => 34,
        }
    }

    /// A time as text.
    pub fn of(self, time: Timestamp, zone: &TimeZone) -> String {
        let (second, fraction) = match self {
            Detail::Clock => return zone.clock_millis(time),
            Detail::Microseconds => (zone.ctime(time), format!("{:06}", time.nsec / 1000)),
            Detail::Nanoseconds => (zone.ctime(time), format!("{:09}", time.nsec)),
        };
        match second.rsplit_once(' ') {
            Some((second, year)) => format!("{second}.{fraction} {year}"),
            None => second,
        }
    }
}
