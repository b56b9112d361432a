//! Definitions over a fleet in the commands: files of them beside the definitions of
//! hosts, or all that a configuration of `serve` names.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::bind::name_in;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Registered, Registry, report_cycles};
use crate::escape;
use crate::fleet::aggregates::{self, HostMetrics, unknown_labels};
use crate::fleet::config::Limits;
use crate::fleet::labels::Labels;
use crate::fleet::plan::bounded;
use crate::fleet::target::{GroupId, Target};
use crate::fleet::targets::{MAX_FILE_BYTES, Targets};
use crate::syntax::ast::NodeKind;
use crate::syntax::load_file;
use crate::text::SourceMap;

use super::Stop;
use super::args::DefinitionArguments;

/// Definitions over a fleet, and its hosts.
#[derive(Clone, Debug, Default, Args)]
pub struct FleetArguments {
    /// Read definitions over a fleet from this file. They take metrics that -c defines for
    /// each host. Extensions are allowed in both.
    #[arg(long, value_name = "FILE")]
    pub fleet: Vec<String>,
    /// Take the hosts of the fleet from this file, a list of targets in JSON as for `serve`.
    /// Expressions with `by` are over all hosts, `by (job)` takes them together; others are of
    /// each host.
    #[arg(long, value_name = "FILE")]
    pub targets: Vec<PathBuf>,
}

impl FleetArguments {
    /// True if there is a fleet.
    pub fn is_given(&self) -> bool {
        !self.fleet.is_empty() || !self.targets.is_empty()
    }

    /// Definitions of hosts with the extensions that definitions of a fleet have.
    pub fn definitions(&self, arguments: &DefinitionArguments) -> DefinitionArguments {
        let mut arguments = arguments.clone();
        if self.is_given() {
            arguments.language.extensions = true;
            arguments.are_extensions_given = Some(true);
        }
        arguments
    }

    /// The definitions over the fleet as they are written, without a mistake in their
    /// texts.
    pub fn read(
        &self,
        language: Language,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Registry {
        let mut registry = Registry::new(language);
        for path in &self.fleet {
            let mut found = Diagnostics::default();
            for text in load_file(path, sources, &mut found) {
                registry.add_text(text, sources, &mut found);
            }
            diagnostics.extend(found);
        }
        registry
    }

    /// The hosts.
    pub fn read_targets(
        &self,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Vec<Arc<Target>>, Stop> {
        let mut targets = Targets::default();
        // As `serve --targets` calls them.
        let labels = Labels::from_iter([("job", "fleet")]);
        for path in &self.targets {
            let cannot = |reason: String| {
                Stop::Usage(format!("cannot read {}: {reason}", escape::path(path)))
            };
            let text = bounded(path, MAX_FILE_BYTES).map_err(cannot)?;
            let source = sources.add(escape::path(path), text);
            let limit = Limits::default().targets;
            targets.read(source, GroupId(0), &labels, limit, sources, diagnostics);
        }
        Ok(targets.into_all())
    }
}

/// Definitions over a fleet whose hosts have certain definitions, as far as the texts
/// tell: what is wrong with them is reported.
pub fn across(
    registry: &Registry,
    expressions: &[Arc<Registered>],
    hosts: &HostMetrics<'_>,
    targets: &[Arc<Target>],
    diagnostics: &mut Diagnostics,
) -> Arc<aggregates::Definitions> {
    let definitions = aggregates::Definitions::read(registry, expressions, hosts, diagnostics);
    report_cycles(registry, diagnostics);
    unknown_labels(&definitions, targets, diagnostics);
    Arc::new(definitions)
}

/// Refuses a configuration of `serve` in place of a file of definitions.
///
/// # Errors
/// One of the files ends in `.toml`.
pub fn refuse_configurations(arguments: &DefinitionArguments) -> Result<(), Stop> {
    match arguments.configs.iter().find(|path| path.ends_with(".toml")) {
        None => Ok(()),
        Some(file) => Err(Stop::Usage(format!(
            "`{file}` looks like a configuration of `serve`: give it as `--serve {file}`"
        ))),
    }
}

/// True for an expression over the fleet: it has groups, or names of the fleet.
pub fn is_over_fleet(one: &Registered, fleet: &Registry) -> bool {
    one.expr.nodes().any(|(_, node)| {
        matches!(node.kind, NodeKind::Grouped { .. })
            || name_in(node).is_some_and(|(name, _)| fleet.get(name).is_some())
    })
}

/// The name that is all of an expression.
pub fn name_of(one: &Registered) -> Option<&str> {
    match &one.expr.node(one.expr.root()).kind {
        NodeKind::Metric(name) => Some(name),
        _ => None,
    }
}
