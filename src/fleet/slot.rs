//! Slots: an interval divides time into them, and each host is due once in each. The caller
//! reads the clock.
//!
//! Slot `k` of an interval `I` is `[kI, (k+1)I)` of the engine's clock, counted from 1970. A
//! host is due at the same moment of every slot, by a hash of its name. So the hosts of a fleet
//! are spread evenly, and a restart changes nothing.

use std::time::Duration;

use pmderive_runtime::model::Timestamp;

/// A time of the engine's clock: nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Number of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

/// The moments at which one host is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    interval: u64,
    offset: u64,
}

impl Nanos {
    /// The time after a duration.
    pub fn after(self, later: Duration) -> Nanos {
        Nanos(self.0.saturating_add(nanoseconds(later)))
    }

    /// The duration since `earlier`; zero if that is later.
    pub fn since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Milliseconds since 1970, the time stamps of Prometheus.
    pub fn milliseconds(self) -> i64 {
        // Nanoseconds in 64 bits last some 584 years.
        (self.0 / 1_000_000) as i64
    }
}

impl From<Nanos> for Timestamp {
    fn from(time: Nanos) -> Timestamp {
        // Nanoseconds in 64 bits last some 584 years.
        Timestamp::new((time.0 / 1_000_000_000) as i64, (time.0 % 1_000_000_000) as i64)
    }
}

impl From<Timestamp> for Nanos {
    /// Earlier times than 1970 become 1970.
    fn from(time: Timestamp) -> Nanos {
        let seconds = u64::try_from(time.sec).unwrap_or(0);
        Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(u64::from(time.nsec)))
    }
}

impl Slot {
    /// The end of the slot, for an interval.
    pub fn end(self, interval: Duration) -> Nanos {
        Nanos(self.0.saturating_add(1).saturating_mul(nanoseconds(interval)))
    }
}

impl Due {
    /// The moments of a host in an interval, which must not be zero.
    pub fn new(interval: Duration, host_hash: u64) -> Due {
        let interval = nanoseconds(interval).max(1);
        // The hash divided by all hashes, as a part of the interval.
        let offset = (u128::from(host_hash) * u128::from(interval)) >> 64;
        Due { interval, offset: offset as u64 }
    }

    /// The slot of a time.
    pub fn slot_of(self, time: Nanos) -> Slot {
        Slot(time.0 / self.interval)
    }

    /// The moment at which the host is due in a slot.
    pub fn at(self, slot: Slot) -> Nanos {
        Nanos(slot.0.saturating_mul(self.interval).saturating_add(self.offset))
    }

    /// The first slot with a moment at a time or later.
    pub fn next(self, time: Nanos) -> Slot {
        let slot = self.slot_of(time);
        if self.at(slot) >= time { slot } else { Slot(slot.0 + 1) }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A hash of a name that is the same on all machines and at all times. It is FNV-1a, with its
/// bits mixed as in splitmix64, since the highest bits decide.
pub fn hash_of(name: &str) -> u64 {
    let mut bits = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_due_once_in_every_slot() {
        for (hash, offset) in [(0, 0), (1 << 63, 5), (u64::MAX, 9)] {
            let due = Due::new(Duration::from_nanos(10), hash);
            assert_eq!(due.at(Slot(7)), Nanos(70 + offset));
            assert_eq!(due.next(Nanos(70)), Slot(7));
            assert_eq!(due.next(Nanos(70 + offset)), Slot(7));
            assert_eq!(due.next(Nanos(71 + offset)), Slot(8));
            assert_eq!(due.slot_of(due.at(Slot(7))), Slot(7));
        }
    }

    #[test]
    fn hosts_are_spread_evenly() {
        let mut parts = [0; 10];
        for host in 0..10_000 {
            let due = Due::new(Duration::from_secs(10), hash_of(&format!("web{host}:44321")));
            parts[(due.at(Slot(0)).0 / 1_000_000_000) as usize] += 1;
        }
        assert!(parts.iter().all(|part| (900..1100).contains(part)), "{parts:?}");
        assert_eq!(hash_of("web1:44321"), hash_of("web1:44321"));
    }
}
