//! Questions about the metadata of a source, and the facts that answer them.
//! Blocking sources and async hosts share this vocabulary. Binding and
//! evaluation use it too: they only produce questions, and their callers ask
//! the source.

use std::sync::Arc;

use super::Child;
use crate::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind,
    TextSubject,
};

/// A question to a source. A source passes questions without an answer of its
/// own to [`by_simpler_questions`](super::by_simpler_questions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Question<'q> {
    /// Identifier of a name (`pmLookupName(3)`): [`Fact::Pmid`]. The name of a
    /// non-leaf node gives `PM_ERR_NONLEAF`, an unknown one `PM_ERR_NAME`.
    Pmid(&'q str),
    /// Like [`Question::Pmid`], but any status will do for a missing name. pmcd
    /// gives a reason only for one name at a time. Thousands of names that are
    /// probably unknown cost as many requests with [`Question::Pmid`], and a
    /// few with this.
    PmidIfAny(&'q str),
    /// Descriptor of a metric (`pmLookupDescs(3)`): [`Fact::Desc`].
    Desc(Pmid),
    /// An instance domain as of now (`pmGetInDom(3)`): [`Fact::Domain`]. For an
    /// archive, as of the record that was fetched last.
    ///
    /// While nothing changes, repeated answers are the same `Arc`, so callers
    /// can compare pointers.
    Domain(InDom, Freshness),
    /// Every instance of a domain that the source has ever seen:
    /// [`Fact::Domain`]. An archive knows those of all its time
    /// (`pmGetInDomArchive(3)`); other sources give the current domain.
    KnownInstances(InDom),
    /// Names that the instances have at other times: [`Fact::Instances`]. Only
    /// archives know them: the last name before the record that was fetched
    /// last, or else the first name after it.
    NamesAtOtherTimes(InDom, &'q [InstId]),
    /// Identifier of the instance that a name stands for (`pmLookupInDom(3)`):
    /// [`Fact::Instance`]. In a live source the agent decides which names
    /// match; many accept the part before the first blank. Without a match, and
    /// for the empty name, `PM_ERR_INST`.
    Instance(InDom, &'q str),
    /// Name of an instance (`pmNameInDom(3)`): [`Fact::Text`]. For an unknown
    /// instance, `PM_ERR_INST`.
    InstanceName(InDom, InstId),
    /// Names of all metrics at or below a node, given by its full name
    /// (`pmTraversePMNS(3)`): [`Fact::Names`]. The empty name is the root. For
    /// an unknown node, `PM_ERR_NAME`.
    MetricsBelow(&'q str),
    /// The direct children of a node, in the source's order
    /// (`pmGetChildrenStatus(3)`): [`Fact::Children`]. A leaf has no children.
    /// For an unknown node, `PM_ERR_NAME`.
    Children(&'q str),
    /// All full names of a metric, at least one (`pmNameAll(3)`):
    /// [`Fact::Names`]. For a metric without a name, `PM_ERR_PMID`, or
    /// `PM_ERR_NOAGENT` if no agent serves its domain.
    NamesOf(Pmid),
    /// Help text (`pmLookupText(3)`, `pmLookupInDomText(3)`): [`Fact::Text`].
    /// If there is only one line of text, it is the help text too. Without any
    /// text, `PM_ERR_TEXT`.
    Text(TextSubject, TextKind),
    /// Labels of one level (`pmGetContextLabels(3)` and its kin):
    /// [`Fact::Labels`]. For an archive, as of the record that was fetched
    /// last. The answer is one set, or no set if there are no labels.
    /// [`LabelLevel::Instances`] has one set for each instance with labels. A
    /// source without any labels gives `PM_ERR_NOLABELS`.
    Labels(LabelLevel),
    /// Name of the host that the metrics describe (`pmGetContextHostName(3)`):
    /// [`Fact::Text`].
    HostName,
    /// Time zone of that host, in the form of the `TZ` environment variable
    /// (`pmNewContextZone(3)`): [`Fact::Text`], or any status if the source
    /// does not say.
    TimeZone,
}

impl Question<'_> {
    /// True if the answer depends on the name space.
    pub fn is_about_names(&self) -> bool {
        matches!(
            self,
            Question::Pmid(_)
                | Question::PmidIfAny(_)
                | Question::MetricsBelow(_)
                | Question::Children(_)
                | Question::NamesOf(_)
        )
    }

    /// The status for a question without an answer.
    pub fn status(&self) -> PmStatus {
        match self {
            Question::Pmid(_)
            | Question::PmidIfAny(_)
            | Question::MetricsBelow(_)
            | Question::Children(_) => PmStatus::NAME,
            Question::Desc(_) | Question::NamesOf(_) => PmStatus::PMID,
            Question::Domain(..) | Question::KnownInstances(_) => PmStatus::INDOM,
            Question::NamesAtOtherTimes(..)
            | Question::Instance(..)
            | Question::InstanceName(..) => PmStatus::INST,
            Question::Text(..) => PmStatus::TEXT,
            Question::Labels(_) => PmStatus::NOLABELS,
            Question::HostName | Question::TimeZone => PmStatus::VALUE,
        }
    }
}

/// The required freshness of an instance domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// Earlier knowledge is enough.
    Cached,
    /// The source must ask again: an instance was seen that the cached domain
    /// lacks.
    Current,
}

/// A fact, or a status if there is none.
pub type Answer = Result<Fact, PmStatus>;

/// A fact about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// Identifier of a metric.
    Pmid(Pmid),
    /// Descriptor of a metric.
    Desc(MetricDesc),
    /// Instances of a domain.
    Domain(Arc<InstanceDomain>),
    /// Some instances with their names.
    Instances(Vec<(InstId, Box<str>)>),
    /// An instance.
    Instance(InstId),
    /// Names of metrics.
    Names(Vec<Box<str>>),
    /// The children of a node.
    Children(Vec<Child>),
    /// A help text or a name.
    Text(Box<str>),
    /// Labels.
    Labels(Vec<LabelSet>),
}

macro_rules! kinds {
    ($($kind:ident: $content:ty;)*) => {
        $(
            /// Fails with the fact itself if it is of another kind.
            impl TryFrom<Fact> for $content {
                type Error = Fact;

                fn try_from(fact: Fact) -> Result<$content, Fact> {
                    match fact {
                        Fact::$kind(content) => Ok(content),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}

kinds! {
    Pmid: Pmid;
    Desc: MetricDesc;
    Domain: Arc<InstanceDomain>;
    Instances: Vec<(InstId, Box<str>)>;
    Instance: InstId;
    Names: Vec<Box<str>>;
    Children: Vec<Child>;
    Text: Box<str>;
    Labels: Vec<LabelSet>;
}

/// Converts answers to one kind, one for each question. A missing answer or one
/// of another kind is the source's mistake: `PM_ERR_IPC`.
pub fn of_one_kind<T: TryFrom<Fact>>(
    questions: usize,
    answers: Vec<Answer>,
) -> Vec<Result<T, PmStatus>> {
    let missing = std::iter::repeat_with(|| Err(PmStatus::IPC));
    answers.into_iter().map(of_kind).chain(missing).take(questions).collect()
}

/// Converts an answer to one kind.
///
/// # Errors
/// The status of the answer, or `PM_ERR_IPC` for an answer of another kind.
pub fn of_kind<T: TryFrom<Fact>>(answer: Answer) -> Result<T, PmStatus> {
    answer?.try_into().map_err(|_| PmStatus::IPC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_do_not_fit_are_a_mistake_of_the_source() {
        let pmid = Pmid::new(1, 2, 3);
        let answers = [Ok(Fact::Pmid(pmid)), Err(PmStatus::NAME), Ok(Fact::Instance(3))];
        let of = |count| of_one_kind::<Pmid>(count, answers.to_vec());
        assert_eq!(of(2), [Ok(pmid), Err(PmStatus::NAME)]);
        let wrong = Err(PmStatus::IPC);
        assert_eq!(of(5), [Ok(pmid), Err(PmStatus::NAME), wrong, wrong, wrong]);
    }
}
