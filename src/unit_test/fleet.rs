//! Runs cases with several hosts: each host has samples of its own. The expected results are
//! over all hosts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::{PmStatus, Timestamp};
use pmderive_runtime::program::{Reason, Status};
use pmderive_runtime::source::SourceError;

use super::compare::Got;
use super::definitions::{MISTAKEN, WRONG_TEXT, add_definitions, mistake, parse, unread};
use super::file::{Case, ExpectedTimelines, FileText, Host, TestFile};
use super::groups::{GroupLabels, labels_of};
use super::report::{Report, unusable};
use super::series::{self, SeriesSource, name_of};
use crate::diag::Diagnostics;
use crate::engine::{Definitions, Engine, Registered, Registry, Session, Space};
use crate::fleet::aggregates::{Aggregates, FleetDefinitions, HostMetrics, of_hosts_counted};
use crate::fleet::frame::columns::{Columns, Heads, Lanes};
use crate::fleet::frame::{Event, ExportedMetric, Frame, Instances, Schema};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::SinkSet;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::stages::operands_of;
use crate::fleet::targets::target::{GroupId, Target};
use crate::text::SourceMap;

/// The definitions over the fleet of a file.
pub struct Fleet<'t> {
    file: &'t TestFile,
    registry: Registry,
    /// True if all files of definitions over the fleet could be read.
    is_whole: bool,
    definitions: Arc<FleetDefinitions>,
}

/// A host of a case.
struct RunningHost<'c> {
    host: &'c Host,
    target: Arc<Target>,
    session: Session<SeriesSource<'c>>,
    space: Space,
    schema: Arc<Schema>,
    /// Positions of the schema's metrics in the session's.
    positions: Vec<usize>,
    /// Number of gaps so far.
    gaps: u32,
}

impl<'t> Fleet<'t> {
    /// Reads the definitions, and the expressions that cases with hosts have expectations of.
    pub fn read(
        file: &'t TestFile,
        hosts: &Registry,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Fleet<'t> {
        let mut registry = Registry::new(file.language);
        let written = file.fleet_definitions.as_ref();
        let is_whole =
            add_definitions(&file.fleet_files, written, file, &mut registry, sources, diagnostics);
        let mut expressions = Vec::new();
        let mut known: HashSet<&str> = HashSet::new();
        let cases = file.cases.iter().filter(|case| !case.hosts.is_empty());
        for expected in cases.flat_map(|case| &case.expected) {
            let text = expected.subject.text.trim();
            let is_name = registry.get(text).is_some() || of_hosts_counted(text);
            let is_unread =
                unread(&expected.subject, &registry, is_whole, &file.metadata).is_some();
            if is_name || is_unread || !known.insert(text) {
                continue;
            }
            expressions.extend(parse(&expected.subject, file, &registry, sources, diagnostics));
        }
        let metrics = HostMetrics::of_groups([hosts]);
        let definitions = FleetDefinitions::read(&registry, &expressions, &metrics, diagnostics);
        Fleet { file, registry, is_whole, definitions: Arc::new(definitions) }
    }

    /// Runs a case, once for each backend.
    pub fn run(
        &self,
        case: &Case,
        hosts: &Registry,
        engines: &[(&'static str, Arc<Engine>)],
    ) -> Report {
        let mut report = Report::new(&case.name);
        let mut first = vec![vec![None; case.expected.len()]; case.steps];
        for (backend, engine) in engines {
            let ran = self.run_with(case, hosts, (*backend, engine), &mut first, &mut report);
            if let Err(error) = ran {
                report.add(unusable("", &error.to_string()));
                break;
            }
        }
        report
    }

    /// Runs a case with one backend. `first` has the results of the first backend, by step and
    /// subject.
    fn run_with(
        &self,
        case: &Case,
        hosts: &Registry,
        (backend, engine): (&str, &Arc<Engine>),
        first: &mut [Vec<Option<String>>],
        report: &mut Report,
    ) -> Result<(), SourceError> {
        let mut aggregates =
            Aggregates::new(Arc::clone(engine), Arc::clone(&self.definitions), &|_| SinkSet::NONE);
        let start = |host| self.start(case, host, hosts, engine);
        let mut running: Vec<RunningHost<'_>> =
            case.hosts.iter().map(start).collect::<Result<_, _>>()?;
        let targets: Vec<Arc<Target>> = running.iter().map(|one| Arc::clone(&one.target)).collect();
        aggregates.collector.set_targets(&targets);
        running.iter().for_each(|one| aggregates.announce(&one.schema));
        let mut told = vec![false; case.expected.len()];
        for (step, first) in first.iter_mut().enumerate() {
            let slot = Slot(step as u64);
            let stamp = series::stamp_of(case, step);
            let at = Nanos::from(stamp);
            for one in &mut running {
                one.step(self.file, slot, at, &mut aggregates);
            }
            let events = aggregates.finish(slot, at);
            let frame = events.iter().find_map(Event::frame);
            let time = (step, series::time_of(case, step));
            for ((expected, told), first) in case.expected.iter().zip(&mut told).zip(first) {
                let wrong = self.mistake(expected, &aggregates);
                let got = got(expected, frame, wrong.as_deref());
                let told = wrong.as_ref().map(|_| told);
                report.compare_backend(expected, time, &got, told, first, backend);
            }
        }
        Ok(())
    }

    fn start<'c>(
        &self,
        case: &'c Case,
        host: &'c Host,
        hosts: &Registry,
        engine: &Arc<Engine>,
    ) -> Result<RunningHost<'c>, SourceError>
    where
        't: 'c,
    {
        let source = series::source(self.file, case, &host.samples);
        let shared = Definitions::from(hosts.clone());
        let mut session = Session::new(Arc::clone(engine), shared, source).expect("one language");
        let selection: Vec<&Registered> = operands_of(&self.definitions, hosts, false);
        let mut found = Diagnostics::default();
        session.choose(&selection, &mut found)?;
        let metrics = session.metrics().iter().enumerate();
        let exported = |(at, metric)| Some((ExportedMetric::of(metric, SinkSet::NONE, None)?, at));
        let (schema, positions) = Schema::sorted(metrics.filter_map(exported));
        let labels: Labels =
            host.labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let target = Target::new(host.name.clone(), HostSpec::local(), labels, GroupId(0));
        let (target, schema, space) = (Arc::new(target), Arc::new(schema), Space::default());
        Ok(RunningHost { host, target, session, space, schema, positions, gaps: 0 })
    }

    /// The reason for which a name is no expression, if there is one.
    fn unread(&self, subject: &FileText) -> Option<&'static str> {
        unread(subject, &self.registry, self.is_whole, &self.file.metadata)
    }

    /// The mistake of a definition or expression, if there is one.
    fn mistake(&self, expected: &ExpectedTimelines, aggregates: &Aggregates) -> Option<String> {
        let text = expected.subject.text.trim();
        if of_hosts_counted(text) {
            return None;
        }
        let known = self.definitions.selection.iter().find(|one| *one.name == *text);
        match known {
            Some(one) => mistake(one, aggregates.evaluation.diagnostics()),
            None if self.registry.get(text).is_some() => Some(MISTAKEN.to_owned()),
            None => Some(self.unread(&expected.subject).unwrap_or(WRONG_TEXT).to_owned()),
        }
    }
}

impl RunningHost<'_> {
    /// Takes a step, and passes the result to the aggregates.
    fn step(&mut self, file: &TestFile, slot: Slot, at: Nanos, aggregates: &mut Aggregates) {
        let step = usize::try_from(slot.0).unwrap_or(usize::MAX);
        if self.host.missed.contains(&step) {
            self.session.source().feed().pass();
            return aggregates.collector.missed(&self.target, slot);
        }
        let RunningHost { target, session, space, schema, positions, gaps, .. } = self;
        let Ok(sample) = session.sample(space) else {
            return aggregates.collector.failed(target, slot);
        };
        *gaps += u32::from(sample.events.gap);
        let (mut heads, mut lanes) = (Vec::with_capacity(positions.len()), Lanes::default());
        for position in positions {
            let metric = &sample.metrics[*position];
            let Some(output) = metric.output else { continue };
            let values = sample.values.get(output);
            let names = metric.desc.ok().and_then(|desc| desc.indom);
            let names = names.and_then(|indom| file.instances.get(&indom));
            let names = names.map_or(&[][..], |names| names);
            let of = |id: &i32| Arc::from(&*name_of(names, *id).unwrap_or_default());
            let instances = Instances {
                ids: values.instances.into(),
                names: match values.instances {
                    [-1] => Box::default(),
                    ids => ids.iter().map(of).collect(),
                },
                ..Instances::default()
            };
            lanes.push_values(&values, values.len());
            heads.push((values.status, Arc::new(instances)));
        }
        let stamp: Timestamp = sample.values.timestamp();
        aggregates.collector.frame(&Frame {
            target: Arc::clone(target),
            host_labels: Labels::default(),
            slot,
            at,
            stamp,
            gaps: *gaps,
            schema: Arc::clone(schema),
            columns: Columns::new(Heads::new(heads), lanes),
        });
    }
}

/// The result of a definition over the fleet in a frame.
fn got<'g>(
    expected: &'g ExpectedTimelines,
    frame: Option<&'g Frame>,
    mistake: Option<&'g str>,
) -> Got<'g> {
    if let Some(mistake) = mistake {
        return Got::Failed(PmStatus::BADDERIVE, Some(mistake));
    }
    let name = expected.subject.text.trim();
    let found = frame.and_then(|frame| {
        let (at, metric) = frame.schema.find(name)?;
        Some((metric.value_type, frame.columns.get(at)?))
    });
    // No host has ever had its operand.
    let Some((value_type, column)) = found else { return Got::Empty(Reason::OperandEmpty) };
    match column.status {
        Status::Values => {
            let values = 0..column.instances.ids.len();
            let written = as_written(expected);
            let spelt = |name: &'g str| {
                labels_of(name)
                    .ok()
                    .and_then(|labels| written.get(&labels).copied())
                    .unwrap_or(name)
            };
            let named = |lane: usize| {
                let name = column.instances.names.get(lane);
                let name = name.map(|name| Cow::from(spelt(name)));
                (name, column.value(value_type, lane))
            };
            Got::Values(values.map(named).collect())
        }
        Status::Empty(reason) => Got::Empty(reason),
        Status::Failed(status) => Got::Failed(status, None),
    }
}

/// Names of groups as the test spells them, by their labels, which alone count.
fn as_written(expected: &ExpectedTimelines) -> HashMap<GroupLabels, &str> {
    let mut written = HashMap::new();
    for (name, _) in &expected.timelines {
        let Some(name) = name.as_ref().map(|name| &*name.text) else { continue };
        if let Ok(labels) = labels_of(name) {
            written.entry(labels).or_insert(name);
        }
    }
    written
}
