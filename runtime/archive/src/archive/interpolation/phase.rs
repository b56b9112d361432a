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
    /// counts. `goes_on` is false if no record was found after the damage.
    Stopped { last: Option<f64>, goes_on: bool },
}

impl Phase {
    /// Time of the last fetch, if it counts.
    pub(super) fn last(&self) -> Option<f64> {
        match self {
            Phase::Beginning => None,
            Phase::Continuing { last, .. } => Some(*last),
            Phase::Stopped { last, .. } => *last,
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

    /// Continues after damage. `None` if there was none; otherwise whether records
    /// follow it.
    pub(super) fn pass(&mut self) -> Option<bool> {
        let Phase::Stopped { last, goes_on } = *self else { return None };
        *self = match last {
            Some(last) => Phase::Continuing { last, written: None },
            None => Phase::Beginning,
        };
        Some(goes_on)
    }
}
