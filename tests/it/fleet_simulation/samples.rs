//! Every sample that a receiver has against the lines: what a line says is there, in
//! its order and to the last bit, unless the receiver has refused it or it was dropped
//! and counted.

use std::collections::HashMap;

use pmderive_testkit::receiver::STALE;
use pmderive_testkit::sim::Receiver;

use super::lines::{Column, Line};

/// Names and values of labels.
pub type SeriesLabels = Vec<(String, String)>;

/// Series, with the samples that they should have: milliseconds and bits.
#[derive(Default)]
pub struct Expected {
    known: HashMap<(String, String, i32, String), usize>,
    series: Vec<(SeriesLabels, Vec<(i64, u64)>)>,
}

/// What a comparison came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub stored: u64,
    pub refused: u64,
    /// Neither stored nor refused.
    pub missing: u64,
}

impl Expected {
    /// Takes note of a line.
    pub fn note(&mut self, line: &Line<'_>) {
        let columns = line.metrics.as_ref().or(line.stale.as_ref()).expect("one of both");
        for (metric, Column(cells)) in columns.iter().filter(|(metric, _)| is_sent(metric)) {
            for (id, name, value) in cells {
                let value = if line.stale.is_some() { STALE } else { value.to_bits() };
                let series = self.series_of(line, metric, *id, name);
                self.series[series].1.push((line.milliseconds(), value));
            }
        }
    }

    fn series_of(&mut self, line: &Line<'_>, metric: &str, id: i32, name: &str) -> usize {
        let key = (line.target.to_owned(), metric.to_owned(), id, name.to_owned());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let labels = labels_of(line, metric, id, name);
        self.known.insert(key, self.series.len());
        self.series.push((labels, Vec::new()));
        self.series.len() - 1
    }

    /// Compares with what a receiver has.
    pub fn compare(&self, receiver: &Receiver) -> Found {
        assert_eq!(receiver.complaints, [] as [String; 0]);
        let mut unknown: HashMap<&[(String, String)], usize> =
            receiver.series.iter().enumerate().map(|(id, labels)| (&**labels, id)).collect();
        let mut found = Found::default();
        for (labels, samples) in &self.series {
            let Some(id) = unknown.remove(&**labels) else {
                found.missing += samples.len() as u64;
                continue;
            };
            let bits = |sample: &pmderive_testkit::receiver::Sample| {
                (sample.timestamp, sample.value.to_bits())
            };
            let mut stored = receiver.stored[id].iter().map(bits).peekable();
            let mut refused = receiver.refused[id].iter().map(bits).peekable();
            for sample in samples {
                if stored.next_if_eq(sample).is_some() {
                    // It may have been refused when it came again.
                    refused.next_if_eq(sample);
                    found.stored += 1;
                } else if refused.next_if_eq(sample).is_some() {
                    found.refused += 1;
                } else {
                    found.missing += 1;
                }
            }
            let rest: Vec<_> = stored.chain(refused).take(3).collect();
            assert_eq!(
                rest,
                [],
                "{labels:?} has what no line says; lines: {:?}",
                &samples[..samples.len().min(3)]
            );
        }
        assert_eq!(unknown.keys().next(), None, "there are series that no line has");
        found
    }
}

/// The labels of a series, with its name as one of them.
pub fn labels_of(line: &Line<'_>, metric: &str, id: i32, name: &str) -> SeriesLabels {
    let mut labels = vec![("__name__".to_owned(), metric.replace('.', "_"))];
    let mut add = |name: &str, value: &str| labels.push((name.to_owned(), value.to_owned()));
    if line.number().is_some() {
        add("instance", line.target);
        if id != -1 {
            add("instid", &id.to_string());
            add("instname", name);
        }
    } else {
        // Groups are named by their labels: {rack="r0",dc="x"}.
        for (name, value) in groups(name) {
            add(&name, &value);
        }
    }
    for (name, value) in line.labels.iter().chain(&line.host) {
        add(name, value);
    }
    labels.sort();
    labels
}

/// True for what the receiver gets, and whoever scrapes, see [`super::config`].
pub fn is_sent(metric: &str) -> bool {
    match metric.strip_prefix("fleet.derived.m") {
        Some(index) => index.ends_with(['0', '3', '5']),
        None => true,
    }
}

/// The labels in the name of a group.
pub fn groups(name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or("");
    while let Some((label, value)) = rest.split_once("=\"") {
        let (value, after) = value.split_once('"').expect("a quoted value");
        found.push((label.trim_start_matches(',').to_owned(), value.to_owned()));
        rest = after;
    }
    found
}
