//! A target: one host of the fleet, as the files of targets and the configuration describe it.

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::positions;

use crate::fleet::labels::Labels;
use crate::fleet::slot::hash_of;

/// Virtual shards of a fleet. Sums across hosts run shard by shard, so any number of
/// processes gives the same bits.
pub const SHARDS: usize = 256;

positions! {
    /// Position of a group of hosts in the configuration and in its plan.
    pub GroupId;
}

/// The group of the target that is the fleet itself.
const NO_GROUP: GroupId = GroupId(u32::MAX);

/// One host to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name everywhere: the specification as written, with a port and without a password.
    pub name: Box<str>,
    /// Its address and way of connection.
    pub spec: HostSpec,
    /// Labels from the files.
    pub labels: Labels,
    /// Its group.
    pub group: GroupId,
    /// A hash of the name, the same on all machines and at all times.
    pub hash: u64,
}

impl Target {
    /// A target of a group.
    pub fn new(
        name: impl Into<Box<str>>,
        spec: HostSpec,
        labels: Labels,
        group: GroupId,
    ) -> Target {
        let name = name.into();
        Target { hash: hash_of(&name), name, spec, labels, group }
    }

    /// The name of the fleet itself.
    pub const FLEET: &str = "fleet";

    /// The fleet itself, as the target of values across its hosts.
    pub fn fleet() -> Target {
        Target::new(Target::FLEET, HostSpec::local(), Labels::default(), NO_GROUP)
    }

    /// True for the fleet itself.
    pub fn is_fleet(&self) -> bool {
        self.group == NO_GROUP
    }

    /// Its virtual shard, below [`SHARDS`].
    pub fn shard(&self) -> u8 {
        (self.hash >> 56) as u8
    }
}
