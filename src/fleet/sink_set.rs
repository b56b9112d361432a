//! Which sinks want something: sets of their places. What sinks are is not known here.

use pmderive_runtime::positions;

use super::config::MAX_SINKS;

positions! {
    /// Place of a sink. It keeps its place for as long as it goes on. What is loaded and not
    /// yet in force has positions of the configuration instead
    /// ([`Plan::place_sinks`](super::plan::Plan::place_sinks)).
    pub SinkPlace;
}

/// Sinks, and what computes across hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SinkSet(u64);

impl SinkSet {
    /// No sink.
    pub const NONE: SinkSet = SinkSet(0);

    /// All sinks, and what computes across hosts.
    pub const ALL: SinkSet = SinkSet(u64::MAX);

    /// What computes across hosts. It has a place behind all sinks.
    pub const STAGE_TWO: SinkSet = SinkSet(1 << MAX_SINKS);

    /// A single sink. None, if there is no such place.
    pub const fn one(place: SinkPlace) -> SinkSet {
        SinkSet(if place.index() < MAX_SINKS { 1 << place.index() } else { 0 })
    }

    /// True if a sink is among them.
    pub fn contains(self, place: SinkPlace) -> bool {
        self.overlaps(SinkSet::one(place))
    }

    /// True if both have one in common.
    pub fn overlaps(self, other: SinkSet) -> bool {
        !self.common(other).is_empty()
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self == SinkSet::NONE
    }

    /// Those that are in either of them.
    pub fn union(self, other: SinkSet) -> SinkSet {
        SinkSet(self.0 | other.0)
    }

    /// Those that are in both.
    pub fn common(self, other: SinkSet) -> SinkSet {
        SinkSet(self.0 & other.0)
    }

    /// Those that are not in the other one.
    pub fn without(self, other: SinkSet) -> SinkSet {
        SinkSet(self.0 & !other.0)
    }
}

impl FromIterator<SinkPlace> for SinkSet {
    fn from_iter<I: IntoIterator<Item = SinkPlace>>(places: I) -> SinkSet {
        places.into_iter().map(SinkSet::one).fold(SinkSet::NONE, SinkSet::union)
    }
}
