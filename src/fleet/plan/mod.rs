//! The plan of a fleet, made from a configuration and the files that it names.
//!
//! A plan never changes. A reload makes a new plan, which replaces the old one only if it has
//! no mistake. Making a plan asks no host.

mod exports;
mod load;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::ConnectOptions;
use pmderive_runtime::position::Per;

use super::aggregates::{FleetDefinitions, OperandId};
use super::config::Config;
use super::log::ToldMistakes;
use super::sinks::sink_set::{SinkPlace, SinkSet};
use super::slot::{Due, Nanos, Slot};
use super::targets::target::{GroupId, Target};
use crate::engine::Selection;
use crate::stamps::Stamps;
use crate::text::SourceMap;

pub use exports::Export;
pub use load::{LoadedPlan, Origin, connect_options, load, load_anyway};

/// A plan: groups, hosts, and definitions.
#[derive(Debug)]
pub struct Plan {
    /// Its configuration.
    pub config: Config,
    /// The groups, in the order of the configuration.
    pub groups: Per<GroupId, Arc<PlannedGroup>>,
    /// Definitions over the fleet.
    pub fleet: Option<FleetPlan>,
    /// All hosts.
    pub targets: Vec<Arc<Target>>,
}

/// Properties that the hosts of a group share.
#[derive(Clone, Debug)]
pub struct PlannedGroup {
    /// Its name.
    pub name: Box<str>,
    /// Time between fetches of a host.
    pub interval: Duration,
    /// Time for a host to answer in a slot.
    pub deadline: Duration,
    /// Options of connections.
    pub options: Arc<ConnectOptions>,
    /// Stamps of the files of certificates and keys for connections.
    pub certificates: Stamps,
    /// Number of definitions in its files.
    pub defined: usize,
    /// The texts of all definitions, including those of other groups and over the fleet.
    pub texts: Arc<SourceMap>,
    /// The evaluated definitions: exported ones, followed by expressions that are operands of
    /// aggregates.
    pub selection: Arc<Selection>,
    /// The export of each definition, parallel to the selection.
    pub exports: Arc<[Export]>,
    /// Mistakes of its definitions that were logged.
    pub told: ToldMistakes,
}

/// Definitions over the fleet, and their use.
#[derive(Clone, Debug)]
pub struct FleetPlan {
    /// The definitions over the fleet.
    pub definitions: Arc<FleetDefinitions>,
    /// Their texts, and those of the groups.
    pub texts: Arc<SourceMap>,
    /// The operands of its aggregates that the hosts of each group have.
    pub operands: Per<GroupId, Per<OperandId, bool>>,
    /// The times at which slots end.
    pub schedule: Schedule,
    /// The exported metrics of the fleet by name, with the sinks that want them.
    pub exports: BTreeMap<Box<str>, SinkSet>,
}

impl FleetPlan {
    /// The sinks that want a metric of the fleet.
    pub fn sinks_of(&self, name: &str) -> SinkSet {
        self.exports.get(name).copied().unwrap_or_default()
    }

    /// True if both compute the same for the same sinks.
    pub fn is_same(&self, other: &FleetPlan) -> bool {
        self.schedule == other.schedule
            && self.exports == other.exports
            && self.operands == other.operands
            && self.definitions.is_same(&other.definitions)
    }
}

/// The times at which slots end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Length of a slot: the interval of the hosts.
    pub interval: Duration,
    /// Time after the end of a slot in which frames still count: [`MAX_GRACE`] intervals at most.
    ///
    /// [`MAX_GRACE`]: super::aggregates::MAX_GRACE
    pub grace: Duration,
}

impl Schedule {
    /// The slot of a time.
    pub fn slot_of(&self, time: Nanos) -> Slot {
        Due::new(self.interval, 0).slot_of(time)
    }

    /// The time of the engine's clock at which a slot must be finished.
    pub fn due(&self, slot: Slot) -> Nanos {
        slot.end(self.interval).after(self.grace)
    }
}

impl Plan {
    /// Sets the places of sinks, parallel to the sinks of the configuration. Until then the
    /// position in the configuration is the place. A sink that goes on keeps its place at any
    /// position, as values on their way carry the old place.
    pub fn place_sinks(&mut self, places: &[SinkPlace]) {
        let placed = |sinks: SinkSet| {
            let all = (0..).map(SinkPlace).zip(places);
            let wanted = all.filter(|(position, _)| sinks.contains(*position));
            let placed: SinkSet = wanted.map(|(_, place)| *place).collect();
            placed.union(sinks.common(SinkSet::FLEET))
        };
        // Only the plan holds the groups so far, so each can be changed.
        let groups = self.groups.iter_mut().filter_map(Arc::get_mut);
        let of_groups = groups.flat_map(|group| Arc::make_mut(&mut group.exports));
        let of_groups = of_groups.map(|one| &mut one.sinks);
        let of_fleet = self.fleet.iter_mut().flat_map(|fleet| fleet.exports.values_mut());
        of_groups.chain(of_fleet).for_each(|sinks| *sinks = placed(*sinks));
    }

    /// The group of a host in the plan.
    pub fn group_of(&self, target: &Target) -> &Arc<PlannedGroup> {
        &self.groups[target.group]
    }
}

impl PlannedGroup {
    /// True if both connect to hosts in the same way.
    pub fn connects_as(&self, other: &PlannedGroup) -> bool {
        self.options == other.options && self.certificates == other.certificates
    }

    /// True if hosts go on unchanged with this group: the same definitions, exports, times and
    /// connections.
    pub fn is_same(&self, other: &PlannedGroup) -> bool {
        self.interval == other.interval
            && self.deadline == other.deadline
            && self.connects_as(other)
            && self.exports == other.exports
            && self.selection == other.selection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_due_after_their_grace() {
        let schedule =
            Schedule { interval: Duration::from_secs(10), grace: Duration::from_secs(8) };
        assert_eq!(schedule.due(Slot(3)), Nanos(48_000_000_000));
    }
}
