//! The source that the arguments choose.

use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::context::{HostContext, HostSpec};
use pmderive_runtime::local::LocalContext;
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind, TextSubject,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{
    Answers, Child, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};

use crate::dialect::Dialect;

use super::args::SourceArguments;
use super::messages::Messages;
use crate::metadata::RecordedMetadata;

/// An open source of any kind.
pub enum Source {
    /// The pmcd of a host.
    Host(Box<HostContext>),
    /// An archive.
    Archive(Box<ArchiveContext>),
    /// This process.
    Local(Box<LocalContext>),
}

impl SourceArguments {
    /// True if one was chosen.
    pub fn is_given(&self) -> bool {
        self.host.is_some() || self.archive.is_some() || self.local
    }
}

impl Source {
    /// Opens the source that was chosen, or else the pmcd of this machine.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(arguments: &SourceArguments, messages: &Messages) -> Result<Source, SourceError> {
        if arguments.local {
            return Ok(Source::Local(Box::default()));
        }
        if let Some(path) = &arguments.archive {
            return Ok(Source::Archive(Box::new(ArchiveContext::open(path)?)));
        }
        let host = match &arguments.host {
            Some(spec) => HostContext::open(spec)?,
            None => HostContext::open(&HostSpec::local())?,
        };
        host.warnings().iter().for_each(|warning| messages.warning(warning));
        Ok(Source::Host(Box::new(host)))
    }

    /// Has the peculiarities that definitions of a dialect count on.
    pub fn follow(&mut self, dialect: Dialect) {
        if let (Source::Archive(context), true) = (self, dialect != Dialect::Fixed) {
            context.look_up_instances_by_beginning();
        }
    }

    fn context(&self) -> &dyn FetchSource {
        match self {
            Source::Host(context) => &**context,
            Source::Archive(context) => &**context,
            Source::Local(context) => &**context,
        }
    }

    fn context_mut(&mut self) -> &mut dyn FetchSource {
        match self {
            Source::Host(context) => &mut **context,
            Source::Archive(context) => &mut **context,
            Source::Local(context) => &mut **context,
        }
    }
}

/// Opens the source of a command that looks at no values: the one that was
/// chosen, or metadata in a file; `None` if neither is given.
///
/// # Errors
/// It cannot be opened.
pub fn open_metadata(
    arguments: &SourceArguments,
    metadata: Option<&Path>,
    messages: &Messages,
) -> Result<Option<Box<dyn MetadataSource>>, SourceError> {
    Ok(match metadata {
        Some(file) => Some(Box::new(RecordedMetadata::open(file)?)),
        None if arguments.is_given() => Some(Box::new(Source::open(arguments, messages)?)),
        None => None,
    })
}

impl MetadataSource for Source {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        self.context_mut().lookup_names(names)
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        self.context_mut().lookup_descs(pmids)
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.context_mut().instance_domain(indom, freshness)
    }

    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.context_mut().known_instances(indom)
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        self.context_mut().traverse(prefix)
    }

    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        self.context_mut().children(node)
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        self.context_mut().names_of(pmid)
    }

    fn names_of_each(&mut self, pmids: &[Pmid]) -> Answers<Vec<Box<str>>> {
        self.context_mut().names_of_each(pmids)
    }

    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        self.context_mut().text(of, kind)
    }

    fn text_of_each(&mut self, subjects: &[TextSubject], kind: TextKind) -> Answers<Box<str>> {
        self.context_mut().text_of_each(subjects, kind)
    }

    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        self.context_mut().labels(level)
    }

    fn labels_of_each(&mut self, levels: &[LabelLevel]) -> Answers<Vec<LabelSet>> {
        self.context_mut().labels_of_each(levels)
    }

    fn name(&self) -> String {
        self.context().name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.context().metadata_epoch()
    }
}

impl FetchSource for Source {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.context_mut().fetch(list, batch)
    }
}
