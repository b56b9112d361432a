//! `pmderive eval` evaluates metrics of a source, sample after sample, and prints them. With
//! `--targets` it does so for all hosts of a fleet.

mod arguments;
#[cfg(feature = "fleet")]
mod over_hosts;
mod printer;

use pmderive_runtime::source::MetadataSource;

pub use self::arguments::EvalArguments;
use self::printer::{Printer, purpose};
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::samples::run::Run;
use super::stop::Stop;
use super::terminal::{is_output_closed, shows_output};

/// Runs the command.
pub fn run(arguments: &EvalArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
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
    let open = |messages: &Messages| {
        what.follow.open(&is_output_closed, || Ok(what.open_source(messages)?))
    };
    // Only the source can tell whether a name is a group.
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
    run.suit(arguments.format);
    run.show_progress(!shows_output() && !is_quiet)?;
    let several = run.samples != Some(1);
    let mut printer = Printer::begin(arguments, several, run.zone(), output)?;
    let ran = run.run(&mut printer).map_err(|stop| stop.after(outcome))?;
    run.leave();
    std::mem::forget(definitions);
    Ok(outcome.max(ran))
}
