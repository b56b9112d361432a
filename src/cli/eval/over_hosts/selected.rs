//! The output of `eval --targets`: metrics of each host, and definitions over all hosts.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::definitions::CommandDefinitions;
use crate::cli::eval::arguments::EvalArguments;
use crate::cli::exit_status::ExitStatus;
use crate::cli::fleet::name_of;
use crate::cli::messages::Messages;
use crate::cli::positional::refuse_files;
use crate::cli::stop::Stop;
use crate::diag::{Diagnostics, EXPRESSION, Severity};
use crate::dialect::Language;
use crate::engine::{Registered, Selection, needed};
use crate::fleet::aggregates::{self, HostMetrics, of_hosts_counted};
use crate::fleet::config::Access;
use crate::fleet::frame::sheet::Row;
use crate::fleet::plan::{Export, PlannedGroup, connect_options};
use crate::fleet::sinks::sink_set::{SinkPlace, SinkSet};
use crate::fleet::stages::operands_of;
use crate::fleet::targets::target::Target;

/// The selection of `eval --targets`.
pub struct HostsSelection {
    /// Definitions of hosts, with their selection.
    pub definitions: CommandDefinitions,
    /// Definitions over the fleet.
    pub across: Arc<aggregates::FleetDefinitions>,
    /// The hosts.
    pub targets: Vec<Arc<Target>>,
    /// The rows that are printed, in order.
    pub rows: Vec<Row>,
    /// Diagnostics that need no host.
    pub found: Diagnostics,
}

impl HostsSelection {
    /// Reads definitions and hosts, and selects the rows that the arguments name. Reports mistakes
    /// and raises the exit status. The selection may be empty.
    ///
    /// # Errors
    /// There is nothing to evaluate, or there are no hosts.
    pub fn read(
        arguments: &EvalArguments,
        messages: &mut Messages,
    ) -> Result<(HostsSelection, ExitStatus), Stop> {
        let what = &arguments.what;
        let mut definitions =
            CommandDefinitions::read(&arguments.fleet.definitions(&what.definitions));
        refuse_files(&what.metrics, &definitions.registry)?;
        let mut found = std::mem::take(&mut definitions.diagnostics);
        let mut fleet = arguments.fleet.read(&mut definitions, &mut found)?;
        match (what.metrics.is_empty(), arguments.fleet.has_definitions()) {
            (true, false) => definitions.select_all(),
            (true, true) => {}
            (false, _) => definitions.select(&what.metrics),
        }
        found.extend(std::mem::take(&mut definitions.diagnostics));
        definitions.warn_of_system_mistakes(messages);
        let is_over = |one: &Registered| fleet.is_over(one);
        let mut rows = Vec::new();
        let mut wanted: Vec<&Registered> = Vec::new();
        for one in definitions.selection() {
            let name = Arc::clone(&one.name);
            rows.push(match one.is_named || !is_over(one) {
                true => Row::OfHosts(name),
                false => {
                    wanted.extend(name_of(one).and_then(|name| fleet.registry.get(name)));
                    Row::OfFleet(name)
                }
            });
        }
        if what.metrics.is_empty() {
            let all = fleet.registry.definitions();
            rows.extend(all.iter().map(|one| Row::OfFleet(Arc::clone(&one.name))));
            wanted.extend(fleet.registry.all());
        }
        let mut expressions = definitions.take_expressions(is_over);
        // A definition is selected by its name.
        expressions.retain(|one| {
            !is_counted(one) && name_of(one).is_none_or(|name| fleet.registry.get(name).is_none())
        });
        let is_number = |row: &Row| matches!(row, Row::OfFleet(name) if of_hosts_counted(name));
        if let [Row::OfFleet(name), ..] = &rows[..]
            && rows.iter().all(is_number)
        {
            return Err(Stop::Usage(format!(
                "{name} is counted beside aggregates: give one, such as `count(hinv.ncpu) by (job)`"
            )));
        }
        // Hosts need not compute unselected definitions.
        wanted.extend(expressions.iter().map(|one| &**one));
        let names: HashSet<&str> =
            needed(&fleet.registry, &wanted).into_iter().map(|one| &*one.name).collect();
        let is_needed = |one: &Registered| names.contains(&*one.name);
        fleet.registry =
            fleet.registry.with_expressions(|one| is_needed(one).then(|| (*one.expr).clone()));
        let hosts = HostMetrics::of_groups([&definitions.registry]).and_others();
        let across = fleet.across(&expressions, &hosts, &mut found);
        let targets = fleet.targets;
        let outcome = if found.errors() > 0 { ExitStatus::Mistake } else { ExitStatus::Good };
        messages.diagnostics(found.clone(), &definitions.sources);
        if outcome == ExitStatus::Good && rows.is_empty() {
            return Err(Stop::Usage("nothing to evaluate: no metric is defined".to_owned()));
        }
        if outcome == ExitStatus::Good && targets.is_empty() {
            return Err(Stop::Usage("there are no targets in these files".to_owned()));
        }
        if targets.is_empty() {
            rows.clear();
        }
        Ok((HostsSelection { definitions, across, targets, rows, found }, outcome))
    }

    /// The language of the definitions.
    pub fn language(&self) -> Language {
        self.definitions.registry.language()
    }

    /// The hosts as a group.
    ///
    /// Variables of the environment for connections are wrong; the text says how.
    pub fn group(
        &self,
        interval: Duration,
        deadline: Duration,
    ) -> Result<Arc<PlannedGroup>, String> {
        let registry = &self.definitions.registry;
        let mut chosen = self.definitions.selection();
        let known: HashSet<&str> = chosen.iter().map(|one| &*one.name).collect();
        let of_fleet = operands_of(&self.across, registry, true);
        chosen.extend(of_fleet.into_iter().filter(|one| !known.contains(&*one.name)));
        let exports = chosen.iter().map(|_| Export {
            sinks: SinkSet::one(SinkPlace(0)),
            is_chosen: true,
            help: None,
        });
        let mut options = connect_options(&Access::default(), deadline)?;
        if std::env::var_os("PMCD_RECONNECT_TIMEOUT").is_none() {
            // Each sample asks every host.
            options.reconnect_delays.clear();
        }
        Ok(Arc::new(PlannedGroup {
            certificates: Default::default(),
            name: "fleet".into(),
            interval,
            deadline,
            options: Arc::new(options),
            defined: chosen.len(),
            texts: Arc::new(self.definitions.sources.clone()),
            exports: exports.collect(),
            selection: Arc::new(Selection::new(registry, &chosen)),
            told: Default::default(),
        }))
    }

    /// Pairs of a row and its diagnostics in words. Mistakes in a file of hosts belong to no
    /// row.
    pub fn of_rows<'a>(
        &'a self,
        found: &'a Diagnostics,
    ) -> impl Iterator<Item = (Box<str>, String)> + 'a {
        let errors = found.iter().filter(|one| one.severity == Severity::Error);
        errors.filter_map(|one| {
            let source = self.definitions.sources.get(one.span.source);
            let text = || (&*source.name == EXPRESSION).then(|| source.text.trim().into());
            Some((one.metric.clone().or_else(text)?, one.message.clone()))
        })
    }
}

/// True for a name that stands for a number of hosts.
fn is_counted(one: &Registered) -> bool {
    name_of(one).is_some_and(of_hosts_counted)
}
