//! Prints samples one by one, as `eval` does: a renderer for each form.
//!
//! A renderer appends to a buffer that is reused for the next sample, so that
//! values cost no allocation.

mod columns;
mod csv;
pub(super) mod json;
mod text;

use std::borrow::Cow;
use std::fmt;

use pmderive_runtime::model::{InstId, InstanceNames, Timestamp, UtcTime};
use pmderive_runtime::time::TimeZone;

use crate::dialect::Dialect;
use crate::engine::{Metric, ReportSample};
use crate::escape::line;
use crate::report::plain::text as text_of;
pub use crate::text::Escaping;

/// Writes samples in one form.
pub trait Renderer: Send {
    /// Appends the text before the first sample.
    fn begin(&mut self, _out: &mut String) {}

    /// Appends a sample.
    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String);

    /// Appends the text after the last sample of these metrics.
    fn end(&mut self, _metrics: &[Metric], _out: &mut String) {}
}

impl fmt::Debug for dyn Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").finish_non_exhaustive()
    }
}

/// Forms of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[non_exhaustive]
pub enum Form {
    /// Like pminfo.
    #[default]
    Text,
    /// One object for each sample, on one line.
    #[cfg_attr(feature = "cli", value(aliases = ["jsonl", "ndjson"]))]
    Json,
    /// One line for each value.
    Csv,
    /// One line for each sample, in columns as of pmrep; numbers are rounded.
    Columns,
}

impl Form {
    /// True if the form leaves out metrics whose operands a record lacks
    /// ([`ReportSample::lacking`]).
    pub fn leaves_out(self) -> bool {
        self == Form::Text
    }

    /// False for a form that cannot show metrics that fail.
    pub fn shows_failures(self) -> bool {
        !matches!(self, Form::Csv | Form::Columns)
    }

    /// The renderer of the form. With `several` samples, each shows its time in
    /// every form. `why` asks for reasons, where the form has a choice. Statuses are in the
    /// words of `dialect`, and the text form has its digits. Dates are in `zone`; `None` for UTC.
    pub fn renderer(
        self,
        several: bool,
        why: bool,
        zone: Option<TimeZone>,
        escaping: Escaping,
        dialect: Dialect,
    ) -> Box<dyn Renderer> {
        match self {
            Form::Text => Box::new(text::Text::new(several, why, zone, escaping, dialect)),
            Form::Json => Box::new(json::Json { head: String::new(), dialect }),
            Form::Csv => Box::new(csv::Csv::new(zone)),
            Form::Columns => Box::new(columns::Columns::new(zone, escaping)),
        }
    }
}

/// Appends a date with its time of day (RFC 3339) in a zone; `None` for UTC.
fn push_time(out: &mut String, time: Timestamp, zone: Option<&TimeZone>) {
    match zone {
        Some(zone) => append(out, format_args!("{}", zone.zoned(time))),
        None => append(out, format_args!("{}", UtcTime(time))),
    }
}

/// The name of an instance, in the form to show.
#[inline]
fn instance_name<'d>(
    names: &mut InstanceNames<'d>,
    instance: InstId,
    escaping: Escaping,
) -> Option<Cow<'d, str>> {
    Some(match names.as_text(instance)? {
        Cow::Borrowed(name) => escaping.text(name),
        Cow::Owned(name) => escaping.text(&name).into_owned().into(),
    })
}

/// Appends a value that is text, in the form to show.
fn push_text(out: &mut String, bytes: &[u8], escaping: Escaping) {
    match escaping {
        Escaping::Off => out.push_str(&text_of(bytes)),
        Escaping::On => out.push_str(&line(bytes)),
    }
}

/// Appends formatted text.
fn append(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = fmt::Write::write_fmt(out, text);
}
