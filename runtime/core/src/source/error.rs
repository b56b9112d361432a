//! The error of a source as a whole, and its status for callers of libpcp.

use super::Fault;
use crate::model::PmStatus;

/// A source failed as a whole.
///
/// ```
/// use pmderive_core::model::PmStatus;
/// use pmderive_core::source::SourceError;
///
/// let source = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
/// let error = SourceError::Io { target: "web17".to_owned(), source };
/// assert_eq!(error.to_string(), "web17: connection reset");
/// assert_eq!((error.status(), error.is_transient()), (PmStatus::IPC, true));
/// ```
///
/// A function that returns it, and names no other errors, fails with its source
/// only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The host or socket could not be reached.
    #[error("cannot connect to {target}: {source}; {help}")]
    Connect {
        /// Host specification or socket path.
        target: String,
        /// Advice: what to check or to try.
        help: &'static str,
        /// The error of the system.
        r#source: std::io::Error,
    },
    /// The connection or file broke while in use.
    #[error("{target}: {source}")]
    Io {
        /// Host specification or file.
        target: String,
        /// The error of the system.
        r#source: std::io::Error,
    },
    /// No attempt to connect was made because the last one failed a short time
    /// ago (`pmReconnectContext(3)`).
    #[error(
        "{failure} (the next attempt is due in {} second{})",
        seconds.ceil().max(1.0),
        if *seconds <= 1.0 { "" } else { "s" }
    )]
    TooSoon {
        /// Message of the last attempt's failure.
        failure: String,
        /// Seconds until the next attempt is allowed.
        seconds: f64,
    },
    /// No answer in time.
    #[error("{target}: no answer within {seconds} second{}", if *seconds == 1.0 { "" } else { "s" })]
    Timeout {
        /// Host specification.
        target: String,
        /// The time-out in seconds.
        seconds: f64,
    },
    /// The connection was made, but the handshake failed.
    #[error("{target}: {message}; {help}")]
    Handshake {
        /// Host specification or socket path.
        target: String,
        /// The status that libpcp would return.
        status: PmStatus,
        /// The problem.
        message: String,
        /// Advice: what to check or to try.
        help: String,
    },
    /// The peer or file violates the format.
    #[error("{target}: {source}")]
    Malformed {
        /// Host specification or file, with the position where known.
        target: String,
        /// The violation. For a host it is a `ProtocolError`, which has the
        /// structure, field and offset of bytes that cannot be decoded.
        r#source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of an archive is damaged or missing, and PCP has a status for
    /// that.
    #[error("{target}: {message}")]
    Damaged {
        /// The file, or the archive when no single file is to blame.
        target: String,
        /// The status that libpcp would return.
        status: PmStatus,
        /// The problem, with field and offset where known.
        message: String,
    },
    /// A name that stands for no archive.
    #[error("{target}: {message}")]
    NotFound {
        /// The name.
        target: String,
        /// The status that libpcp would return.
        status: PmStatus,
        /// The problem.
        message: String,
    },
    /// A host or archive specification that cannot be understood.
    #[error("{target}: {message}")]
    Specification {
        /// The given text.
        target: String,
        /// The problem, and the accepted forms.
        message: String,
    },
    /// The source is of a new kind, but programs already exist for the largest
    /// allowed number of kinds of sources.
    #[error(
        "{target}: this is a new kind of source, and the limit of {limit} kinds is reached{differs}"
    )]
    TooManyKinds {
        /// Host specification or archive.
        target: String,
        /// Largest number of kinds.
        limit: usize,
        /// The difference between this source and most others, if known.
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
    /// The PMAPI status that a caller of libpcp would get for this error.
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
            | SourceError::NotFound { status, .. }
            | SourceError::Handshake { status, .. }
            | SourceError::Status { status, .. } => *status,
        }
    }

    /// The party at fault.
    ///
    /// Some errors are the user's fault: a name or identifier is unknown, or the
    /// source cannot do what was requested. All others are the peer's.
    pub fn fault(&self) -> Fault {
        use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
        match self {
            SourceError::Io { source, .. }
                if matches!(source.kind(), NotFound | NotADirectory | IsADirectory) =>
            {
                Fault::User
            }
            SourceError::Connect { .. }
            | SourceError::Io { .. }
            | SourceError::TooSoon { .. }
            | SourceError::Timeout { .. }
            | SourceError::TooManyKinds { .. }
            | SourceError::Handshake { status: PmStatus::CONNLIMIT, .. } => Fault::Environment,
            SourceError::Specification { .. }
            | SourceError::NotFound { .. }
            | SourceError::Status {
                status:
                    PmStatus::NAME
                    | PmStatus::PMID
                    | PmStatus::INDOM
                    | PmStatus::EOL
                    | PmStatus::MODE
                    | PmStatus::ARG
                    | PmStatus::NYI,
                ..
            } => Fault::User,
            SourceError::Handshake { .. }
            | SourceError::Malformed { .. }
            | SourceError::Damaged { .. }
            | SourceError::Status { .. } => Fault::Peer,
        }
    }

    /// True if the same attempt may succeed later without any action by the
    /// user.
    pub fn is_transient(&self) -> bool {
        match self {
            SourceError::Io { source, .. } => {
                self.fault() != Fault::User && source.kind() != std::io::ErrorKind::PermissionDenied
            }
            SourceError::Connect { .. }
            | SourceError::Timeout { .. }
            | SourceError::TooSoon { .. }
            | SourceError::Handshake { status: PmStatus::CONNLIMIT, .. } => true,
            _ => false,
        }
    }

    /// True at the end of an archive.
    pub fn is_end_of_archive(&self) -> bool {
        matches!(self, SourceError::Status { status: PmStatus::EOL, .. })
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn faults() {
        let target = || "web17".to_owned();
        let status = |status| SourceError::Status { target: target(), status };
        assert_eq!(status(PmStatus::NAME).fault(), Fault::User);
        assert_eq!(status(PmStatus::MODE).fault(), Fault::User);
        assert_eq!(status(PmStatus::NYI).fault(), Fault::User);
        assert_eq!(status(PmStatus::IPC).fault(), Fault::Peer);
        let handshake = |status| SourceError::Handshake {
            target: target(),
            status,
            message: String::new(),
            help: String::new(),
        };
        assert_eq!(handshake(PmStatus::CONNLIMIT).fault(), Fault::Environment);
        assert_eq!(handshake(PmStatus::PERMISSION).fault(), Fault::Peer);
        for (kind, fault, is_transient) in [
            (ErrorKind::ConnectionReset, Fault::Environment, true),
            (ErrorKind::PermissionDenied, Fault::Environment, false),
            (ErrorKind::NotFound, Fault::User, false),
            (ErrorKind::NotADirectory, Fault::User, false),
        ] {
            let error = SourceError::Io { target: target(), source: kind.into() };
            assert_eq!((error.fault(), error.is_transient()), (fault, is_transient), "{kind}");
        }
        let text = SourceError::Specification { target: target(), message: String::new() };
        assert_eq!(text.fault(), Fault::User);
        let (status, message) = (PmStatus::LOGFILE, String::new());
        let absent = SourceError::NotFound { target: target(), status, message };
        assert_eq!((absent.fault(), absent.status()), (Fault::User, PmStatus::LOGFILE));
    }
}
