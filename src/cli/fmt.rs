//! `pmderive fmt`: brings definition files into their canonical form.
//!
//! It reads files and replaces, prints or compares them; [`crate::format`]
//! knows the form itself. A file is replaced as a whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use clap::Args;
use similar::TextDiff;

use crate::escape;
use crate::format::format_definitions;
use crate::syntax::{
    STANDARD_INPUT, Unreadable, definition_files, read_bounded, read_definition_file,
};

use super::args::LanguageArguments;
use super::messages::Messages;
use super::terminal::{Purpose, RawArgument};
use super::{Outcome, Stop};

/// Said after the options.
const NOTES: &str = "\
A definition longer than 100 columns goes on in further lines, which PCP before version 7 does not
understand: give `--compat 6.0` for files that it has to read, and every definition stays on one
line. Lines with mistakes stay as they are, and the exit status is 2; `pmderive check` shows what is
wrong with them.";

/// Arguments of `fmt`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct FmtArguments {
    /// Change no file; print what would change, and exit with 1 if anything would,
    /// with 2 if lines have mistakes.
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print the formatted text instead of changing the file.
    #[arg(long)]
    stdout: bool,
    /// Text of others as it is.
    #[command(flatten)]
    pub raw: RawArgument,
    /// Language of the files.
    #[command(flatten)]
    language: LanguageArguments,
    /// Files to format; a directory stands for all files below it, `-` for
    /// standard input, which is printed.
    #[arg(required = true, value_name = "FILE|DIRECTORY|-")]
    files: Vec<PathBuf>,
}

/// Where a text comes from.
enum Input {
    StandardInput,
    File(PathBuf),
}

/// Runs the command.
pub fn run(arguments: &FmtArguments, messages: &Messages) -> Result<Outcome, Stop> {
    let mut outcome = Outcome::Good;
    for path in &arguments.files {
        for input in inputs(path) {
            let done = input.and_then(|input| {
                let text = input.read()?;
                Ok((input, text))
            });
            outcome = outcome.max(match done {
                Ok((input, text)) => format(&input, &text, arguments, messages)?,
                Err(unreadable) => {
                    let Unreadable { path, reason } = unreadable;
                    messages.error(&format_args!("cannot read {}: {reason}", escape::path(&path)));
                    Outcome::Mistake
                }
            });
        }
    }
    Ok(outcome)
}

/// What an argument stands for.
fn inputs(path: &Path) -> Vec<Result<Input, Unreadable>> {
    if path == Path::new("-") {
        return vec![Ok(Input::StandardInput)];
    }
    definition_files(path).into_iter().map(|file| file.map(Input::File)).collect()
}

impl Input {
    fn name(&self) -> String {
        match self {
            Input::StandardInput => STANDARD_INPUT.to_owned(),
            Input::File(path) => escape::path(&path).into_owned(),
        }
    }

    fn read(&self) -> Result<String, Unreadable> {
        let bytes = match self {
            Input::File(path) => read_definition_file(path),
            Input::StandardInput => read_bounded(io::stdin().lock()),
        };
        // Other bytes would not survive the way through a text.
        let text = bytes.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| {
                let offset = error.utf8_error().valid_up_to();
                format!("at byte {offset} is something that is not UTF-8")
            })
        });
        text.map_err(|reason| Unreadable { path: self.name().into(), reason })
    }
}

fn format(
    input: &Input,
    text: &str,
    arguments: &FmtArguments,
    messages: &Messages,
) -> Result<Outcome, Stop> {
    let formatted = format_definitions(text, arguments.language.chosen());
    let name = input.name();
    let mut outcome = Outcome::Good;
    if formatted.mistakes > 0 {
        let lines =
            if formatted.mistakes == 1 { "line has a mistake" } else { "lines have mistakes" };
        messages.error(&format_args!(
            "{name}: {} {lines} and stayed as before; `pmderive check` shows more",
            formatted.mistakes
        ));
        outcome = Outcome::Mistake;
    }
    let is_same = formatted.text == text;
    if arguments.check {
        if is_same {
            return Ok(outcome);
        }
        let diff = TextDiff::from_lines(text, &formatted.text);
        let name = escape::line(name.as_bytes());
        print(&diff.unified_diff().header(&name, &name).to_string(), messages)?;
        return Ok(outcome.max(Outcome::Failed));
    }
    match input {
        Input::File(path) if !arguments.stdout => {
            if !is_same && let Err(error) = replace(path, &formatted.text) {
                messages.error(&format_args!("cannot write {name}: {error}"));
                return Ok(Outcome::SourceFailed);
            }
        }
        _ => print(&formatted.text, messages)?,
    }
    Ok(outcome)
}

/// Prints what may be read by programs: a definition file, or a patch for one.
fn print(text: &str, messages: &Messages) -> Result<(), Stop> {
    messages.output(Purpose::Exact).print(text)
}

/// Replaces the text of a file and keeps its owner and permissions. Whoever
/// reads the file meanwhile sees the old text or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".pmderive-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    let owner = file.as_file().metadata()?;
    if (owner.uid(), owner.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
    }
    file.as_file().set_permissions(metadata.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
