//! The plan of a simulated fleet: the number of hosts, how alike they are, and
//! the address of each. Client and fake hosts, in two processes, follow the
//! same plan. `definitions` has the metrics.

use std::net::Ipv4Addr;

/// Instance domains of a host.
pub const DOMAINS: u32 = 6;
/// Instances of each domain, of hosts whose counts are alike.
pub const ALIKE: u32 = 10;
/// Largest number of instances of a domain, if it is drawn.
const MOST: u64 = 64;

/// See above.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of classes of hosts with different metadata.
    pub classes: u32,
    /// True if the number of instances is drawn from 1 to 64, independently for
    /// each host and domain. Otherwise it is [`ALIKE`].
    pub is_drawn: bool,
}

impl Plan {
    /// The plan as arguments of a process.
    pub fn arguments(self) -> [String; 3] {
        [self.hosts.to_string(), self.classes.to_string(), self.is_drawn.to_string()]
    }

    /// Reads the arguments from [`Plan::arguments`].
    pub fn parse(arguments: &[String]) -> Option<Plan> {
        let [hosts, classes, is_drawn] = arguments else { return None };
        let (hosts, classes) = (hosts.parse().ok()?, classes.parse().ok()?);
        Some(Plan { hosts, classes, is_drawn: is_drawn.parse().ok()? })
    }

    /// The class of a host.
    pub fn class(self, host: u32) -> u32 {
        host % self.classes
    }

    /// Number of instances of a domain on a host.
    pub fn instances(self, host: u32, domain: u32) -> u32 {
        if !self.is_drawn {
            return ALIKE;
        }
        let drawn = splitmix(u64::from(host) << 8 | u64::from(domain)) % MOST;
        u32::try_from(drawn + 1).unwrap_or(ALIKE)
    }
}

/// The address of a host.
pub fn address(host: u32) -> Ipv4Addr {
    let [_, a, b, c] = host.to_be_bytes();
    // 127.0.0.x is what others on this machine use.
    Ipv4Addr::new(127, 1 + a, b, c)
}

/// The host at an address.
pub fn host_at(address: Ipv4Addr) -> Option<u32> {
    let [127, a, b, c] = address.octets() else { return None };
    Some(u32::from_be_bytes([0, a.checked_sub(1)?, b, c]))
}

fn splitmix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
