//! Events as lines of JSON.
//!
//! ```text
//! frame = {"t", "target", "slot", "stamp", "labels", "host", "metrics": {name: value | [[instance, name, value], ...]}, "failed"?: {name: text}}
//! stale = {"t", "target", "slot", "labels", "host", "reason", "stale": {name: true | [[instance, name], ...]}}
//! ```
//!
//! `t` is the engine's clock, `stamp` that of the host. Metrics without values are
//! left out. A stale line names series that have ended: it comes before the frame
//! of its slot, if there is one.

use std::fmt::Write as _;

use crate::fleet::columns::Column;
use crate::fleet::frame::{Event, Exported, Frame, Instances, Stale};
use crate::fleet::labels::Labels;
use crate::fleet::sink_set::SinkPlace;
use crate::fleet::slot::Nanos;
use crate::report::json::{write_string, write_value};
use pmderive_runtime::program::Status;

/// Writes an event as the sink at a place gets it, with its line end. Nothing if none of
/// its metrics is for that sink.
pub fn write_event(out: &mut String, event: &Event, sink: SinkPlace) {
    match event {
        Event::Frame(frame) => write_frame(out, frame, sink),
        Event::Stale(stale) => write_stale(out, stale, sink),
    }
}

fn write_frame(out: &mut String, frame: &Frame, sink: SinkPlace) {
    let columns = || {
        let columns = frame.schema.metrics.iter().zip(frame.columns.iter());
        columns.filter(|(metric, _)| metric.sinks.contains(sink))
    };
    if columns().next().is_none() {
        return;
    }
    write_head(out, frame.at, &frame.target.name, frame.slot.0);
    let _ = write!(out, ",\"stamp\":\"{}\"", frame.stamp);
    write_labels(out, &frame.target.labels, &frame.host_labels);
    out.push_str(",\"metrics\":{");
    let mut is_first = true;
    for (metric, column) in columns().filter(|(_, column)| !column.instances.ids.is_empty()) {
        write_key(out, &metric.name, &mut is_first);
        write_column(out, metric, &column);
    }
    out.push('}');
    let mut is_first = true;
    for (metric, column) in columns() {
        if let Status::Failed(status) = column.status {
            if is_first {
                out.push_str(",\"failed\":{");
            }
            write_key(out, &metric.name, &mut is_first);
            write_string(out, &status.to_string());
        }
    }
    out.push_str(if is_first { "}\n" } else { "}}\n" });
}

fn write_column(out: &mut String, metric: &Exported, column: &Column<'_>) {
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

fn write_stale(out: &mut String, stale: &Stale, sink: SinkPlace) {
    let metrics = &stale.schema.metrics;
    let series = || {
        let series = stale.series.iter().map(|(metric, instances)| (&metrics[*metric], instances));
        series.filter(|(metric, _)| metric.sinks.contains(sink))
    };
    if series().next().is_none() {
        return;
    }
    write_head(out, stale.at, &stale.target.name, stale.slot.0);
    write_labels(out, &stale.target.labels, &stale.host_labels);
    out.push_str(",\"reason\":");
    write_string(out, &stale.reason.to_string());
    out.push_str(",\"stale\":{");
    let mut is_first = true;
    for (metric, instances) in series() {
        write_key(out, &metric.name, &mut is_first);
        if !metric.has_instances {
            out.push_str("true");
            continue;
        }
        out.push('[');
        for lane in 0..instances.ids.len() {
            out.push_str(if lane == 0 { "[" } else { ",[" });
            write_instance(out, instances, lane);
            out.push(']');
        }
        out.push(']');
    }
    out.push_str("}}\n");
}

fn write_head(out: &mut String, at: Nanos, target: &str, slot: u64) {
    let (seconds, rest) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let _ = write!(out, "{{\"t\":\"{seconds}.{rest:09}\",\"target\":");
    write_string(out, target);
    let _ = write!(out, ",\"slot\":{slot}");
}

fn write_labels(out: &mut String, target: &Labels, host: &Labels) {
    for (key, labels) in [(",\"labels\":{", target), (",\"host\":{", host)] {
        out.push_str(key);
        let mut is_first = true;
        for (name, value) in labels.iter() {
            write_key(out, name, &mut is_first);
            write_string(out, value);
        }
        out.push('}');
    }
}

fn write_key(out: &mut String, name: &str, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        out.push(',');
    }
    write_string(out, name);
    out.push(':');
}

fn write_instance(out: &mut String, instances: &Instances, lane: usize) {
    let _ = write!(out, "{},", instances.ids[lane]);
    write_string(out, instances.names.get(lane).map_or("", |name| name));
}
