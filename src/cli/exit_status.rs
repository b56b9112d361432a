//! The exit status of a run.

use std::process::ExitCode;

/// The outcome of a run, by its exit status. If several apply, the greatest counts.
/// The commands called after PCP's tools know the first two only, as those do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// Everything was evaluated, or nothing is wrong.
    Good = 0,
    /// Some metric failed, a test failed, or a file is not formatted as it should be.
    Failed = 1,
    /// The usage or a definition is wrong.
    Mistake = 2,
    /// The source failed.
    SourceFailed = 3,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}
