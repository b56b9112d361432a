//! Definitions by name, as they were registered; independent of any source.

use std::collections::HashMap;

use super::identity;
use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION, pcp};
use crate::dialect::Language;
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::ast::Expr;
use crate::syntax::{DefinitionItem, DefinitionReader, HelpText, PcpError, load_paths, parse_expr};

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
}

/// Definitions in the order of registration.
#[derive(Debug)]
pub struct Registry {
    language: Language,
    reader: DefinitionReader,
    definitions: Vec<Registered>,
    by_name: HashMap<Box<str>, usize>,
    texts: Vec<HelpText>,
}

impl Registry {
    /// Without definitions.
    pub fn new(language: impl Into<Language>) -> Registry {
        let language = language.into();
        Registry {
            language,
            reader: DefinitionReader::new(language),
            definitions: Vec::new(),
            by_name: HashMap::new(),
            texts: Vec::new(),
        }
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
        let files = load_paths(paths, sources, diagnostics);
        files.into_iter().map(|file| self.add_text(file, sources, diagnostics)).sum()
    }

    /// Registers what the text of a definition file defines.
    pub fn add_text(
        &mut self,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        let items = self.reader.read(source, sources, diagnostics);
        let before = self.definitions.len();
        for item in items {
            match item {
                DefinitionItem::Definition(definition) if definition.expr.error.is_none() => {
                    let identity = identity(&definition.name.value, &definition.text);
                    self.insert(Registered {
                        name: definition.name.value,
                        name_span: definition.name.span,
                        is_named: true,
                        expr: definition.expr.expr,
                        identity,
                    });
                }
                DefinitionItem::Definition(_) => {}
                DefinitionItem::Text(text) => self.texts.push(text),
                // Limits and debugging of libpcp, which have no meaning here.
                DefinitionItem::Control { .. } => {}
            }
        }
        self.definitions.len() - before
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
        let registered = self.parse(source, sources, diagnostics)?;
        if self.by_name.contains_key(name) {
            let message = format!("`{name}` is defined already");
            let span = registered.name_span;
            diagnostics.push(Diagnostic::error(Code::DuplicateName, span, message));
            let message = Some("Duplicate global derived metric name".to_string());
            return Err(PcpError { offset: 0, message });
        }
        let identity = identity(name, &sources.get(source).text);
        self.insert(Registered { name: name.into(), is_named: true, identity, ..registered });
        Ok(())
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
        let text = sources.get(source).text.clone();
        let first = diagnostics.len();
        let parsed = parse_expr(source, &text, 0, self.language, diagnostics);
        if let Some(error) = parsed.error {
            // libpcp stops at its first error, whatever else is found.
            if let Some(diagnostic) = diagnostics.since_mut(first).first_mut() {
                let message = error.message.as_deref();
                let said = pcp::syntax_error(EXPRESSION, &text, error.offset, message);
                diagnostic.pcp = Some(said.into());
            }
            return Err(error);
        }
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        Ok(Registered {
            name: text.trim().into(),
            name_span: Span::new(source, 0, end),
            is_named: false,
            expr: parsed.expr,
            identity: identity("", &text),
        })
    }

    fn insert(&mut self, registered: Registered) {
        self.by_name.insert(registered.name.clone(), self.definitions.len());
        self.definitions.push(registered);
    }

    /// The definition of a name.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.position(name).map(|position| &self.definitions[position])
    }

    /// Position of a name's definition among [`Registry::definitions`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// All definitions, in the order of registration.
    pub fn definitions(&self) -> &[Registered] {
        &self.definitions
    }

    /// All names, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.iter().map(|definition| &*definition.name)
    }

    /// Help texts, in the order of registration.
    pub fn texts(&self) -> &[HelpText] {
        &self.texts
    }
}
