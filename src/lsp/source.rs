//! A source of metrics for an editor's server. It is opened on first use. If it cannot be
//! opened, it is tried again after a pause, and so is a source that failed.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pmderive_runtime::context::Context;
use pmderive_runtime::locks::lock;
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::analysis::Analysis;
use super::definition_cache::Edition;
use crate::dialect::Language;
use crate::engine::{Backend, Definitions, Engine, Session};

/// Pause after a source could not be opened.
pub const PAUSE: Duration = Duration::from_secs(10);

/// A source to check metrics against.
pub enum Source {
    /// Metadata without values.
    Metadata(Box<dyn MetadataSource + Send>),
    /// A host, archives, or this machine.
    Context(Box<Context>),
}

/// The function that opens the source.
pub type Opener = Box<dyn FnMut() -> Result<Source, SourceError> + Send>;

/// Handle of a source, in the thread that asks it.
pub struct SourceHandle {
    engine: Arc<Engine>,
    shared: Arc<Definitions>,
    opener: Option<SharedOpener>,
    open: Option<OpenSource>,
    /// Time of the last opening.
    opened: Instant,
    /// Time of the last failure.
    failed: Option<Instant>,
    trouble: Option<String>,
}

/// An opener that several languages share.
pub type SharedOpener = Arc<Mutex<Opener>>;

/// An open source.
pub enum OpenSource {
    /// Metadata only.
    Metadata(Box<dyn MetadataSource + Send>),
    /// With values.
    Session(Box<Session<Context>>),
}

impl OpenSource {
    /// The source of metadata.
    pub fn metadata(&mut self) -> &mut dyn MetadataSource {
        match self {
            OpenSource::Metadata(source) => &mut **source,
            OpenSource::Session(session) => session.source(),
        }
    }
}

impl SourceHandle {
    /// A handle; without an `opener` it has no source.
    pub fn new(language: Language, opener: Option<SharedOpener>) -> SourceHandle {
        let engine = Engine::of_this_machine(language, Backend::Interp);
        let engine = engine.with_jobs_run_by(|job| job());
        SourceHandle {
            engine: Arc::new(engine),
            shared: Arc::new(Definitions::new(language)),
            opener,
            open: None,
            opened: Instant::now(),
            failed: None,
            trouble: None,
        }
    }

    /// The source, opened if necessary. A failure is kept for [`SourceHandle::take_trouble`].
    pub fn source(&mut self) -> Option<&mut OpenSource> {
        if self.open.is_none() && self.failed.is_none_or(|failed| failed.elapsed() > PAUSE) {
            let opened = {
                let mut opener = lock(self.opener.as_ref()?);
                opener()
            };
            match opened {
                Ok(source) => {
                    self.open = Some(self.open_source(source));
                    self.opened = Instant::now();
                }
                Err(error) => self.fails(&error),
            }
        }
        self.open.as_mut()
    }

    /// The answer of the source to a question; `None` without a source, or if it fails.
    pub fn ask<T>(
        &mut self,
        question: impl FnOnce(&Arc<Engine>, &mut OpenSource) -> Result<T, SourceError>,
    ) -> Option<T> {
        let engine = Arc::clone(&self.engine);
        let answer = question(&engine, self.source()?);
        answer.inspect_err(|error| self.fails(error)).ok()
    }

    fn open_source(&self, source: Source) -> OpenSource {
        match source {
            Source::Metadata(source) => OpenSource::Metadata(source),
            Source::Context(context) => {
                let (engine, shared) = (Arc::clone(&self.engine), Arc::clone(&self.shared));
                OpenSource::Session(Box::new(
                    Session::new(engine, shared, *context).expect("one language"),
                ))
            }
        }
    }

    /// True if there is a source, open or not.
    pub fn has_source(&self) -> bool {
        self.opener.is_some()
    }

    /// The present edition of the source; `None` without a source.
    pub fn edition(&mut self) -> Option<Edition> {
        let epoch = self.source()?.metadata().metadata_epoch();
        Some(Edition { opened: self.opened, epoch })
    }

    /// Makes the definitions of a text visible to sessions.
    pub fn define(&self, analysis: &Analysis) {
        // It fails only if a user typed two million definitions.
        let _ = self.shared.replace_all(analysis.registry.clone(), analysis.sources.clone());
    }

    /// Notes that the source failed: it is opened again after a pause.
    fn fails(&mut self, error: &SourceError) {
        self.open = None;
        self.failed = Some(Instant::now());
        self.trouble = Some(error.to_string());
    }

    /// The trouble with the source, if it was not yet reported.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}
