//! The state of a series of fetches.
//!
//! Input: the outcome of each fetch. Output: the fetch that the next one follows, and the part of
//! its result that is still valid.

use crate::archive::interpolation::write::SteadyPart;

/// The fetch that the next one follows.
pub(super) enum Phase {
    /// No fetch: a series begins.
    Beginning,
    /// A fetch at a time, in seconds since the start of the archive.
    Continuing {
        last: f64,
        /// The part that it wrote, if another fetch may differ only in its
        /// numbers.
        written: Option<SteadyPart>,
    },
    /// A fetch that failed because of damage. The damage was reported, and the next
    /// fetch continues after it. `last` is the time of the fetch before that, if it
    /// counts.
    Stopped { last: Option<f64> },
}

impl Phase {
    /// Time of the last fetch, if it counts.
    pub(super) fn last(&self) -> Option<f64> {
        match self {
            Phase::Beginning => None,
            Phase::Continuing { last, .. } => Some(*last),
            Phase::Stopped { last } => *last,
        }
    }

    /// Takes the part that the last fetch wrote.
    pub(super) fn take_written(&mut self) -> Option<SteadyPart> {
        match self {
            Phase::Continuing { written, .. } => written.take(),
            Phase::Beginning | Phase::Stopped { .. } => None,
        }
    }

    /// Forgets the part that the last fetch wrote.
    pub(super) fn forget_written(&mut self) {
        self.take_written();
    }

    /// Continues after damage. True if there was any.
    pub(super) fn pass(&mut self) -> bool {
        let Phase::Stopped { last } = *self else { return false };
        *self = match last {
            Some(last) => Phase::Continuing { last, written: None },
            None => Phase::Beginning,
        };
        true
    }
}
