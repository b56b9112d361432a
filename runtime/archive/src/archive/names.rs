//! The name space of an archive: the names in its descriptor records.
//!
//! Input: names with their metrics, in the order of the metadata. Output: lookups and
//! traversals. They use libpcp's order, in which a new name comes before its siblings.
//! All names of a metric are kept.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use pmderive_core::model::{PmStatus, Pmid};
use pmderive_core::source::Child;

#[derive(Clone, Debug)]
struct Entry {
    name: Box<str>,
    pmid: Pmid,
    /// Number of names that were added before, repeated ones included.
    position: usize,
}

/// The names of metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Sorted by name. Each name occurs once.
    entries: Vec<Entry>,
    /// Metrics with the positions of their names in `entries`, sorted.
    by_metric: Vec<(Pmid, usize)>,
}

impl Names {
    /// Adds names. If two metrics have the same name, the first one keeps it.
    pub(super) fn extend(&mut self, names: impl IntoIterator<Item = (Box<str>, Pmid)>) {
        // Positions have gaps where a name was repeated.
        let next = self.entries.iter().map(|entry| entry.position + 1).max().unwrap_or(0);
        let names = names.into_iter().zip(next..);
        self.entries.extend(names.map(|((name, pmid), position)| Entry { name, pmid, position }));
        // The sort is stable, so the first of equal names stays first.
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.entries.dedup_by(|later, first| later.name == first.name);
        self.by_metric.clear();
        self.by_metric.extend(self.entries.iter().zip(0..).map(|(entry, at)| (entry.pmid, at)));
        self.by_metric.sort_unstable();
    }

    /// True if the name was added, even if there are names below it now.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.binary_search_by(|entry| (*entry.name).cmp(name)).is_ok()
    }

    /// True if the name's parent node exists.
    pub(super) fn has_node_of(&self, name: &str) -> bool {
        name.rsplit_once('.').is_none_or(|(node, _)| !self.below(node).is_empty())
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The metric with a name (`pmLookupName(3)`). `PM_ERR_NONLEAF` if there are names
    /// below it, even if a metric has the name too.
    pub(super) fn lookup(&self, name: &str) -> Result<Pmid, PmStatus> {
        let (before, rest) = self.entries.split_at(self.first_below(name));
        if rest.first().is_some_and(|next| compare(&next.name, name) == Ordering::Equal) {
            return Err(PmStatus::NONLEAF);
        }
        match before.last() {
            // Nearly always the name itself stands right before those below it.
            Some(entry) if *entry.name == *name => Ok(entry.pmid),
            _ => match before.binary_search_by(|entry| (*entry.name).cmp(name)) {
                Ok(position) => Ok(before[position].pmid),
                Err(_) => Err(PmStatus::NAME),
            },
        }
    }

    /// The names at or below `prefix`, in libpcp's order. `None` if there is no such
    /// node.
    pub(super) fn traverse(&self, prefix: &str) -> Option<Vec<String>> {
        let candidates = if prefix.is_empty() { &self.entries[..] } else { self.below(prefix) };
        if candidates.is_empty() && !prefix.is_empty() {
            return self.lookup(prefix).ok().map(|_| vec![prefix.to_string()]);
        }
        let names = in_order(candidates).into_iter();
        Some(names.filter(|name| self.below(name).is_empty()).map(str::to_owned).collect())
    }

    /// All names of a metric (`pmNameAll(3)`), the last one of a traversal first: that
    /// is the one of pmNameID(3). Names that have other names below them are left out.
    pub(super) fn of(&self, pmid: Pmid) -> Result<Vec<Box<str>>, PmStatus> {
        let first = self.by_metric.partition_point(|(metric, _)| *metric < pmid);
        let of_metric = self.by_metric[first..].iter().take_while(|(metric, _)| *metric == pmid);
        let names = of_metric.map(|(_, at)| &self.entries[*at].name);
        let mut names: Vec<_> = names.filter(|name| self.below(name).is_empty()).cloned().collect();
        if names.len() > 1 {
            names.sort_by_cached_key(|name| self.ages(name));
        }
        if names.is_empty() { Err(PmStatus::PMID) } else { Ok(names) }
    }

    /// The positions of the nodes on the path to a name. The position of a node is
    /// that of the oldest name below it.
    fn ages(&self, name: &str) -> Vec<usize> {
        let oldest = |node: &str| {
            let own = self.entries.binary_search_by(|entry| (*entry.name).cmp(node));
            let own = own.ok().map(|at| &self.entries[at]);
            self.below(node).iter().chain(own).map(|entry| entry.position).min()
        };
        nodes(name).filter_map(oldest).collect()
    }

    /// The children of a node (`pmGetChildrenStatus(3)`), in libpcp's order.
    pub(super) fn children(&self, node: &str) -> Result<Vec<Child>, PmStatus> {
        let below = if node.is_empty() { &self.entries[..] } else { self.below(node) };
        if below.is_empty() && !node.is_empty() {
            return self.lookup(node).map(|_| Vec::new());
        }
        // As in `in_order`: a child is as old as the oldest name below it.
        let mut oldest_first: Vec<&Entry> = below.iter().collect();
        oldest_first.sort_unstable_by_key(|entry| entry.position);
        let mut children = Child::below(node, oldest_first.iter().map(|entry| &*entry.name));
        children.reverse();
        Ok(children)
    }

    /// The entries strictly below a node. They are neighbours in `entries`.
    fn below(&self, node: &str) -> &[Entry] {
        let rest = &self.entries[self.first_below(node)..];
        let is_below = |entry: &Entry| compare(&entry.name, node) == Ordering::Equal;
        // Most names are leaves.
        match rest.first() {
            Some(first) if is_below(first) => &rest[..rest.partition_point(is_below)],
            _ => &[],
        }
    }

    /// The index where the entries below a node begin, or would begin.
    fn first_below(&self, node: &str) -> usize {
        self.entries.partition_point(|entry| compare(&entry.name, node) == Ordering::Less)
    }
}

/// The names in the order of a traversal: among siblings, the newest comes first. A
/// node is as old as the oldest name below it.
fn in_order(entries: &[Entry]) -> Vec<&str> {
    let mut came: HashMap<&str, usize> = HashMap::new();
    for Entry { name, position, .. } in entries {
        for node in nodes(name) {
            let first = came.entry(node).or_insert(*position);
            *first = (*position).min(*first);
        }
    }
    let mut names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
    names
        .sort_by_cached_key(|name| nodes(name).map(|node| Reverse(came[node])).collect::<Vec<_>>());
    names
}

/// The nodes on the path to a name, with the name itself last.
fn nodes(name: &str) -> impl Iterator<Item = &str> {
    let dots = name.match_indices('.').map(|(at, _)| at);
    dots.chain([name.len()]).map(|end| &name[..end])
}

/// Compares a name with the range of names below `node`, without building `node` + ".".
fn compare(name: &str, node: &str) -> Ordering {
    let (name, node) = (name.as_bytes(), node.as_bytes());
    let common = name.len().min(node.len());
    name[..common].cmp(&node[..common]).then_with(|| match name.get(node.len()) {
        Some(next) => next.cmp(&b'.'),
        None => Ordering::Less,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_nodes_and_shadowed_names() {
        let mut names = Names::default();
        let list = [("a.b", 1), ("a.b-c", 2), ("a.b.c", 3), ("a.d", 4), ("a.d", 5), ("ab", 4)];
        names.extend(list.map(|(name, pmid)| (name.into(), Pmid(pmid))));
        assert_eq!(names.len(), 5);
        assert_eq!(names.lookup("a.b.c"), Ok(Pmid(3)));
        assert_eq!(names.lookup("a.b-c"), Ok(Pmid(2)));
        assert_eq!(names.lookup("a.d"), Ok(Pmid(4)));
        assert_eq!(names.lookup("ab"), Ok(Pmid(4)));
        for node in ["a", "a.b"] {
            assert_eq!(names.lookup(node), Err(PmStatus::NONLEAF), "{node}");
        }
        for unknown in ["", "b", "a.", "a.b.c.d", "a.e"] {
            assert_eq!(names.lookup(unknown), Err(PmStatus::NAME), "{unknown}");
        }
        let traverse = |prefix| names.traverse(prefix);
        assert_eq!(traverse(""), Some(["ab", "a.d", "a.b-c", "a.b.c"].map(String::from).into()));
        assert_eq!(traverse("a"), Some(["a.d", "a.b-c", "a.b.c"].map(String::from).into()));
        assert_eq!(traverse("a.b"), Some(vec!["a.b.c".to_string()]));
        assert_eq!(traverse("a.d"), Some(vec!["a.d".to_string()]));
        assert_eq!(traverse("x"), None);
        let of = |pmid| names.of(Pmid(pmid)).map(|names| names.join(" "));
        assert_eq!(of(4), Ok("a.d ab".to_string()));
        assert_eq!([of(1), of(5)], [const { Err(PmStatus::PMID) }; 2]);
        let children = |node| {
            let children = names.children(node)?;
            Ok(children.into_iter().map(|c| (c.name.into(), c.is_leaf)).collect::<Vec<_>>())
        };
        let expect = |list: &[(&str, bool)]| {
            Ok(list.iter().map(|(name, is_leaf)| (name.to_string(), *is_leaf)).collect())
        };
        assert_eq!(children(""), expect(&[("ab", true), ("a", false)]));
        assert_eq!(children("a"), expect(&[("d", true), ("b-c", true), ("b", false)]));
        assert_eq!(children("ab"), expect(&[]));
        assert_eq!(children("b"), Err(PmStatus::NAME));
        for (name, has_node) in
            [("a.z", true), ("z", true), ("a.b.z", true), ("a.d.z", false), ("b.z", false)]
        {
            assert_eq!(names.has_node_of(name), has_node, "{name}");
        }
        assert_eq!(Names::default().traverse(""), Some(vec![]));
        // A name that sorts between another name and the names below that one.
        names.extend([("e.f".into(), Pmid(6)), ("e.f-g".into(), Pmid(7))]);
        assert_eq!(["e.f", "e.f-g"].map(|name| names.lookup(name)), [Ok(Pmid(6)), Ok(Pmid(7))]);
    }

    #[test]
    fn new_names_come_first_after_repeated_ones() {
        let mut names = Names::default();
        names.extend(["a", "a", "a", "m", "z"].map(|name| (name.into(), Pmid(1))));
        names.extend([("k".into(), Pmid(2))]);
        assert_eq!(names.traverse(""), Some(["k", "z", "m", "a"].map(String::from).into()));
    }
}
