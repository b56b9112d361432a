//! The plan of an invented fleet: the number of hosts, how they differ, the
//! address of each, and which of them are ill. All of it follows from a seed.
//! `law` has the metrics.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use crate::mix::mix;

/// A fleet. [`Plan::default`] is the one that is measured: 10,000 hosts of 20 classes with 100
/// metrics each. 30 of the metrics are over 6 instance domains, with 10 instances on average.
///
/// ```
/// use pmderive_testkit::fleet::{Fate, Plan, Shares};
///
/// let plan = Plan { hosts: 300, shares: Shares { churning: 0.05, ..Shares::NONE }, ..Plan::default() };
/// assert_eq!(plan.name(17), "host00017");
/// assert_eq!(plan.address(17).to_string(), "127.1.0.17");
/// assert_eq!(plan.host_at(plan.address(17)), Some(17));
/// let churning = (0..300).filter(|host| plan.fate(*host) == Fate::Churns).count();
/// assert!((5..30).contains(&churning));
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all draws.
    pub seed: u64,
    /// Number of hosts, at most [`Plan::MOST_HOSTS`].
    pub hosts: u32,
    /// Kinds of hosts, which differ in identifiers and types of their metrics;
    /// at least one.
    pub classes: u32,
    /// Metrics with one value, half of them counters and half of them gauges.
    pub singles: u32,
    /// Instance domains.
    pub domains: u32,
    /// Metrics over each domain.
    pub per_domain: u32,
    /// Gauges with one value whose units depend on the class: byte, Kbyte and sec in
    /// turn.
    pub mixed: u32,
    /// The number of instances of a domain is drawn from here, for each host
    /// and domain by itself.
    pub instances: RangeInclusive<u32>,
    /// The shares of ill hosts.
    pub shares: Shares,
    /// Seconds for which the passing instance of a churning host stays.
    pub churn_seconds: u32,
    /// After this many passing instances the first one comes back.
    pub passing: u32,
}

/// The shares of ill hosts of each kind, from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// See [`Fate::Churns`].
    pub churning: f64,
    /// See [`Fate::Drips`].
    pub dripping: f64,
    /// See [`Fate::IsSilent`].
    pub silent: f64,
    /// See [`Fate::Refuses`].
    pub refusing: f64,
    /// See [`Fate::HasVanished`].
    pub vanished: f64,
}

impl Shares {
    /// All hosts are well.
    pub const NONE: Shares =
        Shares { churning: 0.0, dripping: 0.0, silent: 0.0, refusing: 0.0, vanished: 0.0 };
}

/// The condition of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It answers at once.
    IsWell,
    /// It answers at once, too, but an instance of its first domain changes now and then. See
    /// [`Plan::churn_seconds`].
    Churns,
    /// It answers fetches with a byte in a second.
    Drips,
    /// It accepts connections and sends nothing.
    IsSilent,
    /// It refuses connections.
    Refuses,
    /// An attempt to connect gets no answer.
    HasVanished,
}

impl Fate {
    /// True of a host from which no fetch will ever succeed.
    pub fn is_dead(self) -> bool {
        !matches!(self, Fate::IsWell | Fate::Churns)
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seed: 1,
            hosts: 10_000,
            classes: 20,
            singles: 70,
            domains: 6,
            per_domain: 5,
            mixed: 0,
            instances: 1..=19,
            shares: Shares::NONE,
            churn_seconds: 1,
            passing: 1_000_000,
        }
    }
}

/// The subject of a drawn number.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    Fate,
    Instances,
    Value,
}

impl Plan {
    /// Number of addresses from 127.1.0.0 on.
    pub const MOST_HOSTS: u32 = 255 << 16;

    /// The class of a host.
    pub fn class(&self, host: u32) -> u32 {
        host % self.classes.max(1)
    }

    /// The name of a host: that which pmcd reports, and its label `host`.
    pub fn name(&self, host: u32) -> String {
        format!("host{host:05}")
    }

    /// The labels that a targets file gives a host: 40 hosts are in a rack, and
    /// racks alternate between 4 data centres.
    pub fn labels(&self, host: u32) -> [(&'static str, String); 3] {
        let rack = host / 40;
        let name = self.name(host);
        [("rack", format!("r{rack:03}")), ("dc", format!("dc{}", rack % 4)), ("host", name)]
    }

    /// The address of a host.
    pub fn address(&self, host: u32) -> Ipv4Addr {
        let [_, a, b, c] = host.to_be_bytes();
        // Other programs on this machine use 127.0.0.x.
        Ipv4Addr::new(127, a.saturating_add(1), b, c)
    }

    /// The host at an address.
    pub fn host_at(&self, address: Ipv4Addr) -> Option<u32> {
        let [127, a, b, c] = address.octets() else { return None };
        let host = u32::from_be_bytes([0, a.checked_sub(1)?, b, c]);
        (host < self.hosts).then_some(host)
    }

    /// The condition of a host.
    pub fn fate(&self, host: u32) -> Fate {
        let shares = self.shares;
        let fates = [
            (shares.churning, Fate::Churns),
            (shares.dripping, Fate::Drips),
            (shares.silent, Fate::IsSilent),
            (shares.refusing, Fate::Refuses),
            (shares.vanished, Fate::HasVanished),
        ];
        let drawn = self.draw(Draw::Fate, &[host.into()]);
        let mut drawn = (drawn >> 11) as f64 / (1u64 << 53) as f64;
        for (share, fate) in fates {
            if drawn < share {
                return fate;
            }
            drawn -= share;
        }
        Fate::IsWell
    }

    /// Number of permanent instances of a domain on a host.
    pub fn instance_count(&self, host: u32, domain: u32) -> u32 {
        let (least, most) = (*self.instances.start(), *self.instances.end());
        let drawn = self.draw(Draw::Instances, &[host.into(), domain.into()]);
        let span = u64::from(most.saturating_sub(least)) + 1;
        // The result is below the span, which has about 32 bits.
        least.saturating_add((drawn % span) as u32)
    }

    pub(super) fn draw(&self, what: Draw, about: &[u64]) -> u64 {
        mix(&[self.seed, what as u64, mix(about)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws for one thing tell nothing of those for another.
    #[test]
    fn draws_are_spread_and_independent() {
        let half = Shares { churning: 0.25, vanished: 0.25, ..Shares::NONE };
        let plan = Plan { hosts: 4_000, shares: half, instances: 1..=4, ..Plan::default() };
        let mut seen = std::collections::BTreeMap::new();
        for host in 0..plan.hosts {
            let key = (
                plan.fate(host).is_dead(),
                plan.instance_count(host, 0),
                plan.instance_count(host, 1),
            );
            *seen.entry(key).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 2 * 4 * 4);
        for ((is_dead, ..), count) in seen {
            let mean = if is_dead { 62 } else { 187 };
            assert!((mean / 2..mean * 2).contains(&count), "{count}");
        }
        let other = Plan { seed: 2, ..plan.clone() };
        assert!((0..4_000).any(|host| plan.fate(host) != other.fate(host)));
    }

    #[test]
    fn addresses_are_those_of_the_hosts_and_no_others() {
        let plan = Plan { hosts: Plan::MOST_HOSTS, ..Plan::default() };
        for host in [0, 255, 256, 65_535, 65_536, Plan::MOST_HOSTS - 1] {
            assert_eq!(plan.host_at(plan.address(host)), Some(host));
        }
        for address in [[127, 0, 0, 1], [126, 1, 0, 0], [128, 1, 0, 0]] {
            assert_eq!(plan.host_at(address.into()), None);
        }
        let few = Plan { hosts: 3, ..plan };
        assert_eq!(few.host_at(few.address(3)), None);
    }
}
