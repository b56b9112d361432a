//! Instance domains of aggregates over the fleet. Their instances are groups of hosts, or
//! instances of hosts. An internal identifier is never reused while the process runs.

use std::sync::Arc;

use pmderive_runtime::model::InstId;
use rustc_hash::FxHashMap;

use crate::fleet::labels::Labels;
use crate::fleet::sinks::text;

/// Values of the labels that a `by` names, in its order; none without a `by`.
pub type GroupKey = Arc<[Box<str>]>;

/// An instance of a host: group, host, and name of the instance.
pub type OfHost = (GroupKey, Arc<str>, Arc<str>);

/// Most groups of one `by`, and most ranked instances of hosts: as many as a fleet has hosts.
/// Beyond that, absent ones are forgotten.
pub const MAX_KNOWN: usize = 100_000;

/// The instance domains of a grouping.
#[derive(Debug, Default)]
pub struct GroupingDomains {
    /// Its groups.
    pub groups: FleetDomain<GroupKey>,
    /// The instances of hosts in its rankings.
    pub of_hosts: FleetDomain<OfHost>,
    /// Versions of both for which the source has instance domains.
    told: (u64, u64),
}

impl GroupingDomains {
    /// True if absent instances should be forgotten first.
    pub fn is_full(&self) -> bool {
        self.groups.is_full() || self.of_hosts.is_full()
    }

    /// Notes that the source gets these instances. False if it has them already.
    pub fn note_told(&mut self) -> bool {
        let now = (self.groups.version, self.of_hosts.version);
        std::mem::replace(&mut self.told, now) != now
    }

    /// Notes that there is a new source, without instances.
    pub fn forget_told(&mut self) {
        self.told = (u64::MAX, u64::MAX);
    }
}

/// An instance domain of the fleet: things with labels, as instances of a metric.
#[derive(Debug)]
pub struct FleetDomain<K> {
    by_key: FxHashMap<K, usize>,
    entries: Vec<Entry<K>>,
    next: InstId,
    /// Grows with every new instance.
    version: u64,
}

/// An instance of such a domain.
#[derive(Clone, Debug)]
pub struct Entry<K> {
    /// The thing that it stands for.
    pub key: K,
    /// Internal identifier.
    pub id: InstId,
    /// External name, as in `{rack="a",dc="b"}`.
    pub name: Arc<str>,
    /// Its labels, as they are in the name.
    pub labels: Labels,
}

impl<K> Default for FleetDomain<K> {
    fn default() -> FleetDomain<K> {
        FleetDomain { by_key: FxHashMap::default(), entries: Vec::new(), next: 0, version: 0 }
    }
}

impl<K: Clone + Eq + std::hash::Hash> FleetDomain<K> {
    /// The instance of a thing, new if needed. `labels` gives its labels in the order of its
    /// name.
    pub fn entry<'l, L>(&mut self, key: &K, labels: impl FnOnce() -> L) -> &Entry<K>
    where
        L: Iterator<Item = (&'l str, &'l str)>,
    {
        let at = match self.by_key.get(key) {
            Some(at) => *at,
            None => self.add(key, &apart(labels())),
        };
        &self.entries[at]
    }

    fn add(&mut self, key: &K, labels: &[(String, &str)]) -> usize {
        let entry = Entry {
            key: key.clone(),
            id: self.next,
            name: name(labels),
            labels: labels.iter().map(|(name, value)| (&**name, *value)).collect(),
        };
        // Identifiers end only after two thousand million things.
        self.next = self.next.saturating_add(1);
        self.version += 1;
        self.by_key.insert(key.clone(), self.entries.len());
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Identifiers and names of all instances.
    pub fn instances(&self) -> Vec<(InstId, Box<str>)> {
        self.entries.iter().map(|one| (one.id, Box::from(&*one.name))).collect()
    }

    /// The instance with an identifier.
    pub fn of_id(&self, id: InstId) -> Option<&Entry<K>> {
        // Identifiers grow with positions.
        let at = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        Some(&self.entries[at])
    }

    /// True if absent instances should be forgotten first.
    pub fn is_full(&self) -> bool {
        self.entries.len() > MAX_KNOWN
    }

    /// Changes the keys of things, and forgets those without a new key. Identifiers stay.
    pub fn rename(&mut self, key: impl Fn(&K) -> Option<K>) {
        let entries = std::mem::take(&mut self.entries).into_iter();
        self.entries =
            entries.filter_map(|entry| Some(Entry { key: key(&entry.key)?, ..entry })).collect();
        self.keep(|_| true);
    }

    /// Forgets all instances but these. Identifiers stay.
    pub fn keep(&mut self, is_kept: impl Fn(&Entry<K>) -> bool) {
        self.entries.retain(is_kept);
        self.by_key =
            self.entries.iter().enumerate().map(|(at, one)| (one.key.clone(), at)).collect();
        self.version += 1;
    }
}

/// Makes the names of labels unique: a name that is taken gets the prefix `exported_`.
fn apart<'l>(labels: impl Iterator<Item = (&'l str, &'l str)>) -> Vec<(String, &'l str)> {
    let mut apart: Vec<(String, &str)> = Vec::new();
    for (name, value) in labels {
        let mut name = name.to_owned();
        while apart.iter().any(|(known, _)| *known == name) {
            name.insert_str(0, "exported_");
        }
        apart.push((name, value));
    }
    apart
}

/// `{rack="a",dc="b"}`, with the escapes of Prometheus' text format.
fn name(labels: &[(String, &str)]) -> Arc<str> {
    match labels.is_empty() {
        true => "{}".into(),
        false => text::labels(labels.iter().map(|(name, value)| (&**name, *value))).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&str]) -> GroupKey {
        values.iter().map(|value| Box::from(*value)).collect()
    }

    #[test]
    fn groups_are_named_by_their_labels_in_order() {
        let mut groups: FleetDomain<GroupKey> = FleetDomain::default();
        for (labels, expected) in [
            (&[("rack", "a"), ("dc", "b")][..], r#"{rack="a",dc="b"}"#),
            (&[("rack", "a"), ("dc", "")], r#"{rack="a",dc=""}"#),
            (&[("rack", "say \"hi\"\\\n")], r#"{rack="say \"hi\"\\\n"}"#),
            (&[], "{}"),
            (
                &[("x", "1"), ("x", "2"), ("x", "3")],
                r#"{x="1",exported_x="2",exported_exported_x="3"}"#,
            ),
        ] {
            let values: Vec<&str> = labels.iter().map(|(_, value)| *value).collect();
            let entry = groups.entry(&key(&values), || labels.iter().copied());
            assert_eq!(&*entry.name, expected);
        }
    }

    #[test]
    fn identifiers_stay_and_are_not_given_again() {
        let mut groups: FleetDomain<GroupKey> = FleetDomain::default();
        let id = |groups: &mut FleetDomain<GroupKey>, value: &str| {
            groups.entry(&key(&[value]), || [("x", "")].into_iter()).id
        };
        assert_eq!(["a", "b", "a", "c"].map(|one| id(&mut groups, one)), [0, 1, 0, 2]);
        groups.keep(|entry| &*entry.key[0] == "c");
        assert_eq!(["c", "a", "b"].map(|one| id(&mut groups, one)), [2, 3, 4]);
        assert_eq!(groups.of_id(3).map(|one| &*one.key[0]), Some("a"));
        assert!(groups.of_id(1).is_none());
    }
}
