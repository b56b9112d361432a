//! The errors that end a connection to pmcd.

use pmderive_core::model::PmStatus;
use pmderive_core::source::Fault;

use super::certificate::CertificateProblem;
use super::sasl::AuthenticationError;
use crate::pdu::{DecodeError, PduType};

/// Something that a pmcd may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// It encrypts no connections.
    #[error("this pmcd has no TLS")]
    Tls,
    /// It checks no credentials.
    #[error("this pmcd cannot authenticate users")]
    Users,
    /// It cannot choose the metrics of a container.
    #[error("this pmcd knows no containers")]
    Containers,
}

/// The conversation failed, and the connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A PDU is malformed.
    #[error("malformed reply: {0}")]
    Decode(DecodeError),
    /// The first bytes are not the greeting of a pmcd.
    #[error("the peer is not a pmcd: instead of a greeting it sent {received}")]
    NotPmcd {
        /// The received bytes, in readable form.
        received: String,
    },
    /// The first bytes are not those of a pmproxy.
    #[error("the peer is not a pmproxy: instead of `pmproxy-server 1` it sent {received}")]
    NotPmproxy {
        /// The received bytes, in readable form.
        received: String,
    },
    /// The proxy closed the connection instead of making one to pmcd.
    #[error("the proxy closed the connection: it may not reach pmcd at {pmcd}")]
    ProxyClosed {
        /// Address and port of pmcd.
        pmcd: String,
    },
    /// pmcd greeted with a protocol version that is too old for this client.
    #[error("pmcd speaks protocol version {version}, version 2 or later is needed")]
    Version {
        /// The version in the greeting.
        version: u8,
    },
    /// pmcd accepts no connection from this host.
    #[error("pmcd refused the connection: {0}")]
    Refused(PmStatus),
    /// pmcd rejects a request in the client's credentials.
    #[error("pmcd rejected the credentials or the container: {0}")]
    Rejected(PmStatus),
    /// pmcd rejects the profile, or the fetch after it. The client cannot tell which,
    /// so the number of replies still to come is unknown.
    #[error("pmcd rejected the profile or the fetch after it: {0}")]
    ProfileOrFetch(PmStatus),
    /// pmcd lacks something that this connection needs.
    #[error("{0}")]
    Unsupported(Lack),
    /// pmcd's certificate does not prove its identity.
    #[error("the certificate of pmcd is not accepted: {0}")]
    Certificate(CertificateProblem),
    /// pmcd demands a certificate, and the client has none.
    #[error("pmcd demands a certificate of the client")]
    CertificateRequired,
    /// pmcd does not accept the client's certificate, or the lack of one.
    #[error("pmcd does not accept the certificate of this client: {0}")]
    ClientCertificate(String),
    /// pmcd does not begin TLS, although it offered that.
    #[error("pmcd refuses TLS: {0}")]
    TlsRefused(PmStatus),
    /// Encryption failed.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The user was not authenticated.
    #[error("authentication failed: {0}")]
    Authentication(AuthenticationError),
    /// A reply has another type than the due one.
    #[error("a reply of type {found:#x} where {due:?} is due")]
    UnexpectedReply {
        /// Number of the type found.
        found: u32,
        /// The due type.
        due: PduType,
    },
    /// A status that is not an error where a reply is due.
    #[error("status {status} where a reply is due")]
    UnexpectedStatus {
        /// The status.
        status: i32,
    },
    /// There are more notices of changes than any fetch can have.
    #[error("more than {limit} notices of changes before one result")]
    TooManyNotices {
        /// The maximum number.
        limit: u32,
    },
    /// Bytes arrived although no reply was due.
    #[error("{bytes} bytes that answer no request")]
    Unsolicited {
        /// Number of these bytes.
        bytes: usize,
    },
    /// The peer closed the connection.
    #[error("{}", match received {
        None => "the peer closed the connection without a greeting: access may be denied, or it is not a pmcd".to_owned(),
        Some(0) => "pmcd closed the connection".to_owned(),
        Some(bytes) => format!("pmcd closed the connection after {bytes} bytes of a reply"),
    })]
    Closed {
        /// Number of received bytes of an unfinished PDU; `None` before the greeting.
        received: Option<usize>,
    },
    /// The peer closed the connection after the greeting and before the first request.
    #[error("the peer closed the connection {stage}")]
    ClosedInHandshake {
        /// The step that was under way.
        stage: &'static str,
    },
    /// A request was made before the handshake was complete, or after an error.
    #[error("the connection is not ready for requests")]
    NotReady,
}

impl From<DecodeError> for ProtocolError {
    fn from(error: DecodeError) -> ProtocolError {
        ProtocolError::Decode(error)
    }
}

impl From<AuthenticationError> for ProtocolError {
    fn from(error: AuthenticationError) -> ProtocolError {
        ProtocolError::Authentication(error)
    }
}

impl ProtocolError {
    /// The party at fault. Where pmcd refuses this client it is the user, whose
    /// certificates, credentials or host it does not accept.
    pub fn fault(&self) -> Fault {
        match self {
            ProtocolError::Refused(PmStatus::CONNLIMIT)
            | ProtocolError::ProxyClosed { .. }
            | ProtocolError::Closed { .. }
            | ProtocolError::ClosedInHandshake { .. } => Fault::Environment,
            ProtocolError::NotPmcd { .. }
            | ProtocolError::NotPmproxy { .. }
            | ProtocolError::Refused(_)
            | ProtocolError::Rejected(_)
            | ProtocolError::Unsupported(_)
            | ProtocolError::Certificate(_)
            | ProtocolError::CertificateRequired
            | ProtocolError::ClientCertificate(_)
            | ProtocolError::Authentication(_) => Fault::User,
            ProtocolError::Decode(_)
            | ProtocolError::Version { .. }
            | ProtocolError::ProfileOrFetch(_)
            | ProtocolError::TlsRefused(_)
            | ProtocolError::Tls(_)
            | ProtocolError::UnexpectedReply { .. }
            | ProtocolError::UnexpectedStatus { .. }
            | ProtocolError::TooManyNotices { .. }
            | ProtocolError::Unsolicited { .. } => Fault::Peer,
            ProtocolError::NotReady => Fault::Ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults() {
        for (error, fault) in [
            (ProtocolError::Refused(PmStatus::CONNLIMIT), Fault::Environment),
            (ProtocolError::Refused(PmStatus::PERMISSION), Fault::User),
            (ProtocolError::Closed { received: Some(3) }, Fault::Environment),
            (ProtocolError::UnexpectedStatus { status: 7 }, Fault::Peer),
            (ProtocolError::NotReady, Fault::Ours),
        ] {
            assert_eq!(error.fault(), fault, "{error}");
        }
    }
}
