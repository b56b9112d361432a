//! Reads and registers the definitions and expressions that a file tests. Those with mistakes
//! get a message.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmderive_runtime::memory::MemoryMetadata;

use super::file::{FileText, TestFile};
use crate::diag::{Code, Diagnostic, Diagnostics, EXPRESSION, Severity};
use crate::engine::{Registered, Registry};
use crate::syntax::ast::Spanned;
use crate::syntax::{definition_files, load_files, name_mistake};
use crate::text::{SourceMap, Span};

impl TestFile {
    /// Reads the language settings in the folders of the definition files. Settings in the test
    /// file take precedence. Mistakes in folders' settings stay with the folders.
    pub fn read_settings(&mut self, diagnostics: &mut Diagnostics) {
        for path in self.files.iter().chain(&self.fleet_files) {
            for file in definition_files(&path.value, false).into_iter().flatten() {
                self.folders.read(&file);
            }
            match self.folders.dialect() {
                _ if self.has_dialect => {}
                Ok(dialect) => self.language.dialect = dialect.unwrap_or(self.language.dialect),
                Err(words) => {
                    let told = Diagnostic::error(Code::BadTestFile, path.span, words);
                    return diagnostics.push(told.help("say `compat` in this file"));
                }
            }
        }
        self.language.extensions |= !self.has_extensions && self.folders.are_extended();
    }

    /// Whether a definition file may use extensions.
    fn extensions_in(&self, file: &str) -> bool {
        let folder = self.folders.of(Path::new(file)).filter(|_| !self.has_extensions);
        folder.map_or(self.extensions, |project| project.extensions == Some(true))
    }
}

/// Registers the definitions of files, and those in the test file itself. Returns true if all
/// files could be read.
pub(super) fn add_definitions(
    paths: &[Spanned<PathBuf>],
    written: Option<&FileText>,
    file: &TestFile,
    registry: &mut Registry,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> bool {
    let mut is_whole = true;
    for path in paths {
        let mut unreadable = Diagnostics::default();
        let dialect = file.language.dialect;
        let texts = load_files(&path.value, dialect, sources, &mut unreadable);
        is_whole &= unreadable.errors() == 0;
        diagnostics.extend(
            unreadable
                .iter()
                .map(|one| Diagnostic::error(Code::BadTestFile, path.span, one.message.clone())),
        );
        for text in texts {
            let extensions = file.extensions_in(&sources.get(text).name);
            registry.add_text_with(text, extensions, sources, diagnostics);
        }
    }
    if let Some(definitions) = written {
        let mut name = Arc::clone(&sources.get(file.source).name);
        if definitions.content.is_none() {
            // It has escapes, and other places than the file.
            name = format!("definitions in {name}").into();
        }
        let before = definitions.content.map_or_else(String::new, |content| {
            let before = &sources.get(file.source).text[..content as usize];
            before.split_inclusive('\n').map(filler).collect()
        });
        let text = sources.add(name, before + &definitions.text);
        registry.add_text(text, sources, diagnostics);
    }
    is_whole
}

/// The message about a definition whose text has mistakes. The mistakes are reported
/// separately.
pub(super) const MISTAKEN: &str = "there are mistakes in its definition";

/// The message about an expression whose text has mistakes.
pub(super) const WRONG_TEXT: &str = "the text of the expression is wrong";

/// The reason for which a subject without a definition is no expression. Its definition has
/// mistakes, or may be in an unreadable file.
pub(super) fn unread(
    subject: &FileText,
    registry: &Registry,
    is_whole: bool,
    metadata: &MemoryMetadata,
) -> Option<&'static str> {
    let name = subject.text.trim();
    match registry.is_refused(name) {
        true => Some(MISTAKEN),
        false if is_whole || name_mistake(name).is_some() || metadata.lookup(name).is_some() => {
            None
        }
        false => Some("it may be defined in a file that cannot be read"),
    }
}

/// A line for a definition file that has the same length but no contents. Such
/// lines stand before definitions inside a test file, so that places in these
/// definitions have the line numbers of the test file.
fn filler(line: &str) -> String {
    match line.strip_suffix('\n') {
        Some(line) => "#".repeat(line.len()) + "\n",
        None => " ".repeat(line.len()),
    }
}

/// Parses an expression that a test names.
pub(super) fn parse(
    subject: &FileText,
    file: &TestFile,
    registry: &Registry,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Registered>> {
    let length = u32::try_from(subject.text.len()).ok()?;
    let place = match subject.content {
        Some(start) => Span::new(file.source, start, start + length),
        None => Span::new(sources.add(EXPRESSION, &*subject.text), 0, length),
    };
    registry.parse_within(place, sources, diagnostics).ok().map(Arc::new)
}

/// The mistake in a definition or expression, if there is one.
pub(super) fn mistake(one: &Registered, found: &Diagnostics) -> Option<String> {
    let concerns = |diagnostic: &&Diagnostic| match (&diagnostic.metric, one.is_named) {
        (Some(name), true) => **name == *one.name,
        (None, false) => {
            let (place, whole) = (diagnostic.span, one.name_span);
            place.source == whole.source && (whole.start..=whole.end).contains(&place.start)
        }
        _ => false,
    };
    let mut errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let words = |one: &Diagnostic| match &one.help {
        Some(help) => format!("{}: {}; {help}", one.code, one.message),
        None => format!("{}: {}", one.code, one.message),
    };
    let mut first = errors.find(concerns).cloned()?;
    first.name_key();
    Some(words(&first))
}
