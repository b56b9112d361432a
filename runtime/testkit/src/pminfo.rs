//! Metrics of a source as `pminfo -l` and `pminfo -lmtT` print them.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, TextKind,
    TextSubject,
};
use pmderive_core::source::{Freshness, MetadataSource};

/// Deviations of pminfo's labels from the source's current ones.
pub struct Quirks {
    /// Labels of a source without any: pminfo makes them up.
    context: LabelSet,
    /// True where labels of a cluster are only found for its item 0, as in
    /// archives of PCP 6.0.
    clusters_of_item_0: bool,
    /// Earlier answers: pminfo asks once, whatever the time is later.
    known: HashMap<LabelLevel, Vec<LabelSet>>,
    /// The instances of the last domain, which pminfo also asks for once.
    domain: Option<(InDom, Arc<InstanceDomain>)>,
}

impl Quirks {
    /// No earlier answers; `context` is a text of labels.
    pub fn new(context: &str, clusters_of_item_0: bool) -> Quirks {
        let context = LabelSet::parse(context, LabelFlags(1)).expect("labels");
        Quirks { context, clusters_of_item_0, known: HashMap::new(), domain: None }
    }

    fn labels(&mut self, source: &mut dyn MetadataSource, level: LabelLevel) -> Vec<LabelSet> {
        if let Some(known) = self.known.get(&level) {
            return known.clone();
        }
        let sets = match (level, source.labels(level).expect("an answer")) {
            (LabelLevel::Context, Ok(sets)) if sets.is_empty() => vec![self.context.clone()],
            (_, Ok(sets)) => sets,
            (_, Err(PmStatus::NOLABELS)) => Vec::new(),
            (_, Err(status)) => panic!("{level:?}: {status}"),
        };
        self.known.insert(level, sets.clone());
        sets
    }

    fn domain(&mut self, source: &mut dyn MetadataSource, indom: InDom) -> Arc<InstanceDomain> {
        if let Some((known, domain)) = &self.domain
            && *known == indom
        {
            return Arc::clone(domain);
        }
        let found = source.instance_domain(indom, Freshness::Current).expect("an answer");
        let found = found.unwrap_or_default();
        self.domain = Some((indom, Arc::clone(&found)));
        found
    }
}

/// The output of `pminfo -lmtT` for a metric.
pub fn described(source: &mut dyn MetadataSource, name: &str, quirks: &mut Quirks) -> String {
    let desc = desc(source, name);
    let subject = TextSubject::Metric(desc.pmid);
    let one_line = match source.text(subject, TextKind::OneLine).expect("an answer") {
        Ok(text) => format!("[{text}]"),
        Err(status) => format!("One-line Help: Error: {status}"),
    };
    let (common, instances) = labels(source, &desc, quirks);
    let help = match source.text(subject, TextKind::Help).expect("an answer") {
        Ok(help) if help.is_empty() => "Help: <empty entry>".to_owned(),
        Ok(help) => format!("Help:\n{}", help.strip_suffix('\n').unwrap_or(&help)),
        Err(status) => format!("Full Help: Error: {status}"),
    };
    format!("\n{name} PMID: {} {one_line}\n{common}{help}\n{instances}", desc.pmid)
}

/// The output of `pminfo -l` for a metric.
pub fn labelled(source: &mut dyn MetadataSource, name: &str, quirks: &mut Quirks) -> String {
    let desc = desc(source, name);
    let (common, instances) = labels(source, &desc, quirks);
    format!("\n{name}\n{common}{instances}")
}

fn desc(source: &mut dyn MetadataSource, name: &str) -> MetricDesc {
    let pmid = source.lookup_names(&[name]).expect("an answer")[0].expect(name);
    source.lookup_descs(&[pmid]).expect("an answer")[0].expect(name)
}

/// The lines with the labels of a metric, and of its instances.
fn labels(
    source: &mut dyn MetadataSource,
    desc: &MetricDesc,
    quirks: &mut Quirks,
) -> (String, String) {
    let common = levels(source, desc, quirks);
    let merged = LabelSet::merged(&common);
    let mut of_metric = String::new();
    if !merged.json().is_empty() {
        of_metric = format!("    labels {}\n", merged.json());
    }
    let mut of_instances = String::new();
    let Some(indom) = desc.indom else { return (of_metric, of_instances) };
    let domain = quirks.domain(source, indom);
    let sets = quirks.labels(source, LabelLevel::Instances(indom));
    // pminfo prints the instances that have a set, or all if none has one.
    let with_sets: Vec<i32> = sets.iter().map(LabelSet::instance).collect();
    let all = domain.instances().map(|(id, _)| id);
    let shown: Vec<i32> = if with_sets.is_empty() { all.collect() } else { with_sets };
    for id in shown {
        let name = domain.name(id).unwrap_or("DISAPPEARED");
        let own = sets.iter().filter(|set| set.instance() == id);
        let merged = LabelSet::merged(common.iter().chain(own));
        let _ = writeln!(of_instances, "    inst [{id} or \"{name}\"] labels {}", merged.json());
    }
    (of_metric, of_instances)
}

/// The labels of all levels above instances.
fn levels(
    source: &mut dyn MetadataSource,
    desc: &MetricDesc,
    quirks: &mut Quirks,
) -> Vec<LabelSet> {
    let pmid = desc.pmid;
    let mut levels = vec![LabelLevel::Context, LabelLevel::Domain(pmid.domain())];
    levels.extend(desc.indom.map(LabelLevel::InDom));
    if pmid.item() == 0 || !quirks.clusters_of_item_0 {
        levels.push(LabelLevel::Cluster(pmid));
    }
    levels.push(LabelLevel::Item(pmid));
    levels.into_iter().flat_map(|level| quirks.labels(source, level)).collect()
}
