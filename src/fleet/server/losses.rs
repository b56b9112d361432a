//! Tells in the log what sinks have lost: at once, and then once a minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fleet::counting::Number;
use crate::fleet::sinks::numbers::SinkNumbers;
use crate::syntax::counted;

/// How often losses are told of at most.
const PAUSE: Duration = Duration::from_secs(60);

type Lost = fn(&SinkNumbers) -> &Number;

/// Ways to lose: what was lost, why, and its number. What a receiver refuses is told where
/// that happens.
const WAYS: [(&str, &str, Lost); 4] = [
    ("event", "had no room in its buffer", |n| &n.dropped_overflow),
    ("sample", "became too old for it", |n| &n.dropped_old),
    ("event", "had not been delivered at the end", |n| &n.dropped_closed),
    ("sample", "had not been delivered at the end", |n| &n.dropped_unsent),
];

/// What was told.
#[derive(Debug, Default)]
pub struct Losses {
    /// Numbers that were told, by sink.
    told: HashMap<Box<str>, [u64; WAYS.len()]>,
    last: Option<Instant>,
}

impl Losses {
    /// Tells what sinks, each with its name, have lost since the last time; with
    /// `is_the_end` also if that was just now.
    pub fn tell(&mut self, sinks: &[(Box<str>, Arc<SinkNumbers>)], is_the_end: bool) {
        if !is_the_end && self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        for (sink, numbers) in sinks {
            let told = self.told.entry(sink.clone()).or_default();
            for ((what, why, number), told) in WAYS.iter().zip(told) {
                let now = number(numbers).get();
                // One that was started again counts from zero.
                let lost = now.checked_sub(*told).unwrap_or(now);
                *told = now;
                if lost > 0 {
                    tracing::warn!("sink {sink}: {} {why}", counted(lost, what));
                    self.last = Some(Instant::now());
                }
            }
        }
    }
}
