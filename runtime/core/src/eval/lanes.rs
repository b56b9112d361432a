//! Sets of instances, and the places of one set's lanes in another.
//!
//! This module works on identifiers only.

use std::collections::{HashMap, HashSet};

use crate::model::InstId;

/// Adjacent lanes that are copied together: `len` lanes from position `from` of
/// the source to position `to` of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First source lane.
    pub from: u32,
    /// First destination lane.
    pub to: u32,
    /// Number of lanes.
    pub len: u32,
}

/// Finds positions of instances in a list. It is fast if the calls follow
/// roughly the list's order. It allocates only if the list is long, does not
/// ascend and lacks an instance.
pub struct Finder<'a> {
    ids: &'a [InstId],
    next: usize,
    search: Search,
}

/// The search for an instance that is not at the expected position.
enum Search {
    Undecided,
    /// The list is short.
    Scan,
    /// The list ascends.
    Halve,
    /// Forward, as long as that succeeds.
    Ahead,
    Index(HashMap<InstId, usize>),
}

/// Lists up to this length are scanned.
const SHORT: usize = 16;

impl<'a> Finder<'a> {
    /// A finder in `ids`. Of repeated instances it finds the next one after the
    /// last hit, or else the first.
    pub fn new(ids: &'a [InstId]) -> Finder<'a> {
        Finder { ids, next: 0, search: Search::Undecided }
    }

    /// Position of `id`, if the list has it.
    pub fn find(&mut self, id: InstId) -> Option<usize> {
        // Looks two positions ahead: an instance that left costs only one step.
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

    /// Position of the first of `wanted`, and the number of further ones that
    /// follow it there. One call replaces that many of [`Finder::find`].
    fn find_run(&mut self, wanted: &[InstId]) -> Option<(usize, usize)> {
        let from = self.find(*wanted.first()?)?;
        let len = 1 + alike(&self.ids[self.next..], &wanted[1..]);
        self.next = from + len;
        Some((from, len))
    }
}

/// Number of lanes to compare at once. It is large: long lists with few
/// differences then cost no more than reading them.
const BLOCK: usize = 64;

/// Length of the common beginning of two lists.
fn alike(a: &[InstId], b: &[InstId]) -> usize {
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
    let whole = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

/// True if each instance is greater than the one before.
fn ascends(ids: &[InstId]) -> bool {
    let Some((_, later)) = ids.split_first() else { return true };
    let ascends = |(a, b): (&[InstId], &[InstId])| {
        a.iter().zip(b).fold(true, |ascends, (a, b)| ascends & (a < b))
    };
    ids[..later.len()].chunks(BLOCK).zip(later.chunks(BLOCK)).all(ascends)
}

/// True if both lists have the same instances in the same order.
pub fn are_same(a: &[InstId], b: &[InstId]) -> bool {
    // Usually they are the same list.
    std::ptr::eq(a, b) || a == b
}

/// The runs that bring lanes of `source` into the order of `wanted`. `None` if
/// `source` lacks an instance of `wanted`.
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

/// True if an instance is in the list more than once.
pub fn has_repeats(ids: &[InstId]) -> bool {
    // Most lists ascend.
    if ascends(ids) {
        return false;
    }
    let mut seen = HashSet::with_capacity(ids.len());
    !ids.iter().all(|id| seen.insert(*id))
}

/// The instances of `left` that are also in `right`, in the order of `left`.
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

    /// The runs are the same as for looking up each instance alone, for lists
    /// that differ in any way and repeat any instance.
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
            // In the list's order with gaps, in another order, and some that
            // the list lacks.
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
