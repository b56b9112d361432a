//! `pmderive export` writes samples of metrics as a table, to a file or to standard output.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::Args;
use pmderive_runtime::context::Context as AnySource;
use rustix::io::Errno;

use crate::engine::{Metric, Registry, ReportSample};
use crate::escape;
use crate::report::table::{Destination, ExportError, Exporter, Format, Sampling, Schema, export};

use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::samples::arguments::SampleArguments;
use super::samples::run::{Run, Sink};
use super::signals::Signals;
use super::stop::Stop;
use super::terminal::{Purpose, is_closed, is_output_closed, shows_output};

/// Endings of the names of compressed files.
const COMPRESSED: [&str; 4] = ["bz2", "gz", "xz", "zst"];

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// What to export.
    #[command(flatten)]
    pub what: SampleArguments,
    /// Choose the form of the table [default: by the name of FILE; csv on standard output].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Write to this file, which appears once it is complete; `-` is standard output
    /// [default: -].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// List what is left out of groups because operands are missing.
    #[arg(short, long, display_order = 993)]
    pub verbose: bool,
}

impl ExportArguments {
    /// The output file; `None` for standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    fn format(&self) -> Result<Format, Stop> {
        let of_name = self.file().and_then(Format::of_name);
        let format = match (self.format, of_name, self.file()) {
            (Some(format), ..) | (None, Some(format), _) => format,
            (None, None, None) => Format::Csv,
            (None, None, Some(path)) => {
                let is_compressed = |end| COMPRESSED.iter().any(|known| OsStr::new(known) == end);
                let advice = match path.extension().is_some_and(is_compressed) {
                    true => "`export` does not compress, so pipe its output into a program",
                    false => "choose one with --format",
                };
                return Err(Stop::Usage(format!(
                    "no output format matches the name {}: {advice}",
                    escape::path(&path)
                )));
            }
        };
        match format.is_built_in() {
            true => Ok(format),
            false => Err(Stop::Usage(ExportError::NotBuiltIn.to_string())),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &ExportArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let format = arguments.format()?;
    let purpose = match format {
        Format::Csv => Purpose::Csv,
        _ => Purpose::Exact,
    };
    let is_shown = arguments.file().map_or_else(shows_output, |path| terminal(path).is_some());
    if is_shown && matches!(format, Format::Arrow | Format::Parquet) {
        return Err(Stop::Usage(
            "a terminal cannot show this form: give a file with -o, or --format csv".to_owned(),
        ));
    }
    let what = &arguments.what;
    let mut definitions = what.read(messages)?;
    let file = arguments.file();
    let is_unread = || file.is_none() && is_output_closed();
    let mut source = what.follow.open(&is_unread, || Ok(what.open_source(messages)?))?;
    let mut outcome = what.select(&mut definitions, Some(&mut source), messages)?;
    if definitions.selection().is_empty() {
        return Ok(outcome);
    }
    let open = || destination(file, purpose, messages);
    // Opening a pipe waits for its reader. Signals end the process until they are watched.
    let pipe = file.is_some_and(is_pipe).then(open).transpose()?;
    // This precedes any file that a signal could leave behind.
    let signals = Signals::to_end().map_err(Stop::Output)?;
    let destination = pipe.map_or_else(open, Ok)?;
    let sampling = match (&source, what.time.interval) {
        (AnySource::Archive(_), None) => Sampling::Records,
        (AnySource::Archive(_), Some(_)) => Sampling::Interpolated,
        _ => Sampling::Live,
    };
    let is_quiet = messages.are_quiet();
    let mut run = Run::open(what, false, &definitions, source, messages)?;
    run.tell_left_out(arguments.verbose);
    outcome = outcome.max(run.leave_out(is_event, |metric, messages| {
        let name = &metric.name;
        messages
            .error(&format_args!("{name}: a table cannot hold event records; see `pmderive val`"));
    })?);
    run.take_all_of_archive();
    run.tell_failures();
    run.show_progress((file.is_some() || !shows_output()) && !is_quiet)?;
    run.sampler.clock = Box::new(signals);
    if let (Some(_), Some(follower)) = (file, &mut run.sampler.follower) {
        // Only a pipe has a reader that can go away.
        let device = destination.device().map_err(|error| named(file, error))?;
        follower.is_unread = Box::new(move || device.as_ref().is_some_and(is_closed));
    }
    let mut table = Table {
        registry: &definitions.registry,
        sampling,
        format,
        file,
        is_awaited: destination.is_stream() && run.sampler.waits(),
        destination: Some(destination),
        exporter: None,
        samples: 0,
    };
    let ran = run.run(&mut table);
    let is_damaged = run.have_told_damage()
        || matches!(ran, Ok(ExitStatus::SourceFailed) | Err(Stop::Source(_)));
    let is_cut_off = run.sampler.clock.is_over() || is_damaged;
    let ended = table.end(ran, is_cut_off, messages);
    ended.map(|ended| outcome.max(ended)).map_err(|stop| stop.after(outcome))
}

/// Opens the output: a file that appears once it is complete, or a stream.
fn destination(
    file: Option<&Path>,
    purpose: Purpose,
    messages: &Messages,
) -> Result<Destination, Stop> {
    let Some(path) = file else { return Ok(Destination::stream(messages.output(purpose))) };
    match terminal(path) {
        Some(terminal) => Ok(Destination::stream(messages.terminal(terminal, purpose))),
        None => Destination::file(path).map_err(|error| named(file, error)),
    }
}

/// Opens the file as a terminal, if it is one.
fn terminal(path: &Path) -> Option<File> {
    let is_device = fs::metadata(path).is_ok_and(|about| about.file_type().is_char_device());
    let device = is_device.then(|| File::options().write(true).open(path).ok()).flatten();
    device.filter(File::is_terminal)
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo())
}

fn is_event(metric: &Metric) -> bool {
    metric.desc.is_ok_and(|desc| desc.value_type.is_event())
}

/// Puts the name of the file before its error.
fn named(file: Option<&Path>, error: io::Error) -> Stop {
    match file {
        Some(path) => Stop::of_file(path, &error),
        None => error.into(),
    }
}

/// The table being written.
struct Table<'t> {
    registry: &'t Registry,
    sampling: Sampling,
    format: Format,
    file: Option<&'t Path>,
    /// True if a reader may be waiting for each sample.
    is_awaited: bool,
    /// The destination, until the table begins.
    destination: Option<Destination>,
    exporter: Option<Box<dyn Exporter>>,
    samples: u64,
}

impl Table<'_> {
    fn failed(&self, error: ExportError) -> Stop {
        match error {
            ExportError::Io(error) => named(self.file, error),
            other => named(self.file, io::Error::other(other.to_string())),
        }
    }

    /// Completes and closes the table.
    fn finish(&mut self) -> Result<Destination, Stop> {
        match (self.exporter.take(), self.destination.take()) {
            (Some(exporter), _) => exporter.finish().map_err(|error| self.failed(error)),
            (None, Some(destination)) => Ok(destination),
            (None, None) => Ok(Destination::stream(io::sink())),
        }
    }

    fn complete(&mut self) -> Result<(), Stop> {
        let finished = self.finish()?;
        finished.complete().map_err(|error| named(self.file, error))
    }

    /// Completes the table after a run, or keeps what there is if the run failed or was cut off.
    fn end(
        &mut self,
        ran: Result<ExitStatus, Stop>,
        is_cut_off: bool,
        messages: &Messages,
    ) -> Result<ExitStatus, Stop> {
        match ran {
            Ok(ran) if !is_cut_off => self.complete().map(|()| ran).map_err(|stop| stop.after(ran)),
            // The reader of a pipe has gone while nothing was written.
            Err(Stop::OutputClosed(_)) if self.file.is_some() => {
                Err(named(self.file, Errno::PIPE.into()))
            }
            // A full disk, say.
            Err(Stop::Output(error)) => {
                if let Some(partial) = self.exporter.take().and_then(|exporter| exporter.keep()) {
                    let partial = escape::path(&partial);
                    messages
                        .error(&format_args!("the samples that could be written are in {partial}"));
                }
                Err(Stop::Output(error))
            }
            Ok(_) | Err(Stop::Source(_)) if self.samples > 0 => {
                let samples = self.samples;
                if let Some(partial) = self.partial()? {
                    let partial = escape::path(&partial);
                    messages.error(&format_args!("the {samples} samples so far are in {partial}"));
                }
                ran.map(|ran| ran.max(ExitStatus::Failed))
            }
            ran => ran.map(|ran| ran.max(ExitStatus::Failed)),
        }
    }

    /// Keeps the incomplete table. Returns the name of its file, if it has one.
    fn partial(&mut self) -> Result<Option<PathBuf>, Stop> {
        let finished = self.finish()?;
        finished.partial().map_err(|error| named(self.file, error))
    }
}

impl Sink for Table<'_> {
    fn begin(&mut self, metrics: &[Metric], source: &mut AnySource) -> Result<(), Stop> {
        // The run may repeat this after the source failed.
        let schema = Schema::look_up(metrics, self.registry, source, self.sampling)?;
        let Some(destination) = self.destination.take() else { return Ok(()) };
        let exporter = export(self.format, &schema, destination);
        self.exporter = Some(exporter.map_err(|error| self.failed(error))?);
        Ok(())
    }

    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), Stop> {
        self.samples += 1;
        let Some(exporter) = &mut self.exporter else { return Ok(()) };
        let mut written = exporter.sample(shown);
        if self.is_awaited {
            written = written.and_then(|()| exporter.flush());
        }
        written.map_err(|error| self.failed(error))
    }
}
