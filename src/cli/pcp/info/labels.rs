//! Labels of metrics and instances, and the identifiers of series. An identifier is a hash of
//! labels and other properties.
//!
//! Only properties that never change identify a series. Optional labels may change, so they do not
//! count.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use pmderive_runtime::model::{
    InDom, InstId, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus,
};
use pmderive_runtime::source::{MetadataSource, SourceError};
use sha1::{Digest, Sha1};

use crate::cli::pcp::source::AnyNamed;
use crate::cli::terminal::Output;
use crate::dialect::Dialect;
use crate::engine::Session;

/// Labels by level. An archive's labels are those of one time. Like pminfo, this cache keeps a
/// label that was found for other times as well.
pub struct Labels {
    known: HashMap<LabelLevel, Result<Vec<LabelSet>, PmStatus>>,
    /// Levels that are not read again, even if they have no labels.
    settled: HashSet<LabelLevel>,
    /// Labels for a source without any.
    of_unlabelled: LabelSet,
    /// True if the labels of a cluster are found for its item 0 only, as in archives of version
    /// 6.
    clusters_of_item_0: bool,
    /// True for an archive: labels that are missing now may exist at another time.
    is_archive: bool,
    /// True if each question is asked again, because its time may differ.
    forgets: bool,
}

impl Labels {
    /// An empty cache. `host` is the name of the source's host.
    pub fn new(host: &str, is_archive: bool, dialect: Dialect) -> Labels {
        let text = format!("{{\"hostname\":{}}}", serde_json::Value::from(host));
        let of_unlabelled = LabelSet::parse(&text, LabelFlags(LabelLevel::Context.bit()));
        Labels {
            known: HashMap::new(),
            settled: HashSet::new(),
            of_unlabelled: of_unlabelled.unwrap_or_else(|_| LabelSet::empty(-1)),
            clusters_of_item_0: is_archive && dialect == Dialect::Pcp6_0,
            is_archive,
            forgets: is_archive && dialect == Dialect::Fixed,
        }
    }

    /// Reads the labels of metrics and of their instances in one request.
    pub fn look_up(
        &mut self,
        context: &mut Session<AnyNamed>,
        levels: impl Iterator<Item = LabelLevel>,
    ) -> Result<(), SourceError> {
        if self.forgets {
            self.known.clear();
        }
        let mut seen = HashSet::new();
        let open: Vec<LabelLevel> = levels
            .map(LabelLevel::of_cluster)
            .filter(|level| !self.is_known(*level) && seen.insert(*level))
            .collect();
        let found = context.labels_of_each(&open)?;
        self.known.extend(open.into_iter().zip(found));
        Ok(())
    }

    /// Reads the labels of an instance domain. As in pminfo, the answer stays, even an empty
    /// one.
    pub fn look_up_domain(
        &mut self,
        context: &mut Session<AnyNamed>,
        indom: InDom,
    ) -> Result<(), SourceError> {
        let levels = Labels::levels_of_domain(indom);
        self.look_up(context, levels.into_iter())?;
        self.settled.extend(levels);
        Ok(())
    }

    fn is_known(&self, level: LabelLevel) -> bool {
        // A source without labels at first keeps those of its host for good.
        let is_final =
            !self.is_archive || level == LabelLevel::Context || self.settled.contains(&level);
        match self.known.get(&level) {
            Some(Ok(sets)) => !sets.is_empty() || is_final,
            Some(Err(_)) => !self.is_archive,
            None => false,
        }
    }

    /// All levels of a metric and its instances. The domain of a derived metric differs from
    /// the one of its instances.
    pub fn levels(&self, desc: &MetricDesc) -> impl Iterator<Item = LabelLevel> + use<> {
        let domain = desc.indom.map(|indom| LabelLevel::Domain(indom.domain()));
        let instances = desc.indom.map(LabelLevel::Instances);
        self.levels_of_metric(desc, desc.pmid.domain()).chain(domain).chain(instances)
    }

    /// The levels of a metric, from general to special. Its domain is one of them.
    fn levels_of_metric(
        &self,
        desc: &MetricDesc,
        domain: u32,
    ) -> impl Iterator<Item = LabelLevel> + use<> {
        let MetricDesc { pmid, indom, .. } = *desc;
        let has_cluster = pmid.item() == 0 || !self.clusters_of_item_0;
        [
            Some(LabelLevel::Context),
            Some(LabelLevel::Domain(domain)),
            indom.map(LabelLevel::InDom),
            has_cluster.then_some(LabelLevel::Cluster(pmid)),
            Some(LabelLevel::Item(pmid)),
        ]
        .into_iter()
        .flatten()
    }

    fn sets(&self, level: LabelLevel) -> &[LabelSet] {
        let sets = match self.known.get(&level.of_cluster()) {
            Some(Ok(sets)) => sets,
            Some(Err(_)) | None => &[][..],
        };
        match level {
            LabelLevel::Context if sets.is_empty() => std::slice::from_ref(&self.of_unlabelled),
            _ => sets,
        }
    }

    fn of_levels(&self, levels: impl Iterator<Item = LabelLevel>) -> Vec<&LabelSet> {
        levels.flat_map(|level| self.sets(level)).collect()
    }

    /// Writes the line with the labels of a metric.
    pub fn print_metric(&self, out: &mut Output, desc: &MetricDesc) {
        let levels = self.levels_of_metric(desc, desc.pmid.domain());
        print_labels(out, &self.of_levels(levels));
    }

    /// Levels of an instance domain.
    fn levels_of_domain(indom: InDom) -> [LabelLevel; 3] {
        [LabelLevel::Context, LabelLevel::Domain(indom.domain()), LabelLevel::InDom(indom)]
    }

    /// Writes the line with the labels of an instance domain.
    pub fn print_domain(&self, out: &mut Output, indom: InDom) {
        print_labels(out, &self.of_levels(Labels::levels_of_domain(indom).into_iter()));
    }

    /// The instances to print: those with labels, or all if none has any.
    fn instances(&self, indom: InDom, domain: &InstanceDomain) -> Vec<(InstId, Option<&LabelSet>)> {
        match self.sets(LabelLevel::Instances(indom)) {
            [] => domain.instances().map(|(id, _)| (id, None)).collect(),
            sets => sets.iter().map(|set| (set.instance(), Some(set))).collect(),
        }
    }

    /// Writes the lines with the labels of a metric's instances.
    pub fn print_instances(
        &self,
        out: &mut Output,
        desc: &MetricDesc,
        indom: InDom,
        domain: &InstanceDomain,
    ) {
        let common = self.of_levels(self.levels_of_metric(desc, indom.domain()));
        for (id, own) in self.instances(indom, domain) {
            let merged = LabelSet::merged(common.iter().copied().chain(own));
            push_instance(out, id, domain);
            out.extend_from_slice(b" labels ");
            out.text(merged.json().as_bytes());
            out.push(b'\n');
        }
    }

    /// Writes the lines with the identifiers of the source and of a metric.
    pub fn print_series(&self, out: &mut Output, name: &str, desc: &MetricDesc) {
        let source = identifying(self.sets(LabelLevel::Context));
        let source = hash(format!("{{\"series\":\"source\",\"labels\":{source}}}"));
        let labels = self.levels_of_metric(desc, desc.pmid.domain());
        let labels = identifying(self.of_levels(labels));
        let MetricDesc { semantics, value_type, units, .. } = desc;
        let series = hash(format!(
            "{{\"series\":\"metric\",\"name\":\"{name}\",\"labels\":{labels},\
             \"semantics\":\"{semantics}\",\"type\":\"{value_type}\",\"units\":\"{units}\"}}"
        ));
        push(out, format_args!("    Source: {source}\n    Series: {series}\n"));
    }

    /// Writes the lines with the identifiers of the series of a domain's instances. They are
    /// the same for every metric.
    pub fn print_instance_series(&self, out: &mut Output, indom: InDom, domain: &InstanceDomain) {
        let common = self.of_levels(Labels::levels_of_domain(indom).into_iter());
        for (id, own) in self.instances(indom, domain) {
            let merged = LabelSet::merged(common.iter().copied().chain(own));
            let name = domain.name_in_bytes(id).unwrap_or(Cow::Borrowed(b"???"));
            let mut identity = b"{\"series\":\"instance\",\"name\":\"".to_vec();
            identity.extend_from_slice(&name);
            push(&mut identity, format_args!("\",\"labels\":{}}}", or_null(merged.json())));
            push_instance(out, id, domain);
            push(out, format_args!(" series {}\n", hash(&identity)));
        }
    }
}

/// The name of an instance that has disappeared.
const DISAPPEARED: &[u8] = b"DISAPPEARED";

/// Writes an instance at the beginning of a line.
fn push_instance(out: &mut Output, id: InstId, domain: &InstanceDomain) {
    push(out, format_args!("    inst [{id} or \""));
    out.text(&domain.name_in_bytes(id).unwrap_or(Cow::Borrowed(DISAPPEARED)));
    out.extend_from_slice(b"\"]");
}

fn print_labels(out: &mut Output, sets: &[&LabelSet]) {
    let merged = LabelSet::merged(sets.iter().copied());
    if !merged.json().is_empty() {
        out.extend_from_slice(b"    labels ");
        out.text(merged.json().as_bytes());
        out.push(b'\n');
    }
}

/// The labels of all sets that are not optional, merged as JSON.
fn identifying<'s>(sets: impl IntoIterator<Item = &'s LabelSet>) -> String {
    let merged = LabelSet::merged(sets);
    let mut json = String::new();
    for label in merged.labels().filter(|label| !label.flags.has(LabelFlags::OPTIONAL)) {
        json.push(if json.is_empty() { '{' } else { ',' });
        // Writing to a string does not fail.
        let _ = write!(json, "\"{}\":{}", label.name, label.value);
    }
    if !json.is_empty() {
        json.push('}');
    }
    or_null(&json).to_owned()
}

fn or_null(json: &str) -> &str {
    if json.is_empty() { "null" } else { json }
}

/// SHA-1 of a text, in hexadecimal.
fn hash(text: impl AsRef<[u8]>) -> String {
    Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector does not fail.
    let _ = std::io::Write::write_fmt(out, text);
}
