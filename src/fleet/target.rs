//! A target: one host of the fleet, as the files of targets and the configuration
//! describe it. This module does not know whether the host answers.

use pmderive_runtime::context::HostSpec;

use super::labels::Labels;
use super::slot::hash_of;

/// Virtual shards of a fleet. Sums across hosts run shard by shard, so any number of
/// processes gives the same bits.
pub const SHARDS: usize = 256;

/// One host to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it is called everywhere: the specification as it was written, with
    /// the port if it names none, and without a password.
    pub name: Box<str>,
    /// How to reach it.
    pub spec: HostSpec,
    /// Labels that the files give it.
    pub labels: Labels,
    /// Position of its group in the configuration.
    pub group: usize,
    /// A hash of the name, the same everywhere and at all times.
    pub hash: u64,
}

impl Target {
    /// A target of a group.
    pub fn new(name: impl Into<Box<str>>, spec: HostSpec, labels: Labels, group: usize) -> Target {
        let name = name.into();
        Target { hash: hash_of(&name), name, spec, labels, group }
    }

    /// The name of the fleet itself.
    pub const FLEET: &str = "fleet";

    /// The fleet itself, as the target that values across its hosts are of.
    pub fn fleet() -> Target {
        Target::new(Target::FLEET, HostSpec::local(), Labels::default(), usize::MAX)
    }

    /// True for the fleet itself.
    pub fn is_fleet(&self) -> bool {
        self.group == usize::MAX
    }

    /// The virtual shard that it is in, below [`SHARDS`].
    pub fn shard(&self) -> u8 {
        (self.hash >> 56) as u8
    }
}
