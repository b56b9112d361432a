//! Environment variables that stand for options, see pmGetOptions(3). Only the commands named
//! after PCP's tools read them.
//!
//! A variable is an option in front of all arguments. The commands give the options a meaning.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use pmderive_runtime::record_mode::archives_of_folio;

/// Pairs of a variable and the word of its option.
const VARIABLES: &[(&str, &str)] = &[
    ("PCP_ALIGN_TIME", "align"),
    ("PCP_ARCHIVE", "archive"),
    ("PCP_ARCHIVE_LIST", "archive-list"),
    ("PCP_DEBUG", "debug"),
    ("PCP_FINISH_TIME", "finish"),
    ("PCP_FOLIO", "archive-folio"),
    ("PCP_GUIMODE", "guimode"),
    ("PCP_GUIPORT", "guiport"),
    ("PCP_HOST", "host"),
    ("PCP_HOST_LIST", "host-list"),
    ("PCP_HOSTZONE", "hostzone"),
    ("PCP_INTERVAL", "interval"),
    ("PCP_LOCALMODE", "local-PMDA"),
    ("PCP_LOCALPMDA", "local-PMDA"),
    ("PCP_NAMESPACE", "namespace"),
    ("PCP_ORIGIN", "origin"),
    ("PCP_ORIGIN_TIME", "origin"),
    ("PCP_SAMPLES", "samples"),
    ("PCP_SPECLOCAL", "spec-local"),
    ("PCP_START_TIME", "start"),
    ("PCP_TIMEZONE", "timezone"),
    ("PCP_UNIQNAMES", "uniqnames"),
];

/// Options that choose a host or an archive.
const SOURCES: &[&str] = &["archive", "archive-list", "archive-folio", "host", "host-list"];

/// An option that a variable gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The variable.
    pub variable: &'static str,
    /// The word of the option.
    pub option: &'static str,
    /// The value of the variable.
    pub value: OsString,
}

/// The options that variables give, in the order of the variables. The one for debugging comes
/// first.
pub fn settings(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Setting> {
    let mut settings: Vec<Setting> = variables
        .filter_map(|(name, value)| {
            let (variable, option) = VARIABLES.iter().find(|(variable, _)| name == *variable)?;
            Some(Setting { variable, option, value })
        })
        .collect();
    settings.sort_by_key(|setting| setting.option != "debug");
    settings
}

impl Setting {
    /// True if the option chooses a source.
    pub fn chooses_source(&self) -> bool {
        SOURCES.contains(&self.option)
    }

    /// The words that the variable adds to a command line. None if the command lacks the
    /// option, or if the variable is empty.
    ///
    /// # Errors
    /// The value makes no sense for the option; the text says why.
    pub fn words(&self, command: &clap::Command) -> Result<Vec<OsString>, String> {
        let option = match self.option {
            "archive-list" | "archive-folio" => "archive",
            "host-list" => "host",
            option => option,
        };
        let is_option = |argument: &&clap::Arg| {
            let mut aliases = argument.get_all_aliases().into_iter().flatten();
            argument.get_long() == Some(option) || aliases.any(|alias| alias == option)
        };
        let argument = command.get_arguments().find(is_option);
        let Some(argument) = argument.filter(|_| !self.value.is_empty()) else {
            return Ok(Vec::new());
        };
        Ok(match self.option {
            "archive-folio" => {
                let archives = archives_of_folio(Path::new(&self.value))?;
                archives.iter().map(|archive| word(option, Some(archive.as_os_str()))).collect()
            }
            _ if argument.get_action().takes_values() => vec![word(option, Some(&self.value))],
            _ => vec![word(option, None)],
        })
    }
}

/// An option and its value in one word.
pub fn word(option: &str, value: Option<&OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{option}"));
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    use super::*;

    #[test]
    fn variables_are_options() {
        let command = Command::new("x")
            .arg(Arg::new("archive").long("archive"))
            .arg(Arg::new("host").long("host"))
            .arg(Arg::new("samples").long("samples"))
            .arg(Arg::new("local").long("local").alias("local-PMDA").action(ArgAction::SetTrue));
        for (variables, expected) in [
            ("PCP_ARCHIVE_LIST=d,e PCP_ARCHIVE=a", "--archive=d,e --archive=a"),
            ("PCP_HOST= PCP_ARCHIVE= HOME=x PCP_ALIGN_TIME=1", ""),
            ("PCP_HOST_LIST=b PCP_DEBUG=pdu", "--host=b"),
            ("PCP_SAMPLES=2=3 PCP_LOCALMODE=0", "--samples=2=3 --local"),
        ] {
            let variables = variables.split(' ').filter_map(|one| one.split_once('='));
            let settings = settings(variables.map(|(name, value)| (name.into(), value.into())));
            let words = settings.iter().map(|setting| setting.words(&command).expect("words"));
            let words: Vec<_> = words.flatten().map(|word| word.into_string()).collect();
            let words: Vec<_> = words.into_iter().map(|word| word.expect("text")).collect();
            assert_eq!(words.join(" "), expected.replace("--local", "--local-PMDA"));
        }
    }

    #[test]
    fn what_is_traced_comes_first() {
        let variables = [("PCP_SAMPLES", "1"), ("PCP_DEBUG", "x"), ("PCP_HOST", "b")];
        let settings = settings(variables.iter().map(|(name, value)| (name.into(), value.into())));
        let options: Vec<_> = settings.iter().map(|setting| setting.option).collect();
        assert_eq!(options, ["debug", "samples", "host"]);
    }
}
