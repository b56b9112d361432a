//! The options that name a fleet, and the fleet that their files describe.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::shown::ShownLine;
use crate::bind::name_in;
use crate::cli::args::DefinitionArguments;
use crate::cli::definitions::{CommandDefinitions, refused};
use crate::cli::stop::Stop;
use crate::diag::Diagnostics;
use crate::engine::{Registered, Registry};
use crate::escape;
use crate::fleet::aggregates::{self, HostMetrics, unknown_labels};
use crate::fleet::config::Limits;
use crate::fleet::labels::Labels;
use crate::fleet::targets::target::{GroupId, Target};
use crate::fleet::targets::{MAX_FILE_BYTES, Targets};
use crate::syntax::ast::NodeKind;
use crate::syntax::read_text_file;
use crate::text::SourceMap;

/// Arguments that name definitions over a fleet, and its hosts.
#[derive(Clone, Debug, Default, Args)]
pub struct FleetArguments {
    /// Read definitions over a fleet from this file. They take metrics that -c defines for
    /// each host. Extensions are allowed in both.
    #[arg(long, value_name = "FILE")]
    pub fleet: Vec<String>,
    /// Take the hosts of the fleet from this file, a list of targets in JSON as for `serve`.
    /// Expressions with `by` are over all hosts, `by (job)` takes them together; others are of
    /// each host. `eval` asks the hosts, and takes no groups of metrics then; other commands
    /// only read their labels.
    #[arg(long, value_name = "FILE")]
    pub targets: Vec<PathBuf>,
}

/// A fleet, read from its files.
pub struct ReadFleet {
    /// The definitions over the fleet whose texts have no mistake.
    pub registry: Registry,
    /// The number of definitions, those with mistakes included.
    pub count: usize,
    /// The hosts.
    pub targets: Vec<Arc<Target>>,
}

impl FleetArguments {
    /// True if the arguments name a fleet.
    pub fn is_given(&self) -> bool {
        !self.fleet.is_empty() || !self.targets.is_empty()
    }

    /// True if the arguments name files of definitions.
    pub fn has_definitions(&self) -> bool {
        !self.fleet.is_empty()
    }

    /// Adds files of definitions.
    pub fn add(&mut self, files: Vec<String>) {
        self.fleet.extend(files);
    }

    /// The definitions of hosts, with the extensions that definitions over a fleet have.
    pub fn definitions(&self, arguments: &DefinitionArguments) -> DefinitionArguments {
        let mut arguments = arguments.clone();
        if self.is_given() {
            arguments.language.extensions = true;
            arguments.are_extensions_given = Some(true);
        }
        arguments
    }

    /// Reads the fleet into the source map of the hosts' definitions, in their language.
    ///
    /// # Errors
    /// A file of targets cannot be read.
    pub fn read(
        &self,
        definitions: &mut CommandDefinitions,
        diagnostics: &mut Diagnostics,
    ) -> Result<ReadFleet, Stop> {
        let mut registry = Registry::new(definitions.registry.language());
        let mut found = Diagnostics::default();
        for path in &self.fleet {
            definitions.read_elsewhere(path, &mut registry, &mut found);
        }
        let count = registry.definitions().len()
            + refused(&found, |name| registry.get(name).is_some()).len();
        diagnostics.extend(found);
        let targets = self.read_targets(&mut definitions.sources, diagnostics)?;
        Ok(ReadFleet { registry, count, targets })
    }

    /// The hosts.
    fn read_targets(
        &self,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Vec<Arc<Target>>, Stop> {
        let mut targets = Targets::default();
        let mut line = ShownLine::new("pmderive", sources.next_id());
        let files = line.all("--targets", &self.targets, PathBuf::clone);
        sources.add("<arguments>", line.text);
        // `serve --targets` gives the group this name.
        let labels = Labels::from_iter([("job", "fleet")]);
        for file in &files {
            if let Some(warning) = targets.named_before(file) {
                diagnostics.push(warning);
                continue;
            }
            let path = &file.value;
            let cannot = |reason: String| {
                Stop::Usage(format!("cannot read {}: {reason}", escape::path(path)))
            };
            let text = read_text_file(path, MAX_FILE_BYTES).map_err(cannot)?;
            let source = sources.add(escape::path(path), text);
            let limit = Limits::default().targets;
            targets.read(source, GroupId(0), &labels, limit, sources, diagnostics);
        }
        Ok(targets.into_all())
    }
}

impl ReadFleet {
    /// The definitions over a fleet whose hosts have certain definitions. Mistakes in the texts
    /// are reported.
    pub fn across(
        &self,
        expressions: &[Arc<Registered>],
        hosts: &HostMetrics<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Arc<aggregates::FleetDefinitions> {
        let registry = &self.registry;
        let definitions =
            aggregates::FleetDefinitions::read(registry, expressions, hosts, diagnostics);
        unknown_labels(&definitions, &self.targets, diagnostics);
        Arc::new(definitions)
    }

    /// True for an expression over the fleet: one with groups, or with names of the fleet or of
    /// numbers of hosts.
    pub fn is_over(&self, one: &Registered) -> bool {
        one.expr.nodes().any(|(_, node)| {
            matches!(node.kind, NodeKind::Grouped { .. })
                || name_in(node).is_some_and(|(name, _)| {
                    aggregates::of_hosts_counted(name) || self.registry.get(name).is_some()
                })
        })
    }
}

/// The name, if an expression is a name alone.
pub fn name_of(one: &Registered) -> Option<&str> {
    match &one.expr.node(one.expr.root()).kind {
        NodeKind::Metric(name) => Some(name),
        _ => None,
    }
}
