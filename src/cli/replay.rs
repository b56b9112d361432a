//! `pmderive replay`: reads cases from a file, writes answers to standard output.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::Path;

use crate::replay::{ReplayError, replay};

use super::args::ReplayArguments;
use super::{Outcome, Stop};

/// Runs the command.
pub fn run(arguments: &ReplayArguments) -> Result<Outcome, Stop> {
    let ReplayArguments { cases: path, archives, compat, backend } = arguments;
    let cases: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(path);
            let unreadable =
                |error| Stop::Usage(format!("cannot read {}: {error}", path.display()));
            Box::new(BufReader::new(file.map_err(unreadable)?))
        }
    };
    let backend = backend.for_samples(None);
    let answers = BufWriter::new(io::stdout().lock());
    match replay(cases, archives, (*compat).into(), backend, answers) {
        Ok(()) => Ok(Outcome::Good),
        Err(ReplayError::Io(error)) => Err(error.into()),
        Err(error) => Err(Stop::Usage(format!("{}: {error}", path.display()))),
    }
}
