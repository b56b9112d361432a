//! The definitions of a process: shared by any number of sessions while
//! others are registered, replaced and taken away.
//!
//! Readers take a snapshot, which stays as it is, and never wait for a file
//! to be read or an expression to be parsed. Every change is published at once
//! and is seen by each session at its next operation.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use pmderive_runtime::model::{PmStatus, Pmid, TextKind};

use super::registry::{Registered, Registry};
use crate::diag::Diagnostics;
use crate::dialect::{Dialect, Language};
use crate::syntax::{ControlOption, PcpError};
use crate::text::{SourceId, SourceMap, SourceText};

/// Definitions that any number of sessions share while they change. Answers to
/// the global derived metrics of `pmRegisterDerived(3)`, but any number of
/// independent registries may exist.
#[derive(Debug)]
pub struct SharedRegistry {
    language: Language,
    published: RwLock<Snapshot>,
    /// Counts what was published.
    version: AtomicU64,
    /// Held by whoever makes the next snapshot.
    writer: Mutex<()>,
    /// The open sessions.
    members: Mutex<Vec<Weak<Member>>>,
}

/// All definitions at one time, and their texts.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The definitions.
    pub registry: Registry,
    /// What their spans and those of diagnostics point into.
    pub sources: SourceMap,
}

/// A definition was refused; everything is as it was.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What libpcp says of it (`pmDerivedErrStr(3)`), unless the mistake is
    /// one that libpcp reports elsewhere.
    pub error: Option<PcpError>,
    /// What we say of it.
    pub diagnostics: Diagnostics,
    /// What the diagnostics point into.
    pub sources: SourceMap,
}

impl Refused {
    /// The status that libpcp gives (`pmAddDerivedMetric(3)` and its kin).
    pub fn status(&self) -> PmStatus {
        PmStatus::BADDERIVE
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.diagnostics.iter().next() {
            Some(first) => f.write_str(&first.message),
            None => self.status().fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// What others may know and do of a session.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Identifiers of global metrics that were given when it looked last.
    pub known: AtomicU32,
    /// Its own definitions.
    pub locals: Mutex<Vec<Local>>,
    /// Counts changes of `locals`.
    pub version: AtomicU64,
}

/// A definition that only one session has.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub definition: Arc<Registered>,
    pub source: (SourceId, SourceText),
    pub texts: Vec<(TextKind, Arc<str>)>,
}

impl Member {
    /// Its definitions, for as long as the guard lives.
    pub fn locals(&self) -> MutexGuard<'_, Vec<Local>> {
        self.locals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that its definitions have changed.
    pub fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    fn remove(&self, name: &str) -> bool {
        let mut locals = self.locals();
        let before = locals.len();
        locals.retain(|local| *local.definition.name != *name);
        let removed = locals.len() < before;
        if removed {
            self.changed();
        }
        removed
    }
}

impl From<Registry> for SharedRegistry {
    /// With the definitions of a registry whose texts are kept elsewhere.
    fn from(registry: Registry) -> SharedRegistry {
        SharedRegistry::with(registry, SourceMap::default())
    }
}

impl SharedRegistry {
    /// Without definitions.
    pub fn new(language: impl Into<Language>) -> SharedRegistry {
        SharedRegistry::with(Registry::new(language), SourceMap::default())
    }

    /// With the definitions of a registry, whose texts are in `sources`.
    pub fn with(registry: Registry, sources: SourceMap) -> SharedRegistry {
        SharedRegistry {
            language: registry.language(),
            published: RwLock::new(Snapshot { registry, sources }),
            version: AtomicU64::new(0),
            writer: Mutex::default(),
            members: Mutex::default(),
        }
    }

    /// The language of the definitions.
    pub fn language(&self) -> Language {
        self.language
    }

    /// All definitions as of now. It is cheap, and nothing changes in it.
    pub fn snapshot(&self) -> Snapshot {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes whenever a definition, a text or an option does.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Registers one metric (`pmRegisterDerived(3)`).
    ///
    /// # Errors
    /// The name or the expression is wrong, the name is taken, or there are as
    /// many metrics as are allowed.
    pub fn register(&self, name: &str, text: &str) -> Result<Pmid, Refused> {
        self.define(name, text, Registry::register)
    }

    /// Registers a metric in place of the one that the name has, if any; see
    /// [`Registry::replace`]. No session ever sees a moment without either of
    /// them.
    ///
    /// # Errors
    /// As [`SharedRegistry::register`]; then the former definition stays.
    pub fn replace(&self, name: &str, text: &str) -> Result<Pmid, Refused> {
        self.define(name, text, Registry::replace)
    }

    fn define(
        &self,
        name: &str,
        text: &str,
        enter: impl FnOnce(
            &mut Registry,
            &str,
            SourceId,
            &SourceMap,
            &mut Diagnostics,
        ) -> Result<(), PcpError>,
    ) -> Result<Pmid, Refused> {
        self.change(|next| {
            let mut sources = next.sources.clone();
            let source = sources.add(name, text);
            let mut diagnostics = Diagnostics::default();
            let former = next.registry.definition(name).cloned();
            match enter(&mut next.registry, name, source, &sources, &mut diagnostics) {
                Ok(()) => {
                    next.sources = sources;
                    if let Some(former) = former {
                        next.forget_text(&former);
                    }
                    let registered = next.registry.definition(name);
                    Ok(registered.and_then(|one| one.pmid).unwrap_or(Pmid::NULL))
                }
                Err(error) => Err(Refused { error: Some(error), diagnostics, sources }),
            }
        })
    }

    /// Registers what the files of a `:`-separated list define
    /// (`pmLoadDerivedConfig(3)`); gives the number of metrics registered.
    /// What is wrong is in the diagnostics.
    pub fn load(&self, paths: &str) -> (usize, Diagnostics) {
        let Ok(loaded) = self.change(|Snapshot { registry, sources }| {
            let mut diagnostics = Diagnostics::default();
            Ok::<_, Infallible>((registry.load(paths, sources, &mut diagnostics), diagnostics))
        });
        loaded
    }

    /// Registers the definitions that every client of PCP on this machine has,
    /// and sets the options that the environment asks for; see
    /// [`Registry::load_system`] and [`Registry::set_system_controls`].
    pub fn load_system(&self) -> (usize, Diagnostics) {
        let Ok(loaded) = self.change(|Snapshot { registry, sources }| {
            let mut diagnostics = Diagnostics::default();
            registry.set_system_controls(sources, &mut diagnostics);
            let registered = registry.load_system(sources, &mut diagnostics);
            Ok::<_, Infallible>((registered, diagnostics))
        });
        loaded
    }

    /// Takes a metric away (`pmUnregisterDerived(3)`), and the metrics that
    /// sessions added under that name. Gives the number of open sessions that
    /// knew the metric.
    ///
    /// # Errors
    /// `PM_ERR_NAME` if there was none.
    pub fn unregister(&self, name: &str) -> Result<usize, PmStatus> {
        self.change(|next| {
            let mut affected = 0;
            let mut found = false;
            for member in self.members().iter().filter_map(Weak::upgrade) {
                let known = member.known.load(Ordering::Acquire);
                let knew = next.registry.defined_among(name, known);
                let had = member.remove(name);
                affected += usize::from(knew || had);
                found |= had;
            }
            if let Some(global) = next.registry.unregister(name) {
                next.forget_text(&global);
                found = true;
            }
            if found { Ok(affected) } else { Err(PmStatus::NAME) }
        })
    }

    /// Gives a metric one of its help texts (`pmAddDerivedText(3)`).
    ///
    /// # Errors
    /// `PM_ERR_NAME` if there is no such metric, `PM_ERR_TEXT` if it has the
    /// text already.
    pub fn set_text(&self, name: &str, kind: TextKind, text: &str) -> Result<(), PmStatus> {
        self.change(|next| next.registry.set_text(name, kind, text))
    }

    /// Value of an option (`pmGetDerivedControl(3)`).
    pub fn control(&self, option: ControlOption) -> i32 {
        self.snapshot().registry.control(option)
    }

    /// Gives an option a value (`pmSetDerivedControl(3)`).
    ///
    /// # Errors
    /// As [`Registry::set_control`].
    pub fn set_control(&self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        self.change(|next| next.registry.set_control(option, value))
    }

    /// Lets a new session take part.
    pub(super) fn join(&self, member: &Arc<Member>) {
        if self.language.dialect == Dialect::Pcp6_0 {
            // There the first context makes the anonymous metrics appear.
            let Ok(()) = self.change(|next| {
                next.registry.define_anonymous();
                Ok::<_, Infallible>(())
            });
        }
        let mut members = self.members();
        if members.len() == members.capacity() {
            members.retain(|one| one.strong_count() > 0);
        }
        members.push(Arc::downgrade(member));
    }

    fn members(&self) -> MutexGuard<'_, Vec<Weak<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next snapshot and publishes it, unless the change fails.
    fn change<T, E>(&self, change: impl FnOnce(&mut Snapshot) -> Result<T, E>) -> Result<T, E> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = self.snapshot();
        let outcome = change(&mut next)?;
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *published, next);
        self.version.fetch_add(1, Ordering::Release);
        drop(published);
        // Nobody needs to wait while it is taken apart.
        drop(before);
        Ok(outcome)
    }
}

impl Snapshot {
    /// Drops the text of a definition that had one to itself.
    fn forget_text(&mut self, registered: &Registered) {
        let span = registered.name_span;
        let length = self.sources.get(span.source).text.len();
        if span.start == 0 && u32::try_from(length).is_ok_and(|length| length == span.end) {
            self.sources.forget(span.source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_shared_between_threads() {
        fn check<T: Send + Sync>() {}
        check::<SharedRegistry>();
        check::<Snapshot>();
    }
}
