//! The files of processes: the list of processes, and the contents of each kind
//! of file for each process.
//!
//! A fetch reads each file at most once, into one buffer per kind. `values`
//! knows what the bytes mean.

use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use pmderive_core::model::{InDom, InstId, InstanceProfile};

use crate::files::{Files, ReadMark};
use crate::text;

/// A kind of file below /proc/PID, see [`Kind::file`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stat,
    Status,
    Memory,
    Transfers,
    Scheduler,
    Mappings,
    Maps,
    CommandLine,
    Environment,
    ControlGroups,
    SecurityLabel,
    WaitingIn,
    AutoGroup,
    OutOfMemoryScore,
    Executable,
    WorkingDirectory,
    /// The number of entries of `fd`, as decimal digits.
    Descriptors,
}

/// Number of kinds.
const KINDS: usize = Kind::Descriptors as usize + 1;

impl Kind {
    fn file(self) -> &'static str {
        match self {
            Kind::Stat => "stat",
            Kind::Status => "status",
            Kind::Memory => "statm",
            Kind::Transfers => "io",
            Kind::Scheduler => "schedstat",
            Kind::Mappings => "smaps_rollup",
            Kind::Maps => "maps",
            Kind::CommandLine => "cmdline",
            Kind::Environment => "environ",
            Kind::ControlGroups => "cgroup",
            Kind::SecurityLabel => "attr/current",
            Kind::WaitingIn => "wchan",
            Kind::AutoGroup => "autogroup",
            Kind::OutOfMemoryScore => "oom_score",
            Kind::Executable => "exe",
            Kind::WorkingDirectory => "cwd",
            Kind::Descriptors => "fd",
        }
    }
}

/// The processes of a fetch, and the contents of their files.
#[derive(Default)]
pub(super) struct ProcessFiles {
    listed: ReadMark,
    /// Process numbers in ascending order.
    pids: Vec<InstId>,
    kinds: [Column; KINDS],
    path: String,
}

/// One kind of file of all processes.
#[derive(Default)]
struct Column {
    read: ReadMark,
    /// The contents of all files, one after the other.
    bytes: Vec<u8>,
    /// The place of each file's contents in `bytes`, parallel to the processes.
    /// `None` for a file that was not or could not be read.
    ranges: Vec<Option<Range<usize>>>,
    /// True if the fetch reads the files of all processes.
    is_complete: bool,
}

impl ProcessFiles {
    /// Lists the processes, once per fetch.
    pub fn list(&mut self, files: &mut Files) {
        if !self.listed.is_due(files) {
            return;
        }
        self.pids.clear();
        let entries = fs::read_dir(files.path(b"proc")).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| text::number(entry.file_name().as_bytes()));
        self.pids.extend(pids.filter(|pid: &InstId| *pid > 0));
        self.pids.sort_unstable();
    }

    /// The processes, in ascending order.
    pub fn pids(&self) -> &[InstId] {
        &self.pids
    }

    /// Reads the files of a kind for the processes that the profile admits,
    /// once per fetch. A fetch reads twice only when a later profile admits all
    /// processes and the first did not.
    pub fn read(&mut self, kind: Kind, files: &mut Files, profile: &InstanceProfile, indom: InDom) {
        let wants_all = profile.is_everything();
        let column = &mut self.kinds[kind as usize];
        if !column.read.is_due(files) && (column.is_complete || !wants_all) {
            return;
        }
        column.bytes.clear();
        column.ranges.clear();
        column.is_complete = wants_all;
        for pid in &self.pids {
            let start = column.bytes.len();
            let admitted = wants_all || profile.admits(indom, *pid);
            let found = admitted && {
                use std::fmt::Write;
                self.path.clear();
                // Writing to a string does not fail.
                let _ = write!(self.path, "proc/{pid}/{}", kind.file());
                append(kind, &self.path, files, &mut column.bytes)
            };
            column.ranges.push(found.then_some(start..column.bytes.len()));
        }
    }

    /// The contents of a kind of file for the process at a position.
    pub fn contents(&self, kind: Kind, position: usize) -> Option<&[u8]> {
        let column = &self.kinds[kind as usize];
        column.bytes.get(column.ranges.get(position)?.clone()?)
    }
}

/// Appends the contents at a path. Returns false if they cannot be read.
fn append(kind: Kind, path: &str, files: &mut Files, bytes: &mut Vec<u8>) -> bool {
    match kind {
        Kind::Executable | Kind::WorkingDirectory => {
            let target = fs::read_link(files.path(path.as_bytes()));
            target.map(|target| bytes.extend_from_slice(target.as_os_str().as_bytes())).is_ok()
        }
        Kind::Descriptors => {
            let entries = fs::read_dir(files.path(path.as_bytes()));
            entries.map(|list| bytes.extend(list.count().to_string().into_bytes())).is_ok()
        }
        _ => files.read(path).map(|contents| bytes.extend_from_slice(contents)).is_some(),
    }
}
