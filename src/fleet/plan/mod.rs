//! The plan: what is to be done, by a configuration and the files that it names.
//!
//! A plan never changes. A reload makes a new plan, which takes the place of the old
//! one only if nothing is wrong with it. No host is asked anything here.

mod exports;
mod load;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::ConnectOptions;
use pmderive_runtime::position::Per;

use super::aggregates::{FleetDefinitions, OperandId, Schedule};
use super::config::Config;
use super::log::Told;
use super::sink_set::{SinkPlace, SinkSet};
use super::target::{GroupId, Target};
use crate::engine::Selection;
use crate::stamps::Stamps;
use crate::text::SourceMap;

pub use exports::Export;
pub use load::{Loaded, Origin, bounded, connect_options, load, load_anyway};

/// Everything to do.
#[derive(Debug)]
pub struct Plan {
    /// The configuration that it is from.
    pub config: Config,
    /// The groups, in the order of the configuration.
    pub groups: Per<GroupId, Arc<PlannedGroup>>,
    /// What is computed across hosts.
    pub fleet: Option<StageTwo>,
    /// All hosts.
    pub targets: Vec<Arc<Target>>,
}

/// What the hosts of a group have in common.
#[derive(Clone, Debug)]
pub struct PlannedGroup {
    /// What it is called.
    pub name: Box<str>,
    /// How often each host is fetched.
    pub interval: Duration,
    /// How long a host may take for a slot.
    pub deadline: Duration,
    /// How connections are made.
    pub options: Arc<ConnectOptions>,
    /// The files of certificates and keys that they are made with.
    pub certificates: Stamps,
    /// How many definitions its files have.
    pub defined: usize,
    /// The texts of all definitions, of other groups and over the fleet as well.
    pub texts: Arc<SourceMap>,
    /// What is evaluated: exported definitions, and after them expressions that aggregates
    /// across hosts take.
    pub selection: Arc<Selection>,
    /// Who gets which of them, parallel to the selection.
    pub exports: Vec<Export>,
    /// What the log has told of its definitions.
    pub told: Told,
}

/// What is computed across hosts.
#[derive(Clone, Debug)]
pub struct StageTwo {
    /// The definitions over the fleet.
    pub definitions: Arc<FleetDefinitions>,
    /// Their texts, and those of the groups.
    pub texts: Arc<SourceMap>,
    /// What their aggregates take that the hosts of each group have.
    pub operands: Per<GroupId, Per<OperandId, bool>>,
    /// When slots end.
    pub schedule: Schedule,
    /// The exported metrics of the fleet by name, with the sinks that want them.
    pub exports: BTreeMap<Box<str>, SinkSet>,
}

impl StageTwo {
    /// The sinks that want a metric of the fleet.
    pub fn sinks_of(&self, name: &str) -> SinkSet {
        self.exports.get(name).copied().unwrap_or_default()
    }

    /// True if the same is computed for the same sinks.
    pub fn is_same(&self, other: &StageTwo) -> bool {
        self.schedule == other.schedule
            && self.exports == other.exports
            && self.operands == other.operands
            && self.definitions.is_same(&other.definitions)
    }
}

impl Plan {
    /// Gives each sink its place, parallel to the sinks of the configuration. Until then its
    /// position in the configuration stands for it. A sink that goes on keeps its place,
    /// wherever it stands now: values that are on their way are for the places of before.
    pub fn place_sinks(&mut self, places: &[SinkPlace]) {
        let placed = |sinks: SinkSet| {
            let all = (0..).map(SinkPlace).zip(places);
            let wanted = all.filter(|(position, _)| sinks.contains(*position));
            let placed: SinkSet = wanted.map(|(_, place)| *place).collect();
            placed.union(sinks.common(SinkSet::STAGE_TWO))
        };
        // Nobody has them yet beside the plan.
        let groups = self.groups.iter_mut().filter_map(Arc::get_mut);
        let of_groups = groups.flat_map(|group| &mut group.exports).map(|one| &mut one.sinks);
        let of_fleet = self.fleet.iter_mut().flat_map(|fleet| fleet.exports.values_mut());
        of_groups.chain(of_fleet).for_each(|sinks| *sinks = placed(*sinks));
    }

    /// The group of a host of the plan.
    pub fn group_of(&self, target: &Target) -> &Arc<PlannedGroup> {
        &self.groups[target.group]
    }
}

impl PlannedGroup {
    /// True if connections to hosts are made in the same way.
    pub fn connects_as(&self, other: &PlannedGroup) -> bool {
        self.options == other.options && self.certificates == other.certificates
    }

    /// True if hosts go on as before with this one: the same definitions, exports,
    /// times and connections.
    pub fn is_same(&self, other: &PlannedGroup) -> bool {
        self.interval == other.interval
            && self.deadline == other.deadline
            && self.connects_as(other)
            && self.exports == other.exports
            && self.selection == other.selection
    }
}
