//! Finds the series of an earlier frame that a later frame lacks, and the sinks that had them.
//!
//! The sinks write the end of a series.

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::position::Per;
use rustc_hash::FxHashSet;

use crate::fleet::frame::{
    Event, ExportedId, ExportedMetric, Instances, Schema, Stale, StaleReason,
};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::SinkSet;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::targets::target::Target;

/// Receivers keep one sample of a series for each millisecond. So a mark comes at least that
/// much later than the sample before it, and so does a sample after the mark.
pub const BEHIND_SAMPLE: Duration = Duration::from_millis(1);

/// Series that have ended. Their definition is gone, changed its meaning, or no longer goes to
/// a sink; or an instance has no value any more.
#[derive(Debug, Default)]
pub struct EndedSeries {
    /// Series whose name goes on at once with another meaning.
    renewed: Part,
    changed: Part,
    vanished: Part,
}

/// Series that have ended for the same reason.
#[derive(Debug, Default)]
struct Part {
    metrics: Per<ExportedId, ExportedMetric>,
    series: Vec<(ExportedId, Arc<Instances>)>,
}

impl EndedSeries {
    /// Compares a metric and its instances with the present metric of its name. A sink for
    /// which the metric goes on keeps its series, whatever other sinks lose.
    pub fn compare(
        &mut self,
        (before, instances): (&ExportedMetric, &Arc<Instances>),
        now: Option<(&ExportedMetric, &Arc<Instances>)>,
    ) {
        let goes_on = |(now, _): &(&ExportedMetric, _)| {
            now.semantics == before.semantics && now.units == before.units
        };
        let (now, renewed) = match now {
            Some(now) if goes_on(&now) => (Some(now), SinkSet::NONE),
            Some((now, _)) => (None, before.sinks.common(now.sinks)),
            None => (None, SinkSet::NONE),
        };
        let kept = before.sinks.common(now.map_or(SinkSet::NONE, |(now, _)| now.sinks));
        let lost = before.sinks.without(kept).without(renewed);
        if !renewed.is_empty() {
            self.renewed.add(before, renewed, gone(instances, None));
        }
        if !kept.is_empty() {
            let now = now.map(|(_, instances)| instances);
            self.vanished.add(before, kept, gone(instances, now));
        }
        if !lost.is_empty() {
            self.changed.add(before, lost, gone(instances, None));
        }
    }

    /// The events for sinks, each with its sinks. They are for the time between a frame and the
    /// next one.
    pub fn events(
        self,
        (target, host_labels): (&Arc<Target>, &Labels),
        slot: Slot,
        (last, next): (Nanos, Nanos),
    ) -> impl Iterator<Item = (Event, SinkSet)> {
        let behind = last.after(BEHIND_SAMPLE);
        let next = next.max(behind);
        let parts = [
            (self.renewed, StaleReason::DefinitionChanged, behind),
            (self.changed, StaleReason::DefinitionChanged, next),
            (self.vanished, StaleReason::Vanished, next),
        ];
        let event = |(part, reason, at): (Part, StaleReason, Nanos)| {
            let schema = Schema { metrics: part.metrics };
            let sinks = schema.sinks();
            let stale = Stale {
                target: Arc::clone(target),
                host_labels: host_labels.clone(),
                slot,
                at,
                reason,
                schema: Arc::new(schema),
                series: part.series.into(),
            };
            (!stale.series.is_empty()).then_some((Event::Stale(stale), sinks))
        };
        parts.map(event).into_iter().flatten()
    }
}

impl Part {
    /// Adds ended instances of a metric, for these sinks.
    fn add(&mut self, metric: &ExportedMetric, sinks: SinkSet, gone: Option<Arc<Instances>>) {
        if let Some(gone) = gone {
            let metric = self.metrics.push(ExportedMetric { sinks, ..metric.clone() });
            self.series.push((metric, gone));
        }
    }
}

/// The series of `before` that `now` lacks. They are compared by identifier, name and labels,
/// as sinks name a series by all of these.
pub fn gone(before: &Arc<Instances>, now: Option<&Arc<Instances>>) -> Option<Arc<Instances>> {
    if before.ids.is_empty() || now.is_some_and(|now| Arc::ptr_eq(now, before) || now == before) {
        return None;
    }
    let Some(now) = now.filter(|now| now.domain_labels == before.domain_labels) else {
        return Some(Arc::clone(before));
    };
    let key = |instances: &Instances, lane: usize| {
        let labels = instances.labels.get(lane).cloned().unwrap_or_default();
        (instances.ids[lane], instances.names.get(lane).cloned(), labels)
    };
    let present: FxHashSet<_> = (0..now.ids.len()).map(|lane| key(now, lane)).collect();
    let lanes: Vec<usize> =
        (0..before.ids.len()).filter(|lane| !present.contains(&key(before, *lane))).collect();
    if lanes.is_empty() {
        return None;
    }
    let of_lanes =
        |labels: &[Labels]| lanes.iter().filter_map(|lane| labels.get(*lane).cloned()).collect();
    Some(Arc::new(Instances {
        ids: lanes.iter().map(|lane| before.ids[*lane]).collect(),
        names: lanes.iter().filter_map(|lane| before.names.get(*lane).cloned()).collect(),
        domain_labels: before.domain_labels.clone(),
        labels: of_lanes(&before.labels),
    }))
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::model::{Semantics, Units, ValueType};

    use super::*;
    use crate::fleet::sinks::samples::{exported, named, sinks, target};

    /// The ended series by reason: sinks, and the metrics with the number of instances.
    fn ended(
        before: (&ExportedMetric, &Arc<Instances>),
        now: Option<(&ExportedMetric, &Arc<Instances>)>,
    ) -> Vec<(StaleReason, SinkSet, usize)> {
        let mut ended = EndedSeries::default();
        ended.compare(before, now);
        let host = target("web1:44321", Labels::default());
        let labels = Labels::default();
        let events = ended.events((&host, &labels), Slot(7), (Nanos(60), Nanos(70)));
        let told = events.map(|(event, sinks)| match event {
            Event::Stale(stale) => {
                assert_eq!(stale.schema.metrics[ExportedId(0)].sinks, sinks);
                assert!(stale.at > Nanos(60));
                (stale.reason, sinks, stale.series[0].1.ids.len())
            }
            Event::Frame(_) => panic!("a frame"),
        });
        told.collect()
    }

    /// One sink loses the metric; the series of the others go on.
    #[test]
    fn what_a_sink_loses_goes_on_for_the_others() {
        use StaleReason::{DefinitionChanged, Vanished};
        let of = |places: &[u32]| exported("n", ValueType::U64, Semantics::Instant, sinks(places));
        let (both, one) = (named(&["a", "b"]), named(&["a"]));
        let before = of(&[0, 1]);
        let now = |places: &[u32], set| ended((&before, &both), Some((&of(places), set)));
        assert_eq!(now(&[0, 1], &both), []);
        assert_eq!(now(&[0, 1, 2], &both), []);
        assert_eq!(now(&[0], &both), [(DefinitionChanged, sinks(&[1]), 2)]);
        assert_eq!(now(&[0, 1], &one), [(Vanished, sinks(&[0, 1]), 1)]);
        assert_eq!(
            now(&[0, 2], &one),
            [(DefinitionChanged, sinks(&[1]), 2), (Vanished, sinks(&[0]), 1)]
        );
        let all = [(DefinitionChanged, sinks(&[0, 1]), 2)];
        assert_eq!(now(&[2], &both), all);
        assert_eq!(ended((&before, &both), None), all);
        let units = Units { dim_space: 1, ..Units::NONE };
        let other = ExportedMetric { units, ..of(&[1, 2]) };
        assert_eq!(
            ended((&before, &both), Some((&other, &both))),
            [(DefinitionChanged, sinks(&[1]), 2), (DefinitionChanged, sinks(&[0]), 2)]
        );
    }

    /// Groups of two groupings may have the same identifiers.
    #[test]
    fn an_identifier_under_another_name_is_another_series() {
        let metric = exported("n", ValueType::U64, Semantics::Instant, sinks(&[0]));
        let (racks, centres) = (named(&["r0", "r1"]), named(&["dc0", "r1"]));
        assert_eq!(racks.ids, centres.ids);
        let found = ended((&metric, &racks), Some((&metric, &centres)));
        assert_eq!(found, [(StaleReason::Vanished, sinks(&[0]), 1)]);
    }
}
