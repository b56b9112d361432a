//! What the engine asks of a source of metrics, wherever it gets them from:
//! pmcd, an archive, or this process itself.
//!
//! Questions about metadata and the facts that answer them are in `question`.
//! Sources deliver results in the form that they have ([`ResultBatch`]): encoded,
//! or in columns. What the evaluator expects of them is its own affair.

mod child;
mod error;
mod list;
mod question;
mod simpler;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, LabelLevel, LabelSet, MetricDesc, PmStatus,
    Pmid, StateChange, TextKind, TextSubject, Timestamp,
};
use crate::result::{FetchResult, MetricValues, ResultBatch};

pub use child::Child;
pub use error::SourceError;
pub use list::FetchList;
pub use question::{Answer, Fact, Freshness, Question};
pub use question::{of_kind, of_one_kind};
pub use simpler::by_simpler_questions;

/// One answer or status per question, in their order, unless the source itself
/// failed.
pub type Answers<T> = Result<Vec<Result<T, PmStatus>>, SourceError>;

/// Sets of labels with their levels, or a status.
pub type MetricLabels = Result<Result<Vec<(LabelLevel, LabelSet)>, PmStatus>, SourceError>;

/// Knows names, descriptors, instance domains, help texts and labels.
///
/// A source answers with [`MetadataSource::ask`]; the other questions here are
/// ways to put one. Whatever is asked together costs as few round trips as one
/// question does, so that binding thousands of metrics costs a few. The outer
/// `Result` of each method is about the source itself; what is wrong with one
/// name, metric or domain stands in the inner one.
pub trait MetadataSource {
    /// Appends an [`Answer`] to each question, in their order. What a question
    /// means, and of which kind its answer is, is said at [`Question`]. A
    /// source that has no answer of its own to a question leaves it to
    /// [`by_simpler_questions`].
    ///
    /// The place for answers is the caller's: who asks with every fetch keeps
    /// its buffer.
    ///
    /// # Errors
    /// The source failed; what was appended is of no use.
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError>;

    /// Name of the source for messages: host name or archive path.
    fn name(&self) -> String;

    /// Changes whenever names, descriptors or the identity of the peer may
    /// have changed, so that bindings have to be made anew.
    fn metadata_epoch(&self) -> u64;

    /// Identifier of each name, in order ([`Question::Pmid`]).
    fn lookup_names(&mut self, names: &[&str]) -> Answers<Pmid> {
        each(self, names.iter().map(|name| Question::Pmid(name)))
    }

    /// Descriptor of each metric, in order ([`Question::Desc`]).
    fn lookup_descs(&mut self, pmids: &[Pmid]) -> Answers<MetricDesc> {
        each(self, pmids.iter().map(|pmid| Question::Desc(*pmid)))
    }

    /// An instance domain ([`Question::Domain`]).
    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        one(self, Question::Domain(indom, freshness))
    }

    /// Each of several domains, in order ([`Question::Domain`]).
    fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        each(self, indoms.iter().map(|indom| Question::Domain(*indom, freshness)))
    }

    /// Every instance of a domain that the source has ever seen
    /// ([`Question::KnownInstances`]).
    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        one(self, Question::KnownInstances(indom))
    }

    /// Names that instances have at other times
    /// ([`Question::NamesAtOtherTimes`]).
    ///
    /// # Errors
    /// The source failed.
    fn names_at_other_times(
        &mut self,
        indom: InDom,
        instances: &[InstId],
    ) -> Result<Vec<(InstId, Box<str>)>, SourceError> {
        let found = one(self, Question::NamesAtOtherTimes(indom, instances))?;
        Ok(found.unwrap_or_default())
    }

    /// Identifier of the instance that a name stands for
    /// ([`Question::Instance`]).
    fn lookup_instance(
        &mut self,
        indom: InDom,
        name: &str,
    ) -> Result<Result<InstId, PmStatus>, SourceError> {
        one(self, Question::Instance(indom, name))
    }

    /// Name of an instance ([`Question::InstanceName`]).
    fn instance_name(
        &mut self,
        indom: InDom,
        instance: InstId,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        one(self, Question::InstanceName(indom, instance))
    }

    /// Names of all metrics at or below a node ([`Question::MetricsBelow`]).
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NAME` where there is no such node.
    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        match one::<Vec<Box<str>>>(self, Question::MetricsBelow(prefix))? {
            Ok(names) => Ok(names.into_iter().map(String::from).collect()),
            Err(status) => Err(SourceError::Status { target: self.name(), status }),
        }
    }

    /// What is directly below a node of the name space
    /// ([`Question::Children`]).
    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        one(self, Question::Children(node))
    }

    /// All full names of a metric ([`Question::NamesOf`]).
    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        one(self, Question::NamesOf(pmid))
    }

    /// All full names of each metric, in order ([`Question::NamesOf`]).
    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        each(self, pmids.iter().map(|pmid| Question::NamesOf(*pmid)))
    }

    /// Help text ([`Question::Text`]).
    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        one(self, Question::Text(of, kind))
    }

    /// Help text of each subject, in order ([`Question::Text`]).
    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        each(self, subjects.iter().map(|of| Question::Text(*of, kind)))
    }

    /// Labels as one level gives them ([`Question::Labels`]).
    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        one(self, Question::Labels(level))
    }

    /// Labels of each level, in order ([`Question::Labels`]).
    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        each(self, levels.iter().map(|level| Question::Labels(*level)))
    }

    /// The labels that hold for all values of a metric, level by level from the
    /// most general one, where there are any (`pmLookupLabels(3)`). What holds
    /// for one instance is at [`LabelLevel::Instances`]; [`LabelSet::merged`]
    /// makes one set of them.
    fn labels_of_metric(&mut self, pmid: Pmid) -> MetricLabels {
        let desc: MetricDesc = match one(self, Question::Desc(pmid))? {
            Ok(desc) => desc,
            Err(status) => return Ok(Err(status)),
        };
        let mut levels = vec![LabelLevel::Context, LabelLevel::Domain(pmid.domain())];
        levels.extend(desc.indom.map(LabelLevel::InDom));
        levels.extend([LabelLevel::Cluster(pmid), LabelLevel::Item(pmid)]);
        let mut found = Vec::with_capacity(levels.len());
        for (level, sets) in levels.iter().zip(self.labels_of_each(&levels)?) {
            match sets {
                Ok(sets) => found.extend(sets.into_iter().map(|set| (*level, set))),
                Err(status) => return Ok(Err(status)),
            }
        }
        Ok(Ok(found))
    }

    /// Name of the host that the metrics are of ([`Question::HostName`]).
    ///
    /// # Errors
    /// The source failed.
    fn host_name(&mut self) -> Result<String, SourceError> {
        let name: Result<Box<str>, PmStatus> = one(self, Question::HostName)?;
        Ok(name.map_or_else(|_| self.name(), String::from))
    }

    /// Time zone of the host that the metrics are of, in the form of the `TZ`
    /// environment variable ([`Question::TimeZone`]); `None` where the source
    /// does not tell.
    ///
    /// # Errors
    /// The source failed.
    fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        let zone: Result<Box<str>, PmStatus> = one(self, Question::TimeZone)?;
        Ok(zone.ok().map(String::from))
    }
}

/// The answers to questions whose answers are of one kind.
fn each<'q, T: TryFrom<Fact>>(
    source: &mut (impl MetadataSource + ?Sized),
    questions: impl Iterator<Item = Question<'q>>,
) -> Answers<T> {
    let questions: Vec<Question<'_>> = questions.collect();
    let mut answers = Vec::with_capacity(questions.len());
    source.ask(&questions, &mut answers)?;
    Ok(of_one_kind(questions.len(), answers))
}

/// The answer to one question.
fn one<T: TryFrom<Fact>>(
    source: &mut (impl MetadataSource + ?Sized),
    question: Question<'_>,
) -> Result<Result<T, PmStatus>, SourceError> {
    let mut answers = Vec::with_capacity(1);
    source.ask(&[question], &mut answers)?;
    Ok(of_one_kind(1, answers).pop().unwrap_or(Err(PmStatus::IPC)))
}

/// Delivers values.
pub trait FetchSource: MetadataSource {
    /// Fetches the metrics of `list` (`pmFetch(3)`; for an archive the next
    /// record that holds at least one of them).
    ///
    /// On success the value sets of `batch` are exactly those of `list`, in
    /// order; failures of single metrics are statuses inside them. There is a
    /// part with the time of the fetch even if the list has no metrics.
    ///
    /// # Errors
    /// The fetch as a whole failed; `batch` is unspecified. At the end of an
    /// archive that is [`SourceError::Status`] with `PM_ERR_EOL`.
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError>;

    /// Fetches metrics and copies what came into values of their own, one set
    /// per metric in the order of `pmids` (`pmFetch(3)`). For callers who
    /// fetch now and then; who does it on and on keeps a [`FetchList`].
    ///
    /// # Errors
    /// As for [`FetchSource::fetch`].
    fn fetch_values(&mut self, pmids: &[Pmid]) -> Result<FetchResult, SourceError> {
        let mut batch = ResultBatch::default();
        let events = self.fetch(&FetchList::new(distinct(pmids), Vec::new()), &mut batch)?;
        Ok(in_order_of(pmids, FetchResult::of_batch(&batch, events.changes)))
    }

    /// From now on fetches deliver the instances of the profile only
    /// (`pmAddProfile(3)`, `pmDelProfile(3)`). The profile outlives a reconnect.
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NYI` where the source has no profiles.
    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        if profile.is_everything() {
            return Ok(());
        }
        Err(SourceError::Status { target: self.name(), status: PmStatus::NYI })
    }

    /// From where and in which direction the next fetches take their values
    /// (`pmSetMode(3)`); without a time the position stays.
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_MODE` where the source cannot do
    /// that; live sources know [`Mode::Live`] only, archives all the others.
    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        let _ = when;
        match mode {
            Mode::Live => Ok(()),
            _ => Err(SourceError::Status { target: self.name(), status: PmStatus::MODE }),
        }
    }

    /// Changes values at the source (`pmStore(3)`). The inner error: the source
    /// does not do that for one of the metrics, or for this user; what stood
    /// before it in the list may have been stored.
    ///
    /// # Errors
    /// The source failed.
    fn store(&mut self, values: &[MetricValues]) -> Result<Result<(), PmStatus>, SourceError> {
        let _ = values;
        Ok(Err(PmStatus::NOTHOST))
    }
}

/// The metrics of a list, each once, in the order in which they come first.
pub fn distinct(pmids: &[Pmid]) -> Vec<Pmid> {
    let mut seen = HashSet::new();
    pmids.iter().copied().filter(|pmid| seen.insert(*pmid)).collect()
}

/// The result of a fetch of [`distinct`] metrics, as one of all of `pmids`.
pub fn in_order_of(pmids: &[Pmid], mut result: FetchResult) -> FetchResult {
    let sets = std::mem::take(&mut result.sets);
    let of: HashMap<Pmid, &MetricValues> = sets.iter().map(|set| (set.pmid, set)).collect();
    let missing = |pmid| MetricValues { pmid, outcome: Err(PmStatus::IPC) };
    let set = |pmid: &Pmid| of.get(pmid).map_or_else(|| missing(*pmid), |set| (*set).clone());
    result.sets = pmids.iter().map(set).collect();
    result
}

/// Where the values of fetches come from in time (`pmSetMode(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `PM_MODE_LIVE`: from now.
    Live,
    /// `PM_MODE_INTERP`: from points in time that are equally far apart.
    Interpolated {
        /// Nanoseconds from one fetch to the next, negative for backwards.
        step: i64,
    },
    /// `PM_MODE_FORW`: from the next record with one of the metrics.
    Forward,
    /// `PM_MODE_BACK`: from the previous record with one of the metrics.
    Backward,
}

/// What happened between the previous fetch and this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchEvents {
    /// Names, descriptors or agents may have changed (see [`MetadataSource::metadata_epoch`]).
    pub metadata_changed: bool,
    /// Continuity ended: a mark record was passed, the connection was made anew,
    /// or an agent was restarted. Differences across it mean nothing.
    pub gap: bool,
    /// What pmcd said has changed (`PMCD_*` of `pmFetch(3)`); none for other sources.
    pub changes: StateChange,
}
