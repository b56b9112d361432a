//! The definitions and expressions of a command: read, parsed and selected.
//!
//! They come from the files that the arguments name, and from the system's definitions, which
//! every client of PCP on this machine has. Mistakes in the system's definitions are reported
//! only if the selection includes one of them. This module asks no source.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION, Severity};
use crate::dialect::Dialect;
use crate::engine::{Definitions, Registered, Registry};
use crate::syntax::{counted, is_section, load_file};
use crate::text::{SourceId, SourceMap};

use super::args::DefinitionArguments;
use super::messages::Messages;
use super::missing::{LeftOutDefinitions, Missing};
use super::positional::{PositionalArguments, named_expression};

/// Name of the text of a definition that is itself an argument.
const ARGUMENT: &str = "<argument>";

/// All definitions and expressions that a command may evaluate.
pub struct CommandDefinitions {
    /// Texts of the files and expressions.
    pub sources: SourceMap,
    /// The definitions of the files and of the system.
    pub registry: Registry,
    /// Diagnostics of the texts that the arguments name, until the caller takes them.
    pub diagnostics: Diagnostics,
    /// Diagnostics of the system's definitions, until the caller takes them.
    pub system_diagnostics: Diagnostics,
    /// Texts of the files that the arguments name.
    own: HashSet<SourceId>,
    /// Number of definitions by text, for own texts whose definitions are in another registry.
    elsewhere: HashMap<SourceId, usize>,
    /// Texts of the system's files.
    system: Vec<SourceId>,
    /// Names of definitions that are selected only if the source has their operands.
    optional: HashSet<Box<str>>,
    selection: Vec<Arc<Registered>>,
    /// Selected names that nothing defines.
    unknown: Vec<String>,
}

impl CommandDefinitions {
    /// Reads definition files and those of the system. If both define a name, the arguments'
    /// definition counts; in version 6 the system's does.
    pub fn read(arguments: &DefinitionArguments) -> CommandDefinitions {
        CommandDefinitions::read_with(arguments, SourceMap::default(), |_| {})
    }

    /// Reads definitions into `sources`, which has no texts so far. It also reads the files
    /// among the positional arguments, and selects their definitions. Returns the other
    /// arguments: names and expressions.
    pub fn read_positional<'a>(
        arguments: &DefinitionArguments,
        positional: &'a PositionalArguments,
        sources: SourceMap,
    ) -> (CommandDefinitions, Vec<&'a String>) {
        let mut others = Vec::new();
        let mut texts = HashSet::new();
        let mut seen = HashSet::new();
        let mut definitions = CommandDefinitions::read_with(arguments, sources, |definitions| {
            let (files, rest) = positional.sorted(|name| definitions.defines(name));
            let (named, rest): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|text| named_expression(text).is_some());
            others = rest;
            for definition in named {
                texts.extend(definitions.define(definition));
            }
            for file in files {
                texts.extend(definitions.read_own(|registry, sources, diagnostics| {
                    for text in load_file(file, sources, diagnostics) {
                        let name = &sources.get(text).name;
                        // Several arguments may stand for a file, such as it and its directory.
                        if fs::canonicalize(&**name).is_ok_and(|file| !seen.insert(file)) {
                            continue;
                        }
                        let Some(extensions) = arguments.extensions_in(name) else { continue };
                        registry.add_text_with(text, extensions, sources, diagnostics);
                    }
                }));
            }
        });
        let all = definitions.registry.definitions().iter();
        let chosen = all.filter(|one| texts.contains(&one.name_span.source)).cloned();
        definitions.selection = chosen.collect();
        (definitions, others)
    }

    /// Reads files in the order in which their definitions count. The files of `more` follow
    /// those of options.
    fn read_with(
        arguments: &DefinitionArguments,
        sources: SourceMap,
        more: impl FnOnce(&mut CommandDefinitions),
    ) -> CommandDefinitions {
        let language = arguments.language();
        let mut definitions = CommandDefinitions {
            sources,
            registry: Registry::new(language),
            diagnostics: Diagnostics::default(),
            system_diagnostics: Diagnostics::default(),
            own: HashSet::new(),
            elsewhere: HashMap::new(),
            system: Vec::new(),
            optional: HashSet::new(),
            selection: Vec::new(),
            unknown: Vec::new(),
        };
        let CommandDefinitions { sources, registry, diagnostics, .. } = &mut definitions;
        registry.set_system_controls(sources, diagnostics);
        if language.dialect == Dialect::Pcp6_0 {
            definitions.read_system();
        }
        for paths in &arguments.configs {
            definitions.read_own(|registry, sources, diagnostics| {
                let extensions = |name: &str| arguments.extensions_in(name);
                registry.load_with(paths, sources, diagnostics, extensions);
            });
        }
        more(&mut definitions);
        if language.dialect != Dialect::Pcp6_0 {
            definitions.read_system();
        }
        definitions
    }

    /// Reads a definition that is an argument: `NAME = EXPRESSION`.
    /// Returns the texts that were read.
    fn define(&mut self, text: &str) -> Vec<SourceId> {
        self.read_own(|registry, sources, diagnostics| {
            let source = sources.add(ARGUMENT, text);
            registry.add_text(source, sources, diagnostics);
        })
    }

    /// Reads the definitions among arguments: those of the form `NAME = EXPRESSION`.
    pub fn define_named<'t>(&mut self, arguments: impl IntoIterator<Item = &'t String>) {
        for text in arguments.into_iter().filter(|text| named_expression(text).is_some()) {
            self.define(text);
        }
    }

    /// Returns the texts that were read.
    fn read_own(
        &mut self,
        read: impl FnOnce(&mut Registry, &mut SourceMap, &mut Diagnostics),
    ) -> Vec<SourceId> {
        let first = self.sources.next_id();
        read(&mut self.registry, &mut self.sources, &mut self.diagnostics);
        let texts: Vec<SourceId> = (first.0..self.sources.next_id().0).map(SourceId).collect();
        self.own.extend(&texts);
        texts
    }

    /// Reads a file that the arguments name into a registry of its own.
    #[cfg(feature = "fleet")]
    pub fn read_elsewhere(
        &mut self,
        path: &str,
        registry: &mut Registry,
        diagnostics: &mut Diagnostics,
    ) {
        for text in load_file(path, &mut self.sources, diagnostics) {
            let before = registry.definitions().len();
            registry.add_text(text, &self.sources, diagnostics);
            self.own.insert(text);
            self.elsewhere.insert(text, registry.definitions().len() - before);
        }
    }

    fn read_system(&mut self) {
        let CommandDefinitions { sources, registry, system_diagnostics, .. } = self;
        let first = sources.next_id();
        registry.load_system(sources, system_diagnostics);
        self.system = (first.0..sources.next_id().0).map(SourceId).collect();
    }

    /// Texts that the arguments name and that also belong to the system, by whatever path.
    pub fn own_of_system(&self) -> HashSet<SourceId> {
        let path = |text: &SourceId| fs::canonicalize(&*self.sources.get(*text).name).ok();
        let files: HashSet<PathBuf> = self.system.iter().filter_map(path).collect();
        let is_of_system = |text: &&SourceId| path(text).is_some_and(|path| files.contains(&path));
        self.own.iter().filter(is_of_system).copied().collect()
    }

    /// Marks definitions of the system as optional: they leave the selection if the source
    /// lacks their operands.
    pub fn make_optional(&mut self, names: impl IntoIterator<Item = Box<str>>) {
        let names: Vec<Box<str>> = names.into_iter().filter(|name| !self.defines(name)).collect();
        self.optional.extend(names);
    }

    /// Removes the diagnostics of missing operands of optional definitions, unless the
    /// selection would become empty.
    pub fn leave_out(&self, diagnostics: &mut Diagnostics) -> LeftOutDefinitions {
        if self.optional.is_empty() {
            return LeftOutDefinitions::default();
        }
        let before = diagnostics.clone();
        let left_out = LeftOutDefinitions::take(diagnostics, &self.sources, |one| {
            let name = one.metric.as_deref();
            match name.is_some_and(|name| self.optional.contains(name)) {
                true => Missing::Ignore,
                false => Missing::Error,
            }
        });
        if left_out.len() == self.selection.len() {
            *diagnostics = before;
            return LeftOutDefinitions::default();
        }
        left_out
    }

    /// The definitions, shared with a session.
    pub fn shared(&self) -> Arc<Definitions> {
        Arc::new(Definitions::with(self.registry.clone(), self.sources.clone()))
    }

    /// Selects all definitions of the files that the arguments name.
    pub fn select_all(&mut self) {
        self.selection = self.own().cloned().collect();
    }

    /// Leaves out the lines below the heading of a section. Such a file belongs to pmrep, and these
    /// lines have another meaning.
    pub fn deselect_sections(&mut self) {
        let mut headings = HashMap::new();
        for Diagnostic { code, span, .. } in self.diagnostics.iter() {
            if *code == Code::BadDefinitionLine && is_section(self.sources.slice(*span)) {
                headings.entry(span.source).or_insert(span.start);
            }
        }
        self.selection.retain(|one| {
            let heading = headings.get(&one.name_span.source);
            heading.is_none_or(|heading| one.name_span.start < *heading)
        });
    }

    /// Selects definitions by their names. `NAME = EXPRESSION` is a definition of its own, which
    /// the other texts may name; any other text is an expression. A text that is given twice
    /// counts once.
    pub fn select<'t>(&mut self, texts: impl IntoIterator<Item = &'t String>) {
        let named = self.selection.iter().filter(|one| one.is_named);
        let before: FxHashSet<Arc<str>> = named.map(|one| one.name.clone()).collect();
        let mut seen = FxHashSet::default();
        let names: Vec<&str> = texts.into_iter().filter_map(|text| self.named(text)).collect();
        for text in names {
            if before.contains(text.trim()) || !seen.insert(text.trim()) {
                continue;
            }
            match self.registry.definition(text.trim()) {
                Some(definition) => self.selection.push(Arc::clone(definition)),
                None => self.parse(text),
            }
        }
    }

    /// The name in a definition that is an argument; any other argument as it is. `None` for a
    /// definition with a mistake, which is already reported.
    fn named<'t>(&mut self, argument: &'t str) -> Option<&'t str> {
        let Some((name, _)) = named_expression(argument) else { return Some(argument) };
        self.define(argument);
        self.registry.definition(name).is_some().then_some(name)
    }

    /// Selects an expression. A name of the system's selects that definition; a name of the
    /// arguments' files does not.
    pub fn select_expression(&mut self, text: &str) {
        match self.registry.definition(text.trim()) {
            Some(definition) if !self.own.contains(&definition.name_span.source) => {
                self.selection.push(Arc::clone(definition));
            }
            _ => self.parse(text),
        }
    }

    fn parse(&mut self, text: &str) {
        let source = self.sources.add(EXPRESSION, text);
        if let Ok(expression) = self.registry.parse(source, &self.sources, &mut self.diagnostics) {
            self.selection.push(Arc::new(expression));
        }
        self.unknown.push(text.trim().to_owned());
    }

    /// Removes expressions without a name from the selection and returns them.
    #[cfg(feature = "fleet")]
    pub fn take_expressions(
        &mut self,
        is_wanted: impl Fn(&Registered) -> bool,
    ) -> Vec<Arc<Registered>> {
        self.selection.extract_if(.., |one| !one.is_named && is_wanted(one)).collect()
    }

    /// The selected definitions and expressions, in order.
    pub fn selection(&self) -> Vec<&Registered> {
        self.selection.iter().map(|selected| &**selected).collect()
    }

    /// Warns about unreadable files of the system, and about selected names that the system
    /// defines with a mistake.
    pub fn warn_of_system_mistakes(&self, messages: &Messages) {
        self.warn_of_unreadable_files_of_system(messages);
        let wanted = |diagnostic: &&Diagnostic| {
            let metric = diagnostic.metric.as_deref();
            metric.is_some_and(|metric| self.unknown.iter().any(|name| name == metric))
        };
        for diagnostic in self.system_diagnostics.iter().filter(wanted) {
            let name = diagnostic.metric.as_deref().unwrap_or_default();
            let place = self.sources.place(diagnostic.span).unwrap_or_default();
            let message = &diagnostic.message;
            messages.warning(&format_args!(
                "the definition of {name} at {place} was passed over: {message}"
            ));
        }
    }

    /// Lists the files that were read (`--verbose`).
    pub fn tell_files(&self, messages: &Messages) {
        if !messages.are_verbose() || messages.are_of_tool() {
            return;
        }
        for text in self.own_texts().iter().chain(&self.system) {
            let name = &self.sources.get(*text).name;
            let all = self.registry.definitions().iter();
            let here = || all.filter(|one| one.name_span.source == *text).count();
            let count = self.elsewhere.get(text).copied().unwrap_or_else(here);
            // A definition among the arguments needs no mention. A file of the system may have
            // been read before.
            if &**name != ARGUMENT && (count > 0 || !self.system.contains(text)) {
                let count = counted(count, "definition");
                messages.note(&format_args!("read {count} from {name}"));
            }
        }
    }

    /// Warns about unreadable files of the system, and lists the others (`--verbose`).
    pub fn warn_of_unreadable_files_of_system(&self, messages: &Messages) {
        self.tell_files(messages);
        let found = self.system_diagnostics.iter();
        for diagnostic in found.filter(|one| one.code == Code::UnreadableFile) {
            let message = &diagnostic.message;
            messages.warning(&format_args!("definitions for every client: {message}"));
        }
    }

    /// Texts of the files that the arguments name, in their order.
    pub fn own_texts(&self) -> Vec<SourceId> {
        let mut texts: Vec<SourceId> = self.own.iter().copied().collect();
        texts.sort();
        texts
    }

    /// The own texts that have a good definition.
    pub fn good_texts(&self) -> HashSet<SourceId> {
        let elsewhere = self.elsewhere.iter().filter(|(_, count)| **count > 0);
        let own = self.own().map(|definition| definition.name_span.source);
        own.chain(elsewhere.map(|(text, _)| *text)).collect()
    }

    /// True for the text of a definition that is an argument.
    pub fn is_argument(&self, source: SourceId) -> bool {
        &*self.sources.get(source).name == ARGUMENT
    }

    /// True for the text of a file that the arguments name.
    pub fn is_own(&self, source: SourceId) -> bool {
        self.own.contains(&source)
    }

    /// True for the name of a definition of the files that the arguments name.
    pub fn defines(&self, name: &str) -> bool {
        let definition = self.registry.get(name.trim());
        definition.is_some_and(|one| self.own.contains(&one.name_span.source))
    }

    /// The definitions of the files that the arguments name.
    pub fn own(&self) -> impl Iterator<Item = &Arc<Registered>> {
        let is_own = |one: &&Arc<Registered>| self.own.contains(&one.name_span.source);
        self.registry.definitions().iter().filter(is_own)
    }

    /// Drops the diagnostic that a metric of the source hides a definition of the system. Users
    /// expect that. A definition among the arguments may be meant as a comparison.
    pub fn hidden_by_mistake(&self, mut diagnostics: Diagnostics) -> Diagnostics {
        diagnostics.retain(|diagnostic| {
            diagnostic.code != Code::HiddenByMetric || self.own.contains(&diagnostic.span.source)
        });
        for one in diagnostics.since_mut(0) {
            if one.code == Code::HiddenByMetric && self.is_argument(one.span.source) {
                one.help = Some("give the derived metric another name, or compare by `==`".into());
            }
        }
        diagnostics
    }
}

/// Subject of a diagnostic: a definition, or an expression without a name.
#[derive(PartialEq, Eq, Hash)]
pub enum Subject<'s> {
    /// A definition, by its name.
    Definition(&'s str),
    /// An expression, by its text.
    Expression(SourceId),
}

impl<'s> Subject<'s> {
    /// The subject of a diagnostic.
    pub fn of(diagnostic: &'s Diagnostic) -> Subject<'s> {
        match &diagnostic.metric {
            Some(name) => Subject::Definition(name),
            None => Subject::Expression(diagnostic.span.source),
        }
    }
}

impl<'s> From<&'s Registered> for Subject<'s> {
    fn from(one: &'s Registered) -> Subject<'s> {
        match one.is_named {
            true => Subject::Definition(&one.name),
            false => Subject::Expression(one.name_span.source),
        }
    }
}

/// Names whose definitions have mistakes in their texts. Names for which `is_known` holds are
/// left out.
pub fn refused(found: &Diagnostics, is_known: impl Fn(&str) -> bool) -> HashSet<&str> {
    let errors = found.iter().filter(|one| one.severity == Severity::Error);
    let names = errors.filter_map(|one| one.metric.as_deref());
    names.filter(|name| !is_known(name)).collect()
}
