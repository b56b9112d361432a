//! The definitions of a process. Any number of sessions share them while other
//! threads register, replace and remove definitions.
//!
//! Readers take a snapshot, which does not change. They never wait while a file
//! is read or an expression is parsed. Each change is published at once, and
//! each session sees it at its next operation. The choice of a session stays as it is until the
//! session chooses again.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

use pmderive_runtime::locks::{lock, read, write};
use pmderive_runtime::model::{PmStatus, Pmid, TextKind};

use super::registry::{Registered, Registry};
use crate::diag::{Diagnostic, Diagnostics, Severity, printable};
use crate::dialect::{Dialect, Language};
use crate::syntax::{ControlOption, PcpError};
use crate::text::{SourceId, SourceMap, SourceText, Span};

/// Definitions that any number of sessions share while they change. They
/// correspond to the global derived metrics of `pmRegisterDerived(3)`, but any
/// number of independent registries may exist.
///
/// ```
/// use pmderive::Definitions;
///
/// let definitions = Definitions::default();
/// definitions.register("my.reads", "rate(disk.all.read)")?;
/// // A snapshot does not change when the definitions do.
/// let before = definitions.snapshot();
/// definitions.register("my.writes", "rate(disk.all.write)")?;
/// assert!(before.registry.get("my.writes").is_none());
/// assert!(definitions.snapshot().registry.get("my.writes").is_some());
/// // A refused definition changes nothing.
/// let refused = definitions.replace("my.reads", "rate(").unwrap_err();
/// assert!(refused.diagnostics.errors() > 0);
/// assert!(definitions.snapshot().registry.get("my.reads").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Definitions {
    language: Language,
    published: RwLock<Snapshot>,
    /// Number of publications.
    version: AtomicU64,
    /// Locked while the next snapshot is made.
    writer: Mutex<()>,
    /// The open sessions.
    members: Mutex<Vec<Weak<Member>>>,
}

/// All definitions at one time, with their texts.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The definitions.
    pub registry: Registry,
    /// The texts that spans of definitions and diagnostics point into. A later
    /// snapshot may lack some of them: keep the one that was compiled.
    pub sources: SourceMap,
}

/// Definitions that were read from texts. The right ones are registered.
///
/// ```
/// use pmderive::Definitions;
///
/// let definitions = Definitions::default();
/// let loaded = definitions.add_text("built in", "my.sum = a.b + a.c\nmy.none = (a.b\n");
/// assert_eq!(loaded.registered, 1);
/// for mistake in loaded.diagnostics.iter() {
///     eprintln!("{}", mistake.in_line(&loaded.sources));
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// Number of registered metrics.
    pub registered: usize,
    /// The mistakes in the texts.
    pub diagnostics: Diagnostics,
    /// The texts that the diagnostics point into.
    pub sources: SourceMap,
}

/// The diagnostics in one line each, without the texts.
impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Loaded");
        shown.field("registered", &self.registered);
        shown.field("diagnostics", &InLines(&self.diagnostics, &self.sources));
        shown.finish_non_exhaustive()
    }
}

/// Diagnostics, each as [`Diagnostic::in_line`] shows it.
struct InLines<'d>(&'d Diagnostics, &'d SourceMap);

impl fmt::Debug for InLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InLines(diagnostics, sources) = self;
        let lines = diagnostics.iter().map(|one| one.in_line(sources).to_string());
        f.debug_list().entries(lines).finish()
    }
}

/// A refused definition. Nothing has changed.
///
/// Its `Debug`, which Rust prints if `main` returns the error, has a line for each
/// diagnostic.
///
/// ```
/// use pmderive::Definitions;
///
/// let refused = Definitions::default().register("my.load", "sum(kernel.all.load").unwrap_err();
/// assert_eq!(refused.to_string(), "my.load: byte 19: this `(` is never closed");
/// assert!(format!("{refused:?}").contains("my.load:1:20: error[PMD"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Refused {
    /// libpcp's words for the mistake (`pmDerivedErrStr(3)`). `None` if libpcp
    /// reports the mistake elsewhere.
    pub error: Option<PcpError>,
    /// Our own diagnostics.
    pub diagnostics: Diagnostics,
    /// The texts that the diagnostics point into.
    pub sources: SourceMap,
}

impl Refused {
    /// The status that libpcp returns (`pmAddDerivedMetric(3)` and its kin).
    pub fn status(&self) -> PmStatus {
        PmStatus::BADDERIVE
    }
}

/// libpcp's words, and the diagnostics in one line each, without the texts.
impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Refused");
        shown.field("diagnostics", &InLines(&self.diagnostics, &self.sources));
        shown.field("error", &self.error).finish_non_exhaustive()
    }
}

/// The name of the text, the place of the first mistake unless it is the whole
/// text, and its message: one line that is safe to show. The place is a number of bytes
/// from 0.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
        let Some(first) = self.diagnostics.iter().find(is_error) else {
            return self.status().fmt(f);
        };
        let Span { source, start, end } = first.span;
        let SourceText { name, text, .. } = self.sources.get(source);
        let mut line = String::new();
        if !name.is_empty() {
            line = format!("{name}: ");
        }
        if (start, end as usize) != (0, text.len()) {
            line += &format!("byte {}: ", self.sources.byte_offset(source, start));
        }
        f.write_str(&printable(&(line + &first.message)))
    }
}

impl std::error::Error for Refused {}

/// A refused change of definitions. Nothing has changed.
///
/// ```
/// use pmderive::Definitions;
/// use pmderive::runtime::model::PmStatus;
///
/// let error = Definitions::default().unregister("shop.gone").unwrap_err();
/// assert_eq!(error.to_string(), "shop.gone: there is no such derived metric");
/// assert_eq!(error.status(), PmStatus::NAME);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no metric with that name.
    #[error("{}: there is no such derived metric", printable(name))]
    NoSuchMetric {
        /// The name.
        name: Box<str>,
    },
    /// The metric already has a help text of that kind.
    #[error("{}: the metric already has such a help text", printable(name))]
    HasText {
        /// The metric's name.
        name: Box<str>,
    },
    /// The new definitions are in another language.
    #[error("these are definitions in another language: {given} in place of {wanted}")]
    Language {
        /// The language of the new definitions.
        given: Language,
        /// The language of the present ones.
        wanted: Language,
    },
    /// There are not enough identifiers for the new definitions.
    #[error("there are not enough identifiers for these definitions")]
    TooMany,
}

impl ChangeError {
    /// No metric has this name.
    pub(super) fn no_such(name: &str) -> ChangeError {
        ChangeError::NoSuchMetric { name: name.into() }
    }

    /// The metric has such a text.
    pub(super) fn has_text(name: &str) -> ChangeError {
        ChangeError::HasText { name: name.into() }
    }

    /// The status that libpcp returns for it.
    pub fn status(&self) -> PmStatus {
        match self {
            ChangeError::NoSuchMetric { .. } => PmStatus::NAME,
            ChangeError::HasText { .. } => PmStatus::TEXT,
            ChangeError::Language { .. } => PmStatus::ARG,
            ChangeError::TooMany => PmStatus::BADDERIVE,
        }
    }
}

/// The part of a session that other sessions may read and change.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Number of global identifiers at the session's last refresh.
    pub known: AtomicU32,
    /// The session's own definitions.
    pub locals: Mutex<Vec<Local>>,
    /// Number of changes of `locals`.
    pub version: AtomicU64,
}

/// A definition of a single session.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub definition: Arc<Registered>,
    pub source: (SourceId, SourceText),
    pub texts: Vec<(TextKind, Arc<str>)>,
}

impl Member {
    /// The session's own definitions, locked until the guard is dropped.
    pub fn locals(&self) -> MutexGuard<'_, Vec<Local>> {
        lock(&self.locals)
    }

    /// Records a change of the definitions.
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

impl From<Registry> for Definitions {
    /// A registry's definitions; the caller keeps their texts.
    fn from(registry: Registry) -> Definitions {
        Definitions::with(registry, SourceMap::default())
    }
}

/// No definitions, in the default dialect without extensions.
impl Default for Definitions {
    fn default() -> Definitions {
        Definitions::new(Language::default())
    }
}

impl Definitions {
    /// No definitions, in a language.
    pub fn new(language: impl Into<Language>) -> Definitions {
        Definitions::with(Registry::new(language), SourceMap::default())
    }

    /// A registry's definitions, with their texts in `sources`. The caller keeps
    /// the texts that `sources` lacks.
    pub fn with(registry: Registry, sources: SourceMap) -> Definitions {
        Definitions {
            language: registry.language(),
            published: RwLock::new(Snapshot::of(registry, sources)),
            version: AtomicU64::new(0),
            writer: Mutex::default(),
            members: Mutex::default(),
        }
    }

    /// The language of the definitions.
    pub fn language(&self) -> Language {
        self.language
    }

    /// All current definitions. The snapshot is cheap and does not change.
    pub fn snapshot(&self) -> Snapshot {
        read(&self.published).clone()
    }

    /// A number that changes whenever a definition, a text or an option
    /// changes.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Registers one metric (`pmRegisterDerived(3)`).
    ///
    /// # Errors
    /// The name or the expression is wrong, the name is taken, or the limit is
    /// reached.
    pub fn register(&self, name: &str, text: &str) -> Result<Pmid, Refused> {
        self.define(name, text, Registry::register)
    }

    /// Registers a metric in place of an earlier one with the same name, if there is
    /// one; see [`Registry::replace`]. Every session always sees one of the two. The
    /// new metric has a new identifier, so lists of fetches and entries of fetch groups with
    /// the earlier one have `PM_ERR_PMID` from then on: make them again. There are about two
    /// million identifiers, and each needs a little memory for ever.
    ///
    /// # Errors
    /// As [`Definitions::register`]. The earlier definition then stays.
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

    /// Registers the definitions in the files of a `:`-separated list
    /// (`pmLoadDerivedConfig(3)`). A directory stands for all files in it and
    /// below it.
    pub fn load(&self, paths: &str) -> Loaded {
        self.load_by(|registry, sources, found| registry.load(paths, sources, found))
    }

    /// Registers the definitions in a text that has the form of a file. Its
    /// mistakes are in `name`.
    pub fn add_text(&self, name: &str, text: &str) -> Loaded {
        self.load_by(|registry, sources, found| {
            let source = sources.add(name, text);
            registry.add_text(source, sources, found)
        })
    }

    /// Registers the definitions that every client of PCP on this machine has,
    /// and sets the options in the environment; see [`Registry::load_system`]
    /// and [`Registry::set_system_controls`].
    pub fn load_system(&self) -> Loaded {
        self.load_by(|registry, sources, found| {
            registry.set_system_controls(sources, found);
            registry.load_system(sources, found)
        })
    }

    fn load_by(
        &self,
        load: impl FnOnce(&mut Registry, &mut SourceMap, &mut Diagnostics) -> usize,
    ) -> Loaded {
        let Ok(loaded) = self.change(|Snapshot { registry, sources }| {
            let mut diagnostics = Diagnostics::default();
            let registered = load(registry, sources, &mut diagnostics);
            let sources = sources.clone();
            Ok::<_, Infallible>(Loaded { registered, diagnostics, sources })
        });
        loaded
    }

    /// Replaces all definitions and their texts. A definition with the same name and
    /// text as before keeps its identifier. The others get new ones.
    ///
    /// # Errors
    /// The registry is of another language, or there are not enough identifiers. Nothing has
    /// changed.
    pub fn replace_all(&self, registry: Registry, sources: SourceMap) -> Result<(), ChangeError> {
        let (given, wanted) = (registry.language(), self.language);
        if given != wanted {
            return Err(ChangeError::Language { given, wanted });
        }
        self.change(|next| {
            let registry = registry.in_place_of(&next.registry).ok_or(ChangeError::TooMany)?;
            *next = Snapshot::of(registry, sources);
            Ok(())
        })
    }

    /// Removes a metric (`pmUnregisterDerived(3)`), and the metrics that
    /// sessions added under that name. Returns the number of open sessions that
    /// knew the metric.
    ///
    /// # Errors
    /// There was no such metric.
    pub fn unregister(&self, name: &str) -> Result<usize, ChangeError> {
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
            if found { Ok(affected) } else { Err(ChangeError::no_such(name)) }
        })
    }

    /// Sets a help text of a metric (`pmAddDerivedText(3)`).
    ///
    /// # Errors
    /// There is no such metric, or it already has the text.
    pub fn set_text(&self, name: &str, kind: TextKind, text: &str) -> Result<(), ChangeError> {
        self.change(|next| next.registry.set_text(name, kind, text)).map_err(
            |status| match status {
                PmStatus::TEXT => ChangeError::has_text(name),
                _ => ChangeError::no_such(name),
            },
        )
    }

    /// Value of an option (`pmGetDerivedControl(3)`).
    pub fn control(&self, option: ControlOption) -> i32 {
        self.snapshot().registry.control(option)
    }

    /// Sets an option (`pmSetDerivedControl(3)`).
    ///
    /// # Errors
    /// As [`Registry::set_control`].
    pub fn set_control(&self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        self.change(|next| next.registry.set_control(option, value))
    }

    /// Adds a new session.
    pub(super) fn join(&self, member: &Arc<Member>) {
        if self.language.dialect == Dialect::Pcp6_0 {
            // In version 6, the first context makes the anonymous metrics
            // appear.
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
        lock(&self.members)
    }

    /// Makes the next snapshot and publishes it, unless the change fails.
    fn change<T, E>(&self, change: impl FnOnce(&mut Snapshot) -> Result<T, E>) -> Result<T, E> {
        let _writer = lock(&self.writer);
        let mut next = self.snapshot();
        let outcome = change(&mut next)?;
        let mut published = write(&self.published);
        let before = std::mem::replace(&mut *published, next);
        self.version.fetch_add(1, Ordering::Release);
        drop(published);
        // Freed after the lock, because other callers wait for it.
        drop(before);
        Ok(outcome)
    }
}

impl Snapshot {
    fn of(registry: Registry, mut sources: SourceMap) -> Snapshot {
        let ids = registry.definitions().iter().map(|one| one.name_span.source);
        if let Some(last) = ids.max() {
            sources.reserve(last);
        }
        Snapshot { registry, sources }
    }

    /// Drops the text of a definition that shares the text with no other.
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
        check::<Definitions>();
        check::<Snapshot>();
    }
}
