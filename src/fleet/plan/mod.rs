//! The plan: what is to be done, by a configuration and the files that it names.
//!
//! A plan never changes. A reload makes a new plan, which takes the place of the old
//! one only if nothing is wrong with it. No host is asked anything here.

mod exports;
mod load;
mod stamps;

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::ConnectOptions;

use super::aggregates::{Definitions, Schedule};
use super::config::{Config, Limits, STAGE_TWO};
use super::target::Target;
use crate::engine::Selection;
use crate::syntax::ast::Spanned;
use std::net::SocketAddr;

pub use load::{Loaded, Origin, bounded, connect_options, load, load_anyway};
pub use stamps::Stamps;

/// Everything to do.
#[derive(Debug)]
pub struct Plan {
    /// The configuration that it is from.
    pub config: Config,
    /// The groups, in the order of the configuration.
    pub groups: Vec<Arc<Group>>,
    /// What is computed across hosts.
    pub fleet: Option<StageTwo>,
    /// All hosts; [`Target::group`] is a position in `groups`.
    pub targets: Vec<Arc<Target>>,
}

/// What the hosts of a group have in common.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called.
    pub name: Box<str>,
    /// How often each host is fetched.
    pub interval: Duration,
    /// How long a host may take for a slot.
    pub deadline: Duration,
    /// How connections are made.
    pub options: Arc<ConnectOptions>,
    /// How many definitions its files have.
    pub defined: usize,
    /// What is evaluated: exported definitions, and after them expressions that aggregates
    /// across hosts take.
    pub selection: Arc<Selection>,
    /// Who gets which of them.
    pub exports: Vec<Export>,
}

/// What is computed across hosts.
#[derive(Clone)]
pub struct StageTwo {
    /// The definitions over the fleet.
    pub definitions: Arc<Definitions>,
    /// When slots end.
    pub schedule: Schedule,
    /// Names of the metrics of the fleet that sinks get.
    pub exported: Box<[Box<str>]>,
    /// What sinks want, in the order of the configuration; each in the words of its
    /// `export`, everything without.
    pub wanted: Vec<Option<Vec<Box<str>>>>,
    /// The bits of the sinks, parallel to `wanted`.
    pub places: Vec<u32>,
}

impl std::fmt::Debug for StageTwo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageTwo").field("schedule", &self.schedule).finish_non_exhaustive()
    }
}

impl StageTwo {
    /// The sinks that want a metric of the fleet, as bits.
    pub fn sinks_of(&self, name: &str) -> u64 {
        if self.exported.iter().all(|exported| **exported != *name) {
            return 0;
        }
        let wants = |wanted: &Option<Vec<Box<str>>>| {
            wanted.as_ref().is_none_or(|list| list.iter().any(|one| exports::matches(one, name)))
        };
        let bits = self.wanted.iter().zip(&self.places).filter(|(wanted, _)| wants(wanted));
        bits.fold(0, |bits, (_, place)| bits | 1 << place)
    }

    /// True if the same is computed for the same sinks.
    pub fn is_same(&self, other: &StageTwo) -> bool {
        self.schedule == other.schedule
            && self.exported == other.exported
            && self.wanted == other.wanted
            && self.places == other.places
            && self.definitions.is_same(&other.definitions)
    }
}

/// An exported definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Position in the selection.
    pub metric: usize,
    /// Which sinks want it, as bits: those of their positions in the configuration until
    /// [`Plan::place_sinks`] gives them their places.
    pub sinks: u64,
    /// One line about it, if its file has any.
    pub help: Option<Arc<str>>,
}

impl Plan {
    /// Gives each sink the bit of its place, parallel to the sinks of the configuration. A
    /// sink that goes on keeps its place, wherever it stands now: values that are on
    /// their way are for the bits of before.
    pub fn place_sinks(&mut self, places: &[u32]) {
        let placed = |sinks: u64| {
            let set = places.iter().enumerate().filter(|(at, _)| sinks >> at & 1 == 1);
            set.fold(sinks & STAGE_TWO, |bits, (_, place)| bits | 1 << place)
        };
        // Nobody has them yet beside the plan.
        for group in self.groups.iter_mut().filter_map(Arc::get_mut) {
            group.exports.iter_mut().for_each(|export| export.sinks = placed(export.sinks));
        }
        if let Some(fleet) = &mut self.fleet {
            fleet.places = places.to_vec();
        }
    }

    /// What is refused.
    pub fn limits(&self) -> Limits {
        self.config.limits
    }

    /// Where metrics are served.
    pub fn listen(&self) -> Option<&Spanned<SocketAddr>> {
        self.config.listen.as_ref()
    }

    /// The group of a host of the plan.
    pub fn group_of(&self, target: &Target) -> &Arc<Group> {
        &self.groups[target.group]
    }
}

impl Group {
    /// True if hosts go on as before with this one: the same definitions, exports,
    /// times and connections.
    pub fn is_same(&self, other: &Group) -> bool {
        self.interval == other.interval
            && self.deadline == other.deadline
            && self.options == other.options
            && self.exports == other.exports
            && self.selection == other.selection
    }
}
