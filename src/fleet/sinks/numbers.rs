//! The counts of one sink: events and samples that went in, came out, or were dropped, and why.
//! Counting never waits.

use crate::fleet::counting::{BOUNDS, Histogram, Number};

use super::text::{Kind, Writer};

/// Outcome of a request, by a sink that sends or to one that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was accepted.
    Accepted,
    /// It was refused for good: 3xx, 4xx.
    Refused,
    /// 429: it was too early.
    Throttled,
    /// 5xx.
    Failed,
    /// There was no answer in time.
    TimedOut,
    /// There was no connection, or no valid answer.
    Broken,
}

impl RequestOutcome {
    const ALL: [(RequestOutcome, &str); 6] = [
        (RequestOutcome::Accepted, "accepted"),
        (RequestOutcome::Refused, "refused"),
        (RequestOutcome::Throttled, "throttled"),
        (RequestOutcome::Failed, "failed"),
        (RequestOutcome::TimedOut, "timed_out"),
        (RequestOutcome::Broken, "broken"),
    ];
}

/// The counts of one sink.
#[derive(Debug, Default)]
pub struct SinkNumbers {
    /// Events offered to the sink.
    pub events: Number,
    /// Events dropped because there was no room.
    pub dropped_overflow: Number,
    /// Events dropped because the sink had to end before their turn.
    pub dropped_closed: Number,
    /// Samples that were delivered.
    pub samples: Number,
    /// Samples dropped because they were refused.
    pub dropped_refused: Number,
    /// Samples dropped because they were too old.
    pub dropped_old: Number,
    /// Samples dropped because the sink had to end.
    pub dropped_unsent: Number,
    /// Labels left out because there were too many, or their names were too long.
    pub labels_left_out: Number,
    /// Bytes sent, as they are on the wire.
    pub bytes: Number,
    /// Requests that were repeated.
    pub retries: Number,
    /// Bytes of waiting events.
    pub ring_bytes: Number,
    /// Number of waiting events.
    pub ring_events: Number,
    /// Limit of waiting bytes.
    pub ring_limit: Number,
    /// Bytes of encoded labels in the cache.
    pub label_bytes: Number,
    /// Durations of requests, or of writes.
    pub latency: Histogram,
    requests: [Number; RequestOutcome::ALL.len()],
}

impl SinkNumbers {
    /// Counts a request.
    pub fn request(&self, outcome: RequestOutcome) {
        self.requests[outcome as usize].add(1);
    }

    /// The number of requests with this outcome.
    pub fn requests(&self, outcome: RequestOutcome) -> u64 {
        self.requests[outcome as usize].get()
    }
}

type Reasons = &'static [(&'static str, fn(&SinkNumbers) -> &Number)];

/// Families of metrics: suffix of the name, help, the label that tells its parts apart, and
/// these parts.
const FAMILIES: &[(&str, Kind, &str, &str, Reasons)] = &[
    ("events_total", Kind::Counter, "Events offered to a sink.", "", &[("", |n| &n.events)]),
    (
        "dropped_events_total",
        Kind::Counter,
        "Events dropped before a sink came to them: no room in its ring (overflow), or the end of the process (end).",
        "reason",
        &[("overflow", |n| &n.dropped_overflow), ("end", |n| &n.dropped_closed)],
    ),
    (
        "samples_total",
        Kind::Counter,
        "Samples that a sink has delivered.",
        "",
        &[("", |n| &n.samples)],
    ),
    (
        "dropped_samples_total",
        Kind::Counter,
        "Samples dropped by a sink: refused by the receiver, too old, or not delivered at the end of the process.",
        "reason",
        &[
            ("refused", |n| &n.dropped_refused),
            ("age", |n| &n.dropped_old),
            ("end", |n| &n.dropped_unsent),
        ],
    ),
    (
        "labels_left_out_total",
        Kind::Counter,
        "Labels left out of series: there were too many, or their names were too long.",
        "",
        &[("", |n| &n.labels_left_out)],
    ),
    ("sent_bytes_total", Kind::Counter, "Bytes of bodies sent.", "", &[("", |n| &n.bytes)]),
    ("retries_total", Kind::Counter, "Requests made again.", "", &[("", |n| &n.retries)]),
    (
        "ring_bytes",
        Kind::Gauge,
        "Bytes of events that wait for a sink.",
        "",
        &[("", |n| &n.ring_bytes)],
    ),
    ("ring_events", Kind::Gauge, "Events that wait for a sink.", "", &[("", |n| &n.ring_events)]),
    (
        "ring_limit_bytes",
        Kind::Gauge,
        "Bytes of events that may wait for a sink.",
        "",
        &[("", |n| &n.ring_limit)],
    ),
];

/// Writes the metrics of sinks, each with its name.
pub fn write<'n>(writer: &mut Writer<'_>, sinks: &[(&'n str, &'n SinkNumbers)]) {
    for (suffix, kind, help, label, parts) in FAMILIES {
        let name = format!("pmderive_sink_{suffix}");
        writer.family(&name, *kind, Some(help));
        for (sink, numbers) in sinks {
            for (part, number) in *parts {
                let mut labels = vec![("sink", *sink)];
                if !label.is_empty() {
                    labels.push((label, part));
                }
                writer.integer(&name, &labels, number(numbers).get());
            }
        }
    }
    let name = "pmderive_sink_requests_total";
    let help = Some("Requests of a sink, or to it, by how they ended.");
    writer.family(name, Kind::Counter, help);
    for (sink, numbers) in sinks {
        for (outcome, text) in RequestOutcome::ALL {
            let labels = [("sink", *sink), ("outcome", text)];
            writer.integer(name, &labels, numbers.requests(outcome));
        }
    }
    let name = "pmderive_sink_request_duration_seconds";
    let help = Some("How long requests of a sink, or to it, or writes to its file, took.");
    writer.family(name, Kind::Histogram, help);
    for (sink, numbers) in sinks {
        let (counts, sum) = numbers.latency.counts();
        writer.histogram(name, &[("sink", *sink)], &BOUNDS, &counts, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_where_they_are_listed() {
        let numbers = SinkNumbers::default();
        for (at, (outcome, text)) in RequestOutcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, at, "{text}");
            numbers.request(outcome);
            assert_eq!(numbers.requests(outcome), 1);
        }
    }
}
