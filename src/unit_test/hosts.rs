//! Reads the hosts of a fleet in a case of a test file.

use std::collections::{BTreeMap, BTreeSet};

use pmderive_runtime::model::{InstId, MetricDesc, Pmid};

use super::file::{Host, Samples};
use super::read::{Lengths, Reader, in_order};
use super::timeline::Timeline;
use crate::text::document::{Table, Value};

/// Keys of a host.
const KEYS: [&str; 6] = ["labels", "samples", "metrics", "missed", "gaps", "failures"];

/// A host whose steps are still unread.
pub(super) struct Begun<'v, 't> {
    name: Box<str>,
    labels: Vec<(Box<str>, Box<str>)>,
    metadata: Vec<(Box<str>, MetricDesc)>,
    of_metrics: BTreeMap<Pmid, Vec<(InstId, Timeline)>>,
    table: &'v Table<'t>,
}

impl Reader<'_> {
    /// The hosts of a case, in the order of the file.
    pub(super) fn hosts<'v, 't>(
        &mut self,
        table: &'v Table<'t>,
        lengths: &mut Lengths,
    ) -> Vec<Begun<'v, 't>> {
        let mut hosts = Vec::new();
        for (name, value) in in_order(table) {
            let Some(table) = self.document.table(value) else { continue };
            self.document.only(table, &KEYS);
            let labels = self.document.section(table, "labels");
            let labels = labels.map_or_else(Vec::new, |labels| self.labels_of(labels));
            let metrics = self.document.section(table, "metrics");
            let metadata = metrics.map_or_else(Vec::new, |metrics| self.other_metrics(metrics));
            // While its samples are read, its own metrics apply.
            let before: Vec<(Box<str>, MetricDesc)> = metadata
                .iter()
                .filter_map(|(name, _)| Some((name.clone(), *self.metadata.lookup(name)?)))
                .collect();
            self.describe(&metadata);
            let samples = self.document.section(table, "samples");
            let of_metrics = samples.map(|samples| self.samples(samples, lengths));
            self.describe(&before);
            hosts.push(Begun {
                name: Box::from(name.get_ref().as_ref()),
                labels,
                metadata,
                of_metrics: of_metrics.unwrap_or_default(),
                table,
            });
        }
        hosts
    }

    /// Reads the steps of a host. Unstated samples are those of all hosts in the case.
    pub(super) fn host(&mut self, begun: Begun<'_, '_>, all: &Samples, steps: usize) -> Host {
        let Begun { name, labels, metadata, mut of_metrics, table } = begun;
        for (pmid, timelines) in &all.of_metrics {
            of_metrics.entry(*pmid).or_insert_with(|| timelines.clone());
        }
        let missed = table.get("missed").map_or(&[][..], |value| self.document.array(value));
        let missed: BTreeSet<usize> =
            missed.iter().filter_map(|step| self.step(step, steps)).collect();
        let Samples { mut gaps, mut failures, .. } = self.events(table, steps);
        gaps.extend(&all.gaps);
        for (step, status) in &all.failures {
            failures.entry(*step).or_insert(*status);
        }
        Host { name, labels, missed, samples: Samples { gaps, failures, of_metrics, metadata } }
    }

    fn labels_of(&mut self, table: &Table<'_>) -> Vec<(Box<str>, Box<str>)> {
        let mut labels = Vec::new();
        for (name, value) in in_order(table) {
            if let Some((value, _)) = self.document.string(value) {
                labels.push((Box::from(name.get_ref().as_ref()), Box::from(value)));
            }
        }
        labels
    }

    /// Metrics that differ on a host. Unstated metadata are those of all hosts.
    fn other_metrics(&mut self, table: &Table<'_>) -> Vec<(Box<str>, MetricDesc)> {
        let mut others = Vec::new();
        for (key, value) in in_order(table) {
            let (name, span) = (key.get_ref(), self.document.span(key.span()));
            let Some(mut desc) = self.metadata.lookup(name).copied() else {
                self.unknown_metric(name, span);
                continue;
            };
            let Some(table) = self.document.table(value) else { continue };
            self.document.only(table, &["type", "semantics", "units"]);
            let of = |key: &str| -> Option<&Value<'_>> { table.get(key) };
            if let Some(value_type) = of("type").and_then(|value| self.value_type(value)) {
                desc.value_type = value_type;
            }
            if let Some(semantics) = of("semantics").and_then(|value| self.semantics(value)) {
                desc.semantics = semantics;
            }
            if let Some(units) = of("units").and_then(|value| self.units(value)) {
                desc.units = units;
            }
            others.push((Box::from(name.as_ref()), desc));
        }
        others
    }

    fn describe(&mut self, metrics: &[(Box<str>, MetricDesc)]) {
        for (name, desc) in metrics {
            self.metadata.add_metric(name.clone(), *desc);
        }
    }
}
