//! Definitions over a fleet in the commands: their files, and the hosts that they are about. A
//! build without fleets has `no_fleet.rs` in place of this.

mod arguments;
mod checked;
mod explained;
mod shown;

use super::args::DefinitionArguments;
use super::stop::Stop;
pub use crate::fleet::aggregates::Aggregates;
pub use arguments::{FleetArguments, name_of};
pub use checked::CheckedFleet;
pub use explained::ExplainedFleet;
pub use shown::ShownLine;

/// Refuses a configuration of `serve` in place of a file of definitions.
///
/// # Errors
/// One of the files ends in `.toml`.
pub fn refuse_configurations(arguments: &DefinitionArguments) -> Result<(), Stop> {
    match arguments.configs.iter().find(|path| path.ends_with(".toml")) {
        None => Ok(()),
        Some(file) => Err(Stop::Usage(format!(
            "`{file}` looks like a configuration of `serve`: give it as `--serve {file}`"
        ))),
    }
}
