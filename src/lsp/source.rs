//! A source of metrics as an editor's server has it: opened when it is needed, left alone
//! for a while when it cannot be, and opened again when it has failed.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pmderive_runtime::context::Context;
use pmderive_runtime::locks::lock;
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::analysis::Analysis;
use super::definition_cache::Edition;
use crate::dialect::Language;
use crate::engine::{Backend, Definitions, Engine, Session};

/// How long a source that cannot be opened is left alone.
const PAUSE: Duration = Duration::from_secs(10);

/// What metrics are checked against.
pub enum Source {
    /// Metadata without values.
    Metadata(Box<dyn MetadataSource + Send>),
    /// A host, archives, or this machine.
    Context(Box<Context>),
}

/// Opens the source, or says why it cannot be opened.
pub type Opener = Box<dyn FnMut() -> Result<Source, SourceError> + Send>;

/// A source as the thread has it.
pub struct Asked {
    engine: Arc<Engine>,
    shared: Arc<Definitions>,
    opener: Option<SharedOpener>,
    open: Option<Opened>,
    /// When it was opened last.
    opened: Instant,
    /// When opening failed last.
    failed: Option<Instant>,
    trouble: Option<String>,
}

/// An opener that several languages share.
pub type SharedOpener = Arc<Mutex<Opener>>;

/// A source that is open.
pub enum Opened {
    /// Metadata only.
    Metadata(Box<dyn MetadataSource + Send>),
    /// With values.
    Session(Box<Session<Context>>),
}

impl Opened {
    /// Who knows the metadata.
    pub fn metadata(&mut self) -> &mut dyn MetadataSource {
        match self {
            Opened::Metadata(source) => &mut **source,
            Opened::Session(session) => session.source(),
        }
    }
}

impl Asked {
    /// Without a source if there is no `opener`.
    pub fn new(language: Language, opener: Option<SharedOpener>) -> Asked {
        let engine = Engine::of_this_machine(language, Backend::Interp).without_threads();
        Asked {
            engine: Arc::new(engine),
            shared: Arc::new(Definitions::new(language)),
            opener,
            open: None,
            opened: Instant::now(),
            failed: None,
            trouble: None,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The source, opened if it has to be. A failure is kept for
    /// [`Asked::take_trouble`].
    pub fn source(&mut self) -> Option<&mut Opened> {
        if self.open.is_none() && self.failed.is_none_or(|failed| failed.elapsed() > PAUSE) {
            let opened = {
                let mut opener = lock(self.opener.as_ref()?);
                opener()
            };
            match opened {
                Ok(source) => {
                    self.open = Some(self.opened(source));
                    self.opened = Instant::now();
                }
                Err(error) => self.fails(&error),
            }
        }
        self.open.as_mut()
    }

    fn opened(&self, source: Source) -> Opened {
        match source {
            Source::Metadata(source) => Opened::Metadata(source),
            Source::Context(context) => {
                let (engine, shared) = (Arc::clone(&self.engine), Arc::clone(&self.shared));
                Opened::Session(Box::new(Session::new(engine, shared, *context)))
            }
        }
    }

    /// Which source it is now; `None` if there is none.
    pub fn edition(&mut self) -> Option<Edition> {
        let epoch = self.source()?.metadata().metadata_epoch();
        Some(Edition { opened: self.opened, epoch })
    }

    /// Lets sessions see the definitions of a text.
    pub fn define(&self, analysis: &Analysis) {
        // Fails only if somebody typed two million definitions.
        let _ = self.shared.replace_all(analysis.registry.clone(), analysis.sources.clone());
    }

    /// Takes note that the source failed: it is opened again, but not at once.
    pub fn fails(&mut self, error: &SourceError) {
        self.open = None;
        self.failed = Some(Instant::now());
        self.trouble = Some(error.to_string());
    }

    /// Why the source cannot be used, if nobody was told yet.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}
