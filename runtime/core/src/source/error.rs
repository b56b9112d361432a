//! A source that failed as a whole, and what that is to callers of libpcp.

use crate::model::PmStatus;

/// A source failed as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The host or socket could not be reached.
    #[error("cannot connect to {target}: {source}; {help}")]
    Connect {
        /// Host specification or socket path.
        target: String,
        /// What to look at or to try.
        help: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The connection or file broke while in use.
    #[error("{target}: {source}")]
    Io {
        /// Host specification or file.
        target: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No attempt to connect was made, as the one before failed not long ago
    /// (`pmReconnectContext(3)`).
    #[error("{failure}; the next attempt is due in {seconds:.0} seconds")]
    TooSoon {
        /// What the one before failed by.
        failure: String,
        /// How long attempts have to wait.
        seconds: f64,
    },
    /// No answer in time.
    #[error("{target}: no answer within {seconds} seconds")]
    Timeout {
        /// Host specification.
        target: String,
        /// The time-out that ran out.
        seconds: f64,
    },
    /// A connection that was made could not be used.
    #[error("{target}: {message}; {help}")]
    Handshake {
        /// Host specification or socket path.
        target: String,
        /// What libpcp would answer.
        status: PmStatus,
        /// What is wrong.
        message: String,
        /// What to look at or to try.
        help: String,
    },
    /// The peer or file does not keep to the format.
    #[error("{target}: {source}")]
    Malformed {
        /// Host specification or file, with the position where known.
        target: String,
        /// What is wrong: of a host a `ProtocolError`,
        /// whose own source tells structure, field and offset.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of an archive is damaged or missing, and PCP has a status for that.
    #[error("{target}: {message}")]
    Damaged {
        /// The file, or the archive when no single file is to blame.
        target: String,
        /// What libpcp would answer.
        status: PmStatus,
        /// Field and offset where known, and what is wrong.
        message: String,
    },
    /// A specification of a host or archive that cannot be understood.
    #[error("{target}: {message}")]
    Specification {
        /// What was given.
        target: String,
        /// What is wrong with it, and what would do.
        message: String,
    },
    /// Programs are there for as many kinds of sources as are allowed, and this
    /// source is of none of them.
    #[error(
        "{target}: it is a further kind of source, and there are {limit} kinds already{differs}"
    )]
    TooManyKinds {
        /// Host specification or archive.
        target: String,
        /// Kinds of sources that programs are kept for.
        limit: usize,
        /// By what the source differs from most others, if that is known.
        differs: String,
    },
    /// The source answered with a PMAPI status.
    #[error("{target}: {status}")]
    Status {
        /// Host specification or archive.
        target: String,
        /// The status.
        status: PmStatus,
    },
}

impl SourceError {
    /// The PMAPI status this error would be to a caller of libpcp.
    pub fn status(&self) -> PmStatus {
        match self {
            SourceError::Connect { source, .. } | SourceError::Io { source, .. } => {
                use rustix::io::Errno;
                let errno = source.raw_os_error().or(match source.kind() {
                    std::io::ErrorKind::HostUnreachable => Some(Errno::HOSTUNREACH.raw_os_error()),
                    std::io::ErrorKind::TimedOut => Some(Errno::TIMEDOUT.raw_os_error()),
                    _ => None,
                });
                errno.map_or(PmStatus::IPC, |errno| PmStatus(-errno))
            }
            SourceError::TooSoon { .. } => PmStatus(-rustix::io::Errno::TIMEDOUT.raw_os_error()),
            SourceError::Timeout { .. } => PmStatus::TIMEOUT,
            SourceError::Malformed { .. } => PmStatus::IPC,
            SourceError::Specification { .. } => PmStatus::GENERIC,
            SourceError::TooManyKinds { .. } => PmStatus::TOOBIG,
            SourceError::Damaged { status, .. }
            | SourceError::Handshake { status, .. }
            | SourceError::Status { status, .. } => *status,
        }
    }

    /// True when the same attempt may succeed later without anyone doing something.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            SourceError::Connect { .. }
                | SourceError::Io { .. }
                | SourceError::Timeout { .. }
                | SourceError::TooSoon { .. }
                | SourceError::Handshake { status: PmStatus::CONNLIMIT, .. }
        )
    }

    /// True at the end of an archive.
    pub fn is_end_of_archive(&self) -> bool {
        matches!(self, SourceError::Status { status: PmStatus::EOL, .. })
    }
}
