//! The arguments of `info`, `val` and `probe` with `--compat`. They are read as
//! pmGetOptions(3) reads those of pminfo, pmval and pmprobe, and refused in the words
//! of those tools.
//!
//! ```text
//! variables ─────────────────┐
//! arguments ──► scan ──► parts ──► what the options say together ─┬─► arguments in clap's form
//!                 ▲                                               └─► Ending, with usage
//!               tools (the options of each tool) ─────────────────────────┘
//! ```
//!
//! Without `--compat` clap reads the arguments. It always reads the options that only
//! this program has.

mod debug;
mod scan;
mod tools;
mod usage;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::{MetricSpec, PmStatus, SpecSource, parse_interval};
use pmderive_runtime::name_space::{LoadOptions, LocalNameSpace};
use pmderive_runtime::record::archives_of_folio;

use self::debug::is_debug_spec;
pub use self::scan::OwnOption;
use self::scan::{Part, scan};
use self::tools::PcpOption;
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
pub struct Ending {
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
    ) -> Result<Vec<OsString>, Ending> {
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

/// What options say, as far as one matters to another.
struct Said {
    of: Impersonated,
    /// What there is to tell, line by line.
    text: Lines,
    is_wrong: bool,
    wants_version: bool,
    host: Option<OsString>,
    has_archive: bool,
    is_local: bool,
    has_origin: bool,
    /// Its time is chosen otherwise.
    has_window: bool,
    has_names: bool,
    /// Something else than the arguments is wrong.
    has_failed: bool,
    host_zone: bool,
    time_zone: bool,
    gui_mode: bool,
    gui_port: bool,
    values: bool,
    instances: bool,
    translated: Vec<OsString>,
}

impl Said {
    fn new(of: Impersonated) -> Said {
        Said {
            of,
            text: Lines::default(),
            is_wrong: false,
            wants_version: false,
            host: None,
            has_archive: false,
            is_local: false,
            has_origin: false,
            has_window: false,
            has_names: false,
            has_failed: false,
            host_zone: false,
            time_zone: false,
            gui_mode: false,
            gui_port: false,
            values: false,
            instances: false,
            translated: Vec::new(),
        }
    }

    /// Takes what a variable says, for the tool's own option or for another one.
    fn setting(&mut self, setting: &Setting) {
        let value = setting.value.to_string_lossy();
        if setting.option == "debug" && !is_debug_spec(&value, self.of.dialect) {
            // libpcp itself has looked already.
            let value = Foreign(&value);
            self.text.push(&[&"Error: $", &setting.variable, &"=", &value]);
            self.text.push(&[&" is not valid, ignored\n"]);
        }
        if setting.option == "samples" && c_int(&value) == Some(0) {
            // Unlike `-s 0` this means all.
            return;
        }
        let option = PcpOption::of_variable(setting.option);
        self.option(option, option.argument.map(|_| setting.value.clone()));
    }

    /// Takes note of a mistake, which is told with those before it.
    fn wrong(&mut self, problem: &[&dyn Display]) {
        self.is_wrong = true;
        self.text.push(problem);
        self.text.push(&[&"\n"]);
    }

    fn refuse(&mut self, problem: &[&dyn Display]) {
        self.text.push(&[&self.of.tool.name, &": "]);
        self.wrong(problem);
    }

    fn keep(&mut self, option: &PcpOption, argument: Option<&OsStr>) {
        if !self.of.tool.needs(option.word) {
            return;
        }
        let mut word = OsString::from(format!("--{}", option.word));
        if let Some(argument) = argument {
            word.push("=");
            word.push(argument);
        }
        self.translated.push(word);
    }

    fn option(&mut self, option: &'static PcpOption, argument: Option<OsString>) {
        let text = argument.as_deref().map(OsStr::to_string_lossy).unwrap_or_default();
        match option.word {
            "debug" if !is_debug_spec(&text, self.of.dialect) => {
                let text = Foreign(&text);
                return self.refuse(&[&"unrecognized debug options specification (", &text, &")"]);
            }
            "debug" => return,
            "help" | "" => {
                self.is_wrong = true;
                return;
            }
            "namespace" => self.load_names(&text, true),
            "uniqnames" => self.load_names(&text, false),
            "version" => {
                self.wants_version = true;
                let (tool, version) = (self.of.tool.name, self.of.version());
                self.text.push(&[&tool, &" version ", &version, &"\n"]);
                return;
            }
            "archive" | "nointerp" if self.host.is_some() => {
                return self.refuse(&[&"only one host or archive allowed"]);
            }
            "archive-list" | "archive-folio" if self.host.is_some() => {
                return self.refuse(&[&"only one of hosts or archives allowed"]);
            }
            "archive" => self.has_archive = true,
            "archive-list" => return self.archive(&argument.unwrap_or_default()),
            "archive-folio" => return self.folio(&argument.unwrap_or_default()),
            "nointerp" => {
                self.has_archive = true;
                // In its place among the others.
                self.archive(argument.as_deref().unwrap_or_default());
            }
            "host" if self.has_archive => {
                return self.refuse(&[&"only one host or archive allowed"]);
            }
            "host" if self.host.is_some() => {
                return self.refuse(&[&"too many hosts requested: ", &Foreign(&text)]);
            }
            "host" => self.host = argument.clone(),
            "host-list" if self.has_archive => {
                return self.refuse(&[&"only one of hosts or archives allowed"]);
            }
            "host-list" => return self.hosts(&text),
            "local-PMDA" => self.is_local = true,
            "spec-local" if !is_agent_spec(&text) => {
                return self.refuse(&[&"pmSpecLocalPMDA failed: bad op in spec"]);
            }
            "origin" => self.has_origin = true,
            "start" | "align" => self.has_window = true,
            "hostzone" if self.time_zone => {
                return self.refuse(&[&"at most one of -Z and -z allowed"]);
            }
            "hostzone" => self.host_zone = true,
            "timezone" if self.host_zone => {
                return self.refuse(&[&"at most one of -Z and -z allowed"]);
            }
            "timezone" => self.time_zone = true,
            "guimode" if self.gui_port => {
                return self.refuse(&[&"at most one of -g and -p allowed"]);
            }
            "guimode" => self.gui_mode = true,
            "guiport" if self.gui_mode => {
                return self.refuse(&[&"at most one of -g and -p allowed"]);
            }
            "guiport" => self.gui_port = true,
            "internal" | "external" => {
                self.instances = true;
                if self.values {
                    let letter = option.letter.unwrap_or_default();
                    self.refuse(&[&"at most one of -", &letter, &" and -v allowed"]);
                }
            }
            "values" => {
                self.values = true;
                if self.instances {
                    self.refuse(&[&"at most one of -v and (-i or -I) allowed"]);
                }
            }
            "samples" => {
                let number = c_int(&text).filter(|number| *number >= 0);
                return self.number(option, number, "-s requires a positive numeric argument");
            }
            "precision" => {
                let number = c_int(&text).filter(|number| *number >= 0);
                return self.number(option, number, "-f requires +ve numeric argument");
            }
            "width" => {
                let number = c_int(&text).filter(|number| *number > 0);
                return self.number(option, number, "-w requires +ve numeric argument");
            }
            "batch" => {
                // With none at a time PCP's tools never end.
                let number = c_int(&text).filter(|number| *number > 0);
                return self.number(option, number, "-b requires numeric argument");
            }
            "interval" => {
                if let Err(error) = parse_interval(&text) {
                    let call = match (self.of.tool.name, self.of.dialect) {
                        ("pmval", Dialect::Pcp6_0) => "pmParseHighResInterval(3)",
                        _ => "pmParseInterval(3)",
                    };
                    self.refuse(&[&"-t argument not in ", &call, &" format:\n", &error, &"\n"]);
                    return;
                }
            }
            _ => {}
        }
        self.keep(option, argument.as_deref());
    }

    fn archive(&mut self, archive: &OsStr) {
        self.has_archive = true;
        let mut word = OsString::from("--archive=");
        word.push(archive);
        self.translated.push(word);
    }

    /// Takes the archives of a folio.
    fn folio(&mut self, path: &OsStr) {
        match archives_of_folio(Path::new(path)) {
            Ok(archives) => archives.iter().for_each(|archive| self.archive(archive.as_os_str())),
            Err(problem) => {
                self.has_failed = true;
                self.refuse(&[&Foreign(&problem)]);
            }
        }
    }

    /// Takes a list of hosts, of which there may be but one.
    fn hosts(&mut self, list: &str) {
        let mut hosts = list.split(',').filter(|host| !host.is_empty());
        let Some(first) = hosts.next() else { return };
        self.host = Some(first.into());
        if hosts.next().is_some() {
            return self.refuse(&[&"too many hosts requested: ", &Foreign(list)]);
        }
        self.translated.push(format!("--host={first}").into());
    }

    /// Tries to load a name space, since the tools do that first.
    fn load_names(&mut self, file: &str, duplicates: bool) {
        let options = LoadOptions { duplicates, ..LoadOptions::default() };
        let status = match LocalNameSpace::load(Some(Path::new(file)), &options) {
            _ if self.has_names => PmStatus::DUPPMNS,
            Ok(_) => {
                self.has_names = true;
                return;
            }
            Err(error) => {
                self.text.push(&[&error, &"\n"]);
                error.status()
            }
        };
        self.has_failed = true;
        let status = self.of.dialect.text(status);
        self.refuse(&[&"Cannot load namespace from \"", &Foreign(file), &"\": ", &status]);
    }

    fn number(&mut self, option: &'static PcpOption, number: Option<i32>, problem: &str) {
        match number {
            Some(number) => self.keep(option, Some(OsStr::new(&number.to_string()))),
            None => self.refuse(&[&problem]),
        }
    }

    /// Looks at what all options come to.
    fn end(&mut self, operands: &[OsString]) -> Result<(), Ending> {
        // pmval's operand may name the source, so pmval looks later.
        let names_source = self.of.tool.name == "pmval";
        if names_source {
            match operands.len() {
                _ if self.is_wrong || self.wants_version => {}
                0 => self.refuse(&[&"error - no metricname specified"]),
                1 => {}
                _ => self.refuse(&[&"error - too many arguments"]),
            }
        } else {
            self.look_at_source();
        }
        // Metrics of this machine come before all others; only they have agents.
        let useless: &[&[u8]] = match self.is_local {
            true => &[b"--host=", b"--archive="],
            false => &[b"--spec-local="],
        };
        let is_useful =
            |word: &OsString| useless.iter().all(|option| !word.as_bytes().starts_with(option));
        self.translated.retain(is_useful);
        if self.is_wrong && !self.wants_version && !self.has_failed {
            self.text.push(&[&usage(self.of.tool, self.of.dialect)]);
        }
        if self.is_wrong || self.wants_version {
            return Err(Ending {
                text: std::mem::take(&mut self.text),
                is_good: self.wants_version,
            });
        }
        Ok(())
    }

    /// A metric of pmval that makes no sense is told first, then what does not
    /// fit its source, and then a host that cannot be one.
    fn look_at_host(&mut self, operands: &[OsString]) -> Result<(), Ending> {
        let is_pmval = self.of.tool.name == "pmval";
        for metric in operands.iter().filter(|_| is_pmval) {
            if let Err(error) = MetricSpec::parse(&metric.to_string_lossy(), SpecSource::Host(None))
            {
                self.wrong(&[&error]);
                self.look_at_source();
                return Err(self.misuse());
            }
        }
        let host = self.host.as_deref().filter(|_| !self.is_local);
        let Some((mut text, failure)) = host.and_then(|host| refused_host(&host.to_string_lossy()))
        else {
            return Ok(());
        };
        if is_pmval {
            self.look_at_source();
            if self.is_wrong {
                return Err(self.misuse());
            }
        }
        text.push(&[&self.of.tool.name, &": ", &Foreign(&failure), &"\n"]);
        Err(Ending { text, is_good: false })
    }

    /// What was wrong, and how the tool is used.
    fn misuse(&mut self) -> Ending {
        self.text.push(&[&usage(self.of.tool, self.of.dialect)]);
        Ending { text: std::mem::take(&mut self.text), is_good: false }
    }

    fn look_at_source(&mut self) {
        let is_archive = self.has_archive && !self.is_local;
        let is_host = self.host.is_some() && !self.is_local;
        // An origin alone asks for the archives that are kept of this host.
        let is_default = !is_host && !is_archive && !self.is_local && self.has_origin;
        if (self.has_origin || self.has_window) && !is_archive && !is_default {
            self.refuse(&[&"time window options are supported for archives only"]);
        }
        if self.host_zone && !is_archive && !is_host && !is_default {
            self.refuse(&[&"use of timezone from metric source requires a source"]);
        }
    }
}

/// True for what may say which agents the metrics of this machine come from.
fn is_agent_spec(text: &str) -> bool {
    ["add", "del", "clear"].iter().any(|operation| text.starts_with(operation))
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

/// A whole number as strtol(3) reads it, without more than blanks before it, in
/// the width of C's `int`, whatever is lost.
fn c_int(text: &str) -> Option<i32> {
    if text.is_empty() {
        return Some(0);
    }
    let text = text.trim_start_matches(|c| matches!(c, ' ' | '\t'..='\r'));
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>();
    let number = match (is_negative, magnitude) {
        (false, magnitude) => magnitude.unwrap_or(i64::MAX),
        (true, magnitude) => magnitude.map_or(i64::MIN, |magnitude| -magnitude),
    };
    Some(number as i32)
}
