//! What `pmderive.toml` says about the definitions that are checked. Options of
//! the command line come before it.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::diag::Diagnostics;
use crate::escape;
use crate::project::{self, Levels, MAX_BYTES};
use crate::text::{SourceMap, stray};

use super::CheckArguments;
use crate::cli::Stop;
use crate::cli::args::DefinitionArguments;
use crate::cli::messages::{Messages, counted};

/// How to check.
pub struct Settings {
    /// The arguments, with the language that counts.
    pub definitions: DefinitionArguments,
    /// Metadata to check with, if no source is given.
    pub metadata: Option<PathBuf>,
    /// What becomes of warnings.
    pub levels: Levels,
    /// Whether lints run.
    pub lint: bool,
}

/// Reads the file that belongs to the first definition file, or to this
/// directory if there is none. Mistakes in it are told, and end the command.
pub fn settings(arguments: &CheckArguments, messages: &mut Messages) -> Result<Settings, Stop> {
    let mut definitions = arguments.definitions()?;
    let given = arguments.metadata.metadata.clone();
    let usual = Settings {
        definitions: definitions.clone(),
        metadata: given.clone(),
        levels: Levels::default(),
        lint: arguments.lint,
    };
    let Some(path) = project::find(&first_file(arguments)) else { return Ok(usual) };
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let name = escape::path(&path).into_owned();
    let text =
        read(&path).map_err(|reason| Stop::Usage(format!("cannot read {name}: {reason}")))?;
    let source = sources.add(&*name, text);
    let directory = path.parent().unwrap_or(Path::new(""));
    let project = project::read(source, directory, &sources, &mut diagnostics);
    if diagnostics.errors() > 0 {
        let errors = diagnostics.errors();
        messages.diagnostics(diagnostics, &sources);
        return Err(Stop::Usage(format!("{name} has {}", counted(errors, "mistake"))));
    }
    let language = &mut definitions.language;
    language.compat = language.compat.or(project.dialect);
    language.extensions |= project.extensions.unwrap_or(false);
    let metadata = match arguments.source.is_given() {
        true => None,
        false => given.or_else(|| project.metadata.map(|path| path.value)),
    };
    let lint = arguments.lint || project.lints.is_some();
    Ok(Settings { definitions, metadata, levels: project.lints.unwrap_or_default(), lint })
}

/// Where to look for settings.
fn first_file(arguments: &CheckArguments) -> PathBuf {
    let configs = arguments.definitions.configs.iter().flat_map(|list| list.split(':'));
    let mut files = configs.chain(arguments.positional.first_file()).filter(|file| *file != "-");
    PathBuf::from(files.next().unwrap_or("."))
}

fn read(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    match file.take(MAX_BYTES + 1).read_to_end(&mut bytes) {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length > MAX_BYTES) => {
            Err(format!("larger than {MAX_BYTES} bytes"))
        }
        Ok(_) => Ok(stray::decoded(&bytes).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}
