//! Answers questions about metadata of archives, as of the context's time.
//!
//! Input: questions. Output: the answers that [`MetadataSource`] promises. `meta` knows
//! where metadata come from, and `fetching` moves the time.

use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstId, InstanceDomain, LabelFlags, LabelLevel, LabelMap, LabelSet, PmStatus, Timestamp,
    json_string,
};
use pmderive_core::source::{
    Answer, Fact, Freshness, MetadataSource, OneAnswer, Question, SourceError, by_simpler_questions,
};

use crate::archive::context::ArchiveContext;

impl ArchiveContext {
    /// The identifier of an instance that had this name at any time
    /// (`pmLookupInDomArchive(3)`). If several instances had it, the newest one
    /// counts. If none had, the status is `PM_ERR_INST_LOG`.
    /// [`MetadataSource::known_instances`] lists all instances and reports an unknown
    /// domain (`pmGetInDomArchive(3)`).
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub fn lookup_known_instance(&mut self, indom: InDom, name: &str) -> OneAnswer<InstId> {
        let domain = self.known_instances(indom)?;
        Ok(domain.and_then(|domain| domain.lookup(name).ok_or(PmStatus::INST_LOG)))
    }

    /// The name of an instance at any time; the newest name counts
    /// (`pmNameInDomArchive(3)`). `PM_ERR_INST_LOG` if the instance is unknown.
    ///
    /// # Errors
    /// The metadata file cannot be read.
    pub fn known_instance_name(&mut self, indom: InDom, instance: InstId) -> OneAnswer<Box<str>> {
        let domain = self.known_instances(indom)?;
        let name = |domain: Arc<InstanceDomain>| domain.name(instance).map(Box::from);
        Ok(domain.and_then(|domain| name(domain).ok_or(PmStatus::INST_LOG)))
    }

    /// The times at which labels of any kind change, in ascending order.
    /// [`MetadataSource::labels`] gives the same answers between two of these times.
    pub fn label_times(&self) -> Vec<Timestamp> {
        self.metadata.label_times()
    }

    /// Reads metadata that were appended to the files.
    pub(super) fn refresh_metadata(&mut self) -> Result<(), SourceError> {
        let changed = self.metadata.refresh()?;
        self.epoch += u64::from(changed);
        Ok(())
    }

    pub(super) fn domain_at_origin(&mut self, indom: InDom) -> OneAnswer<Arc<InstanceDomain>> {
        self.metadata.domain(indom, self.origin)
    }

    fn domain_now(&mut self, indom: InDom, freshness: Freshness) -> OneAnswer<Arc<InstanceDomain>> {
        if freshness == Freshness::Current {
            self.refresh_metadata()?;
        }
        self.domain_at_origin(indom)
    }

    /// The labels of a level as of the origin. If an archive has no labels of the
    /// context, its recorded host becomes the label `hostname`.
    fn labels_at(&mut self, level: LabelLevel) -> OneAnswer<Vec<LabelSet>> {
        if level == LabelLevel::Context && !self.metadata.has_context_labels() {
            let host = json_string(&self.label.host);
            let flags = LabelFlags(level.bit());
            let labels = LabelMap::from([("hostname".into(), (host.into(), flags))]);
            return Ok(Ok(vec![LabelSet::from_map(-1, &labels)]));
        }
        self.metadata.labels(level, self.origin).map(Ok)
    }

    /// The time zone of the archive that is being read now.
    fn zone(&self) -> Option<&str> {
        Some(&*self.records.archive().label.timezone).filter(|zone| !zone.is_empty())
    }
}

/// libpcp has statuses of its own for things that an archive lacks: `PM_ERR_PMID_LOG`
/// for a metric, `PM_ERR_INST_LOG` for an instance, and `PM_ERR_NOTHOST` where no text
/// of the kind exists.
impl MetadataSource for ArchiveContext {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        for question in questions {
            let known = |found: Option<Fact>| found.ok_or(PmStatus::INST_LOG);
            answers.push(match *question {
                Question::Pmid(name) | Question::PmidIfAny(name) => {
                    self.metadata.names().lookup(name).map(Fact::Pmid)
                }
                Question::Desc(pmid) => {
                    self.metadata.desc(pmid).map(Fact::Desc).ok_or(PmStatus::PMID_LOG)
                }
                Question::Domain(indom, freshness) => {
                    self.domain_now(indom, freshness)?.map(Fact::Domain)
                }
                Question::KnownInstances(indom) => {
                    self.metadata.whole_domain(indom)?.map(|(domain, _)| Fact::Domain(domain))
                }
                Question::NamesAtOtherTimes(indom, instances) => {
                    let names = self.metadata.names_near(indom, instances, self.origin)?;
                    Ok(Fact::Instances(names))
                }
                Question::Instance(indom, name) => self
                    .domain_at_origin(indom)?
                    .and_then(|domain| known(domain.lookup(name).map(Fact::Instance))),
                Question::InstanceName(indom, instance) => self
                    .domain_at_origin(indom)?
                    .and_then(|domain| known(domain.name(instance).map(|n| Fact::Text(n.into())))),
                Question::MetricsBelow(node) => {
                    let names = self.metadata.names().traverse(node);
                    let names = names.map(|names| names.into_iter().map(Box::from).collect());
                    names.map(Fact::Names).ok_or(PmStatus::NAME)
                }
                Question::Children(node) => {
                    self.metadata.names().children(node).map(Fact::Children)
                }
                Question::NamesOf(pmid) => self.metadata.names().of(pmid).map(Fact::Names),
                Question::Text(of, kind) => self.metadata.text(of, kind)?.map(Fact::Text),
                Question::Labels(level) => self.labels_at(level)?.map(Fact::Labels),
                Question::HostName => Ok(Fact::Text(self.label.host.clone())),
                Question::TimeZone => {
                    let zone = self.zone().map(|zone| Fact::Text(zone.into()));
                    zone.ok_or(PmStatus::VALUE)
                }
                other => by_simpler_questions(self, other)?,
            });
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn metadata_epoch(&self) -> u64 {
        self.epoch
    }
}
