//! The Rust types of a fetch group's values, and the handles by which they are
//! read.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use pmderive_core::model::{Value, ValueType};

/// A type that a fetch group can deliver: a number, [`String`] for text, or
/// [`Value`] for the type of the metric or of the [`ItemSpec`].
///
/// [`ItemSpec`]: super::ItemSpec
pub trait Target: sealed::Sealed {
    /// The result of a read: a number, or a reference to a value in the group.
    type Read<'g>: Copy + fmt::Debug + PartialEq;

    /// The type to convert values to. `None`: the metric's own type.
    const VALUE_TYPE: Option<ValueType>;

    /// The value in this type. `None` for a value of another type.
    fn read(value: &Value) -> Option<Self::Read<'_>>;
}

mod sealed {
    /// Limits [`super::Target`] to the types of PCP.
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty = $variant:ident;)*) => {$(
        impl sealed::Sealed for $number {}

        impl Target for $number {
            type Read<'g> = $number;
            const VALUE_TYPE: Option<ValueType> = Some(ValueType::$variant);

            fn read(value: &Value) -> Option<$number> {
                if let Value::$variant(value) = value { Some(*value) } else { None }
            }
        }
    )*};
}

numbers! {
    i32 = I32;
    u32 = U32;
    i64 = I64;
    u64 = U64;
    f32 = F32;
    f64 = F64;
}

impl sealed::Sealed for String {}

impl Target for String {
    type Read<'g> = &'g str;
    const VALUE_TYPE: Option<ValueType> = Some(ValueType::String);

    fn read(value: &Value) -> Option<&str> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl sealed::Sealed for Value {}

impl Target for Value {
    type Read<'g> = &'g Value;
    const VALUE_TYPE: Option<ValueType> = None;

    fn read(value: &Value) -> Option<&Value> {
        Some(value)
    }
}

/// The group and the position of an entry in it. A cleared group counts as
/// another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) group: u64,
    pub(super) index: usize,
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name<T> {
            pub(super) place: Place,
            target: PhantomData<fn() -> T>,
        }

        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &$name<T>) -> bool {
                self.place == other.place
            }
        }

        impl<T> Eq for $name<T> {}

        impl<T> Hash for $name<T> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.place.hash(state);
            }
        }

        impl<T> $name<T> {
            pub(super) fn new(place: Place) -> $name<T> {
                $name { place, target: PhantomData }
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> Clone for $name<T> {
            fn clone(&self) -> $name<T> {
                *self
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.place.index).finish()
            }
        }
    )*};
}

handles! {
    /// Reads one value of a [`FetchGroup`](super::FetchGroup).
    Item;
    /// Reads the values of all instances of a metric in a
    /// [`FetchGroup`](super::FetchGroup).
    Instances;
    /// Reads the values of a field of event records in a
    /// [`FetchGroup`](super::FetchGroup).
    Events;
}
