//! Definitions by name, as callers registered them, independent of any source.
//!
//! A registry is a value. Clones are cheap and do not change, so a context can use one while
//! other threads register more.

mod reading;
mod refusals;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid, TextKind};
use pmderive_runtime::program::DefinitionKey;

use super::anonymous::{ANONYMOUS, Anonymous, DESC};
use super::controls::{Controls, SetBy};
use super::identifiers;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::layers::Layers;
use crate::syntax::ast::Expr;
#[cfg(feature = "fleet")]
use crate::syntax::print_expr;
use crate::syntax::{ControlOption, Earlier, PcpError, counted};
use crate::text::Span;
pub(super) use refusals::{duplicate, no_room};

/// A definition whose text has no mistakes.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Name; for an expression without a name, its text.
    pub name: Arc<str>,
    /// Place of the name; for an expression without a name, of the whole
    /// expression.
    pub name_span: Span,
    /// False for an expression without a name.
    pub is_named: bool,
    /// The expression.
    pub expr: Arc<Expr>,
    /// Key from name and text. Previous samples are stored under it.
    pub key: DefinitionKey,
    /// Identifier of the metric. An expression without a name has none.
    pub pmid: Option<Pmid>,
}

#[cfg(feature = "fleet")]
impl Registered {
    /// An expression without a name that is a part of another one.
    pub(crate) fn unnamed(expr: Expr, span: Span) -> Registered {
        let text = print_expr(&expr);
        let key = key_of("", &text);
        let (name, expr) = (text.into(), Arc::new(expr));
        Registered { name, name_span: span, is_named: false, expr, key, pmid: None }
    }
}

/// Definitions in the order of registration, as a value: a clone is cheap and
/// does not change. [`Definitions`](super::Definitions) shares one while
/// it changes.
///
/// ```
/// use pmderive::{Diagnostics, Dialect, Registry, SourceMap};
///
/// let mut registry = Registry::new(Dialect::Fixed);
/// let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
/// let text = "my.reads = rate(disk.all.read)\nmy.writes = rate(disk.all.write)\n";
/// let source = sources.add("my.conf", text);
/// registry.add_text(source, &sources, &mut diagnostics);
/// assert!(diagnostics.is_empty());
/// assert!(registry.get("my.writes").is_some_and(|definition| definition.is_named));
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    language: Language,
    /// Definitions by name; `None` for a name that was unregistered.
    by_name: Layers<Arc<str>, Option<Arc<Registered>>>,
    by_pmid: Layers<Pmid, Option<Arc<Registered>>>,
    texts: Layers<(Pmid, TextKind), Arc<str>>,
    /// Names of definitions in files whose texts have mistakes.
    refused: Layers<Arc<str>, ()>,
    controls: Controls,
    /// Number of identifiers of global metrics that were assigned so far.
    given: u32,
    /// The value of `given` when the anonymous metrics got their identifiers.
    anonymous: Option<u32>,
    /// Number of global metrics.
    count: usize,
    /// Lists that are made on demand. Clones share them.
    lists: Arc<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// In the order of registration.
    ordered: OnceLock<Vec<Arc<Registered>>>,
    /// By name.
    sorted: OnceLock<Vec<Arc<Registered>>>,
}

impl Registry {
    /// A registry without definitions.
    pub fn new(language: impl Into<Language>) -> Registry {
        let language = language.into();
        let mut registry = Registry {
            language,
            by_name: Layers::default(),
            by_pmid: Layers::default(),
            texts: Layers::default(),
            refused: Layers::default(),
            controls: Controls::default(),
            given: 0,
            anonymous: None,
            count: 0,
            lists: Arc::default(),
        };
        if language.dialect.is_version_7() {
            registry.define_anonymous();
        }
        registry
    }

    /// The language of the definitions.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Assigns identifiers to the anonymous metrics, if they have none. Version
    /// 7 does so first. Version 6 does so when definitions are loaded or a
    /// context is opened.
    pub(crate) fn define_anonymous(&mut self) {
        if self.anonymous.is_none() {
            self.anonymous = Some(self.given);
            self.given += ANONYMOUS.len() as u32;
        }
    }

    /// The anonymous metrics with their identifiers.
    pub(crate) fn anonymous(&self) -> impl Iterator<Item = (Pmid, Anonymous)> {
        let pmids = self.anonymous.into_iter().flat_map(|first| (first..).map(identifiers::global));
        pmids.flatten().zip(ANONYMOUS)
    }

    /// The anonymous metric with an identifier.
    pub(super) fn anonymous_of(&self, pmid: Pmid) -> Option<Anonymous> {
        self.anonymous().find(|(known, _)| *known == pmid).map(|(_, one)| one)
    }

    /// Adds a global definition with a free name and assigns an identifier.
    fn insert(
        &mut self,
        registered: Registered,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), PcpError> {
        if let Some(limit) = self.controls.limit(ControlOption::GlobalLimit)
            && self.count >= limit
        {
            let allowed = counted(limit, "definition");
            let message = format!("GLOBAL_LIMIT allows no more than {allowed}");
            let help = "raise the limit with a `#control` line, or leave definitions out";
            let words = "Too many global derived metrics";
            return Err(no_room(&registered, message, help, words, diagnostics));
        }
        let Some(pmid) = identifiers::global(self.given) else {
            let message = "there are no more identifiers for derived metrics".to_owned();
            let help = "identifiers are not used again; restart the program";
            let words = "global PMID space exhausted";
            return Err(no_room(&registered, message, help, words, diagnostics));
        };
        self.given += 1;
        self.count += 1;
        self.enter(Arc::new(Registered { pmid: Some(pmid), ..registered }));
        Ok(())
    }

    /// Copies the definitions of another registry, and the names of its refused
    /// ones. Names that are defined here keep their definitions.
    #[cfg(feature = "lsp")]
    pub(crate) fn adopt(&mut self, other: &Registry) {
        for one in other.definitions() {
            if !self.defines(&one.name) {
                // The registry that defines it has reported definitions beyond the limit.
                let _ = self.insert(Registered::clone(one), &mut Diagnostics::default());
            }
        }
        for (name, ()) in other.refused.iter() {
            self.refused.insert(Arc::clone(name), ());
        }
    }

    /// The registry in place of an earlier one. A definition with the same name and
    /// text as there has the same identifier, and the others have new ones. `None`
    /// if there are not enough identifiers.
    pub(super) fn in_place_of(mut self, former: &Registry) -> Option<Registry> {
        let definitions = self.definitions().to_vec();
        let texts = std::mem::take(&mut self.texts);
        let has_anonymous = self.anonymous.is_some();
        self.by_pmid = Layers::default();
        (self.given, self.anonymous) = (former.given, former.anonymous);
        if has_anonymous {
            self.define_anonymous();
        }
        for one in definitions {
            let same = former.definition(&one.name).filter(|former| former.key == one.key);
            let pmid = match same.and_then(|same| same.pmid) {
                Some(pmid) => pmid,
                None => {
                    let new = identifiers::global(self.given)?;
                    self.given += 1;
                    new
                }
            };
            for kind in [TextKind::OneLine, TextKind::Help] {
                if let Some(text) = one.pmid.and_then(|before| texts.get(&(before, kind))) {
                    self.texts.insert((pmid, kind), Arc::clone(text));
                }
            }
            let is_read_once = |same: &&Arc<Registered>| {
                Arc::ptr_eq(&same.expr, &one.expr) && same.name_span == one.name_span
            };
            // Bound definitions stay bound.
            self.enter(match same.filter(is_read_once) {
                Some(same) => Arc::clone(same),
                None => Arc::new(Registered { pmid: Some(pmid), ..Registered::clone(&one) }),
            });
        }
        Some(self)
    }

    /// Makes room for `count` more definitions.
    fn reserve(&mut self, count: usize) {
        self.by_name.reserve(count);
        self.by_pmid.reserve(count);
    }

    /// Adds a definition that has an identifier. An older one of the same name
    /// can then be found only by its identifier.
    pub(super) fn enter(&mut self, registered: Arc<Registered>) {
        let Some(pmid) = registered.pmid else { return };
        self.by_name.insert(Arc::clone(&registered.name), Some(Arc::clone(&registered)));
        self.by_pmid.insert(pmid, Some(registered));
        self.drop_lists();
    }

    /// Removes the global definition with a name (`pmUnregisterDerived(3)`).
    /// Its identifier is not used again.
    pub fn unregister(&mut self, name: &str) -> Option<Arc<Registered>> {
        let registered = Arc::clone(self.definition(name)?);
        self.by_name.insert(Arc::from(name), None);
        if let Some(pmid) = registered.pmid {
            self.by_pmid.insert(pmid, None);
        }
        self.count -= 1;
        self.drop_lists();
        Some(registered)
    }

    /// Sets a help text of a metric (`pmAddDerivedText(3)`).
    ///
    /// # Errors
    /// `PM_ERR_NAME` if there is no such metric, `PM_ERR_TEXT` if it already
    /// has the text, which then stays.
    pub fn set_text(&mut self, name: &str, kind: TextKind, text: &str) -> Result<(), PmStatus> {
        let pmid = self.definition(name).and_then(|one| one.pmid).ok_or(PmStatus::NAME)?;
        self.set_text_of(pmid, kind, text)
    }

    /// Sets a help text of the metric with an identifier.
    pub(super) fn set_text_of(
        &mut self,
        pmid: Pmid,
        kind: TextKind,
        text: &str,
    ) -> Result<(), PmStatus> {
        if self.texts.get(&(pmid, kind)).is_some() {
            return Err(PmStatus::TEXT);
        }
        self.texts.insert((pmid, kind), text.into());
        Ok(())
    }

    /// Metadata of the metrics that libpcp defines itself, with their names.
    pub(super) fn anonymous_descs(&self) -> impl Iterator<Item = (&'static str, MetricDesc)> {
        // A registry of version 6 may not have assigned their identifiers yet, and
        // no source knows them.
        let given: Vec<Pmid> = self.anonymous().map(|(pmid, _)| pmid).collect();
        ANONYMOUS.iter().zip(0u32..).filter_map(move |(one, at)| {
            let pmid = given.get(at as usize).copied().or_else(|| identifiers::global(at))?;
            Some((one.name, DESC.of_metric(pmid)))
        })
    }

    /// A help text of a metric, exactly as it was set (`pmLookupText(3)`).
    pub fn text(&self, pmid: Pmid, kind: TextKind) -> Option<&str> {
        self.texts.get(&(pmid, kind)).map(|text| &**text)
    }

    /// The first line about a metric: of its short text, or else of its help text.
    #[cfg(feature = "fleet")]
    pub(crate) fn line_about(&self, pmid: Pmid) -> Option<&str> {
        let kinds = [TextKind::OneLine, TextKind::Help].into_iter();
        let lines = kinds.filter_map(|kind| self.text(pmid, kind)).flat_map(str::lines);
        lines.map(str::trim).find(|line| !line.is_empty())
    }

    /// Value of an option (`pmGetDerivedControl(3)`).
    pub fn control(&self, option: ControlOption) -> i32 {
        self.controls.get(option)
    }

    /// Sets an option (`pmSetDerivedControl(3)`). Debugging options are
    /// remembered but have no effect.
    ///
    /// # Errors
    /// `PM_ERR_ARG` for a value that the option cannot have, `PM_ERR_AGAIN` if
    /// the environment has set another value, `PM_ERR_NOCONTEXT` for the limit
    /// of a context, see [`super::Session::set_control`].
    pub fn set_control(&mut self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        self.controls.set(option, value, SetBy::Program)
    }

    /// True for the name of a definition in a file whose text has mistakes.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        self.refused.get(name).is_some()
    }

    /// The definition with a name.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.definition(name).map(|definition| &**definition)
    }

    /// The definition with a name, to keep.
    pub fn definition(&self, name: &str) -> Option<&Arc<Registered>> {
        self.by_name.get(name)?.as_ref()
    }

    /// True if a global metric with this name was already registered when
    /// `given` identifiers had been assigned.
    pub(super) fn defined_among(&self, name: &str, given: u32) -> bool {
        let pmid = self.definition(name).and_then(|definition| definition.pmid);
        let end = identifiers::global(given);
        pmid.is_some_and(|pmid| end.is_none_or(|end| pmid < end))
    }

    /// The definition with an identifier.
    pub fn by_pmid(&self, pmid: Pmid) -> Option<&Arc<Registered>> {
        self.by_pmid.get(&pmid)?.as_ref()
    }

    /// True while this very definition is registered, even if only its
    /// identifier finds it.
    pub(super) fn holds(&self, pmid: Pmid, registered: &Arc<Registered>) -> bool {
        self.by_pmid(pmid).is_some_and(|now| Arc::ptr_eq(now, registered))
    }

    /// All definitions, in the order of their identifiers. That is the order of
    /// registration, unless all were replaced.
    pub fn definitions(&self) -> &[Arc<Registered>] {
        self.lists.ordered.get_or_init(|| {
            let mut list = self.list();
            list.sort_by_cached_key(|one| one.pmid.map(identifiers::order));
            list
        })
    }

    /// All definitions, as a selection to compile.
    pub fn all(&self) -> Vec<&Registered> {
        self.definitions().iter().map(|definition| &**definition).collect()
    }

    /// The definitions whose names begin with a prefix, by name.
    pub fn beginning_with(&self, prefix: &str) -> &[Arc<Registered>] {
        let sorted = self.lists.sorted.get_or_init(|| {
            let mut list = self.list();
            list.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            list
        });
        let start = sorted.partition_point(|one| &*one.name < prefix);
        let length = sorted[start..].partition_point(|one| one.name.starts_with(prefix));
        &sorted[start..start + length]
    }

    /// The registry with other expressions under the same names and
    /// identifiers. A definition without a new expression counts as one with
    /// mistakes in its text.
    #[cfg(feature = "fleet")]
    pub(crate) fn with_expressions(&self, of: impl Fn(&Registered) -> Option<Expr>) -> Registry {
        let mut registry = self.clone();
        for one in self.definitions() {
            match of(one) {
                Some(expr) => {
                    registry
                        .enter(Arc::new(Registered { expr: Arc::new(expr), ..(**one).clone() }));
                }
                None => {
                    registry.unregister(&one.name);
                    registry.refused.insert(Arc::clone(&one.name), ());
                }
            }
        }
        registry
    }

    /// Discards the lists. Clones keep theirs.
    fn drop_lists(&mut self) {
        match Arc::get_mut(&mut self.lists) {
            Some(own) => *own = Lists::default(),
            None => self.lists = Arc::default(),
        }
    }

    fn list(&self) -> Vec<Arc<Registered>> {
        self.by_name.iter().filter_map(|(_, definition)| definition.clone()).collect()
    }

    /// All names, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions().iter().map(|definition| &*definition.name)
    }

    /// Number of identifiers of global metrics that were assigned so far.
    pub(super) fn given(&self) -> u32 {
        self.given
    }
}

impl Earlier for Registry {
    fn defines(&self, name: &str) -> bool {
        self.definition(name).is_some() || self.anonymous().any(|(_, one)| one.name == name)
    }

    fn has_text(&self, name: &str, kind: TextKind) -> bool {
        let pmid = self.definition(name).and_then(|definition| definition.pmid);
        self.anonymous().any(|(_, one)| one.name == name)
            || pmid.is_some_and(|pmid| self.text(pmid, kind).is_some())
    }
}

/// The key of a definition, from its name and text.
pub(super) fn key_of(name: &str, text: &str) -> DefinitionKey {
    let mut hasher = DefaultHasher::new();
    (name, text.trim()).hash(&mut hasher);
    DefinitionKey(hasher.finish())
}
