//! Questions to [`AsyncHostContext`] as calls. One is for any question, and one for several
//! questions of a kind. The usual questions of programs have calls with names of their own. Each
//! makes one call of [`AsyncHostContext::ask`].

use std::sync::Arc;

use pmderive_core::model::{InDom, InstanceDomain, MetricDesc, PmStatus, Pmid};
use pmderive_core::source::{
    Answers, Fact, Freshness, OneAnswer, Question, SourceError, of_one_kind,
};

use super::async_host::AsyncHostContext;
use crate::transport::Transport;

/// Questions about metadata. Each fails if the connection does. Inside of that is the status of
/// a single answer, such as `PM_ERR_NAME`.
impl<T: Transport> AsyncHostContext<T> {
    /// The answer to a question, as the content of its [`Fact`].
    ///
    /// # Errors
    /// The connection failed. The inner error is the status in place of the answer.
    ///
    /// ```no_run
    /// use pmderive_client::context::AsyncHostContext;
    /// use pmderive_core::source::{Child, Question};
    ///
    /// # async fn below(host: &mut AsyncHostContext) -> Result<(), Box<dyn std::error::Error>> {
    /// for child in host.one::<Vec<Child>>(Question::Children("disk")).await?? {
    ///     println!("disk.{}", child.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn one<F: TryFrom<Fact>>(&mut self, question: Question<'_>) -> OneAnswer<F> {
        let mut answers = Vec::with_capacity(1);
        self.ask(&[question], &mut answers).await?;
        Ok(of_one_kind(1, answers).pop().unwrap_or(Err(PmStatus::IPC)))
    }

    /// The answers to several questions, in order, if all have one kind of [`Fact`].
    ///
    /// # Errors
    /// The connection failed.
    pub async fn each<'q, F: TryFrom<Fact>>(
        &mut self,
        questions: impl IntoIterator<Item = Question<'q>>,
    ) -> Answers<F> {
        let questions: Vec<Question<'_>> = questions.into_iter().collect();
        let mut answers = Vec::with_capacity(questions.len());
        self.ask(&questions, &mut answers).await?;
        Ok(of_one_kind(questions.len(), answers))
    }

    /// The identifier of each name, in order ([`Question::Pmid`]).
    ///
    /// # Errors
    /// The connection failed.
    pub async fn lookup_names(&mut self, names: &[&str]) -> Answers<Pmid> {
        self.each(names.iter().map(|name| Question::Pmid(name))).await
    }

    /// The descriptor of each metric, in order ([`Question::Desc`]).
    ///
    /// # Errors
    /// The connection failed.
    pub async fn lookup_descs(&mut self, pmids: &[Pmid]) -> Answers<MetricDesc> {
        self.each(pmids.iter().map(|pmid| Question::Desc(*pmid))).await
    }

    /// The instances of a domain ([`Question::Domain`]).
    ///
    /// # Errors
    /// The connection failed. The inner error is a status, such as `PM_ERR_INDOM`.
    pub async fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> OneAnswer<Arc<InstanceDomain>> {
        self.one(Question::Domain(indom, freshness)).await
    }

    /// The names of all metrics at or below a node ([`Question::MetricsBelow`]).
    ///
    /// # Errors
    /// [`SourceError::Status`] with `PM_ERR_NAME` if there is no such node.
    pub async fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        match self.one::<Vec<Box<str>>>(Question::MetricsBelow(prefix)).await? {
            Ok(names) => Ok(names.into_iter().map(String::from).collect()),
            Err(status) => Err(self.status_error(status)),
        }
    }

    /// Name of the host of the metrics ([`Question::HostName`]): from its pmcd, or else
    /// from the specification.
    ///
    /// # Errors
    /// The host failed.
    pub async fn host_name(&mut self) -> Result<String, SourceError> {
        let name: Result<Box<str>, PmStatus> = self.one(Question::HostName).await?;
        Ok(name.map_or_else(|_| self.spec.to_string(), String::from))
    }

    /// Time zone of the host of the metrics ([`Question::TimeZone`]); `None` if its
    /// pmcd does not report it.
    ///
    /// # Errors
    /// The host failed.
    pub async fn time_zone(&mut self) -> Result<Option<String>, SourceError> {
        let zone: Result<Box<str>, PmStatus> = self.one(Question::TimeZone).await?;
        Ok(zone.ok().map(String::from))
    }
}
