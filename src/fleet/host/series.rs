//! The series of a host that sinks know: what ends is told once.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::sets::{Patterns, Sets};
use crate::fleet::ended::{Ended, gone};
use crate::fleet::frame::{Column, Event, Frame, Instances, Schema, Stale, StaleReason};
use crate::fleet::labels::Labels;
use crate::fleet::outlets::Outlets;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::target::Target;

/// The series of the latest frame.
#[derive(Debug, Default)]
pub struct Series {
    latest: Option<Latest>,
    /// When all ended last.
    ended: Nanos,
}

#[derive(Debug)]
struct Latest {
    schema: Arc<Schema>,
    host_labels: Labels,
    instances: Sets,
    sinks: u64,
    /// When the frame came.
    at: Nanos,
}

/// Receivers keep one sample of a series for each millisecond, so a mark comes at
/// least that much later than the sample before it, and a sample than the mark.
const BEHIND_SAMPLE: Duration = Duration::from_millis(1);

impl Series {
    /// The instances that a metric of the schema had in the latest frame.
    pub fn instances(&self, schema: &Arc<Schema>, metric: usize) -> Option<&Arc<Instances>> {
        let latest = self.latest.as_ref().filter(|latest| Arc::ptr_eq(&latest.schema, schema))?;
        latest.instances.get(metric)
    }

    /// Values of the latest frame.
    pub fn values(&self) -> usize {
        self.latest.as_ref().map_or(0, |latest| latest.instances.values())
    }

    /// When a frame may come, at a time or later.
    pub fn begin_at(&self, at: Nanos) -> Nanos {
        at.max(self.ended.after(BEHIND_SAMPLE))
    }

    /// Offers a frame, and before it tells what is not in it any more.
    pub fn go_on(&mut self, frame: Frame, sinks: u64, shared: &Shared) {
        let outlets = &*shared.outlets.borrow();
        let patterns = &mut *shared.patterns.borrow_mut();
        let is_same = |latest: &Latest| {
            Arc::ptr_eq(&latest.schema, &frame.schema) && latest.host_labels == frame.host_labels
        };
        match &mut self.latest {
            Some(latest) if is_same(latest) => {
                let ended = latest.advance(&frame.columns, patterns);
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
                self.latest = Some(Latest {
                    schema: Arc::clone(&frame.schema),
                    host_labels: frame.host_labels.clone(),
                    instances: Sets::of(&frame.columns, patterns),
                    sinks,
                    at: frame.at,
                });
            }
        }
        if sinks != 0 {
            outlets.offer(Event::Frame(frame), sinks);
        }
    }

    /// Definitions or metadata have changed: ends what the frame's schema has not, or has
    /// in another meaning, for the sinks that had it.
    fn change(&mut self, frame: &Frame, outlets: &Outlets) {
        let Some(latest) = self.latest.take() else { return };
        let is_same_host = latest.host_labels == frame.host_labels;
        let mut ended = Ended::default();
        for before in latest.schema.metrics.iter().zip(latest.instances.iter()) {
            let metrics = &frame.schema.metrics;
            let found = metrics.binary_search_by(|one| one.name.cmp(&before.0.name));
            let found = found.ok().filter(|_| is_same_host);
            let now = found.map(|at| (&metrics[at], &frame.columns[at].instances));
            ended.compare(before, now);
        }
        let host = (&frame.target, &latest.host_labels);
        for (event, sinks) in ended.events(host, frame.slot, latest.end_at(frame.at)) {
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
        let all = latest.instances.iter().enumerate();
        let all = all.filter(|(_, instances)| !instances.ids.is_empty());
        let all: Vec<_> = all.map(|(at, instances)| (at, Arc::clone(instances))).collect();
        if !all.is_empty() {
            let stale = latest.stale(target, slot, at, reason, all);
            self.ended = stale.at;
            outlets.offer(Event::Stale(stale), latest.sinks);
        }
    }
}

impl Latest {
    /// Takes the instances of new columns, and gives those that ended.
    fn advance(
        &mut self,
        columns: &[Column],
        patterns: &mut Patterns,
    ) -> Vec<(usize, Arc<Instances>)> {
        let (mut ended, mut is_same) = (Vec::new(), true);
        for (at, (before, column)) in self.instances.iter().zip(columns).enumerate() {
            if !Arc::ptr_eq(before, &column.instances) {
                ended.extend(gone(before, Some(&column.instances)).map(|gone| (at, gone)));
                is_same = false;
            }
        }
        if !is_same {
            self.instances = Sets::of(columns, patterns);
        }
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
        series: Vec<(usize, Arc<Instances>)>,
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
