//! Why a connection to pmcd cannot go on.

use crate::model::PmStatus;
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
    /// from outside these look the same.
    #[error("pmcd rejected the first fetch: {0}")]
    FirstFetch(PmStatus),
    /// pmcd demands or lacks something that this connection cannot do without.
    #[error("{0}")]
    Unsupported(&'static str),
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
    /// A request before the greeting or after an error.
    #[error("the connection is not ready for requests")]
    NotReady,
}
