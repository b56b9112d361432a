//! The name space of an archive: the names in its descriptor records.
//!
//! In: names with their metrics, in the order of the metadata. Out: lookups
//! and traversals. Several names of one metric are all kept; what a metric is
//! like is not known here.

use std::cmp::Ordering;

use crate::model::{PmStatus, Pmid};
use crate::source::Child;

/// Names of metrics, ordered.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Sorted by name, each once.
    entries: Vec<(Box<str>, Pmid)>,
    /// Metrics with the positions of their names in `entries`, sorted.
    by_metric: Vec<(Pmid, usize)>,
}

impl Names {
    /// Adds names. Of two metrics with one name the first one keeps it.
    pub(super) fn extend(&mut self, names: impl IntoIterator<Item = (Box<str>, Pmid)>) {
        self.entries.extend(names);
        // Stable, so that the first of equal names stays in front.
        self.entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.entries.dedup_by(|(later, _), (first, _)| later == first);
        self.by_metric.clear();
        self.by_metric.extend(self.entries.iter().zip(0..).map(|((_, pmid), at)| (*pmid, at)));
        self.by_metric.sort_unstable();
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The metric of a name (`pmLookupName(3)`): `PM_ERR_NONLEAF` when other
    /// names lie below it, even if a metric has it too.
    pub(super) fn lookup(&self, name: &str) -> Result<Pmid, PmStatus> {
        if !self.below(name).is_empty() {
            return Err(PmStatus::NONLEAF);
        }
        match self.entries.binary_search_by(|(entry, _)| (**entry).cmp(name)) {
            Ok(position) => Ok(self.entries[position].1),
            Err(_) => Err(PmStatus::NAME),
        }
    }

    /// The names at or below `prefix`, in order; `None` when there is no such node.
    pub(super) fn traverse(&self, prefix: &str) -> Option<Vec<String>> {
        let candidates = if prefix.is_empty() { &self.entries[..] } else { self.below(prefix) };
        if candidates.is_empty() && !prefix.is_empty() {
            return self.lookup(prefix).ok().map(|_| vec![prefix.to_string()]);
        }
        let leaves = candidates.iter().filter(|(name, _)| self.below(name).is_empty());
        Some(leaves.map(|(name, _)| name.to_string()).collect())
    }

    /// All names of a metric, in order (`pmNameAll(3)`), without those that
    /// are hidden by names below them.
    pub(super) fn of(&self, pmid: Pmid) -> Result<Vec<Box<str>>, PmStatus> {
        let first = self.by_metric.partition_point(|(metric, _)| *metric < pmid);
        let of_metric = self.by_metric[first..].iter().take_while(|(metric, _)| *metric == pmid);
        let names = of_metric.map(|(_, at)| &self.entries[*at].0);
        let names: Vec<_> = names.filter(|name| self.below(name).is_empty()).cloned().collect();
        if names.is_empty() { Err(PmStatus::PMID) } else { Ok(names) }
    }

    /// What is directly below a node (`pmGetChildrenStatus(3)`), in order.
    pub(super) fn children(&self, node: &str) -> Result<Vec<Child>, PmStatus> {
        let below = if node.is_empty() { &self.entries[..] } else { self.below(node) };
        if below.is_empty() && !node.is_empty() {
            return self.lookup(node).map(|_| Vec::new());
        }
        Ok(Child::below(node, below.iter().map(|(name, _)| &**name)))
    }

    /// The entries strictly below a node, which are neighbours.
    fn below(&self, node: &str) -> &[(Box<str>, Pmid)] {
        let first = self.entries.partition_point(|(name, _)| compare(name, node) == Ordering::Less);
        let rest = &self.entries[first..];
        let count = rest.partition_point(|(name, _)| compare(name, node) == Ordering::Equal);
        &rest[..count]
    }
}

/// Where a name stands relative to the names below `node`, without building `node` + ".".
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
        assert_eq!(traverse(""), Some(["a.b-c", "a.b.c", "a.d", "ab"].map(String::from).into()));
        assert_eq!(traverse("a"), Some(["a.b-c", "a.b.c", "a.d"].map(String::from).into()));
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
        assert_eq!(children(""), expect(&[("a", false), ("ab", true)]));
        assert_eq!(children("a"), expect(&[("b", false), ("b-c", true), ("d", true)]));
        assert_eq!(children("ab"), expect(&[]));
        assert_eq!(children("b"), Err(PmStatus::NAME));
        assert_eq!(Names::default().traverse(""), Some(vec![]));
    }
}
