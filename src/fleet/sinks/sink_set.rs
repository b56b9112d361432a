//! Sets of sinks, by their places.

use pmderive_runtime::positions;

use crate::fleet::config::MAX_SINKS;

positions! {
    /// Place of a sink. A sink keeps its place for as long as it goes on. In a plan that is not
    /// yet active the position in the configuration is the place
    /// ([`Plan::place_sinks`](crate::fleet::plan::Plan::place_sinks)).
    pub SinkPlace;
}

/// A set of sinks, and of the thread that computes over the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SinkSet(u64);

impl SinkSet {
    /// No sink.
    pub const NONE: SinkSet = SinkSet(0);

    /// All sinks, and the fleet's thread.
    pub const ALL: SinkSet = SinkSet(u64::MAX);

    /// The thread that computes over the fleet. It has a place behind all sinks.
    pub const FLEET: SinkSet = SinkSet(1 << MAX_SINKS);

    /// A single sink; none if there is no such place.
    pub const fn one(place: SinkPlace) -> SinkSet {
        SinkSet(if place.index() < MAX_SINKS { 1 << place.index() } else { 0 })
    }

    /// True if the set has a sink.
    pub fn contains(self, place: SinkPlace) -> bool {
        self.overlaps(SinkSet::one(place))
    }

    /// True if both sets have a sink in common.
    pub fn overlaps(self, other: SinkSet) -> bool {
        !self.common(other).is_empty()
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self == SinkSet::NONE
    }

    /// The sinks of either set.
    pub fn union(self, other: SinkSet) -> SinkSet {
        SinkSet(self.0 | other.0)
    }

    /// The sinks of both sets.
    pub fn common(self, other: SinkSet) -> SinkSet {
        SinkSet(self.0 & other.0)
    }

    /// The sinks that the other set lacks.
    pub fn without(self, other: SinkSet) -> SinkSet {
        SinkSet(self.0 & !other.0)
    }
}

impl FromIterator<SinkPlace> for SinkSet {
    fn from_iter<I: IntoIterator<Item = SinkPlace>>(places: I) -> SinkSet {
        places.into_iter().map(SinkSet::one).fold(SinkSet::NONE, SinkSet::union)
    }
}
