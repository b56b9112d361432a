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
                ids if ascends(ids) => Search::Halve,
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

    /// Position of the first of `wanted`, and how many of them stand there one
    /// behind the other: as many calls of [`Finder::find`] in one.
    fn find_run(&mut self, wanted: &[InstId]) -> Option<(usize, usize)> {
        let from = self.find(*wanted.first()?)?;
        let len = 1 + alike(&self.ids[self.next..], &wanted[1..]);
        self.next = from + len;
        Some((from, len))
    }
}

/// Lanes that are compared at once: many, so that long lists of which little
/// differs take no longer than to read them.
const BLOCK: usize = 64;

/// How many instances two lists begin with alike.
fn alike(a: &[InstId], b: &[InstId]) -> usize {
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
    let whole = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

/// True when each instance is greater than the one before.
fn ascends(ids: &[InstId]) -> bool {
    let Some((_, later)) = ids.split_first() else { return true };
    let ascends = |(a, b): (&[InstId], &[InstId])| {
        a.iter().zip(b).fold(true, |ascends, (a, b)| ascends & (a < b))
    };
    ids[..later.len()].chunks(BLOCK).zip(later.chunks(BLOCK)).all(ascends)
}

/// True for the same instances in the same order.
pub fn are_same(a: &[InstId], b: &[InstId]) -> bool {
    // Mostly they are even the same list.
    std::ptr::eq(a, b) || a == b
}

/// The runs that bring lanes of `source` into the order of `wanted`; `None`
/// when an instance of `wanted` is not in `source`.
pub fn align(source: &[InstId], wanted: &[InstId]) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    let mut finder = Finder::new(source);
    let mut to = 0;
    while to < wanted.len() {
        let (from, len) = finder.find_run(&wanted[to..])?;
        runs.push(Run { from: from as u32, to: to as u32, len: len as u32 });
        to += len;
    }
    Some(runs)
}

/// True when an instance is in the list more than once.
pub fn has_repeats(ids: &[InstId]) -> bool {
    // Most lists ascend.
    if ascends(ids) {
        return false;
    }
    let mut seen = HashSet::with_capacity(ids.len());
    !ids.iter().all(|id| seen.insert(*id))
}

/// The instances of `left` that `right` has as well, in the order of `left`.
pub fn intersection(left: &[InstId], right: &[InstId]) -> Vec<InstId> {
    let mut finder = Finder::new(right);
    let mut both = Vec::with_capacity(left.len().min(right.len()));
    let mut at = 0;
    while at < left.len() {
        let len = finder.find_run(&left[at..]).map_or(0, |(_, len)| len);
        both.extend_from_slice(&left[at..at + len]);
        at += len.max(1);
    }
    both
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
        assert_eq!(align(&[7, 7], &[7, 7, 7]), Some(vec![run(0, 0, 2), run(0, 2, 1)]));
    }

    /// Runs are those of looking for each instance by itself, wherever lists
    /// differ and whatever they name twice.
    #[test]
    fn long_lists_are_compared_as_short_ones() {
        let ascending: Vec<InstId> = (0..300).collect();
        let mixed: Vec<InstId> = (0..300).map(|id| id * 37 % 211).collect();
        for list in [ascending, mixed] {
            for at in 0..list.len() {
                let mut without = list.clone();
                without.remove(at);
                let mut other = list.clone();
                other[at] = 1_000;
                let mut turned = list.clone();
                turned.rotate_left(at);
                for (source, wanted) in
                    [(&list, &without), (&without, &list), (&list, &other), (&list, &turned)]
                {
                    let mut finder = Finder::new(source);
                    let found = wanted.iter().map(|id| finder.find(*id));
                    let found: Vec<Option<usize>> = found.collect();
                    let runs = align(source, wanted).map(|runs| {
                        let lanes = |run: Run| run.from as usize..(run.from + run.len) as usize;
                        runs.into_iter().flat_map(lanes).collect::<Vec<usize>>()
                    });
                    assert_eq!(runs, found.iter().copied().collect(), "{at}");
                    let both = wanted.iter().zip(&found).filter(|(_, found)| found.is_some());
                    let both: Vec<InstId> = both.map(|(id, _)| *id).collect();
                    assert_eq!(intersection(wanted, source), both, "{at}");
                }
            }
        }
    }

    #[test]
    fn lists_ascend_or_not() {
        for length in [0, 1, 2, 63, 64, 65, 66, 128, 129, 200] {
            let list: Vec<InstId> = (0..length).map(|id| id - 70).collect();
            assert!(ascends(&list), "{length}");
            for at in 1..list.len() {
                let mut list = list.clone();
                list[at] = list[at - 1];
                assert!(!ascends(&list), "{at} of {length}");
            }
        }
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
