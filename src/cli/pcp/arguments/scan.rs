//! Splits arguments as pmgetopt_r(3) does. Letters may be joined, words may be abbreviated, and
//! operands may stand among the options.
//!
//! This module knows the names of options. Others give them a meaning.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::tools::{PcpOption, Tool};
use crate::dialect::Dialect;

/// An option of this program that the tool does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnOption {
    /// Its word or letter, with hyphens.
    pub form: String,
    /// True if the next argument belongs to it.
    pub takes_argument: bool,
}

/// Part of a command line.
#[derive(Debug)]
pub enum Part {
    /// An option of the tool.
    Option(&'static PcpOption, Option<OsString>),
    /// An option of this program, with its argument.
    Own(Vec<OsString>),
    /// An argument that belongs to no option.
    Operand(OsString),
    /// A mistake, with its reason.
    Wrong(String),
}

/// Splits arguments. With `if_ended_by_operand` no option follows the first operand, as the
/// variable `POSIXLY_CORRECT` demands.
pub fn scan(
    tool: &'static Tool,
    dialect: Dialect,
    own: &[OwnOption],
    arguments: &[OsString],
    if_ended_by_operand: bool,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == b"--" {
            break;
        }
        if let Some(own) = own_option(own, bytes) {
            let mut words = vec![argument.clone()];
            if own.takes_argument && bytes == own.form.as_bytes() {
                words.extend(rest.next().cloned());
            }
            parts.push(Part::Own(words));
            continue;
        }
        let mut next = || rest.next().cloned();
        match bytes {
            [b'-', b'-', word @ ..] => parts.push(long(tool, dialect, word, &mut next)),
            [b'-', letters @ ..] if !letters.is_empty() => {
                short(tool, dialect, letters, &mut next, &mut parts);
            }
            _ => {
                parts.push(Part::Operand(argument.clone()));
                if if_ended_by_operand {
                    break;
                }
            }
        }
    }
    parts.extend(rest.cloned().map(Part::Operand));
    parts
}

/// The option of this program that an argument gives, alone or with `=`.
fn own_option<'o>(own: &'o [OwnOption], argument: &[u8]) -> Option<&'o OwnOption> {
    own.iter().find(|own| match argument.strip_prefix(own.form.as_bytes()) {
        Some([]) => true,
        Some([b'=', ..]) => own.form.starts_with("--"),
        _ => false,
    })
}

fn long(
    tool: &'static Tool,
    dialect: Dialect,
    given: &[u8],
    next: &mut dyn FnMut() -> Option<OsString>,
) -> Part {
    let equals = given.iter().position(|byte| *byte == b'=');
    let (word, argument) = match equals {
        Some(at) => (&given[..at], Some(OsString::from_vec(given[at + 1..].to_vec()))),
        None => (given, None),
    };
    let wrong = |problem: String| Part::Wrong(format!("{}: {problem}", tool.name));
    if word.is_empty() {
        // Headings of the usage message are options without a word.
        return wrong("option '--' doesn't allow an argument".to_owned());
    }
    let begun = tool.options(dialect).filter(|option| option.word.as_bytes().starts_with(word));
    let exact = begun.clone().find(|option| option.word.as_bytes() == word);
    let found: Vec<&PcpOption> = exact.map_or_else(|| begun.collect(), |option| vec![option]);
    let given = String::from_utf8_lossy(given);
    let option = match found[..] {
        [] => return wrong(format!("unrecognized option '--{given}'")),
        [option] => option,
        _ => {
            // The options after the first are in backward order, as the tool pushes them onto a
            // list.
            let words = found[..1].iter().chain(found[1..].iter().rev());
            let words = words.map(|one| format!(" '--{}'", one.word)).collect::<String>();
            return wrong(format!("option '--{given}' is ambiguous; possibilities:{words}"));
        }
    };
    match (option.argument, argument) {
        (None, Some(_)) => wrong(format!("option '--{}' doesn't allow an argument", option.word)),
        (None, None) => Part::Option(option, None),
        (Some(_), argument) => match argument.or_else(next) {
            Some(argument) => Part::Option(option, Some(argument)),
            None => wrong(format!("option '--{}' requires an argument", option.word)),
        },
    }
}

fn short(
    tool: &'static Tool,
    dialect: Dialect,
    letters: &[u8],
    next: &mut dyn FnMut() -> Option<OsString>,
    parts: &mut Vec<Part>,
) {
    let wrong = |problem: String| Part::Wrong(format!("{}: {problem}", tool.name));
    for (at, letter) in letters.iter().enumerate() {
        let letter = char::from(*letter);
        let mut options = tool.options(dialect);
        let found = options.find(|option| option.letter == Some(letter));
        let Some(option) = found.filter(|_| tool.refused_letter != Some(letter)) else {
            parts.push(wrong(format!("invalid option -- '{letter}'")));
            continue;
        };
        if option.argument.is_none() {
            parts.push(Part::Option(option, None));
            continue;
        }
        let attached = Some(&letters[at + 1..]).filter(|attached| !attached.is_empty());
        let attached = attached.map(|attached| OsStr::from_bytes(attached).to_owned());
        parts.push(match attached.or_else(next) {
            Some(argument) => Part::Option(option, Some(argument)),
            None => wrong(format!("option requires an argument -- '{letter}'")),
        });
        return;
    }
}
