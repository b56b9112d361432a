//! The instances that the fetches of a context deliver.
//!
//! A profile is a plain value. The source decides how to apply it.

use std::collections::{BTreeMap, BTreeSet};

use super::{InDom, InstId};

/// The instances that fetches deliver (`pmAddProfile(3)`, `pmDelProfile(3)`). A
/// new profile admits all instances of all domains. It never affects metrics
/// without an instance domain, nor questions about instance domains.
///
/// ```
/// use pmderive_core::model::{InDom, InstanceProfile};
///
/// let disks = InDom::new(60, 1);
/// let mut profile = InstanceProfile::default();
/// profile.include(disks, &[0, 3]);
/// assert!(profile.admits(disks, 3) && !profile.admits(disks, 1));
/// // `source.set_profile(&profile)?` puts it in force.
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceProfile {
    others: Selection,
    domains: BTreeMap<InDom, DomainProfile>,
}

/// The profile of a single domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainProfile {
    /// The selection for instances that are not listed.
    pub others: Selection,
    /// Instances with the opposite selection.
    pub exceptions: BTreeSet<InstId>,
}

/// The decision whether to deliver instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Deliver.
    #[default]
    Include,
    /// Do not deliver.
    Exclude,
}

impl InstanceProfile {
    /// Admits all instances of all domains and forgets earlier selections
    /// (`pmAddProfile(PM_INDOM_NULL, 0, NULL)`).
    pub fn include_everything(&mut self) {
        *self = InstanceProfile::default();
    }

    /// Admits no instance of any domain and forgets earlier selections
    /// (`pmDelProfile(PM_INDOM_NULL, 0, NULL)`).
    pub fn exclude_everything(&mut self) {
        *self = InstanceProfile { others: Selection::Exclude, domains: BTreeMap::new() };
    }

    /// Admits all instances of a domain (`pmAddProfile(indom, 0, NULL)`).
    pub fn include_all(&mut self, indom: InDom) {
        self.set(indom, Selection::Include);
    }

    /// Admits no instance of a domain (`pmDelProfile(indom, 0, NULL)`).
    pub fn exclude_all(&mut self, indom: InDom) {
        self.set(indom, Selection::Exclude);
    }

    fn set(&mut self, indom: InDom, others: Selection) {
        let whole = DomainProfile { others, exceptions: BTreeSet::new() };
        self.domains.insert(indom, whole);
    }

    /// Admits these instances too (`pmAddProfile(3)`). If the domain has no
    /// selection yet, it admits only these.
    pub fn include(&mut self, indom: InDom, instances: &[InstId]) {
        let first = DomainProfile { others: Selection::Exclude, exceptions: BTreeSet::new() };
        let domain = self.domains.entry(indom).or_insert(first);
        domain.select(instances, Selection::Include);
    }

    /// Excludes these instances (`pmDelProfile(3)`). If the domain has no
    /// selection yet, its other instances stay as they are. libpcp excludes all
    /// of them in that case, without a word in its manual pages.
    pub fn exclude(&mut self, indom: InDom, instances: &[InstId]) {
        let first = DomainProfile { others: self.others, exceptions: BTreeSet::new() };
        let domain = self.domains.entry(indom).or_insert(first);
        domain.select(instances, Selection::Exclude);
    }

    /// The selection for domains without a selection of their own.
    pub fn others(&self) -> Selection {
        self.others
    }

    /// The domains with a selection of their own, in ascending order.
    pub fn domains(&self) -> impl ExactSizeIterator<Item = (InDom, &DomainProfile)> {
        self.domains.iter().map(|(indom, domain)| (*indom, domain))
    }

    /// True if all instances of all domains are delivered.
    pub fn is_everything(&self) -> bool {
        self.others == Selection::Include
            && self
                .domains
                .values()
                .all(|domain| domain.others == Selection::Include && domain.exceptions.is_empty())
    }

    /// True if the instance is delivered.
    pub fn admits(&self, indom: InDom, instance: InstId) -> bool {
        let selection = match self.domains.get(&indom) {
            Some(domain) => domain.selection(instance),
            None => self.others,
        };
        selection == Selection::Include
    }
}

impl DomainProfile {
    fn select(&mut self, instances: &[InstId], selection: Selection) {
        for instance in instances {
            if self.others == selection {
                self.exceptions.remove(instance);
            } else {
                self.exceptions.insert(*instance);
            }
        }
    }

    fn selection(&self, instance: InstId) -> Selection {
        match (self.others, self.exceptions.contains(&instance)) {
            (Selection::Include, false) | (Selection::Exclude, true) => Selection::Include,
            _ => Selection::Exclude,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of the specification's table, and which of the instances 1, 2, 3
    /// are delivered.
    #[test]
    fn steps_add_up() {
        let indom = InDom(7);
        let mut profile = InstanceProfile::default();
        let delivered = |profile: &InstanceProfile| -> Vec<InstId> {
            (1..=3).filter(|instance| profile.admits(indom, *instance)).collect()
        };
        assert_eq!(delivered(&profile), [1, 2, 3]);
        profile.include(indom, &[1]);
        assert_eq!(delivered(&profile), [1]);
        profile.include(indom, &[2, 9]);
        profile.exclude(indom, &[1]);
        assert_eq!(delivered(&profile), [2]);
        profile.include_all(indom);
        assert!(profile.is_everything());
        profile.exclude(indom, &[2, 3]);
        assert_eq!(delivered(&profile), [1]);
        profile.include(indom, &[2]);
        assert_eq!(delivered(&profile), [1, 2]);
        profile.exclude_all(indom);
        assert!(delivered(&profile).is_empty());
        profile.include(indom, &[3]);
        assert_eq!(delivered(&profile), [3]);
        profile.include_everything();
        assert_eq!(delivered(&profile), [1, 2, 3]);
        profile.exclude(indom, &[1]);
        assert_eq!(delivered(&profile), [2, 3], "libpcp: none");
        profile.exclude_everything();
        assert!(delivered(&profile).is_empty());
        profile.include(indom, &[2]);
        assert_eq!(delivered(&profile), [2]);
        assert!(!profile.admits(InDom(8), 2));
    }
}
