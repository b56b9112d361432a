//! The arguments of `info`, `val` and `probe` with `--compat`. They are parsed as
//! pmGetOptions(3) parses those of pminfo, pmval and pmprobe. Errors are in the words of those
//! tools.
//!
//! ```text
//! variables ─────────────────┐
//! arguments ──► scan ──► parts ──► what the options say together ─┬─► arguments in clap's form
//!                 ▲                                               └─► EarlyEnd, with usage
//!               tools (the options of each tool) ─────────────────────────┘
//! ```
//!
//! Without `--compat` clap parses the arguments. It always parses the options that only this
//! program has.

mod debug;
mod impersonated;
mod option_rules;
mod scan;
mod tools;
mod usage;

#[cfg(test)]
mod tests;

use std::ffi::OsString;

pub use self::impersonated::{EarlyEnd, Impersonated, refused_host};
use self::option_rules::GivenOptions;
pub use self::scan::OwnOption;
use self::scan::{Part, scan};
pub use self::tools::Tool;
pub use self::usage::usage;
use crate::cli::environment::Setting;
use crate::escape::Foreign;

impl Impersonated {
    /// Translates the arguments for clap: each option becomes a word with its argument. `own`
    /// are the options that only this program has, `settings` those that variables give.
    ///
    /// # Errors
    /// The tool ends at once, with a text.
    pub fn translate(
        self,
        arguments: &[OsString],
        own: &[OwnOption],
        settings: &[Setting],
    ) -> Result<Vec<OsString>, EarlyEnd> {
        let Impersonated { tool, dialect } = self;
        let is_posix = std::env::var_os("POSIXLY_CORRECT").is_some();
        let mut given = GivenOptions::new(self);
        settings.iter().for_each(|setting| given.setting(setting));
        let (mut own_words, mut operands) = (Vec::new(), Vec::new());
        for part in scan(tool, dialect, own, &arguments[2..], is_posix) {
            match part {
                Part::Option(option, argument) => given.option(option, argument),
                Part::Own(words) => own_words.extend(words),
                Part::Operand(operand) => operands.push(operand),
                Part::Wrong(problem) => given.wrong(&[&Foreign(&problem)]),
            }
        }
        given.end(&operands)?;
        given.look_at_host(&operands)?;
        let mut translated = arguments[..2].to_vec();
        translated.extend(own_words);
        translated.extend(given.translated);
        translated.push("--".into());
        translated.extend(operands);
        Ok(translated)
    }
}
