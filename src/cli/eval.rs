//! `pmderive eval` evaluates metrics of a source, sample after sample, and prints
//! them. With `--targets` it does so for all hosts of a fleet.

#[cfg(feature = "fleet")]
mod over_hosts;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pmderive_runtime::source::MetadataSource;

use crate::dialect::Dialect;
use crate::engine::Shown;

use super::messages::Messages;
use super::samples::arguments::SampleArguments;
use super::samples::run::{Run, Sink};
use super::terminal::{Output, Purpose, RawArgument, shows_output};
use super::{Outcome, Stop};
use crate::report::samples::{Digits, Form, Renderer};

/// Arguments of `eval`.
#[derive(Debug, Args)]
pub struct EvalArguments {
    /// What to evaluate.
    #[command(flatten)]
    pub what: SampleArguments,
    /// A fleet in place of a source.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub fleet: super::fleet::FleetArguments,
    /// Give each host of --targets this long for a sample [default: 10sec].
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "TIME", value_parser = super::args::interval, requires = "targets")]
    pub deadline: Option<std::time::Duration>,
    /// Read an archive backwards, from its end or from -O. Rates and differences have
    /// no values then.
    #[arg(long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Choose the form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Form,
    /// Say why a metric has no value, and list what is left out of groups.
    #[arg(short, long, alias = "why", display_order = 993)]
    pub verbose: bool,
    /// Text of others as it is.
    #[command(flatten)]
    pub raw: RawArgument,
    /// Accepted only to explain why it does not help here.
    #[arg(long, hide = true)]
    pub metadata: Option<PathBuf>,
}

/// The digits of numbers: those of the version whose answers are given.
fn digits(arguments: &EvalArguments) -> Digits {
    match arguments.what.definitions.language().dialect {
        Dialect::Fixed => Digits::Shortest,
        Dialect::Pcp6_0 | Dialect::Pcp7_2 => Digits::OfPcp,
    }
}

/// Runs the command.
pub fn run(arguments: &EvalArguments, messages: &mut Messages) -> Result<Outcome, Stop> {
    if arguments.metadata.is_some() {
        return Err(Stop::Usage(
            "metadata in a file have no values: give eval a source with -h, -a or -L \
             (check, explain and deps take --metadata)"
                .to_owned(),
        ));
    }
    let what = &arguments.what;
    #[cfg(feature = "fleet")]
    if arguments.fleet.is_given() {
        return over_hosts::run(arguments, messages);
    }
    let mut definitions = what.read(messages)?;
    let open = |messages: &Messages| what.follow.open(|| Ok(what.open_source(messages)?));
    // Only the source knows whether a name is that of a group.
    let mut asked = match what.may_name_groups(&definitions) {
        true => Some(open(messages)?),
        false => None,
    };
    let groups = asked.as_mut().map(|source| source as &mut dyn MetadataSource);
    let outcome = what.select(&mut definitions, groups, messages)?;
    if definitions.selection().is_empty() {
        return Ok(outcome);
    }
    let source = match asked {
        Some(source) => source,
        None => open(messages)?,
    };
    let output = messages.output(purpose(arguments.format));
    let is_quiet = messages.are_quiet();
    let mut run = Run::open(what, arguments.reverse, &definitions, source, messages)?;
    run.tell_left_out(arguments.verbose);
    run.show_progress(!shows_output() && !is_quiet)?;
    let several = run.samples != Some(1);
    let escaping = output.escaping();
    let digits = digits(arguments);
    let renderer =
        arguments.format.renderer(several, arguments.verbose, run.zone(), escaping, digits);
    let mut printer = Printer { renderer, buffer: String::new(), output };
    printer.begin()?;
    let ran = run.run(&mut printer).map_err(|stop| stop.after(outcome))?;
    run.leave();
    std::mem::forget(definitions);
    Ok(outcome.max(ran))
}

/// What a form is for.
fn purpose(form: Form) -> Purpose {
    match form {
        Form::Text => Purpose::Text,
        Form::Csv => Purpose::Csv,
        // All others are for programs.
        _ => Purpose::Exact,
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

    /// Prints a sample.
    fn print(&mut self, shown: &Shown<'_>) -> Result<(), Stop> {
        self.renderer.sample(shown, &mut self.buffer);
        self.write()
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
        self.print(shown)
    }

    fn shows_failures(&self) -> bool {
        self.renderer.shows_failures()
    }
}
