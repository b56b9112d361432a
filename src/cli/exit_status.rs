//! The exit status of a run.

use std::process::ExitCode;

/// The exit status of a run. If several apply, the greatest counts. `info`, `probe` and `val`
/// end with one of the first two, as PCP's tools do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// Everything was evaluated, or nothing is wrong.
    Good = 0,
    /// Some metric failed, a test failed, or a file is not formatted as it should be.
    Failed = 1,
    /// The usage or a definition is wrong.
    Mistake = 2,
    /// The source failed, or the output cannot be written.
    SourceFailed = 3,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}
