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
    /// Reads what the folders of the files say, or this directory if there are no
    /// files; `named` are files besides those of options. Gives the files that are
    /// over the fleet.
    ///
    /// # Errors
    /// A file of settings has mistakes, which are told, or two folders say what
    /// cannot be together.
    pub fn settle(&mut self, named: &[&str], messages: &mut Messages) -> Result<Vec<String>, Stop> {
        let configs = self.configs.iter().flat_map(|list| list.split(':'));
        let paths = configs.chain(named.iter().copied());
        let paths: Vec<&str> = paths.filter(|path| !matches!(*path, "" | "-")).collect();
        let files: Vec<PathBuf> = match paths.is_empty() {
            // Whatever else lies below this directory was not asked for.
            true => over_fleet_here(&mut self.folders),
            false => paths.iter().flat_map(|path| files_of(path, self.language.compat)).collect(),
        };
        let mut over_fleet = Vec::new();
        for file in files {
            let project = self.folders.read(&file);
            if project.is_some_and(|project| project.is_over_fleet(&file)) {
                over_fleet.extend(file.to_str().map(str::to_owned));
            }
        }
        refuse_mistakes(&mut self.folders, messages)?;
        self.are_extensions_given = Some(self.language.extensions);
        let is_extended = |project: &crate::project::Project| project.extensions == Some(true);
        self.language.extensions |= self.folders.files().any(|(_, project)| is_extended(project));
        if self.language.compat.is_none() {
            self.language.compat = self.one_dialect()?;
        }
        Ok(over_fleet)
    }

    /// The dialect of all files.
    fn one_dialect(&self) -> Result<Option<Dialect>, Stop> {
        let mut files: Vec<(&Path, Dialect)> = self
            .folders
            .files()
            .map(|(path, project)| (path, project.dialect.unwrap_or_default()))
            .collect();
        files.sort_by_key(|(path, _)| *path);
        let Some((first, dialect)) = files.first().copied() else { return Ok(None) };
        match files.iter().find(|(_, other)| *other != dialect) {
            None => Ok(Some(dialect)),
            Some((other, _)) => Err(Stop::Usage(format!(
                "{} and {} differ in `compat`: check their files one by one",
                escape::path(first),
                escape::path(other)
            ))),
        }
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

/// The files over the fleet that this directory's settings name, as far as they lie in it
/// or below it.
fn over_fleet_here(folders: &mut Folders) -> Vec<PathBuf> {
    let here = Path::new(".");
    let (Some(project), Ok(directory)) = (folders.read(here), here.canonicalize()) else {
        return Vec::new();
    };
    let from_here = |file: &PathBuf| {
        let file = file.canonicalize().ok()?;
        Some(here.join(file.strip_prefix(&directory).ok()?))
    };
    project.fleet.iter().filter_map(from_here).collect()
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
fn refuse_mistakes(folders: &mut Folders, messages: &mut Messages) -> Result<(), Stop> {
    let diagnostics = std::mem::take(&mut folders.diagnostics);
    let errors = diagnostics.errors();
    let Some(first) = diagnostics.iter().next() else { return Ok(()) };
    let name = folders.sources.get(first.span.source).name.clone();
    messages.diagnostics(diagnostics, &folders.sources);
    Err(Stop::Usage(format!("{name} has {}", counted(errors, "mistake"))))
}
