//! The tables that programs consist of. Programs for different kinds of sources
//! have mostly equal tables, or tables that differ in few places. A [`Pool`]
//! makes programs share equal parts.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Flatten;
use std::ops::{Deref, Index};
use std::slice;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Baseline, Needs, Node, Output, Placement, Step};
use crate::weak_table::Interner;

/// An immutable list that several owners may share.
///
/// The items have a box of their own. So they are freed with the last user,
/// even while weak references to the list remain.
pub struct List<T>(Arc<Box<[T]>>);

/// A long immutable list in pieces. Several tables may share a piece.
#[derive(Clone, Debug)]
pub struct Table<T> {
    /// Pieces of [`PIECE`] items; the last may be shorter.
    pieces: Box<[List<T>]>,
}

/// Number of items in a piece. Few, because a differing piece costs all of
/// them; many, because each piece costs a lookup.
const PIECE: usize = 32;

impl<T> List<T> {
    /// Bytes of its items, unless it was counted already: `seen` has the addresses of
    /// lists that were. The data that items point to are not counted.
    pub(crate) fn bytes_unless(&self, seen: &mut FxHashSet<usize>) -> usize {
        if seen.insert(Arc::as_ptr(&self.0).addr()) { size_of_val(&**self.0) } else { 0 }
    }

    /// True if both are the same list in memory.
    pub fn is(&self, other: &List<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> List<T> {
        List(Arc::new(items.into()))
    }
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List::from(Vec::new())
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> List<T> {
        List(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &List<T>) -> bool {
        self.is(other) || self.0 == other.0
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T: Hash> Hash for List<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'l, T> IntoIterator for &'l List<T> {
    type Item = &'l T;
    type IntoIter = slice::Iter<'l, T>;

    fn into_iter(self) -> slice::Iter<'l, T> {
        self.iter()
    }
}

impl<T> Table<T> {
    /// Bytes of its items, without pieces that were already counted
    /// ([`List::bytes_unless`]).
    pub(crate) fn bytes_unless(&self, seen: &mut FxHashSet<usize>) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.bytes_unless(seen)).sum();
        size_of_val(&*self.pieces) + pieces
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        let last = self.pieces.last().map_or(0, |piece| piece.len());
        self.pieces.len().saturating_sub(1) * PIECE + last
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The item at a position.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / PIECE)?.get(at % PIECE)
    }

    /// All items.
    pub fn iter(&self) -> Flatten<slice::Iter<'_, List<T>>> {
        self.pieces.iter().flatten()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { pieces: Box::default() }
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.pieces[at / PIECE][at % PIECE]
    }
}

impl<'t, T> IntoIterator for &'t Table<T> {
    type Item = &'t T;
    type IntoIter = Flatten<slice::Iter<'t, List<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Many short lists, stored one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lists<T> {
    /// The end of each list in `items`.
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { ends: Vec::new(), items: Vec::new() }
    }
}

impl<T> Lists<T> {
    /// The list at a position.
    pub fn get(&self, at: usize) -> &[T] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.items[start as usize..self.ends[at] as usize]
    }

    /// Adds a list of the items that `fill` appends.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut Vec<T>)) {
        fill(&mut self.items);
        self.ends.push(self.items.len() as u32);
    }

    /// The lists without memory for more.
    #[must_use]
    pub fn shrunk(mut self) -> Lists<T> {
        self.ends.shrink_to_fit();
        self.items.shrink_to_fit();
        self
    }

    /// All lists.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.ends.len()).map(|at| self.get(at))
    }
}

impl<T, L: IntoIterator<Item = T>> FromIterator<L> for Lists<T> {
    fn from_iter<I: IntoIterator<Item = L>>(lists: I) -> Lists<T> {
        let mut all = Lists::default();
        lists.into_iter().for_each(|list| all.push_with(|items| items.extend(list)));
        all.shrunk()
    }
}

/// The parts of all programs in use. The pool itself keeps none of them alive.
#[derive(Debug, Default)]
pub struct Pool {
    /// See [`super::Program::nodes`].
    pub nodes: Interner<Box<[Node]>>,
    /// See [`super::Program::steps`].
    pub steps: Interner<Box<[Step]>>,
    /// See [`super::Program::placements`].
    pub placements: Interner<Box<[Option<Placement>]>>,
    /// See [`super::Program::outputs`].
    pub outputs: Interner<Box<[Output]>>,
    /// See [`super::Program::needs`].
    pub needs: Interner<Needs>,
    /// See [`super::Program::baselines`].
    pub baselines: Interner<Box<[Baseline]>>,
    /// See [`super::Program::constants`].
    pub constants: Interner<Box<[u8]>>,
}

impl<T: Hash + Eq> Interner<Box<[T]>> {
    /// The list with these items, shared with equal lists in use.
    pub fn list(&self, items: impl Into<Box<[T]>>) -> List<T> {
        List(self.intern(items.into()))
    }

    /// The table with these items. Its pieces are shared with equal pieces in
    /// use.
    pub fn table(&self, items: Vec<T>) -> Table<T> {
        let mut items = items.into_iter();
        let piece = || {
            let piece: Box<[T]> = items.by_ref().take(PIECE).collect();
            (!piece.is_empty()).then(|| self.list(piece))
        };
        Table { pieces: std::iter::from_fn(piece).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_items_in_order() {
        let known = Interner::default();
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE] {
            let items: Vec<usize> = (0..length).map(|item| item * 7).collect();
            let table = known.table(items.clone());
            assert_eq!((table.len(), table.is_empty()), (length, length == 0));
            assert!(table.iter().eq(&items) && (&table).into_iter().eq(&items));
            assert!(items.iter().enumerate().all(|(at, item)| table[at] == *item));
            assert_eq!((table.get(length), table.get(usize::MAX)), (None, None));
        }
    }

    #[test]
    fn lists_are_apart_from_each_other() {
        let lists = Lists::from_iter([vec![1, 2], vec![], vec![3]]);
        assert!(lists.iter().eq([&[1, 2][..], &[], &[3]]));
        assert_eq!(Lists::<u32>::default().iter().count(), 0);
    }

    #[test]
    fn equal_pieces_are_there_once_and_as_long_as_they_are_used() {
        let known = Interner::default();
        let items: Vec<usize> = (0..10 * PIECE).collect();
        let one = known.table(items.clone());
        assert_eq!(known.count(), 10);
        let mut changed = items.clone();
        changed[3 * PIECE + 1] = 0;
        let (other, same) = (known.table(changed), known.table(items));
        assert_eq!(known.count(), 11);
        let shared = |other: &Table<usize>| {
            let pairs = one.pieces.iter().zip(&other.pieces);
            pairs.filter(|(one, other)| one.is(other)).count()
        };
        assert_eq!((shared(&other), shared(&same)), (9, 10));
        drop((one, same));
        assert_eq!(known.count(), 10);
        drop(other);
        assert_eq!(known.count(), 0);
    }
}
