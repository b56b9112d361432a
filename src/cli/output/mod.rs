//! Samples as text: a renderer for each form.
//!
//! A renderer appends to a buffer that is used again for the next sample, so
//! that nothing is allocated for a value. Renderers know neither sources nor
//! where the text goes.

mod csv;
mod json;
mod text;

use std::fmt;

use clap::ValueEnum;
use pmderive_runtime::model::{Timestamp, UtcTime};
use pmderive_runtime::time::TimeZone;

use super::terminal::{Escaping, Purpose};
use crate::engine::Shown;

pub use csv::Csv;
pub use json::Json;
pub use text::Text;

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

/// Forms of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EvalFormat {
    /// As pminfo prints them.
    #[default]
    Text,
    /// One object for each sample, on one line.
    Json,
    /// One line for each value.
    Csv,
}

impl EvalFormat {
    /// What the form is for.
    pub fn purpose(self) -> Purpose {
        match self {
            EvalFormat::Text => Purpose::Text,
            EvalFormat::Json => Purpose::Exact,
            EvalFormat::Csv => Purpose::Csv,
        }
    }

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
            EvalFormat::Text => Box::new(Text::new(several, why, zone, escaping)),
            EvalFormat::Json => Box::new(Json),
            EvalFormat::Csv => Box::new(Csv { zone }),
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
