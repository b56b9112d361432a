//! `pmderive replay` reads cases from a file and writes answers to standard output.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::escape;
use crate::replay::{ReplayError, replay};

use super::exit_status::ExitStatus;
use super::stop::Stop;
use super::terminal::{Output, Purpose};
use crate::dialect::Dialect;
use crate::engine::Backend;

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// Cases, one JSON object on each line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub cases: PathBuf,
    /// Folder of the archives that the cases name.
    #[arg(long, value_name = "DIRECTORY")]
    pub archives: PathBuf,
    /// Give the answers of this version of libpcp.
    #[arg(long, value_enum, default_value_t = Dialect::Pcp7_2, value_name = "VERSION")]
    pub compat: Dialect,
    /// How expressions are computed.
    #[arg(long, value_enum, default_value_t = Backend::Jit)]
    pub backend: Backend,
}

/// Runs the command.
pub fn run(arguments: &ReplayArguments) -> Result<ExitStatus, Stop> {
    let ReplayArguments { cases: path, archives, compat, backend } = arguments;
    let name = escape::path(&path).into_owned();
    let cases: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(path);
            let unreadable = |error| Stop::Usage(format!("cannot read {name}: {error}"));
            Box::new(BufReader::new(file.map_err(unreadable)?))
        }
    };
    let mut answers = Output::standard(Purpose::Exact, false);
    let replayed = replay(cases, archives, *compat, *backend, &mut answers);
    // Answers before a case that makes no sense stay.
    let flushed = answers.flush();
    match replayed.and(flushed.map_err(ReplayError::Io)) {
        Ok(()) => Ok(ExitStatus::Good),
        Err(ReplayError::Io(error)) => Err(error.into()),
        Err(error) => Err(Stop::Usage(format!("{name}: {error}"))),
    }
}
