//! Why a slot failed.

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::{SASL_BAD_PARAMETER, SASL_ENCRYPTION_NEEDED, SASL_NO_MECHANISM};
use pmderive_runtime::model::PmStatus;
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
        Failure { reason, words: words(&error).into() }
    }
}

/// An error with advice that holds for hosts of a group: their targets take no user.
fn words(error: &SourceError) -> String {
    match error {
        SourceError::Handshake { target, status, message, .. } => ADVICE
            .iter()
            .find(|(of, _)| of == status)
            .map_or_else(|| error.to_string(), |(_, help)| format!("{target}: {message}; {help}")),
        _ => error.to_string(),
    }
}

/// What to do about failed logins, by the status of libpcp.
const ADVICE: [(PmStatus, &str); 3] = [
    (SASL_BAD_PARAMETER, "give its group `user` and `password-file`, best with `secure`"),
    (SASL_ENCRYPTION_NEEDED, "set `secure = \"required\"` for its group"),
    (SASL_NO_MECHANISM, "mech_list in pmcd's sasl2/pmcd.conf says what it offers"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_about_keys_of_the_group() {
        let failure = |status| {
            let (target, message) = ("web1:44321".to_owned(), "it wants a user".to_owned());
            let help = "add `?user=NAME`".to_owned();
            Failure::from(SourceError::Handshake { target, status, message, help })
        };
        for (status, expected) in ADVICE {
            let words = failure(status).words;
            assert_eq!(*words, format!("web1:44321: it wants a user; {expected}"));
        }
        let others = failure(PmStatus::PERMISSION).words;
        assert_eq!(*others, *"web1:44321: it wants a user; add `?user=NAME`");
    }
}
