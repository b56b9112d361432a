//! Metric identifiers.

use std::fmt;
use std::str::FromStr;

use super::TextFault;
use super::dotted::dotted;

/// Identifies a metric within one source: one flag bit, domain (9 bits),
/// cluster (12 bits) and item (10 bits).
///
/// It corresponds to `pmID` of PMAPI(3) and is printed as `pmIDStr(3)` does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pmid(pub u32);

impl Pmid {
    /// The identifier that means "no such metric" on the wire (`PM_ID_NULL`).
    pub const NULL: Pmid = Pmid(0xffff_ffff);

    /// Builds an identifier from its parts (`pmID_build(3)`); bits beyond a
    /// field's width are dropped.
    pub const fn new(domain: u32, cluster: u32, item: u32) -> Pmid {
        Pmid((domain & 0x1ff) << 22 | (cluster & 0xfff) << 10 | (item & 0x3ff))
    }

    /// Number of the agent's domain, 0 to 511 (`pmID_domain(3)`).
    pub const fn domain(self) -> u32 {
        self.0 >> 22 & 0x1ff
    }

    /// Number of the cluster within the domain, 0 to 4095 (`pmID_cluster(3)`).
    pub const fn cluster(self) -> u32 {
        self.0 >> 10 & 0xfff
    }

    /// Number of the item within the cluster, 0 to 1023 (`pmID_item(3)`).
    pub const fn item(self) -> u32 {
        self.0 & 0x3ff
    }

    /// True for an identifier of a derived metric that is not logged.
    pub const fn is_derived(self) -> bool {
        self.domain() == 511 && self.cluster() & 2048 == 0 && self.item() != 0
    }
}

/// Reads `DOMAIN.CLUSTER.ITEM`, decimal numbers within 511.4095.1023.
impl FromStr for Pmid {
    type Err = TextFault;

    fn from_str(text: &str) -> Result<Pmid, TextFault> {
        let [domain, cluster, item] = dotted(text, [0x1ff, 0xfff, 0x3ff])?;
        Ok(Pmid::new(domain, cluster, item))
    }
}

/// As it is printed: `Pmid(60.0.4)`. With the flag bit, which is not printed, the number.
impl fmt::Debug for Pmid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 >> 31 == 1 && *self != Pmid::NULL {
            true => write!(f, "Pmid({:#x})", self.0),
            false => write!(f, "Pmid({self})"),
        }
    }
}

impl fmt::Display for Pmid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Pmid::NULL {
            return f.write_str("PM_ID_NULL");
        }
        if self.domain() == 511 && self.item() == 0 {
            // The root of a dynamic subtree. The cluster is the number of the
            // agent's domain.
            return write!(f, "{}.*.*", self.cluster());
        }
        write!(f, "{}.{}.{}", self.domain(), self.cluster(), self.item())
    }
}
