//! `pmderive archive` describes archives. It prints their labels in the words of `pmdumplog -L`
//! (see pmdumplog(1)) and their files, and checks them for damage.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use pmderive_runtime::archive::{ArchiveContext, ArchivePart, Version};
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::SourceError;
use pmderive_runtime::time::TimeZone;

use super::archives::joined;
use super::args::ExpansionArguments;
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::pcp::val::Detail;
use super::samples::window::ZoneOptions;
use super::source::tell_damage;
use super::stop::Stop;
use super::terminal::{Output, Purpose};
use crate::dialect::Dialect;

/// Arguments of `archive`.
#[derive(Debug, Args)]
pub struct ArchiveArguments {
    /// Archives. Several are read as one continuous recording.
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// The zone of times.
    #[command(flatten)]
    pub zone: ZoneOptions,
    /// Read every record, the metadata and the index. Report the number of records
    /// and all damage.
    #[arg(long)]
    pub scan: bool,
    /// With --scan, list all damaged places, not only the first 20.
    #[arg(short, long, display_order = 993)]
    pub verbose: bool,
    /// Limits for expanding compressed files.
    #[command(flatten)]
    pub expansion: ExpansionArguments,
}

/// Damaged places that are listed one by one.
const MOST_DAMAGE: usize = 20;

/// Runs the command.
pub fn run(arguments: &ArchiveArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let archives = joined(&arguments.archives).unwrap_or_default();
    let mut archive = arguments.expansion.open(&archives, Dialect::Fixed)?;
    let told = tell_damage(&mut archive, messages);
    arguments.zone.warn_of_unknown(messages);
    let zone = match &arguments.zone.timezone {
        Some(zone) => TimeZone::parse(zone),
        None if arguments.zone.hostzone => TimeZone::of_source(&mut archive)?,
        None => TimeZone::system(),
    };
    let mut out = messages.output(Purpose::Exact);
    let mut outcome = ExitStatus::Good;
    for (position, part) in archive.parts().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        if let Err(error) = write_part(&mut out, &part, &zone)? {
            messages.error(&error);
            outcome = ExitStatus::SourceFailed;
        }
    }
    out.print(b"")?;
    let places = Places {
        messages,
        count: told,
        most: if arguments.verbose { usize::MAX } else { MOST_DAMAGE },
    };
    if arguments.scan && scan(&mut archive, places, &mut out)? > 0 {
        outcome = ExitStatus::SourceFailed;
    }
    Ok(outcome)
}

/// Appends label and files. The inner error means that the archive's end cannot be found.
fn write_part(
    out: &mut Output,
    part: &ArchivePart<'_>,
    zone: &TimeZone,
) -> io::Result<Result<(), SourceError>> {
    let label = part.label;
    let (version, detail) = match label.version {
        Version::V2 => (2, Detail::Microseconds),
        Version::V3 => (3, Detail::Nanoseconds),
    };
    let escaping = out.escaping();
    let time = |time: Timestamp| detail.of(time, zone);
    writeln!(out, "Log Label (Log Format Version {version})")?;
    writeln!(out, "Performance metrics from host {}", escaping.text(&label.host))?;
    writeln!(out, "    commencing {}", time(label.start))?;
    let end = part.end_time();
    if let Ok(end) = &end {
        writeln!(out, "    ending     {}", time(*end))?;
    }
    writeln!(out, "Archive timezone: {}", escaping.text(&label.timezone))?;
    if !label.zoneinfo.is_empty() {
        writeln!(out, "Archive zoneinfo: {}", escaping.text(&label.zoneinfo))?;
    }
    writeln!(out, "PID for pmlogger: {}", label.pid)?;
    for (file, size) in part.files() {
        let file = escaping.text(&file);
        match size {
            Ok(size) => writeln!(out, "File {file}: {size} bytes")?,
            Err(error) => writeln!(out, "File {file}: {error}")?,
        }
    }
    Ok(end.map(|_| ()))
}

/// Reports damaged places: the first ones in full, the others as a number.
struct Places<'m> {
    messages: &'m Messages,
    count: usize,
    /// How many places are reported in full.
    most: usize,
}

impl Places<'_> {
    fn add(&mut self, error: &SourceError) {
        self.count += 1;
        if self.count <= self.most {
            self.messages.error(error);
        }
    }
}

/// Reads all metadata, the index and all records. Returns the number of damaged places, those
/// reported before included.
fn scan(
    archive: &mut ArchiveContext,
    mut places: Places<'_>,
    out: &mut Output,
) -> Result<usize, Stop> {
    let told = places.count;
    for part in archive.parts() {
        part.inspect(&mut |error| places.add(&error));
    }
    let (mut records, mut marks) = (0_u64, 0_u64);
    let mut last = String::new();
    let mut batch = ResultBatch::default();
    loop {
        let next = archive.read_record(&mut batch);
        archive.take_warnings().iter().for_each(|error| places.add(error));
        match next {
            Ok(()) if batch.sets().next().is_none() => marks += 1,
            Ok(()) => records += 1,
            Err(error) if error.is_end_of_archive() => break,
            Err(error) => {
                // The reader tries a record that is cut at the very end again each time.
                let text = error.to_string();
                if text == last {
                    break;
                }
                last = text;
                places.add(&error);
            }
        }
    }
    archive.check_rest()?;
    archive.take_warnings().iter().for_each(|error| places.add(error));
    let damaged = places.count;
    if let Some(more @ 1..) = damaged.checked_sub(places.most.max(told)) {
        let text = format_args!("{more} more damaged places are not listed (-v lists them)");
        places.messages.error(&text);
    }
    let left_out = match archive.records_left_out() {
        0 => String::new(),
        count => format!("; {count} left out, whose times are out of order"),
    };
    let counted = format!("Records: {records}, and {marks} marks{left_out}");
    out.print(format!("{counted}; damaged places: {damaged}\n"))?;
    Ok(damaged)
}
