//! Events as lines of JSON.
//!
//! ```text
//! frame = {"t", "target", "slot", "stamp", "labels", "host", "metrics": {name: value | [[instance, name, value], ...]}, "failed"?: {name: text}}
//! stale = {"t", "target", "slot", "labels", "host", "reason", "stale": {name: true | [[instance, name], ...]}}
//! ```
//!
//! `t` is the engine's clock, `stamp` that of the host. Metrics without values are left out. A
//! stale line names series that have ended. It precedes the frame of its slot, if there is one.

use std::fmt::Write as _;

use pmderive_runtime::model::Timestamp;
use pmderive_runtime::program::Status;

use crate::fleet::frame::columns::Column;
use crate::fleet::frame::{Event, ExportedMetric, Frame, Instances, Stale};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::SinkPlace;
use crate::fleet::slot::{Nanos, Slot};
use crate::report::json::write_value;
use crate::text::json::{Object, write_object, write_string};

/// Writes an event for the sink at a place, with its line end; nothing if the sink gets none of
/// its metrics. Returns the number of values, or of ended series.
pub fn write_event(out: &mut String, event: &Event, sink: SinkPlace) -> usize {
    match event {
        Event::Frame(frame) => write_frame(out, frame, sink),
        Event::Stale(stale) => write_stale(out, stale, sink),
    }
}

fn write_frame(out: &mut String, frame: &Frame, sink: SinkPlace) -> usize {
    let columns = || {
        let columns = frame.schema.metrics.iter().zip(frame.columns.iter());
        columns.filter(|(metric, _)| metric.sinks.contains(sink))
    };
    if columns().next().is_none() {
        return 0;
    }
    let failed = || {
        columns().filter_map(|(metric, column)| match column.status {
            Status::Failed(status) => Some((metric, status)),
            _ => None,
        })
    };
    write_object(out, |line| {
        add_head(line, frame.at, &frame.target.name, frame.slot);
        line.value("stamp", format_args!("\"{}\"", frame.stamp));
        add_labels(line, &frame.target.labels, &frame.host_labels);
        line.object("metrics", |metrics| {
            for (metric, column) in columns().filter(|(_, column)| !column.instances.ids.is_empty())
            {
                metrics.member(&metric.name, |out| write_column(out, metric, &column));
            }
        });
        if failed().next().is_some() {
            line.object("failed", |metrics| {
                failed().for_each(|(metric, why)| metrics.text(&metric.name, &why.to_string()));
            });
        }
    });
    out.push('\n');
    columns().map(|(_, column)| column.instances.ids.len()).sum()
}

fn write_column(out: &mut String, metric: &ExportedMetric, column: &Column<'_>) {
    let value = |lane| column.value(metric.value_type, lane);
    if !metric.has_instances {
        return write_value(out, value(0));
    }
    out.push('[');
    for lane in 0..column.instances.ids.len() {
        out.push_str(if lane == 0 { "[" } else { ",[" });
        write_instance(out, column.instances, lane);
        out.push(',');
        write_value(out, value(lane));
        out.push(']');
    }
    out.push(']');
}

fn write_stale(out: &mut String, stale: &Stale, sink: SinkPlace) -> usize {
    let metrics = &stale.schema.metrics;
    let series = || {
        let series = stale.series.iter().map(|(metric, instances)| (&metrics[*metric], instances));
        series.filter(|(metric, _)| metric.sinks.contains(sink))
    };
    if series().next().is_none() {
        return 0;
    }
    write_object(out, |line| {
        add_head(line, stale.at, &stale.target.name, stale.slot);
        add_labels(line, &stale.target.labels, &stale.host_labels);
        line.text("reason", &stale.reason.to_string());
        line.object("stale", |metrics| {
            for (metric, instances) in series() {
                if !metric.has_instances {
                    metrics.value(&metric.name, true);
                    continue;
                }
                metrics.list(&metric.name, 0..instances.ids.len(), |out, lane| {
                    out.push('[');
                    write_instance(out, instances, lane);
                    out.push(']');
                });
            }
        });
    });
    out.push('\n');
    series().map(|(_, instances)| instances.ids.len()).sum()
}

fn add_head(line: &mut Object<'_>, at: Nanos, target: &str, slot: Slot) {
    line.value("t", format_args!("\"{}\"", Timestamp::from(at)));
    line.text("target", target);
    line.value("slot", slot.0);
}

fn add_labels(line: &mut Object<'_>, target: &Labels, host: &Labels) {
    for (key, labels) in [("labels", target), ("host", host)] {
        line.object(key, |all| labels.iter().for_each(|(name, value)| all.text(name, value)));
    }
}

fn write_instance(out: &mut String, instances: &Instances, lane: usize) {
    let _ = write!(out, "{},", instances.ids[lane]);
    write_string(out, instances.names.get(lane).map_or("", |name| name));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::frame::{Schema, StaleReason};
    use crate::fleet::sinks::samples;
    use pmderive_runtime::model::{Semantics, ValueType};
    use std::sync::Arc;

    #[test]
    fn values_and_series_are_counted_and_not_lines() {
        let host = samples::target("web1:44321", Labels::default());
        let metric = |name, places: &[u32]| {
            let sinks = samples::sinks(places);
            samples::exported(name, ValueType::U64, Semantics::Instant, sinks)
        };
        let metrics = [metric("a", &[0]), metric("b", &[0, 1]), metric("c", &[0])];
        let schema = Arc::new(Schema { metrics: metrics.into() });
        let named = samples::named(&["x", "y"]);
        let columns = [&samples::single(), &samples::single(), &named]
            .map(|instances| samples::column(instances, &[1, 2][..instances.ids.len()]));
        let frame = samples::frame(&host, 1, &schema, &columns);
        let stale = samples::stale(&host, 2, StaleReason::Missed, &schema, vec![(2, named)]);
        for (event, sink, expected) in
            [(&frame, 0, 4), (&frame, 1, 1), (&frame, 2, 0), (&stale, 0, 2), (&stale, 1, 0)]
        {
            let mut line = String::new();
            assert_eq!(write_event(&mut line, event, SinkPlace(sink)), expected, "{line}");
            assert_eq!(line.is_empty(), expected == 0);
        }
    }
}
