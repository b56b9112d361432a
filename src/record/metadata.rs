//! Writes metadata of an archive: descriptors, names, help texts and labels,
//! each before the first value that it describes.
//!
//! `domains` writes instances.

use std::sync::Arc;

use pmderive_runtime::archive_writer::{ArchiveWriter, WriteError};
use pmderive_runtime::model::{
    InDom, LabelLevel, LabelSet, MetricDesc, Pmid, TextKind, TextSubject, Timestamp,
};
use pmderive_runtime::result::MetricValues;
use pmderive_runtime::source::{FetchSource, MetadataSource};
use rustc_hash::{FxHashMap, FxHashSet};

use super::error::RecorderError;
use super::selection::{Metric, Notice};
use crate::engine::Session;

/// The metadata in the archive so far.
#[derive(Debug, Default)]
pub struct WrittenMetadata {
    /// The metrics of the last update.
    metrics: Option<Arc<[Metric]>>,
    /// Metrics, by their identifiers in the archive.
    pmids: FxHashSet<Pmid>,
    /// Instance domains whose texts were already looked up.
    domains: FxHashSet<InDom>,
    /// Labels as they were last written.
    labels: FxHashMap<LabelLevel, Vec<LabelSet>>,
    /// True if the source may have other labels than those in the archive.
    pub labels_are_due: bool,
    /// Messages about metadata that the archive cannot hold.
    refused: Vec<String>,
}

impl WrittenMetadata {
    /// Writes new metadata of some metrics, and the labels if they are due.
    ///
    /// # Errors
    /// The source failed, or the archive cannot be written.
    pub fn write<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        metrics: &Arc<[Metric]>,
        time: Timestamp,
        writer: &mut ArchiveWriter,
    ) -> Result<(), RecorderError> {
        let is_known = self.metrics.as_ref().is_some_and(|known| Arc::ptr_eq(known, metrics));
        if !is_known {
            let is_new = |metric: &&Metric| !self.pmids.contains(&metric.recorded.pmid);
            let new: Vec<&Metric> = metrics.iter().filter(is_new).collect();
            self.write_descs(context, &new, writer)?;
            self.write_texts(context, &new, writer)?;
            self.metrics = Some(Arc::clone(metrics));
            self.labels_are_due = true;
        }
        if self.labels_are_due {
            self.write_labels(context, &levels(metrics), time, writer)?;
            self.labels_are_due = false;
        }
        Ok(())
    }

    /// Notices about everything that could not be written since the last call.
    pub fn take_refused(&mut self) -> impl Iterator<Item = Notice> {
        self.refused.drain(..).map(Notice::Refused)
    }

    /// Continues without an item that an archive cannot hold.
    fn allow(&mut self, written: Result<(), WriteError>) -> Result<(), WriteError> {
        match written {
            Err(error @ WriteError::Unstorable { .. }) => {
                self.refused.push(error.to_string());
                Ok(())
            }
            other => other,
        }
    }

    fn write_descs<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        new: &[&Metric],
        writer: &mut ArchiveWriter,
    ) -> Result<(), RecorderError> {
        let pmids: Vec<Pmid> = new.iter().map(|metric| metric.desc.pmid).collect();
        for (metric, names) in new.iter().zip(context.names_of_each(&pmids)?) {
            let mut names = names.unwrap_or_default();
            if !names.contains(&metric.name) {
                names.push(metric.name.clone());
            }
            self.write_desc(&metric.recorded, &names, writer)?;
        }
        Ok(())
    }

    fn write_desc(
        &mut self,
        desc: &MetricDesc,
        names: &[Box<str>],
        writer: &mut ArchiveWriter,
    ) -> Result<(), WriteError> {
        self.pmids.insert(desc.pmid);
        let all: Vec<&str> = names.iter().map(|name| &**name).collect();
        match writer.describe(desc, &all) {
            Err(WriteError::Unstorable { .. }) => {}
            written => return written,
        }
        // Writes the names one by one, because only one of them is wrong. The
        // metric is described first without names: a part of an event record
        // may have none, and its values need the descriptor.
        writer.describe(desc, &[])?;
        for name in all {
            let written = writer.describe(desc, &[name]);
            self.allow(written)?;
        }
        Ok(())
    }

    fn write_texts<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        new: &[&Metric],
        writer: &mut ArchiveWriter,
    ) -> Result<(), RecorderError> {
        // Subjects of texts at the source, and the same in the archive.
        let mut subjects = Vec::with_capacity(new.len());
        for Metric { desc, recorded, .. } in new {
            subjects.push((TextSubject::Metric(desc.pmid), TextSubject::Metric(recorded.pmid)));
            if let Some(indom) = desc.indom.filter(|indom| self.domains.insert(*indom)) {
                subjects.push((TextSubject::Domain(indom), TextSubject::Domain(indom)));
            }
        }
        let questions: Vec<TextSubject> = subjects.iter().map(|(subject, _)| *subject).collect();
        for kind in [TextKind::OneLine, TextKind::Help] {
            let answers = context.text_of_each(&questions, kind)?;
            for ((_, subject), text) in subjects.iter().zip(answers) {
                if let Ok(text) = text {
                    let written = writer.text(*subject, kind, &text);
                    self.allow(written)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the labels of levels that differ from those written before.
    ///
    /// # Errors
    /// The source failed, or the archive cannot be written.
    pub fn write_labels<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        levels: &[LabelLevel],
        time: Timestamp,
        writer: &mut ArchiveWriter,
    ) -> Result<(), RecorderError> {
        for (level, sets) in levels.iter().zip(context.labels_of_each(levels)?) {
            let Ok(mut sets) = sets else { continue };
            sets.retain(|set| set.failure().is_none());
            let known = self.labels.entry(level.of_cluster()).or_default();
            if *known != sets {
                let written = writer.labels(time, *level, &sets);
                *known = sets;
                self.allow(written)?;
            }
        }
        Ok(())
    }

    /// Describes the metrics of the parameters in event records.
    ///
    /// # Errors
    /// The source failed, or the archive cannot be written.
    pub fn write_parameters<S: FetchSource>(
        &mut self,
        context: &mut Session<S>,
        metrics: &[Metric],
        sets: &[MetricValues],
        writer: &mut ArchiveWriter,
    ) -> Result<(), RecorderError> {
        let is_event = |metric: &&Metric| metric.desc.value_type.is_event();
        let mut new = Vec::new();
        for metric in metrics.iter().filter(is_event) {
            let sets = sets.iter().filter(|set| set.pmid == metric.recorded.pmid);
            let values = sets.filter_map(|set| set.outcome.as_ref().ok()).flatten();
            let records = values.filter_map(|value| value.value.events().ok()).flatten();
            let pmids = records.flat_map(|record| record.parameters).map(|one| one.pmid);
            new.extend(pmids.filter(|pmid| !pmid.is_derived() && self.pmids.insert(*pmid)));
        }
        if new.is_empty() {
            return Ok(());
        }
        let descs = context.lookup_descs(&new)?;
        for (desc, names) in descs.into_iter().zip(context.names_of_each(&new)?) {
            let Ok(desc) = desc else { continue };
            self.write_desc(&desc, &names.unwrap_or_default(), writer)?;
        }
        Ok(())
    }
}

/// The levels that may have labels of some metrics. Derived metrics have no
/// labels of agents and metrics.
fn levels(metrics: &[Metric]) -> Vec<LabelLevel> {
    let mut levels = vec![LabelLevel::Context];
    for Metric { desc: MetricDesc { pmid, indom, .. }, .. } in metrics {
        if let Some(indom) = indom {
            levels.extend([LabelLevel::InDom(*indom), LabelLevel::Instances(*indom)]);
        }
        if !pmid.is_derived() {
            levels.push(LabelLevel::Domain(pmid.domain()));
            levels.extend([LabelLevel::Cluster(*pmid), LabelLevel::Item(*pmid)]);
        }
    }
    let mut seen = FxHashSet::default();
    // An agent is asked about a cluster by one of the cluster's metrics.
    levels.retain(|level| seen.insert(level.of_cluster()));
    levels
}
