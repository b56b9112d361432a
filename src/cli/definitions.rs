//! The definitions and expressions of a command: read, parsed and selected.
//!
//! Besides the files that the arguments name there are the definitions that
//! every client of PCP on this machine has. What is wrong with those concerns
//! the user only where they are selected. No source of metrics is needed here.

use std::collections::HashSet;
use std::sync::Arc;

use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION};
use crate::dialect::Dialect;
use crate::engine::{Registered, Registry};
use crate::source::{SourceId, SourceMap};

use super::args::DefinitionArguments;
use super::messages::Messages;

/// Everything that may be evaluated.
pub struct Definitions {
    /// Texts of the files and expressions.
    pub sources: SourceMap,
    /// The definitions of the files and of the system.
    pub registry: Registry,
    /// What is wrong with the texts that the arguments name, until the caller
    /// takes it.
    pub diagnostics: Diagnostics,
    /// What is wrong with the system's definitions.
    system_diagnostics: Diagnostics,
    /// Texts of the files that the arguments name.
    own: HashSet<SourceId>,
    selection: Vec<Arc<Registered>>,
    /// Names that were selected and are none.
    unknown: Vec<String>,
}

impl Definitions {
    /// Reads definition files and those of the system. Of two definitions of
    /// one name that of the arguments counts; in version 6 the system's does.
    pub fn read(arguments: &DefinitionArguments) -> Definitions {
        let language = arguments.language();
        let mut definitions = Definitions {
            sources: SourceMap::default(),
            registry: Registry::new(language),
            diagnostics: Diagnostics::default(),
            system_diagnostics: Diagnostics::default(),
            own: HashSet::new(),
            selection: Vec::new(),
            unknown: Vec::new(),
        };
        let Definitions { sources, registry, diagnostics, .. } = &mut definitions;
        registry.set_system_controls(sources, diagnostics);
        if language.dialect == Dialect::Pcp6_0 {
            definitions.read_system();
        }
        for paths in &arguments.configs {
            let Definitions { sources, registry, diagnostics, own, .. } = &mut definitions;
            let before = sources.next_id();
            registry.load(paths, sources, diagnostics);
            own.extend((before.0..sources.next_id().0).map(SourceId));
        }
        if language.dialect != Dialect::Pcp6_0 {
            definitions.read_system();
        }
        definitions
    }

    fn read_system(&mut self) {
        let Definitions { sources, registry, system_diagnostics, .. } = self;
        registry.load_system(sources, system_diagnostics);
    }

    /// Selects all definitions of the files that the arguments name.
    pub fn select_all(&mut self) {
        let own: Vec<Arc<Registered>> = self.own().cloned().collect();
        self.selection.extend(own);
    }

    /// Selects definitions by their names; what is no such name is an
    /// expression. What is given twice counts once.
    pub fn select(&mut self, texts: &[String]) {
        let mut seen = HashSet::new();
        for text in texts {
            if !seen.insert(text.trim()) {
                continue;
            }
            match self.registry.definition(text.trim()) {
                Some(definition) => self.selection.push(Arc::clone(definition)),
                None => self.parse(text),
            }
        }
    }

    /// Selects an expression, even if it is the name of a definition among the
    /// files that the arguments name. The name of one of the system's selects
    /// that one.
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

    /// What was selected, in its order.
    pub fn selection(&self) -> Vec<&Registered> {
        self.selection.iter().map(|selected| &**selected).collect()
    }

    /// Warns of names that were selected and that a file of the system defines
    /// in a way that is not understood.
    pub fn warn_of_system_mistakes(&self, messages: &Messages) {
        let wanted = |diagnostic: &&Diagnostic| {
            let metric = diagnostic.metric.as_deref();
            metric.is_some_and(|metric| self.unknown.iter().any(|name| name == metric))
        };
        for diagnostic in self.system_diagnostics.iter().filter(wanted) {
            let (span, name) = (diagnostic.span, diagnostic.metric.as_deref().unwrap_or_default());
            let file = &self.sources.get(span.source).name;
            let (line, column) = self.sources.line_column(span.source, span.start);
            let message = &diagnostic.message;
            messages.warning(&format_args!(
                "the definition of {name} at {file}:{line}:{column} was passed over: {message}"
            ));
        }
    }

    /// The definitions of the files that the arguments name.
    pub fn own(&self) -> impl Iterator<Item = &Arc<Registered>> {
        let is_own = |one: &&Arc<Registered>| self.own.contains(&one.name_span.source);
        self.registry.definitions().iter().filter(is_own)
    }

    /// Leaves out what needs no saying: that the source has metrics which the
    /// system's definitions of the same names stand in for elsewhere.
    pub fn without_hidden_ones_of_system(&self, diagnostics: Diagnostics) -> Diagnostics {
        let mut kept = Diagnostics::default();
        kept.extend(diagnostics.into_iter().filter(|diagnostic| {
            diagnostic.code != Code::HiddenByMetric || self.own.contains(&diagnostic.span.source)
        }));
        kept
    }
}

/// True for a diagnostic that is about a definition or expression.
pub fn concerns(diagnostic: &Diagnostic, registered: &Registered) -> bool {
    match &diagnostic.metric {
        Some(name) => registered.is_named && *name == registered.name,
        None => !registered.is_named && diagnostic.span.source == registered.name_span.source,
    }
}
