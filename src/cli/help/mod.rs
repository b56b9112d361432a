//! `pmderive help` prints a page of the manual, the arguments of a command, a function, or the
//! page of a diagnostic's code.
//!
//! ```text
//! words ─┬─► a topic of the manual, a code, a function ── render ─┐
//!        └─► a command ── clap's text ────────────────────────────┴─► pager ─► the terminal
//! ```

mod pager;
pub mod render;

use std::borrow::Cow;

use clap::Args;
use clap::builder::StyledStr;

use super::command_line::command;
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal;
use crate::diag::{Code, page};
use crate::functions::signature;
use crate::manual::{TOPICS, topic};
use crate::syntax::nearest;

/// Arguments of `help`.
#[derive(Debug, Args)]
pub struct HelpArguments {
    /// A topic of the manual, a command, a function such as rate, or the code of a
    /// diagnostic such as PMD0202.
    #[arg(value_name = "TOPIC|COMMAND|FUNCTION|CODE")]
    pub words: Vec<String>,
}

/// Runs `help`.
pub fn run(arguments: &HelpArguments, messages: &Messages) -> Result<ExitStatus, Stop> {
    let text = text(arguments, messages.is_output_coloured())?;
    let is_paged = terminal::shows_output() && pager::show(&text);
    if !is_paged {
        messages.own_output().print(text)?;
    }
    Ok(ExitStatus::Good)
}

/// The requested text; with escape sequences for bold if it is `styled`.
fn text(arguments: &HelpArguments, styled: bool) -> Result<String, Stop> {
    match &arguments.words[..] {
        [] => Ok(overview(styled)),
        [name] => match page_of(name) {
            Some(page) => Ok(render::render(&page, terminal::width(), styled)),
            None => of_command(&arguments.words, styled),
        },
        // `help functions rate`: a page has no parts.
        [name, ..] if page_of(name).is_some() && command().find_subcommand(name).is_none() => {
            let name = name.clone();
            Err(Stop::Usage(format!("`{name}` is a whole page: pmderive help {name}")))
        }
        words => of_command(words, styled),
    }
}

/// The page with this name: a topic, the code of a diagnostic, or a function. A command takes
/// precedence over a function.
fn page_of(name: &str) -> Option<Cow<'static, str>> {
    let code = || name.parse::<Code>().ok().map(page);
    let written = topic(name).map(|topic| topic.text).or_else(code);
    if written.is_some() || command().find_subcommand(name).is_some() {
        return written.map(Cow::Borrowed);
    }
    signature::named(name.trim_end_matches("()")).map(|function| Cow::Owned(function.page()))
}

/// The table of contents of the manual: its parts, with their files.
const SUMMARY: &str = include_str!("../../manual/SUMMARY.md");

/// The commands, and the topics of the manual.
fn overview(styled: bool) -> String {
    let mut text = shown(&command().render_long_help(), styled);
    text.push_str("\nTopics of the manual (pmderive help TOPIC):\n");
    let longest = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or_default();
    // The first line is its own heading.
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
fn of_command(words: &[String], styled: bool) -> Result<String, Stop> {
    let mut root = command();
    root.build();
    let mut found = &mut root;
    for (index, word) in words.iter().enumerate() {
        let names: Vec<String> =
            found.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let Some(command) = found.find_subcommand_mut(word) else {
            return Err(match &words[..index] {
                [] => unknown(word, &names),
                before => unknown_part(word, &before.join(" "), &names),
            });
        };
        found = command;
    }
    Ok(shown(&found.render_long_help(), styled))
}

/// Renders a text of clap.
fn shown(text: &StyledStr, styled: bool) -> String {
    match styled {
        true => text.ansi().to_string(),
        false => text.to_string(),
    }
}

/// The error for an unknown word, with suggestions.
fn unknown(word: &str, commands: &[String]) -> Stop {
    let topics = TOPICS.iter().map(|topic| topic.name);
    let functions = signature::all().map(|function| function.name);
    let others = commands.iter().map(String::as_str).chain(functions);
    let known: Vec<&str> = topics.chain(others).collect();
    let near = |word: &str| nearest(word, known.iter().copied());
    // PCP's own tools have names that begin so.
    let of_pcp = word.strip_prefix("pm").filter(|rest| known.contains(rest));
    let help = match (of_pcp, &topics_about(word)[..]) {
        (None, found @ [_, ..]) => format!("these topics are about it: {}", found.join(", ")),
        (of_pcp, _) => match of_pcp.or_else(|| near(word)) {
            Some(meant) => format!("did you mean `pmderive help {meant}`?"),
            None => "`pmderive help` lists all of them".to_owned(),
        },
    };
    Stop::Usage(format!("`{word}` is no topic, command or function; {help}"))
}

/// The error for an unknown part of a command.
fn unknown_part(word: &str, command: &str, parts: &[String]) -> Stop {
    let help = match nearest(word, parts.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `pmderive help {command} {meant}`?"),
        None => format!("`pmderive help {command}` lists its options"),
    };
    Stop::Usage(format!("`{command}` has no part `{word}`; {help}"))
}

/// Number of topics that are suggested for a word, at most.
const MOST_TOPICS: usize = 3;

/// One occurrence in a heading counts as this many in the text.
const WORTH_OF_HEADING: usize = 10;

/// The topics that contain a word most often, outside of the output of commands.
fn topics_about(word: &str) -> Vec<&'static str> {
    let word = word.to_lowercase();
    // `aggregates` also finds `aggregate`.
    let stem = word.strip_suffix('s').filter(|stem| stem.len() >= 3).unwrap_or(&word);
    // A short one, such as `ci`, is part of many others.
    let is_whole = stem.len() < 3;
    let found_in = |line: &str| match is_whole {
        true => line.split(|c: char| !c.is_alphanumeric()).filter(|word| *word == stem).count(),
        false => line.matches(stem).count(),
    };
    let worth = |line: &str| {
        let worth_of_one = if line.starts_with('#') { WORTH_OF_HEADING } else { 1 };
        found_in(&line.to_lowercase()) * worth_of_one
    };
    let prose = |text: &'static str| text.split("```").step_by(2).flat_map(str::lines);
    let mut found: Vec<(usize, &str)> = TOPICS
        .iter()
        .map(|topic| (prose(topic.text).map(worth).sum(), topic.name))
        .filter(|(worth, _)| *worth > 0)
        .collect();
    found.sort_by_key(|(worth, _)| std::cmp::Reverse(*worth));
    found.into_iter().take(MOST_TOPICS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_leads_to_topics() {
        for (word, topic) in [
            ("aggregates", "fleets"),
            ("Kubernetes", ""),
            ("gap", "archives"),
            ("TLS", "sources"),
            ("ci", "checking"),
            ("zq", ""),
        ] {
            let found = topics_about(word);
            assert!(topic.is_empty() || found.contains(&topic), "{word}: {found:?}");
            assert!(found.len() <= MOST_TOPICS && found.is_empty() == topic.is_empty(), "{word}");
        }
    }

    #[test]
    fn a_code_in_a_message_has_its_page() {
        let shown = page_of("PMD0100").unwrap_or_default();
        assert!(shown.starts_with("# PMD0100: "), "{shown}");
        assert_eq!((page_of("PMD9999"), page_of("eval")), (None, None));
    }

    #[test]
    fn a_function_has_a_page() {
        for name in signature::all().map(|function| function.name) {
            let shown = page_of(name);
            let expected = format!("# {name}(");
            assert!(shown.is_some_and(|page| page.starts_with(&expected)), "{name}");
        }
        assert_eq!(page_of("rate()"), page_of("rate"));
        assert!(page_of("rate").is_some());
    }

    #[test]
    fn every_topic_has_a_title() {
        for topic in TOPICS {
            assert!(topic.text.starts_with("# "), "{}", topic.name);
        }
    }

    #[test]
    fn a_topic_hides_no_command() {
        for command in command().get_subcommands() {
            assert!(topic(command.get_name()).is_none(), "{}", command.get_name());
        }
    }
}
