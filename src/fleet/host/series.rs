//! The series of a host that sinks know: what ends is told once.

use std::sync::Arc;

use crate::fleet::columns::Heads;
use crate::fleet::ended::{BEHIND_SAMPLE, Ended, gone};
use crate::fleet::frame::{Event, ExportedId, Frame, Instances, Schema, Stale, StaleReason};
use crate::fleet::labels::Labels;
use crate::fleet::outlets::Outlets;
use crate::fleet::sink_set::SinkSet;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::target::Target;

/// The series of the latest frame.
#[derive(Debug, Default)]
pub struct Series {
    latest: Option<LatestFrame>,
    /// When all ended last.
    ended: Nanos,
}

#[derive(Debug)]
struct LatestFrame {
    schema: Arc<Schema>,
    host_labels: Labels,
    heads: Arc<Heads>,
    sinks: SinkSet,
    /// When the frame came.
    at: Nanos,
}

impl Series {
    /// What the metrics of the schema had in the latest frame, if that had them.
    pub fn heads(&self, schema: &Arc<Schema>) -> Option<&Arc<Heads>> {
        let latest = self.latest.as_ref().filter(|latest| Arc::ptr_eq(&latest.schema, schema))?;
        Some(&latest.heads)
    }

    /// When a frame may come, at a time or later.
    pub fn begin_at(&self, at: Nanos) -> Nanos {
        at.max(self.ended.after(BEHIND_SAMPLE))
    }

    /// Offers a frame, and before it tells what is not in it any more.
    pub fn go_on(&mut self, frame: Frame, sinks: SinkSet, outlets: &Outlets) {
        let is_same = |latest: &LatestFrame| {
            Arc::ptr_eq(&latest.schema, &frame.schema) && latest.host_labels == frame.host_labels
        };
        match &mut self.latest {
            Some(latest) if is_same(latest) => {
                let ended = latest.advance(frame.columns.heads());
                if !ended.is_empty() {
                    let stale = latest.stale(
                        &frame.target,
                        frame.slot,
                        frame.at,
                        StaleReason::Vanished,
                        ended,
                    );
                    outlets.offer(Event::Stale(stale), sinks);
                }
                latest.at = frame.at;
            }
            _ => {
                self.change(&frame, outlets);
                self.latest = Some(LatestFrame {
                    schema: Arc::clone(&frame.schema),
                    host_labels: frame.host_labels.clone(),
                    heads: Arc::clone(frame.columns.heads()),
                    sinks,
                    at: frame.at,
                });
            }
        }
        if !sinks.is_empty() {
            outlets.offer(Event::Frame(frame), sinks);
        }
    }

    /// Definitions or metadata have changed: ends what the frame's schema has not, or has
    /// in another meaning, for the sinks that had it.
    fn change(&mut self, frame: &Frame, outlets: &Outlets) {
        let Some(latest) = self.latest.take() else { return };
        let is_same_host = latest.host_labels == frame.host_labels;
        let mut ended = Ended::default();
        for (before, (_, instances)) in latest.schema.metrics.iter().zip(latest.heads.iter()) {
            let metrics = &frame.schema.metrics;
            let found = metrics.binary_search_by(|one| one.name.cmp(&before.name));
            let now = found.ok().filter(|_| is_same_host).and_then(|at| {
                let (_, instances) = frame.columns.heads().get(at)?;
                Some((&metrics[at], instances))
            });
            ended.compare((before, instances), now);
        }
        let host = (&frame.target, &latest.host_labels);
        for (event, sinks) in ended.events(host, frame.slot, (latest.at, frame.at)) {
            outlets.offer(event, sinks);
        }
    }

    /// Ends all series.
    pub fn end(
        &mut self,
        target: &Arc<Target>,
        slot: Slot,
        at: Nanos,
        reason: StaleReason,
        outlets: &Outlets,
    ) {
        let Some(latest) = self.latest.take() else { return };
        let all = latest.heads.present();
        let all: Vec<_> = all.map(|(metric, has)| (metric, Arc::clone(has))).collect();
        if !all.is_empty() {
            let stale = latest.stale(target, slot, at, reason, all);
            self.ended = stale.at;
            outlets.offer(Event::Stale(stale), latest.sinks);
        }
    }
}

impl LatestFrame {
    /// Takes new heads, and gives the instances that ended.
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

    /// When its series end, at a time or later.
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
