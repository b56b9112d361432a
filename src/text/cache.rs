//! Cache of results by text, for texts that are read again and again while a user edits them.
//! Most lines stay the same, so their results are in the cache.
//!
//! The caller tells when a reading begins and ends. At the end the cache drops the results that
//! the reading did not use.

use rustc_hash::FxHashMap;

/// Cache of results by text.
#[derive(Clone, Debug)]
pub struct Remembered<T> {
    /// Boxed, so that free places of the table are small.
    results: FxHashMap<Box<str>, Box<Entry<T>>>,
    /// Number of the reading.
    reading: u32,
    /// Number of all results computed.
    computed: usize,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    result: T,
    /// Number of the last reading that used it.
    used: u32,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Remembered { results: FxHashMap::default(), reading: 0, computed: 0 }
    }
}

impl<T> Remembered<T> {
    /// The result for a text. It is computed if the cache lacks it, or if it does not satisfy
    /// `fits`.
    pub fn get(
        &mut self,
        text: &str,
        fits: impl FnOnce(&T) -> bool,
        compute: impl FnOnce() -> T,
    ) -> &mut T {
        let reading = self.reading;
        if !self.results.get(text).is_some_and(|entry| fits(&entry.result)) {
            self.computed += 1;
            let entry = Entry { result: compute(), used: reading };
            self.results.insert(text.into(), Box::new(entry));
        }
        let entry = self.results.get_mut(text).expect("it is there or was put there");
        entry.used = reading;
        &mut entry.result
    }

    /// The result for a text, if the cache has it.
    pub fn known(&mut self, text: &str) -> Option<&T> {
        let entry = self.results.get_mut(text)?;
        entry.used = self.reading;
        Some(&entry.result)
    }

    /// Ends a reading and drops the results that it did not use.
    pub fn end_reading(&mut self) {
        let Remembered { results, reading, .. } = self;
        results.retain(|_, entry| entry.used == *reading);
        // After a much longer text the table shrinks.
        if results.capacity() > 4 * results.len() {
            results.shrink_to_fit();
        }
        *reading = reading.wrapping_add(1);
    }

    /// Number of all results computed, for tests.
    pub fn computed(&self) -> usize {
        self.computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reading_did_not_use_is_dropped() {
        let mut lengths = Remembered::default();
        for (lines, computed) in [(&["a", "bb", "a"][..], 2), (&["bb", "c"], 3), (&["a"], 4)] {
            for line in lines {
                assert_eq!(*lengths.get(line, |_| true, || line.len()), line.len());
            }
            lengths.end_reading();
            assert_eq!(lengths.computed(), computed, "{lines:?}");
        }
        lengths.get("a", |length| *length > 1, || 2);
        assert_eq!(lengths.computed(), 5, "it did not fit");
        assert_eq!(lengths.known("a"), Some(&2));
        assert_eq!(lengths.known("c"), None);
    }

    #[test]
    fn memory_is_given_back() {
        let mut numbers = Remembered::default();
        for (from, to) in [(0, 100), (0, 90), (0, 95), (3, 6), (4, 50), (49, 50), (0, 0), (1, 9)] {
            for number in from..to {
                let (text, right) = (number.to_string(), |found: &i32| *found == number);
                assert_eq!(*numbers.get(&text, right, || number), number);
            }
            numbers.end_reading();
            let count = usize::try_from(to - from).expect("not less than nothing");
            assert_eq!(numbers.results.len(), count);
            // The smallest table that is not empty has three places.
            let room = numbers.results.capacity();
            assert!(room <= 4 * count.max(1), "{room} for {count}");
            for number in from..to {
                assert_eq!(numbers.known(&number.to_string()), Some(&number));
            }
            numbers.end_reading();
        }
    }
}
