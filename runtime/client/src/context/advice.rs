//! Tells the user what a failed connection means, and what to try.
//!
//! Input: an error. Output: a [`SourceError`] whose text names the host, the fault and
//! a remedy. This module does not decide what to do next.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use pmderive_core::escape;
use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use super::link::LinkError;
use crate::proto::{AuthenticationError, CertificateProblem, Lack, ProtocolError};

/// `EOPNOTSUPP`, which libpcp returns if pmcd lacks the requested feature.
pub(super) const NOT_SUPPORTED: PmStatus = PmStatus(-95);

/// `SASL_NOMECH` of the library that authenticates for libpcp. Its codes follow those
/// of the PMAPI.
const SASL_NO_MECHANISM: PmStatus = PmStatus(-21_348);
/// `SASL_BADPARAM`, which libpcp returns if no user is given.
const SASL_BAD_PARAMETER: PmStatus = PmStatus(-21_351);
/// `SASL_ENCRYPT`: the password would be sent unencrypted.
pub const SASL_ENCRYPTION_NEEDED: PmStatus = PmStatus(-21_360);

/// Advice about users and encryption, in words of a host specification. Programs that have
/// these elsewhere find it in [`SourceError::Handshake`], and put their own words there.
#[doc(hidden)]
pub mod remedies {
    /// No process answers at the socket of pmcd.
    pub const START_PMCD: &str = "is pmcd running?";
    /// pmcd demands to know who the user is.
    pub const GIVE_USER: &str =
        "add `?user=NAME&passfile=FILE` to the host specification, best with `pcps://`";
    /// The user, or the password, cannot be one.
    pub const CHECK_USER: &str =
        "`user=` of the host specification and the password say who you are";
    /// pmcd offers no mechanism that this client has.
    pub const CHECK_MECHANISMS: &str =
        "mech_list in pmcd's sasl2/pmcd.conf says what it offers, `method=` what is asked for";
    /// The password would be sent unencrypted.
    pub const ENCRYPT: &str = "connect by `pcps://`, or add `method=PLAIN` if nobody can listen";
    /// pmcd has no TLS.
    pub const DO_NOT_ENCRYPT: &str = "connect without: by `pcp://` and without PCP_SECURE_SOCKETS";
    /// The certificate of pmcd is not believed.
    pub const DO_NOT_VERIFY: &str = "`?secure=relaxed` encrypts without knowing for whom";
}

/// The subject of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Host and ports, or path of a socket.
    pub(super) name: String,
    /// Path of the configuration of TLS.
    pub(super) tls_conf: PathBuf,
}

/// The advice if a host cannot be connected to.
pub(super) fn no_host(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::HostUnreachable => "is the name of the host right?",
        ErrorKind::ConnectionRefused => {
            "is pmcd running there, on that port, and open to the network?"
        }
        _ => "can the host be reached, and does a firewall let connections to pmcd pass?",
    }
}

/// The advice if a proxy cannot be connected to.
pub(super) fn no_proxy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::HostUnreachable => "are the names of the host and of the proxy right?",
        ErrorKind::ConnectionRefused => "is pmproxy running there, on that port?",
        _ => "can the proxy be reached, and does a firewall let connections to pmproxy pass?",
    }
}

/// Converts the error of a failed handshake for the caller of a context.
pub(super) fn handshake_error(target: &Target, error: LinkError) -> SourceError {
    let name = target.name.clone();
    let error = match error {
        LinkError::Timeout(timeout) => {
            let target = format!("{name}: connected, but is it a pmcd?");
            return SourceError::Timeout { target, seconds: timeout.as_secs_f64() };
        }
        LinkError::Io(source) => {
            let text = format!("{source}: access may be denied, or it is not a pmcd");
            let source = io::Error::new(source.kind(), text);
            return SourceError::Io { target: name, source };
        }
        LinkError::Protocol(error @ ProtocolError::ProxyClosed { .. }) => {
            let source = io::Error::new(ErrorKind::ConnectionRefused, error.to_string());
            let help = "is pmcd running there, on that port, and open to the proxy?";
            return SourceError::Connect { target: name, help, source };
        }
        LinkError::Protocol(error) => error,
    };
    let Some((status, help)) = remedy(target, &error) else {
        return source_error(name, LinkError::Protocol(error));
    };
    SourceError::Handshake { target: name, status, message: error.to_string(), help }
}

/// The status and remedy of a fault that a user can do something about.
fn remedy(target: &Target, error: &ProtocolError) -> Option<(PmStatus, String)> {
    let conf = escape::path(&target.tls_conf);
    let own_certificate = format!(
        "name yours as tls-client-cert-file and tls-client-key-file in {conf}, \
         and connect by `pcps://`"
    );
    let (status, help) = match error {
        ProtocolError::Refused(status @ PmStatus::PERMISSION) => (
            *status,
            "the [access] rules in pmcd.conf there do not let this host or user in".to_owned(),
        ),
        ProtocolError::Refused(status @ PmStatus::CONNLIMIT) => {
            (*status, "pmcd has as many clients as it may: try again later".to_owned())
        }
        ProtocolError::NotPmcd { .. } => {
            (PmStatus::IPC, "is the port right? pmcd's is 44321 unless told otherwise".to_owned())
        }
        ProtocolError::NotPmproxy { .. } => (
            PmStatus::IPC,
            "is the port right? pmproxy's is 44322 unless told otherwise".to_owned(),
        ),
        ProtocolError::Unsupported(Lack::Tls) => (
            NOT_SUPPORTED,
            format!("configure it there in tls.conf, or {}", remedies::DO_NOT_ENCRYPT),
        ),
        ProtocolError::Unsupported(_) => {
            (NOT_SUPPORTED, "connect without asking for it, or to a newer pmcd".to_owned())
        }
        ProtocolError::Certificate(problem) => (PmStatus::TLS, certificate_remedy(target, problem)),
        ProtocolError::CertificateRequired => (PmStatus::NEEDCLIENTCERT, own_certificate),
        ProtocolError::ClientCertificate(_) => (
            PmStatus::NEEDCLIENTCERT,
            format!("{own_certificate}; pmcd has to know the authority that signed it"),
        ),
        ProtocolError::Tls(_) | ProtocolError::TlsRefused(_) => (
            PmStatus::TLS,
            "look into pmcd.log there: is its certificate in order, and TLS of version 1.2 \
             or 1.3 allowed?"
                .to_owned(),
        ),
        ProtocolError::Authentication(error) => authentication_remedy(error),
        // pmcd makes its agents act in the user's name.
        ProtocolError::Rejected(status @ PmStatus(-3)) => {
            (*status, "the user needs an account on that host, too, not with pmcd alone".to_owned())
        }
        ProtocolError::Rejected(status) => {
            (*status, "do the [access] rules in pmcd.conf there let this user in?".to_owned())
        }
        _ => return None,
    };
    Some((status, help))
}

fn certificate_remedy(target: &Target, problem: &CertificateProblem) -> String {
    let conf = escape::path(&target.tls_conf);
    match problem {
        CertificateProblem::UnknownIssuer => format!(
            "name its authority, or the certificate itself if it signs itself, as \
             tls-ca-cert-file in {conf}; {}",
            remedies::DO_NOT_VERIFY
        ),
        CertificateProblem::WrongName { .. } => "use a name that the certificate has, or set \
            PCP_ALLOW_BAD_CERT_DOMAIN=1 to overlook this"
            .to_owned(),
        CertificateProblem::Expired => "it has to be renewed there".to_owned(),
        CertificateProblem::NotAnAuthority => format!(
            "have an authority (`CA:TRUE` in its basic constraints) sign it, or name the \
             certificate of pmcd itself as tls-ca-cert-file in {conf}"
        ),
        _ => remedies::DO_NOT_VERIFY.to_owned(),
    }
}

fn authentication_remedy(error: &AuthenticationError) -> (PmStatus, String) {
    let (status, help) = match error {
        AuthenticationError::CredentialsRequired => (SASL_BAD_PARAMETER, remedies::GIVE_USER),
        AuthenticationError::NoMechanism { .. } => (SASL_NO_MECHANISM, remedies::CHECK_MECHANISMS),
        AuthenticationError::PasswordInTheClear => (SASL_ENCRYPTION_NEEDED, remedies::ENCRYPT),
        AuthenticationError::Refused { status } => (
            PmStatus(*status),
            "are user and password right, and known to pmcd (`saslpasswd2 -a pmcd` there)?",
        ),
        AuthenticationError::PeerNotProven => {
            (PmStatus::PERMISSION, "find out who answers there, and use `pcps://`")
        }
        AuthenticationError::TooLong | AuthenticationError::Unusable(_) => {
            (SASL_BAD_PARAMETER, remedies::CHECK_USER)
        }
        _ => (PmStatus::IPC, "is it a pmcd that answers there?"),
    };
    (status, help.to_owned())
}

/// Converts an error of a link to `target` for the caller of a context.
pub(super) fn source_error(target: String, error: LinkError) -> SourceError {
    let error = match error {
        LinkError::Io(source) => return SourceError::Io { target, source },
        LinkError::Timeout(timeout) => {
            return SourceError::Timeout { target, seconds: timeout.as_secs_f64() };
        }
        LinkError::Protocol(error) => error,
    };
    let refused = |what: &str, status| SourceError::Status {
        target: format!("{target}: pmcd rejected {what}"),
        status,
    };
    match error {
        ProtocolError::Refused(status) => refused("the connection", status),
        ProtocolError::ProfileOrFetch(status) => refused("the fetch", status),
        ProtocolError::Closed { .. }
        | ProtocolError::ClosedInHandshake { .. }
        | ProtocolError::ProxyClosed { .. } => {
            let source = io::Error::new(ErrorKind::UnexpectedEof, error);
            SourceError::Io { target, source }
        }
        error => SourceError::Malformed { target, source: Box::new(error) },
    }
}
