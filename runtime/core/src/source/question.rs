//! Questions about the metadata of a source, and the facts that answer them:
//! one vocabulary for sources that block, for hosts whose calls are futures,
//! and for binding and evaluating, which ask nobody themselves.

use std::sync::Arc;

use super::Child;
use crate::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind,
    TextSubject,
};

/// What is asked of a source. A source gives those that it has no answer of its
/// own to [`by_simpler_questions`](super::by_simpler_questions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Question<'q> {
    /// Identifier of a name (`pmLookupName(3)`): [`Fact::Pmid`]. The name of a
    /// non-leaf node gives `PM_ERR_NONLEAF`, an unknown one `PM_ERR_NAME`.
    Pmid(&'q str),
    /// The same where it does not matter why a name has none: any status will
    /// do. pmcd gives reasons for one name at a time only, so that thousands of
    /// names that are probably unknown cost as many requests with
    /// [`Question::Pmid`], and a few with this.
    PmidIfAny(&'q str),
    /// Descriptor of a metric (`pmLookupDescs(3)`): [`Fact::Desc`].
    Desc(Pmid),
    /// An instance domain as of now; for an archive, as of the record that was
    /// fetched last (`pmGetInDom(3)`): [`Fact::Domain`].
    ///
    /// While nothing changed, repeated answers are the same `Arc`, so that
    /// callers can compare pointers.
    Domain(InDom, Freshness),
    /// Every instance of a domain that the source has ever seen: what an
    /// archive knows from all its time (`pmGetInDomArchive(3)`), else the
    /// domain as of now: [`Fact::Domain`].
    KnownInstances(InDom),
    /// Names of those of the instances that the source knows from another time
    /// than now: an archive, as each was called last before the record that
    /// was fetched last, or else first after it: [`Fact::Instances`].
    NamesAtOtherTimes(InDom, &'q [InstId]),
    /// Identifier of the instance that a name stands for (`pmLookupInDom(3)`):
    /// [`Fact::Instance`]. A live source lets the agent decide what matches;
    /// many take the part before the first blank. Without a match, and for the
    /// empty name, `PM_ERR_INST`.
    Instance(InDom, &'q str),
    /// Name of an instance (`pmNameInDom(3)`): [`Fact::Text`]. Of an unknown
    /// one, `PM_ERR_INST`.
    InstanceName(InDom, InstId),
    /// Names of all metrics at or below a node, whose full name is given; the
    /// empty name is the root (`pmTraversePMNS(3)`): [`Fact::Names`]. Without
    /// such a node, `PM_ERR_NAME`.
    MetricsBelow(&'q str),
    /// What is directly below a node (`pmGetChildrenStatus(3)`):
    /// [`Fact::Children`]. A leaf has no children, and an unknown node gives
    /// `PM_ERR_NAME`. The order is the source's.
    Children(&'q str),
    /// All full names of a metric, at least one (`pmNameAll(3)`):
    /// [`Fact::Names`]. A metric without a name gives `PM_ERR_PMID`.
    NamesOf(Pmid),
    /// Help text (`pmLookupText(3)`, `pmLookupInDomText(3)`): [`Fact::Text`].
    /// Where only one line is known, that is the help text as well. Without a
    /// text, `PM_ERR_TEXT`.
    Text(TextSubject, TextKind),
    /// Labels as one level gives them; for an archive, as of the record that
    /// was fetched last (`pmGetContextLabels(3)` and its kin):
    /// [`Fact::Labels`]. No set without labels, one set with them, and for
    /// [`LabelLevel::Instances`] as many as there are instances with labels. A
    /// source that knows no labels at all gives `PM_ERR_NOLABELS`.
    Labels(LabelLevel),
    /// Name of the host that the metrics are of (`pmGetContextHostName(3)`):
    /// [`Fact::Text`].
    HostName,
    /// Time zone of that host, in the form of the `TZ` environment variable
    /// (`pmNewContextZone(3)`): [`Fact::Text`], or any status where the source
    /// does not tell.
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

    /// The status of a question to which there is nothing to say.
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

/// How recent an instance domain must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// What was learnt earlier will do.
    Cached,
    /// Ask again: an instance was seen that the cached domain lacks.
    Current,
}

/// A fact, or the status of a question that has none.
pub type Answer = Result<Fact, PmStatus>;

/// What a source knows.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What is below a node.
    Children(Vec<Child>),
    /// A help text or a name.
    Text(Box<str>),
    /// Labels.
    Labels(Vec<LabelSet>),
}

macro_rules! kinds {
    ($($kind:ident: $content:ty;)*) => {
        $(
            /// Gives the fact back if it is of another kind.
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

/// Answers that are to be of one kind, as many as there were questions. What
/// is of another kind, or missing, is the source's mistake: `PM_ERR_IPC`.
pub fn of_one_kind<T: TryFrom<Fact>>(
    questions: usize,
    answers: Vec<Answer>,
) -> Vec<Result<T, PmStatus>> {
    let missing = std::iter::repeat_with(|| Err(PmStatus::IPC));
    answers.into_iter().map(of_kind).chain(missing).take(questions).collect()
}

/// An answer that is to be of one kind.
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
