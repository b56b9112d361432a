//! Definitions by name, as they were registered; independent of any source.
//!
//! A registry is a value: its clones are cheap and stay as they are, so a
//! context works with one while others register on. Who shares which is not
//! its business.

use std::sync::{Arc, OnceLock};

use pmderive_runtime::model::{PmStatus, Pmid, TextKind};

use super::anonymous::{ANONYMOUS, Anonymous};
use super::controls::{Controls, SetBy, option_of};
use super::{identifiers, identity, system};
use crate::diag::pcp::FileLine;
use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION, Severity, pcp};
use crate::dialect::Language;
use crate::layers::Layers;
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::ast::Expr;
use crate::syntax::{
    ControlOption, DefinitionItem, DefinitionReader, Earlier, PcpError, bad_name, load_paths,
    load_readable_paths, name_mistake, parse_control, parse_expr,
};

/// A definition without mistakes in its text.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Name; of an expression without a name, its text.
    pub name: Box<str>,
    /// Where the name stands; of an expression without a name, all of it.
    pub name_span: Span,
    /// False for an expression without a name.
    pub is_named: bool,
    /// The expression.
    pub expr: Expr,
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

    /// Registers what the files of a `:`-separated list define
    /// (`pmLoadDerivedConfig(3)`). Lines with mistakes are reported and
    /// passed over. Gives the number of metrics registered.
    pub fn load(
        &mut self,
        paths: &str,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        self.define_anonymous();
        let files = load_paths(paths, sources, diagnostics);
        files.into_iter().map(|file| self.add_text(file, sources, diagnostics)).sum()
    }

    /// Registers the definitions that every client of PCP on this machine has
    /// (pmRegisterDerived(3)): those of the list in `PCP_DERIVED_CONFIG`, or
    /// without that variable those of the directory `config/derived` below
    /// `PCP_VAR_DIR`. What cannot be read is passed over.
    pub fn load_system(&mut self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) -> usize {
        self.define_anonymous();
        let Some(paths) = system::definitions() else { return 0 };
        let files = load_readable_paths(&paths, sources);
        files.into_iter().map(|file| self.add_text(file, sources, diagnostics)).sum()
    }

    /// Sets the options that `PCP_DERIVED_CONTROL` asks for (PCPIntro(1)),
    /// which no one can change afterwards. Version 6 does not know of it.
    pub fn set_system_controls(&mut self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) {
        let Some(text) = system::controls() else { return };
        self.set_controls(&text, sources, diagnostics);
    }

    /// Sets options as the text of `PCP_DERIVED_CONTROL` asks.
    pub(super) fn set_controls(
        &mut self,
        text: &str,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) {
        if !self.language.dialect.is_version_7() {
            return;
        }
        let source = sources.add("$PCP_DERIVED_CONTROL", text);
        let mut found = Diagnostics::default();
        for (option, value) in parse_control(source, sources, &mut found) {
            let outcome = self.controls.set(option, value, SetBy::Environment);
            not_set(option, value, outcome, whole(source, sources), &mut found);
        }
        // No definition is the worse for it.
        diagnostics
            .extend(found.into_iter().map(|one| Diagnostic { severity: Severity::Warning, ..one }));
    }

    /// Registers what the text of a definition file defines.
    pub fn add_text(
        &mut self,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        let mut reader = DefinitionReader::new(self.language);
        let items = reader.read_after(&*self, source, sources, diagnostics);
        let before = self.count;
        for item in items {
            match item {
                DefinitionItem::Definition(definition) if definition.expr.error.is_none() => {
                    let identity = identity(&definition.name.value, &definition.text);
                    let registered = Registered {
                        name: definition.name.value,
                        name_span: definition.name.span,
                        is_named: true,
                        expr: definition.expr.expr,
                        identity,
                        pmid: None,
                    };
                    let (name, first) = (registered.name.clone(), diagnostics.len());
                    // What is wrong is in the diagnostics.
                    if let Err(error) = self.insert(registered, diagnostics) {
                        let file = &sources.get(source).name;
                        let line = FileLine { file, number: definition.line, line: "" };
                        let offset = usize::try_from(definition.skipped).unwrap_or(0);
                        let message = error.message.as_deref();
                        for diagnostic in diagnostics.since_mut(first) {
                            let said = line.syntax_error(&name, &definition.text, offset, message);
                            diagnostic.pcp = Some(said.into());
                        }
                    }
                }
                DefinitionItem::Definition(definition) => {
                    self.refused.insert(definition.name.value.into(), ());
                }
                DefinitionItem::Text(text) => {
                    let (name, kind) = (&text.metric.value, text.kind);
                    // The reader has made sure of the name, unless the metric
                    // was one too many.
                    let _ = self.set_text(name, kind, &text.text);
                }
                DefinitionItem::Control { option, value, span } => {
                    let outcome = self.controls.set(option, value, SetBy::Program);
                    not_set(option, value, outcome, span, diagnostics);
                }
            }
        }
        self.count - before
    }

    /// Registers one metric (`pmRegisterDerived(3)`).
    ///
    /// # Errors
    /// What libpcp says of a refused expression; our own words are in
    /// `diagnostics`.
    pub fn register(
        &mut self,
        name: &str,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), PcpError> {
        // libpcp does not look at the expression of a name that is taken.
        if self.defines(name) {
            return Err(duplicate(name, whole(source, sources), "global", diagnostics));
        }
        let registered = self.parse_named(name, source, sources, diagnostics)?;
        self.insert(registered, diagnostics)
    }

    /// Registers a definition in place of the one that the name has, if it has
    /// one. As for `pmUnregisterDerived(3)` and `pmRegisterDerived(3)` one after
    /// the other the metric gets another identifier; the samples that other
    /// definitions keep are not touched.
    ///
    /// # Errors
    /// As [`Registry::register`]; then the former definition stays.
    pub fn replace(
        &mut self,
        name: &str,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), PcpError> {
        let registered = self.parse_named(name, source, sources, diagnostics)?;
        let before = self.clone();
        self.unregister(name);
        if self.defines(name) {
            return Err(duplicate(name, registered.name_span, "global", diagnostics));
        }
        self.insert(registered, diagnostics).inspect_err(|_| *self = before)
    }

    /// Parses an expression without registering it.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub fn parse(
        &self,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Registered, PcpError> {
        self.parse_as(EXPRESSION, whole(source, sources), sources, diagnostics)
    }

    /// Parses an expression that is a part of a text, without registering it.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub fn parse_within(
        &self,
        place: Span,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Registered, PcpError> {
        self.parse_as(EXPRESSION, place, sources, diagnostics)
    }

    /// Parses what libpcp's messages call `name`.
    fn parse_as(
        &self,
        name: &str,
        place: Span,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Registered, PcpError> {
        let text = sources.slice(place);
        let first = diagnostics.len();
        let parsed = parse_expr(place.source, text, place.start, self.language, diagnostics);
        if let Some(error) = parsed.error {
            // libpcp stops at its first error, whatever else is found.
            if let Some(diagnostic) = diagnostics.since_mut(first).first_mut() {
                let message = error.message.as_deref();
                let said = pcp::syntax_error(name, text, error.offset, message);
                diagnostic.pcp = Some(said.into());
            }
            return Err(error);
        }
        Ok(Registered {
            name: text.trim().into(),
            name_span: place,
            is_named: false,
            expr: parsed.expr,
            identity: identity("", text),
            pmid: None,
        })
    }

    /// Parses the definition of a name without registering it.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub(super) fn parse_named(
        &self,
        name: &str,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Registered, PcpError> {
        if let Some(mistake) = name_mistake(name) {
            diagnostics.push(bad_name(name, whole(source, sources), mistake.rule));
            let message = format!("illegal derived metric name ({name})");
            return Err(PcpError { offset: 0, message: Some(message) });
        }
        let first = diagnostics.len();
        let parsed = self.parse_as(name, whole(source, sources), sources, diagnostics);
        diagnostics.name_metric(first, name);
        let identity = identity(name, &sources.get(source).text);
        Ok(Registered { name: name.into(), is_named: true, identity, ..parsed? })
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
        self.by_name.insert(Arc::from(&*registered.name), Some(Arc::clone(&registered)));
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
    /// context, see [`super::DerivedContext::set_limit`].
    pub fn set_control(&mut self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        self.controls.set(option, value, SetBy::Program)
    }

    /// The option that a program means by a code of `pmSetDerivedControl(3)`.
    ///
    /// # Errors
    /// `PM_ERR_NAME`, or `PM_ERR_BADDERIVE` in version 6, if there is none.
    pub fn control_option(&self, code: i32) -> Result<ControlOption, PmStatus> {
        option_of(code, self.language.dialect)
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

    /// True while the very definition is registered, if not by its name then
    /// by its identifier.
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

/// The whole of a text.
pub(super) fn whole(source: SourceId, sources: &SourceMap) -> Span {
    let end = u32::try_from(sources.get(source).text.len()).unwrap_or(u32::MAX);
    Span::new(source, 0, end)
}

/// Refuses the second definition of a name, the text at `place`; `kind` is
/// libpcp's word for it.
pub(super) fn duplicate(
    name: &str,
    place: Span,
    kind: &str,
    diagnostics: &mut Diagnostics,
) -> PcpError {
    let message = format!("`{name}` is defined already");
    diagnostics.push(Diagnostic::error(Code::DuplicateName, place, message));
    PcpError { offset: 0, message: Some(format!("Duplicate {kind} derived metric name")) }
}

/// Refuses a definition that nothing is wrong with but that it comes too late;
/// `words` are libpcp's.
pub(super) fn no_room(
    registered: &Registered,
    message: String,
    help: &str,
    words: &str,
    diagnostics: &mut Diagnostics,
) -> PcpError {
    let first = diagnostics.len();
    let span = registered.name_span;
    diagnostics.push(
        Diagnostic::error(Code::LimitReached, span, message).label(span, "one too many").help(help),
    );
    diagnostics.name_metric(first, &registered.name);
    PcpError { offset: 0, message: Some(words.to_owned()) }
}

/// Reports an option that was understood but could not be set.
fn not_set(
    option: ControlOption,
    value: i32,
    outcome: Result<(), PmStatus>,
    span: Span,
    diagnostics: &mut Diagnostics,
) {
    let Err(status) = outcome else { return };
    let message = format!("cannot set {} to {value}", option.name());
    let help = match status {
        PmStatus::AGAIN => "PCP_DERIVED_CONTROL in the environment prevails",
        PmStatus::NOCONTEXT => "a program sets it for a context; there is none here",
        _ => "see pmSetDerivedControl(3)",
    };
    let text = status.to_string().to_lowercase();
    diagnostics
        .push(Diagnostic::warning(Code::BadControl, span, message).label(span, text).help(help));
}
