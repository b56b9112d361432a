//! What was written for one fetch, as long as only numbers change.
//!
//! In: a time at which for every metric of a list the same would be found. Out:
//! the part that was written before, with the numbers of that time. How they
//! come about is known to [`Steady`](super::steady::Steady).

use crate::archive::interpolation::rules::InterpolationRules;
use crate::archive::interpolation::steady::Stretch;
use crate::archive::interpolation::track::{Cut, Track};
use crate::archive::interpolation::value::Rule;
use crate::archive::interpolation::writer::NumberPlace;
use crate::model::Timestamp;
use crate::result::{LayoutId, ResultBatch, ResultPart};

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

    /// Begins anew, without value sets.
    pub(super) fn begin(&mut self) {
        self.stretch = Stretch::ALL;
        self.sets.clear();
    }

    /// Adds the value set of a track, which was written to a place among the sets.
    pub(super) fn add(&mut self, number: usize, track: &Track, place: NumberPlace) {
        self.stretch = self.stretch.and(track.steady.stretch());
        self.sets.push((number, place));
    }

    /// Takes over the part that was written, with the sets behind its blocks.
    pub(super) fn finish(&mut self, cut: &Cut, part: &mut ResultPart) {
        if !self.stretch.holds(cut) {
            return self.forget();
        }
        self.sets.iter_mut().for_each(|(_, place)| place.move_behind(part.first_set));
        self.layout = LayoutId::fresh();
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
            let Track { desc, steady, .. } = &tracks[*track];
            let rule = Rule::of(desc.value_type, desc.semantics, rules);
            let rule = (desc.value_type, rule);
            steady.overwrite(rule, rules, cut.time, (place, &mut part.bytes));
        }
        true
    }
}
