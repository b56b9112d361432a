//! `pmderive eval`: evaluates metrics of a source, sample after sample, and
//! prints them.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use crate::engine::Shown;

use super::messages::Messages;
use super::samples::arguments::SampleArguments;
use super::samples::run::{Run, Sink};
use super::terminal::{Output, Purpose, RawArgument, shows_output};
use super::{Outcome, Stop};
use crate::report::samples::{Form, Renderer};

/// Arguments of `eval`.
#[derive(Debug, Args)]
pub struct EvalArguments {
    /// What to evaluate.
    #[command(flatten)]
    pub what: SampleArguments,
    /// Go through an archive from its end, or from -O, towards its start. Rates and
    /// differences have no values then.
    #[arg(long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Form,
    /// Say why there is no value.
    #[arg(long)]
    pub why: bool,
    /// Text of others as it is.
    #[command(flatten)]
    pub raw: RawArgument,
    /// Accepted only to explain why it does not help here.
    #[arg(long, hide = true)]
    pub metadata: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &EvalArguments, messages: &mut Messages) -> Result<Outcome, Stop> {
    if arguments.metadata.is_some() {
        return Err(Stop::Usage(
            "metadata in a file have no values: give eval a source with -h, -a or -L; \
             check, explain and deps can do with --metadata"
                .to_owned(),
        ));
    }
    let what = &arguments.what;
    let mut definitions = what.read(messages)?;
    let outcome = what.select(&mut definitions, None, messages)?;
    if definitions.selection().is_empty() {
        return Ok(outcome);
    }
    let source = what.follow.open(|| Ok(what.open_source(messages)?))?;
    let output = messages.output(purpose(arguments.format));
    let mut run = Run::open(what, arguments.reverse, &definitions, source, messages)?;
    run.show_progress(!shows_output())?;
    let several = run.samples() != Some(1);
    let escaping = output.escaping();
    let renderer = arguments.format.renderer(several, arguments.why, run.zone(), escaping);
    let mut printer = Printer { renderer, buffer: String::new(), output };
    printer.begin()?;
    let ran = run.run(&mut printer).map_err(|stop| stop.after(outcome))?;
    Ok(outcome.max(ran))
}

/// What a form is for.
fn purpose(form: Form) -> Purpose {
    match form {
        Form::Text => Purpose::Text,
        Form::Json => Purpose::Exact,
        Form::Csv => Purpose::Csv,
    }
}

/// Brings samples to standard output.
struct Printer {
    renderer: Box<dyn Renderer>,
    buffer: String,
    output: Output,
}

impl Printer {
    /// If nobody reads this, the first sample will find out.
    fn begin(&mut self) -> Result<(), Stop> {
        self.renderer.begin(&mut self.buffer);
        self.output.print(std::mem::take(&mut self.buffer))
    }

    fn write(&mut self) -> Result<(), Stop> {
        self.output.write_all(self.buffer.as_bytes())?;
        self.output.flush()?;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink for Printer {
    fn sample(&mut self, shown: &Shown<'_>) -> Result<(), Stop> {
        self.renderer.sample(shown, &mut self.buffer);
        self.write()
    }

    fn shows_failures(&self) -> bool {
        self.renderer.shows_failures()
    }
}
