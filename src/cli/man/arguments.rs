//! Arguments of `man`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write all pages into this directory, as pmderive.1, pmderive-eval.1 and so on.
    #[arg(short, long, value_name = "DIRECTORY", conflicts_with = "word")]
    pub output: Option<PathBuf>,
    /// The command whose page is printed; without one, the page of the program.
    #[arg(value_name = "COMMAND")]
    pub word: Option<String>,
}
