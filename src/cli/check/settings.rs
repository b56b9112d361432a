//! Settings of `check`: its options, joined with the `pmderive.toml` of each file's folder.

use std::path::{Path, PathBuf};

use super::arguments::CheckArguments;
use crate::cli::args::DefinitionArguments;
use crate::cli::stop::Stop;
use crate::diag::{Code, Diagnostics, EXPRESSION};
use crate::project::{Level, Levels, Project, apply_levels};
use crate::text::{SourceId, SourceMap};

/// Settings of one run of `check`.
pub struct Settings {
    /// The arguments, with the language already settled.
    pub definitions: DefinitionArguments,
    /// File of metadata to check with, if no source is given.
    pub metadata: Option<PathBuf>,
    /// Whether lints run.
    pub lint: bool,
    /// Whether `--lint` asks for lints of all files.
    lint_all: bool,
}

/// Joins the settings of the folders with the options.
pub fn settings(arguments: &CheckArguments) -> Result<Settings, Stop> {
    let definitions = arguments.definitions()?;
    let metadata = definitions.metadata(&arguments.metadata, &arguments.source)?;
    let mut projects = definitions.folders.files().map(|(_, project)| project);
    let lint = arguments.lint || projects.any(|project| project.lints.is_some());
    drop(projects);
    Ok(Settings { definitions, metadata, lint, lint_all: arguments.lint })
}

impl Settings {
    /// The settings of a text's folder; `None` for an expression.
    fn project(&self, text: SourceId, sources: &SourceMap) -> Option<&Project> {
        let name = &*sources.get(text).name;
        let folder = self.definitions.folders.of(Path::new(name)).filter(|_| name != EXPRESSION);
        folder.map(|project| &**project)
    }

    /// Whether lints of a text are reported.
    pub fn lints(&self, text: SourceId, sources: &SourceMap) -> bool {
        let project = self.project(text, sources);
        self.lint_all || project.is_some_and(|project| project.lints.is_some())
    }

    /// Lets each folder decide about the warnings of its files.
    pub fn apply_levels(&self, sources: &SourceMap, diagnostics: &mut Diagnostics) {
        let usual = Levels::default();
        let level = |text: SourceId, code: Code| -> Level {
            let project = self.project(text, sources);
            project.and_then(|project| project.lints.as_ref()).unwrap_or(&usual).of(code)
        };
        apply_levels(level, diagnostics);
    }
}
