//! The open source of a command called after one of PCP's tools, with its derived
//! metrics, the time and the zone that were chosen, and the damage that was found. This
//! module does not know what is printed.

use std::collections::HashSet;
use std::io::Write;

use pmderive_runtime::context::Context;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::name_space::WithNameSpace;
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::time::{TimeWindow, TimeZone, WindowSpec};

use super::mistakes::Mistakes;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::positional::{is_expression, is_selection};
use crate::cli::samples::window::WindowOptions;
use crate::cli::samples::{SampledSource, Sampler};
use crate::cli::source::tell_warnings;
use crate::cli::stop::Stop;
use crate::cli::terminal::Purpose;
use crate::dialect::Dialect;
use crate::engine::Session;

/// What PCP's tools add when the end of an archive cannot be found.
const END_UNKNOWN: &str = "\nWARNING: This archive is sufficiently damaged that it may not be possible to\n         \
     produce complete information.  Continuing and hoping for the best.\n";

/// Said where a part of a live source's time is wanted.
pub const ARCHIVES_ONLY: &str = "time window options are supported for archives only";

/// A source of any kind, with its own names or with those of a file.
pub type AnyNamed = WithNameSpace<Context>;

/// An open source, with what the options say of it.
pub struct ToolSource {
    /// The source, with derived metrics.
    pub context: Session<AnyNamed>,
    /// The version of PCP whose answers are given.
    pub dialect: Dialect,
    /// What is wrong with definitions.
    pub mistakes: Mistakes,
    /// From when in an archive values are; without it, from its start.
    pub origin: Option<Timestamp>,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// What PCP's tools say when a zone was chosen; an empty line follows.
    pub zone_note: Option<String>,
    /// Takes samples of it.
    pub sampler: Sampler,
    /// What was found to be damaged.
    pub damage: Damage,
}

/// Damage of an archive that fetches have come upon.
#[derive(Default)]
pub struct Damage {
    /// Each once, although each fetch may come upon it again.
    met: HashSet<String>,
    /// What nobody was told of.
    untold: Vec<String>,
}

impl ToolSource {
    /// The source itself.
    pub fn kind(&mut self) -> &mut Context {
        self.context.source().source()
    }

    /// Tells what was found wrong with derived metrics that were touched since
    /// the last time; `asked` are the names that the user has given.
    pub fn tell_mistakes(&mut self, asked: &[String], messages: &mut Messages) {
        let (found, sources) = self.context.take_mistakes();
        let found = self.mistakes.worth_saying(found, asked);
        // PCP's tools suggest nothing; nor is it worth a message that a source failed.
        let told = match self.dialect {
            Dialect::Fixed => self.context.with_suggestions(found.clone()).unwrap_or(found),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => found,
        };
        messages.diagnostics(told, &sources);
    }

    /// Makes metrics of the expressions among the names that were asked for, and
    /// gives the names by which all of them are found. What is wrong with an
    /// expression is told, and it is left out. To PCP's tools all are names.
    pub fn take_expressions(
        &mut self,
        asked: &[String],
        messages: &mut Messages,
    ) -> Result<Vec<String>, SourceError> {
        let mut names: Vec<String> = Vec::with_capacity(asked.len());
        for text in asked {
            let language = self.mistakes.language();
            let is_name = || !is_expression(text, language) && !is_selection(text, language);
            if self.dialect != Dialect::Fixed || is_name() {
                names.push(text.clone());
                continue;
            }
            let name = text.trim().to_owned();
            if !names.contains(&name) {
                match self.context.add_expression(text)? {
                    Ok(_) => names.push(name),
                    Err(refused) => self.mistakes.refuse(refused, messages),
                }
            }
        }
        Ok(names)
    }

    /// What the mistakes in definitions make of the run.
    pub fn outcome(&self) -> ExitStatus {
        self.mistakes.outcome()
    }

    /// True if the metrics are an archive's.
    pub fn is_archive(&mut self) -> bool {
        matches!(self.kind(), Context::Archive(_))
    }

    /// Takes note of what a fetch failed of.
    pub fn note_damage(&mut self, error: SourceError) {
        let text = error.to_string();
        if self.damage.met.insert(text.clone()) {
            self.damage.untold.push(text);
        }
    }

    /// Tells of the damage that fetches have come upon. Where answers are to be
    /// those of PCP's tools, it is no failure, since these do not notice.
    pub fn tell_damage(&mut self, messages: &Messages) -> ExitStatus {
        tell_warnings(self.kind(), messages);
        if self.dialect != Dialect::Fixed || self.damage.met.is_empty() {
            return ExitStatus::Good;
        }
        self.damage.untold.drain(..).for_each(|text| messages.error(&text));
        ExitStatus::Failed
    }

    /// The times of the first and the last value of an archive; for a live
    /// source now, and no end. If the end of an archive cannot be found there
    /// is none either: the values before the damage may be of use.
    fn bounds(&mut self, messages: &Messages) -> (Timestamp, Option<Timestamp>) {
        let dialect = self.dialect;
        let Context::Archive(archive) = self.kind() else { return (Timestamp::now(), None) };
        let end = match dialect {
            Dialect::Fixed => archive.end_time(),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => archive.indexed_end_time(),
        };
        let start = archive.label().start;
        if let Err(error) = &end {
            let (archive, status) = (self.context.name(), self.dialect.text(error.status()));
            messages.error(&format_args!("Cannot locate end of archive {archive}: {status}"));
            if messages.are_of_tool() {
                messages.lines(&[&END_UNKNOWN]);
            }
        }
        (start, end.ok())
    }

    /// The part of time that options choose (`pmGetContextOptions(3)`). What
    /// could not be followed is told.
    ///
    /// # Errors
    /// One of the options makes no sense.
    pub fn window(
        &mut self,
        spec: &WindowSpec<'_>,
        messages: &Messages,
    ) -> Result<TimeWindow, Stop> {
        let bounds = self.bounds(messages);
        let window = TimeWindow::parse(spec, bounds, &self.zone)
            .map_err(|error| Stop::tool(&[&"invalid time window.\n", &error, &"\n"]))?;
        // PCP's tools go on without a word.
        if let Some(warning) = window.warning.as_ref().filter(|_| !messages.are_of_tool()) {
            messages.lines(&[warning]);
        }
        Ok(window)
    }

    /// Says which zone was chosen, if one was.
    pub fn tell_zone(&mut self, messages: &Messages) -> Result<(), Stop> {
        if let Some(note) = self.zone_note.take() {
            let mut out = messages.output(Purpose::Exact);
            writeln!(out, "{}\n", out.escaping().text(&note))?;
            out.flush()?;
        }
        Ok(())
    }

    /// For tools that report on one time only: chooses it. As to those tools,
    /// zones and times are matters of archives.
    ///
    /// # Errors
    /// The time makes no sense.
    pub fn start_at(&mut self, time: &WindowOptions, messages: &Messages) -> Result<(), Stop> {
        let window = time.window();
        if self.is_archive() {
            self.tell_zone(messages)?;
            if window != WindowSpec::default() {
                let origin = self.window(&window, messages)?.origin;
                self.origin = Some(match self.dialect {
                    // Version 6 drops what is finer than microseconds.
                    Dialect::Pcp6_0 => Timestamp { nsec: origin.nsec / 1000 * 1000, ..origin },
                    _ => origin,
                });
            }
            return Ok(());
        }
        if !window.is_live() {
            return Err(messages.misuse(&ARCHIVES_ONLY));
        }
        self.zone_note = None;
        if self.dialect == Dialect::Pcp6_0 {
            self.zone = TimeZone::system();
        }
        Ok(())
    }

    /// Makes the next fetch from an archive begin at the origin again
    /// (`pmSetMode(3)` with `PM_MODE_FORW`).
    pub fn rewind(&mut self) -> Result<(), SourceError> {
        let origin = self.origin;
        let Context::Archive(archive) = self.kind() else { return Ok(()) };
        archive.set_position(origin.unwrap_or(archive.label().start))
    }

    /// Makes the metadata of an archive those of a time.
    pub fn stand_at(&mut self, time: Timestamp) -> Result<(), SourceError> {
        match self.kind() {
            Context::Archive(archive) if archive.origin() != time => archive.set_position(time),
            _ => Ok(()),
        }
    }
}

/// The source of a sample, beside its [`Sampler`].
pub struct Attempt<'a> {
    /// The source.
    pub context: &'a mut Session<AnyNamed>,
    /// Where it is told that it fails.
    pub messages: &'a Messages,
}

impl SampledSource for Attempt<'_> {
    fn context(&mut self) -> &mut Context {
        self.context.source().source()
    }

    fn messages(&self) -> &Messages {
        self.messages
    }
}
