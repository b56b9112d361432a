//! Reasons for which a command stops before its end. The caller of the command prints them and
//! chooses the exit status.

use std::io;
use std::path::Path;

use pmderive_runtime::source::SourceError;

use super::exit_status::ExitStatus;
use super::lines::Lines;
use crate::escape;

/// Reason for which a command stops before its end.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The usage is wrong.
    #[error("{0}")]
    Usage(String),
    /// The usage is wrong; the error has several lines.
    #[error("{0}")]
    UsageLines(Lines),
    /// The error that makes a tool of PCP end with status 1, in its words.
    #[error("{0}")]
    Tool(Lines),
    /// As `Tool`, but the error was printed already.
    #[error("")]
    Reported,
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An archive cannot be written.
    #[error("{0}")]
    Archive(String),
    /// The output has no reader any more. Holds the exit status so far.
    #[error("standard output is closed")]
    OutputClosed(ExitStatus),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::OutputClosed(ExitStatus::Good),
            _ => Stop::Output(error),
        }
    }
}

impl Stop {
    /// The error for a file that cannot be written.
    pub fn of_file(path: &Path, error: &io::Error) -> Stop {
        let text = format!("{}: {error}", escape::path(path));
        Stop::Output(io::Error::new(error.kind(), text))
    }

    /// The error that makes a tool of PCP end with status 1, from its parts.
    pub fn tool(parts: &[&dyn std::fmt::Display]) -> Stop {
        Stop::Tool(Lines::of(parts))
    }

    /// Adds the exit status from before: a closed output does not hide it.
    pub fn after(self, outcome: ExitStatus) -> Stop {
        match self {
            Stop::OutputClosed(known) => Stop::OutputClosed(known.max(outcome)),
            other => other,
        }
    }
}
