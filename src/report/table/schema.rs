//! Facts about a table's source and metrics, apart from values.
//!
//! They are looked up once, with the first sample: an archive's labels are
//! those of that time.

use std::collections::HashMap;

use pmderive_runtime::model::{LabelLevel, LabelSet, PmStatus, Pmid, TextKind, TextSubject};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::bind::Desc;
use crate::dialect::Dialect;
use crate::engine::{Metric, Registered, Registry};
use crate::report::json::{write_desc, write_status};
use crate::syntax::{name_mistake, print_expr};
use crate::text::json::{shown, write_object};

/// Facts about the source and the metrics of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Name of the source; for an archive, its path.
    pub source: String,
    /// Host that the metrics describe.
    pub host: String,
    /// The host's time zone, in the form of the `TZ` environment variable.
    pub time_zone: Option<String>,
    /// The kind of samples.
    pub sampling: Sampling,
    /// The metrics, in the order of the request.
    pub metrics: Vec<MetricFacts>,
    /// The version in whose words statuses are told.
    pub dialect: Dialect,
}

/// The kind of samples that a source gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sampling {
    /// The records of an archive with at least one of the metrics.
    Records,
    /// Equally spaced times of an archive.
    Interpolated,
    /// Samples of a live source.
    Live,
}

/// Facts about one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFacts {
    /// Name; for an expression without a name, its text.
    pub name: Box<str>,
    /// Type, semantics, units and domain, or a status if it cannot be used.
    pub desc: Result<Desc, PmStatus>,
    /// Identifier; an expression without a name has none.
    pub pmid: Option<Pmid>,
    /// The expression that defines a derived metric.
    pub expression: Option<String>,
    /// The one-line help text.
    pub one_line: Option<Box<str>>,
    /// The long help text.
    pub help: Option<Box<str>>,
    /// The labels of all its values, as a JSON object; empty if there are none.
    pub labels: Box<str>,
}

impl Schema {
    /// Asks a source about metrics that were compiled for it.
    ///
    /// # Errors
    /// The source failed.
    pub fn look_up(
        metrics: &[Metric],
        registry: &Registry,
        source: &mut dyn MetadataSource,
        sampling: Sampling,
    ) -> Result<Schema, SourceError> {
        let mut facts: Vec<MetricFacts> =
            metrics.iter().map(|one| of_registry(one, registry)).collect();
        let mut own: Vec<&mut MetricFacts> = Vec::new();
        for (one, metric) in facts.iter_mut().zip(metrics) {
            // An expression that is only a name stands for a metric of the
            // source.
            if metric.is_hidden || one.expression.is_none() && name_mistake(&one.name).is_none() {
                own.push(one);
            }
        }
        look_up_own(&mut own, source)?;
        look_up_labels(&mut facts, source)?;
        Ok(Schema {
            source: source.name(),
            host: source.host_name()?,
            time_zone: source.time_zone()?,
            sampling,
            metrics: facts,
            dialect: registry.language().dialect,
        })
    }

    /// The first line of a table in JSON: an object with the members `source` and `metrics`.
    pub fn json_line(&self) -> String {
        let metrics: Vec<String> = self.metrics.iter().map(MetricFacts::json).collect();
        let (source, metrics) = (self.source_json(), metrics.join(","));
        format!("{{\"source\":{source},\"metrics\":[{metrics}]}}\n")
    }

    /// The source as a JSON object.
    pub fn source_json(&self) -> String {
        let mut out = String::new();
        write_object(&mut out, |object| {
            object.text("program", concat!("pmderive ", env!("CARGO_PKG_VERSION")));
            object.text("source", &self.source);
            object.text("host", &self.host);
            object.text_or_null("timezone", self.time_zone.as_deref());
            object.text(
                "sampling",
                match self.sampling {
                    Sampling::Records => "records",
                    Sampling::Interpolated => "interpolated",
                    Sampling::Live => "live",
                },
            );
        });
        out
    }
}

impl MetricFacts {
    /// The facts as a JSON object.
    pub fn json(&self) -> String {
        let mut out = String::new();
        write_object(&mut out, |object| {
            object.text("name", &self.name);
            match &self.desc {
                Ok(desc) => object.member("desc", |out| write_desc(out, desc)),
                Err(status) => object.members(|out| write_status(out, *status)),
            }
            if let Some(pmid) = self.pmid {
                object.text("pmid", &pmid.to_string());
            }
            let texts = [
                ("expression", self.expression.as_deref()),
                ("oneline", self.one_line.as_deref()),
                ("help", self.help.as_deref()),
            ];
            for (name, text) in texts {
                text.into_iter().for_each(|text| object.text(name, text));
            }
            if !self.labels.is_empty() {
                object.value("labels", shown(self.labels.to_string()));
            }
        });
        out
    }
}

/// The facts about a metric in its definition.
fn of_registry(metric: &Metric, registry: &Registry) -> MetricFacts {
    let definition = registry.definition(&metric.name).filter(|_| !metric.is_hidden);
    let pmid = definition.and_then(|one| one.pmid);
    let text = |kind| pmid.and_then(|pmid| registry.text(pmid, kind)).map(Box::from);
    MetricFacts {
        name: Box::from(&*metric.name),
        desc: metric.desc,
        pmid,
        expression: definition.map(|one: &std::sync::Arc<Registered>| print_expr(&one.expr)),
        one_line: text(TextKind::OneLine),
        help: text(TextKind::Help),
        labels: Box::default(),
    }
}

/// Looks up identifiers and help texts of the source's own metrics.
fn look_up_own(
    metrics: &mut [&mut MetricFacts],
    source: &mut dyn MetadataSource,
) -> Result<(), SourceError> {
    let names: Vec<&str> = metrics.iter().map(|one| &*one.name).collect();
    let pmids = source.lookup_names(&names)?;
    let mut found: Vec<(&mut MetricFacts, TextSubject)> = Vec::new();
    for (one, pmid) in metrics.iter_mut().zip(pmids) {
        let Ok(pmid) = pmid else { continue };
        one.pmid = Some(pmid);
        found.push((one, TextSubject::Metric(pmid)));
    }
    let subjects: Vec<TextSubject> = found.iter().map(|(_, subject)| *subject).collect();
    let one_lines = source.text_of_each(&subjects, TextKind::OneLine)?;
    let helps = source.text_of_each(&subjects, TextKind::Help)?;
    for ((one, _), (one_line, help)) in found.iter_mut().zip(one_lines.into_iter().zip(helps)) {
        one.one_line = one_line.ok();
        one.help = help.ok();
    }
    Ok(())
}

/// The levels of labels that apply to all values of a metric, the most general
/// first.
fn levels(metric: &MetricFacts) -> impl Iterator<Item = LabelLevel> {
    let own = metric.pmid.filter(|pmid| !pmid.is_derived());
    let indom = metric.desc.ok().and_then(|desc| desc.indom);
    [
        Some(LabelLevel::Context),
        own.map(|pmid| LabelLevel::Domain(pmid.domain())),
        indom.map(LabelLevel::InDom),
        own.map(LabelLevel::Cluster),
        own.map(LabelLevel::Item),
    ]
    .into_iter()
    .flatten()
    .map(LabelLevel::of_cluster)
}

fn look_up_labels(
    metrics: &mut [MetricFacts],
    source: &mut dyn MetadataSource,
) -> Result<(), SourceError> {
    let mut wanted: Vec<LabelLevel> = Vec::new();
    let mut places: HashMap<LabelLevel, usize> = HashMap::new();
    for level in metrics.iter().flat_map(levels) {
        places.entry(level).or_insert_with(|| {
            wanted.push(level);
            wanted.len() - 1
        });
    }
    let found = source.labels_of_each(&wanted)?;
    let sets = |level: LabelLevel| -> &[LabelSet] {
        // A level without labels adds none.
        match places.get(&level).and_then(|place| found.get(*place)) {
            Some(Ok(sets)) => sets,
            Some(Err(_)) | None => &[],
        }
    };
    for metric in metrics {
        let merged = LabelSet::merged(levels(metric).flat_map(sets));
        if merged.labels().len() > 0 {
            metric.labels = merged.json().into();
        }
    }
    Ok(())
}
