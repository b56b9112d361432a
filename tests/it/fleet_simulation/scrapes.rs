//! What whoever scrapes the fleet has seen against the lines: of each host the values of
//! its newest frame, without the series that ended, and nothing after a failure.

use std::collections::BTreeMap;
use std::time::Duration;

use pmderive::internal::fleet::sinks::names::Limits;
use pmderive::internal::fleet::sinks::newest::Newest;
use pmderive::internal::fleet::sinks::scrape::{self, Choice};
use pmderive::internal::fleet::sinks::text::{Format, Writer};

use super::DEADLINE;
use super::lines::{Column, Line};
use super::samples::{SeriesLabels, groups, is_sent, labels_of};

/// What a target was shown as at a time.
#[derive(Debug, PartialEq)]
pub struct Scrape {
    /// The engine's time, since the beginning.
    at: Duration,
    target: String,
    text: String,
}

impl Scrape {
    /// Looks at a target.
    pub fn of(newest: &Newest, sink: u32, target: String, at: Duration) -> Scrape {
        let mut text = String::new();
        let choice = Choice { sink, times: true, limits: Limits::default() };
        let mut writer = Writer::new(&mut text, Format::Text);
        scrape::write(&mut writer, &newest.of(&target), &choice);
        Scrape { at, target, text }
    }

    fn series(&self) -> Shown {
        self.text.lines().filter(|line| !line.starts_with('#')).map(series).collect()
    }
}

/// Series with milliseconds and value.
type Shown = BTreeMap<SeriesLabels, (i64, f64)>;

/// Reads a line of the text format.
fn series(line: &str) -> (SeriesLabels, (i64, f64)) {
    let (line, time) = line.rsplit_once(' ').expect("a time");
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = series.split_at(series.find('{').unwrap_or(series.len()));
    let mut all = groups(labels);
    all.push(("__name__".to_owned(), name.to_owned()));
    all.sort();
    (all, (time.parse().expect("milliseconds"), value.parse().expect("a value")))
}

/// What each target is shown as, line after line.
#[derive(Default)]
pub struct Expected(BTreeMap<String, Vec<(Duration, Shown)>>);

impl Expected {
    /// Takes note of a line.
    pub fn note(&mut self, line: &Line<'_>) {
        let states = self.0.entry(line.target.to_owned()).or_default();
        let mut shown = Shown::new();
        match (&line.metrics, line.reason.as_deref()) {
            (Some(metrics), _) => {
                for (metric, Column(cells)) in metrics.iter().filter(|(name, _)| is_sent(name)) {
                    for (id, name, value) in cells {
                        let labels = labels_of(line, metric, *id, name);
                        shown.insert(labels, (line.milliseconds(), *value));
                    }
                }
            }
            (None, Some("without values" | "the definition has changed")) => {
                shown = states.last().map(|(_, shown)| shown.clone()).unwrap_or_default();
                for (metric, Column(cells)) in line.stale.iter().flatten() {
                    for (id, name, _) in cells {
                        shown.remove(&labels_of(line, metric, *id, name));
                    }
                }
            }
            // Nothing of it is there any more.
            _ => {}
        }
        states.push((line.at(), shown));
    }

    /// Compares with what was seen. Gives the number of series.
    pub fn compare(&self, scrapes: &[Scrape]) -> u64 {
        let (mut count, nothing) = (0, Shown::new());
        for scrape in scrapes {
            let states = self.0.get(&scrape.target).map_or(&[][..], |states| &**states);
            let found = scrape.series();
            let later = states.partition_point(|(at, _)| *at <= scrape.at);
            // A frame has the time of the reply, and is there a while later.
            let is_old = |at: &Duration| *at + DEADLINE + Duration::from_millis(2) < scrape.at;
            let old = states[..later].partition_point(|(at, _)| is_old(at));
            let mut possible = (old..=later).map(|count| match count {
                0 => &nothing,
                _ => &states[count - 1].1,
            });
            assert!(
                possible.any(|shown| *shown == found),
                "{} at {:?} is shown as\n{}",
                scrape.target,
                scrape.at,
                scrape.text
            );
            count += found.len() as u64;
        }
        count
    }
}
