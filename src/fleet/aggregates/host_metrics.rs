//! The metrics of hosts that definitions over the fleet can use, as far as texts alone tell
//! them.

use rustc_hash::FxHashSet;

use crate::engine::Registry;

/// The metrics of hosts that definitions over the fleet may name.
#[derive(Clone, Debug, Default)]
pub struct HostMetrics<'n> {
    /// The names that each group of hosts defines.
    groups: Vec<FxHashSet<&'n str>>,
    /// True if hosts may have other metrics.
    is_open: bool,
}

impl<'n> HostMetrics<'n> {
    /// Metrics with these names, on all hosts.
    pub fn of(names: impl IntoIterator<Item = &'n str>) -> HostMetrics<'n> {
        HostMetrics { groups: vec![names.into_iter().collect()], is_open: false }
    }

    /// Metrics that the definitions of each group define.
    pub fn of_groups(groups: impl IntoIterator<Item = &'n Registry>) -> HostMetrics<'n> {
        let groups = groups.into_iter().map(|registry| registry.names().collect()).collect();
        HostMetrics { groups, is_open: false }
    }

    /// Also allows any other name that the fleet does not define. Whether hosts have such a
    /// metric turns out once they answer.
    #[must_use]
    pub fn and_others(self) -> HostMetrics<'n> {
        HostMetrics { is_open: true, ..self }
    }

    /// True if hosts define the name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.groups.iter().any(|names| names.contains(name))
    }

    /// True if an unknown name may be a metric of hosts.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// True if the hosts of some group have all of these names.
    pub(super) fn has_together<'o>(&self, names: impl Iterator<Item = &'o str> + Clone) -> bool {
        self.is_open
            || self.groups.iter().any(|known| names.clone().all(|name| known.contains(name)))
    }

    /// All defined names.
    pub(super) fn names(&self) -> Vec<&'n str> {
        let mut names: Vec<&str> = self.groups.iter().flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
