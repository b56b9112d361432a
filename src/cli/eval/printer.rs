//! Prints samples to standard output, in the form that the arguments choose.

use std::io::Write;

use pmderive_runtime::time::TimeZone;

use super::arguments::EvalArguments;
use crate::cli::samples::run::Sink;
use crate::cli::stop::Stop;
use crate::cli::terminal::{Output, Purpose};
use crate::engine::{Metric, ReportSample};
use crate::report::samples::{Form, Renderer};

/// The purpose that a form serves.
pub fn purpose(form: Form) -> Purpose {
    match form {
        Form::Text | Form::Columns => Purpose::Text,
        Form::Csv => Purpose::Csv,
        // All other forms are for programs.
        _ => Purpose::Exact,
    }
}

/// Prints samples to standard output.
pub struct Printer {
    renderer: Box<dyn Renderer>,
    buffer: String,
    output: Output,
}

impl Printer {
    /// Prints the text before the first sample; `several` samples come.
    ///
    /// # Errors
    /// The output cannot be written. If its reader has gone, the first sample finds out.
    pub fn begin(
        arguments: &EvalArguments,
        several: bool,
        zone: Option<TimeZone>,
        mut output: Output,
    ) -> Result<Printer, Stop> {
        let dialect = arguments.what.definitions.language().dialect;
        let (why, escaping) = (arguments.verbose, output.escaping());
        let mut renderer = arguments.format.renderer(several, why, zone, escaping, dialect);
        let mut beginning = String::new();
        renderer.begin(&mut beginning);
        output.print(beginning)?;
        Ok(Printer { renderer, buffer: String::new(), output })
    }

    fn write(&mut self) -> Result<(), Stop> {
        self.output.write_all(self.buffer.as_bytes())?;
        self.output.flush()?;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink for Printer {
    fn sample(&mut self, shown: &ReportSample<'_>) -> Result<(), Stop> {
        self.renderer.sample(shown, &mut self.buffer);
        self.write()
    }

    fn end(&mut self, metrics: &[Metric]) -> Result<(), Stop> {
        self.renderer.end(metrics, &mut self.buffer);
        self.write()
    }
}
