//! Sets of instances and how the lanes of one set are found in another.
//!
//! Works on identifiers only; knows neither values nor names.

use std::collections::{HashMap, HashSet};

use crate::model::InstId;

/// Lanes that are copied together: `len` lanes from position `from` of the
/// source to position `to` of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First source lane.
    pub from: u32,
    /// First destination lane.
    pub to: u32,
    /// Number of lanes.
    pub len: u32,
}

/// Finds positions of instances in a list, fast when they are asked for in
/// about the order of the list, and without allocating unless the list is
/// long, does not ascend and lacks an instance.
pub struct Finder<'a> {
    ids: &'a [InstId],
    next: usize,
    search: Search,
}

/// How an instance is found that is not where it is expected.
enum Search {
    Undecided,
    /// The list is short.
    Scan,
    /// The list ascends.
    Halve,
    /// Forward while that succeeds.
    Ahead,
    Index(HashMap<InstId, usize>),
}

/// Lists up to this length are scanned.
const SHORT: usize = 16;

impl<'a> Finder<'a> {
    /// A finder in `ids`. Of repeated instances that one is found which comes
    /// next after what was found last, or else the first.
    pub fn new(ids: &'a [InstId]) -> Finder<'a> {
        Finder { ids, next: 0, search: Search::Undecided }
    }

    /// Position of `id`, if it is there.
    pub fn find(&mut self, id: InstId) -> Option<usize> {
        // One instance that left costs a step of one.
        for ahead in 0..2 {
            if self.ids.get(self.next + ahead) == Some(&id) {
                self.next += ahead + 1;
                return Some(self.next - 1);
            }
        }
        let ids = self.ids;
        if matches!(self.search, Search::Undecided) {
            self.search = match ids {
                ids if ids.len() <= SHORT => Search::Scan,
                ids if ids.is_sorted_by(|a, b| a < b) => Search::Halve,
                _ => Search::Ahead,
            };
        }
        if matches!(self.search, Search::Ahead) {
            let rest = ids.get(self.next..).unwrap_or_default();
            if let Some(ahead) = rest.iter().position(|have| *have == id) {
                self.next += ahead + 1;
                return Some(self.next - 1);
            }
            let mut index = HashMap::with_capacity(ids.len());
            for (position, id) in ids.iter().enumerate() {
                index.entry(*id).or_insert(position);
            }
            self.search = Search::Index(index);
        }
        let position = match &self.search {
            Search::Index(index) => *index.get(&id)?,
            Search::Halve => ids.binary_search(&id).ok()?,
            _ => ids.iter().position(|have| *have == id)?,
        };
        self.next = position + 1;
        Some(position)
    }
}

/// The runs that bring lanes of `source` into the order of `wanted`; `None`
/// when an instance of `wanted` is not in `source`.
pub fn align(source: &[InstId], wanted: &[InstId]) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut finder = Finder::new(source);
    for (to, id) in (0u32..).zip(wanted) {
        let from = finder.find(*id)? as u32;
        match runs.last_mut() {
            Some(run) if run.from + run.len == from => run.len += 1,
            _ => runs.push(Run { from, to, len: 1 }),
        }
    }
    Some(runs)
}

/// True when an instance is in the list more than once.
pub fn has_repeats(ids: &[InstId]) -> bool {
    // Most lists ascend.
    if ids.is_sorted_by(|a, b| a < b) {
        return false;
    }
    let mut seen = HashSet::with_capacity(ids.len());
    !ids.iter().all(|id| seen.insert(*id))
}

/// The instances of `left` that `right` has as well, in the order of `left`.
pub fn intersection(left: &[InstId], right: &[InstId]) -> Vec<InstId> {
    let mut finder = Finder::new(right);
    left.iter().copied().filter(|id| finder.find(*id).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(from: u32, to: u32, len: u32) -> Run {
        Run { from, to, len }
    }

    #[test]
    fn alignments_are_runs() {
        assert_eq!(align(&[1, 2, 3], &[1, 2, 3]), Some(vec![run(0, 0, 3)]));
        assert_eq!(align(&[1, 2, 3, 4], &[1, 3, 4]), Some(vec![run(0, 0, 1), run(2, 1, 2)]));
        assert_eq!(align(&[1, 2, 3], &[3, 1]), Some(vec![run(2, 0, 1), run(0, 1, 1)]));
        assert_eq!(align(&[1, 2], &[1, 5]), None);
        assert_eq!(align(&[1, 2], &[]), Some(vec![]));
    }

    #[test]
    fn intersections_keep_the_left_order() {
        assert_eq!(intersection(&[4, 1, 3, 2], &[1, 2, 3, 9]), [1, 3, 2]);
        assert_eq!(intersection(&[1], &[]), [0; 0]);
    }

    #[test]
    fn instances_are_found_in_short_ascending_and_mixed_lists() {
        let short: Vec<InstId> = vec![5, 3, 9];
        let ascending: Vec<InstId> = (0..100).map(|id| id * 2).collect();
        let mixed: Vec<InstId> = (0..100).map(|id| id * 37 % 101).collect();
        for list in [short, ascending, mixed] {
            let expected = |id: InstId| list.iter().position(|have| *have == id);
            // In the list's order with gaps, in another order, and some that are not there.
            let forward: Vec<InstId> = list.iter().copied().step_by(7).collect();
            let wild = (-3..300).map(|step| step * 53 % 211);
            for wanted in [forward, wild.collect()] {
                let mut finder = Finder::new(&list);
                for id in wanted {
                    assert_eq!(finder.find(id), expected(id), "{id} in {list:?}");
                }
            }
        }
    }

    #[test]
    fn repeats_are_found_in_any_order() {
        assert!(!has_repeats(&[]));
        assert!(!has_repeats(&[1, 2, 9]));
        assert!(!has_repeats(&[9, 1, 2]));
        assert!(has_repeats(&[1, 1]));
        assert!(has_repeats(&[9, 1, 9]));
    }
}
