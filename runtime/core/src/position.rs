//! Positions in lists, and lists that accept only positions of their own kind. Each
//! kind of list has its own type of position, so the compiler refuses the position of
//! another list.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut, Range};
use std::slice;

/// A position in lists of one kind. [`positions!`](crate::positions) makes such types.
pub trait Position: Copy {
    /// The position as an index.
    fn index(self) -> usize;

    /// The position with an index. No list is long enough to exceed it.
    fn at(index: usize) -> Self;
}

/// Makes types of positions, each with its visibility and a comment that names its list.
///
/// ```
/// pmderive_core::positions! {
///     /// Position of a disk.
///     pub DiskId;
/// }
/// assert_eq!(DiskId::at(3).index(), 3);
/// ```
#[macro_export]
macro_rules! positions {
    ($($(#[doc = $doc:literal])* $visible:vis $name:ident;)*) => {
        $($(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible struct $name($visible u32);

        impl $name {
            /// The position as an index into its list.
            #[allow(dead_code)]
            $visible const fn index(self) -> usize {
                self.0 as usize
            }

            /// The position with an index. No list is long enough to exceed it.
            #[allow(dead_code)]
            $visible const fn at(index: usize) -> $name {
                $name(if index > u32::MAX as usize { u32::MAX } else { index as u32 })
            }

            /// The previous position. `None` for the first one.
            #[allow(dead_code)]
            $visible fn previous(self) -> Option<$name> {
                self.0.checked_sub(1).map($name)
            }
        }

        impl $crate::position::Position for $name {
            fn index(self) -> usize {
                $name::index(self)
            }

            fn at(index: usize) -> $name {
                $name::at(index)
            }
        })*
    };
}

/// A value for each position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Per<P, T> {
    values: Vec<T>,
    of: PhantomData<fn(P)>,
}

impl<P: Position, T> Per<P, T> {
    /// The same value at as many positions.
    pub fn all(count: usize, value: T) -> Per<P, T>
    where
        T: Clone,
    {
        Per::from(vec![value; count])
    }

    /// Adds a value, and returns its position.
    pub fn push(&mut self, value: T) -> P {
        self.values.push(value);
        P::at(self.values.len() - 1)
    }

    /// The value at a position. `None` beyond the end.
    pub fn get(&self, at: P) -> Option<&T> {
        self.values.get(at.index())
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, at: P) -> Option<&mut T> {
        self.values.get_mut(at.index())
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, in their order.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.values.iter()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, T> {
        self.values.iter_mut()
    }

    /// The values with their positions.
    pub fn enumerate(
        &self,
    ) -> impl DoubleEndedIterator<Item = (P, &T)> + ExactSizeIterator + Clone {
        self.iter().enumerate().map(|(at, value)| (P::at(at), value))
    }

    /// The values of a range of positions.
    pub fn range(&self, range: &Range<P>) -> &[T] {
        &self.values[range.start.index()..range.end.index()]
    }

    /// The positions.
    pub fn positions(&self) -> impl DoubleEndedIterator<Item = P> + ExactSizeIterator + use<P, T> {
        (0..self.len()).map(P::at)
    }

    /// The position of the first value for which that is true.
    pub fn position(&self, is_it: impl FnMut(&T) -> bool) -> Option<P> {
        self.iter().position(is_it).map(P::at)
    }

    /// The position of the value for which `order` gives `Equal`, in ascending values.
    ///
    /// # Errors
    /// There is no such value. The error is the position to insert it at.
    pub fn binary_search_by(&self, order: impl FnMut(&T) -> Ordering) -> Result<P, P> {
        self.values.binary_search_by(order).map(P::at).map_err(P::at)
    }

    /// Changes the number of values: drops some at the end, or adds results of `make`.
    pub fn resize_with(&mut self, count: usize, make: impl FnMut() -> T) {
        self.values.resize_with(count, make);
    }
}

impl<P, T> Default for Per<P, T> {
    fn default() -> Per<P, T> {
        Per { values: Vec::new(), of: PhantomData }
    }
}

impl<P, T> From<Vec<T>> for Per<P, T> {
    fn from(values: Vec<T>) -> Per<P, T> {
        Per { values, of: PhantomData }
    }
}

impl<P, T, const N: usize> From<[T; N]> for Per<P, T> {
    fn from(values: [T; N]) -> Per<P, T> {
        Per::from(Vec::from(values))
    }
}

impl<P: Position, T> Index<P> for Per<P, T> {
    type Output = T;

    fn index(&self, at: P) -> &T {
        &self.values[at.index()]
    }
}

impl<P: Position, T> IndexMut<P> for Per<P, T> {
    fn index_mut(&mut self, at: P) -> &mut T {
        &mut self.values[at.index()]
    }
}

impl<P, T> FromIterator<T> for Per<P, T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Per<P, T> {
        Per::from(Vec::from_iter(values))
    }
}

impl<P, T> IntoIterator for Per<P, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter()
    }
}

impl<'p, P, T> IntoIterator for &'p Per<P, T> {
    type Item = &'p T;
    type IntoIter = slice::Iter<'p, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}
