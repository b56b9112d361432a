//! A table of shared values, found by their contents. It holds a value as long
//! as another owner uses it.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};

use crate::locks::lock;

use rustc_hash::FxHasher;

/// Shared values by a hash of their contents, as long as another owner uses
/// them. The caller tells apart values with the same hash.
#[derive(Debug)]
pub struct WeakTable<T> {
    by_hash: HashMap<u64, Vec<Weak<T>>>,
    /// Number of hashes at which unused entries are removed.
    crowded: usize,
}

/// A table with fewer entries is never cleaned.
const FEW: usize = 16;

impl<T> Default for WeakTable<T> {
    fn default() -> Self {
        WeakTable { by_hash: HashMap::new(), crowded: FEW }
    }
}

impl<T> WeakTable<T> {
    /// The value that `is_meant` accepts.
    pub fn find(&self, hash: u64, is_meant: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let mut known = self.by_hash.get(&hash).into_iter().flatten().filter_map(Weak::upgrade);
        known.find(|one| is_meant(one))
    }

    /// The value that `is_meant` accepts. If there is none, adds the value from
    /// `make`.
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

    /// Adds a value.
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

    /// The values in use.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.by_hash.values().flatten().filter_map(Weak::upgrade).collect()
    }

    /// Number of values in use.
    pub fn count(&self) -> usize {
        self.by_hash.values().flatten().filter(|one| one.strong_count() > 0).count()
    }
}

/// Finds equal values by all of their contents. Any number of threads may use
/// it.
#[derive(Debug)]
pub struct Interner<T>(Mutex<WeakTable<T>>);

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner(Mutex::default())
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The equal value if one is in use, otherwise this one.
    pub fn intern(&self, thing: T) -> Arc<T> {
        let mut hasher = FxHasher::default();
        thing.hash(&mut hasher);
        let mut table = lock(&self.0);
        if let Some(known) = table.find(hasher.finish(), |known| *known == thing) {
            return known;
        }
        let thing = Arc::new(thing);
        table.insert(hasher.finish(), &thing);
        thing
    }

    /// Number of values in use.
    pub fn count(&self) -> usize {
        lock(&self.0).count()
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
