//! Settings of an open text, from its `pmderive.toml`. They are read again with each analysis
//! of the text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{DiagnosticSeverity, NumberOrString};

use super::files::OpenTexts;
use super::positions::{Encoding, LineIndex};
use crate::diag::{Code, Diagnostics};
use crate::dialect::Language;
use crate::project::{Levels, MAX_BYTES, Project, find, read};
use crate::text::SourceMap;

/// Settings for analysing and checking a text.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of settings.
    pub file: Option<PathBuf>,
    /// The language of the text.
    pub language: Language,
    /// The language that options choose.
    pub options: Language,
    /// File of metadata to check with.
    pub metadata: Option<PathBuf>,
    /// Levels of the lints: allow, warn or deny.
    pub levels: Levels,
    /// The other settings of the file.
    project: Arc<Project>,
    /// Mistakes of the file of settings.
    pub mistakes: Vec<lsp_types::Diagnostic>,
}

impl Settings {
    /// The settings of a text; `options` take precedence.
    pub fn of(
        path: Option<&Path>,
        options: Language,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Settings {
        let file = path.and_then(find);
        let (project, mistakes) = match &file {
            Some(file) => project(file, open, encoding),
            None => (Project::default(), Vec::new()),
        };
        let is_over_fleet = path.is_some_and(|path| project.is_over_fleet(path));
        let mut language = project.language(options);
        // As in `serve`.
        language.extensions |= is_over_fleet;
        let metadata = project.metadata.as_ref().map(|path| path.value.clone());
        let levels = project.lints.clone().unwrap_or_default();
        let project = Arc::new(project);
        Settings { file, language, options, metadata, levels, project, mistakes }
    }

    /// True for a file whose definitions are over the fleet.
    pub fn is_over_fleet(&self, path: &Path) -> bool {
        self.project.is_over_fleet(path)
    }
}

/// The settings in a file, with its mistakes.
fn project(
    file: &Path,
    open: &OpenTexts,
    encoding: Encoding,
) -> (Project, Vec<lsp_types::Diagnostic>) {
    let is_small = file.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    let text = is_small.then(|| open.read(file)).flatten();
    let Some(text) = text else {
        let mistake = lsp_types::Diagnostic {
            severity: Some(DiagnosticSeverity::ERROR),
            code: Some(NumberOrString::String(Code::BadConfigFile.to_string())),
            source: Some("pmderive".to_owned()),
            message: "this file cannot be read, or is no short text in UTF-8".to_owned(),
            ..lsp_types::Diagnostic::default()
        };
        return (Project::default(), vec![mistake]);
    };
    let (mut sources, mut found) = (SourceMap::default(), Diagnostics::default());
    let source = sources.add("", Arc::clone(&text));
    let directory = file.parent().unwrap_or(Path::new(""));
    let project = read(source, directory, &sources, &mut found);
    let lines = LineIndex::new(&text, encoding);
    let shown = found.iter().map(|one| lsp_types::Diagnostic {
        range: lines.range(&text, one.span.start as usize..one.span.end as usize),
        severity: Some(DiagnosticSeverity::ERROR),
        code: Some(NumberOrString::String(one.code.to_string())),
        source: Some("pmderive".to_owned()),
        message: match &one.help {
            Some(help) => format!("{}\nhelp: {help}", one.message),
            None => one.message.clone(),
        },
        ..lsp_types::Diagnostic::default()
    });
    (project, shown.collect())
}
