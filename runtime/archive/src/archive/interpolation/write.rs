//! Writes the part of a fetch: for each metric, the values found for its lanes, or just
//! new numbers as long as the same would be found.
//!
//! Input: a time among the covered records. Output: columns. If the next fetch may
//! differ only in its numbers, their layout has an identity.

use pmderive_core::model::{MetricDesc, PmStatus, RawValueRef, Semantics, Timestamp, ValueType};
use pmderive_core::result::{LayoutId, ResultBatch, ResultWriter};
use pmderive_core::source::{FetchList, SourceError};

use crate::archive::interpolation::Interpolator;
use crate::archive::interpolation::coverage::Side;
use crate::archive::interpolation::lane::{Cut, Neighbours};
use crate::archive::interpolation::positions::TrackId;
use crate::archive::interpolation::steady::{SteadyLane, Stretch};
use crate::archive::interpolation::track::Track;
use crate::archive::interpolation::value::{Between, Rule, is_number, looks_ahead};

/// A part that was written. Another fetch may differ from it only in its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteadyPart {
    /// The layout of its columns.
    layout: LayoutId,
    /// The range where that is certain.
    stretch: Stretch,
}

impl Interpolator {
    /// Adds the part with all values of a list.
    pub(super) fn write(
        &mut self,
        list: &FetchList,
        (time, cut): (Timestamp, &Cut),
        is_crossed: bool,
        batch: &mut ResultBatch,
    ) -> Result<Option<SteadyPart>, SourceError> {
        let part = batch.add_part();
        let mut writer = ResultWriter::new(part, time);
        let mut is_steady = true;
        let is_late = self.is_late(cut, is_crossed);
        for (slot, pmid) in list.pmids().iter().enumerate() {
            match self.metrics.wanted[slot] {
                Err(status) => writer.status(*pmid, status),
                Ok(track) => {
                    writer.set(*pmid);
                    is_steady &= self.write_values(track, cut, is_crossed, is_late, &mut writer)?;
                }
            }
        }
        let stretches = self.metrics.wanted_tracks().map(|track| track.steady.stretch());
        let stretch = stretches.fold(Stretch::ALL, Stretch::and);
        let written = (is_steady && stretch.holds(cut))
            .then(|| SteadyPart { layout: LayoutId::fresh(), stretch });
        if let (Some(written), Some(columns)) = (written, part.columns_mut()) {
            columns.set_layout(written.layout);
        }
        Ok(written)
    }

    /// Adds the part that was written before, with the numbers of another time, if only
    /// those differ. Otherwise adds nothing.
    pub(super) fn write_again(
        &mut self,
        mut written: SteadyPart,
        (time, cut): (Timestamp, &Cut),
        batch: &mut ResultBatch,
    ) -> Result<Option<SteadyPart>, SourceError> {
        if !written.stretch.holds(cut) {
            let Some(stretch) = self.cross_all(cut)? else { return Ok(None) };
            written.stretch = stretch;
        }
        let Some(part) = batch.add_part_again(written.layout) else { return Ok(None) };
        part.timestamp = time;
        let Some(columns) = part.columns_mut() else { return Ok(None) };
        for (track, lanes) in self.metrics.wanted.iter().zip(columns.number_lanes_mut()) {
            if let (Ok(track), false) = (track, lanes.is_empty()) {
                self.metrics.track(*track).steady.overwrite(&self.rules, cut.time, lanes);
            }
        }
        Ok(Some(written))
    }

    /// Moves all metrics to a time, if only their numbers differ there from what the last
    /// fetch wrote. Returns the range where that is so.
    fn cross_all(&mut self, cut: &Cut) -> Result<Option<Stretch>, SourceError> {
        let mut stretch = Stretch::ALL;
        for at in 0..self.metrics.wanted.len() {
            let Ok(id) = self.metrics.wanted[at] else { continue };
            let Track { last_count, in_blocks, .. } = *self.metrics.track(id);
            if !self.metrics.track(id).steady.stretch().holds(cut) {
                let has_crossed = self.cross(id, cut)?;
                let track = self.metrics.track(id);
                if !has_crossed || (last_count, in_blocks) != (track.lanes.len(), track.in_blocks) {
                    return Ok(None);
                }
            }
            stretch = stretch.and(self.metrics.track(id).steady.stretch());
        }
        Ok(Some(stretch))
    }

    /// Writes the values of a metric. True if other times differ only in the numbers.
    fn write_values(
        &mut self,
        id: TrackId,
        cut: &Cut,
        is_crossed: bool,
        is_late: bool,
        writer: &mut ResultWriter<'_>,
    ) -> Result<bool, SourceError> {
        let rules = self.rules;
        let Track { desc, domain, last_count, mut in_blocks, .. } = *self.metrics.track(id);
        let MetricDesc { value_type, semantics, .. } = desc;
        let rule = Rule::of(value_type, semantics, &rules);
        let steady = &self.metrics.track(id).steady;
        if !is_crossed && steady.stretch().holds(cut) {
            steady.write(&rules, cut.time, in_blocks, writer);
            self.metrics.tracks[id.index()].last_count = writer.count();
            return Ok(true);
        }
        let is_counter = semantics == Semantics::Counter;
        let is_typed = is_number(value_type);
        // Clients must not compute a rate across a mark.
        let is_suppressed = is_counter && is_typed && is_crossed && last_count > 0;
        let needs_later = semantics != Semantics::Discrete;
        let looks_ahead = needs_later || looks_ahead(value_type, &rules);
        if !is_suppressed && self.cross(id, cut)? {
            let track = &mut self.metrics.tracks[id.index()];
            track.steady.write(&rules, cut.time, track.in_blocks, writer);
            track.last_count = writer.count();
            return Ok(true);
        }
        let mut steady = std::mem::take(&mut self.metrics.tracks[id.index()].steady);
        steady.begin();
        let present = self.metrics.domains[domain.index()].move_to(cut.time);
        let lanes = if is_suppressed { 0 } else { present.lanes().len() };
        steady.keep_times(present.span());
        let mut found_lanes = std::mem::take(&mut self.found_lanes);
        found_lanes.clear();
        let mut is_steady = is_typed && !is_suppressed;
        let mut was_in_vain = false;
        let mut kept = Vec::new();
        for at in 0..lanes {
            let domain = self.metrics.domain(domain);
            let lane = domain.present()[at];
            let instance = domain.lane(lane).instance;
            let is_kept = is_late && self.metrics.track(id).take_before(lane, &mut kept);
            let found = self.resolve((id, lane), cut, looks_ahead)?;
            let track = self.metrics.track(id);
            let ends = track.lanes.get(lane);
            steady.keep_between(&ends);
            let (earlier, later) = (ends.before.sample(), ends.after.sample());
            let between = match found {
                Neighbours::At(Side::Ahead) => Some(Between::Later),
                Neighbours::At(Side::Behind) => Some(Between::Earlier),
                Neighbours::Before if !needs_later => Some(Between::Earlier),
                Neighbours::Both => {
                    Some(rule.between(value_type, &rules, cut.time, earlier, later))
                }
                Neighbours::Before | Neighbours::Neither => None,
            };
            if is_counter && !is_typed && between.is_some() {
                writer.fail(PmStatus::TYPE);
                self.metrics.tracks[id.index()].last_count = 0;
                return Ok(false);
            }
            match found {
                Neighbours::At(_) => is_steady = false,
                Neighbours::Both => found_lanes.push(SteadyLane { instance, earlier, later }),
                // A single value is the nearest one at all times.
                Neighbours::Before if !needs_later => {
                    found_lanes.push(SteadyLane { instance, earlier, later: earlier });
                }
                _ => {}
            }
            let (bits, side) = match between {
                None => {
                    was_in_vain = true;
                    continue;
                }
                Some(Between::Earlier) => (earlier.bits, Side::Behind),
                Some(Between::Later) => (later.bits, Side::Ahead),
                Some(Between::Number(bits)) => (bits, Side::Behind),
            };
            match is_typed {
                true => {
                    // In old archives, the form of the first value decides for all
                    // FLOAT values.
                    in_blocks = if writer.count() == 0 { track.in_blocks } else { in_blocks };
                    writer.value(instance, as_delivered(value_type, in_blocks, bits));
                }
                false => {
                    // Codes without a meaning do not fit into a block's header.
                    let code = u8::try_from(value_type.code()).unwrap_or(u8::MAX);
                    let is_kept = is_kept && matches!(found, Neighbours::At(_));
                    let contents = if is_kept { &kept } else { track.text(lane, side) };
                    writer.pieces(instance, code, &[contents]);
                }
            }
        }
        if was_in_vain && writer.count() == 0 && self.metrics.track(id).is_unsound {
            // There are values, but their type is unknown.
            writer.fail(PmStatus::LOGREC);
            is_steady = false;
        }
        match is_steady {
            true => {
                let instances = found_lanes.iter().map(|lane| lane.instance);
                let values = found_lanes.iter().map(|lane| (lane.earlier, lane.later));
                steady.finish(instances, values, (value_type, rule), &rules);
            }
            false => steady.forget(),
        }
        self.found_lanes = found_lanes;
        self.metrics.tracks[id.index()].steady = steady;
        self.metrics.tracks[id.index()].last_count = writer.count();
        Ok(false)
    }
}

impl Interpolator {
    /// Moves all lanes of a metric at once, if that is possible (see [`Track::cross`]).
    fn cross(&mut self, id: TrackId, cut: &Cut) -> Result<bool, SourceError> {
        let rules = self.rules;
        let (track, mut sources) = self.track_and_sources(id);
        let MetricDesc { value_type, semantics, .. } = track.desc;
        let needs_later = semantics != Semantics::Discrete || looks_ahead(value_type, &rules);
        if !is_number(value_type) || !needs_later {
            return Ok(false);
        }
        if !track.cross(cut, &mut sources)? {
            return Ok(false);
        }
        let Track { lanes, steady, .. } = track;
        let Some(lanes) = lanes.together() else { return Ok(false) };
        let candidates = sources.candidates;
        steady.begin();
        candidates.common_life().into_iter().for_each(|life| steady.keep_times(life));
        steady.keep_between(&lanes.get(0));
        let instances = candidates.lanes().iter().map(|lane| lane.instance);
        let rule = Rule::of(value_type, semantics, &rules);
        steady.finish(instances, lanes.samples(), (value_type, rule), &rules);
        Ok(true)
    }
}

/// A number in the form in which it is delivered.
fn as_delivered(value_type: ValueType, in_blocks: bool, bits: u64) -> RawValueRef<'static> {
    match value_type {
        ValueType::I32 | ValueType::U32 => RawValueRef::InPlace(bits as u32),
        ValueType::F32 if !in_blocks => RawValueRef::InPlace(bits as u32),
        _ => RawValueRef::Number { value_type, bits },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pmderive_core::source::{FetchSource, MetadataSource, Mode};

    use super::*;
    use crate::archive::ArchiveContext;

    /// The layout of a part stays valid beyond the next record, as long as its metrics have the
    /// same instances.
    #[test]
    fn layouts_last_across_records() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/archives/own-fleet");
        let mut context = ArchiveContext::open(path).expect("a good archive");
        let pmids = context.lookup_names(&["disk.dev.total", "kernel.all.load"]);
        let pmids = pmids.expect("it knows them").into_iter().flatten().collect();
        let list = FetchList::new(pmids, Vec::new());
        // After 22, 23 and 25 seconds there are records with all instances.
        let begin = Timestamp::new(context.label().start.sec + 22, 250_000_000);
        let mode = Mode::Interpolated { step: 500_000_000 };
        context.set_mode(mode, Some(begin)).expect("archives have it");
        let mut batch = ResultBatch::default();
        let layouts = (0..6).map(|_| {
            context.fetch(&list, &mut batch).expect("it is within the archive");
            batch.parts()[0].layout()
        });
        let layouts: Vec<_> = layouts.collect();
        assert!(layouts[1].is_some());
        assert_eq!(layouts[1..], [layouts[1]; 5]);
    }
}
