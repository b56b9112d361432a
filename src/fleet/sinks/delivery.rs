//! Decides by the answer to a message: it is delivered, dropped, or sent again after some time.
//! Other modules send it and read the clock.

use std::time::{Duration, SystemTime};

use super::numbers::RequestOutcome;

/// Upper limit of a receiver's `Retry-After`.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Pauses between failed attempts: each is about twice the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelays {
    /// The first.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Default for RetryDelays {
    fn default() -> RetryDelays {
        RetryDelays { first: Duration::from_millis(100), longest: Duration::from_secs(5) }
    }
}

impl RetryDelays {
    /// The pause after `failed` failures in a row. `chance`, from 0 to 1, shortens it by up
    /// to a half, so that hosts do not retry all at once.
    pub fn after(&self, failed: u32, chance: f64) -> Duration {
        let doubled = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        let full = self.first.saturating_mul(doubled).min(self.longest);
        full.mul_f64(1.0 - 0.5 * chance.clamp(0.0, 1.0))
    }
}

/// An answer of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status of HTTP.
    pub status: u16,
    /// Time after which to try again, if the receiver gives one.
    pub retry_after: Option<Duration>,
    /// Where it redirects to, or else the first line of its text, unchanged.
    pub said: String,
}

/// Reason for having no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoResponse {
    /// It took too long.
    TimedOut,
    /// There was no connection, or no valid answer; the reason in words.
    Broken(String),
}

/// Decision about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is delivered.
    Done,
    /// It is refused for good.
    Drop,
    /// It is sent again, after the time of [`RetryDelays`], or later if the receiver asks for it.
    Again(Option<Duration>),
}

/// The decision about a message, and the outcome for counting its request.
pub fn judge(answer: &Result<Response, NoResponse>) -> (Verdict, RequestOutcome) {
    match answer {
        Ok(Response { status: 200..300, .. }) => (Verdict::Done, RequestOutcome::Accepted),
        Ok(Response { status: 429, retry_after, .. }) => {
            (Verdict::Again(*retry_after), RequestOutcome::Throttled)
        }
        Ok(Response { status: 500.., retry_after, .. }) => {
            (Verdict::Again(*retry_after), RequestOutcome::Failed)
        }
        Ok(_) => (Verdict::Drop, RequestOutcome::Refused),
        Err(NoResponse::TimedOut) => (Verdict::Again(None), RequestOutcome::TimedOut),
        Err(NoResponse::Broken(_)) => (Verdict::Again(None), RequestOutcome::Broken),
    }
}

/// Reads the value of a `Retry-After` header: seconds or a date of HTTP. At most
/// [`MAX_RETRY_AFTER`]; `None` if it is neither.
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let time = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let until = httpdate::parse_http_date(text).ok()?;
        until.duration_since(now).unwrap_or_default()
    };
    Some(time.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_double_up_to_the_longest() {
        let backoff = RetryDelays::default();
        let times = |chance: f64| {
            [1, 2, 3, 6, 7, 40, u32::MAX].map(|failed| backoff.after(failed, chance).as_millis())
        };
        assert_eq!(times(0.0), [100, 200, 400, 3200, 5000, 5000, 5000]);
        assert_eq!(times(1.0), [50, 100, 200, 1600, 2500, 2500, 2500]);
    }

    #[test]
    fn answers_are_judged() {
        use Verdict::{Again, Done, Drop};
        let second = Some(Duration::from_secs(1));
        let cases = [
            (200, Done, RequestOutcome::Accepted),
            (204, Done, RequestOutcome::Accepted),
            (301, Drop, RequestOutcome::Refused),
            (400, Drop, RequestOutcome::Refused),
            (401, Drop, RequestOutcome::Refused),
            (429, Again(second), RequestOutcome::Throttled),
            (500, Again(second), RequestOutcome::Failed),
            (503, Again(second), RequestOutcome::Failed),
        ];
        for (status, verdict, outcome) in cases {
            let response = Response { status, retry_after: second, said: String::new() };
            assert_eq!(judge(&Ok(response)), (verdict, outcome), "{status}");
        }
        assert_eq!(judge(&Err(NoResponse::TimedOut)), (Again(None), RequestOutcome::TimedOut));
    }

    #[test]
    fn when_to_come_again() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let cases = [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("99999999999999999999999", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(7)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(120)),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ];
        for (text, seconds) in cases {
            let found = retry_after(text, now).map(|time| time.as_secs());
            assert_eq!(found, seconds, "{text:?}");
        }
    }
}
