//! A map whose clones are cheap and do not change with it.
//!
//! Entries stand in layers, each a map that is never changed once a clone
//! shares it. A new entry is a layer of its own; layers of like size are
//! merged, so that there are few, and that entering many costs little more
//! than entering each in one map, clones in between or not.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Entries by their keys; a clone is cheap and stays as it is. Entries are
/// replaced, never taken out: a value can say that there is none.
#[derive(Clone, Debug)]
pub struct Layers<K, V> {
    /// The largest and oldest first; each has more entries than all after it.
    layers: Vec<Arc<FxHashMap<K, V>>>,
}

impl<K, V> Default for Layers<K, V> {
    fn default() -> Self {
        Layers { layers: Vec::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Layers<K, V> {
    /// The value entered last under a key.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.layers.iter().rev().find_map(|layer| layer.get(key))
    }

    /// Enters a value, in place of one that the key had.
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

    /// All keys with the values entered last, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.layers.iter().flat_map(|layer| layer.iter());
        entries.filter(|(key, value)| self.get(*key).is_some_and(|now| std::ptr::eq(now, *value)))
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
            // As when a context looks at the definitions now and then.
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
