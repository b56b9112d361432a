//! Why a slot failed.

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::source::SourceError;

use crate::fleet::numbers::Reason;
use crate::syntax::counted;

/// Why a slot failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why, for counting.
    pub reason: Reason,
    /// Why, in words.
    pub words: Arc<str>,
}

impl Failure {
    /// The deadline has passed.
    pub fn late(host: &str, deadline: Duration) -> Failure {
        let seconds = counted(deadline.as_secs_f64(), "second");
        let words = format!("{host}: no answer within {seconds}");
        Failure { reason: Reason::Timeout, words: words.into() }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        let reason = match &error {
            SourceError::Connect { .. } => Reason::Connect,
            SourceError::TooSoon { .. } => Reason::BackOff,
            SourceError::Timeout { .. } => Reason::Timeout,
            SourceError::Malformed { .. } => Reason::Malformed,
            SourceError::TooManyKinds { .. } => Reason::Kinds,
            SourceError::Io { .. } => Reason::Lost,
            _ => Reason::Refused,
        };
        Failure { reason, words: error.to_string().into() }
    }
}
