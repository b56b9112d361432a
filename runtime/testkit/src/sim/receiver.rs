//! A modelled receiver of remote write. It accepts samples; by a seed it refuses
//! them, fails, sends nonsense, says nothing or is away for a while. Afterwards it lists the
//! accepted and the refused samples.

use std::ops::Range;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::periods::{Periods, periods};
use crate::mix::mix;
use crate::receiver::{Sample, decompress, labels_of, samples_of};

/// Longest time until an answer.
const MOST_DELAY: Duration = Duration::from_millis(50);

/// Largest accepted body, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// The behaviour of a receiver for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It accepts correct requests.
    Well,
    /// 400 for all requests: samples that are sent now are lost.
    Refuses,
    /// 429, and when to come again.
    Throttles,
    /// 500.
    Fails,
    /// It stores the request, and then answers 500.
    TakesAndFails,
    /// Its answer is not a response.
    Garbage,
    /// It never answers.
    Silent,
    /// No receiver is there.
    Away,
}

impl Mood {
    const ILL: [Mood; 7] = [
        Mood::Refuses,
        Mood::Throttles,
        Mood::Fails,
        Mood::TakesAndFails,
        Mood::Garbage,
        Mood::Silent,
        Mood::Away,
    ];
}

/// A receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverAnswer {
    /// A response.
    Status {
        /// Its status.
        status: u16,
        /// The time to come again.
        retry_after: Option<Duration>,
    },
    /// No response, and the reason.
    Broken(&'static str),
}

/// Number of a series, in the order in which they came.
pub type SeriesId = usize;

/// The facts about a series that find the next one.
#[derive(Debug)]
struct Place {
    /// The place of its labels.
    encoded: Range<usize>,
    /// The series that came behind it: requests are much like those before.
    behind: SeriesId,
}

/// A receiver.
#[derive(Debug)]
pub struct Receiver {
    seed: u64,
    began: Instant,
    moods: Periods<Mood>,
    requests: u64,
    /// Series by their encoded labels.
    known: FxHashMap<Box<[u8]>, SeriesId>,
    /// The same labels, in the order in which the series first came. Each request has nearly the
    /// same order.
    encoded: Vec<u8>,
    /// Places, by series.
    places: Vec<Place>,
    latest: SeriesId,
    /// Labels of all series.
    pub series: Vec<Vec<(String, String)>>,
    /// Stored samples, by series.
    pub stored: Vec<Vec<Sample>>,
    /// Refused samples, by series.
    pub refused: Vec<Vec<Sample>>,
    /// The faults of requests.
    pub complaints: Vec<String>,
}

impl Receiver {
    /// A receiver that misbehaves `ill` times an hour, within a period of `length` from now on.
    /// Each time it does so in another way, for some seconds to some minutes.
    ///
    /// # Panics
    /// Outside a task of a tokio runtime with time.
    pub fn new(seed: u64, length: Duration, ill: f64) -> Receiver {
        let draw = |number: u64| Mood::ILL[(number % Mood::ILL.len() as u64) as usize];
        Receiver {
            seed,
            began: Instant::now(),
            moods: periods(mix(&[seed, 17]), length, ill, Mood::Well, draw),
            requests: 0,
            known: FxHashMap::default(),
            encoded: Vec::new(),
            places: Vec::new(),
            latest: 0,
            series: Vec::new(),
            stored: Vec::new(),
            refused: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// The time until the next answer, and the behaviour then.
    pub fn begin(&mut self) -> (Duration, Mood) {
        self.requests += 1;
        let most = MOST_DELAY.as_millis() as u64;
        let delay = Duration::from_millis(mix(&[self.seed, self.requests]) % (most + 1));
        (delay, self.moods.at(self.began.elapsed() + delay))
    }

    /// Requests that came.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Handles the body of a request and answers. `None` if it never answers.
    pub fn take(&mut self, body: &[u8], mood: Mood) -> Option<ReceiverAnswer> {
        let status = |status| Some(ReceiverAnswer::Status { status, retry_after: None });
        match mood {
            Mood::Well => status(if self.store(body, true) { 204 } else { 400 }),
            Mood::Refuses => {
                self.store(body, false);
                status(400)
            }
            Mood::Throttles => {
                let seconds = mix(&[self.seed, self.requests, 1]) % 20;
                let retry_after = Some(Duration::from_secs(seconds));
                Some(ReceiverAnswer::Status { status: 429, retry_after })
            }
            Mood::Fails => status(500),
            Mood::TakesAndFails => {
                self.store(body, true);
                status(500)
            }
            Mood::Garbage => Some(ReceiverAnswer::Broken("invalid HTTP version parsed")),
            Mood::Silent => None,
            Mood::Away => Some(ReceiverAnswer::Broken("Connection refused (os error 111)")),
        }
    }

    /// Notes all samples as stored or as refused. False if something is not in order.
    fn store(&mut self, body: &[u8], is_stored: bool) -> bool {
        let before = self.complaints.len();
        let result = decompress(body, MOST_BYTES).and_then(|bytes| {
            samples_of(&bytes, |labels, sample| self.append(labels, sample, is_stored))
        });
        self.complaints.extend(result.err());
        self.complaints.len() == before
    }

    /// The series with these labels; a new one is added.
    fn id_of(&mut self, labels: &[u8]) -> SeriesId {
        if let Some(id) = self.known.get(labels) {
            return *id;
        }
        let id = self.series.len();
        let parsed = labels_of(labels);
        self.complaints.extend(parsed.as_ref().err().cloned());
        self.series.push(parsed.unwrap_or_default());
        self.stored.push(Vec::new());
        self.refused.push(Vec::new());
        let begin = self.encoded.len();
        self.encoded.extend_from_slice(labels);
        self.places.push(Place { encoded: begin..self.encoded.len(), behind: id });
        self.known.insert(labels.into(), id);
        id
    }

    fn append(&mut self, labels: &[u8], sample: Sample, is_stored: bool) {
        let expected = self.places.get(self.latest).map(|place| place.behind);
        let is_it = |id: &SeriesId| self.encoded[self.places[*id].encoded.clone()] == *labels;
        let id = expected.filter(is_it).unwrap_or_else(|| {
            let id = self.id_of(labels);
            if let Some(place) = self.places.get_mut(self.latest) {
                place.behind = id;
            }
            id
        });
        self.latest = id;
        if !is_stored {
            self.refused[id].push(sample);
            return;
        }
        let stored = &mut self.stored[id];
        match stored.last() {
            Some(last) if last.timestamp >= sample.timestamp => {
                let earlier = stored.iter().rev();
                let mut earlier = earlier.take_while(|one| one.timestamp >= sample.timestamp);
                // A client repeats a request without a response.
                if !earlier.any(|one| *one == sample) {
                    let labels = &self.series[id];
                    self.complaints.push(format!("{labels:?}: {sample:?} comes after {last:?}"));
                }
            }
            _ => stored.push(sample),
        }
    }
}
