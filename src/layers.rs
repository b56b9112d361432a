//! A map with cheap clones that later changes do not affect.
//!
//! Entries are in layers. A layer is a map that does not change while a clone
//! shares it. A new entry gets its own layer, and layers of similar size are
//! merged. So there are few layers, and adding many entries costs little more
//! than adding them to one map, with or without clones in between.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// Entries by key. A clone is cheap and does not change. Entries are replaced
/// but never removed: a value can mean "no entry".
#[derive(Clone, Debug)]
pub struct Layers<K, V> {
    /// Layers, the largest and oldest first. Each has more entries than all
    /// later ones together.
    layers: Vec<Arc<FxHashMap<K, V>>>,
}

impl<K, V> Default for Layers<K, V> {
    fn default() -> Self {
        Layers { layers: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Layers<K, V> {
    /// The last value for a key.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.layers.iter().rev().find_map(|layer| layer.get(key))
    }

    /// Adds a value, or replaces the one for its key.
    pub fn insert(&mut self, key: K, value: V) {
        match self.layers.last_mut().and_then(Arc::get_mut) {
            Some(own) => {
                own.insert(key, value);
            }
            None => self.layers.push(Arc::new(FxHashMap::from_iter([(key, value)]))),
        }
        while let [.., before, last] = &self.layers[..]
            && before.len() <= last.len()
            && let (Some(last), Some(before)) = (self.layers.pop(), self.layers.pop())
        {
            let mut merged = Arc::unwrap_or_clone(before);
            merged.extend(Arc::unwrap_or_clone(last));
            self.layers.push(Arc::new(merged));
        }
    }

    /// Makes room for this many more entries.
    pub fn reserve(&mut self, count: usize) {
        match self.layers.last_mut().and_then(Arc::get_mut) {
            Some(own) => own.reserve(count),
            None if count > 0 => {
                let own = FxHashMap::with_capacity_and_hasher(count, FxBuildHasher);
                self.layers.push(Arc::new(own));
            }
            None => {}
        }
    }

    /// All keys with their last values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.layers.iter().flat_map(|layer| layer.iter());
        let is_last = |key, value| self.get(key).is_some_and(|now| std::ptr::eq(now, value));
        entries.filter(move |(key, value)| self.layers.len() == 1 || is_last(*key, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(map: &Layers<u32, u32>) -> Vec<(u32, u32)> {
        let mut all: Vec<_> = map.iter().map(|(key, value)| (*key, *value)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn clones_stay_as_they_are() {
        let mut map = Layers::default();
        let mut clones = Vec::new();
        for key in 0..100 {
            clones.push(map.clone());
            map.reserve(key as usize % 3);
            map.insert(key % 70, key);
        }
        for (count, clone) in (0u32..).zip(&clones) {
            let expected: Vec<(u32, u32)> = (0..count.min(70))
                .map(|key| (key, if key + 70 < count { key + 70 } else { key }))
                .collect();
            assert_eq!(sorted(clone), expected, "before entry {count}");
            assert!(expected.iter().all(|(key, value)| clone.get(key) == Some(value)));
            assert_eq!(clone.get(&70), None);
        }
    }

    #[test]
    fn layers_are_few() {
        let mut map = Layers::default();
        let mut clone = map.clone();
        for key in 0..10_000u32 {
            map.insert(key, ());
            // The clone acts like a context that reads the definitions now and then.
            if key % 7 < 3 {
                clone = map.clone();
            }
            assert_eq!(clone.get(&key).is_some(), key % 7 < 3);
            let sizes: Vec<usize> = map.layers.iter().map(|layer| layer.len()).collect();
            assert!(sizes.windows(2).all(|pair| pair[0] > pair[1]), "{sizes:?}");
            assert!(sizes.len() <= 14, "{sizes:?}");
        }
    }
}
