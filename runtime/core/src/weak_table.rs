//! A table of shared things that are found by what they are, for as long as
//! someone uses them.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::FxHasher;

/// Shared things by a hash of what they are, as long as someone uses them.
/// Things with the same hash are told apart by whoever looks for one.
#[derive(Debug)]
pub struct WeakTable<T> {
    by_hash: HashMap<u64, Vec<Weak<T>>>,
    /// Entries at which those that nobody uses are cleared away.
    crowded: usize,
}

/// Entries that are not worth clearing away.
const FEW: usize = 16;

impl<T> Default for WeakTable<T> {
    fn default() -> Self {
        WeakTable { by_hash: HashMap::new(), crowded: FEW }
    }
}

impl<T> WeakTable<T> {
    /// The thing that is meant.
    pub fn find(&self, hash: u64, is_meant: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let mut known = self.by_hash.get(&hash).into_iter().flatten().filter_map(Weak::upgrade);
        known.find(|one| is_meant(one))
    }

    /// The thing that is meant, or the one that `make` gives, which is entered.
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        is_meant: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        self.find(hash, is_meant).unwrap_or_else(|| {
            let made = make();
            self.insert(hash, &made);
            made
        })
    }

    /// Enters a thing.
    pub fn insert(&mut self, hash: u64, thing: &Arc<T>) {
        if self.by_hash.len() >= self.crowded {
            self.by_hash.retain(|_, list| {
                list.retain(|one| one.strong_count() > 0);
                !list.is_empty()
            });
            self.crowded = (self.by_hash.len() * 2).max(FEW);
        }
        let list = self.by_hash.entry(hash).or_default();
        list.retain(|one| one.strong_count() > 0);
        list.push(Arc::downgrade(thing));
    }

    /// The things that are in use.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.by_hash.values().flatten().filter_map(Weak::upgrade).collect()
    }

    /// How many things are in use.
    pub fn count(&self) -> usize {
        self.by_hash.values().flatten().filter(|one| one.strong_count() > 0).count()
    }
}

/// Things that are found by all that they hold, for any number of threads.
#[derive(Debug)]
pub struct Known<T>(Mutex<WeakTable<T>>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Known(Mutex::default())
    }
}

impl<T: Hash + Eq> Known<T> {
    /// The thing that equals this one, if someone uses one, or else this one.
    pub fn shared(&self, thing: T) -> Arc<T> {
        let mut hasher = FxHasher::default();
        thing.hash(&mut hasher);
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.find(hasher.finish(), |known| *known == thing) {
            return known;
        }
        let thing = Arc::new(thing);
        table.insert(hasher.finish(), &thing);
        thing
    }

    /// How many things are in use.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_found_and_nothing_else_is_kept() {
        let mut table = WeakTable::default();
        let mut get = |hash, value: u32| {
            table.find_or_insert(hash, |have| *have == value, || Arc::new(value))
        };
        let (one, other) = (get(1, 10), get(1, 11));
        assert!(Arc::ptr_eq(&one, &get(1, 10)) && Arc::ptr_eq(&other, &get(1, 11)));
        let former = Arc::downgrade(&one);
        drop(one);
        assert!(!former.ptr_eq(&Arc::downgrade(&get(1, 10))));
        for hash in 2..1000 {
            get(hash, 0);
        }
        assert_eq!(table.count(), 1);
        assert!(table.by_hash.len() <= FEW, "{}", table.by_hash.len());
    }
}
