//! Looks up all properties of a group of metrics in a few round trips.

use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid, TextKind, TextSubject};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::engine::Session;

use super::arguments::InfoShown;
use crate::cli::pcp::source::AnyNamed;

/// Properties of a metric.
pub struct MetricInfo<'n> {
    /// The requested name.
    pub name: &'n str,
    /// Its identifier, if the name has one.
    pub pmid: Result<Pmid, PmStatus>,
    /// Its descriptor, if requested.
    pub desc: Result<MetricDesc, PmStatus>,
    /// One line of help, if requested.
    pub one_line: Result<Box<str>, PmStatus>,
    /// The help text, if requested.
    pub help: Result<Box<str>, PmStatus>,
}

impl InfoShown {
    /// True if descriptors are needed.
    pub fn needs_desc(&self) -> bool {
        self.prints_desc() || self.desc_oneline || self.needs_values() || self.labels || self.series
    }

    /// True if values are needed.
    pub fn needs_values(&self) -> bool {
        self.prints_values() || self.verifies()
    }

    /// True if only mistakes of metrics are printed.
    pub fn verifies(&self) -> bool {
        self.verify || self.metadata_errors
    }

    /// True if the lines of a descriptor are printed.
    pub fn prints_desc(&self) -> bool {
        self.desc || self.fullindom
    }

    /// True if values are printed.
    pub fn prints_values(&self) -> bool {
        self.fetch || self.fetchall || self.events
    }
}

/// Looks up all properties that are printed.
pub fn describe<'n>(
    context: &mut Session<AnyNamed>,
    names: &[&'n str],
    shown: &InfoShown,
) -> Result<Vec<MetricInfo<'n>>, SourceError> {
    let is_bare = !(shown.needs_desc() || shown.pmid || shown.fullpmid);
    let needs_pmid = !is_bare || shown.oneline || shown.helptext;
    let mut found: Vec<MetricInfo<'n>> = names
        .iter()
        .map(|name| MetricInfo {
            name,
            pmid: Err(PmStatus::NAME),
            desc: Err(PmStatus::PMID),
            one_line: Err(PmStatus::TEXT),
            help: Err(PmStatus::TEXT),
        })
        .collect();
    if !needs_pmid {
        return Ok(found);
    }
    for (one, pmid) in found.iter_mut().zip(context.lookup_names(names)?) {
        one.pmid = pmid;
    }
    // Like libpcp, this asks also about a metric that does not exist.
    let pmids: Vec<Pmid> = found.iter().map(|one| one.pmid.unwrap_or(Pmid::NULL)).collect();
    if shown.needs_desc() {
        let descs = context.lookup_descs(&pmids)?;
        for (one, desc) in found.iter_mut().zip(descs) {
            one.desc = desc.map(|desc| context.dialect().understood(desc));
        }
    }
    if shown.verifies() {
        return Ok(found);
    }
    let subjects: Vec<TextSubject> = pmids.iter().map(|pmid| TextSubject::Metric(*pmid)).collect();
    if shown.oneline {
        let texts = context.text_of_each(&subjects, TextKind::OneLine)?;
        found.iter_mut().zip(texts).for_each(|(one, text)| one.one_line = text);
    }
    if shown.helptext {
        let texts = context.text_of_each(&subjects, TextKind::Help)?;
        found.iter_mut().zip(texts).for_each(|(one, text)| one.help = text);
    }
    Ok(found)
}
