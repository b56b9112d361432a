//! The loop of `record`: takes sample after sample until the end.
//!
//! If a live source fails after the first sample, it is tried again without limit, after
//! pauses. The archive gets a mark for the gap.

use std::time::{Duration, Instant};

use pmderive_runtime::context::Context;
use pmderive_runtime::model::{Timestamp, UtcTime};
use pmderive_runtime::source::SourceError;

use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::progress::Progress;
use crate::cli::samples::pace::{Clock, Pace};
use crate::cli::samples::patience::Patience;
use crate::cli::signals::Signals;
use crate::cli::source::{check_rest, tell_warnings};
use crate::cli::stop::Stop;
use crate::record::{Extent, Notice, Recorder, RecorderError, Sampled};
use crate::syntax::counted;

/// A run of recording.
pub struct RecordingRun<'r> {
    /// The recorder.
    pub recorder: Recorder<Context>,
    /// Times for samples of a live source.
    pub pace: Option<Pace>,
    /// Time of the end.
    pub end: Option<Timestamp>,
    /// Samples to record; `None` if there is no limit.
    pub samples: Option<u64>,
    /// Signals that end the run.
    pub signals: Signals,
    /// Destination of warnings and progress messages.
    pub messages: &'r Messages,
    /// Progress through an archive.
    pub progress: Progress,
    /// Patience with a live source that fails.
    pub patience: Patience,
    /// Samples at whose times there was no metric to record.
    pub empty: u64,
    /// True once something was left out.
    pub is_incomplete: bool,
}

impl RecordingRun<'_> {
    /// Records until the end.
    ///
    /// # Errors
    /// The source failed for good, or the archive cannot be written any more.
    pub fn run(&mut self) -> Result<(), RecorderError> {
        let mut taken = 0;
        while !self.signals.have_come() && self.samples.is_none_or(|samples| taken < samples) {
            let step = self.recorder.sample();
            tell_warnings(self.recorder.context().source(), self.messages);
            let notices = self.recorder.take_notices();
            self.is_incomplete |= notices.iter().any(Notice::is_loss);
            tell(&notices, self.messages);
            match step {
                Ok(Sampled::Recorded(time)) => {
                    self.progress.at(time);
                    taken += 1;
                    self.patience.succeeded();
                }
                Ok(Sampled::LeftOut) => {
                    taken += 1;
                    self.patience.succeeded();
                }
                Ok(Sampled::NoMetrics) if self.pace.is_some() => {
                    self.empty += 1;
                    taken += 1;
                    self.patience.succeeded();
                }
                Ok(Sampled::End) if self.end.is_none() => {
                    let rest = check_rest(self.recorder.context().source());
                    tell_warnings(self.recorder.context().source(), self.messages);
                    rest?;
                    break;
                }
                Ok(Sampled::NoMetrics | Sampled::End) => break,
                Err(RecorderError::Source(error)) if taken > 0 && self.may_recover(&error) => {
                    let clock = UntilEnd { signals: &self.signals, end: self.end };
                    self.patience.failed(error, &clock, self.messages)?;
                }
                Err(error) => return Err(error),
            }
            if self.samples == Some(taken) || !self.wait() {
                break;
            }
        }
        self.progress.finish();
        Ok(())
    }

    /// Waits for the next sample. Returns false if there is none.
    fn wait(&mut self) -> bool {
        let Some(pace) = &mut self.pace else { return true };
        let wait = pace.until_next(self.signals.now());
        if self.end.is_some_and(|end| until(end) < wait) {
            return false;
        }
        self.signals.wait(wait);
        true
    }

    fn may_recover(&self, error: &SourceError) -> bool {
        self.pace.is_some() && error.is_transient()
    }

    /// Completes the archive and reports its contents. The run has failed if something was left
    /// out.
    ///
    /// # Errors
    /// The error that stopped the recording early.
    pub fn finish(
        self,
        target: &str,
        recorded: Result<(), RecorderError>,
    ) -> Result<ExitStatus, Stop> {
        let (extent, metrics) = (self.recorder.extent(), self.recorder.most_metrics());
        let is_left_out = self.recorder.left_out().next().is_some();
        let is_whole = extent.records > 0 && !is_left_out && !self.is_incomplete && self.empty == 0;
        let finished = self.recorder.finish();
        let summary = summary(target, extent, metrics, self.empty);
        match (recorded, finished) {
            (Err(RecorderError::Source(error)), _) => {
                self.messages.note(&summary);
                Err(Stop::Source(error))
            }
            (Err(RecorderError::Write(error)), _) | (Ok(_), Err(error)) => {
                let stays = match extent.records {
                    0 => String::new(),
                    _ => format!("; the records before stay readable: {summary}"),
                };
                Err(Stop::Archive(format!("{error}{stays}")))
            }
            (Ok(()), Ok(_)) => {
                self.messages.note(&summary);
                Ok(if is_whole { ExitStatus::Good } else { ExitStatus::Failed })
            }
        }
    }
}

/// A clock whose pauses end with the recording.
struct UntilEnd<'e> {
    signals: &'e Signals,
    end: Option<Timestamp>,
}

impl Clock for UntilEnd<'_> {
    fn now(&self) -> Instant {
        self.signals.now()
    }

    fn pause(&self, time: Duration) {
        self.signals.pause(self.end.map_or(time, |end| time.min(until(end))));
    }
}

/// The line about the recorded samples.
fn summary(target: &str, extent: Extent, metrics: usize, empty: u64) -> String {
    let empty = match empty {
        0 => String::new(),
        samples => format!("; there was no metric to record for {}", counted(samples, "sample")),
    };
    let Extent { records, times: Some((first, last)), left_out } = extent else {
        return format!("nothing was recorded; {target} was not created{empty}");
    };
    let left_out = match left_out {
        0 => String::new(),
        samples => format!("; left out: {} of earlier times", counted(samples, "sample")),
    };
    format!(
        "{target}: {} of {}, {} to {}{left_out}{empty}",
        counted(records, "record"),
        counted(metrics, "metric"),
        UtcTime(first),
        UtcTime(last)
    )
}

/// Time until a moment by this machine's clock; zero once it has passed.
fn until(time: Timestamp) -> Duration {
    Duration::try_from_secs_f64(time.seconds_since(Timestamp::now())).unwrap_or_default()
}

/// Notices of a kind that are printed each; when an agent dies there may be hundreds.
const MAX_TOLD: usize = 20;

/// Prints notices: those of a kind together if there are many.
fn tell(notices: &[Notice], messages: &Messages) {
    let mut of_kind: Vec<(String, Vec<&Notice>)> = Vec::new();
    for notice in notices {
        let kind = notice.kind();
        match of_kind.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, all)) => all.push(notice),
            None => of_kind.push((kind, vec![notice])),
        }
    }
    for (kind, all) in of_kind {
        let are_many = all.len() > MAX_TOLD && !messages.are_verbose();
        match all.first().and_then(|notice| notice.metric()).filter(|_| are_many) {
            Some(name) => {
                let count = counted(all.len(), "metric");
                let summary = format!("{count}: {kind}, such as {name}; --verbose lists them");
                messages.warning(&summary);
            }
            None => all.iter().for_each(|notice| messages.warning(notice)),
        }
    }
}
