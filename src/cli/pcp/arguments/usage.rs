//! The usage message of a tool, laid out as pmUsageMessage(3) does.

use std::fmt::Write;

use super::tools::{PcpOption, Tool};
use crate::dialect::Dialect;

/// Column in which the help of an option begins.
const COLUMN: usize = 24;

/// The usage message of a tool in a version.
pub fn usage(tool: &Tool, dialect: Dialect) -> String {
    let mut text = format!("Usage: {} [options] {}\n", tool.name, tool.operands);
    for section in tool.sections {
        let is_known = |option: &&PcpOption| !option.is_new || dialect != Dialect::Pcp6_0;
        // Writing to a string does not fail.
        let _ = write!(text, "\n{}:\n", section.title);
        for option in section.options.iter().filter(is_known) {
            push_option(&mut text, option, dialect);
        }
    }
    text
}

fn push_option(text: &mut String, option: &PcpOption, dialect: Dialect) {
    let PcpOption { letter, word, argument, help, .. } = option;
    if help.is_empty() {
        return;
    }
    let mut form = String::from("  ");
    let _ = match (letter, argument) {
        (Some(letter), Some(argument)) => write!(form, "-{letter} {argument}, "),
        (Some(letter), None) => write!(form, "-{letter}, "),
        (None, _) => Ok(()),
    };
    let _ = match argument {
        Some(argument) => write!(form, "--{word}={argument}"),
        None => write!(form, "--{word}"),
    };
    // Version 7 says `archive` for `log archive`.
    let help = match dialect {
        Dialect::Pcp6_0 => (*help).to_owned(),
        _ => help.replace("log archive", "archive"),
    };
    let _ = match form.len() < COLUMN {
        true => writeln!(text, "{form:COLUMN$}{help}"),
        false => writeln!(text, "{form}\n{:COLUMN$}{help}", ""),
    };
}
