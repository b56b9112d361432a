//! The arguments of `info`, `val` and `probe` with `--compat`. They are read as
//! pmGetOptions(3) reads those of pminfo, pmval and pmprobe, and refused in the words
//! of those tools.
//!
//! ```text
//! variables ─────────────────┐
//! arguments ──► scan ──► parts ──► what the options say together ─┬─► arguments in clap's form
//!                 ▲                                               └─► EarlyEnd, with usage
//!               tools (the options of each tool) ─────────────────────────┘
//! ```
//!
//! Without `--compat` clap reads the arguments. It always reads the options that only
//! this program has.

mod debug;
mod said;
mod scan;
mod tools;
mod usage;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::PmStatus;

use self::said::Said;
pub use self::scan::OwnOption;
use self::scan::{Part, scan};
pub use self::tools::Tool;
pub use self::usage::usage;
use crate::cli::environment::Setting;
use crate::cli::lines::Lines;
use crate::dialect::Dialect;
use crate::escape::Foreign;

/// A tool of PCP in one of its versions, which a command stands in for.
#[derive(Clone, Copy, Debug)]
pub struct Impersonated {
    /// The tool.
    pub tool: &'static Tool,
    /// Its version.
    pub dialect: Dialect,
}

/// What a tool has to say before it ends without having done anything.
#[derive(Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// For standard error.
    pub text: Lines,
    /// True if this is what was asked for.
    pub is_good: bool,
}

impl Impersonated {
    /// The tool that arguments, the program's name among them, ask for.
    pub fn by(arguments: &[OsString]) -> Option<Impersonated> {
        let tool = Tool::of_command(arguments.get(1)?.to_str()?)?;
        let rest = &arguments[2..];
        let at = rest.iter().position(|argument| {
            argument == "--" || argument.as_bytes().starts_with(b"--compat")
        })?;
        let version = match rest[at].as_bytes().strip_prefix(b"--compat")? {
            [] => rest.get(at + 1)?.to_str()?,
            [b'=', version @ ..] => std::str::from_utf8(version).ok()?,
            _ => return None,
        };
        let dialect = match version {
            "6.0" => Dialect::Pcp6_0,
            "7.2" => Dialect::Pcp7_2,
            _ => return None,
        };
        Some(Impersonated { tool, dialect })
    }

    /// The arguments in a form that means the same to clap, in which every
    /// option is a word with what belongs to it. `own` are the options that only
    /// this program has, `settings` those that variables give.
    ///
    /// # Errors
    /// What the tool says instead of doing anything.
    pub fn translate(
        self,
        arguments: &[OsString],
        own: &[OwnOption],
        settings: &[Setting],
    ) -> Result<Vec<OsString>, EarlyEnd> {
        let Impersonated { tool, dialect } = self;
        let is_posix = std::env::var_os("POSIXLY_CORRECT").is_some();
        let mut said = Said::new(self);
        settings.iter().for_each(|setting| said.setting(setting));
        let (mut own_words, mut operands) = (Vec::new(), Vec::new());
        for part in scan(tool, dialect, own, &arguments[2..], is_posix) {
            match part {
                Part::Option(option, argument) => said.option(option, argument),
                Part::Own(words) => own_words.extend(words),
                Part::Operand(operand) => operands.push(operand),
                Part::Wrong(problem) => said.wrong(&[&Foreign(&problem)]),
            }
        }
        said.end(&operands)?;
        said.look_at_host(&operands)?;
        let mut translated = arguments[..2].to_vec();
        translated.extend(own_words);
        translated.extend(said.translated);
        translated.push("--".into());
        translated.extend(operands);
        Ok(translated)
    }

    /// The version that the tool says it is.
    fn version(self) -> &'static str {
        match self.dialect {
            Dialect::Pcp6_0 => "6.0.3",
            Dialect::Pcp7_2 | Dialect::Fixed => "7.2.1",
        }
    }
}

/// What pmNewContext(3) says of a host that cannot be one, and what a tool adds.
pub fn refused_host(host: &str) -> Option<(Lines, String)> {
    let error = host.parse::<HostSpec>().err()?;
    let (reason, status) = match host {
        "" => (Lines::default(), PmStatus::NOTHOST),
        _ => {
            let start = "pmNewContext: bad host specification\n";
            (Lines::of(&[&start, &error, &"\n"]), PmStatus::GENERIC)
        }
    };
    Some((reason, format!("Cannot connect to PMCD on host \"{host}\": {status}")))
}
