//! Arguments of `check`.

use std::collections::BTreeSet;

use clap::Args;

use crate::cli::args::{
    DefinitionArguments, DiagWords, FindingsFormat, MetadataArguments, SourceArguments,
};
use crate::cli::fleet::{FleetArguments, refuse_configurations};
use crate::cli::messages::Messages;
use crate::cli::missing::Missing;
use crate::cli::positional::PositionalArguments;
use crate::cli::stop::Stop;
use crate::diag::{Code, Diagnostics};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Where metrics come from; without it, what needs their metadata is not checked.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Metadata in place of a source.
    #[command(flatten)]
    pub metadata: MetadataArguments,
    /// Definitions.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// Definitions over a fleet.
    #[command(flatten)]
    pub fleet: FleetArguments,
    /// Check this configuration of `serve`, and all definitions that it names.
    #[cfg(feature = "fleet")]
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = [
            "configs", "arguments", "expressions", "fleet", "targets", "lint", "fix", "diff",
            "changed_since", "missing", "extensions", "compat"
        ]
    )]
    pub serve: Option<std::path::PathBuf>,
    /// Choose the form of diagnostics: text goes to standard error, all others to standard
    /// output.
    #[arg(long, value_enum, default_value_t)]
    pub format: FindingsFormat,
    /// Choose the words of diagnostics.
    #[arg(long, value_enum, default_value_t)]
    pub diag: DiagWords,
    /// Warn about definitions that are legal but probably wrong.
    #[arg(long)]
    pub lint: bool,
    /// Write edits into the definition files where nothing else can be meant.
    #[arg(long)]
    pub fix: bool,
    /// Print these edits as patches and write nothing; exit with 1 if there are any, or with 2 if
    /// there are mistakes.
    #[arg(long, conflicts_with = "fix")]
    pub diff: bool,
    /// Report only what is in files that have changed since a revision of git, and errors of
    /// definitions that depend on them.
    #[arg(long, value_name = "REVISION")]
    pub changed_since: Option<String>,
    /// Also print the page of each code that was reported.
    #[arg(long)]
    pub explain_all: bool,
    /// Choose what to do if the source lacks an operand [default: error; ignore
    /// in the definitions that come with PCP].
    #[arg(long, value_enum)]
    pub missing: Option<Missing>,
    /// List the definitions that are left out because operands are missing.
    #[arg(short, long, display_order = 993)]
    pub verbose: bool,
    /// What to check.
    #[command(flatten)]
    pub positional: PositionalArguments,
}

impl CheckArguments {
    /// Reads the settings in the folders of the definitions. With a configuration of `serve`
    /// there are none, as it has settings of its own.
    pub fn settle(&mut self, messages: &mut Messages) -> Result<(), Stop> {
        if !self.is_empty() {
            let files = self.positional.files();
            self.fleet.add(self.definitions.settle(&files, messages)?);
        }
        Ok(())
    }

    /// True if there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.definitions.configs.is_empty()
            && self.positional.is_empty()
            && !self.fleet.has_definitions()
    }

    /// The codes whose pages `--explain` prints.
    pub fn pages_of(&self, diagnostics: &Diagnostics) -> BTreeSet<Code> {
        diagnostics.iter().filter(|_| self.explain_all).map(|one| one.code).collect()
    }

    /// The arguments that name definitions, and their language.
    pub fn definitions(&self) -> Result<DefinitionArguments, Stop> {
        refuse_configurations(&self.definitions)?;
        Ok(self.fleet.definitions(&self.definitions))
    }
}
