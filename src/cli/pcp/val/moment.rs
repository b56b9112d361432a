//! Times in front of values.

use pmderive_runtime::model::Timestamp;
use pmderive_runtime::time::TimeZone;

/// Precision of times.
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
    /// Width of a time, in characters.
    pub fn width(self) -> usize {
        match self {
            Detail::Clock => 12,
            Detail::Microseconds => 31,
            Detail::Nanoseconds => 34,
        }
    }

    /// Formats a time.
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

/// Writes times in front of values. It keeps the text up to the second for further times in it.
#[derive(Default)]
pub struct Clock {
    second: Option<i64>,
    /// Time up to the second, with the point behind it.
    text: Vec<u8>,
}

impl Clock {
    /// Appends a time. The zone must be the same in every call.
    pub fn write(&mut self, out: &mut Vec<u8>, detail: Detail, time: Timestamp, zone: &TimeZone) {
        let millis = time.nsec / 1_000_000;
        if detail != Detail::Clock || millis > 999 {
            out.extend_from_slice(detail.of(time, zone).as_bytes());
            return;
        }
        if self.second != Some(time.sec) {
            self.text = zone.clock_millis(time).into_bytes();
            self.text.truncate(self.text.len() - 3);
            self.second = Some(time.sec);
        }
        out.extend_from_slice(&self.text);
        let digit = |unit: u32| b'0' + (millis / unit % 10) as u8;
        out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_zone_in_any_order() {
        let zone = TimeZone::parse("CET-1CEST,M3.5.0,M10.5.0/3");
        let mut clock = Clock::default();
        // Around the end of summer time.
        for second in [0, 1, 2, 59, 3599, 3600, 1, 86_400] {
            for nsec in [0, 7_000_000, 999_999_999, 1_000_000_000] {
                let time = Timestamp { sec: 1_698_537_600 + second, nsec };
                let mut out = Vec::new();
                clock.write(&mut out, Detail::Clock, time, &zone);
                assert_eq!(String::from_utf8(out).as_deref(), Ok(&*zone.clock_millis(time)));
            }
        }
    }
}
