//! The failure of a slot, for counters and for people.

use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::remedies;
use pmderive_runtime::source::SourceError;

use crate::fleet::numbers::Reason;
use crate::syntax::counted;

/// The failure of a slot.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The reason, for counters.
    pub reason: Reason,
    /// The reason, in words.
    pub words: Arc<str>,
}

impl Failure {
    /// The failure of a host whose deadline has passed.
    pub fn late(host: &str, deadline: Duration) -> Failure {
        let seconds = counted(deadline.as_secs_f64(), "second");
        let words = format!("{host}: no answer within {seconds}");
        Failure { reason: Reason::Timeout, words: words.into() }
    }

    /// The failure of a host whose deadline passed during the lookup of its name.
    pub fn nameless(host: &str, deadline: Duration) -> Failure {
        let seconds = counted(deadline.as_secs_f64(), "second");
        let words = format!(
            "cannot connect to {host}: its name was not looked up within {seconds}; do the name \
             servers of this machine answer?"
        );
        Failure { reason: Reason::Connect, words: words.into() }
    }

    /// Replaces the advice by that for hosts of a group. Their targets have no user, and a
    /// target cannot leave open what its group encrypts.
    pub fn of_group(self) -> Failure {
        let mut words = self.words.to_string();
        for (of_target, of_group) in ADVICE {
            words = words.replace(of_target, of_group);
        }
        Failure { words: words.into(), ..self }
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

/// Pairs of advice: for a host on the command line, and for a host of a configured group.
const ADVICE: [(&str, &str); 6] = [
    (remedies::GIVE_USER, "give its group `user` and `password-file`, best with `secure`"),
    (remedies::CHECK_USER, "`user` and `password-file` of its group say who you are"),
    (remedies::CHECK_MECHANISMS, "mech_list in pmcd's sasl2/pmcd.conf says what it offers"),
    (remedies::ENCRYPT, "set `secure = \"required\"` for its group"),
    (
        remedies::DO_NOT_ENCRYPT,
        "connect without: `secure = \"off\"` of its group, and a target without `pcps://`",
    ),
    (
        remedies::DO_NOT_VERIFY,
        "`secure = \"relaxed\"` of its group encrypts without knowing for whom",
    ),
];

#[cfg(test)]
mod tests {
    use pmderive_runtime::model::PmStatus;

    use super::*;

    #[test]
    fn advice_is_about_keys_of_the_group() {
        let failure = |help: String| {
            let (target, message) = ("web1:44321".to_owned(), "it does not let us in".to_owned());
            let status = PmStatus::PERMISSION;
            Failure::from(SourceError::Handshake { target, status, message, help })
        };
        for (of_target, of_group) in ADVICE {
            let expected = format!("web1:44321: it does not let us in; wait, or {of_group}");
            let plain = failure(format!("wait, or {of_target}"));
            // For a user without groups, the message names the host specification.
            assert!(plain.words.ends_with(of_target), "{plain:?}");
            assert_eq!(*plain.of_group().words, *expected);
        }
        // User and password are wrong wherever they are given.
        let others = "are user and password right?";
        let expected = format!("web1:44321: it does not let us in; {others}");
        assert_eq!(*failure(others.to_owned()).of_group().words, *expected);
    }
}
