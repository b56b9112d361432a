//! An open source of any kind, for callers that treat all kinds alike.

#[cfg(feature = "archive")]
use std::path::Path;

#[cfg(feature = "archive")]
use pmderive_archive::archive::ArchiveContext;
#[cfg(feature = "live")]
use pmderive_client::context::{HostContext, HostSpec};
use pmderive_core::model::{InstanceProfile, Timestamp};
use pmderive_core::result::{MetricValues, ResultBatch};
use pmderive_core::source::{
    Answer, FetchEvents, FetchList, FetchSource, MetadataSource, Mode, OneAnswer, Question,
    SourceError,
};
#[cfg(feature = "local")]
use pmderive_local::LocalContext;
use pmderive_system::time::TimeBounds;

/// An open context (`pmNewContext(3)`). There is no current context: the owner
/// passes it on, and dropping it closes it (`pmDestroyContext(3)`).
///
/// ```no_run
/// use pmderive_runtime::context::Context;
/// use pmderive_runtime::source::MetadataSource;
///
/// # #[cfg(all(feature = "archive", feature = "live"))]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut source = match std::env::args().nth(1) {
///     Some(archive) => Context::archive(archive)?,
///     None => Context::host(&"pcp://web17".parse()?)?,
/// };
/// for name in source.traverse("disk")? {
///     println!("{name}");
/// }
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "archive", feature = "live")))]
/// # fn main() {}
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Context {
    /// The pmcd of a host (`PM_CONTEXT_HOST`).
    #[cfg(feature = "live")]
    Host(Box<HostContext>),
    /// An archive (`PM_CONTEXT_ARCHIVE`).
    #[cfg(feature = "archive")]
    Archive(Box<ArchiveContext>),
    /// This process (`PM_CONTEXT_LOCAL`).
    #[cfg(feature = "local")]
    Local(Box<LocalContext>),
}

impl Context {
    /// Connects to the pmcd of a host, as the specification and the
    /// environment say.
    ///
    /// # Errors
    /// As for [`HostContext::open`].
    #[cfg(feature = "live")]
    pub fn host(spec: &HostSpec) -> Result<Context, SourceError> {
        Ok(Context::Host(Box::new(HostContext::open(spec)?)))
    }

    /// Opens an archive, positioned at its start.
    ///
    /// # Errors
    /// As for [`ArchiveContext::open`].
    #[cfg(feature = "archive")]
    pub fn archive(path: impl AsRef<Path>) -> Result<Context, SourceError> {
        Ok(Context::Archive(Box::new(ArchiveContext::open(path)?)))
    }

    /// The metrics of this machine, without pmcd.
    #[cfg(feature = "local")]
    pub fn local() -> Context {
        Context::Local(Box::default())
    }

    /// Another context for the same metrics, with the profile of this one. A
    /// context of an archive also keeps its mode and position
    /// (`pmDupContext(3)`).
    ///
    /// # Errors
    /// The host refuses another connection, the archive cannot be opened again,
    /// or an agent of this process cannot be duplicated.
    pub fn duplicate(&self) -> Result<Context, SourceError> {
        Ok(match self {
            #[cfg(feature = "live")]
            Context::Host(context) => Context::Host(Box::new(context.duplicate()?)),
            #[cfg(feature = "archive")]
            Context::Archive(context) => Context::Archive(Box::new(context.duplicate()?)),
            #[cfg(feature = "local")]
            Context::Local(context) => Context::Local(Box::new(context.duplicate()?)),
        })
    }

    /// The times between which there are values. For an archive: from its
    /// label's start to its last record.
    ///
    /// # Errors
    /// The end of the archive cannot be found.
    pub fn time_bounds(&mut self) -> Result<TimeBounds, SourceError> {
        match self {
            #[cfg(feature = "archive")]
            Context::Archive(archive) => {
                let last = Some(archive.end_time()?);
                Ok(TimeBounds { first: archive.label().start, last })
            }
            #[cfg(any(feature = "live", feature = "local"))]
            _ => Ok(TimeBounds::live()),
        }
    }

    fn source(&self) -> &dyn FetchSource {
        match self {
            #[cfg(feature = "live")]
            Context::Host(context) => &**context,
            #[cfg(feature = "archive")]
            Context::Archive(context) => &**context,
            #[cfg(feature = "local")]
            Context::Local(context) => &**context,
        }
    }

    fn source_mut(&mut self) -> &mut dyn FetchSource {
        match self {
            #[cfg(feature = "live")]
            Context::Host(context) => &mut **context,
            #[cfg(feature = "archive")]
            Context::Archive(context) => &mut **context,
            #[cfg(feature = "local")]
            Context::Local(context) => &mut **context,
        }
    }
}

impl MetadataSource for Context {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        self.source_mut().ask(questions, answers)
    }

    fn name(&self) -> String {
        self.source().name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.source().metadata_epoch()
    }
}

impl FetchSource for Context {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.source_mut().fetch(list, batch)
    }

    fn set_profile(&mut self, profile: &InstanceProfile) -> Result<(), SourceError> {
        self.source_mut().set_profile(profile)
    }

    fn set_mode(&mut self, mode: Mode, when: Option<Timestamp>) -> Result<(), SourceError> {
        self.source_mut().set_mode(mode, when)
    }

    fn store(&mut self, values: &[MetricValues]) -> OneAnswer<()> {
        self.source_mut().store(values)
    }
}
