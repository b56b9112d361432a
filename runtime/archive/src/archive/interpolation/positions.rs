//! Positions of metrics, domains, lanes and shapes in the lists of an interpolator.

use pmderive_core::positions;

positions! {
    /// Position of a metric in [`Metrics::tracks`].
    ///
    /// [`Metrics::tracks`]: crate::archive::interpolation::metrics::Metrics::tracks
    pub(in crate::archive) TrackId;
    /// Position of an instance domain in [`Metrics::domains`].
    ///
    /// [`Metrics::domains`]: crate::archive::interpolation::metrics::Metrics::domains
    pub(in crate::archive) DomainId;
    /// Position of an instance in [`Candidates::lanes`], and in the lanes of each track
    /// of that domain.
    ///
    /// [`Candidates::lanes`]: crate::archive::interpolation::candidates::Candidates::lanes
    pub(in crate::archive) LaneId;
    /// Position of a list of instances among the shapes of a domain.
    pub(in crate::archive) ShapeId;
}

impl LaneId {
    /// The lanes of a domain that has this many.
    pub(super) fn first(count: usize) -> impl Iterator<Item = LaneId> {
        (0..LaneId::at(count).0).map(LaneId)
    }
}

impl ShapeId {
    /// The shape without lanes, which every domain has.
    pub(super) const NO_LANES: ShapeId = ShapeId(0);
    /// The only other shape of metrics without a domain.
    pub(super) const SINGULAR: ShapeId = ShapeId(1);
}
