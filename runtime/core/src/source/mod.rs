//! The interface of a source of metrics to the engine. The source may read from
//! pmcd, from an archive, or from this process.
//!
//! `question` has the questions about metadata and the facts that answer them.
//! Sources deliver results in their natural form ([`ResultBatch`]): encoded or
//! in columns. [`crate::eval`] decides what it expects of the values.

mod child;
mod error;
mod fault;
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

pub use child::{Child, is_at_or_below};
pub use error::SourceError;
pub use fault::Fault;
pub use list::FetchList;
pub use question::{Answer, Fact, Freshness, Question};
pub use question::{of_kind, of_one_kind};
pub use simpler::by_simpler_questions;

/// One answer or status for each question, in their order. The error: the
/// source itself failed.
pub type Answers<T> = Result<Vec<Result<T, PmStatus>>, SourceError>;

/// An answer to one question, or a status. The error: the source itself failed.
pub type OneAnswer<T> = Result<Result<T, PmStatus>, SourceError>;

/// Label sets with their levels, or a status.
pub type MetricLabels = OneAnswer<Vec<(LabelLevel, LabelSet)>>;

/// A source of names, descriptors, instance domains, help texts and labels.
///
/// A source implements [`MetadataSource::ask`]. The other methods here phrase
/// single questions. Questions that are asked together cost as few round trips
/// as one, so binding thousands of metrics takes a few. The outer `Result` of
/// each method is about the source itself. The inner one is about a single
/// name, metric or domain.
pub trait MetadataSource {
    /// Appends an [`Answer`] for each question, in their order. [`Question`]
    /// says what each question means and what kind of answer it has. A source
    /// without its own answer to a question passes it to
    /// [`by_simpler_questions`].
    ///
    /// The caller owns the buffer of answers, so that asking with every fetch
    /// reuses it.
    ///
    /// # Errors
    /// The source failed. The appended answers are meaningless.
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError>;

    /// Name of the source for messages: host name or archive path.
    fn name(&self) -> String;

    /// A number that changes whenever names, descriptors or the identity of the
    /// peer may have changed. Callers must then bind again.
    fn metadata_epoch(&self) -> u64;

    /// Identifier of each name, in order ([`Question::Pmid`]).
    fn lookup_names(&mut self, names: &[&str]) -> Answers<Pmid> {
        each(self, names.iter().map(|name| Question::Pmid(name)))
    }

    /// Descriptor of each metric, in order ([`Question::Desc`]).
    fn lookup_descs(&mut self, pmids: &[Pmid]) -> Answers<MetricDesc> {
        each(self, pmids.iter().map(|pmid| Question::Desc(*pmid)))
    }

    /// Descriptor of a metric ([`Question::Desc`]).
    fn lookup_desc(&mut self, pmid: Pmid) -> OneAnswer<MetricDesc> {
        one(self, Question::Desc(pmid))
    }

    /// An instance domain ([`Question::Domain`]).
    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> OneAnswer<Arc<InstanceDomain>> {
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
    fn known_instances(&mut self, indom: InDom) -> OneAnswer<Arc<InstanceDomain>> {
        one(self, Question::KnownInstances(indom))
    }

    /// Names that instances have at other times
    /// ([`Question::NamesAtOtherTimes`]).
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
    fn lookup_instance(&mut self, indom: InDom, name: &str) -> OneAnswer<InstId> {
        one(self, Question::Instance(indom, name))
    }

    /// Name of an instance ([`Question::InstanceName`]).
    fn instance_name(&mut self, indom: InDom, instance: InstId) -> OneAnswer<Box<str>> {
        one(self, Question::InstanceName(indom, instance))
    }

    /// Names of all metrics at or below a node ([`Question::MetricsBelow`]).
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NAME` if there is no such node.
    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        match one::<Vec<Box<str>>>(self, Question::MetricsBelow(prefix))? {
            Ok(names) => Ok(names.into_iter().map(String::from).collect()),
            Err(status) => Err(SourceError::Status { target: self.name(), status }),
        }
    }

    /// The direct children of a node of the name space
    /// ([`Question::Children`]).
    fn children(&mut self, node: &str) -> OneAnswer<Vec<Child>> {
        one(self, Question::Children(node))
    }

    /// All full names of a metric ([`Question::NamesOf`]).
    fn names_of(&mut self, pmid: Pmid) -> OneAnswer<Vec<Box<str>>> {
        one(self, Question::NamesOf(pmid))
    }

    /// All full names of each metric, in order ([`Question::NamesOf`]).
    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        each(self, pmids.iter().map(|pmid| Question::NamesOf(*pmid)))
    }

    /// Help text ([`Question::Text`]).
    fn text(&mut self, of: TextSubject, kind: TextKind) -> OneAnswer<Box<str>> {
        one(self, Question::Text(of, kind))
    }

    /// Help text of each subject, in order ([`Question::Text`]).
    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        each(self, subjects.iter().map(|of| Question::Text(*of, kind)))
    }

    /// Labels of one level ([`Question::Labels`]).
    fn labels(&mut self, level: LabelLevel) -> OneAnswer<Vec<LabelSet>> {
        one(self, Question::Labels(level))
    }

    /// Labels of each level, in order ([`Question::Labels`]).
    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        each(self, levels.iter().map(|level| Question::Labels(*level)))
    }

    /// The label sets that apply to all values of a metric, from the most
    /// general level to the most specific (`pmLookupLabels(3)`). Levels without
    /// labels are left out. Labels of single instances are at
    /// [`LabelLevel::Instances`]. [`LabelSet::merged`] merges the sets into
    /// one.
    fn labels_of_metric(&mut self, pmid: Pmid) -> MetricLabels {
        let desc = match self.lookup_desc(pmid)? {
            Ok(desc) => desc,
            Err(status) => return Ok(Err(status)),
        };
        let mut levels = vec![LabelLevel::Context, LabelLevel::Domain(pmid.domain())];
        levels.extend(desc.indom.map(LabelLevel::InDom));
        levels.extend([LabelLevel::Cluster(pmid), LabelLevel::Item(pmid)]);
        let mut found = Vec::with_capacity(levels.len());
        let answers = self.labels_of_each(&levels)?;
        // A source of simple answers may have labels at one level only.
        let has_labels = answers.iter().any(Result::is_ok);
        for (level, sets) in levels.iter().zip(answers) {
            match sets {
                Ok(sets) => found.extend(sets.into_iter().map(|set| (*level, set))),
                Err(PmStatus::NOLABELS) if has_labels => {}
                Err(status) => return Ok(Err(status)),
            }
        }
        Ok(Ok(found))
    }

    /// Name of the host that the metrics describe ([`Question::HostName`]).
    fn host_name(&mut self) -> Result<String, SourceError> {
        let name: Result<Box<str>, PmStatus> = one(self, Question::HostName)?;
        Ok(name.map_or_else(|_| self.name(), String::from))
    }

    /// Time zone of the host that the metrics describe, in the form of the `TZ`
    /// environment variable ([`Question::TimeZone`]). `None` if the source does
    /// not know it.
    fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        let zone: Result<Box<str>, PmStatus> = one(self, Question::TimeZone)?;
        Ok(zone.ok().map(String::from))
    }
}

/// The answers to several questions, if all answers have one kind.
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
) -> OneAnswer<T> {
    let mut answers = Vec::with_capacity(1);
    source.ask(&[question], &mut answers)?;
    Ok(of_one_kind(1, answers).pop().unwrap_or(Err(PmStatus::IPC)))
}

/// Sources behind a pointer: all methods that a source may have of its own are passed on.
macro_rules! passes_on {
    ($($pointer:ty),*) => {$(
        impl<S: MetadataSource + ?Sized> MetadataSource for $pointer {
            fn ask(
                &mut self,
                questions: &[Question<'_>],
                answers: &mut Vec<Answer>,
            ) -> Result<(), SourceError> {
                (**self).ask(questions, answers)
            }

            fn name(&self) -> String {
                (**self).name()
            }

            fn metadata_epoch(&self) -> u64 {
                (**self).metadata_epoch()
            }
        }

        impl<S: FetchSource + ?Sized> FetchSource for $pointer {
            fn fetch(
                &mut self,
                list: &FetchList,
                batch: &mut ResultBatch,
            ) -> Result<FetchEvents, SourceError> {
                (**self).fetch(list, batch)
            }

            fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
                (**self).set_profile(profile)
            }

            fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
                (**self).set_mode(mode, when)
            }

            fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
                (**self).store(values)
            }
        }
    )*};
}

passes_on!(&mut S, Box<S>);

/// A source of values.
pub trait FetchSource: MetadataSource {
    /// Fetches the metrics of `list` (`pmFetch(3)`). An archive delivers the
    /// next record that holds at least one of them.
    ///
    /// A source clears `batch` first. On success it has exactly one value set for
    /// each metric of `list`, in order. Failures of single metrics are
    /// statuses inside the sets. There is a part with the time of the fetch even
    /// if the list has no metrics.
    ///
    /// Values have the type of their metric's descriptor. As in libpcp, an
    /// evaluator reads words and blocks as that type, and does not notice
    /// another type of the same size; see [`FetchEvents::changes`] for types that
    /// change within a fetch. An evaluator refuses the whole fetch if a
    /// set is of another metric than the one at its position.
    ///
    /// # Errors
    /// The fetch as a whole failed, and the contents of `batch` are
    /// unspecified. At the end of an archive the error is
    /// [`SourceError::Status`] with `PM_ERR_EOL`.
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError>;

    /// Fetches metrics and copies the result into owned values, one set for
    /// each metric in the order of `pmids` (`pmFetch(3)`). It suits occasional
    /// fetches. For repeated fetches keep a [`FetchList`].
    ///
    /// # Errors
    /// As for [`FetchSource::fetch`].
    fn fetch_values(&mut self, pmids: &[Pmid]) -> Result<FetchResult, SourceError> {
        let mut batch = ResultBatch::default();
        let events = self.fetch(&FetchList::new(distinct(pmids), Vec::new()), &mut batch)?;
        Ok(in_order_of(pmids, FetchResult::of_batch(&batch, events.changes)))
    }

    /// Limits later fetches to the instances of the profile (`pmAddProfile(3)`,
    /// `pmDelProfile(3)`). The profile survives a reconnect.
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NYI` if the source has no profiles.
    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        if profile.is_everything() {
            return Ok(());
        }
        Err(SourceError::Status { target: self.name(), status: PmStatus::NYI })
    }

    /// Sets the position in time and the direction of the next fetches
    /// (`pmSetMode(3)`). Without a time the position stays. Marks between the old
    /// position and the new one are not reported as a gap.
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_MODE` if the source cannot do that.
    /// Live sources support only [`Mode::Live`], archives all other modes.
    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        let _ = when;
        match mode {
            Mode::Live => Ok(()),
            _ => Err(SourceError::Status { target: self.name(), status: PmStatus::MODE }),
        }
    }

    /// Changes values at the source (`pmStore(3)`). The inner error: the source
    /// refuses one of the metrics, or this user. Values before that metric in
    /// the list may already be stored.
    fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        let _ = values;
        Ok(Err(PmStatus::NOTHOST))
    }
}

/// The metrics of a list, each once, in the order of first appearance.
pub fn distinct(pmids: &[Pmid]) -> Vec<Pmid> {
    let mut seen = HashSet::new();
    pmids.iter().copied().filter(|pmid| seen.insert(*pmid)).collect()
}

/// Expands the result of a fetch of [`distinct`] metrics to all of `pmids`.
pub fn in_order_of(pmids: &[Pmid], mut result: FetchResult) -> FetchResult {
    let sets = std::mem::take(&mut result.sets);
    let of: HashMap<Pmid, &MetricValues> = sets.iter().map(|set| (set.pmid, set)).collect();
    let missing = |pmid| MetricValues { pmid, outcome: Err(PmStatus::IPC) };
    let set = |pmid: &Pmid| of.get(pmid).map_or_else(|| missing(*pmid), |set| (*set).clone());
    result.sets = pmids.iter().map(set).collect();
    result
}

/// The position and direction of fetches in time (`pmSetMode(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `PM_MODE_LIVE`: current values.
    Live,
    /// `PM_MODE_INTERP`: values at equally spaced points in time.
    Interpolated {
        /// Nanoseconds from one fetch to the next; negative for backwards.
        step: i64,
    },
    /// `PM_MODE_FORW`: the next record with one of the metrics.
    Forward,
    /// `PM_MODE_BACK`: the previous record with one of the metrics.
    Backward,
}

/// Events between the previous fetch and this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchEvents {
    /// Names, descriptors or agents may have changed (see
    /// [`MetadataSource::metadata_epoch`]).
    pub metadata_changed: bool,
    /// The data are not continuous: a mark record was passed, the connection was made again, or an
    /// agent was restarted. Differences across it are meaningless.
    pub gap: bool,
    /// The changes that pmcd reports (`PMCD_*` of `pmFetch(3)`). Archives and this
    /// machine report none.
    ///
    /// A source of one's own whose metadata change within a fetch, so that the values
    /// may already be of other types, reports [`StateChange::NAMES`] here. The fetch is
    /// then repeated for the new metadata.
    pub changes: StateChange,
}

impl FetchEvents {
    /// The events of two fetches, as those of one.
    #[must_use]
    pub const fn with(self, next: FetchEvents) -> FetchEvents {
        FetchEvents {
            metadata_changed: self.metadata_changed || next.metadata_changed,
            gap: self.gap || next.gap,
            changes: self.changes.with(next.changes),
        }
    }
}
