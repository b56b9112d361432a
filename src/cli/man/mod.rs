//! `pmderive man`: manual pages of the program and of each command, in the language of man(7).
//! Their texts are those of the commands' help.
//!
//! clap_mangen describes the options. Exit statuses, files and the environment are in
//! [`sections`].

mod sections;

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use self::sections::{SEE_ALSO, exit_statuses, files, variables};
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::Purpose;
use super::{command_line, examples, options};

/// Date of the last review of the pages.
const DATE: &str = "2026-11-24";

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

/// Runs the command.
pub fn run(arguments: &ManArguments, messages: &Messages) -> Result<ExitStatus, Stop> {
    let pages = pages().map_err(Stop::Output)?;
    if let Some(folder) = &arguments.output {
        fs::create_dir_all(folder).map_err(|error| Stop::of_file(folder, &error))?;
        for (name, page) in pages {
            let path = folder.join(format!("{name}.1"));
            fs::write(&path, page).map_err(|error| Stop::of_file(&path, &error))?;
        }
        return Ok(ExitStatus::Good);
    }
    let name = match &arguments.word {
        Some(word) => format!("pmderive-{word}"),
        None => "pmderive".to_owned(),
    };
    let Some((_, page)) = pages.into_iter().find(|(known, _)| *known == name) else {
        let word = arguments.word.as_deref().unwrap_or_default();
        return Err(Stop::Usage(command_line::no_such_command(word)));
    };
    messages.output(Purpose::Exact).print(page)?;
    Ok(ExitStatus::Good)
}

/// All pages, with their names.
///
/// # Errors
/// None: the pages are written to memory.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = command_line::command();
    root.build();
    let commands = root.get_subcommands().filter(|one| !one.is_hide_set());
    let all: Vec<&Command> = [&root].into_iter().chain(commands).collect();
    let names: Vec<String> = all.iter().map(|one| page_name(one)).collect();
    let pages = all.iter().zip(&names).map(|(command, name)| {
        let others = names.iter().filter(|other| *other != name);
        Ok((name.clone(), page(command, name, others)?))
    });
    pages.collect()
}

/// The name of a command's page.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn page<'n>(
    command: &Command,
    name: &str,
    others: impl Iterator<Item = &'n String>,
) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone().disable_help_subcommand(true))
        .title(name.to_uppercase())
        .date(DATE)
        .source(concat!("pmderive ", env!("CARGO_PKG_VERSION")))
        .manual("pmderive");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = command.get_bin_name().unwrap_or("pmderive");
    synopsis.text([bold(name), roman(usage.strip_prefix(name).unwrap_or_default())]);
    synopsis.to_writer(&mut out)?;
    man.render_description_section(&mut out)?;
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    out.extend(under_one_heading(&String::from_utf8_lossy(&options)).into_bytes());
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    let mut rest = Roff::new();
    if let Some(notes) = notes(command) {
        rest.control("SH", ["NOTES"]);
        as_it_is(&mut rest, &notes);
    }
    rest.control("SH", ["EXIT STATUS"]);
    entries(&mut rest, exit_statuses(command.get_name()).iter().copied());
    rest.control("SH", ["ENVIRONMENT"]);
    entries(&mut rest, variables(command));
    rest.control("SH", ["FILES"]);
    entries(&mut rest, files());
    let examples = examples::of(command.get_name());
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
    }
    for (at, example) in examples.iter().enumerate() {
        if at > 0 {
            rest.control("PP", []);
        }
        rest.text([roman(example.what)]);
        rest.control("RS", ["4"]);
        rest.control("nf", []);
        rest.text([bold(example.line)]);
        rest.control("fi", []);
        rest.control("RE", []);
    }
    rest.control("SH", ["SEE ALSO"]);
    let pages: Vec<String> = others.map(|name| format!("{name}(1)")).collect();
    let all: Vec<&str> = pages.iter().map(String::as_str).chain(SEE_ALSO.iter().copied()).collect();
    rest.text([roman(all.join(", "))]);
    rest.to_writer(&mut out)?;
    Ok(out)
}

/// Moves options under headings of the second level, below one of the first level.
fn under_one_heading(options: &str) -> String {
    // An empty line is a break by itself.
    let mut text = options.replace("\n.br\n\n.br\n", "\n\n");
    for heading in options::HEADINGS_IN_ORDER {
        let first = format!(".SH {}\n", heading.to_uppercase());
        text = text.replace(&first, &format!(".SS {heading}\n"));
    }
    match text.find(".SH OPTIONS") {
        Some(_) => text,
        None => format!(".SH OPTIONS\n{text}"),
    }
}

/// The help text after the options, without the examples.
fn notes(command: &Command) -> Option<String> {
    let text = command.get_after_help()?.to_string();
    let notes = text.split("Examples:\n").next().unwrap_or_default().trim_end().to_owned();
    (!notes.is_empty()).then_some(notes)
}

/// Appends lines that man(7) does not fill.
fn as_it_is(out: &mut Roff, text: &str) {
    out.control("nf", []);
    for line in text.lines() {
        match line.is_empty() {
            true => out.control("sp", []),
            false => out.text([roman(line)]),
        };
    }
    out.control("fi", []);
}

fn entries<T: Into<String>>(out: &mut Roff, entries: impl Iterator<Item = (T, T)>) {
    for (name, text) in entries {
        out.control("TP", []);
        out.text([bold(name)]);
        out.text([roman(text)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_all_sections() {
        let pages = pages().expect("pages");
        assert!(pages.iter().any(|(name, _)| name == "pmderive-eval"), "{:?}", pages.len());
        for (name, page) in pages {
            let page = String::from_utf8(page).expect("text");
            for section in [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "OPTIONS",
                "\"EXIT STATUS\"",
                "FILES",
                "ENVIRONMENT",
                "\"SEE ALSO\"",
            ] {
                let heading = format!(".SH {section}\n");
                assert_eq!(page.matches(&heading).count(), 1, "{name}: {section}");
            }
            assert!(name == "pmderive-help" || page.contains(".SH EXAMPLES\n"), "{name}");
        }
    }

    #[test]
    fn variables_are_those_that_the_command_reads() {
        let root = command_line::command();
        let names = |name: &str| -> Vec<String> {
            let command = root.find_subcommand(name).expect("a command");
            variables(command).flat_map(|(names, _)| words(&names)).collect()
        };
        let has = |command: &str, name: &str| names(command).iter().any(|one| one == name);
        for name in ["PMCD_PORT", "PCP_DERIVED_CONTROL", "PCP_COUNTER_WRAP", "TZ", "TERM"] {
            assert!(has("eval", name), "{name}");
        }
        for (command, name) in [("fmt", "PMCD_PORT"), ("eval", "PCP_ARCHIVE"), ("eval", "PAGER")] {
            assert!(!has(command, name), "{command} {name}");
        }
        assert!(has("val", "PCP_ARCHIVE") && has("help", "PAGER"));
        assert!(!cfg!(feature = "fleet") || has("serve", "PMCD_PORT"));
        assert_eq!(files().count(), 7);
    }

    fn words(names: &str) -> Vec<String> {
        names.split([',', ' ']).map(str::to_owned).collect()
    }
}
