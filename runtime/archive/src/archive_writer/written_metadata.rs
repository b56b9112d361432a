//! Remembers the contents of the archive so far, except for values, and decides whether something
//! new may be added.
//!
//! Input: descriptors, names, texts and labels from callers. Output: the part that is
//! new, or the reason why it is refused. The encoder of values looks up metrics and
//! domains here.

use std::borrow::Cow;
use std::collections::HashMap;

use pmderive_core::model::{
    EVENT_FLAGS, EVENT_MISSED, InDom, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind,
    TextSubject,
};

use crate::archive::Version;
use crate::archive::labels::{MAX_LABELS, MAX_TEXT};
use crate::archive_writer::WriteError;
use crate::archive_writer::domains::WrittenDomain;
use crate::archive_writer::error::invalid;
use crate::archive_writer::logged_pmid;

/// Maximum length of a name in bytes: libpcp reads names into a buffer of `PATH_MAX`.
const MAX_NAME: usize = 4095;

/// A metric that was described.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) desc: MetricDesc,
    /// The instance domain, and its position in [`WrittenMetadata::domains`].
    pub(super) domain: Option<(InDom, usize)>,
    /// Number of the last record that has the metric.
    pub(super) record: u64,
}

/// Everything that was written, except for the values.
#[derive(Debug, Default)]
pub(super) struct WrittenMetadata {
    pub(super) metrics: Vec<Metric>,
    pub(super) domains: Vec<WrittenDomain>,
    /// Records may have instances without a name.
    pub(super) may_lack_names: bool,
    /// Positions in `metrics` and `domains`.
    by_pmid: HashMap<Pmid, usize>,
    by_indom: HashMap<InDom, usize>,
    names: HashMap<Box<str>, Pmid>,
    texts: HashMap<(TextSubject, TextKind), Box<str>>,
    labels: HashMap<LabelLevel, Vec<LabelSet>>,
}

impl WrittenMetadata {
    /// The names among `names` that the metric does not have yet. `None` if neither the
    /// metric nor any name is new.
    pub(super) fn new_names<'n>(
        &self,
        version: Version,
        desc: &MetricDesc,
        names: &[&'n str],
    ) -> Result<Option<Vec<&'n str>>, WriteError> {
        let pmid = desc.pmid;
        if pmid == Pmid::NULL {
            let problem = format!("{pmid} is no metric, so an archive cannot have it");
            return Err(WriteError::misuse(PmStatus::PMID, problem));
        }
        if pmid.is_derived() && ![EVENT_FLAGS, EVENT_MISSED].contains(&pmid) {
            let logged = logged_pmid(pmid);
            let problem = format!(
                "{pmid} cannot be the identifier of a metric in an archive; record a derived \
                 metric as {logged} (see logged_pmid)"
            );
            return Err(WriteError::misuse(PmStatus::PMID, problem));
        }
        let known = self.by_pmid.get(&pmid).map(|at| &self.metrics[*at]);
        if let Some((status, field)) = known.and_then(|known| difference(&known.desc, desc)) {
            let problem = format!("metric {pmid} was described before, with another {field}");
            return Err(WriteError::misuse(status, problem));
        }
        let mut new: Vec<&str> = Vec::new();
        for name in names {
            check_name(version, pmid, name)?;
            match self.names.get(*name) {
                Some(owner) if *owner == pmid => {}
                Some(owner) => {
                    let problem = format!(
                        "{name} is the name of metric {owner} and cannot be that of {pmid}"
                    );
                    return Err(WriteError::Unstorable { problem, status: PmStatus::NAME });
                }
                None if new.contains(name) => {}
                None => new.push(name),
            }
        }
        Ok((known.is_none() || !new.is_empty()).then_some(new))
    }

    /// Notes that a descriptor and names were written.
    pub(super) fn described(&mut self, desc: &MetricDesc, names: &[&str]) {
        self.names.extend(names.iter().map(|name| (Box::from(*name), desc.pmid)));
        if self.by_pmid.contains_key(&desc.pmid) {
            return;
        }
        let domain = desc.indom.map(|indom| {
            let domains = &mut self.domains;
            let position = *self.by_indom.entry(indom).or_insert_with(|| {
                domains.push(WrittenDomain::default());
                domains.len() - 1
            });
            (indom, position)
        });
        self.by_pmid.insert(desc.pmid, self.metrics.len());
        self.metrics.push(Metric { desc: *desc, domain, record: 0 });
    }

    /// The position of a domain in [`WrittenMetadata::domains`].
    ///
    /// # Errors
    /// No described metric has the domain.
    pub(super) fn domain(&self, indom: InDom) -> Result<usize, WriteError> {
        let position = self.by_indom.get(&indom).copied();
        position.ok_or_else(|| not_described(format!("a metric with domain {indom}")))
    }

    /// True unless the archive has the same text already.
    pub(super) fn is_new_text(
        &self,
        of: TextSubject,
        kind: TextKind,
        text: &str,
    ) -> Result<bool, WriteError> {
        match of {
            TextSubject::Metric(pmid) => self.metric(pmid).map(drop)?,
            TextSubject::Domain(indom) => self.domain(indom).map(drop)?,
        }
        if text.contains('\0') {
            let what = format!("a help text of {}", subject(of));
            return Err(WriteError::text(&what, text, "contains a NUL, which ends texts"));
        }
        Ok(self.texts.get(&(of, kind)).is_none_or(|known| **known != *text))
    }

    /// Notes that a help text was written.
    pub(super) fn note_text(&mut self, of: TextSubject, kind: TextKind, text: &str) {
        self.texts.insert((of, kind), text.into());
    }

    /// The sets to write so that `sets` become the labels in force; `None` if they are
    /// already.
    pub(super) fn new_labels<'s>(
        &self,
        level: LabelLevel,
        sets: &'s [LabelSet],
    ) -> Result<Option<Cow<'s, [LabelSet]>>, WriteError> {
        match level {
            LabelLevel::InDom(indom) | LabelLevel::Instances(indom) => {
                self.domain(indom).map(drop)?;
            }
            LabelLevel::Item(pmid) => self.metric(pmid).map(drop)?,
            LabelLevel::Context | LabelLevel::Domain(_) | LabelLevel::Cluster(_) => {}
        }
        if let Some(problem) = label_problem(level, sets) {
            let problem = format!("labels of {}: {problem}", label_subject(level));
            return Err(WriteError::Unstorable { problem, status: invalid() });
        }
        let known = self.labels.get(&level).map(Vec::as_slice).unwrap_or_default();
        let sets: Cow<[LabelSet]> = match sets {
            // libpcp cannot handle a record without sets, so each old set is replaced
            // by an empty one.
            [] => known.iter().map(|set| LabelSet::empty(set.instance())).collect(),
            sets => sets.into(),
        };
        Ok((*sets != *known).then_some(sets))
    }

    /// Notes that labels were written.
    pub(super) fn labelled(&mut self, level: LabelLevel, sets: &[LabelSet]) {
        self.labels.insert(level, sets.to_vec());
    }

    /// The position of a metric in [`WrittenMetadata::metrics`].
    ///
    /// # Errors
    /// The metric was not described.
    pub(super) fn metric(&self, pmid: Pmid) -> Result<usize, WriteError> {
        let position = self.by_pmid.get(&pmid).copied();
        position.ok_or_else(|| not_described(format!("metric {pmid}")))
    }
}

fn not_described(what: String) -> WriteError {
    let problem = format!("{what} was not described before; call describe first");
    WriteError::misuse(PmStatus::PMID_LOG, problem)
}

/// The first field in which two descriptors differ, and its status.
fn difference(a: &MetricDesc, b: &MetricDesc) -> Option<(PmStatus, &'static str)> {
    let fields = [
        (a.value_type == b.value_type, PmStatus::LOGCHANGETYPE, "type"),
        (a.indom == b.indom, PmStatus::LOGCHANGEINDOM, "instance domain"),
        (a.semantics == b.semantics, PmStatus::LOGCHANGESEM, "semantics"),
        (a.units == b.units, PmStatus::LOGCHANGEUNITS, "units"),
    ];
    fields.into_iter().find(|(same, ..)| !same).map(|(_, status, field)| (status, field))
}

fn check_name(version: Version, pmid: Pmid, name: &str) -> Result<(), WriteError> {
    let what = || format!("the name of metric {pmid}");
    if name.len() > MAX_NAME {
        return Err(WriteError::too_long(&what(), name.len(), MAX_NAME, version));
    }
    match name_problem(name) {
        None => Ok(()),
        Some(problem) => Err(WriteError::text(&what(), name, problem)),
    }
}

/// The reason why no metric of an archive can have this name: a predicate to put
/// after the name. `None` if a metric can have it.
pub fn name_problem(name: &str) -> Option<&'static str> {
    if name.len() > MAX_NAME {
        Some("is longer than 4095 bytes")
    } else if name.contains('\0') {
        Some("contains a NUL, which ends names")
    } else if name.split('.').any(str::is_empty) {
        Some("has an empty component")
    } else {
        None
    }
}

/// The reason why these sets of labels cannot be stored. `None` if they can.
fn label_problem(level: LabelLevel, sets: &[LabelSet]) -> Option<String> {
    let of_instances = matches!(level, LabelLevel::Instances(_));
    let mut instances: Vec<_> = sets.iter().map(LabelSet::instance).collect();
    instances.sort_unstable();
    if !of_instances && (sets.len() > 1 || instances.iter().any(|instance| *instance != -1)) {
        return Some("only one set is allowed, of instance -1".to_owned());
    }
    if of_instances && instances.first().is_some_and(|instance| *instance < 0) {
        return Some(format!("{} cannot be an instance: it is negative", instances[0]));
    }
    if let Some(twice) = instances.windows(2).find(|pair| pair[0] == pair[1]) {
        return Some(format!("there are two sets for instance {}", twice[0]));
    }
    for set in sets {
        let (length, count) = (set.json().len(), set.places().len());
        if length > MAX_TEXT {
            return Some(format!("a set of {length} bytes; there is room for {MAX_TEXT}"));
        }
        if i32::try_from(count).map_or(true, |count| count > MAX_LABELS) {
            return Some(format!("{count} labels in a set; there is room for {MAX_LABELS}"));
        }
        if let Some(label) = set.labels().find(|label| label.name.len() > u8::MAX.into()) {
            let length = label.name.len();
            return Some(format!("a name of {length} bytes; there is room for {}", u8::MAX));
        }
        if let Some(status) = set.failure().filter(|status| status.0 >= 0) {
            return Some(format!("status {} is not a failure: those are negative", status.0));
        }
    }
    None
}

pub(super) fn subject(of: TextSubject) -> String {
    match of {
        TextSubject::Metric(pmid) => format!("metric {pmid}"),
        TextSubject::Domain(indom) => format!("instance domain {indom}"),
    }
}

pub(super) fn label_subject(level: LabelLevel) -> String {
    match level {
        LabelLevel::Context => "the context".to_owned(),
        LabelLevel::Domain(domain) => format!("the agent of domain {domain}"),
        LabelLevel::InDom(indom) => format!("instance domain {indom}"),
        LabelLevel::Cluster(pmid) => format!("the cluster {}.{}", pmid.domain(), pmid.cluster()),
        LabelLevel::Item(pmid) => format!("metric {pmid}"),
        LabelLevel::Instances(indom) => format!("the instances of {indom}"),
    }
}
