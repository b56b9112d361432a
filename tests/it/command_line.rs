//! The command line: its help texts, its hidden options, and whether it accepts arguments.

use std::ffi::OsString;

use pmderive::internal::cli;

/// The help texts of commands, options and values.
pub fn texts() -> Vec<String> {
    let root = cli::command();
    let mut texts = Vec::new();
    for command in root.get_subcommands().chain([&root]) {
        let about = command.get_long_about().or(command.get_about());
        texts.extend(about.map(ToString::to_string));
        texts.extend(command.get_after_help().map(ToString::to_string));
        for argument in command.get_arguments() {
            texts.extend(argument.get_help().map(ToString::to_string));
            let values = argument.get_possible_values();
            texts.extend(values.iter().filter_map(|value| Some(value.get_help()?.to_string())));
        }
    }
    texts
}

/// Pairs of a command and an option of it that its help hides, old names included.
pub fn hidden_options() -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for command in cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        for argument in command.get_arguments() {
            let shown = argument.get_visible_aliases().unwrap_or_default();
            let old = argument.get_all_aliases().unwrap_or_default();
            let old = old.into_iter().filter(|name| !shown.contains(name));
            let own = argument.get_long().filter(|_| argument.is_hide_set());
            let names = old.chain(own).map(|name| (command.get_name().to_owned(), name.to_owned()));
            hidden.extend(names);
        }
    }
    hidden
}

/// Checks whether the program accepts arguments, its name first.
///
/// # Errors
/// The message about the wrong arguments.
pub fn understands(given: Vec<OsString>) -> Result<(), String> {
    let matches = cli::command().try_get_matches_from(given);
    matches.map(drop).map_err(|error| error.to_string())
}
