//! The numbers of a column, in memory that all columns of a frame share: a frame of
//! a thousand metrics takes one allocation for its values.

use std::ops::Deref;
use std::sync::Arc;

/// Numbers as the bits of their type; those of 32 bits are in the low half.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    /// What the columns share; `None` where there is no number.
    shared: Option<Arc<[u64]>>,
    first: u32,
    count: u32,
}

impl Deref for Bits {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        let (first, count) = (self.first as usize, self.count as usize);
        self.shared.as_deref().map_or(&[], |shared| &shared[first..first + count])
    }
}

impl From<&[u64]> for Bits {
    fn from(bits: &[u64]) -> Bits {
        bits.iter().copied().collect()
    }
}

impl FromIterator<u64> for Bits {
    fn from_iter<I: IntoIterator<Item = u64>>(bits: I) -> Bits {
        let mut together = Together::default();
        let column = together.column(bits.into_iter());
        column.of(&together.share())
    }
}

/// Numbers of columns that are to share their memory.
#[derive(Debug, Default)]
pub struct Together(Vec<u64>);

/// The place of a column among those that share memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    first: u32,
    count: u32,
}

impl Together {
    /// Nothing yet, with room for so many numbers.
    pub fn with_room(count: usize) -> Together {
        Together(Vec::with_capacity(count))
    }

    /// Adds the numbers of a column. What is beyond 2^32 numbers is left out: no
    /// frame has as many, as a metric's instances are limited.
    pub fn column(&mut self, bits: impl Iterator<Item = u64>) -> Place {
        let first = self.0.len();
        self.0.extend(bits);
        match (u32::try_from(first), u32::try_from(self.0.len())) {
            (Ok(first), Ok(end)) => Place { first, count: end - first },
            _ => {
                self.0.truncate(first);
                Place::default()
            }
        }
    }

    /// All numbers, to be shared by their columns ([`Place::of`]).
    pub fn share(self) -> Arc<[u64]> {
        self.0.into()
    }
}

impl Place {
    /// The numbers of the column. `shared` is what [`Together::share`] gave.
    pub fn of(self, shared: &Arc<[u64]>) -> Bits {
        let Place { first, count } = self;
        let shared = (count > 0).then(|| Arc::clone(shared));
        Bits { shared, first, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_own_numbers() {
        let mut together = Together::with_room(3);
        let places = [&[1, 2][..], &[], &[3]].map(|bits| together.column(bits.iter().copied()));
        let shared = together.share();
        let columns = places.map(|place| place.of(&shared));
        assert_eq!(columns.each_ref().map(|bits| bits.to_vec()), [vec![1, 2], vec![], vec![3]]);
        assert!(columns[1].shared.is_none());
        assert_eq!(*Bits::from(&[4, 5][..]), [4, 5]);
        assert!(Bits::default().is_empty());
    }
}
