//! Arguments of `help`.

use clap::Args;

/// Arguments of `help`.
#[derive(Debug, Args)]
pub struct HelpArguments {
    /// A topic of the manual, a command, a function such as rate, or the code of a
    /// diagnostic such as PMD0202.
    #[arg(value_name = "TOPIC|COMMAND|FUNCTION|CODE")]
    pub words: Vec<String>,
}
