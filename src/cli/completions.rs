//! `pmderive completions`: what a shell needs to complete the arguments of this
//! program. clap_complete knows the shells.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::Purpose;

/// Said after the options.
const NOTES: &str = "\
Packages put completions in their places. By hand:
  bash  ~/.local/share/bash-completion/completions/pmderive
  zsh   a file _pmderive in a folder of $fpath
  fish  ~/.config/fish/completions/pmderive.fish";

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Runs the command; `command` is the command line to complete.
pub fn run(
    arguments: &CompletionsArguments,
    command: Command,
    messages: &Messages,
) -> Result<ExitStatus, Stop> {
    // To shells `?` is a pattern, so that `-?` would have to be in quotes.
    let with_word = |command: Command| command.mut_arg("help", |help| help.short(None));
    let mut command = with_word(command).mut_subcommands(with_word);
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, "pmderive", &mut script);
    messages.output(Purpose::Exact).print(script)?;
    Ok(ExitStatus::Good)
}
