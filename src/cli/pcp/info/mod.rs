//! `pmderive info` prints what pminfo(1) prints about the metrics of a source.
//!
//! ```text
//! names ──► walk ──► metrics ──► lookup ──► Described ──► report ──► standard output
//!                                                 │
//!                                                 ├──► labels: labels and identifiers of series
//!                                                 └──► values: values and event records
//! ```
//!
//! A round trip answers for as many metrics as possible. An argument may stand for
//! many metrics: everything about a group of them is looked up before the first one
//! is printed.

mod arguments;
mod labels;
mod lookup;
mod report;
mod values;

use std::fmt;

use pmderive_runtime::model::{InDom, PmStatus, Pmid};
use pmderive_runtime::source::{MetadataSource, SourceError};

pub use self::arguments::InfoArguments;
use self::report::Report;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::pcp::batches::Batches;
use crate::cli::pcp::mistakes::UnreadableFiles;
use crate::cli::pcp::source::ToolSource;
use crate::cli::pcp::walk;
use crate::cli::stop::Stop;
use crate::diag::pcp::{RefusedAddition, refused_addition};
use crate::diag::{Code, Diagnostic};
use crate::dialect::Dialect;
use crate::engine::{Backend, Refused};
use crate::syntax::PcpError;

/// Runs the command.
pub fn run(arguments: &InfoArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let options = arguments.options.with_source_of(&arguments.window)?;
    let given = &arguments.names;
    let mut source = options.open(given, Backend::Interp, UnreadableFiles::Told, messages)?;
    source.start_at(&arguments.window, messages)?;
    let asked = &source.take_expressions(given, messages)?;
    if asked.is_empty() && !given.is_empty() {
        return Ok(source.outcome());
    }
    let mut outcome = ExitStatus::Good;
    for definition in &arguments.register {
        outcome = outcome.max(register(definition, &mut source, messages)?);
    }
    let batches = arguments.batch.of(source.is_archive())?;
    let mut run = Run {
        report: Report::new(arguments.shown.clone(), batches, &mut source, messages),
        batches,
        waiting: Vec::new(),
        asked,
        outcome,
    };
    let done = run.run();
    let outcome = run.outcome.max(source.outcome());
    let outcome = outcome.max(source.tell_damage(messages));
    match done {
        Ok(()) => Ok(outcome),
        Err(stop) => Err(stop.after(outcome)),
    }
}

/// Adds a derived metric to the source's own (`NAME=EXPRESSION`), and prints its mistakes.
fn register(
    definition: &str,
    source: &mut ToolSource,
    messages: &mut Messages,
) -> Result<ExitStatus, Stop> {
    let Some((name, expression)) = definition.split_once('=') else {
        return Err(messages.misuse(&format_args!(
            "-r wants a name and an expression with = between them, not \"{definition}\""
        )));
    };
    let (name, expression) = (name.trim(), expression.trim());
    match source.context.add_derived(name, expression)? {
        Ok(_) => Ok(ExitStatus::Good),
        Err(refused) => {
            match words_of_libpcp(name, expression, &refused) {
                Some(words) if source.dialect != Dialect::Fixed => messages.lines(&[&words]),
                _ => messages.diagnostics(refused.diagnostics, &refused.sources),
            }
            Ok(ExitStatus::Failed)
        }
    }
}

/// The words in which pmAddDerivedMetric(3) refuses a definition: those for its first mistake.
fn words_of_libpcp(name: &str, expression: &str, refused: &Refused) -> Option<String> {
    let cause = match &refused.error {
        Some(PcpError { offset, message }) => {
            let is_about_room =
                |one: &Diagnostic| matches!(one.code, Code::DuplicateName | Code::LimitReached);
            match refused.diagnostics.iter().any(is_about_room) {
                true => RefusedAddition::Room(message.as_deref()),
                false => RefusedAddition::Syntax(*offset, message.as_deref()),
            }
        }
        None => {
            let mut found = refused.diagnostics.iter();
            RefusedAddition::Semantic(found.find_map(|one| one.pcp.as_deref())?)
        }
    };
    Some(refused_addition(name, expression, cause))
}

/// A run, argument after argument. As in pminfo, metrics wait for a full batch and instance
/// domains do not. So the meaning of an argument, and its errors, depend on the metrics
/// reported before.
struct Run<'r> {
    report: Report<'r>,
    batches: Batches,
    waiting: Vec<String>,
    /// The arguments.
    asked: &'r [String],
    outcome: ExitStatus,
}

impl Run<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        let asked = self.asked;
        self.report.source().context.bind_together(asked)?;
        if asked.is_empty() {
            self.all()?;
        }
        for name in asked {
            self.argument(name)?;
        }
        self.report_on(self.waiting.len())?;
        self.report.write()
    }

    /// Adds all metrics.
    fn all(&mut self) -> Result<(), Stop> {
        match self.below("")? {
            Ok(names) if names.is_empty() => self.error(&"PMNS appears to be empty!"),
            Ok(names) => self.metrics(names)?,
            Err(status) => {
                let text = self.report.text(status);
                self.error(&format_args!("Error: {text}"));
            }
        }
        Ok(())
    }

    /// Adds the metrics or the domain of an argument.
    fn argument(&mut self, name: &str) -> Result<(), Stop> {
        let dialect = self.report.source().dialect;
        let found = match identifier(name) {
            Some(Identifier::Domain(indom)) => return self.report.domain(indom),
            // pmNameID(3) returns only the first name.
            Some(Identifier::Metric(pmid)) => match self.report.source().context.names_of(pmid)? {
                Ok(names) => match names.first() {
                    Some(name) => match self.below(name)? {
                        // A name from the file may have no metric here.
                        Err(_) if !pmid.is_derived() => Err(PmStatus::PMID),
                        found => found,
                    },
                    None => Err(PmStatus::PMID),
                },
                Err(status) => Err(status),
            },
            // pminfo parses it as half an identifier.
            None if name.starts_with(|c: char| c.is_ascii_digit()) && dialect != Dialect::Fixed => {
                Err(PmStatus::NAME)
            }
            None => self.below(name)?,
        };
        match found {
            Ok(names) => self.metrics(names)?,
            Err(status) => {
                let text = self.report.text(status);
                self.error(&format_args!("Error: {name}: {text}"));
            }
        }
        Ok(())
    }

    fn below(&mut self, node: &str) -> Result<Result<Vec<String>, PmStatus>, SourceError> {
        let found = walk::known_metrics_below(self.report.source(), node);
        self.tell_mistakes();
        found
    }

    fn error(&mut self, error: &dyn fmt::Display) {
        self.report.complain(error);
        self.outcome = ExitStatus::Failed;
    }

    fn tell_mistakes(&mut self) {
        self.report.tell_mistakes(self.asked);
    }

    /// Queues metrics, and reports on all whole batches.
    fn metrics(&mut self, names: Vec<String>) -> Result<(), Stop> {
        self.waiting.extend(names);
        self.report_on(self.batches.whole(self.waiting.len()))
    }

    fn report_on(&mut self, count: usize) -> Result<(), Stop> {
        let names: Vec<String> = self.waiting.drain(..count).collect();
        for group in self.batches.groups(&names) {
            let group: Vec<&str> = group.iter().map(String::as_str).collect();
            let reported = self.report.metrics(&group);
            self.tell_mistakes();
            reported?;
        }
        Ok(())
    }
}

/// An identifier in dotted notation.
enum Identifier {
    Metric(Pmid),
    Domain(InDom),
}

/// Parses an argument as pminfo does, which ignores text behind an identifier.
fn identifier(text: &str) -> Option<Identifier> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse::<u32>() else { break };
        numbers.push(number);
        match rest[digits..].strip_prefix('.') {
            Some(after) if numbers.len() < 3 => rest = after,
            _ => break,
        }
    }
    match numbers[..] {
        [domain, cluster, item] => Some(Identifier::Metric(Pmid::new(domain, cluster, item))),
        [domain, serial] => Some(Identifier::Domain(InDom::new(domain, serial))),
        _ => None,
    }
}
