//! Rules between the options of a tool: each option is kept for clap, or refused as the tool
//! refuses it. Some can stand only alone, some only beside an archive.
//!
//! Another module splits the arguments into options. This one opens no source.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pmderive_runtime::model::{MetricSpec, PmStatus, SpecSource, parse_interval};
use pmderive_runtime::name_space::{LoadOptions, LocalNameSpace};
use pmderive_runtime::record_mode::archives_of_folio;

use super::debug::is_debug_spec;
use super::impersonated::{EarlyEnd, Impersonated, refused_host};
use super::tools::PcpOption;
use super::usage::usage;
use crate::cli::environment::{Setting, word};
use crate::cli::lines::Lines;
use crate::cli::pcp::batches::NO_BATCH;
use crate::dialect::Dialect;
use crate::escape::Foreign;

/// Options whose argument is a number: word, least value, and the error for others.
const NUMBERS: [(&str, i32, &str); 4] = [
    ("samples", 0, "-s requires a positive numeric argument"),
    ("precision", 0, "-f requires +ve numeric argument"),
    ("width", 1, "-w requires +ve numeric argument"),
    ("batch", i32::MIN, NO_BATCH),
];

/// The options read so far, as far as they constrain others.
pub struct GivenOptions {
    of: Impersonated,
    /// Errors so far, line by line.
    text: Lines,
    is_wrong: bool,
    wants_version: bool,
    /// True if something other than the arguments is wrong.
    has_failed: bool,
    has_names: bool,
    /// True if the size of a batch of metrics is zero.
    has_empty_batches: bool,
    host: Option<OsString>,
    /// Words of the options read. All ways to name an archive count as `archive`.
    given: HashSet<&'static str>,
    /// The options for clap.
    pub translated: Vec<OsString>,
}

impl GivenOptions {
    /// The state before the first option.
    pub fn new(of: Impersonated) -> GivenOptions {
        GivenOptions {
            of,
            text: Lines::default(),
            is_wrong: false,
            wants_version: false,
            has_failed: false,
            has_names: false,
            has_empty_batches: false,
            host: None,
            given: HashSet::new(),
            translated: Vec::new(),
        }
    }

    fn has(&self, word: &str) -> bool {
        self.given.contains(word)
    }

    /// Reads the option that a variable gives. It may be one that the tool lacks.
    pub fn setting(&mut self, setting: &Setting) {
        let value = setting.value.to_string_lossy();
        if setting.option == "debug" && !is_debug_spec(&value, self.of.dialect) {
            // libpcp itself has read it already.
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

    /// Notes a mistake, which is printed after those before it.
    pub fn wrong(&mut self, problem: &[&dyn Display]) {
        self.is_wrong = true;
        self.text.push(problem);
        self.text.push(&[&"\n"]);
    }

    fn refuse(&mut self, problem: &[&dyn Display]) {
        self.text.push(&[&self.of.tool.name, &": "]);
        self.wrong(problem);
    }

    fn keep(&mut self, option: &PcpOption, argument: Option<&OsStr>) {
        if self.of.tool.needs(option.word) {
            self.translated.push(word(option.word, argument));
        }
    }

    /// The reason why an option cannot stand beside those before it.
    fn conflict(&self, word: &str) -> Option<&'static str> {
        let (is_refused, problem) = match word {
            "archive" | "nointerp" => (self.host.is_some(), "only one host or archive allowed"),
            "host" => (self.has("archive"), "only one host or archive allowed"),
            "archive-list" | "archive-folio" => {
                (self.host.is_some(), "only one of hosts or archives allowed")
            }
            "host-list" => (self.has("archive"), "only one of hosts or archives allowed"),
            "hostzone" => (self.has("timezone"), "at most one of -Z and -z allowed"),
            "timezone" => (self.has("hostzone"), "at most one of -Z and -z allowed"),
            "guimode" => (self.has("guiport"), "at most one of -g and -p allowed"),
            "guiport" => (self.has("guimode"), "at most one of -g and -p allowed"),
            _ => return None,
        };
        is_refused.then_some(problem)
    }

    /// Reads an option of the tool.
    pub fn option(&mut self, option: &'static PcpOption, argument: Option<OsString>) {
        let text = argument.as_deref().map(OsStr::to_string_lossy).unwrap_or_default();
        if let Some(problem) = self.conflict(option.word) {
            return self.refuse(&[&problem]);
        }
        if let Some((_, least, problem)) = NUMBERS.iter().find(|(word, ..)| *word == option.word) {
            let number = c_int(&text).filter(|number| number >= least);
            if option.word == "batch" {
                self.has_empty_batches = number.is_some_and(|number| number < 1);
            }
            return match number {
                Some(number) => self.keep(option, Some(OsStr::new(&number.to_string()))),
                None => self.refuse(&[problem]),
            };
        }
        match option.word {
            "debug" if is_debug_spec(&text, self.of.dialect) => return,
            "debug" => {
                let text = Foreign(&text);
                return self.refuse(&[&"unrecognized debug options specification (", &text, &")"]);
            }
            "help" | "" => {
                self.is_wrong = true;
                return;
            }
            "version" => {
                self.wants_version = true;
                let (tool, version) = (self.of.tool.name, self.of.version());
                self.text.push(&[&tool, &" version ", &version, &"\n"]);
                return;
            }
            "namespace" => self.load_names(&text, true),
            "uniqnames" => self.load_names(&text, false),
            "archive-list" => return self.archive(&argument.unwrap_or_default()),
            "archive-folio" => return self.folio(&argument.unwrap_or_default()),
            // It names an archive, in order among the others.
            "nointerp" => self.archive(argument.as_deref().unwrap_or_default()),
            "host" if self.host.is_some() => {
                return self.refuse(&[&"too many hosts requested: ", &Foreign(&text)]);
            }
            "host" => self.host = argument.clone(),
            "host-list" => return self.hosts(&text),
            // pmval ignores a port that is no number.
            "guiport" if c_int(&text).unwrap_or(0) == 0 => {
                self.given.insert(option.word);
                return;
            }
            "spec-local" if !is_agent_spec(&text) => {
                return self.refuse(&[&"pmSpecLocalPMDA failed: bad op in spec"]);
            }
            "internal" | "external" if self.has("values") => {
                let letter = option.letter.unwrap_or_default();
                self.refuse(&[&"at most one of -", &letter, &" and -v allowed"]);
            }
            "values" if self.has("internal") || self.has("external") => {
                self.refuse(&[&"at most one of -v and (-i or -I) allowed"]);
            }
            "interval" => {
                if let Err(error) = parse_interval(&text) {
                    let call = match (self.of.tool.name, self.of.dialect) {
                        ("pmval", Dialect::Pcp6_0) => "pmParseHighResInterval(3)",
                        _ => "pmParseInterval(3)",
                    };
                    let format = " format:\n";
                    return self.refuse(&[&"-t argument not in ", &call, &format, &error, &"\n"]);
                }
            }
            _ => {}
        }
        self.given.insert(option.word);
        self.keep(option, argument.as_deref());
    }

    fn archive(&mut self, archive: &OsStr) {
        self.given.insert("archive");
        self.translated.push(word("archive", Some(archive)));
    }

    /// Adds the archives of a folio.
    fn folio(&mut self, path: &OsStr) {
        match archives_of_folio(Path::new(path)) {
            Ok(archives) => archives.iter().for_each(|archive| self.archive(archive.as_os_str())),
            Err(problem) => {
                self.has_failed = true;
                self.refuse(&[&Foreign(&problem)]);
            }
        }
    }

    /// Adds a list of hosts; it may have only one.
    fn hosts(&mut self, list: &str) {
        let mut hosts = list.split(',').filter(|host| !host.is_empty());
        let Some(first) = hosts.next() else { return };
        self.host = Some(first.into());
        if hosts.next().is_some() {
            return self.refuse(&[&"too many hosts requested: ", &Foreign(list)]);
        }
        self.translated.push(word("host", Some(first.as_ref())));
    }

    /// Tries to load a name space, as the tools do first.
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

    /// Checks all options together.
    pub fn end(&mut self, operands: &[OsString]) -> Result<(), EarlyEnd> {
        // pmval's operand may name the source, so pmval checks later.
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
        // Metrics of this machine take precedence over all others; only they have agents.
        let useless: &[&[u8]] = match self.has("local-PMDA") {
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
            return Err(EarlyEnd {
                text: std::mem::take(&mut self.text),
                is_good: self.wants_version,
            });
        }
        Ok(())
    }

    /// Reports a wrong metric of pmval first, then mistakes about its source, then an
    /// impossible host.
    pub fn look_at_host(&mut self, operands: &[OsString]) -> Result<(), EarlyEnd> {
        let is_pmval = self.of.tool.name == "pmval";
        for metric in operands.iter().filter(|_| is_pmval) {
            if let Err(error) = MetricSpec::parse(&metric.to_string_lossy(), SpecSource::Host(None))
            {
                self.wrong(&[&error]);
                self.look_at_source();
                return Err(self.misuse());
            }
        }
        let host = self.host.as_deref().filter(|_| !self.has("local-PMDA"));
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
        Err(EarlyEnd { text, is_good: false })
    }

    /// The mistakes so far, and the usage of the tool.
    fn misuse(&mut self) -> EarlyEnd {
        self.text.push(&[&usage(self.of.tool, self.of.dialect)]);
        EarlyEnd { text: std::mem::take(&mut self.text), is_good: false }
    }

    fn look_at_source(&mut self) {
        let is_local = self.has("local-PMDA");
        let is_archive = self.has("archive") && !is_local;
        let is_host = self.host.is_some() && !is_local;
        // An origin alone selects the archives that are kept of this host.
        let is_default = !is_host && !is_archive && !is_local && self.has("origin");
        let has_window = ["origin", "start", "align"].iter().any(|word| self.has(word));
        if has_window && !is_archive && !is_default {
            self.refuse(&[&"time window options are supported for archives only"]);
        }
        // PCP's tools then never end. An archive's metrics are fetched one by one.
        if self.has_empty_batches && !is_archive && !is_default {
            self.refuse(&[&NO_BATCH]);
        }
        if self.has("hostzone") && !is_archive && !is_host && !is_default {
            self.refuse(&[&"use of timezone from metric source requires a source"]);
        }
    }
}

/// True for a text that can name the agents for metrics of this machine.
fn is_agent_spec(text: &str) -> bool {
    ["add", "del", "clear"].iter().any(|operation| text.starts_with(operation))
}

/// Parses a whole number as strtol(3) does, after blanks only. The result is truncated to C's
/// `int`.
pub fn c_int(text: &str) -> Option<i32> {
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
