//! Reports requested metrics that cannot be recorded.

use std::collections::{BTreeMap, HashSet};

use pmderive_runtime::context::Context;
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::RecordArguments;
use crate::cli::definitions::CommandDefinitions;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::missing::{LeftOutDefinitions, Missing};
use crate::cli::positional::named_expression;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::record::{LeftOut, Recorder};
use crate::syntax::{counted, name_mistake, nearest_metric};
use crate::text::{SourceMap, Span};

/// Name of an argument in diagnostics.
const ARGUMENT: &str = "<metric>";

/// Reports metrics that will not be recorded. A definition that cannot be used in this source
/// is a failure; a name without a metric is a mistake. Definitions that are `mistaken` in
/// themselves were reported before.
pub fn refuse(
    recorder: &mut Recorder<Context>,
    arguments: &RecordArguments,
    definitions: &CommandDefinitions,
    mistaken: &HashSet<Box<str>>,
    messages: &mut Messages,
) -> Result<ExitStatus, SourceError> {
    let left_out: Vec<(String, LeftOut)> =
        recorder.left_out().map(|(name, why)| (name.to_owned(), why.clone())).collect();
    let mut outcome = ExitStatus::Good;
    let mut of_definitions = Diagnostics::default();
    let mut unknown = UnknownNames::of(definitions);
    let mut of_groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, why) in left_out {
        let is_of_source = matches!(why, LeftOut::Unknown(_) | LeftOut::NoDescriptor(_));
        if is_of_source && definitions.registry.definition(&name).is_some() {
            of_definitions.extend(recorder.context().mistakes(&name)?.0);
            outcome = outcome.max(ExitStatus::Failed);
            continue;
        }
        let is_asked = arguments.names().any(|argument| argument == name);
        match why {
            LeftOut::Unknown(status) if is_asked => {
                if !mistaken.contains(&*name) {
                    unknown.add(recorder, &name, status)?;
                }
                outcome = ExitStatus::Mistake;
            }
            why => {
                if is_asked || messages.are_verbose() {
                    messages.error(&format_args!("{name}: {why}"));
                } else {
                    of_groups.entry(why.to_string()).or_default().push(name);
                }
                outcome = outcome.max(ExitStatus::Failed);
            }
        }
    }
    let of_definitions = recorder.context().with_suggestions(of_definitions)?;
    messages.diagnostics(of_definitions, &definitions.sources);
    messages.diagnostics(unknown.found, &unknown.sources);
    // A name space may have hundreds of names that its agents do not know.
    for (why, names) in of_groups {
        match &*names {
            [name] => messages.error(&format_args!("{name}: {why}")),
            [first, ..] => messages.error(&format_args!(
                "{}: {why}, such as {first}; --verbose lists them",
                counted(names.len(), "metric")
            )),
            [] => {}
        }
    }
    Ok(outcome)
}

/// Reports definitions below groups that will not be recorded. Definitions of the system with
/// missing operands are only counted; any other is a failure. A definition that a metric of the
/// source hides is a failure, too. If an argument defines it, that is a mistake.
pub fn refuse_below(
    recorder: &mut Recorder<Context>,
    arguments: &RecordArguments,
    definitions: &CommandDefinitions,
    messages: &mut Messages,
) -> Result<ExitStatus, SourceError> {
    let registry = &definitions.registry;
    let mut diagnostics = Diagnostics::default();
    let own = || definitions.own().map(|one| &*one.name);
    let names: Vec<&str> = match arguments.metrics.is_empty() {
        true => own().collect(),
        false => arguments.names().collect(),
    };
    for name in names {
        if registry.definition(name).is_some() {
            let (found, _) = recorder.context().mistakes(name)?;
            diagnostics.extend(found.into_iter().filter(|one| one.code == Code::HiddenByMetric));
            continue;
        }
        let group = if name.is_empty() { String::new() } else { format!("{name}.") };
        for one in registry.beginning_with(&group).iter() {
            diagnostics.extend(recorder.context().mistakes(&one.name)?.0);
        }
    }
    let mut diagnostics = definitions.hidden_by_mistake(diagnostics);
    let asked: HashSet<&str> = own().chain(arguments.names()).collect();
    let missing =
        LeftOutDefinitions::take(&mut diagnostics, &definitions.sources, |one| {
            match one.metric.as_deref().is_some_and(|name| asked.contains(name)) {
                true => Missing::Error,
                false => Missing::Ignore,
            }
        });
    missing.tell_number("", messages);
    let mut diagnostics = recorder.context().with_suggestions(diagnostics)?;
    let mut outcome = if diagnostics.errors() > 0 { ExitStatus::Failed } else { ExitStatus::Good };
    for one in diagnostics.since_mut(0).iter_mut().filter(|one| one.code == Code::HiddenByMetric) {
        let mut defined = arguments.metrics.iter().filter_map(|text| named_expression(text));
        if defined.any(|(name, _)| one.metric.as_deref() == Some(name)) {
            one.severity = Severity::Error;
            outcome = ExitStatus::Mistake;
        }
        outcome = outcome.max(ExitStatus::Failed);
    }
    messages.diagnostics(diagnostics, &definitions.sources);
    Ok(outcome)
}

/// Arguments that name nothing.
struct UnknownNames {
    found: Diagnostics,
    sources: SourceMap,
    /// All names of the source, once they were asked for.
    known: Option<Vec<String>>,
}

impl UnknownNames {
    fn of(definitions: &CommandDefinitions) -> UnknownNames {
        let sources = definitions.sources.clone();
        UnknownNames { found: Diagnostics::default(), sources, known: None }
    }

    fn add(
        &mut self,
        recorder: &mut Recorder<Context>,
        name: &str,
        status: PmStatus,
    ) -> Result<(), SourceError> {
        let source = self.sources.add(ARGUMENT, name);
        let span = self.sources.whole(source);
        if let Some(mistake) = name_mistake(name) {
            let place = Span::within(source, name, mistake.at);
            let message = format!("`{name}` is not the name of a metric");
            self.found.push(
                Diagnostic::error(Code::UnknownMetric, place, message)
                    .label(place, mistake.rule)
                    .help("an archive needs a name for an expression: write `NAME = EXPRESSION`"),
            );
            return Ok(());
        }
        let known = match &mut self.known {
            Some(known) => known,
            none => none.insert(recorder.context().traverse("")?),
        };
        let message = format!("unknown metric `{name}`");
        let told = Diagnostic::error(Code::UnknownMetric, span, message)
            .label(span, status.to_string().to_lowercase());
        self.found.push(match nearest_metric(name, known.iter().map(String::as_str)) {
            Some(near) => told.help(format!("did you mean `{near}`?")),
            None => told.help("`pmderive info` lists the metrics of a source"),
        });
        Ok(())
    }
}
