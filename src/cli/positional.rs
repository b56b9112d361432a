//! Arguments without an option: which of them are definition files.
//!
//! `check` and `deps` take files beside names and expressions. The other
//! commands take names and expressions only, and refuse what looks like a file:
//! as an expression, `shop.conf` would be a correct name of a metric.

use std::path::Path;

use clap::Args;

use crate::engine::Registry;

use super::Stop;

/// What `check` and `deps` are to look at.
#[derive(Debug, Args)]
pub struct PositionalArguments {
    /// An expression, or a name, even if it looks like a file.
    #[arg(short, long = "expression", value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub expressions: Vec<String>,
    /// Definition files, and names and expressions. A file is what ends in `.conf`,
    /// begins with `/`, `./` or `../`, or is a file here; `-` is standard input, and
    /// `DIRECTORY/` stands for all files below it.
    #[arg(value_name = "FILE|NAME|EXPRESSION")]
    pub arguments: Vec<String>,
}

impl PositionalArguments {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.expressions.is_empty() && self.arguments.is_empty()
    }

    /// The files, and the names and expressions. An argument that `defines`
    /// knows as a name is no file, whatever it looks like.
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

/// True for an argument that is a file, be it there or not.
fn is_file(argument: &str) -> bool {
    argument == "-"
        || ["/", "./", "../"].iter().any(|start| argument.starts_with(start))
        || argument.ends_with(".conf")
        || argument.ends_with('/') && Path::new(argument).is_dir()
        || Path::new(argument).is_file()
}

/// Refuses definition files among names and expressions.
///
/// # Errors
/// One of them looks like a definition file and is not the name of a definition.
pub fn refuse_files(arguments: &[String], registry: &Registry) -> Result<(), Stop> {
    let is_file = |argument: &&String| {
        let name = argument.trim();
        name.ends_with(".conf") && registry.definition(name).is_none()
    };
    match arguments.iter().find(is_file) {
        None => Ok(()),
        Some(file) => Err(Stop::Usage(format!(
            "`{file}` looks like a definition file: give it as `-c {file}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("src", false),
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
