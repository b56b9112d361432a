//! Errors in name space files.

use std::fmt;

use pmderive_core::escape::Foreign;
use pmderive_core::model::{PmStatus, blanks_before};

/// A name space file that cannot be read. Shown as libpcp shows it, without the
/// last newline. Text from the file and the file's name are shown as
/// [`Foreign`].
#[derive(Debug)]
#[non_exhaustive]
pub enum NameSpaceError {
    /// The file cannot be read.
    Open {
        /// The file.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A wrong control line, or a comment or condition without an end.
    Control {
        /// File and line. The line is missing at the end of the input.
        place: (String, Option<u32>),
        /// The text of the line.
        text: String,
        /// The problem, in the words of pmcpp(1).
        problem: String,
    },
    /// A fault within a line.
    Line {
        /// The file.
        file: String,
        /// The number of the line, counted from 1.
        line: u32,
        /// Its text, without the space around it.
        text: String,
        /// Offset of the fault in that text, in bytes.
        offset: usize,
        /// The problem there, in the words of libpcp.
        problem: String,
        /// The second problem that libpcp reports for the same place because it
        /// continues to read. By then it shows only blanks of the text.
        next: Option<&'static str>,
    },
    /// A fault that is in no single line.
    Whole {
        /// The problem, in the words of libpcp.
        problem: String,
    },
}

impl NameSpaceError {
    /// The status that libpcp returns.
    pub fn status(&self) -> PmStatus {
        match self {
            NameSpaceError::Open { source, .. } => {
                let code = source.raw_os_error().map_or(PmStatus::PMNS.0, |code| -code);
                PmStatus(code)
            }
            _ => PmStatus::PMNS,
        }
    }

    pub(super) fn whole(problem: impl Into<String>) -> NameSpaceError {
        NameSpaceError::Whole { problem: problem.into() }
    }
}

const START: &str = "Error Parsing ASCII PMNS:";

impl fmt::Display for NameSpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_shown = f.alternate();
        let shown = |text| Foreign(text).form(is_shown);
        match self {
            NameSpaceError::Open { file, .. } => {
                write!(f, "{START} Cannot open \"{}\"", shown(file))
            }
            NameSpaceError::Control { place: (file, line), text, problem } => {
                let (file, text) = (shown(file), shown(text));
                match line {
                    Some(line) => write!(f, "pmcpp: {file}[{line}]: {text}")?,
                    None => write!(f, "pmcpp: {file}:")?,
                }
                write!(f, "\npmcpp: Error: {}", shown(problem))?;
                write!(f, "\n{START} pmcpp returned non-zero exit status")
            }
            NameSpaceError::Line { file, line, text, offset, problem, next } => {
                let blanks = blanks_before(f, text, *offset);
                let (file, text, problem) = (shown(file), shown(text), shown(problem));
                write!(f, "[{file}:{line}] {START} {problem}\n    {text}\n    {blanks}^")?;
                match next {
                    Some(next) => {
                        write!(f, "\n[{file}:{line}] {START} {next}")?;
                        write!(f, "\n    {blanks}^\n    {blanks}^")
                    }
                    None => Ok(()),
                }
            }
            NameSpaceError::Whole { problem } => {
                // libpcp ends some of its own texts with a line of nothing.
                let text = problem.trim_end_matches('\n');
                write!(f, "{START} {}{}", shown(text), &problem[text.len()..])
            }
        }
    }
}

impl std::error::Error for NameSpaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NameSpaceError::Open { source, .. } => Some(source),
            _ => None,
        }
    }
}
