//! Authentication: the client's side of an exchange of SASL messages.
//!
//! Input: the messages of pmcd. Output: those of the client. When the exchange is
//! over, pmcd's silence means success. The mechanisms are `rsasl`'s. This
//! module decides which mechanism is used, how much work and how many messages a
//! peer can ask for, and what its refusals mean in words.

use std::fmt;

use pmderive_core::model::PmStatus;
use rsasl::mechname::Mechname;
use rsasl::prelude::{SASLClient, SASLConfig, Session, SessionError, State};

use super::config::{Credentials, Method};
use super::error::ProtocolError;
use crate::pdu::MAX_SASL_BYTES;

/// Most rounds of hashing that a peer can demand of us: more than anyone
/// recommends, and done within a second or two.
const MAX_ITERATIONS: u32 = 1_000_000;

/// Most messages of pmcd after its list of mechanisms; SCRAM has two.
const MAX_CHALLENGES: u32 = 8;

/// PMAPI codes below this one are SASL's, which are negative themselves.
const SASL_BASE: i32 = -21_344;

/// Why nobody could be authenticated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// pmcd wants to know who the user is, and nobody told.
    #[error("pmcd demands to know who the user is")]
    CredentialsRequired,
    /// pmcd does not offer the mechanism that was asked for, or none that
    /// this client knows.
    #[error("pmcd offers {offered}, and {wanted} is needed")]
    NoMechanism {
        /// What pmcd offers.
        offered: String,
        /// What would do.
        wanted: &'static str,
    },
    /// The only common mechanism would show the password to eavesdroppers.
    #[error("pmcd takes the password in the clear only, and the connection does not hide it")]
    PasswordInTheClear,
    /// pmcd refuses the user.
    #[error("{} (status {status})", refusal(*.status))]
    Refused {
        /// The status of pmcd.
        status: i32,
    },
    /// pmcd does not know the password itself: it may be somebody else.
    #[error("the peer could not prove that it knows the password: it may not be the right pmcd")]
    PeerNotProven,
    /// What pmcd says makes no sense.
    #[error("pmcd's part of the authentication makes no sense: {0}")]
    Malformed(String),
    /// pmcd asks for more work than anybody needs.
    #[error("pmcd asks for {iterations} rounds of hashing, at most {MAX_ITERATIONS} are done")]
    TooMuchWork {
        /// What it asked for.
        iterations: u64,
    },
    /// pmcd does not come to an end.
    #[error("pmcd has asked {MAX_CHALLENGES} questions and still does not come to an end")]
    Endless,
    /// User and password do not fit into a message.
    #[error("the names of user and realm and the password are too long together")]
    TooLong,
    /// User or password hold what no mechanism can carry.
    #[error("the name of the user or the password cannot be used: {0}")]
    Unusable(String),
}

/// Codes of SASL in words.
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

/// What a status of pmcd during the authentication means.
fn refusal(status: i32) -> String {
    let code = status.wrapping_sub(SASL_BASE);
    match REFUSALS.iter().find(|(known, _)| *known == code) {
        Some((_, words)) => (*words).to_owned(),
        None if is_sasl_status(status) => format!("pmcd failed with code {code} of SASL"),
        None => PmStatus(status).to_string(),
    }
}

/// An exchange under way.
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
    /// Chooses among the mechanisms that pmcd `offered` and appends the first
    /// message to `out`. `hides_passwords` if nobody but the right pmcd can
    /// read what is sent.
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
        // In LOGIN pmcd speaks first.
        if sasl.session.are_we_first() {
            sasl.step(None, out).map_err(|error| match error {
                AuthenticationError::Malformed(problem) => unusable(&problem),
                error => error,
            })?;
        }
        if out.len() > MAX_SASL_BYTES { Err(AuthenticationError::TooLong) } else { Ok(sasl) }
    }

    /// True when the client has said and heard all it needs.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Answers a message of pmcd: the answer, which may be empty, goes to `out`.
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

/// The mechanism to use: the one that was asked for, else the best offered
/// that keeps the password from eavesdroppers.
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

/// Judges a message of SCRAM before the mechanism sees it, which expects
/// well-formed messages and does as much work as these demand (RFC 5802: `key=value`
/// pairs between commas, keys of one letter).
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

/// True for a status that tells of a failed authentication.
pub(super) fn is_sasl_status(status: i32) -> bool {
    (SASL_BASE - 100..SASL_BASE).contains(&status)
}

impl From<AuthenticationError> for ProtocolError {
    fn from(error: AuthenticationError) -> ProtocolError {
        ProtocolError::Authentication(error)
    }
}
