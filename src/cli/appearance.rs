//! Whether a stream can show colours, and characters outside ASCII such as lines and arrows.
//!
//! `--color` decides about colours. Without it the environment does, in this order: `NO_COLOR`,
//! `CLICOLOR_FORCE`, `CLICOLOR`, `TERM`. The locale decides about characters.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{ColorChoice, ValueEnum};

/// When colours are used (`--color`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Everywhere, in files as well.
    Always,
    /// Nowhere.
    Never,
}

impl Colour {
    /// Whether a stream has colours.
    pub fn is_used(self, is_terminal: bool) -> bool {
        self.is_used_with(is_terminal, |name| std::env::var_os(name))
    }

    fn is_used_with(self, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
        // An empty variable counts as unset.
        let set = |name| variable(name).filter(|value| !value.is_empty());
        match self {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto if set("NO_COLOR").is_some() => false,
            Colour::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
            Colour::Auto if set("CLICOLOR").is_some_and(|value| value == "0") => false,
            Colour::Auto => is_terminal && set("TERM").is_some_and(|value| value != "dumb"),
        }
    }

    /// Reads `--color` out of the arguments before clap parses them: help and errors of clap
    /// have colours, too.
    pub fn of_arguments(arguments: &[OsString]) -> Colour {
        let mut words = arguments.iter().filter_map(|argument| argument.to_str());
        while let Some(word) = words.next() {
            let value = match word.split_once('=') {
                Some((name, value)) if is_option(name) => Some(value),
                None if is_option(word) => words.next(),
                _ => continue,
            };
            if let Some(Ok(choice)) = value.map(|value| Colour::from_str(value, false)) {
                return choice;
            }
        }
        Colour::Auto
    }
}

fn is_option(word: &str) -> bool {
    ["--color", "--colour"].contains(&word)
}

impl From<Colour> for ColorChoice {
    fn from(colour: Colour) -> ColorChoice {
        match colour {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        }
    }
}

/// Converts a text to characters that a stream can show. For a file the result does not depend on
/// the locale.
pub fn on(is_terminal: bool, text: &[u8]) -> Cow<'_, [u8]> {
    if !is_terminal || text.is_ascii() || !is_ascii_only() {
        return text.into();
    }
    match std::str::from_utf8(text) {
        Ok(text) => in_ascii(text).into_bytes().into(),
        Err(_) => text.into(),
    }
}

/// True if a terminal of this locale shows ASCII only. Without any locale a terminal is taken
/// to show UTF-8.
fn is_ascii_only() -> bool {
    is_ascii_only_with(|name| std::env::var_os(name))
}

fn is_ascii_only_with(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let chosen = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let chosen = chosen.filter(|value| !value.is_empty()).map(|value| value.into_string()).next();
    let Some(Ok(locale)) = chosen else { return false };
    let locale = locale.to_ascii_lowercase();
    !locale.contains("utf-8") && !locale.contains("utf8")
}

/// Replaces the program's own lines, arrows and dots by ASCII of the same width.
fn in_ascii(text: &str) -> String {
    let replaced = |character| match character {
        '─' | '━' | '┄' | '╌' => '-',
        '│' | '┃' | '┆' | '┊' | '╎' => '|',
        '┬' | '┴' | '┼' | '├' | '┤' | '╭' | '╮' | '╰' | '╯' | '┌' | '┐' | '└' | '┘' => {
            '+'
        }
        '·' | '∙' | '•' => '*',
        '…' => '~',
        '→' | '▶' => '>',
        '←' | '◀' => '<',
        other => other,
    };
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks variables up in a text of the form `NAME=value NAME=value`.
    fn variables(text: &str) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            let mut all = text.split(' ').filter_map(|one| one.split_once('='));
            all.find(|(known, _)| *known == name).map(|(_, value)| value.into())
        }
    }

    #[test]
    fn the_environment_chooses_colours() {
        for (environment, on_a_terminal, in_a_pipe) in [
            ("", false, false),
            ("TERM=xterm", true, false),
            ("TERM=dumb", false, false),
            ("TERM=xterm NO_COLOR=1", false, false),
            ("TERM=xterm NO_COLOR=", true, false),
            ("TERM=xterm CLICOLOR=0", false, false),
            ("TERM=xterm CLICOLOR=1", true, false),
            ("TERM=dumb CLICOLOR_FORCE=1", true, true),
            ("TERM=xterm CLICOLOR_FORCE=0", true, false),
            ("NO_COLOR=1 CLICOLOR_FORCE=1", false, false),
        ] {
            let used = |is_terminal| Colour::Auto.is_used_with(is_terminal, variables(environment));
            assert_eq!((used(true), used(false)), (on_a_terminal, in_a_pipe), "{environment}");
            assert!(Colour::Always.is_used_with(false, variables(environment)));
            assert!(!Colour::Never.is_used_with(true, variables(environment)));
        }
    }

    #[test]
    fn the_option_is_found_wherever_it_stands() {
        for (line, expected) in [
            ("pmderive eval x", Colour::Auto),
            ("pmderive --color never", Colour::Never),
            ("pmderive eval --colour=always x", Colour::Always),
            ("pmderive eval --color", Colour::Auto),
            ("pmderive eval --color=pink --color=never", Colour::Never),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(Colour::of_arguments(&arguments), expected, "{line}");
        }
    }

    #[test]
    fn the_locale_chooses_characters() {
        for (environment, expected) in [
            ("", false),
            ("LANG=en_US.UTF-8", false),
            ("LANG=C.utf8", false),
            ("LC_ALL=C LANG=en_US.UTF-8", true),
            ("LC_ALL= LANG=en_US.UTF-8", false),
            ("LC_CTYPE=de_DE.ISO-8859-1", true),
            ("LANG=POSIX", true),
        ] {
            assert_eq!(is_ascii_only_with(variables(environment)), expected, "{environment}");
        }
        assert_eq!(in_ascii("╭─[ a:1 ]\n│ é …"), "+-[ a:1 ]\n| é ~");
    }
}
