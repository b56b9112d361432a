//! What lies so far from the time of a fetch that not all records up to there
//! can be remembered.
//!
//! In: the lanes for which it is unknown what ends their stretch on a side.
//! Out: their ends, all found in one pass over the records on that side, which
//! goes as far as it must, and of which nothing else is kept.

use crate::archive::interpolation::Interpolator;
use crate::archive::interpolation::coverage::{Coverage, Ordinal, Side};
use crate::archive::interpolation::track::{Cut, Found, Sources, Track};
use crate::archive::interpolation::value::looks_ahead;
use crate::archive::values::walk;
use crate::model::{MetricDesc, Semantics};
use crate::source::SourceError;

impl Interpolator {
    /// Finds what ends the stretches of all lanes that need to know it at a time.
    ///
    /// # Errors
    /// The files can no longer be opened, or not be read again.
    pub(super) fn look_far(&mut self, side: Side, cut: &Cut) -> Result<(), SourceError> {
        self.find_missing(side, cut)?;
        let Interpolator { coverage, far, tracks, domains, slots, found, scratch, missing, .. } =
            self;
        let far = match far {
            Some(far) => far,
            none => none.insert(Box::new(coverage.another()?)),
        };
        far.continue_from(coverage, side);
        while !missing.is_empty() {
            let record = far.extend(side);
            if let Some(mark) = far.first_mark(side) {
                end_all(missing, tracks, side, mark);
                break;
            }
            let Some((ordinal, record)) = record else {
                let end = match side {
                    Side::Ahead => Ordinal::MAX,
                    Side::Behind => Ordinal::MIN,
                };
                end_all(missing, tracks, side, end);
                break;
            };
            let time = far.record(ordinal).map_or(0.0, |record| record.time);
            found.clear();
            let is_wanted =
                |track: &usize| missing.binary_search_by_key(track, |one| one.0).is_ok();
            let bytes = far.bytes(side, &record).ok().filter(|bytes| {
                let walked = walk(bytes, record.first_set, record.set_count, |pmid, set| {
                    found.extend(slots.slot(pmid).filter(is_wanted).map(|track| (track, set)));
                });
                walked.is_ok()
            });
            let Some(bytes) = bytes else {
                // A gap, of which will be told when it is reached.
                end_all(missing, tracks, side, ordinal);
                break;
            };
            // Of two sets of one metric in a record the first with values counts.
            found.retain(|(_, set)| set.end - set.start > 8);
            found.sort_by_key(|(track, _)| *track);
            found.dedup_by_key(|(track, _)| *track);
            for (number, set) in found.drain(..) {
                let track = &mut tracks[number];
                let candidates = &mut domains[track.domain];
                let set = &bytes[set.start..set.end];
                let shape = track.shape_of(set, candidates, scratch);
                track.read_far(bytes, set);
                missing.retain(|(of, lane)| {
                    let position = candidates.position(shape, *lane as u32);
                    *of != number
                        || !position.is_some_and(|position| {
                            track.take_far((*lane, side), (ordinal, time), position)
                        })
                });
            }
            keep_outermost(far, side);
        }
        Ok(())
    }

    /// Collects the lanes of which more has to be known on a side.
    fn find_missing(&mut self, side: Side, cut: &Cut) -> Result<(), SourceError> {
        self.missing.clear();
        for number in self.wanted.iter().flatten().copied() {
            let track = &mut self.tracks[number];
            let MetricDesc { value_type, semantics, .. } = track.desc;
            let ahead = semantics != Semantics::Discrete || looks_ahead(value_type, &self.rules);
            let candidates = &self.domains[track.domain];
            for (lane, candidate) in candidates.lanes().iter().enumerate() {
                let (birth, death) = candidate.life;
                if !candidate.is_admitted || cut.time < birth || cut.time > death {
                    continue;
                }
                let reader = &mut self.reader;
                let mut sources = Sources { coverage: &self.coverage, candidates, reader };
                if let Found::Need(needed) = track.find(lane, cut, ahead, &mut sources)?
                    && needed == side
                {
                    self.missing.push((number, lane));
                }
            }
        }
        self.missing.sort_unstable();
        self.missing.dedup();
        Ok(())
    }
}

/// Ends the stretches of all lanes that are still looked for.
fn end_all(missing: &mut Vec<(usize, usize)>, tracks: &mut [Track], side: Side, at: Ordinal) {
    missing.drain(..).for_each(|(track, lane)| tracks[track].end_far((lane, side), at));
}

/// Forgets all records but the last one that was covered.
fn keep_outermost(far: &mut Coverage, side: Side) {
    match side {
        Side::Ahead => far.keep_from(far.end() - 1),
        Side::Behind => far.keep_up_to(far.first() + 1),
    }
}
