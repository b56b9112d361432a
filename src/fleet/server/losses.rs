//! Logs the losses of sinks and the number of missed slots: at once, and then once a minute.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use crate::fleet::counting::Number;
use crate::fleet::sinks::numbers::SinkNumbers;
use crate::syntax::counted;

/// Time between two lines, at least.
const PAUSE: Duration = Duration::from_secs(60);

type Lost = fn(&SinkNumbers) -> &Number;

/// When a loss is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// Once, and at the end: a sink that has ended has no other losses.
    Once,
    /// At the end: the sink itself has logged it before.
    AtTheEnd,
}

/// Kinds of losses: the lost thing, the reason, when to log it, and its number.
const WAYS: [(&str, &str, When, Lost); 5] = [
    ("event", "had no room in its buffer", When::Always, |n| &n.dropped_overflow),
    ("sample", "became too old for it", When::Always, |n| &n.dropped_old),
    ("sample", "could not be delivered: the receiver refused", When::AtTheEnd, |n| {
        &n.dropped_refused
    }),
    ("event", "had not been delivered when it ended", When::Once, |n| &n.dropped_closed),
    ("sample", "had not been delivered when it ended", When::Once, |n| &n.dropped_unsent),
];

/// The losses that were logged.
#[derive(Debug, Default)]
pub struct Losses {
    /// Sinks that count, as of the last call.
    known: Vec<CountedSink>,
    last: Option<Instant>,
    /// Missed slots, as last logged.
    missed: u64,
    last_missed: Option<Instant>,
}

#[derive(Debug)]
struct CountedSink {
    sink: Box<str>,
    numbers: Arc<SinkNumbers>,
    told: [u64; WAYS.len()],
}

impl Losses {
    /// Logs the number of slots missed since the last call. `missed` counts since the start.
    pub fn tell_missed(&mut self, missed: u64) {
        let is_quiet = self.last_missed.is_some_and(|last| last.elapsed() < PAUSE);
        if is_quiet || missed == self.missed {
            return;
        }
        let more = counted(missed - self.missed, "slot");
        tracing::warn!(
            "{more} of hosts were missed and had no values: the machine was paused, its clock was \
             set, or it is too slow for them"
        );
        (self.missed, self.last_missed) = (missed, Some(Instant::now()));
    }

    /// Logs the losses of sinks since the last call. With `is_the_end` it does so at once. A
    /// sink that a reload removed may still lose events; these are logged, too.
    pub fn tell(&mut self, sinks: &[(Box<str>, Arc<SinkNumbers>)], is_the_end: bool) {
        for (sink, numbers) in sinks {
            match self.known.iter_mut().find(|known| Arc::ptr_eq(&known.numbers, numbers)) {
                // It may go on under another name.
                Some(known) => known.sink.clone_from(sink),
                None => {
                    let (sink, numbers) = (sink.clone(), Arc::clone(numbers));
                    self.known.push(CountedSink { sink, numbers, told: [0; WAYS.len()] });
                }
            }
        }
        if !is_the_end && self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        let last = &mut self.last;
        self.known.retain_mut(|CountedSink { sink, numbers, told }| {
            let counts = Arc::strong_count(numbers) > 1;
            // Numbers of removed sinks are read below, before they are dropped.
            fence(Ordering::Acquire);
            for ((what, why, when, number), told) in WAYS.iter().zip(told) {
                let is_time = match when {
                    When::Always => true,
                    When::Once => *told == 0,
                    When::AtTheEnd => false,
                };
                let now = number(numbers).get();
                let lost = now - *told;
                if lost > 0 && (is_time || is_the_end || !counts) {
                    *told = now;
                    tracing::warn!("sink {sink}: {} {why}", counted(lost, what));
                    *last = Some(Instant::now());
                }
            }
            counts
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use pmderive_runtime::locks::lock;

    use super::*;

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The last report includes the losses of removed sinks.
    #[test]
    fn the_end_leaves_nothing_untold() {
        let (log, mut losses) = (Log::default(), Losses::default());
        let to = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || to.clone());
        let subscriber = subscriber.without_time().with_target(false).with_ansi(false).finish();
        let told = || {
            let bytes = std::mem::take(&mut *lock(&log.0));
            String::from_utf8(bytes).expect("UTF-8").trim().to_owned()
        };
        let [one, other] = [(); 2].map(|()| Arc::<SinkNumbers>::default());
        let both: [(Box<str>, _); 2] =
            [("one".into(), Arc::clone(&one)), ("other".into(), Arc::clone(&other))];
        tracing::subscriber::with_default(subscriber, || {
            // The sink itself logs refusals.
            one.dropped_refused.add(5);
            losses.tell(&both, false);
            assert_eq!(told(), "");
            one.dropped_old.add(5);
            losses.tell(&both, false);
            let old = "sink one: 5 samples became too old for it";
            assert_eq!(told(), format!("WARN {old}"));
            // Within the minute all is quiet, until the end.
            one.dropped_old.add(5);
            other.dropped_unsent.add(1);
            let [one, gone] = both;
            losses.tell(std::slice::from_ref(&one), false);
            assert_eq!(told(), "");
            drop((other, gone));
            losses.tell(&[one], true);
            let refused = "sink one: 5 samples could not be delivered: the receiver refused";
            let unsent = "sink other: 1 sample had not been delivered when it ended";
            assert_eq!(told(), format!("WARN {old}\n WARN {refused}\n WARN {unsent}"));
            assert_eq!(losses.known.len(), 1);
        });
    }

    #[test]
    fn slots_that_were_missed_are_told_once_a_minute() {
        let (log, mut losses) = (Log::default(), Losses::default());
        let to = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || to.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            [0, 1, 1, 7].into_iter().for_each(|missed| losses.tell_missed(missed));
            losses.last_missed = None;
            [9, 12].into_iter().for_each(|missed| losses.tell_missed(missed));
        });
        let told = String::from_utf8(lock(&log.0).clone()).expect("UTF-8");
        let said: Vec<&str> = told.split(" of hosts").collect();
        assert!(said[0].ends_with(" 1 slot") && said[1].ends_with(" 8 slots"), "{told}");
        assert_eq!(said.len(), 3);
    }

    /// Events for a sink that has ended are not logged each minute.
    #[test]
    fn a_sink_ends_once() {
        let (log, mut losses) = (Log::default(), Losses::default());
        let to = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || to.clone()).finish();
        let one = Arc::<SinkNumbers>::default();
        let sinks: [(Box<str>, _); 1] = [("one".into(), Arc::clone(&one))];
        tracing::subscriber::with_default(subscriber, || {
            for is_the_end in [false, false, true] {
                one.dropped_closed.add(2);
                losses.last = None;
                losses.tell(&sinks, is_the_end);
            }
        });
        let told = String::from_utf8(lock(&log.0).clone()).expect("UTF-8");
        let said: Vec<&str> = told.lines().filter_map(|line| line.split("one: ").nth(1)).collect();
        let expected = ["2 events", "4 events"];
        let expected = expected.map(|many| format!("{many} had not been delivered when it ended"));
        assert_eq!(said, expected);
    }
}
