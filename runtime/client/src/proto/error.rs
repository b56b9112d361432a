//! Why a connection to pmcd cannot go on.

use pmderive_core::model::PmStatus;

use super::sasl::AuthenticationError;
use super::tls::CertificateProblem;
use crate::pdu::{DecodeError, PduType};

/// The conversation failed; the connection is of no further use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A PDU does not hold what it should.
    #[error("malformed reply: {0}")]
    Decode(#[from] DecodeError),
    /// The first bytes are not the greeting of a pmcd.
    #[error("the peer is not a pmcd: instead of a greeting it sent {received}")]
    NotPmcd {
        /// What came, in readable form.
        received: String,
    },
    /// The first bytes are not those of a pmproxy.
    #[error("the peer is not a pmproxy: instead of `pmproxy-server 1` it sent {received}")]
    NotPmproxy {
        /// What came, in readable form.
        received: String,
    },
    /// The proxy closed the connection instead of making one to pmcd.
    #[error("the proxy closed the connection: it may not reach pmcd at {pmcd}")]
    ProxyClosed {
        /// Address and port of pmcd.
        pmcd: String,
    },
    /// pmcd greeted with a protocol version that has no common ground with ours.
    #[error("pmcd speaks protocol version {version}, version 2 or later is needed")]
    Version {
        /// The version it named.
        version: u8,
    },
    /// pmcd accepts no connection from here.
    #[error("pmcd refused the connection: {0}")]
    Refused(PmStatus),
    /// pmcd does not accept what the client asked for with its credentials.
    #[error("pmcd rejected the credentials or the container: {0}")]
    Rejected(PmStatus),
    /// pmcd does not accept the profile, or not the fetch that followed it;
    /// from outside these look the same, and how many replies are yet to come
    /// is not known.
    #[error("pmcd rejected the profile or the fetch after it: {0}")]
    ProfileOrFetch(PmStatus),
    /// pmcd demands or lacks something that this connection cannot do without.
    #[error("{0}")]
    Unsupported(&'static str),
    /// pmcd has a certificate that is no proof of who it is.
    #[error("the certificate of pmcd is not accepted: {0}")]
    Certificate(CertificateProblem),
    /// pmcd wants a certificate of the client, and there is none.
    #[error("pmcd demands a certificate of the client")]
    CertificateRequired,
    /// pmcd does not accept the certificate of the client, or misses one.
    #[error("pmcd does not accept the certificate of this client: {0}")]
    ClientCertificate(String),
    /// pmcd does not begin TLS, although it said that it can.
    #[error("pmcd refuses TLS: {0}")]
    TlsRefused(PmStatus),
    /// Encryption failed.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The user was not authenticated.
    #[error("authentication failed: {0}")]
    Authentication(AuthenticationError),
    /// A reply of another type than the one due.
    #[error("a reply of type {found:#x} where {due:?} is due")]
    UnexpectedReply {
        /// Number of its type.
        found: u32,
        /// The type due.
        due: PduType,
    },
    /// An error without a code, or a notice where none can be.
    #[error("status {status} where a reply is due")]
    UnexpectedStatus {
        /// The status.
        status: i32,
    },
    /// More notices than any fetch can have.
    #[error("more than {limit} notices of changes before one result")]
    TooManyNotices {
        /// How many are accepted.
        limit: u32,
    },
    /// Bytes arrived although nothing was asked.
    #[error("{bytes} bytes that answer no request")]
    Unsolicited {
        /// How many.
        bytes: usize,
    },
    /// The peer closed the connection.
    #[error("{}", match received {
        None => "the peer closed the connection without a greeting: access may be denied, or it is not a pmcd".to_owned(),
        Some(0) => "pmcd closed the connection".to_owned(),
        Some(bytes) => format!("pmcd closed the connection after {bytes} bytes of a reply"),
    })]
    Closed {
        /// Bytes received of an unfinished PDU; `None` before the greeting.
        received: Option<usize>,
    },
    /// The peer closed the connection between the greeting and the first request.
    #[error("the peer closed the connection {stage}")]
    ClosedInHandshake {
        /// What was under way.
        stage: &'static str,
    },
    /// A request before the greeting or after an error.
    #[error("the connection is not ready for requests")]
    NotReady,
}
