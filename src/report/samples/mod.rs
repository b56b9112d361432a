//! Samples one by one, as `eval` prints them: a renderer for each form.
//!
//! A renderer appends to a buffer that is used again for the next sample, so
//! that nothing is allocated for a value. Renderers know neither sources nor
//! where the text goes.

mod csv;
pub(super) mod json;
mod text;

use std::fmt;

use pmderive_runtime::model::{Timestamp, UtcTime};
use pmderive_runtime::time::TimeZone;

use crate::engine::Shown;
use crate::text::Escaping;

/// Writes samples in one form.
pub trait Renderer {
    /// Appends what stands before all samples.
    fn begin(&mut self, _out: &mut String) {}

    /// Appends a sample.
    fn sample(&mut self, shown: &Shown<'_>, out: &mut String);

    /// False for a form that has no place for metrics that fail.
    fn shows_failures(&self) -> bool {
        true
    }
}

/// Forms of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Form {
    /// As pminfo prints them.
    #[default]
    Text,
    /// One object for each sample, on one line.
    Json,
    /// One line for each value.
    Csv,
}

impl Form {
    /// The renderer of the form. `several` samples have their times with them
    /// in every form; `why` asks for reasons where the form leaves a choice.
    /// Dates are in `zone`, without one in UTC.
    pub fn renderer(
        self,
        several: bool,
        why: bool,
        zone: Option<TimeZone>,
        escaping: Escaping,
    ) -> Box<dyn Renderer> {
        match self {
            Form::Text => Box::new(text::Text::new(several, why, zone, escaping)),
            Form::Json => Box::new(json::Json),
            Form::Csv => Box::new(csv::Csv::new(zone)),
        }
    }
}

/// Appends a date with its time of day (RFC 3339) in a zone, without one in UTC.
fn push_time(out: &mut String, time: Timestamp, zone: Option<&TimeZone>) {
    match zone {
        Some(zone) => append(out, format_args!("{}", zone.zoned(time))),
        None => append(out, format_args!("{}", UtcTime(time))),
    }
}

/// Appends formatted text.
fn append(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = fmt::Write::write_fmt(out, text);
}
