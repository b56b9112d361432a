//! Checks every sample of a receiver with the lines. The values of a line are there, in order
//! and to the last bit, unless the receiver refused them, or they were dropped and counted. The
//! plan decides which lines a receiver gets.

use std::borrow::Cow;
use std::collections::HashMap;

use pmderive_testkit::receiver::STALE;
use pmderive_testkit::sim::Receiver;
use rustc_hash::FxHashMap;

use super::history::{History, Told};
use super::lines::{Cell, Columns, Line};

/// Names and values of labels.
pub type SeriesLabels<'l> = Vec<(Cow<'l, str>, Cow<'l, str>)>;

/// A receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// It is there all the time. Which metrics it gets changes.
    First,
    /// It is there in some plans only.
    Other,
}

/// The same, for as long as one likes.
type Labels = Vec<(String, String)>;

/// Series, with the samples that they should have.
pub struct Expected {
    of: Of,
    /// By the number of the host; the fleet has none.
    targets: FxHashMap<Option<u32>, Target>,
    /// Numbers of metrics.
    metrics: FxHashMap<String, usize>,
    by_labels: FxHashMap<Labels, usize>,
    series: Vec<(Labels, Vec<Sample>)>,
}

/// A sample that a series should have.
#[derive(Clone, Copy, Debug)]
struct Sample {
    milliseconds: i64,
    bits: u64,
    /// It may be there or not.
    is_open: bool,
}

/// What is known of a host, or of the fleet.
#[derive(Default)]
struct Target {
    /// All series that frames have had, in their order.
    known: Vec<Known>,
    /// The plan of the latest frame, unless all has ended since.
    told: Option<usize>,
    /// Series of the latest frame that other plans do not send.
    narrow: Vec<usize>,
}

/// A series, with the metric and the instance that it has in lines.
struct Known {
    /// Its number.
    metric: usize,
    id: i32,
    name: String,
    series: usize,
}

/// A metric that the first receiver does not get by every plan.
const NARROW: &str = "fleet.derived.m5";

/// What a comparison came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub stored: u64,
    pub refused: u64,
    /// Neither stored nor refused.
    pub missing: u64,
}

impl Of {
    /// True for a metric that the receiver gets by a plan.
    fn gets(self, metric: &str, told: &Told) -> bool {
        let index = metric.strip_prefix("fleet.derived.");
        match self {
            Of::First => index.is_none_or(|index| {
                index.starts_with('m')
                    && (index.ends_with(['0', '3']) || told.is_wide && index.ends_with('5'))
            }),
            Of::Other if told.other.is_none() => false,
            Of::Other => index.map_or(metric.starts_with("racks."), |index| {
                index.starts_with('m') && index.ends_with(['1', '7'])
            }),
        }
    }

    /// True if the receiver is there.
    fn is_there(self, told: &Told) -> bool {
        self == Of::First || told.other.is_some()
    }
}

impl Expected {
    /// Nothing yet.
    pub fn new(of: Of) -> Expected {
        let (targets, metrics, by_labels, series) = Default::default();
        Expected { of, targets, metrics, by_labels, series }
    }

    /// Takes note of a line, which has a number.
    pub fn note(&mut self, history: &History, number: u64, line: &Line<'_>) {
        let of = self.of;
        let host = line.number();
        let mut target = self.targets.remove(&host).unwrap_or_default();
        let now = history.told_by(number);
        // A host goes by the plan with which it began the slot.
        let plan = match host {
            Some(_) => {
                history.told.partition_point(|told| told.at <= history.due(line.target, line.slot))
                    - 1
            }
            None => now,
        };
        let is_there = of.is_there(&history.told[now]);
        let gets = |metric: &str, plan: usize| of.gets(metric, &history.told[plan]);
        // While a receiver comes or goes it may get a line or not.
        let is_open = of == Of::Other && !history.is_certain(number);
        match (&line.metrics, line.reason.as_deref()) {
            (Some(metrics), _) => {
                let narrow = std::mem::take(&mut target.narrow);
                if is_there && !gets(NARROW, plan) {
                    let milliseconds = line.milliseconds();
                    for series in narrow {
                        self.series[series].1.push(Sample { milliseconds, bits: STALE, is_open });
                    }
                }
                let is_sent = |metric: &str| is_there && gets(metric, plan);
                self.all(line, metrics, &mut target, is_open, &is_sent);
                target.told = Some(plan);
            }
            (None, Some("without values" | "the definition has changed")) => {
                let before = target.told;
                let is_sent = |metric: &str| {
                    is_there && gets(metric, plan) && before.is_some_and(|plan| gets(metric, plan))
                };
                let stale = line.stale.as_ref().expect("series");
                self.all(line, stale, &mut target, is_open, &is_sent);
            }
            _ => {
                let before = target.told.take();
                let is_sent =
                    |metric: &str| is_there && before.is_some_and(|plan| gets(metric, plan));
                let stale = line.stale.as_ref().expect("series");
                self.all(line, stale, &mut target, is_open, &is_sent);
                target.narrow.clear();
            }
        }
        self.targets.insert(host, target);
    }

    /// Takes note of all values of a line, or of all ends.
    fn all(
        &mut self,
        line: &Line<'_>,
        columns: &Columns<'_>,
        target: &mut Target,
        is_open: bool,
        is_sent: &dyn Fn(&str) -> bool,
    ) {
        let milliseconds = line.milliseconds();
        let is_end = line.stale.is_some();
        let known = &mut target.known;
        let mut place = 0;
        for (metric, cells) in columns.iter().filter(|(metric, _)| is_sent(metric)) {
            let is_narrow = self.of == Of::First
                && !is_end
                && metric.starts_with("fleet.derived.")
                && metric.ends_with('5');
            let number = self.number_of(metric);
            for cell in cells {
                let (id, name, _) = cell;
                let is_it = |known: &Known| {
                    (known.metric, known.id) == (number, *id) && known.name == *name
                };
                // What was said to end has been in frames, in which the order is the same.
                let series = match known[place..].iter().position(is_it) {
                    Some(skipped) => {
                        place += skipped + 1;
                        known[place - 1].series
                    }
                    None => {
                        let series = self.series_of(line, metric, cell);
                        let name = name.to_string();
                        known.insert(place, Known { metric: number, id: *id, name, series });
                        place += 1;
                        series
                    }
                };
                let bits = if is_end { STALE } else { cell.2.to_bits() };
                self.series[series].1.push(Sample { milliseconds, bits, is_open });
                if is_narrow {
                    target.narrow.push(series);
                }
            }
        }
    }

    fn number_of(&mut self, metric: &str) -> usize {
        self.metrics.get(metric).copied().unwrap_or_else(|| {
            self.metrics.insert(metric.to_owned(), self.metrics.len());
            self.metrics.len() - 1
        })
    }

    /// The series of a cell.
    fn series_of(&mut self, line: &Line<'_>, metric: &str, (id, name, _): &Cell<'_>) -> usize {
        let labels = labels_of(line, metric, *id, name).into_iter();
        let labels = labels.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        *self.by_labels.entry(labels).or_insert_with_key(|labels| {
            self.series.push((labels.clone(), Vec::new()));
            self.series.len() - 1
        })
    }

    /// Compares with what a receiver has.
    pub fn compare(&self, receiver: &Receiver) -> Found {
        assert_eq!(receiver.complaints, [] as [String; 0]);
        let mut unknown: HashMap<&[(String, String)], usize> =
            receiver.series.iter().enumerate().map(|(id, labels)| (&**labels, id)).collect();
        let mut found = Found::default();
        for (labels, samples) in &self.series {
            let Some(id) = unknown.remove(&**labels) else {
                found.missing += samples.iter().filter(|sample| !sample.is_open).count() as u64;
                continue;
            };
            let bits = |sample: &pmderive_testkit::receiver::Sample| {
                (sample.timestamp, sample.value.to_bits())
            };
            let mut stored = receiver.stored[id].iter().map(bits).peekable();
            let mut refused = receiver.refused[id].iter().map(bits).peekable();
            for sample in samples {
                let both = (sample.milliseconds, sample.bits);
                if stored.next_if_eq(&both).is_some() {
                    // It may have been refused when it came again.
                    refused.next_if_eq(&both);
                    found.stored += 1;
                } else if refused.next_if_eq(&both).is_some() {
                    found.refused += 1;
                } else if !sample.is_open {
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
pub fn labels_of<'l>(
    line: &Line<'l>,
    metric: &str,
    id: i32,
    name: &Cow<'l, str>,
) -> SeriesLabels<'l> {
    let mut labels: SeriesLabels<'l> = Vec::with_capacity(8);
    labels.push(("__name__".into(), metric.replace('.', "_").into()));
    if line.number().is_some() {
        labels.push(("instance".into(), line.target.into()));
        if id != -1 {
            labels.push(("instid".into(), id.to_string().into()));
            labels.push(("instname".into(), name.clone()));
        }
    } else {
        // Groups are named by their labels: {rack="r0",dc="x"}.
        match name {
            Cow::Borrowed(name) => labels.extend(groups(name)),
            Cow::Owned(name) => labels.extend(groups(name).into_iter().map(|(name, value)| {
                (Cow::Owned(name.into_owned()), Cow::Owned(value.into_owned()))
            })),
        }
    }
    let of_hosts = line.labels.iter().chain(&line.host);
    labels.extend(of_hosts.map(|(name, value)| (Cow::Borrowed(*name), value.clone())));
    labels.sort_unstable();
    labels
}

/// True for what whoever scrapes gets, see [`super::config`].
pub fn is_shown(metric: &str) -> bool {
    match metric.strip_prefix("fleet.derived.") {
        Some(index) => index.starts_with('m') && index.ends_with(['0', '3', '5']),
        None => true,
    }
}

/// The labels in the name of a group.
pub fn groups(name: &str) -> SeriesLabels<'_> {
    let mut found = Vec::with_capacity(8);
    let mut rest = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or("");
    while let Some((label, value)) = rest.split_once("=\"") {
        let (value, after) = value.split_once('"').expect("a quoted value");
        found.push((label.trim_start_matches(',').into(), value.into()));
        rest = after;
    }
    found
}
