//! Checks every scrape of the fleet with the lines. It has the values of each host's newest
//! frame, without ended series, and no values after a failure.

use std::time::Duration;

use pmderive::internal::fleet::sinks::newest_frames::NewestFrames;
use pmderive::internal::fleet::sinks::scrape::{self, Choice};
use pmderive::internal::fleet::sinks::sink_set::SinkPlace;
use pmderive::internal::fleet::sinks::text::{Format, Writer};

use rustc_hash::FxHashMap;

use super::history::History;
use super::lines::{Line, Text};
use super::samples::{SeriesLabels, groups, is_shown, labels_of};
use super::{DEADLINE, GRACE};

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
    pub fn of(newest: &NewestFrames, sink: SinkPlace, target: String, at: Duration) -> Scrape {
        let mut text = String::new();
        let choice = Choice { sink, times: true };
        let mut writer = Writer::new(&mut text, Format::Text);
        if let Some(shown) = newest.frame_of(&target) {
            scrape::write(&mut writer, &shown, &choice);
        }
        Scrape { at, target, text }
    }

    fn series(&self) -> Shown<'_> {
        self.text.lines().filter(|line| !line.starts_with('#')).map(series).collect()
    }
}

/// Series with milliseconds and value.
type Shown<'l> = FxHashMap<SeriesLabels<'l>, (i64, f64)>;

/// Reads a line of the text format.
fn series(line: &str) -> (SeriesLabels<'_>, (i64, f64)) {
    let (line, time) = line.rsplit_once(' ').expect("a time");
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = series.split_at(series.find('{').unwrap_or(series.len()));
    let mut all = groups(labels);
    all.push(("__name__".into(), name.into()));
    all.sort_unstable();
    (all, (time.parse().expect("milliseconds"), value.parse().expect("a value")))
}

/// What each target is shown as, line after line.
#[derive(Default)]
pub struct Expected {
    targets: FxHashMap<String, Vec<State>>,
}

/// What a line did to what is shown of its target.
struct State {
    at: Duration,
    /// When it is done at the latest: a frame has the time of the reply, or of the end
    /// of a slot, and is there a while later.
    until: Duration,
    what: What,
}

/// Lines are read again for those moments alone at which somebody looked.
enum What {
    Frame(Text),
    Ended(Text),
    /// Nothing of it is there any more.
    Nothing,
}

impl Expected {
    /// Takes note of a line.
    pub fn note(&mut self, history: &History, text: &Text, line: &Line<'_>) {
        let what = match (&line.metrics, line.reason.as_deref()) {
            (Some(_), _) => What::Frame(text.clone()),
            (None, Some("without values" | "the definition has changed")) => {
                What::Ended(text.clone())
            }
            _ => What::Nothing,
        };
        let at = history.at(line);
        let by_engine = history.clock.real(line.clock() + GRACE);
        let patience = match line.number() {
            // The clock may be set, which is noticed within a second.
            None => Duration::from_millis(1002),
            Some(_) => Duration::from_millis(2),
        };
        let until = by_engine.max(at + DEADLINE) + patience;
        let state = State { at, until, what };
        match self.targets.get_mut(line.target) {
            Some(states) => states.push(state),
            None => drop(self.targets.insert(line.target.to_owned(), vec![state])),
        }
    }

    /// Compares with what was seen. Gives the number of series.
    pub fn compare(&self, scrapes: &[Scrape]) -> u64 {
        let mut count = 0;
        for scrape in scrapes {
            let states = self.targets.get(&*scrape.target).map_or(&[][..], |states| &**states);
            let found = scrape.series();
            let later = states.partition_point(|state| state.at <= scrape.at);
            let old = states[..later].partition_point(|state| state.until < scrape.at);
            // What is newest is most likely.
            let mut possible = (old..=later).rev().map(|count| shown(&states[..count]));
            assert!(
                possible.any(|shown| shown == found),
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

/// What is shown after some lines.
fn shown(states: &[State]) -> Shown<'_> {
    let mut shown = Shown::default();
    let is_whole = |state: &State| !matches!(state.what, What::Ended(_));
    let first = states.iter().rposition(is_whole).unwrap_or(states.len());
    for state in &states[first..] {
        match &state.what {
            What::Frame(text) => {
                let line = text.read();
                let metrics = line.metrics.as_ref().expect("a frame");
                for (metric, cells) in metrics.iter().filter(|(name, _)| is_shown(name)) {
                    for (id, name, value) in cells {
                        let labels = labels_of(&line, metric, *id, name);
                        shown.insert(labels, (line.milliseconds(), *value));
                    }
                }
            }
            What::Ended(text) => {
                let line = text.read();
                for (metric, cells) in line.stale.iter().flat_map(|stale| stale.iter()) {
                    for (id, name, _) in cells {
                        shown.remove(&labels_of(&line, metric, *id, name));
                    }
                }
            }
            What::Nothing => {}
        }
    }
    shown
}
