//! Arguments without an option. This module tells definition files from names and expressions.
//!
//! `check` and `deps` accept files, names and expressions. The other commands accept only names
//! and expressions. They refuse an argument that looks like a file, because `shop.conf` is also
//! a correct name of a metric.

use std::path::Path;

use clap::Args;

use crate::diag::{Diagnostics, EXPRESSION};
use crate::dialect::Language;
use crate::engine::Registry;
use crate::syntax::{ENDINGS, name_mistake, parse_expr};
use crate::text::SourceMap;

use super::stop::Stop;

/// Arguments of `check` and `deps`.
#[derive(Debug, Args)]
pub struct PositionalArguments {
    /// Take EXPRESSION as an expression or a name, even if it looks like a file.
    #[arg(short, long = "expression", value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub expressions: Vec<String>,
    /// Definition files, names, expressions, and definitions such as `a = b + c`. A file ends in
    /// `.conf` or the like, begins with `/`, `./`, `../` or a directory that is there, or exists. A
    /// directory stands for all files below it, `-` for standard input.
    #[arg(value_name = "FILE|NAME|EXPRESSION")]
    pub arguments: Vec<String>,
}

impl PositionalArguments {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.expressions.is_empty() && self.arguments.is_empty()
    }

    /// The arguments that look like files.
    pub fn files(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).filter(|argument| is_file(argument)).collect()
    }

    /// Splits the arguments into files, and names and expressions. A name for which `defines`
    /// holds is no file.
    pub fn sorted(&self, defines: impl Fn(&str) -> bool) -> (Vec<&str>, Vec<&String>) {
        let mut files = Vec::new();
        let mut others: Vec<&String> = self.expressions.iter().collect();
        for argument in &self.arguments {
            match is_file(argument) && !defines(argument) {
                true => files.push(&**argument),
                false => others.push(argument),
            }
        }
        (files, others)
    }
}

/// Endings of files that are probably meant for definition files. They and [`ENDINGS`], except
/// `.conf`, count only for paths without blanks and operators, as metrics may have such names, too.
const OTHER_ENDINGS: [&str; 3] = [".json", ".yaml", ".yml"];

/// True for an argument that means a file, existing or not.
fn is_file(argument: &str) -> bool {
    let is_path = argument.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let has_ending = || ENDINGS.iter().chain(&OTHER_ENDINGS).any(|end| argument.ends_with(end));
    // A path below an existing directory is a misspelt file, not a quotient.
    let is_below = || argument.split_once('/').is_some_and(|(first, _)| Path::new(first).is_dir());
    argument == "-"
        || ["/", "./", "../"].iter().any(|start| argument.starts_with(start))
        || is_path && (has_ending() || is_below())
        || argument.ends_with(".conf")
        || Path::new(argument).is_dir()
        || Path::new(argument).is_file()
}

/// Refuses definition files and archives among names and expressions.
///
/// # Errors
/// One of them looks like a definition file and is not the name of a definition, or its path is
/// that of an archive.
pub fn refuse_files(arguments: &[String], registry: &Registry) -> Result<(), Stop> {
    let is_file = |argument: &&String| {
        let name = argument.trim();
        name.ends_with(".conf") && registry.definition(name).is_none()
    };
    let mistake = if let Some(file) = arguments.iter().find(is_file) {
        format!("`{file}` looks like a definition file: give it as `-c {file}`")
    } else if let Some(path) = arguments.iter().find(|argument| is_archive(argument)) {
        format!("`{path}` is the path of an archive: give it as `-a {path}`")
    } else {
        return Ok(());
    };
    Err(Stop::Usage(mistake))
}

/// True for the path of an archive. Without a `/` it may be a metric of the same name.
fn is_archive(argument: &str) -> bool {
    let is_there = |end: &str| Path::new(&format!("{argument}{end}")).is_file();
    let is_path = ["/", "./", "../"].iter().any(|start| argument.starts_with(start));
    argument.contains('/') && (is_there(".index") || is_path && Path::new(argument).is_dir())
}

/// True for an expression, where the others are names of metrics. It has a parenthesis, or it
/// is correct and has blanks or operators. Text in brackets is instances. (`a/b` and `a:b` may
/// name a source.)
pub fn is_expression(argument: &str, language: Language) -> bool {
    let mut depth = 0_usize;
    let outside = argument.chars().filter(|character| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let outside: String = outside.collect();
    let looks_so = |character: char| character.is_whitespace() || "*+<>!&|".contains(character);
    outside.contains('(') || outside.trim().contains(looks_so) && is_correct(argument, language)
}

/// True for an instance of a metric, as in `disk.dev.read[sda]`.
pub fn is_selection(argument: &str, language: Language) -> bool {
    argument.trim_end().ends_with(']') && is_correct(argument, language)
}

fn is_correct(argument: &str, language: Language) -> bool {
    let mut sources = SourceMap::default();
    let source = sources.add(EXPRESSION, argument);
    let mut mistakes = Diagnostics::default();
    parse_expr(source, argument, 0, language, &mut mistakes).error.is_none()
}

/// The name and the expression of an argument `NAME = EXPRESSION`. A sign directly behind the `=`
/// makes it a comparison, even a wrong one.
pub fn named_expression(argument: &str) -> Option<(&str, &str)> {
    let (name, expression) = argument.split_once('=')?;
    let is_definition =
        name_mistake(name.trim()).is_none() && !expression.starts_with(['=', '<', '>', '~', '!']);
    is_definition.then(|| (name.trim(), expression.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn expressions_are_told_from_names() {
        let language = Language::from(Dialect::Fixed);
        for (argument, expected) in [
            ("disk.dev.total", false),
            ("disk.dev.total[a (b) + c]", false),
            ("web1:disk.dev.total[sda]", false),
            ("web1?container=shop:disk.dev.total", false),
            ("/var/log/pcp/a-b/disk.dev.total", false),
            ("my archive/disk.dev.total", false),
            (" disk.dev.total ", false),
            ("29.0.5", false),
            ("rate(disk.dev.total)", true),
            ("rate(disk.dev.total", true),
            ("a / b", true),
            ("a+b", true),
        ] {
            assert_eq!(is_expression(argument, language), expected, "{argument}");
        }
        assert_eq!(named_expression(" a.b = c + 1"), Some(("a.b", "c + 1")));
        for argument in ["a == b", "a + b = c", "a.b", "a <= b", "a =< b", "a =~ b", "a =! b"] {
            assert_eq!(named_expression(argument), None, "{argument}");
        }
    }

    #[test]
    fn files_are_told_from_names_and_expressions() {
        for (argument, expected) in [
            ("-", true),
            ("shop.conf", true),
            ("no/such.conf", true),
            ("./shop", true),
            ("../shop", true),
            ("/shop", true),
            ("Cargo.toml", true),
            ("src/", true),
            ("src", true),
            (".", true),
            ("nosuch/", false),
            ("shop.conf2", false),
            ("shop.conf + 1", false),
            (".5 + a", false),
            ("-a", false),
            ("a / b", false),
        ] {
            assert_eq!(is_file(argument), expected, "{argument}");
        }
        let text = |text: &str| text.to_owned();
        let arguments = PositionalArguments {
            expressions: vec![text("b.conf")],
            arguments: ["c", "a.conf", "b.conf", "-"].map(text).into(),
        };
        let (files, others) = arguments.sorted(|name| name == "a.conf");
        assert_eq!((files, others.len()), (vec!["b.conf", "-"], 3));
    }
}
