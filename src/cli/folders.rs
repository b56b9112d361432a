//! The settings in `pmderive.toml` for the definition files of a command. Each file follows its
//! own folder. Options take precedence.

use std::path::{Path, PathBuf};

use crate::dialect::{Dialect, Language};
use crate::escape;
use crate::project::Folders;
use crate::syntax::{Unreadable, counted, definition_files};

use super::args::{DefinitionArguments, LanguageArguments, MetadataArguments, SourceArguments};
use super::messages::Messages;
use super::stop::Stop;

/// The message for a directory without definitions that the user names.
pub const NO_DEFINITION_FILE: &str = "no definition file is below this directory";

impl DefinitionArguments {
    /// Reads the settings of the files' folders. `named` are files besides those of options;
    /// `-` stands in the current directory. Returns the files over the fleet. Without files
    /// only options count: no directory then changes the meaning of an expression.
    ///
    /// # Errors
    /// A file of settings has mistakes, which are printed; two folders contradict each other;
    /// or a directory of `named` is empty.
    pub fn settle(&mut self, named: &[&str], messages: &mut Messages) -> Result<Vec<String>, Stop> {
        let configs = self.configs.iter().flat_map(|list| list.split(':'));
        let paths = configs.chain(named.iter().copied());
        let paths = paths.filter(|path| !path.is_empty());
        let mut over_fleet = Vec::new();
        for path in paths {
            let files = files_of(path, self.language.compat);
            // A directory on a search path may be empty.
            if files.is_empty() && named.contains(&path) {
                let path = escape::path(path);
                return Err(Stop::Usage(format!("cannot read {path}: {NO_DEFINITION_FILE}")));
            }
            for file in files {
                let project = self.folders.read(&file);
                if project.is_some_and(|project| project.is_over_fleet(&file)) {
                    over_fleet.extend(file.to_str().map(str::to_owned));
                }
            }
        }
        refuse_mistakes(&mut self.folders, messages)?;
        if messages.are_verbose() {
            for (file, _) in self.folders.files() {
                messages.note(&format_args!("read settings from {}", escape::path(file)));
            }
        }
        self.are_extensions_given = Some(self.language.extensions);
        self.language.extensions |= self.folders.are_extended();
        if self.language.compat.is_none() {
            let dialect = self.folders.dialect();
            self.language.compat = dialect
                .map_err(|words| Stop::Usage(format!("{words}: check their files one by one")))?;
        }
        Ok(over_fleet)
    }

    /// The file of metadata that replaces a source: that of the option, or without a source
    /// that of the folders.
    pub fn metadata(
        &self,
        given: &MetadataArguments,
        source: &SourceArguments,
    ) -> Result<Option<PathBuf>, Stop> {
        if given.metadata.is_some() || source.is_given() {
            return Ok(given.metadata.clone());
        }
        let files = self.folders.files();
        let mut named: Vec<&PathBuf> =
            files.filter_map(|(_, project)| Some(&project.metadata.as_ref()?.value)).collect();
        named.sort();
        named.dedup();
        match named[..] {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [first, second, ..] => Err(Stop::Usage(format!(
                "the folders name {} and {}: choose one with --metadata",
                escape::path(first),
                escape::path(second)
            ))),
        }
    }

    /// The place in a file of settings that names a file of metadata.
    pub fn place_of_metadata(&self, path: &Path) -> Option<String> {
        let mut named = self.folders.files().filter_map(|(_, project)| project.metadata.as_ref());
        self.folders.sources.place(named.find(|one| one.value == path)?.span)
    }

    /// Whether a file may use extensions; `None` for a file over the fleet.
    pub fn extensions_in(&self, file: &str) -> Option<bool> {
        let given = self.are_extensions_given.unwrap_or(self.language.extensions);
        match self.folders.of(Path::new(file)) {
            Some(project) if project.is_over_fleet(Path::new(file)) => None,
            Some(project) => Some(given || project.has_extensions()),
            None => Some(given),
        }
    }
}

impl LanguageArguments {
    /// The language of a file, as the options and its folder choose it.
    ///
    /// # Errors
    /// The folder's settings have mistakes, which are printed.
    pub fn of_file(
        &self,
        file: &Path,
        folders: &mut Folders,
        messages: &mut Messages,
    ) -> Result<Language, Stop> {
        let project = folders.read(file);
        refuse_mistakes(folders, messages)?;
        let given = self.chosen();
        let Some(project) = project else { return Ok(given) };
        let language = project.language(given);
        Ok(Language { dialect: self.compat.unwrap_or(language.dialect), ..language })
    }
}

/// The definition files that an argument stands for.
fn files_of(path: &str, compat: Option<Dialect>) -> Vec<PathBuf> {
    let all = compat.is_some_and(|dialect| dialect != Dialect::Fixed);
    let path_of = |found| match found {
        Ok(path) | Err(Unreadable { path, .. }) => path,
    };
    definition_files(Path::new(path), all).into_iter().map(path_of).collect()
}

/// Prints the mistakes of settings.
///
/// # Errors
/// There are mistakes.
pub fn refuse_mistakes(folders: &mut Folders, messages: &mut Messages) -> Result<(), Stop> {
    let diagnostics = std::mem::take(&mut folders.diagnostics);
    let errors = diagnostics.errors();
    let Some(first) = diagnostics.iter().next() else { return Ok(()) };
    let name = folders.sources.get(first.span.source).name.clone();
    messages.diagnostics(diagnostics, &folders.sources);
    Err(Stop::Usage(format!("{name} has {}", counted(errors, "mistake"))))
}
