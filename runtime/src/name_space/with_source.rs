//! A local name space in front of a source.

use std::sync::Arc;

#[cfg(any(feature = "archive", feature = "live", feature = "local"))]
use crate::context::Context;
use pmderive_core::model::{InstanceProfile, PmStatus, Timestamp};
use pmderive_core::result::{MetricValues, ResultBatch};
use pmderive_core::source::{
    Answer, Child, Fact, FetchEvents, FetchList, FetchSource, MetadataSource, Mode, OneAnswer,
    Question, SourceError,
};

use super::tree::{LocalNameSpace, NameKind, is_dynamic, subtree_of};

/// The origin of metric names (`pmGetPMNSLocation(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSpaceLocation {
    /// A file (`PMNS_LOCAL`), as for every [`WithNameSpace`], or the agents in
    /// this process.
    Local,
    /// pmcd (`PMNS_REMOTE`).
    Remote,
    /// An archive (`PMNS_ARCHIVE`).
    Archive,
}

impl NameSpaceLocation {
    /// The origin of a context's names.
    #[cfg(any(feature = "archive", feature = "live", feature = "local"))]
    pub fn of(context: &Context) -> NameSpaceLocation {
        match context {
            #[cfg(feature = "live")]
            Context::Host(_) => NameSpaceLocation::Remote,
            #[cfg(feature = "archive")]
            Context::Archive(_) => NameSpaceLocation::Archive,
            #[cfg(feature = "local")]
            Context::Local(_) => NameSpaceLocation::Local,
        }
    }
}

/// A source whose metrics have the names of a local name space in place of
/// their own. Names in subtrees that an agent fills (`d:*:*`) still come from
/// the source.
#[derive(Debug)]
pub struct WithNameSpace<S> {
    /// The replacement. `None`: the source's own names.
    names: Option<Arc<LocalNameSpace>>,
    source: S,
    /// Agents fill their subtrees.
    has_subtrees: bool,
}

impl<S: MetadataSource> WithNameSpace<S> {
    /// Puts the name space in front of the source.
    pub fn new(names: Arc<LocalNameSpace>, source: S) -> WithNameSpace<S> {
        WithNameSpace { names: Some(names), source, has_subtrees: true }
    }

    /// The source with its own names, for callers that learn only at run time
    /// whether a name space replaces them.
    pub fn own(source: S) -> WithNameSpace<S> {
        WithNameSpace { names: None, source, has_subtrees: true }
    }

    /// Leaves out the source's names: subtrees that agents fill (`d:*:*`) have only
    /// their tops, as in libpcp 6.0 over archives.
    #[must_use]
    pub fn without_subtrees(self) -> WithNameSpace<S> {
        WithNameSpace { has_subtrees: false, ..self }
    }

    /// True if a name space replaces the source's own names.
    pub fn is_replaced(&self) -> bool {
        self.names.is_some()
    }

    /// The source, with its own names.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// Removes the name space and returns the source (`pmUnloadNameSpace(3)`).
    pub fn into_source(self) -> S {
        self.source
    }
}

/// Answers of the file.
impl LocalNameSpace {
    fn is_dynamic(&self, name: &str) -> bool {
        matches!(self.find(name), Some(NameKind::Dynamic { .. }))
    }

    /// Answers a question. `ask` gives the source's answers to others. They do not decide which
    /// further ones are asked.
    fn answer<'q>(
        &'q self,
        question: Question<'q>,
        mut ask: impl FnMut(Question<'q>) -> Answer,
    ) -> Answer {
        match question {
            Question::Pmid(name) | Question::PmidIfAny(name) => match self.is_dynamic(name) {
                // The top of a subtree exists even if its agent does not know
                // it.
                true => ask(question).or_else(|_| self.lookup(name).map(Fact::Pmid)),
                false => self.lookup(name).map(Fact::Pmid),
            },
            Question::MetricsBelow(node) if !self.is_dynamic(node) => {
                let mut names = Vec::new();
                for name in self.traverse(node)? {
                    match self.is_dynamic(name).then(|| ask(Question::MetricsBelow(name))) {
                        Some(Ok(Fact::Names(below))) => names.extend(below),
                        // A metric, or the agent has no names there now.
                        _ => names.push(name.into()),
                    }
                }
                Ok(Fact::Names(names))
            }
            Question::Children(node) => match self.find(node) {
                Some(NameKind::Dynamic { is_top: true, .. }) => {
                    ask(question).or_else(|_| Ok(Fact::Children(Vec::new())))
                }
                Some(NameKind::Dynamic { .. }) => ask(question),
                _ => self.own_children(node).map(Fact::Children),
            },
            Question::NamesOf(pmid) => match self.names_of(pmid) {
                Ok(names) if !is_dynamic(pmid) => Ok(Fact::Names(names)),
                // The name may be below a dynamic subtree.
                _ => match ask(question)? {
                    Fact::Names(mut names) => {
                        names.retain(|name| self.is_dynamic(name));
                        if names.is_empty() { Err(PmStatus::PMID) } else { Ok(Fact::Names(names)) }
                    }
                    other => Ok(other),
                },
            },
            _ => ask(question),
        }
    }

    /// Answers a question about names without the source. As in libpcp, a name below
    /// the top of a subtree is looked up as the top.
    fn without_source(&self, question: Question<'_>) -> Answer {
        match question {
            Question::Pmid(name) | Question::PmidIfAny(name) => match self.find(name) {
                Some(NameKind::Dynamic { domain, .. }) => Ok(Fact::Pmid(subtree_of(domain))),
                _ => Err(PmStatus::NAME),
            },
            Question::NamesOf(_) => Err(PmStatus::PMID),
            _ => Err(PmStatus::NAME),
        }
    }

    fn own_children(&self, node: &str) -> Result<Vec<Child>, PmStatus> {
        let mut children = self.children(node)?;
        let above = if node.is_empty() { String::new() } else { format!("{node}.") };
        for child in &mut children {
            // The top of a subtree counts as a node, even if the agent has no
            // names now.
            child.is_leaf &= !self.is_dynamic(&format!("{above}{}", child.name));
        }
        Ok(children)
    }
}

impl<S: MetadataSource> MetadataSource for WithNameSpace<S> {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        let Some(own) = &self.names else { return self.source.ask(questions, answers) };
        if !questions.iter().any(Question::is_about_names) {
            return self.source.ask(questions, answers);
        }
        let is_asked = |question: &Question<'_>| self.has_subtrees || !question.is_about_names();
        let mut open = Vec::new();
        for question in questions.iter().filter(|question| is_asked(question)) {
            // The answer does not count yet.
            let _ = own.answer(*question, |question| {
                open.push(question);
                Err(question.status())
            });
        }
        let mut found = Vec::with_capacity(open.len());
        if !open.is_empty() {
            self.source.ask(&open, &mut found)?;
        }
        let mut found = found.into_iter();
        let mut next = || found.next().unwrap_or(Err(PmStatus::IPC));
        answers.extend(questions.iter().map(|question| match is_asked(question) {
            true => own.answer(*question, |_| next()),
            false => own.answer(*question, |question| own.without_source(question)),
        }));
        Ok(())
    }

    fn name(&self) -> String {
        self.source.name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.source.metadata_epoch()
    }
}

impl<S: FetchSource> FetchSource for WithNameSpace<S> {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.source.fetch(list, batch)
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.source.set_profile(profile)
    }

    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        self.source.set_mode(mode, when)
    }

    fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        self.source.store(values)
    }
}
