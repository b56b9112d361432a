//! `pmderive help`: a page of the manual, or the arguments of a command.
//!
//! ```text
//! words ─┬─► a topic of the manual ── render ─┐
//!        └─► a command ── clap's text ────────┴─► pager ─► the terminal
//! ```

mod pager;
mod render;

use clap::Args;

use super::command_line::command;
use super::messages::Messages;
use super::terminal::{self, Purpose};
use super::{Outcome, Stop};
use crate::manual::{TOPICS, topic};
use crate::syntax::nearest;

/// Arguments of `help`.
#[derive(Debug, Args)]
pub struct HelpArguments {
    /// A topic of the manual, or a command.
    #[arg(value_name = "TOPIC|COMMAND")]
    pub words: Vec<String>,
}

/// Runs `help`.
pub fn run(arguments: &HelpArguments, messages: &Messages) -> Result<Outcome, Stop> {
    let is_paged = terminal::shows_output() && pager::show(&text(arguments, true)?);
    if !is_paged {
        messages.output(Purpose::Text).print(text(arguments, false)?)?;
    }
    Ok(Outcome::Good)
}

/// What was asked for; with escape sequences for bold if it is `styled`.
fn text(arguments: &HelpArguments, styled: bool) -> Result<String, Stop> {
    match &arguments.words[..] {
        [] => Ok(overview()),
        [name] => match topic(name) {
            Some(topic) => Ok(render::render(topic.text, terminal::width(), styled)),
            None => of_command(&arguments.words),
        },
        words => of_command(words),
    }
}

/// The parts of the manual, with the names of their topics' files.
const SUMMARY: &str = include_str!("../../manual/SUMMARY.md");

/// The commands, and the topics of the manual.
fn overview() -> String {
    let mut text = command().render_long_help().to_string();
    text.push_str("\nTopics of the manual (pmderive help TOPIC):\n");
    let longest = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or_default();
    // Its first line is its own heading.
    for line in SUMMARY.lines().skip(1) {
        if let Some(part) = line.strip_prefix("# ") {
            text.push_str(&format!("\n  {part}\n"));
        }
        let file = line.split_once("](").and_then(|(_, file)| file.strip_suffix(".md)"));
        if let Some(topic) = file.and_then(topic) {
            text.push_str(&format!("    {:longest$}  {}\n", topic.name, topic.title));
        }
    }
    text
}

/// The arguments of a command.
fn of_command(words: &[String]) -> Result<String, Stop> {
    let mut root = command();
    root.build();
    let mut found = &mut root;
    for word in words {
        let names: Vec<String> =
            found.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let Some(command) = found.find_subcommand_mut(word) else {
            return Err(unknown(word, &names));
        };
        found = command;
    }
    Ok(found.render_long_help().to_string())
}

/// Says that a word is unknown, with what may have been meant.
fn unknown(word: &str, commands: &[String]) -> Stop {
    let topics = TOPICS.iter().map(|topic| topic.name);
    let help = match nearest(word, topics.chain(commands.iter().map(String::as_str))) {
        Some(meant) => format!("did you mean `pmderive help {meant}`?"),
        None => "`pmderive help` lists all of them".to_owned(),
    };
    Stop::Usage(format!("`{word}` is neither a topic nor a command; {help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_hides_no_command() {
        for command in command().get_subcommands() {
            assert!(topic(command.get_name()).is_none(), "{}", command.get_name());
        }
    }
}
