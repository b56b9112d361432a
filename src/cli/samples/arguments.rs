//! The options that `eval` and `export` share: metrics of a source, and which
//! samples of them.

use clap::Args;
use pmderive_runtime::context::Context;
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::cli::args::{DefinitionArguments, DiagWords, SourceArguments};
use crate::cli::definitions::CommandDefinitions;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::positional::refuse_files;
use crate::cli::samples::following::FollowArgument;
use crate::cli::samples::patience::RetryArgument;
use crate::cli::samples::time::TimeArguments;
use crate::cli::stop::Stop;
use crate::dialect::Dialect;
use crate::engine::Backend;
use crate::engine::Registry;
use crate::syntax::name_mistake;

/// Which samples of which metrics.
#[derive(Debug, Args)]
pub struct SampleArguments {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Take this many samples [default: 1, or all that an archive has].
    #[arg(short, long, value_name = "SAMPLES", value_parser = samples)]
    pub samples: Option<u64>,
    /// Which samples are taken.
    #[command(flatten)]
    pub time: TimeArguments,
    /// What to do at the end.
    #[command(flatten)]
    pub follow: FollowArgument,
    /// What to do when a live source fails.
    #[command(flatten)]
    pub retry: RetryArgument,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Choose the words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// Choose how expressions are computed.
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// What to evaluate: metrics, groups of metrics (`disk.dev`, or `.` for all) and
    /// expressions. `NAME = EXPRESSION` gives a result a name. Without any it is all that the
    /// files of -c define.
    #[arg(value_name = "METRIC|EXPRESSION")]
    pub metrics: Vec<String>,
}

/// The argument of `-s`.
///
/// # Errors
/// It is not a number of samples.
pub fn samples(text: &str) -> Result<u64, String> {
    let samples = text.trim().parse().ok().filter(|samples| *samples > 0);
    samples.ok_or_else(|| "a number of samples is 1 or more".to_owned())
}

impl SampleArguments {
    /// Reads the definitions.
    ///
    /// # Errors
    /// Nothing is asked for, or an argument is a definition file.
    pub fn read(&self, messages: &mut Messages) -> Result<CommandDefinitions, Stop> {
        if self.definitions.configs.is_empty() && self.metrics.is_empty() {
            return Err(Stop::Usage(
                "nothing to evaluate: give an expression or a definition file (-c FILE)".to_owned(),
            ));
        }
        messages.set_words(self.diag);
        let definitions = CommandDefinitions::read(&self.definitions);
        refuse_files(&self.metrics, &definitions.registry)?;
        self.follow.refuse_time(&self.metrics)?;
        Ok(definitions)
    }

    /// Opens the source. If the archive is followed, its damage is reported later.
    pub fn open_source(&self, messages: &Messages) -> Result<Context, SourceError> {
        let dialect = self.definitions.language().dialect;
        match self.follow.is_given() {
            true => self.source.open_untold(dialect, messages),
            false => self.source.open(dialect, messages),
        }
    }

    /// True if an argument may be the name of a group of metrics.
    pub fn may_name_groups(&self, definitions: &CommandDefinitions) -> bool {
        let registry = &definitions.registry;
        self.metrics.iter().any(|text| group_of(text, registry).is_some())
    }

    /// Selects what the arguments name. A mistake in the definitions is reported, and decides the
    /// exit status; the selection may then be empty. With a source, the name of a group of metrics
    /// stands for all its metrics.
    ///
    /// # Errors
    /// There is nothing to evaluate, and no mistake is the cause; the source failed.
    pub fn select(
        &self,
        definitions: &mut CommandDefinitions,
        groups: Option<&mut dyn MetadataSource>,
        messages: &mut Messages,
    ) -> Result<ExitStatus, Stop> {
        match (self.metrics.is_empty(), groups) {
            (true, _) => definitions.select_all(),
            (false, None) => definitions.select(&self.metrics),
            (false, Some(source)) => {
                let registry = &definitions.registry;
                let names = without_groups(&self.metrics, registry, source, messages)?;
                let of_groups = names.iter().filter(|name| !self.metrics.contains(name));
                definitions.make_optional(of_groups.map(|name| name.as_str().into()));
                definitions.select(&names);
            }
        }
        let mut outcome = ExitStatus::Good;
        let mistakes = std::mem::take(&mut definitions.diagnostics);
        if mistakes.errors() > 0 {
            outcome = ExitStatus::Mistake;
        }
        definitions.warn_of_system_mistakes(messages);
        messages.diagnostics(mistakes, &definitions.sources);
        if definitions.selection().is_empty() && outcome == ExitStatus::Good {
            return Err(Stop::Usage("nothing to evaluate: no metric is defined".to_owned()));
        }
        Ok(outcome)
    }
}

/// Replaces the name of a group by the group's metrics, derived ones last.
/// Metrics of the source are in alphabetical order, unless the answers are to
/// be libpcp's. `.` stands for all metrics, as in `record`, and is not the
/// number zero. Names that no expression can contain are left out with a warning.
fn without_groups(
    texts: &[String],
    registry: &Registry,
    source: &mut dyn MetadataSource,
    messages: &Messages,
) -> Result<Vec<String>, SourceError> {
    let mut names = Vec::new();
    for text in texts {
        let before = names.len();
        if let Some(node) = group_of(text, registry) {
            if source.children(node)?.is_ok_and(|children| !children.is_empty()) {
                let mut metrics = source.traverse(node)?;
                if registry.language().dialect == Dialect::Fixed {
                    metrics.sort_unstable();
                }
                metrics.retain(|name| {
                    let is_expression = name_mistake(name).is_none();
                    if !is_expression {
                        let words = "no expression can contain this name; `record`, `info` and \
                                     `val` take it";
                        messages.warning(&format_args!("{name}: {words}"));
                    }
                    is_expression
                });
                names.extend(metrics);
            }
            let group = if node.is_empty() { String::new() } else { format!("{node}.") };
            let derived = registry.beginning_with(&group).iter();
            names.extend(derived.map(|one| one.name.to_string()));
        }
        if names.len() == before {
            names.push(text.clone());
        }
    }
    Ok(names)
}

/// The node of the name space that an argument may be; the root has the empty
/// name.
fn group_of<'t>(text: &'t str, registry: &Registry) -> Option<&'t str> {
    match text.trim() {
        "." => Some(""),
        name => {
            let is_name = name_mistake(name).is_none() && registry.definition(name).is_none();
            is_name.then_some(name)
        }
    }
}
