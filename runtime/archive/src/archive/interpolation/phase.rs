//! Where a series of fetches is.
//!
//! Input: how each fetch ended. Output: what the next one follows, and what of that
//! still holds. Values are not known here.

use crate::archive::interpolation::write::SteadyPart;

/// What a fetch follows.
pub(super) enum Phase {
    /// None that counts: time begins to pass with it.
    Beginning,
    /// One of a time, in seconds since the start of the archive.
    Continuing {
        last: f64,
        /// What it wrote, if another one may have nothing but other numbers.
        written: Option<SteadyPart>,
    },
    /// One that failed because of damage, which was told of once: the next one
    /// goes on behind it. The one before that was of a time, if it counts.
    Stopped { last: Option<f64> },
}

impl Phase {
    /// Time of the fetch before, while it counts.
    pub(super) fn last(&self) -> Option<f64> {
        match self {
            Phase::Beginning => None,
            Phase::Continuing { last, .. } => Some(*last),
            Phase::Stopped { last } => *last,
        }
    }

    /// What the fetch before wrote, while it holds.
    pub(super) fn written(&self) -> Option<&SteadyPart> {
        match self {
            Phase::Continuing { written, .. } => written.as_ref(),
            Phase::Beginning | Phase::Stopped { .. } => None,
        }
    }

    /// What the fetch before wrote holds no more.
    pub(super) fn forget_written(&mut self) {
        if let Phase::Continuing { written, .. } = self {
            *written = None;
        }
    }

    /// A fetch wrote the same as the one before, at another time.
    pub(super) fn go_on(&mut self, time: f64) {
        if let Phase::Continuing { last, .. } = self {
            *last = time;
        }
    }

    /// Goes on behind damage. True if it was in the way.
    pub(super) fn pass(&mut self) -> bool {
        let Phase::Stopped { last } = *self else { return false };
        *self = match last {
            Some(last) => Phase::Continuing { last, written: None },
            None => Phase::Beginning,
        };
        true
    }
}
