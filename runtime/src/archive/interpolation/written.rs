//! What was written for one fetch, as long as only numbers change.
//!
//! In: a time at which for every metric of a list the same would be found. Out:
//! the part that was written before, with the numbers of that time. How they
//! come about is known to [`Steady`](super::steady::Steady).

use crate::archive::interpolation::rules::InterpolationRules;
use crate::archive::interpolation::steady::Stretch;
use crate::archive::interpolation::track::{Cut, Track};
use crate::model::{PmStatus, Timestamp};
use crate::result::{LayoutId, NumberPlace, ResultBatch, ResultPart};

/// The value sets of a list.
#[derive(Debug)]
pub(super) struct Written {
    layout: LayoutId,
    /// Where it holds; nowhere if there are values that are no numbers.
    stretch: Stretch,
    /// Of each metric that has values, its track and where these stand.
    sets: Vec<(usize, NumberPlace)>,
}

impl Default for Written {
    fn default() -> Written {
        Written { layout: LayoutId::fresh(), stretch: Stretch::NONE, sets: Vec::new() }
    }
}

impl Written {
    /// Holds nowhere any more.
    pub(super) fn forget(&mut self) {
        self.stretch = Stretch::NONE;
    }

    /// Takes over a part that was written with the value sets of tracks, or
    /// why a metric has none.
    pub(super) fn take(
        &mut self,
        (part, cut): (&mut ResultPart, &Cut),
        wanted: &[Result<usize, PmStatus>],
        tracks: &[Track],
    ) {
        self.forget();
        self.sets.clear();
        let mut stretch = Stretch::ALL;
        let mut sets = part.sets();
        for wanted in wanted {
            let offset = sets.offset();
            let Some(set) = sets.next() else { return };
            let Ok(track) = *wanted else { continue };
            let Track { desc, steady, .. } = &tracks[track];
            stretch = stretch.and(steady.stretch());
            if !stretch.holds(cut) {
                return;
            }
            if set.lanes().len() > 0 {
                let Some(place) = part.numbers(offset, &set, desc.value_type) else { return };
                self.sets.push((track, place));
            }
        }
        (self.stretch, self.layout) = (stretch, LayoutId::fresh());
        part.layout = Some(self.layout);
    }

    /// Adds the part with the values at another time, if that is all that
    /// differs. False, with nothing added, if it is not.
    pub(super) fn again(
        &self,
        (time, cut): (Timestamp, &Cut),
        tracks: &[Track],
        rules: &InterpolationRules,
        batch: &mut ResultBatch,
    ) -> bool {
        if !self.stretch.holds(cut) {
            return false;
        }
        let Some(part) = batch.add_part_again(self.layout) else { return false };
        part.timestamp = time;
        for (track, place) in &self.sets {
            tracks[*track].steady.overwrite(rules, cut.time, (place, &mut part.bytes));
        }
        true
    }
}
