//! The definitions and expressions of a command: read, parsed and selected.
//!
//! No source of metrics is needed for that. What is wrong is collected as
//! diagnostics, and the rest remains.

use std::collections::HashSet;

use crate::diag::{Diagnostic, Diagnostics, EXPRESSION};
use crate::engine::{Registered, Registry};
use crate::source::SourceMap;

use super::args::DefinitionArguments;

/// Everything that may be evaluated.
pub struct Definitions {
    /// Texts of the files and expressions.
    pub sources: SourceMap,
    /// The definitions of the files.
    pub registry: Registry,
    /// What is wrong with the texts, until the caller takes it.
    pub diagnostics: Diagnostics,
    selection: Vec<Selected>,
}

/// One thing to be evaluated.
enum Selected {
    /// A definition of the registry, by its position.
    Definition(usize),
    /// An expression without a name.
    Expression(Box<Registered>),
}

impl Selected {
    fn among<'d>(&'d self, definitions: &'d [Registered]) -> &'d Registered {
        match self {
            Selected::Definition(position) => &definitions[*position],
            Selected::Expression(expression) => expression,
        }
    }
}

impl Definitions {
    /// Reads definition files.
    pub fn read(arguments: &DefinitionArguments) -> Definitions {
        let mut definitions = Definitions {
            sources: SourceMap::default(),
            registry: Registry::new(arguments.language()),
            diagnostics: Diagnostics::default(),
            selection: Vec::new(),
        };
        for paths in &arguments.configs {
            let Definitions { sources, registry, diagnostics, .. } = &mut definitions;
            registry.load(paths, sources, diagnostics);
        }
        definitions
    }

    /// Selects all definitions.
    pub fn select_all(&mut self) {
        let all = 0..self.registry.definitions().len();
        self.selection.extend(all.map(Selected::Definition));
    }

    /// Selects definitions by their names; what is no such name is an
    /// expression. What is given twice counts once.
    pub fn select(&mut self, texts: &[String]) {
        let mut seen = HashSet::new();
        for text in texts {
            if !seen.insert(text.trim()) {
                continue;
            }
            match self.registry.position(text.trim()) {
                Some(position) => self.selection.push(Selected::Definition(position)),
                None => self.select_expression(text),
            }
        }
    }

    /// Selects an expression, even if it is a definition's name.
    pub fn select_expression(&mut self, text: &str) {
        let source = self.sources.add(EXPRESSION, text);
        if let Ok(expression) = self.registry.parse(source, &self.sources, &mut self.diagnostics) {
            self.selection.push(Selected::Expression(Box::new(expression)));
        }
    }

    /// What was selected, in its order.
    pub fn selection(&self) -> Vec<&Registered> {
        let definitions = self.registry.definitions();
        self.selection.iter().map(|selected| selected.among(definitions)).collect()
    }
}

/// True for a diagnostic that is about a definition or expression.
pub fn concerns(diagnostic: &Diagnostic, registered: &Registered) -> bool {
    match &diagnostic.metric {
        Some(name) => registered.is_named && *name == registered.name,
        None => !registered.is_named && diagnostic.span.source == registered.name_span.source,
    }
}
