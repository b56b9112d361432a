//! What `pmderive.toml` says about the definition files that a command is given:
//! each file is read as its own folder says. Options come first.

use std::path::{Path, PathBuf};

use crate::dialect::{Dialect, Language};
use crate::escape;
use crate::project::Folders;
use crate::syntax::{Unreadable, counted, definition_files};

use super::args::{DefinitionArguments, LanguageArguments};
use super::messages::Messages;
use super::stop::Stop;

impl DefinitionArguments {
    /// Reads what the folders of the files say; `named` are files besides those of
    /// options, and `-` is one in the current directory. Gives the files that are over the
    /// fleet. Without files only options count, so that no directory changes what an
    /// expression means.
    ///
    /// # Errors
    /// A file of settings has mistakes, which are told, or two folders say what
    /// cannot be together.
    pub fn settle(&mut self, named: &[&str], messages: &mut Messages) -> Result<Vec<String>, Stop> {
        let configs = self.configs.iter().flat_map(|list| list.split(':'));
        let paths = configs.chain(named.iter().copied());
        let paths = paths.filter(|path| !path.is_empty());
        let mut over_fleet = Vec::new();
        for file in paths.flat_map(|path| files_of(path, self.language.compat)) {
            let project = self.folders.read(&file);
            if project.is_some_and(|project| project.is_over_fleet(&file)) {
                over_fleet.extend(file.to_str().map(str::to_owned));
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

    /// Whether a file may use extensions; nothing for a file that is over the fleet.
    pub fn extensions_in(&self, file: &str) -> Option<bool> {
        let given = self.are_extensions_given.unwrap_or(self.language.extensions);
        match self.folders.of(Path::new(file)) {
            Some(project) if project.is_over_fleet(Path::new(file)) => None,
            Some(project) => Some(given || project.extensions == Some(true)),
            None => Some(given),
        }
    }
}

impl LanguageArguments {
    /// The language of a file, of which its folder may say something.
    ///
    /// # Errors
    /// The folder's settings have mistakes, which are told.
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

/// Tells what is wrong with settings.
///
/// # Errors
/// Anything is.
pub fn refuse_mistakes(folders: &mut Folders, messages: &mut Messages) -> Result<(), Stop> {
    let diagnostics = std::mem::take(&mut folders.diagnostics);
    let errors = diagnostics.errors();
    let Some(first) = diagnostics.iter().next() else { return Ok(()) };
    let name = folders.sources.get(first.span.source).name.clone();
    messages.diagnostics(diagnostics, &folders.sources);
    Err(Stop::Usage(format!("{name} has {}", counted(errors, "mistake"))))
}
