//! Results by the text that they follow from, for texts that are read again and
//! again while somebody changes them: what stands in most of their lines was
//! computed before.
//!
//! It does not know what the results are. Whoever keeps some says when a reading
//! begins and ends; what a reading did not use is dropped at its end.

use rustc_hash::FxHashMap;

/// Results by text.
#[derive(Clone, Debug)]
pub struct Remembered<T> {
    /// Places of results.
    places: FxHashMap<Box<str>, usize>,
    results: Vec<Kept<T>>,
    /// Places that nobody has any more.
    free: Vec<usize>,
    /// Number of the reading.
    reading: u32,
    /// How many results were computed in all.
    computed: usize,
}

#[derive(Clone, Debug)]
struct Kept<T> {
    result: T,
    /// The last reading that used it.
    used: u32,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        let (places, results, free) = Default::default();
        Remembered { places, results, free, reading: 0, computed: 0 }
    }
}

impl<T> Remembered<T> {
    /// The result for a text. It is computed if it is not there, or not `fits`.
    pub fn get(
        &mut self,
        text: &str,
        fits: impl FnOnce(&T) -> bool,
        compute: impl FnOnce() -> T,
    ) -> &mut T {
        let reading = self.reading;
        let place = match self.places.get(text).copied() {
            Some(place) => {
                if !fits(&self.results[place].result) {
                    self.computed += 1;
                    self.results[place].result = compute();
                }
                self.results[place].used = reading;
                place
            }
            None => {
                self.computed += 1;
                let kept = Kept { result: compute(), used: reading };
                let place = match self.free.pop() {
                    Some(place) => {
                        self.results[place] = kept;
                        place
                    }
                    None => {
                        self.results.push(kept);
                        self.results.len() - 1
                    }
                };
                self.places.insert(text.into(), place);
                place
            }
        };
        &mut self.results[place].result
    }

    /// The result for a text, if it is there.
    pub fn known(&mut self, text: &str) -> Option<&T> {
        let kept = &mut self.results[*self.places.get(text)?];
        kept.used = self.reading;
        Some(&kept.result)
    }

    /// Ends a reading: drops what it did not use. The memory of a dropped result is
    /// given back when its place is taken, or with everything.
    pub fn end_reading(&mut self) {
        let Remembered { places, results, free, reading, .. } = self;
        places.retain(|_, place| {
            let is_used = results[*place].used == *reading;
            if !is_used {
                free.push(*place);
            }
            is_used
        });
        // A text that was much longer leaves no memory behind.
        if free.len() > places.len() {
            let mut is_free = vec![false; results.len()];
            free.drain(..).for_each(|place| is_free[place] = true);
            let mut next = 0;
            let moved: Vec<usize> = is_free
                .iter()
                .map(|is_free| {
                    let place = next;
                    next += usize::from(!is_free);
                    place
                })
                .collect();
            let mut at = 0;
            results.retain(|_| {
                at += 1;
                !is_free[at - 1]
            });
            results.shrink_to_fit();
            places.values_mut().for_each(|place| *place = moved[*place]);
        }
        self.reading = reading.wrapping_add(1);
    }

    /// How many results were computed in all, for tests.
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
    fn places_are_taken_again_and_given_back() {
        let mut numbers = Remembered::default();
        for (from, to) in [(0, 100), (0, 90), (0, 95), (3, 6), (4, 50), (49, 50), (0, 0), (1, 9)] {
            for number in from..to {
                let (text, right) = (number.to_string(), |found: &i32| *found == number);
                assert_eq!(*numbers.get(&text, right, || number), number);
            }
            numbers.end_reading();
            let count = usize::try_from(to - from).expect("not less than nothing");
            assert_eq!(numbers.places.len(), count);
            assert!(numbers.results.len() <= 2 * count, "{}", numbers.results.len());
            for number in from..to {
                assert_eq!(numbers.known(&number.to_string()), Some(&number));
            }
            numbers.end_reading();
        }
    }
}
