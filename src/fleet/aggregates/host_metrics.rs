//! What definitions over the fleet can take of hosts, as far as texts alone tell it.

use rustc_hash::FxHashSet;

use crate::engine::Registry;

/// The metrics of hosts that definitions over the fleet may name.
#[derive(Clone, Debug, Default)]
pub struct HostMetrics<'n> {
    /// For each group of hosts, what is defined there.
    groups: Vec<FxHashSet<&'n str>>,
    /// Hosts may have others.
    is_open: bool,
}

impl<'n> HostMetrics<'n> {
    /// Those of these names, which all hosts have.
    pub fn of(names: impl IntoIterator<Item = &'n str>) -> HostMetrics<'n> {
        HostMetrics { groups: vec![names.into_iter().collect()], is_open: false }
    }

    /// Those that the definitions of each group have.
    pub fn of_groups(groups: impl IntoIterator<Item = &'n Registry>) -> HostMetrics<'n> {
        let groups = groups.into_iter().map(|registry| registry.names().collect()).collect();
        HostMetrics { groups, is_open: false }
    }

    /// Allows any other name that is not defined over the fleet: whether hosts have such
    /// a metric is found out when they are asked.
    #[must_use]
    pub fn and_others(self) -> HostMetrics<'n> {
        HostMetrics { is_open: true, ..self }
    }

    /// True for the name of a definition of hosts.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.groups.iter().any(|names| names.contains(name))
    }

    /// True if names that are not known may be metrics of hosts.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// True if the hosts of some group have all of these names.
    pub(super) fn has_together<'o>(&self, names: impl Iterator<Item = &'o str> + Clone) -> bool {
        self.is_open
            || self.groups.iter().any(|known| names.clone().all(|name| known.contains(name)))
    }

    /// All that are defined, by name.
    pub(super) fn names(&self) -> Vec<&'n str> {
        let mut names: Vec<&str> = self.groups.iter().flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
