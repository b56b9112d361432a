//! Definitions by name, as they were registered; independent of any source.
//!
//! A registry is a value: its clones are cheap and do not change, so a context
//! works with one while others go on registering. It does not know who shares
//! which clone.

mod reading;
mod refusals;

use std::sync::{Arc, OnceLock};

use pmderive_runtime::model::{PmStatus, Pmid, TextKind};

use super::anonymous::{ANONYMOUS, Anonymous};
use super::controls::{Controls, SetBy};
use super::identifiers;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::layers::Layers;
use crate::syntax::ast::Expr;
use crate::syntax::{ControlOption, Earlier, PcpError};
use crate::text::Span;
pub(super) use reading::whole;
pub(super) use refusals::{duplicate, no_room};

/// A definition without mistakes in its text.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Name; of an expression without a name, its text.
    pub name: Arc<str>,
    /// Where the name stands; of an expression without a name, all of it.
    pub name_span: Span,
    /// False for an expression without a name.
    pub is_named: bool,
    /// The expression.
    pub expr: Arc<Expr>,
    /// Identity of name and text, under which previous samples are kept.
    pub identity: u64,
    /// The metric's identifier; an expression without a name has none.
    pub pmid: Option<Pmid>,
}

/// Definitions in the order of registration.
#[derive(Clone, Debug)]
pub struct Registry {
    language: Language,
    /// `None` for names that were unregistered.
    by_name: Layers<Arc<str>, Option<Arc<Registered>>>,
    by_pmid: Layers<Pmid, Option<Arc<Registered>>>,
    texts: Layers<Pmid, Texts>,
    /// Names of definitions of files that have mistakes in their text.
    refused: Layers<Arc<str>, ()>,
    controls: Controls,
    /// Identifiers of global metrics given so far.
    given: u32,
    /// How many had been given when the anonymous metrics got theirs.
    anonymous: Option<u32>,
    /// Global metrics there are.
    count: usize,
    /// Lists made when someone asks for them; shared by clones.
    lists: Arc<Lists>,
}

/// Help texts of a metric.
#[derive(Clone, Debug, Default)]
struct Texts {
    one_line: Option<Arc<str>>,
    help: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Lists {
    /// In the order of registration.
    ordered: OnceLock<Vec<Arc<Registered>>>,
    /// By name.
    sorted: OnceLock<Vec<Arc<Registered>>>,
}

impl Registry {
    /// Without definitions.
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

    /// Gives the anonymous metrics their identifiers, if they have none:
    /// version 7 does so first of all, version 6 when definitions are loaded
    /// or a context is opened.
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

    /// Enters a global definition whose name is free and gives it an identifier.
    fn insert(
        &mut self,
        registered: Registered,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), PcpError> {
        if let Some(limit) = self.controls.limit(ControlOption::GlobalLimit)
            && self.count >= limit
        {
            let message = format!("GLOBAL_LIMIT allows no more than {limit} definitions");
            let help = "raise the limit with a `#control` line, or leave definitions out";
            let words = "Too many global derived metrics";
            return Err(no_room(&registered, message, help, words, diagnostics));
        }
        let Some(pmid) = identifiers::global(self.given) else {
            let message = "there are no more identifiers for derived metrics".to_owned();
            let help = "identifiers are not given again; start anew";
            let words = "global PMID space exhausted";
            return Err(no_room(&registered, message, help, words, diagnostics));
        };
        self.given += 1;
        self.count += 1;
        self.enter(Arc::new(Registered { pmid: Some(pmid), ..registered }));
        Ok(())
    }

    /// Enters a definition that has its identifier; one of the same name is
    /// then found by its identifier only.
    pub(super) fn enter(&mut self, registered: Arc<Registered>) {
        let Some(pmid) = registered.pmid else { return };
        self.by_name.insert(Arc::clone(&registered.name), Some(Arc::clone(&registered)));
        self.by_pmid.insert(pmid, Some(registered));
        self.drop_lists();
    }

    /// Takes out the global definition of a name (`pmUnregisterDerived(3)`).
    /// Its identifier is not given again.
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

    /// Gives a metric one of its help texts (`pmAddDerivedText(3)`).
    ///
    /// # Errors
    /// `PM_ERR_NAME` if there is no such metric, `PM_ERR_TEXT` if it has the
    /// text already; the first one stays.
    pub fn set_text(&mut self, name: &str, kind: TextKind, text: &str) -> Result<(), PmStatus> {
        let pmid = self.definition(name).and_then(|one| one.pmid).ok_or(PmStatus::NAME)?;
        self.set_text_of(pmid, kind, text)
    }

    /// Gives the metric of an identifier one of its help texts.
    pub(super) fn set_text_of(
        &mut self,
        pmid: Pmid,
        kind: TextKind,
        text: &str,
    ) -> Result<(), PmStatus> {
        let mut texts = self.texts.get(&pmid).cloned().unwrap_or_default();
        let place = match kind {
            TextKind::OneLine => &mut texts.one_line,
            TextKind::Help => &mut texts.help,
        };
        if place.is_some() {
            return Err(PmStatus::TEXT);
        }
        *place = Some(text.into());
        self.texts.insert(pmid, texts);
        Ok(())
    }

    /// A help text of a metric, just as it was given (`pmLookupText(3)`).
    pub fn text(&self, pmid: Pmid, kind: TextKind) -> Option<&str> {
        let texts = self.texts.get(&pmid)?;
        match kind {
            TextKind::OneLine => texts.one_line.as_deref(),
            TextKind::Help => texts.help.as_deref(),
        }
    }

    /// Value of an option (`pmGetDerivedControl(3)`).
    pub fn control(&self, option: ControlOption) -> i32 {
        self.controls.get(option)
    }

    /// Gives an option a value (`pmSetDerivedControl(3)`). Debugging options
    /// are remembered and have no other effect.
    ///
    /// # Errors
    /// `PM_ERR_ARG` for a value that it cannot have, `PM_ERR_AGAIN` if the
    /// environment gave it another; `PM_ERR_NOCONTEXT` for the limit of a
    /// context, see [`super::Session::set_control`].
    pub fn set_control(&mut self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        self.controls.set(option, value, SetBy::Program)
    }

    /// True for the name of a definition of a file that has mistakes in its text.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        self.refused.get(name).is_some()
    }

    /// The definition of a name.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.definition(name).map(|definition| &**definition)
    }

    /// The definition of a name, to be kept.
    pub fn definition(&self, name: &str) -> Option<&Arc<Registered>> {
        self.by_name.get(name)?.as_ref()
    }

    /// True if a global metric of that name was registered when `given`
    /// identifiers had been given.
    pub(super) fn defined_among(&self, name: &str, given: u32) -> bool {
        let pmid = self.definition(name).and_then(|definition| definition.pmid);
        let end = identifiers::global(given);
        pmid.is_some_and(|pmid| end.is_none_or(|end| pmid < end))
    }

    /// The definition of an identifier.
    pub fn by_pmid(&self, pmid: Pmid) -> Option<&Arc<Registered>> {
        self.by_pmid.get(&pmid)?.as_ref()
    }

    /// True while this very definition is registered, by its name or by its
    /// identifier only.
    pub(super) fn holds(&self, pmid: Pmid, registered: &Arc<Registered>) -> bool {
        self.by_pmid(pmid).is_some_and(|now| Arc::ptr_eq(now, registered))
    }

    /// All definitions, in the order of registration.
    pub fn definitions(&self) -> &[Arc<Registered>] {
        self.lists.ordered.get_or_init(|| {
            let mut list = self.list();
            list.sort_unstable_by_key(|one| one.pmid.map(identifiers::order));
            list
        })
    }

    /// All definitions, as a selection to compile.
    pub fn all(&self) -> Vec<&Registered> {
        self.definitions().iter().map(|definition| &**definition).collect()
    }

    /// The definitions of names that begin with a prefix, by name.
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

    /// The registry with other expressions in place of its own, under the same names
    /// and identifiers. Definitions for which there is none are as if they had
    /// mistakes in their text.
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

    /// Lets lists be made anew; clones keep theirs.
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

    /// Identifiers of global metrics given so far.
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
        pmid.is_some_and(|pmid| self.text(pmid, kind).is_some())
    }
}
