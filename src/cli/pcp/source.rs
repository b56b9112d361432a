//! The open source of a command named after one of PCP's tools. With it are its derived
//! metrics, the chosen time and zone, and the damage found.

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

/// The lines that PCP's tools add if the end of an archive cannot be found.
const END_UNKNOWN: &str = "\nWARNING: This archive is sufficiently damaged that it may not be possible to\n         \
     produce complete information.  Continuing and hoping for the best.\n";

/// The error for a time window of a live source.
pub const ARCHIVES_ONLY: &str = "time window options are supported for archives only";

/// A source of any kind, with its own names or with those of a file.
pub type AnyNamed = WithNameSpace<Context>;

/// An open source, with the options that apply to it.
pub struct ToolSource {
    /// The source, with derived metrics.
    pub context: Session<AnyNamed>,
    /// The version of PCP whose answers are given.
    pub dialect: Dialect,
    /// Mistakes of definitions.
    pub mistakes: Mistakes,
    /// Time of the first values in an archive; `None` for its start.
    pub origin: Option<Timestamp>,
    /// The zone for times.
    pub zone: TimeZone,
    /// The line of PCP's tools about a chosen zone; an empty line follows.
    pub zone_note: Option<String>,
    /// Takes samples of the source.
    pub sampler: Sampler,
    /// Damage found in the archive.
    pub damage: Damage,
}

/// Damage of an archive that fetches have found.
#[derive(Default)]
pub struct Damage {
    /// All damage, each message once: each fetch may find it again.
    met: HashSet<String>,
    /// Damage that is not yet reported.
    untold: Vec<String>,
}

impl ToolSource {
    /// The source itself.
    pub fn kind(&mut self) -> &mut Context {
        self.context.source().source()
    }

    /// Prints the mistakes of derived metrics used since the last call; `asked` are the names
    /// that the user gave.
    pub fn tell_mistakes(&mut self, asked: &[String], messages: &mut Messages) {
        let (found, sources) = self.context.take_mistakes();
        let found = self.mistakes.worth_saying(found, asked);
        // PCP's tools suggest nothing. If the source fails meanwhile, there are no suggestions.
        let told = match self.dialect {
            Dialect::Fixed => self.context.with_suggestions(found.clone()).unwrap_or(found),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => found,
        };
        messages.diagnostics(told, &sources);
    }

    /// Makes metrics of the expressions among the given names. Returns the names of all
    /// metrics. A wrong expression is reported and left out. PCP's tools read all arguments as
    /// names.
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

    /// The exit status that mistakes in definitions cause.
    pub fn outcome(&self) -> ExitStatus {
        self.mistakes.outcome()
    }

    /// True if the source is an archive.
    pub fn is_archive(&mut self) -> bool {
        matches!(self.kind(), Context::Archive(_))
    }

    /// Notes the damage that made a fetch fail.
    pub fn note_damage(&mut self, error: SourceError) {
        let text = error.to_string();
        if self.damage.met.insert(text.clone()) {
            self.damage.untold.push(text);
        }
    }

    /// Reports the damage that fetches have found. With the answers of PCP's tools it is no
    /// failure, as they do not notice it.
    pub fn tell_damage(&mut self, messages: &Messages) -> ExitStatus {
        tell_warnings(self.kind(), messages);
        if self.dialect != Dialect::Fixed || self.damage.met.is_empty() {
            return ExitStatus::Good;
        }
        self.damage.untold.drain(..).for_each(|text| messages.error(&text));
        ExitStatus::Failed
    }

    /// The times of the first and the last value of an archive. A live source has the present
    /// time and no end. Neither has an archive whose end cannot be found: the values before the
    /// damage may be of use.
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

    /// The stretch of time that options choose (`pmGetContextOptions(3)`). An ignored alignment is
    /// reported.
    ///
    /// # Errors
    /// One of the options makes no sense.
    pub fn window(
        &mut self,
        spec: &WindowSpec<'_>,
        messages: &Messages,
    ) -> Result<TimeWindow, Stop> {
        let bounds = self.bounds(messages);
        let spec = WindowSpec { as_libpcp: self.dialect != Dialect::Fixed, ..*spec };
        let window = TimeWindow::parse(&spec, bounds, &self.zone)
            .map_err(|error| Stop::tool(&[&"invalid time window.\n", &error, &"\n"]))?;
        // PCP's tools go on without a message.
        if let Some(warning) = window.warning.as_ref().filter(|_| !messages.are_of_tool()) {
            messages.lines(&[warning]);
        }
        Ok(window)
    }

    /// Prints the chosen zone, if there is one.
    pub fn tell_zone(&mut self, messages: &Messages) -> Result<(), Stop> {
        if let Some(note) = self.zone_note.take() {
            let mut out = messages.output(Purpose::Exact);
            writeln!(out, "{}\n", out.escaping().text(&note))?;
            out.flush()?;
        }
        Ok(())
    }

    /// Chooses the time for tools that report on a single time. Like those tools, it ignores
    /// zones and times for live sources.
    ///
    /// # Errors
    /// The time makes no sense.
    pub fn start_at(&mut self, time: &WindowOptions, messages: &Messages) -> Result<(), Stop> {
        let window = time.window();
        if self.is_archive() {
            self.tell_zone(messages)?;
            if !window.is_whole() {
                let origin = self.window(&window, messages)?.origin;
                self.origin = Some(match self.dialect {
                    // Version 6 drops everything below microseconds.
                    Dialect::Pcp6_0 => {
                        Timestamp::new(origin.sec, i64::from(origin.nsec / 1000 * 1000))
                    }
                    _ => Timestamp::new(origin.sec, i64::from(origin.nsec)),
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

    /// Makes the next fetch from an archive begin at the origin again (`pmSetMode(3)` with
    /// `PM_MODE_FORW`).
    pub fn rewind(&mut self) -> Result<(), SourceError> {
        let origin = self.origin;
        let Context::Archive(archive) = self.kind() else { return Ok(()) };
        archive.set_position(origin.unwrap_or(archive.label().start))
    }

    /// Moves an archive's metadata to a time.
    pub fn stand_at(&mut self, time: Timestamp) -> Result<(), SourceError> {
        match self.kind() {
            Context::Archive(archive) if archive.origin() != time => archive.set_position(time),
            _ => Ok(()),
        }
    }
}

/// The source of a sample, without its [`Sampler`].
pub struct Attempt<'a> {
    /// The source.
    pub context: &'a mut Session<AnyNamed>,
    /// Destination of messages about failures.
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
