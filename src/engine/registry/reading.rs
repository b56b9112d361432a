//! Turns texts into definitions. The texts come from files, the environment or
//! a program.
//!
//! This module reports mistakes in a text. [`Registry::insert`] decides about a
//! definition without mistakes.

use std::sync::Arc;

use super::key_of;
use super::refusals::{duplicate, not_set};
use super::{Registered, Registry};
use crate::diag::pcp::FileLine;
use crate::diag::{Diagnostic, Diagnostics, EXPRESSION, Severity, pcp};
use crate::dialect::Language;
use crate::engine::controls::SetBy;
use crate::engine::system;
use crate::syntax::{
    DefinitionItem, DefinitionReader, Earlier, ParsedBefore, PcpError, Setting, bad_name,
    load_paths, load_readable_paths, name_mistake, parse_control, parse_expr,
};
use crate::text::{SourceId, SourceMap, Span};

impl Registry {
    /// Registers the definitions in the files of a `:`-separated list
    /// (`pmLoadDerivedConfig(3)`). Lines with mistakes are reported and
    /// skipped. Returns the number of registered metrics.
    ///
    /// In the dialects of libpcp, a path that cannot be read ends the list. The
    /// return value of that function is then in [`Diagnostic::pcp`] of the last
    /// diagnostic.
    pub fn load(
        &mut self,
        paths: &str,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        let extensions = self.language.extensions;
        self.load_with(paths, sources, diagnostics, |_| Some(extensions))
    }

    /// Registers the definitions in files as [`Registry::load`] does. `extensions`
    /// gets the name of a file and says whether the file may use extensions.
    /// `None` skips the file.
    pub(crate) fn load_with(
        &mut self,
        paths: &str,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
        extensions: impl Fn(&str) -> Option<bool>,
    ) -> usize {
        self.define_anonymous();
        let mut unreadable = Diagnostics::default();
        let files = load_paths(paths, self.language.dialect, sources, &mut unreadable);
        let count = self.add_files(files, sources, diagnostics, extensions);
        diagnostics.extend(unreadable);
        count
    }

    /// Registers the definitions that every client of PCP on this machine has
    /// (pmRegisterDerived(3)): those of the list in `PCP_DERIVED_CONFIG`, or
    /// without that variable those in the directory `config/derived` below
    /// `PCP_VAR_DIR`. A path that cannot be read is skipped.
    pub fn load_system(&mut self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) -> usize {
        self.define_anonymous();
        let Some(paths) = system::definitions() else { return 0 };
        let mut unreadable = Diagnostics::default();
        let files = load_readable_paths(&paths, sources, &mut unreadable);
        let extensions = self.language.extensions;
        let count = self.add_files(files, sources, diagnostics, |_| Some(extensions));
        diagnostics.extend(unreadable);
        count
    }

    fn add_files(
        &mut self,
        files: Vec<SourceId>,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
        extensions: impl Fn(&str) -> Option<bool>,
    ) -> usize {
        let add = |file| {
            let extensions = extensions(&sources.get(file).name);
            extensions.map(|extensions| self.add_text_with(file, extensions, sources, diagnostics))
        };
        files.into_iter().filter_map(add).sum()
    }

    /// Sets the options in `PCP_DERIVED_CONTROL` (PCPIntro(1)). Later calls
    /// cannot change them. Version 6 does not know the variable.
    pub fn set_system_controls(&mut self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) {
        let Some(text) = system::controls() else { return };
        if !self.language.dialect.is_version_7() {
            return;
        }
        let source = sources.add("$PCP_DERIVED_CONTROL", text);
        let mut found = Diagnostics::default();
        for setting in parse_control(source, sources, &mut found) {
            let Setting { option, value, .. } = setting;
            let outcome = self.controls.set(option, value, SetBy::Environment);
            not_set(setting, outcome, sources, &mut found);
        }
        found.sort();
        // The option is not part of a definition, so no definition is affected.
        for diagnostic in found.since_mut(0) {
            let said = diagnostic.pcp.take();
            diagnostic.pcp = said.map(|said| pcp::control_of_environment(&said).into());
        }
        diagnostics.extend(found.into_iter().map(as_warning));
    }

    /// Registers the definitions in the text of a definition file.
    pub fn add_text(
        &mut self,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        self.add_text_in(self.language, source, sources, None, diagnostics)
    }

    /// Registers the definitions in the text of a definition file as
    /// [`Registry::add_text`] does. Expressions that an earlier state of the text
    /// had are not parsed again.
    pub fn add_text_again(
        &mut self,
        source: SourceId,
        sources: &SourceMap,
        before: &mut ParsedBefore,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        self.add_text_in(self.language, source, sources, Some(before), diagnostics)
    }

    /// Registers the definitions in the text of a definition file, with or
    /// without extensions.
    pub(crate) fn add_text_with(
        &mut self,
        source: SourceId,
        extensions: bool,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        let language = Language { extensions, ..self.language };
        self.add_text_in(language, source, sources, None, diagnostics)
    }

    fn add_text_in(
        &mut self,
        language: Language,
        source: SourceId,
        sources: &SourceMap,
        parsed: Option<&mut ParsedBefore>,
        diagnostics: &mut Diagnostics,
    ) -> usize {
        let mut reader = DefinitionReader::new(language);
        let mut of_lines = Diagnostics::default();
        let items = reader.read_after(Some(&*self), source, sources, parsed, &mut of_lines);
        let mut late = Diagnostics::default();
        let before = self.count;
        self.reserve(items.len());
        for item in items {
            match item {
                DefinitionItem::Definition(definition) if definition.expr.error.is_none() => {
                    let key = key_of(&definition.name.value, &definition.text);
                    let registered = Registered {
                        name: definition.name.value,
                        name_span: definition.name.span,
                        is_named: true,
                        expr: definition.expr.expr,
                        key,
                        pmid: None,
                    };
                    let (name, first) = (Arc::clone(&registered.name), late.len());
                    // The diagnostics already have the mistakes.
                    if let Err(error) = self.insert(registered, &mut late) {
                        let file = &sources.get(source).name;
                        let line = FileLine { file, number: definition.line, line: "" };
                        let offset = usize::try_from(definition.skipped).unwrap_or(0);
                        let message = error.message.as_deref();
                        for diagnostic in late.since_mut(first) {
                            let said = line.syntax_error(&name, &definition.text, offset, message);
                            diagnostic.pcp = Some(said.into());
                        }
                    }
                }
                DefinitionItem::Definition(definition) => {
                    self.refused.insert(definition.name.value, ());
                }
                DefinitionItem::Text(text) => {
                    let (name, kind) = (&text.metric.value, text.kind);
                    // The reader has checked the name. The metric is missing only
                    // if it exceeded the limit.
                    let _ = self.set_text(name, kind, &text.text);
                }
                DefinitionItem::Control { setting, line } => {
                    let Setting { option, value, .. } = setting;
                    let outcome = self.controls.set(option, value, SetBy::Program);
                    let first = late.len();
                    not_set(setting, outcome, sources, &mut late);
                    let line = FileLine { file: &sources.get(source).name, number: line, line: "" };
                    for diagnostic in late.since_mut(first) {
                        let said = diagnostic.pcp.take();
                        diagnostic.pcp = said.map(|said| line.control(&said).into());
                    }
                }
            }
        }
        // libpcp reads and registers line by line, so diagnostics follow the
        // lines.
        let mut late = late.into_iter().peekable();
        for diagnostic in of_lines {
            while let Some(earlier) = late.next_if(|late| late.span.start < diagnostic.span.start) {
                diagnostics.push(earlier);
            }
            diagnostics.push(diagnostic);
        }
        diagnostics.extend(late);
        self.count - before
    }

    /// Registers one metric (`pmRegisterDerived(3)`).
    ///
    /// # Errors
    /// libpcp's words for a refused expression. Our own words are in
    /// `diagnostics`.
    pub fn register(
        &mut self,
        name: &str,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), PcpError> {
        // libpcp does not read the expression if the name is taken.
        if self.defines(name) {
            return Err(duplicate(name, sources.whole(source), "global", diagnostics));
        }
        let registered = self.parse_named(name, source, sources, diagnostics)?;
        self.insert(registered, diagnostics)
    }

    /// Registers a definition in place of an earlier one with the same name, if
    /// there is one. The metric gets another identifier, as after
    /// `pmUnregisterDerived(3)` and `pmRegisterDerived(3)`. Samples of other
    /// definitions stay.
    ///
    /// # Errors
    /// As [`Registry::register`]. The earlier definition then stays.
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
        self.parse_as(EXPRESSION, sources.whole(source), sources, diagnostics)
    }

    /// Parses an expression that is part of a text, without registering it.
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

    /// Parses an expression that libpcp's messages call `name`.
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
            // libpcp stops at its first error, even if there are more.
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
            key: key_of("", text),
            pmid: None,
        })
    }

    /// Parses the definition of a name, without registering it.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub(in crate::engine) fn parse_named(
        &self,
        name: &str,
        source: SourceId,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Registered, PcpError> {
        if let Some(mistake) = name_mistake(name) {
            diagnostics.push(bad_name(name, sources.whole(source), mistake.rule));
            let message = format!("illegal derived metric name ({name})");
            return Err(PcpError { offset: 0, message: Some(message) });
        }
        let first = diagnostics.len();
        let parsed = self.parse_as(name, sources.whole(source), sources, diagnostics);
        diagnostics.name_metric(first, name);
        let key = key_of(name, &sources.get(source).text);
        Ok(Registered { name: name.into(), is_named: true, key, ..parsed? })
    }
}

fn as_warning(diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..diagnostic }
}
