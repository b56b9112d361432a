//! Authentication: the client's side of an exchange of SASL messages.
//!
//! Input: the messages of pmcd. Output: those of the client. pmcd is silent after a
//! successful exchange. `rsasl` implements the mechanisms. This module chooses a
//! mechanism, limits the work and the number of messages that a peer can demand, and
//! translates its refusals into words.

use std::fmt;

use pmderive_core::model::PmStatus;
use rsasl::mechname::Mechname;
use rsasl::prelude::{SASLClient, SASLConfig, Session, SessionError, State};

use super::config::{Credentials, Method};
use crate::pdu::MAX_SASL_BYTES;

/// Largest number of hashing rounds that a peer can demand. It is the limit of Cyrus SASL,
/// with which libpcp logs in, and some hundredths of a second of work. Usual are 4096.
const MAX_ITERATIONS: u32 = 65_536;

/// Maximum number of pmcd's messages after its list of mechanisms. SCRAM needs two.
const MAX_CHALLENGES: u32 = 8;

/// PMAPI codes below this one stand for SASL codes, which are negative themselves.
const SASL_BASE: i32 = -21_344;

/// The reasons why an authentication failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// pmcd demands to know the user, and the client has no credentials.
    #[error("pmcd demands to know who the user is")]
    CredentialsRequired,
    /// pmcd does not offer the requested mechanism, or none that this client has.
    #[error("pmcd offers {offered}, but {wanted} is needed")]
    NoMechanism {
        /// The mechanisms that pmcd offers.
        offered: String,
        /// The mechanisms that would do.
        wanted: &'static str,
    },
    /// The only common mechanism would show the password to eavesdroppers.
    #[error("pmcd accepts the password only unencrypted, and the connection does not hide it")]
    PasswordInTheClear,
    /// pmcd refuses the user.
    #[error("{} (status {status})", refusal(*.status))]
    Refused {
        /// pmcd's status.
        status: i32,
    },
    /// The peer could not prove that it knows the password, so it may not be the right
    /// pmcd.
    #[error("the peer could not prove that it knows the password: it may not be the right pmcd")]
    PeerNotProven,
    /// A message of pmcd is invalid.
    #[error("pmcd sent an invalid message of the authentication: {0}")]
    Malformed(String),
    /// pmcd demands too much work.
    #[error("pmcd asks for {iterations} rounds of hashing; at most {MAX_ITERATIONS} are allowed")]
    TooMuchWork {
        /// The number of rounds that it demands.
        iterations: u64,
    },
    /// pmcd sends too many messages.
    #[error("pmcd has asked more than {MAX_CHALLENGES} questions")]
    Endless,
    /// User and password do not fit into a message.
    #[error("the names of user and realm and the password are too long together")]
    TooLong,
    /// User or password contain something that no mechanism can transmit.
    #[error("the name of the user or the password cannot be used: {0}")]
    Unusable(String),
}

/// SASL codes in words.
const REFUSALS: &[(i32, &str)] = &[
    (-1, "authentication failed"),
    (-2, "pmcd has no memory for the authentication"),
    (-4, "pmcd does not have that mechanism after all"),
    (-5, "pmcd found an error in the exchange"),
    (-6, "pmcd finds the exchange unfinished"),
    (-7, "pmcd was given a value that it cannot use"),
    (-8, "pmcd cannot tell at the moment"),
    (-9, "pmcd found a message altered"),
    (-13, "wrong password, or no such user"),
    (-14, "the user may not do this"),
    (-15, "the mechanism is too weak for this user"),
    (-16, "pmcd demands encryption for this mechanism"),
    (-17, "the user has to change over to this mechanism first"),
    (-18, "the password has expired"),
    (-19, "the account is disabled"),
    (-20, "no such user"),
    (-21, "the account is locked"),
    (-23, "pmcd has another version of the mechanism"),
    (-24, "pmcd cannot look users up"),
    (-26, "pmcd knows no password of the user for this mechanism"),
    (-28, "the user has no password"),
];

/// The meaning of a status of pmcd during the authentication.
fn refusal(status: i32) -> String {
    let code = status.wrapping_sub(SASL_BASE);
    match REFUSALS.iter().find(|(known, _)| *known == code) {
        Some((_, words)) => (*words).to_owned(),
        None if is_sasl_status(status) => format!("pmcd failed with code {code} of SASL"),
        None => PmStatus(status).to_string(),
    }
}

/// An exchange that is under way.
pub(super) struct Sasl {
    session: Session,
    method: Method,
    challenges: u32,
    is_finished: bool,
}

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sasl")
            .field("method", &self.method)
            .field("challenges", &self.challenges)
            .finish_non_exhaustive()
    }
}

impl Sasl {
    /// Chooses among the mechanisms that pmcd `offered`, and appends the first message
    /// to `out`. `hides_passwords` is true if only the right pmcd can read the
    /// messages.
    pub(super) fn begin(
        offered: &[u8],
        credentials: &Credentials,
        hides_passwords: bool,
        out: &mut Vec<u8>,
    ) -> Result<Sasl, AuthenticationError> {
        let method = choose(offered, credentials.method, hides_passwords)?;
        let unusable = |error: &dyn fmt::Display| AuthenticationError::Unusable(error.to_string());
        let (user, password) = (credentials.user.clone(), credentials.password.reveal().to_owned());
        if [&user, &password].iter().any(|text| text.is_empty() || text.contains('\0')) {
            return Err(unusable(&"neither may be empty or have a NUL in it"));
        }
        let config = SASLConfig::with_credentials(None, user, password);
        let config = config.map_err(|error| unusable(&error))?;
        let name = Mechname::parse(method.name().as_bytes()).map_err(|error| unusable(&error))?;
        let session = SASLClient::new(config).start_suggested(&[name]);
        let session = session.map_err(|error| unusable(&error))?;
        let mut sasl = Sasl { session, method, challenges: 0, is_finished: false };
        out.extend_from_slice(method.name().as_bytes());
        out.push(0);
        // In LOGIN, pmcd speaks first.
        if sasl.session.are_we_first() {
            sasl.step(None, out).map_err(|error| match error {
                AuthenticationError::Malformed(problem) => unusable(&problem),
                error => error,
            })?;
        }
        if out.len() > MAX_SASL_BYTES { Err(AuthenticationError::TooLong) } else { Ok(sasl) }
    }

    /// True if the client needs neither to send nor to receive more.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Answers a message of pmcd. The answer goes to `out`; it may be empty.
    pub(super) fn answer(
        &mut self,
        challenge: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), AuthenticationError> {
        self.challenges += 1;
        if self.challenges > MAX_CHALLENGES {
            return Err(AuthenticationError::Endless);
        }
        if self.method == Method::ScramSha256 {
            check_scram(challenge)?;
        }
        self.step(Some(challenge), out)
    }

    fn step(
        &mut self,
        challenge: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), AuthenticationError> {
        match self.session.step(challenge, out) {
            Ok(State::Running) => Ok(()),
            Ok(State::Finished(_)) => {
                self.is_finished = true;
                Ok(())
            }
            Err(SessionError::MutualAuthenticationFailed) => {
                Err(AuthenticationError::PeerNotProven)
            }
            Err(error) => Err(AuthenticationError::Malformed(error.to_string())),
        }
    }
}

/// The mechanism to use: the requested one, or the best offered one that hides the
/// password from eavesdroppers.
fn choose(
    offered: &[u8],
    wanted: Option<Method>,
    hides_passwords: bool,
) -> Result<Method, AuthenticationError> {
    let offers = |method: &Method| {
        let mut names = offered.split(|byte| matches!(byte, b' ' | 0));
        names.any(|name| name.eq_ignore_ascii_case(method.name().as_bytes()))
    };
    let found = match wanted {
        Some(method) => Some(method).filter(offers),
        None => Method::ALL.into_iter().find(offers),
    };
    match found {
        Some(method) if method.shows_password() && wanted.is_none() && !hides_passwords => {
            Err(AuthenticationError::PasswordInTheClear)
        }
        Some(method) => Ok(method),
        None => {
            let shown = &offered[..offered.len().min(100)];
            Err(AuthenticationError::NoMechanism {
                offered: format!("\"{}\"", shown.escape_ascii()),
                wanted: wanted.map_or("SCRAM-SHA-256, PLAIN or LOGIN", Method::name),
            })
        }
    }
}

/// Checks a message of SCRAM before the mechanism gets it. The mechanism expects
/// well-formed messages and does as much work as these demand. RFC 5802 prescribes
/// `key=value` pairs between commas, with keys of one letter.
fn check_scram(message: &[u8]) -> Result<(), AuthenticationError> {
    for (position, pair) in message.split(|byte| *byte == b',').enumerate() {
        let [key, b'=', value @ ..] = pair else {
            let problem = format!("part {} is not of the form x=value", position + 1);
            return Err(AuthenticationError::Malformed(problem));
        };
        if *key != b'i' {
            continue;
        }
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(iterations) = number else {
            let problem = "the number of rounds is not a number".to_owned();
            return Err(AuthenticationError::Malformed(problem));
        };
        if iterations > u64::from(MAX_ITERATIONS) {
            return Err(AuthenticationError::TooMuchWork { iterations });
        }
    }
    Ok(())
}

/// True for a status of a failed authentication.
pub(super) fn is_sasl_status(status: i32) -> bool {
    (SASL_BASE - 100..SASL_BASE).contains(&status)
}
