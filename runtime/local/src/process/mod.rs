//! The agent for the processes of a Linux host. It serves the metrics of
//! pmdaproc(1) and reads /proc itself.
//!
//! The instance domain is large and changes all the time, and the facts about a
//! process are spread over a dozen files. So a fetch reads a kind of file only
//! if one of its metrics needs it, and only for processes that the profile
//! admits (`pmAddProfile(3)`). A process has no value if it ends meanwhile, or
//! if this user may not read its files.

mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod table;
mod values;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::model::{InDom, InstId, InstanceDomain, InstanceProfile, text_of_bytes};
use pmderive_core::model::{LabelFlags, LabelLevel, LabelMap, LabelSet, PmStatus, Pmid};

use self::files::{Kind, ProcessFiles};
use self::table::{Content, DOMAIN, PROCESSES, TABLE};
use self::values::Accounts;
use super::agent::{Agent, AgentValue, Metric, Values};
use super::files::Files;
use super::table::{SINGLE, metrics, put_number};
use super::text;

/// Metrics of the processes of this host, with the names, identifiers, types,
/// units, semantics and instances that pmdaproc(1) of PCP 6.0.3 gives them.
pub struct ProcessAgent {
    files: Files,
    processes: ProcessFiles,
    accounts: Accounts,
    rows: HashMap<Pmid, usize>,
    domain: Arc<InstanceDomain>,
}

impl fmt::Debug for ProcessAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessAgent").field("metrics", &self.rows.len()).finish_non_exhaustive()
    }
}

impl ProcessAgent {
    /// The agent for this host.
    pub fn new() -> ProcessAgent {
        ProcessAgent::with_root(PathBuf::from("/"))
    }

    /// The agent for the tree `root`, which has `proc` and `etc` in it: a
    /// recorded tree, or a host's as a container sees it.
    pub fn with_root(root: impl Into<PathBuf>) -> ProcessAgent {
        let rows = TABLE.iter().zip(0..).map(|(row, position)| (row.pmid(), position)).collect();
        ProcessAgent {
            files: Files::new(root.into()),
            processes: ProcessFiles::default(),
            accounts: Accounts::default(),
            rows,
            domain: Arc::default(),
        }
    }

    /// Name of a process's instance: its number and the first word of its
    /// command line. Without a command line, the program's name in parentheses
    /// follows the number.
    fn instance_name(&mut self, position: usize, pid: InstId) -> Box<str> {
        let command = self.processes.contents(Kind::CommandLine, position).unwrap_or_default();
        let first = command.split(|byte| *byte == 0 || byte.is_ascii_whitespace()).next();
        match first.filter(|word| !word.is_empty()) {
            Some(word) => format!("{pid:06} {}", text_of_bytes(word)).into(),
            None => {
                let stat = self.processes.contents(Kind::Stat, position).unwrap_or_default();
                let name = values::name_of(stat).map(text_of_bytes).unwrap_or_default();
                format!("{pid:06} ({name})").into()
            }
        }
    }

    /// Adds the values of a metric whose instances are the processes.
    fn fetch_each(&mut self, source: &Content, out: &mut Values<'_, '_>) {
        let Some(kind) = source.kind() else { return };
        self.processes.read(kind, &mut self.files, out.profile(), InDom::new(DOMAIN, PROCESSES));
        if source.needs_accounts() {
            self.accounts.read(&mut self.files);
        }
        for position in 0..self.processes.pids().len() {
            let Some(contents) = self.processes.contents(kind, position) else { continue };
            let pid = self.processes.pids()[position];
            values::put(source, contents, &self.accounts, pid, out);
        }
    }

    /// Number of processes whose state `in_state` accepts.
    fn count(&mut self, in_state: fn(values::State) -> bool) -> u64 {
        let everyone = InstanceProfile::default();
        let indom = InDom::new(DOMAIN, PROCESSES);
        self.processes.read(Kind::Stat, &mut self.files, &everyone, indom);
        let stats = (0..self.processes.pids().len())
            .filter_map(|position| self.processes.contents(Kind::Stat, position));
        stats.filter_map(values::state_of).filter(|state| in_state(*state)).count() as u64
    }
}

impl Default for ProcessAgent {
    fn default() -> ProcessAgent {
        ProcessAgent::new()
    }
}

impl Agent for ProcessAgent {
    fn name(&self) -> &str {
        "proc"
    }

    fn duplicate(&self) -> Option<Box<dyn Agent>> {
        Some(Box::new(ProcessAgent::with_root(self.files.root())))
    }

    fn metrics(&self) -> Vec<Metric> {
        metrics(TABLE)
    }

    fn begin_fetch(&mut self) {
        self.files.begin();
    }

    fn fetch(&mut self, pmid: Pmid, out: &mut Values<'_, '_>) -> Result<(), PmStatus> {
        let row = *self.rows.get(&pmid).ok_or(PmStatus::PMID)?;
        self.processes.list(&mut self.files);
        match &TABLE[row].value {
            Content::Processes => {
                let count = u64::try_from(self.processes.pids().len()).ok();
                put_number(out, SINGLE, count);
            }
            Content::Count(in_state) => {
                let count = self.count(*in_state);
                put_number(out, SINGLE, Some(count));
            }
            Content::Setting(file) => {
                let contents = self.files.read(file);
                put_number(out, SINGLE, contents.and_then(|text| text::number(text.trim_ascii())));
            }
            Content::Pid => {
                for pid in self.processes.pids() {
                    out.put(*pid, AgentValue::U32(pid.cast_unsigned()));
                }
            }
            source => self.fetch_each(source, out),
        }
        Ok(())
    }

    fn instance_domain(&mut self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        if indom != InDom::new(DOMAIN, PROCESSES) {
            return Err(PmStatus::INDOM);
        }
        let everyone = InstanceProfile::default();
        self.processes.list(&mut self.files);
        self.processes.read(Kind::CommandLine, &mut self.files, &everyone, indom);
        self.processes.read(Kind::Stat, &mut self.files, &everyone, indom);
        let mut instances = Vec::with_capacity(self.processes.pids().len());
        for position in 0..self.processes.pids().len() {
            let pid = self.processes.pids()[position];
            instances.push((pid, self.instance_name(position, pid)));
        }
        if !self.domain.instances().eq(instances.iter().map(|(pid, name)| (*pid, &**name))) {
            self.domain = Arc::new(InstanceDomain::new(instances));
        }
        Ok(Arc::clone(&self.domain))
    }

    /// Also accepts the bare process number, with leading zeros or without.
    fn lookup_instance(&mut self, indom: InDom, name: &str) -> Result<InstId, PmStatus> {
        let domain = self.instance_domain(indom)?;
        let number = || name.parse().ok().filter(|pid| self.processes.pids().contains(pid));
        domain.lookup(name).or_else(number).ok_or(PmStatus::INST)
    }

    fn domain_help(&self, indom: InDom) -> Option<Cow<'static, str>> {
        (indom == InDom::new(DOMAIN, PROCESSES)).then_some("The processes.".into())
    }

    fn labels(&mut self, level: LabelLevel) -> Vec<LabelSet> {
        let LabelLevel::Instances(indom) = level else { return Vec::new() };
        if indom != InDom::new(DOMAIN, PROCESSES) {
            return Vec::new();
        }
        self.processes.list(&mut self.files);
        let flags = LabelFlags(level.bit());
        let set = |pid: &InstId| {
            let number = (pid.to_string().into(), flags);
            LabelSet::from_map(*pid, &LabelMap::from([("pid".into(), number)]))
        };
        self.processes.pids().iter().map(set).collect()
    }
}

#[cfg(test)]
mod tests;
