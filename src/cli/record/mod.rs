//! `pmderive record` records a source into an archive, derived metrics included, as pmlogger(1)
//! and pmlogextract(1) do.
//!
//! ```text
//! arguments ──► definitions, source, window ──► Recorder ──► run ──► archive
//! ```

mod arguments;
mod refusal;
mod run;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::archive_writer::{ArchiveWriter, WriteError};
use pmderive_runtime::context::Context;
use pmderive_runtime::new_file::check_folder;
use pmderive_runtime::source::SourceError;

pub use self::arguments::RecordArguments;
use self::refusal::{refuse, refuse_below};
use self::run::RecordingRun;
use super::definitions::CommandDefinitions;
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::positional::refuse_files;
use super::progress::Progress;
use super::samples::pace::{Clock as _, Pace, SystemClock};
use super::samples::patience::{Patience, Retry};
use super::samples::time::{Course, DEFAULT_INTERVAL};
use super::signals::Signals;
use super::stop::Stop;
use crate::diag::Severity;
use crate::engine::{Engine, Session};
use crate::escape;
use crate::record::{Origin, Recorder, Recording, Records};
use crate::text::paths::directory_of;

/// Runs the command.
pub fn run(arguments: &RecordArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    if arguments.definitions.configs.is_empty() && arguments.metrics.is_empty() {
        return Err(Stop::Usage(
            "nothing to record: give a definition file (-c FILE) or names of metrics".to_owned(),
        ));
    }
    messages.set_words(arguments.diag);
    let mut definitions = CommandDefinitions::read(&arguments.definitions);
    refuse_files(&arguments.metrics, &definitions.registry)?;
    definitions.define_named(&arguments.metrics);
    let mistakes = std::mem::take(&mut definitions.diagnostics);
    let mut outcome = if mistakes.errors() > 0 { ExitStatus::Mistake } else { ExitStatus::Good };
    let mistaken: HashSet<Box<str>> =
        mistakes.iter().filter_map(|mistake| mistake.metric.clone()).collect();
    let is_wrong_argument = mistakes
        .iter()
        .any(|one| one.severity == Severity::Error && definitions.is_argument(one.span.source));
    messages.diagnostics(mistakes, &definitions.sources);
    definitions.tell_files(messages);
    let names: Vec<Box<str>> = match arguments.metrics.is_empty() {
        true => definitions.own().map(|definition| Box::from(&*definition.name)).collect(),
        false => arguments.names().map(Box::from).collect(),
    };
    if names.is_empty() {
        return match outcome {
            ExitStatus::Good => {
                Err(Stop::Usage("nothing to record: no metric is defined".to_owned()))
            }
            outcome => Ok(outcome),
        };
    }
    check_target(&arguments.output)?;
    let mut source = arguments.source.open(arguments.definitions.language().dialect, messages)?;
    let course = arguments.time.choose(&mut source, false, messages)?;
    let recording = recording(arguments, &mut source, names, &course)?;
    let is_archive = recording.is_archive;
    let backend = arguments.backend.for_evaluations(arguments.samples);
    let engine = Arc::new(Engine::of_this_machine(arguments.definitions.language(), backend));
    let mut context =
        Session::new(Arc::clone(&engine), definitions.shared(), source).expect("one language");
    course.begin(context.source())?;
    let mut recorder = Recorder::new(context, recording)?;
    let refused = refuse(&mut recorder, arguments, &definitions, &mistaken, messages)?;
    let refused = refused.max(refuse_below(&mut recorder, arguments, &definitions, messages)?);
    outcome = outcome.max(refused);
    messages.warnings_of(&engine);
    // Mistakes in files do not affect other definitions.
    if is_wrong_argument || refused == ExitStatus::Mistake || recorder.metrics() == 0 {
        messages
            .error(&format_args!("nothing was recorded; {} was not created", target(arguments)));
        return Ok(outcome.max(ExitStatus::Failed));
    }
    let progress = Progress::of(recorder.context().source(), course.last, !messages.are_quiet())?;
    let interval = course.interval.unwrap_or(DEFAULT_INTERVAL);
    let mut run = RecordingRun {
        recorder,
        pace: (!is_archive).then(|| Pace::new(interval, SystemClock.now())),
        end: course.last,
        samples: arguments.samples,
        signals: Signals::to_end().map_err(Stop::Output)?,
        messages,
        patience: Patience::new(Retry::Forever),
        progress,
        empty: 0,
        is_incomplete: false,
    };
    let recorded = run.run();
    Ok(outcome.max(run.finish(&target(arguments), recorded)?))
}

/// Name of the archive, for messages.
fn target(arguments: &RecordArguments) -> String {
    escape::path(&arguments.output).into_owned()
}

/// Checks early whether the archive can be written, as recording may begin much later.
fn check_target(base: &Path) -> Result<(), Stop> {
    let stop = |problem: String| Err(Stop::Archive(format!("{}: {problem}", escape::path(&base))));
    let name = base.file_name().unwrap_or_default().to_string_lossy();
    if name.is_empty() || base.is_dir() {
        let example = base.join("NAME");
        return stop(format!(
            "this is a directory; add a name for the archive: {}",
            escape::path(&example)
        ));
    }
    let folder = directory_of(base);
    let created = check_folder(folder).and_then(|()| tempfile::tempfile_in(folder));
    if let Err(error) = created {
        return stop(format!("cannot create a file in {}: {error}", escape::path(&folder)));
    }
    match ArchiveWriter::check(base) {
        Ok(()) => Ok(()),
        Err(WriteError::Exists { path }) => stop(format!(
            "{} exists already, and archives are never overwritten: choose another name",
            escape::path(&path)
        )),
        Err(error) => Err(Stop::Archive(error.to_string())),
    }
}

/// Chooses the metrics to record of a source.
fn recording(
    arguments: &RecordArguments,
    source: &mut Context,
    names: Vec<Box<str>>,
    course: &Course,
) -> Result<Recording<Context>, SourceError> {
    let mut recording = Recording {
        base: arguments.output.clone(),
        version: arguments.archive_version.into(),
        volume_bytes: arguments.volume_size,
        origin: match source {
            Context::Archive(archive) => Origin::of_archive(archive.label()),
            _ => Origin::of_live(source)?,
        },
        names,
        with_operands: arguments.with_operands,
        end: course.last,
        is_archive: false,
        label_times: Vec::new(),
        records: None,
    };
    if let Context::Archive(archive) = source {
        recording.is_archive = true;
        recording.label_times = archive.label_times();
        if course.interval.is_none() {
            recording.records = Some(Records {
                holds: |source, pmid| match source {
                    Context::Archive(archive) => archive.record_holds(pmid),
                    _ => true,
                },
                last_mark: |source| match source {
                    Context::Archive(archive) => archive.last_mark(),
                    _ => None,
                },
            });
        }
        if course.is_part() {
            // The new archive lacks metrics recorded before.
            recording.origin.start = None;
        }
    }
    Ok(recording)
}
