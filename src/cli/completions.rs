//! `pmderive completions`: the script that lets a shell complete the arguments of this program.
//! clap_complete writes it.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::Purpose;
use crate::diag::Code;
use crate::functions::signature;
use crate::manual::TOPICS;
use crate::report::table::Format;

/// Help text after the options.
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
    let words = words(&command);
    let mut command = offered(&with_words(command, &words));
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, "pmderive", &mut script);
    if arguments.shell == Shell::Fish {
        // clap_complete offers fish only options.
        for Words { command, words, .. } in words {
            let condition = format!("__fish_pmderive_using_subcommand {command}");
            let line =
                format!("complete -c pmderive -n \"{condition}\" -f -a \"{}\"\n", words.join(" "));
            script.extend(line.into_bytes());
        }
    }
    messages.output(Purpose::Exact).print(script)?;
    Ok(ExitStatus::Good)
}

/// Leaks a word, so that it lives as long as the process. The process ends with this command.
fn lasting(word: String) -> &'static str {
    word.leak()
}

/// The command line without hidden options and commands.
fn offered(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|one| !one.is_hide_set()).cloned();
    // In shells `?` is a pattern: `-?` would need quotes.
    let arguments = arguments.map(|one| match one.get_id() == "help" {
        true => one.short(None),
        false => one,
    });
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set()).map(offered);
    Command::new(lasting(command.get_name().to_owned()))
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args(arguments)
        .subcommands(commands)
}

/// The words that an argument of a command may be.
struct Words {
    command: &'static str,
    argument: &'static str,
    words: Vec<&'static str>,
}

/// The words that arguments of `help`, `man` and `explain` may be.
fn words(command: &Command) -> [Words; 3] {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let commands: Vec<_> = shown.map(|one| lasting(one.get_name().to_owned())).collect();
    let codes = Code::ALL.iter().map(|code| lasting(code.to_string())).collect();
    let topics = TOPICS.iter().map(|topic| topic.name);
    let functions = signature::all().map(|function| function.name);
    let topics = topics.chain(functions).chain(commands.iter().copied()).collect();
    [
        Words { command: "help", argument: "words", words: topics },
        Words { command: "man", argument: "word", words: commands },
        Words { command: "explain", argument: "metrics", words: codes },
    ]
}

/// The command line whose arguments may be only these words, and formats that are built in.
fn with_words(command: Command, words: &[Words]) -> Command {
    let formats = Format::value_variants().iter().filter(|format| format.is_built_in());
    let formats = formats.filter_map(ValueEnum::to_possible_value);
    let command = command.mut_subcommand("export", |export| {
        let formats = PossibleValuesParser::from(formats.collect::<Vec<_>>());
        export.mut_arg("format", |format| format.value_parser(formats))
    });
    words.iter().fold(command, |command, one| {
        let words = PossibleValuesParser::from(&one.words);
        command.mut_subcommand(one.command, |command| {
            command.mut_arg(one.argument, |argument| argument.value_parser(words))
        })
    })
}
