//! `pmderive completions`: what a shell needs to complete the arguments of this
//! program. clap_complete knows the shells.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::Purpose;
use crate::diag::Code;
use crate::functions::signature;
use crate::manual::TOPICS;

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
    let mut command = with_words(with_word(command).mut_subcommands(with_word));
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, "pmderive", &mut script);
    messages.output(Purpose::Exact).print(script)?;
    Ok(ExitStatus::Good)
}

/// The command line with the words that arguments of `help`, `man` and `explain` may be.
fn with_words(command: Command) -> Command {
    // Such words have to live as long as the process, which ends with this command.
    let lasting = |word: String| -> &'static str { word.leak() };
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let commands: Vec<_> = shown.map(|one| lasting(one.get_name().to_owned())).collect();
    let codes = Code::ALL.iter().map(|code| lasting(code.to_string())).collect();
    let topics = TOPICS.iter().map(|topic| topic.name);
    let functions = signature::all().map(|function| function.name);
    let topics = topics.chain(functions).chain(commands.iter().copied()).collect();
    [("help", "words", topics), ("man", "word", commands), ("explain", "metrics", codes)]
        .into_iter()
        .fold(command, |command, (name, argument, words): (_, _, Vec<&'static str>)| {
            let words = PossibleValuesParser::from(words);
            command.mut_subcommand(name, |one| {
                one.mut_arg(argument, |argument| argument.value_parser(words))
            })
        })
}
