//! Decides about a live source that fails: when to try again, which messages to print, and when to
//! give up.
//!
//! Input: the outcome of each attempt to fetch, and a [`Clock`], which alone tells the
//! time. Output: pauses and messages. Nothing is fetched here.

use std::time::{Duration, Instant};

use clap::Args;
use pmderive_runtime::source::SourceError;

use super::pace::Clock;
use crate::cli::args::time;
use crate::cli::messages::Messages;
use crate::syntax::counted;

/// The pause after a first failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Time between messages about a source that goes on failing.
const BETWEEN_MESSAGES: Duration = Duration::from_secs(60);

/// How long a source is tried unless told otherwise.
const DEFAULT_LIMIT: Duration = Duration::from_secs(60);

/// How long a source that fails is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Until no fetch has succeeded for this long; with zero, not at all.
    For(Duration),
    /// For ever.
    Forever,
}

/// The option of commands that fetch.
#[derive(Clone, Debug, Default, Args)]
pub struct RetryArgument {
    /// Keep trying a live source that fails, until no fetch has succeeded for TIME.
    /// `forever` never gives up [default: 1min].
    #[arg(long, value_name = "TIME", value_parser = retry)]
    pub retry: Option<Retry>,
}

fn retry(text: &str) -> Result<Retry, String> {
    match text {
        "forever" => Ok(Retry::Forever),
        _ => time(text).map(Retry::For),
    }
}

impl RetryArgument {
    /// The patience that was asked for, or the usual one.
    pub fn patience(&self) -> Patience {
        Patience::new(self.retry.unwrap_or(Retry::For(DEFAULT_LIMIT)))
    }
}

/// Patience with a source, and how far it is used up.
pub struct Patience {
    retry: Retry,
    /// Present since an attempt failed, until one succeeds.
    trial: Option<Trial>,
}

/// A time without success.
struct Trial {
    since: Instant,
    next_pause: Duration,
    /// The time of the last message.
    told: Option<Instant>,
    /// Why attempts failed; a refused early attempt is not a cause.
    cause: Option<SourceError>,
}

/// The reaction to a failure.
enum NextStep {
    /// Try again after a pause, perhaps with a message first.
    Again(Duration, Option<String>),
    /// Give up the source, perhaps with a message about the time that has passed.
    Over(SourceError, Option<String>),
}

impl Patience {
    /// Patience with a source that has not failed yet.
    pub fn new(retry: Retry) -> Patience {
        Patience { retry, trial: None }
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self) {
        self.trial = None;
    }

    /// An attempt failed in a way that may pass with time. Prints a message now and then, and
    /// pauses until the next attempt.
    ///
    /// # Errors
    /// The cause, if the source is given up.
    pub fn failed(
        &mut self,
        error: SourceError,
        clock: &dyn Clock,
        messages: &Messages,
    ) -> Result<(), SourceError> {
        let (outcome, text) = match self.judge(error, clock.now()) {
            NextStep::Again(pause, text) => (Ok(pause), text),
            NextStep::Over(error, text) => (Err(error), text),
        };
        if let Some(text) = text {
            messages.error(&text);
        }
        clock.pause(outcome?);
        Ok(())
    }

    fn judge(&mut self, error: SourceError, now: Instant) -> NextStep {
        let fresh = Trial { since: now, next_pause: FIRST_PAUSE, told: None, cause: None };
        let trial = self.trial.get_or_insert(fresh);
        if trial.cause.is_none() || !matches!(error, SourceError::TooSoon { .. }) {
            trial.cause = Some(error);
        }
        let passed = now.saturating_duration_since(trial.since);
        let left = match self.retry {
            Retry::Forever => Duration::MAX,
            Retry::For(limit) => limit.saturating_sub(passed),
        };
        if left.is_zero()
            && let Some(cause) = trial.cause.take()
        {
            let text = (self.retry != Retry::For(Duration::ZERO)).then(|| {
                format!(
                    "no fetch has succeeded for {}; --retry=TIME or --retry=forever tries for \
                     longer",
                    seconds(passed)
                )
            });
            return NextStep::Over(cause, text);
        }
        let pause = trial.next_pause.min(left);
        trial.next_pause = (trial.next_pause * 2).min(LONGEST_PAUSE);
        let is_due =
            trial.told.is_none_or(|told| now.saturating_duration_since(told) >= BETWEEN_MESSAGES);
        let text = trial.cause.as_ref().filter(|_| is_due).map(|cause| {
            let for_long = match (trial.told, self.retry) {
                (Some(_), _) => {
                    format!("no fetch has succeeded for {}; it is ", seconds(passed))
                }
                (None, Retry::For(limit)) => format!("for {} it is ", seconds(limit)),
                (None, Retry::Forever) => "it is ".to_owned(),
            };
            format!("{cause} ({for_long}tried again)")
        });
        if text.is_some() {
            trial.told = Some(now);
        }
        NextStep::Again(pause, text)
    }
}

/// A time in words, to a tenth of a second.
fn seconds(time: Duration) -> String {
    counted((time.as_secs_f64() * 10.0).round() / 10.0, "second")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> SourceError {
        SourceError::Timeout { target: "web1".to_owned(), seconds: 2.0 }
    }

    fn too_soon() -> SourceError {
        SourceError::TooSoon { failure: "web1 is away".to_owned(), seconds: 4.0 }
    }

    /// At once, and then once a minute, whatever the reason is by then.
    #[test]
    fn it_is_said_once_a_minute() {
        let start = Instant::now();
        let told = |retry, errors: &mut dyn FnMut(u32) -> SourceError| {
            let (mut patience, mut now, mut told) = (Patience::new(retry), start, Vec::new());
            for attempt in 0..40 {
                match patience.judge(errors(attempt), now) {
                    NextStep::Again(pause, text) => {
                        told.extend(text);
                        now += pause;
                    }
                    NextStep::Over(error, text) => {
                        told.extend(text);
                        told.push(error.to_string());
                        break;
                    }
                }
            }
            told
        };
        let mut changing =
            |attempt| SourceError::Timeout { target: format!("web{attempt}"), seconds: 2.0 };
        assert_eq!(
            told(Retry::Forever, &mut changing),
            [
                "web0: no answer within 2 seconds (it is tried again)",
                "web12: no answer within 2 seconds (no fetch has succeeded for 62.7 seconds; it is \
                 tried again)",
                "web18: no answer within 2 seconds (no fetch has succeeded for 122.7 seconds; it is \
                 tried again)",
                "web24: no answer within 2 seconds (no fetch has succeeded for 182.7 seconds; it is \
                 tried again)",
                "web30: no answer within 2 seconds (no fetch has succeeded for 242.7 seconds; it is \
                 tried again)",
                "web36: no answer within 2 seconds (no fetch has succeeded for 302.7 seconds; it is \
                 tried again)",
            ]
        );
        // A refused early attempt is not a cause.
        let mut away = |attempt| if attempt == 0 { failure() } else { too_soon() };
        assert_eq!(
            told(Retry::For(Duration::from_secs(5)), &mut away),
            [
                "web1: no answer within 2 seconds (for 5 seconds it is tried again)",
                "no fetch has succeeded for 5 seconds; --retry=TIME or --retry=forever tries for \
                 longer",
                "web1: no answer within 2 seconds",
            ]
        );
    }

    #[test]
    fn the_argument_is_a_time_or_forever() {
        assert_eq!(retry("forever"), Ok(Retry::Forever));
        assert_eq!(retry("0"), Ok(Retry::For(Duration::ZERO)));
        assert_eq!(retry("2.5"), Ok(Retry::For(Duration::from_millis(2500))));
        assert_eq!(retry("5min"), Ok(Retry::For(Duration::from_secs(300))));
        assert!(retry("soon").is_err());
    }
}
