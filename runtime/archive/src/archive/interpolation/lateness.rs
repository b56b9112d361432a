//! Values that libpcp delivers too late.
//!
//! libpcp up to 6.3.1 keeps the records on both sides of a time. If the next time is that of the
//! later one, it reads nothing, and takes a value that is not a number from the earlier one. If it
//! has to read on for any value of the list, it meets the record of the time, and takes that.
//!
//! Input: the last time and the present one. Output: whether nothing is read in between, and the
//! contents of earlier values.

use std::ops::Range;

use crate::archive::interpolation::Interpolator;
use crate::archive::interpolation::candidates::Candidates;
use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::lane::Cut;
use crate::archive::interpolation::positions::LaneId;
use crate::archive::interpolation::rules::Neighbour;
use crate::archive::interpolation::track::Track;
use crate::archive::interpolation::value::is_number;
use crate::archive::order::Travel;

impl Interpolator {
    /// True if values that are not numbers come from the record before that of the time.
    pub(super) fn is_late(&mut self, cut: &Cut, is_crossed: bool) -> bool {
        let Some(last) = self.phase.last() else { return false };
        if self.rules.neighbour != Neighbour::Earlier
            || cut.from == cut.after
            || is_crossed
            || last >= cut.time
            || self.coverage.travel() != Travel::Forward
            || !self.metrics.wanted_tracks().any(|track| !is_number(track.desc.value_type))
        {
            return false;
        }
        let passed = self.coverage.from(last)..cut.from;
        // Records that are forgotten were passed.
        if passed.start == self.coverage.first() {
            return false;
        }
        self.metrics.wanted.iter().flatten().all(|id| {
            let track = &mut self.metrics.tracks[id.index()];
            let candidates = &mut self.metrics.domains[track.domain.index()];
            candidates.move_to(cut.time);
            !track.reads_on(passed.clone(), cut, candidates)
        })
    }
}

impl Track {
    /// True if libpcp reads records for this metric on its way to a time, over the records that
    /// time has `passed` since the last fetch.
    fn reads_on(&mut self, passed: Range<Ordinal>, cut: &Cut, candidates: &Candidates) -> bool {
        if self.any_in(passed, candidates, |_| true) {
            return true;
        }
        let mut befores = candidates.present().iter().map(|lane| self.lanes.get(*lane).before);
        // It always looks for instances without any earlier value.
        if befores.any(|end| end.is_unknown() || end.record() == Ordinal::MIN) {
            return true;
        }
        // Behind a mark it looks for the value after the first one.
        let is_first = |lane: &LaneId| !self.lanes.get(*lane).before.is_value();
        let firsts: Vec<LaneId> = candidates.present().iter().copied().filter(is_first).collect();
        let is_there = |lane| firsts.binary_search(&lane).is_ok();
        !firsts.is_empty() && self.any_in(cut.from..cut.after, candidates, is_there)
    }

    /// True if one of these records has a value that counts, of a lane that `is_meant`.
    fn any_in(
        &mut self,
        records: Range<Ordinal>,
        candidates: &Candidates,
        is_meant: impl Fn(LaneId) -> bool,
    ) -> bool {
        let first = self.occurrences.position(&records, Side::Ahead);
        (first..)
            .map_while(|at| self.occurrences.get(at, Side::Ahead))
            .take_while(|one| records.contains(&one.record))
            .flat_map(|one| candidates.lanes_of(one.shape))
            .any(|lane| is_meant(lane) && candidates.present().binary_search(&lane).is_ok())
    }

    /// Takes the contents of the value before the last time. False if there is none.
    pub(super) fn take_before(&self, lane: LaneId, contents: &mut Vec<u8>) -> bool {
        contents.clear();
        let is_text = !is_number(self.desc.value_type) && self.lanes.get(lane).before.is_value();
        if is_text {
            contents.extend_from_slice(self.text(lane, Side::Behind));
        }
        is_text
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pmderive_core::model::{Timestamp, Value, ValueType};
    use pmderive_core::result::{FetchResult, ResultBatch};
    use pmderive_core::source::{FetchList, FetchSource, MetadataSource, Mode};

    use super::*;
    use crate::archive::{ArchiveContext, InterpolationRules};

    /// The first string of `a.str` at times from 2.75 seconds on, with those of pmval of PCP 6.0.3.
    /// There is a record in each second.
    #[test]
    fn strings_come_late_if_nothing_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/archives/own-types");
        for (neighbour, step, expected) in [
            (Neighbour::Earlier, 250, ["v0-2", "v0-2", "v0-3", "v0-3", "v0-3", "v0-3"]),
            (Neighbour::Earlier, 750, ["v0-2", "v0-3", "v0-4", "v0-4", "v0-5", "v0-6"]),
            (Neighbour::Earlier, 1250, ["v0-2", "v0-4", "v0-5", "v0-6", "v0-7", "v0-9"]),
            (Neighbour::Nearer, 250, ["v0-2", "v0-3", "v0-3", "v0-3", "v0-3", "v0-4"]),
        ] {
            let mut context = ArchiveContext::open(&path).expect("a good archive");
            let rules = context.interpolation_rules();
            context.set_interpolation_rules(InterpolationRules { neighbour, ..rules });
            let pmids = context.lookup_names(&["a.str"]).expect("it knows the name");
            let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
            let begin = Timestamp::new(context.label().start.sec + 2, 750_000_000);
            let mode = Mode::Interpolated { step: step * 1_000_000 };
            context.set_mode(mode, Some(begin)).expect("archives have it");
            let mut batch = ResultBatch::default();
            let found = [(); 6].map(|()| {
                context.fetch(&list, &mut batch).expect("it is within the archive");
                let result = FetchResult::of_batch(&batch, Default::default());
                let values = result.sets[0].outcome.as_ref().expect("it has values");
                let one = values.iter().find(|one| one.instance == 0).expect("a0 is there");
                match one.value.extract(ValueType::String, ValueType::String) {
                    Ok(Value::Text(text)) => text.to_string(),
                    other => format!("{other:?}"),
                }
            });
            assert_eq!(found, expected.map(str::to_owned), "{neighbour:?} {step}");
        }
    }
}
