//! How to check: what options say, and what `pmderive.toml` says of each file.

use std::path::{Path, PathBuf};

use super::arguments::CheckArguments;
use crate::cli::args::DefinitionArguments;
use crate::cli::stop::Stop;
use crate::diag::{Code, Diagnostics, EXPRESSION};
use crate::escape;
use crate::project::{Level, Levels, Project, apply_levels};
use crate::syntax::ast::Spanned;
use crate::text::{SourceId, SourceMap};

/// How to check.
pub struct Settings {
    /// The arguments, with the language that counts.
    pub definitions: DefinitionArguments,
    /// Metadata to check with, if no source is given.
    pub metadata: Option<PathBuf>,
    /// Where a folder names it, if one does.
    pub metadata_place: Option<String>,
    /// Whether lints run.
    pub lint: bool,
    /// Whether they run for all files.
    lint_all: bool,
}

/// Joins what the folders say with the options.
pub fn settings(arguments: &CheckArguments) -> Result<Settings, Stop> {
    let definitions = arguments.definitions()?;
    let given = arguments.metadata.metadata.clone();
    let (metadata, metadata_place) = match (arguments.source.is_given(), given) {
        (true, _) => (None, None),
        (false, Some(given)) => (Some(given), None),
        (false, None) => one_metadata(&definitions)?.unzip(),
    };
    let mut projects = definitions.folders.files().map(|(_, project)| project);
    let lint = arguments.lint || projects.any(|project| project.lints.is_some());
    drop(projects);
    Ok(Settings { definitions, metadata, metadata_place, lint, lint_all: arguments.lint })
}

/// The metadata of all files, and where they are named.
fn one_metadata(definitions: &DefinitionArguments) -> Result<Option<(PathBuf, String)>, Stop> {
    let folders = &definitions.folders;
    let mut named: Vec<&Spanned<PathBuf>> =
        folders.files().filter_map(|(_, project)| project.metadata.as_ref()).collect();
    named.sort_by_key(|one| &one.value);
    named.dedup_by_key(|one| &one.value);
    match named[..] {
        [] => Ok(None),
        [one] => {
            let place = folders.sources.place(one.span).unwrap_or_default();
            Ok(Some((one.value.clone(), place)))
        }
        [first, second, ..] => Err(Stop::Usage(format!(
            "the folders name {} and {}: choose one with --metadata",
            escape::path(&first.value),
            escape::path(&second.value)
        ))),
    }
}

impl Settings {
    /// What the folder of a text says; an expression has none.
    fn project(&self, text: SourceId, sources: &SourceMap) -> Option<&Project> {
        let name = &*sources.get(text).name;
        let folder = self.definitions.folders.of(Path::new(name)).filter(|_| name != EXPRESSION);
        folder.map(|project| &**project)
    }

    /// Whether lints of a text are told.
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
