//! Finds values that are too far from the time of a fetch to remember all records up to
//! them.
//!
//! Input: the lanes whose end on a side is unknown. Output: these ends. One pass over
//! the records on that side finds all of them; it goes only as far as needed and
//! remembers nothing else.
//!
//! If instances leave for good, each of them would need a pass over the rest of the
//! archive. So once a pass found nothing, the next pass notes the last occurrence of every lane (a
//! [`Census`]).

use pmderive_core::model::{MetricDesc, Semantics};
use pmderive_core::source::SourceError;

use crate::archive::interpolation::Interpolator;
use crate::archive::interpolation::candidates::Candidates;
use crate::archive::interpolation::coverage::{Coverage, Ordinal, Side};
use crate::archive::interpolation::lane::{Cut, End};
use crate::archive::interpolation::metrics::Metrics;
use crate::archive::interpolation::positions::{LaneId, TrackId};
use crate::archive::interpolation::track::{Search, Track};
use crate::archive::interpolation::value::looks_ahead;
use crate::archive::values::walk;

/// The results of looking beyond the covered records.
#[derive(Default)]
pub(super) struct FarSearch {
    /// Reads those records. Present once it was needed.
    coverage: Option<Box<Coverage>>,
    /// The lanes to find.
    missing: Vec<(TrackId, LaneId)>,
    /// A pass has looked for a value that does not exist.
    was_in_vain: bool,
    /// The last occurrences, which save further such passes.
    census: Option<Census>,
    /// Number of records looked at.
    #[cfg(test)]
    pub(super) passed: usize,
}

impl FarSearch {
    /// Forgets the last occurrences.
    pub(super) fn forget(&mut self) {
        (self.census, self.was_in_vain) = (None, false);
    }

    /// Extends the finished census, or the one in progress, towards the present
    /// time. A new one is begun only after a pass that found nothing.
    fn begin_census(
        &mut self,
        side: Side,
        at: Ordinal,
        tracks: &mut [Track],
        domains: &[Candidates],
    ) -> (Option<Census>, Option<Growing>) {
        match self.census.take() {
            Some(census) if census.covers(side, at) => {
                census.end_departed(at, &mut self.missing, tracks);
                (Some(census), None)
            }
            Some(census) if census.lies_beyond(side, at) => {
                (None, Some(Growing { census, is_new: false }))
            }
            _ if self.was_in_vain => {
                let census = Census::new(side, at, tracks, domains);
                (None, Some(Growing { census, is_new: true }))
            }
            _ => (None, None),
        }
    }

    /// Forgets everything, because the archive has grown.
    pub(super) fn renew(&mut self) {
        self.coverage = None;
        self.forget();
    }
}

/// The last occurrence of every lane on a side, up to the mark or the end of the
/// archive there.
struct Census {
    side: Side,
    /// The first record that was looked at, and the record at the end.
    from: Ordinal,
    end: Ordinal,
    /// For each track and lane, the last record with a value of it; `None` if there is
    /// none.
    last: Vec<Vec<Option<Ordinal>>>,
}

impl Census {
    fn new(side: Side, from: Ordinal, tracks: &[Track], domains: &[Candidates]) -> Census {
        let lanes = |track: &Track| vec![None; domains[track.domain.index()].lanes().len()];
        Census { side, from, end: from, last: tracks.iter().map(lanes).collect() }
    }

    /// True if the census knows all values from `record` on.
    fn covers(&self, side: Side, record: Ordinal) -> bool {
        let (from, end) = (self.from.min(self.end), self.from.max(self.end));
        self.side == side && (from..=end).contains(&record)
    }

    /// True if the census would know all values from `record` on if it had begun
    /// earlier.
    fn lies_beyond(&self, side: Side, record: Ordinal) -> bool {
        self.side == side && side.is_nearer(record, self.from)
    }

    /// True if the census shows that a lane has no value from `record` on.
    fn is_over(&self, (track, lane): (TrackId, LaneId), record: Ordinal) -> bool {
        let last = self.last.get(track.index()).and_then(|lanes| lanes.get(lane.index()));
        let is_nearer = |last: Ordinal| self.side.is_nearer(last, record);
        self.covers(self.side, record) && last.is_some_and(|last| last.is_none_or(is_nearer))
    }

    /// Ends the stretches of the lanes that have no value from `record` on according
    /// to the census, and removes them from `missing`.
    fn end_departed(
        &self,
        record: Ordinal,
        missing: &mut Vec<(TrackId, LaneId)>,
        tracks: &mut [Track],
    ) {
        missing.retain(|(track, lane)| {
            let is_over = self.is_over((*track, *lane), record);
            if is_over {
                tracks[track.index()].end_far((*lane, self.side), End::nothing(self.end));
            }
            !is_over
        });
    }
}

/// A census in progress. It is a new one, or a known one that is extended by the
/// records in front of it.
struct Growing {
    census: Census,
    is_new: bool,
}

impl Growing {
    fn note(&mut self, track: TrackId, lanes: impl Iterator<Item = LaneId>, record: Ordinal) {
        let Growing { census: Census { side, from, last, .. }, is_new } = self;
        for lane in lanes {
            let last = &mut last[track.index()][lane.index()];
            // A known last occurrence is farther away, so it stays.
            if *is_new || last.is_none_or(|last| side.is_nearer(last, *from)) {
                *last = Some(record);
            }
        }
    }

    /// True if the census knows `record` and all records after it already.
    fn has_met(&self, record: Ordinal) -> bool {
        !self.is_new && !self.census.side.is_nearer(record, self.census.from)
    }
}

impl Interpolator {
    /// Finds the ends of all lanes that need one at the time of `cut`.
    ///
    /// # Errors
    /// The files can no longer be opened or read.
    pub(super) fn look_far(&mut self, side: Side, cut: &Cut) -> Result<(), SourceError> {
        self.find_missing(side, cut)?;
        let at = self.coverage.beyond(side);
        let Interpolator { coverage, far, columns, metrics, .. } = self;
        let Metrics { tracks, domains, slots, found, scratch, .. } = metrics;
        let (mut known, mut growing) = far.begin_census(side, at, tracks, domains);
        let FarSearch { missing, was_in_vain, census, .. } = far;
        #[cfg(test)]
        let passed = &mut far.passed;
        let far = match &mut far.coverage {
            Some(far) => far,
            none => none.insert(Box::new(coverage.another()?)),
        };
        far.continue_from(coverage, side);
        let mut end = None;
        while !missing.is_empty() || growing.is_some() {
            let record = far.extend(side);
            #[cfg(test)]
            {
                *passed += 1;
            }
            if let Some(mark) = far.first_mark(side) {
                end = Some(mark);
                break;
            }
            let Some((ordinal, record)) = record else {
                end = Some(match side {
                    Side::Ahead => Ordinal::MAX,
                    Side::Behind => Ordinal::MIN,
                });
                break;
            };
            if let Some(Growing { census, .. }) = growing.take_if(|one| one.has_met(ordinal)) {
                let census = Census { from: at, ..census };
                census.end_departed(at, missing, tracks);
                known = Some(census);
                if missing.is_empty() {
                    break;
                }
            }
            let time = far.record(ordinal).map_or(0.0, |record| record.time);
            found.clear();
            let is_wanted = |track: &TrackId| {
                growing.is_some() || missing.binary_search_by_key(track, |one| one.0).is_ok()
            };
            let bytes = far.bytes(side, &record).ok().filter(|bytes| {
                let walked = walk(bytes, record.first_set, record.set_count, |pmid, set| {
                    let track = slots.slot(pmid).map(TrackId::at).filter(is_wanted);
                    found.extend(track.map(|track| (track, set)));
                });
                walked.is_ok()
            });
            let Some(bytes) = bytes else {
                // The damage is a gap. It is reported when time reaches it.
                end = Some(ordinal);
                break;
            };
            // If a record has two sets of a metric, the last one with values counts.
            found.retain(|(_, set)| set.end - set.start > 8);
            found.reverse();
            found.sort_by_key(|(track, _)| *track);
            found.dedup_by_key(|(track, _)| *track);
            for (id, set) in found.drain(..) {
                let track = &mut tracks[id.index()];
                let candidates = &mut domains[track.domain.index()];
                let set = &bytes[set.start..set.end];
                let shape = track.shape_of(set, candidates, scratch);
                if let Some(growing) = &mut growing {
                    growing.note(id, candidates.lanes_of(shape), ordinal);
                }
                if missing.binary_search_by_key(&id, |one| one.0).is_err() {
                    continue;
                }
                let column = columns.spare();
                track.decode(column, bytes, set);
                missing.retain(|(of, lane)| {
                    let position = candidates.position(shape, *lane);
                    *of != id
                        || !position.is_some_and(|position| {
                            track.take_far(column, (*lane, side), (ordinal, time), position)
                        })
                });
            }
            keep_outermost(far, side);
        }
        if let Some(end) = end {
            *was_in_vain |= !missing.is_empty();
            for (track, lane) in missing.drain(..) {
                tracks[track.index()].end_far((lane, side), End::nothing(end));
            }
            // A census that should have been extended but did not reach its known part
            // is useless.
            if let Some(Growing { census, is_new: true, .. }) = growing {
                known = Some(Census { end, ..census });
            }
        }
        *census = known;
        Ok(())
    }

    /// Collects the lanes that lack an end on `side`.
    fn find_missing(&mut self, side: Side, cut: &Cut) -> Result<(), SourceError> {
        let mut missing = std::mem::take(&mut self.far.missing);
        missing.clear();
        for at in 0..self.metrics.wanted.len() {
            let Ok(id) = self.metrics.wanted[at] else { continue };
            let Track { desc: MetricDesc { value_type, semantics, .. }, domain, .. } =
                *self.metrics.track(id);
            let ahead = semantics != Semantics::Discrete || looks_ahead(value_type, &self.rules);
            for at in 0..self.metrics.domains[domain.index()].move_to(cut.time).lanes().len() {
                let lane = self.metrics.domain(domain).present()[at];
                let search = self.search((id, lane), cut, ahead)?;
                if matches!(search, Search::Lacks(needed) if needed == side) {
                    missing.push((id, lane));
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        self.far.missing = missing;
        Ok(())
    }
}

/// Forgets all records except the one covered last.
fn keep_outermost(far: &mut Coverage, side: Side) {
    match side {
        Side::Ahead => far.keep_from(far.end() - 1),
        Side::Behind => far.keep_up_to(far.first() + 1),
    }
}
