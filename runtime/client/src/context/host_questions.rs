//! A method of [`AsyncHostContext`] for each question of
//! [`MetadataSource`](pmderive_core::source::MetadataSource). Each makes one call of
//! [`AsyncHostContext::ask`].

use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind,
    TextSubject,
};
use pmderive_core::source::{
    Answers, Child, Fact, Freshness, OneAnswer, Question, SourceError, of_one_kind,
};

use super::async_host::AsyncHostContext;
use crate::transport::Transport;

impl<T: Transport> AsyncHostContext<T> {
    /// The identifier of each name, in order ([`Question::Pmid`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn lookup_names(&mut self, names: &[&str]) -> Answers<Pmid> {
        self.each(names.iter().map(|name| Question::Pmid(name)).collect()).await
    }

    /// The descriptor of each metric, in order ([`Question::Desc`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn lookup_descs(&mut self, pmids: &[Pmid]) -> Answers<MetricDesc> {
        self.each(pmids.iter().map(|pmid| Question::Desc(*pmid)).collect()).await
    }

    /// The instances of a domain ([`Question::Domain`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> OneAnswer<Arc<InstanceDomain>> {
        self.one(Question::Domain(indom, freshness)).await
    }

    /// The instances of each domain, in order ([`Question::Domain`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn instance_domain_of_each(
        &mut self,
        indoms: &[InDom],
        freshness: Freshness,
    ) -> Answers<Arc<InstanceDomain>> {
        self.each(indoms.iter().map(|indom| Question::Domain(*indom, freshness)).collect()).await
    }

    /// The identifier of the instance that the agent finds for a name
    /// ([`Question::Instance`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn lookup_instance(&mut self, indom: InDom, name: &str) -> OneAnswer<InstId> {
        self.one(Question::Instance(indom, name)).await
    }

    /// The name of an instance, from its agent ([`Question::InstanceName`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn instance_name(&mut self, indom: InDom, instance: InstId) -> OneAnswer<Box<str>> {
        self.one(Question::InstanceName(indom, instance)).await
    }

    /// The names of all metrics at or below a node ([`Question::MetricsBelow`]).
    /// [`SourceError::Status`] with `PM_ERR_NAME` if there is no such node.
    ///
    /// # Errors
    /// The source failed.
    pub async fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        match self.one::<Vec<Box<str>>>(Question::MetricsBelow(prefix)).await? {
            Ok(names) => Ok(names.into_iter().map(String::from).collect()),
            Err(status) => Err(self.status_error(status)),
        }
    }

    /// The children of a node of the name space ([`Question::Children`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn children(&mut self, node: &str) -> OneAnswer<Vec<Child>> {
        self.one(Question::Children(node)).await
    }

    /// All full names of a metric ([`Question::NamesOf`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn names_of(&mut self, pmid: Pmid) -> OneAnswer<Vec<Box<str>>> {
        self.one(Question::NamesOf(pmid)).await
    }

    /// All full names of each metric, in order ([`Question::NamesOf`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        self.each(pmids.iter().map(|pmid| Question::NamesOf(*pmid)).collect()).await
    }

    /// A help text ([`Question::Text`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn text(&mut self, of: TextSubject, kind: TextKind) -> OneAnswer<Box<str>> {
        self.one(Question::Text(of, kind)).await
    }

    /// The help text of each subject, in order ([`Question::Text`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn text_of_each(
        &mut self,
        subjects: &[TextSubject],
        kind: TextKind,
    ) -> Answers<Box<str>> {
        self.each(subjects.iter().map(|of| Question::Text(*of, kind)).collect()).await
    }

    /// The labels of one level ([`Question::Labels`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn labels(&mut self, level: LabelLevel) -> OneAnswer<Vec<LabelSet>> {
        self.one(Question::Labels(level)).await
    }

    /// The labels of each level, in order ([`Question::Labels`]).
    ///
    /// # Errors
    /// The source failed.
    pub async fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        self.each(levels.iter().map(|level| Question::Labels(*level)).collect()).await
    }

    /// Name of the host of the metrics ([`Question::HostName`]): from its pmcd, or else
    /// from the specification.
    ///
    /// # Errors
    /// The source failed.
    pub async fn host_name(&mut self) -> Result<String, SourceError> {
        let name: Result<Box<str>, PmStatus> = self.one(Question::HostName).await?;
        Ok(name.map_or_else(|_| self.spec.to_string(), String::from))
    }

    /// Time zone of the host of the metrics ([`Question::TimeZone`]); `None` if its
    /// pmcd does not tell.
    ///
    /// # Errors
    /// The source failed.
    pub async fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        let zone: Result<Box<str>, PmStatus> = self.one(Question::TimeZone).await?;
        Ok(zone.ok().map(String::from))
    }

    async fn each<F: TryFrom<Fact>>(&mut self, questions: Vec<Question<'_>>) -> Answers<F> {
        let mut answers = Vec::with_capacity(questions.len());
        self.ask(&questions, &mut answers).await?;
        Ok(of_one_kind(questions.len(), answers))
    }

    async fn one<F: TryFrom<Fact>>(&mut self, question: Question<'_>) -> OneAnswer<F> {
        let mut answers = Vec::with_capacity(1);
        self.ask(&[question], &mut answers).await?;
        Ok(of_one_kind(1, answers).pop().unwrap_or(Err(PmStatus::IPC)))
    }
}
