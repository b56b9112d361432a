//! The series of a host or of the fleet that sinks know. The end of a series is reported once.

use std::sync::Arc;

use super::columns::Heads;
use super::ended_series::{BEHIND_SAMPLE, EndedSeries, gone};
use crate::fleet::frame::{Event, ExportedId, Frame, Instances, Schema, Stale, StaleReason};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::SinkSet;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::targets::target::Target;

/// The series of the latest frame.
#[derive(Debug, Default)]
pub struct Series {
    latest: Option<LatestFrame>,
    /// Time at which all series last ended.
    ended: Nanos,
}

#[derive(Debug)]
struct LatestFrame {
    schema: Arc<Schema>,
    host_labels: Labels,
    heads: Arc<Heads>,
    sinks: SinkSet,
    /// Time of the frame.
    at: Nanos,
}

impl Series {
    /// The heads of the latest frame, if it has this schema.
    pub fn heads(&self, schema: &Arc<Schema>) -> Option<&Arc<Heads>> {
        let latest = self.latest.as_ref().filter(|latest| Arc::ptr_eq(&latest.schema, schema))?;
        Some(&latest.heads)
    }

    /// The earliest time of the next frame, from a time on.
    pub fn begin_at(&self, at: Nanos) -> Nanos {
        at.max(self.ended.after(BEHIND_SAMPLE))
    }

    /// Replaces the latest frame by the next one for `sinks`. Returns the ended series. Their
    /// sinks must get these events before the frame.
    pub fn go_on(&mut self, frame: &Frame, sinks: SinkSet) -> Vec<(Event, SinkSet)> {
        let is_same = |latest: &LatestFrame| {
            Arc::ptr_eq(&latest.schema, &frame.schema) && latest.host_labels == frame.host_labels
        };
        if let Some(latest) = self.latest.as_mut().filter(|latest| is_same(latest)) {
            let ended = latest.advance(frame.columns.heads());
            let stale = (!ended.is_empty()).then(|| {
                let (target, reason) = (&frame.target, StaleReason::Vanished);
                latest.stale(target, frame.slot, frame.at, reason, ended)
            });
            latest.at = frame.at;
            return stale.map(|stale| (Event::Stale(stale), sinks)).into_iter().collect();
        }
        let ended = self.latest.take().map(|latest| latest.ended(frame)).unwrap_or_default();
        self.latest = Some(LatestFrame {
            schema: Arc::clone(&frame.schema),
            host_labels: frame.host_labels.clone(),
            heads: Arc::clone(frame.columns.heads()),
            sinks,
            at: frame.at,
        });
        ended
    }

    /// Ends all series, if there are any. Returns the event and its sinks.
    pub fn end(
        &mut self,
        target: &Arc<Target>,
        slot: Slot,
        at: Nanos,
        reason: StaleReason,
    ) -> Option<(Event, SinkSet)> {
        let latest = self.latest.take()?;
        let all = latest.heads.present();
        let all: Vec<_> = all.map(|(metric, has)| (metric, Arc::clone(has))).collect();
        if all.is_empty() {
            return None;
        }
        let stale = latest.stale(target, slot, at, reason, all);
        self.ended = stale.at;
        Some((Event::Stale(stale), latest.sinks))
    }
}

impl LatestFrame {
    /// The series that end because the next frame has another schema. Definitions or metadata
    /// have changed. A metric may be gone, or have another meaning.
    fn ended(self, next: &Frame) -> Vec<(Event, SinkSet)> {
        let is_same_host = self.host_labels == next.host_labels;
        let mut ended = EndedSeries::default();
        for (before, (_, instances)) in self.schema.metrics.iter().zip(self.heads.iter()) {
            let found = next.schema.find(&before.name).filter(|_| is_same_host);
            let now = found.and_then(|(at, metric)| {
                let (_, instances) = next.columns.heads().get(at)?;
                Some((metric, instances))
            });
            ended.compare((before, instances), now);
        }
        let host = (&next.target, &self.host_labels);
        ended.events(host, next.slot, (self.at, next.at)).collect()
    }

    /// Replaces the heads. Returns the instances that ended.
    fn advance(&mut self, now: &Arc<Heads>) -> Vec<(ExportedId, Arc<Instances>)> {
        let mut ended = Vec::new();
        if Arc::ptr_eq(&self.heads, now) {
            return ended;
        }
        let both = self.heads.iter().zip(now.iter());
        for (at, ((_, before), (_, now))) in self.schema.metrics.positions().zip(both) {
            if !Arc::ptr_eq(before, now) {
                ended.extend(gone(before, Some(now)).map(|gone| (at, gone)));
            }
        }
        self.heads = Arc::clone(now);
        ended
    }

    /// The time at which its series end, from a time on.
    fn end_at(&self, at: Nanos) -> Nanos {
        at.max(self.at.after(BEHIND_SAMPLE))
    }

    fn stale(
        &self,
        target: &Arc<Target>,
        slot: Slot,
        at: Nanos,
        reason: StaleReason,
        series: Vec<(ExportedId, Arc<Instances>)>,
    ) -> Stale {
        Stale {
            target: Arc::clone(target),
            host_labels: self.host_labels.clone(),
            slot,
            at: self.end_at(at),
            reason,
            schema: Arc::clone(&self.schema),
            series: series.into(),
        }
    }
}
