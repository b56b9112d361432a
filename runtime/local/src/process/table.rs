//! The metrics of processes, and the place of each metric's value.
//!
//! Names, numbers, types, semantics and units are those of pmdaproc(1).

use pmderive_core::model::{Pmid, Semantics, Semantics::*, Units, ValueType, ValueType::*};

use super::files::Kind;
use super::values::State;
use crate::table::{Row, units::*};

/// Number of pmdaproc's domain.
pub(super) const DOMAIN: u32 = 3;

/// Serial number of the instance domain of processes.
pub(super) const PROCESSES: u32 = 9;

/// The place of a metric's value.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// The number of processes.
    Processes,
    /// The number of processes in the states that this accepts.
    Count(fn(State) -> bool),
    /// The number in a file below the root.
    Setting(&'static str),
    /// The number of the process.
    Pid,
    /// A word of `stat`, numbered from 1.
    Stat(usize, Form),
    /// The name of the program in `stat`.
    Name,
    /// The terminal of `stat`, by name.
    Terminal,
    /// The scheduling policy of `stat`, by name.
    Policy,
    /// A word, numbered from 0, after a key of a file.
    Keyed(Kind, &'static str, usize, Form),
    /// The sum of two numbers of `status`.
    Sum(&'static str, &'static str),
    /// A number of `status` minus another. It is 0 if the other is larger.
    Difference(&'static str, &'static str),
    /// The name of the user whose number is this word of `Uid`.
    User(usize),
    /// The name of the group whose number is this word of `Gid`.
    Group(usize),
    /// A word of a file, numbered from 0.
    Word(Kind, usize, Form),
    /// A whole file, as text.
    Whole(Kind),
    /// The command line, as text.
    CommandLine,
    /// The environment, as text.
    Environment,
    /// The control groups, as text.
    ControlGroups,
    /// The number in the name of the process's group in `autogroup`.
    AutoGroup,
    /// The nice value in `autogroup`.
    AutoGroupNice,
}

/// The conversion from a word to a value.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A number that is not negative.
    Number,
    /// A number with a sign.
    Signed,
    /// The word itself.
    Text,
    /// A number of bytes, delivered in kilobytes.
    Bytes,
    /// A number of pages, delivered in kilobytes.
    Pages,
    /// A number of clock ticks, delivered in milliseconds.
    Ticks,
}

impl Content {
    /// The kind of file that this needs of each process.
    pub fn kind(&self) -> Option<Kind> {
        Some(match *self {
            Content::Processes | Content::Count(_) | Content::Setting(_) | Content::Pid => {
                return None;
            }
            Content::Stat(..) | Content::Name | Content::Terminal | Content::Policy => Kind::Stat,
            Content::Sum(..) | Content::Difference(..) | Content::User(_) | Content::Group(_) => {
                Kind::Status
            }
            Content::Keyed(kind, ..) | Content::Word(kind, ..) | Content::Whole(kind) => kind,
            Content::CommandLine => Kind::CommandLine,
            Content::Environment => Kind::Environment,
            Content::ControlGroups => Kind::ControlGroups,
            Content::AutoGroup | Content::AutoGroupNice => Kind::AutoGroup,
        })
    }

    /// True if the value is the name of a user or group.
    pub fn needs_accounts(&self) -> bool {
        matches!(self, Content::User(_) | Content::Group(_))
    }
}

const fn row(
    name: &'static str,
    number: (u32, u32),
    value_type: ValueType,
    semantics: Semantics,
    units: Units,
    source: Content,
    help: &'static str,
) -> Row<Content> {
    let pmid = Pmid::new(DOMAIN, number.0, number.1);
    Row::new(name, pmid, (value_type, semantics, units), source, help)
}

/// The metrics.
#[rustfmt::skip]
pub(super) static TABLE: &[Row<Content>] = &[
    row("proc.nprocs", (8, 99), U32, Instant, NONE, Content::Processes, "How many processes there are."),
    row("proc.psinfo.pid", (8, 0), U32, Discrete, NONE, Content::Pid, "Number of the process.").over(PROCESSES),
    row("proc.psinfo.cmd", (8, 1), String, Discrete, NONE, Content::Name, "Name of the program, at most 15 bytes of it.").over(PROCESSES),
    row("proc.psinfo.sname", (8, 2), String, Instant, NONE, Content::Stat(3, Form::Text), "State as a letter: R runs, S sleeps, D waits for a device, T is stopped, Z has ended, I is idle.").over(PROCESSES),
    row("proc.psinfo.ppid", (8, 3), U32, Discrete, NONE, Content::Stat(4, Form::Number), "Number of the parent process.").over(PROCESSES),
    row("proc.psinfo.pgrp", (8, 4), U32, Discrete, NONE, Content::Stat(5, Form::Number), "Number of the process group.").over(PROCESSES),
    row("proc.psinfo.session", (8, 5), U32, Discrete, NONE, Content::Stat(6, Form::Number), "Number of the session.").over(PROCESSES),
    row("proc.psinfo.tty", (8, 6), U32, Discrete, NONE, Content::Stat(7, Form::Number), "Device number of the controlling terminal, 0 for none.").over(PROCESSES),
    row("proc.psinfo.tty_pgrp", (8, 7), U32, Discrete, NONE, Content::Stat(8, Form::Number), "Foreground process group of the controlling terminal; without one, no value.").over(PROCESSES),
    row("proc.psinfo.flags", (8, 8), U32, Discrete, NONE, Content::Stat(9, Form::Number), "Flags of the kernel for the process.").over(PROCESSES),
    row("proc.psinfo.minflt", (8, 9), U32, Counter, COUNT, Content::Stat(10, Form::Number), "Page faults that needed no device.").over(PROCESSES),
    row("proc.psinfo.cmin_flt", (8, 10), U32, Counter, COUNT, Content::Stat(11, Form::Number), "Page faults of ended children that needed no device.").over(PROCESSES),
    row("proc.psinfo.maj_flt", (8, 11), U32, Counter, COUNT, Content::Stat(12, Form::Number), "Page faults that had to wait for a device.").over(PROCESSES),
    row("proc.psinfo.cmaj_flt", (8, 12), U32, Counter, COUNT, Content::Stat(13, Form::Number), "Page faults of ended children that had to wait for a device.").over(PROCESSES),
    row("proc.psinfo.utime", (8, 13), U64, Counter, MILLISEC, Content::Stat(14, Form::Ticks), "Processor time outside the kernel.").over(PROCESSES),
    row("proc.psinfo.stime", (8, 14), U64, Counter, MILLISEC, Content::Stat(15, Form::Ticks), "Processor time in the kernel.").over(PROCESSES),
    row("proc.psinfo.cutime", (8, 15), U64, Counter, MILLISEC, Content::Stat(16, Form::Ticks), "Processor time of ended children outside the kernel.").over(PROCESSES),
    row("proc.psinfo.cstime", (8, 16), U64, Counter, MILLISEC, Content::Stat(17, Form::Ticks), "Processor time of ended children in the kernel.").over(PROCESSES),
    row("proc.psinfo.priority", (8, 17), I32, Instant, NONE, Content::Stat(18, Form::Signed), "Priority as the kernel counts it: 20 plus the nice value, below 0 for real time.").over(PROCESSES),
    row("proc.psinfo.nice", (8, 18), I32, Instant, NONE, Content::Stat(19, Form::Signed), "Nice value, from -20 to 19.").over(PROCESSES),
    row("proc.psinfo.it_real_value", (8, 20), U32, Discrete, NONE, Content::Stat(21, Form::Number), "Time to the next signal of an interval timer; always 0 on recent kernels.").over(PROCESSES),
    row("proc.psinfo.start_time", (8, 21), U64, Discrete, MILLISEC, Content::Stat(22, Form::Ticks), "When the process began, counted from the start of the system.").over(PROCESSES),
    row("proc.psinfo.vsize", (8, 22), U64, Instant, KBYTE, Content::Stat(23, Form::Bytes), "Size of the address space.").over(PROCESSES),
    row("proc.psinfo.rss", (8, 23), U64, Instant, KBYTE, Content::Stat(24, Form::Pages), "Size of the part that is in memory.").over(PROCESSES),
    row("proc.psinfo.rss_rlim", (8, 24), U64, Instant, KBYTE, Content::Stat(25, Form::Bytes), "Limit of the size in memory.").over(PROCESSES),
    row("proc.psinfo.start_code", (8, 25), U32, Discrete, NONE, Content::Stat(26, Form::Number), "Address where the program begins, if it has 32 bits.").over(PROCESSES),
    row("proc.psinfo.end_code", (8, 26), U32, Discrete, NONE, Content::Stat(27, Form::Number), "Address where the program ends, if it has 32 bits.").over(PROCESSES),
    row("proc.psinfo.start_stack", (8, 27), U32, Discrete, NONE, Content::Stat(28, Form::Number), "Address of the bottom of the stack, if it has 32 bits.").over(PROCESSES),
    row("proc.psinfo.esp", (8, 28), U32, Discrete, NONE, Content::Stat(29, Form::Number), "Stack pointer, if it has 32 bits.").over(PROCESSES),
    row("proc.psinfo.eip", (8, 29), U32, Discrete, NONE, Content::Stat(30, Form::Number), "Instruction pointer, if it has 32 bits.").over(PROCESSES),
    row("proc.psinfo.signal", (8, 30), U32, Discrete, NONE, Content::Stat(31, Form::Number), "Pending signals, as bits.").over(PROCESSES),
    row("proc.psinfo.blocked", (8, 31), U32, Discrete, NONE, Content::Stat(32, Form::Number), "Blocked signals, as bits.").over(PROCESSES),
    row("proc.psinfo.sigignore", (8, 32), U32, Discrete, NONE, Content::Stat(33, Form::Number), "Ignored signals, as bits.").over(PROCESSES),
    row("proc.psinfo.sigcatch", (8, 33), U32, Discrete, NONE, Content::Stat(34, Form::Number), "Handled signals, as bits.").over(PROCESSES),
    row("proc.psinfo.wchan", (8, 34), U64, Discrete, NONE, Content::Stat(35, Form::Number), "Address where the process waits in the kernel, or 1 where that is kept secret.").over(PROCESSES),
    row("proc.psinfo.nswap", (8, 35), U32, Counter, COUNT, Content::Stat(36, Form::Number), "Pages swapped out; always 0.").over(PROCESSES),
    row("proc.psinfo.cnswap", (8, 36), U32, Counter, COUNT, Content::Stat(37, Form::Number), "Pages of ended children swapped out; always 0.").over(PROCESSES),
    row("proc.psinfo.exit_signal", (8, 37), U32, Discrete, NONE, Content::Stat(38, Form::Number), "Signal for the parent when the process ends.").over(PROCESSES),
    row("proc.psinfo.processor", (8, 38), U32, Instant, NONE, Content::Stat(39, Form::Number), "Processor on which the process ran last.").over(PROCESSES),
    row("proc.psinfo.ttyname", (8, 39), String, Discrete, NONE, Content::Terminal, "Controlling terminal, below /dev; a question mark for none.").over(PROCESSES),
    row("proc.psinfo.wchan_s", (8, 40), String, Instant, NONE, Content::Whole(Kind::WaitingIn), "Function of the kernel in which the process waits.").over(PROCESSES),
    row("proc.psinfo.psargs", (8, 41), String, Discrete, NONE, Content::CommandLine, "Command line, words separated by blanks; threads of the kernel have none.").over(PROCESSES),
    row("proc.psinfo.rt_priority", (8, 42), U32, Instant, NONE, Content::Stat(40, Form::Number), "Real-time priority, 0 for none.").over(PROCESSES),
    row("proc.psinfo.policy", (8, 43), U32, Instant, NONE, Content::Stat(41, Form::Number), "Scheduling policy as a number.").over(PROCESSES),
    row("proc.psinfo.delayacct_blkio_time", (8, 44), U64, Counter, MILLISEC, Content::Stat(42, Form::Ticks), "Time spent waiting for block devices.").over(PROCESSES),
    row("proc.psinfo.guest_time", (8, 45), U64, Counter, MILLISEC, Content::Stat(43, Form::Ticks), "Processor time spent on virtual processors.").over(PROCESSES),
    row("proc.psinfo.cguest_time", (8, 46), U64, Counter, MILLISEC, Content::Stat(44, Form::Ticks), "Processor time of ended children spent on virtual processors.").over(PROCESSES),
    row("proc.psinfo.environ", (8, 47), String, Instant, NONE, Content::Environment, "Environment with which the process began, settings separated by blanks.").over(PROCESSES),
    row("proc.psinfo.policy_s", (8, 48), String, Instant, NONE, Content::Policy, "Scheduling policy by name.").over(PROCESSES),
    row("proc.memory.size", (9, 0), U32, Instant, KBYTE, Content::Word(Kind::Memory, 0, Form::Pages), "Size of the address space.").over(PROCESSES),
    row("proc.memory.rss", (9, 1), U32, Instant, KBYTE, Content::Word(Kind::Memory, 1, Form::Pages), "Size of the part that is in memory.").over(PROCESSES),
    row("proc.memory.share", (9, 2), U32, Instant, KBYTE, Content::Word(Kind::Memory, 2, Form::Pages), "Part in memory that others can share.").over(PROCESSES),
    row("proc.memory.textrss", (9, 3), U32, Instant, KBYTE, Content::Word(Kind::Memory, 3, Form::Pages), "Size of the program.").over(PROCESSES),
    row("proc.memory.librss", (9, 4), U32, Instant, KBYTE, Content::Word(Kind::Memory, 4, Form::Pages), "Size of libraries; always 0.").over(PROCESSES),
    row("proc.memory.datrss", (9, 5), U32, Instant, KBYTE, Content::Word(Kind::Memory, 5, Form::Pages), "Size of data and stack.").over(PROCESSES),
    row("proc.memory.dirty", (9, 6), U32, Instant, KBYTE, Content::Word(Kind::Memory, 6, Form::Pages), "Size of changed pages; always 0.").over(PROCESSES),
    row("proc.memory.maps", (9, 7), String, Instant, NONE, Content::Whole(Kind::Maps), "What is mapped into the address space, a line per mapping.").over(PROCESSES),
    row("proc.psinfo.cgroups", (11, 0), String, Instant, NONE, Content::ControlGroups, "Control groups of the process: controllers and path, with semicolons between.").over(PROCESSES),
    row("proc.psinfo.labels", (12, 0), String, Instant, NONE, Content::Whole(Kind::SecurityLabel), "Security label of the process.").over(PROCESSES),
    row("proc.runq.runnable", (13, 0), I32, Instant, COUNT, Content::Count(|state| state == State::Runnable), "Processes that run or wait for a processor."),
    row("proc.runq.blocked", (13, 1), I32, Instant, COUNT, Content::Count(|state| state == State::Blocked), "Processes that wait for a device."),
    row("proc.runq.sleeping", (13, 2), I32, Instant, COUNT, Content::Count(|state| state == State::Sleeping), "Processes that wait for something else than a device."),
    row("proc.runq.stopped", (13, 3), I32, Instant, COUNT, Content::Count(|state| state == State::Stopped), "Processes that are stopped."),
    row("proc.runq.swapped", (13, 4), I32, Instant, COUNT, Content::Count(|state| state == State::Swapped), "Processes that wait without a page in memory."),
    row("proc.runq.defunct", (13, 5), I32, Instant, COUNT, Content::Count(|state| state == State::Defunct), "Processes that have ended and were not waited for."),
    row("proc.runq.unknown", (13, 6), I32, Instant, COUNT, Content::Count(|state| state == State::Unknown), "Processes that are in another state."),
    row("proc.runq.kernel", (13, 7), I32, Instant, COUNT, Content::Count(|state| state == State::Kernel), "Processes that are part of the kernel."),
    row("proc.id.uid", (24, 0), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Uid", 0, Form::Number), "Real user number.").over(PROCESSES),
    row("proc.id.euid", (24, 1), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Uid", 1, Form::Number), "Effective user number.").over(PROCESSES),
    row("proc.id.suid", (24, 2), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Uid", 2, Form::Number), "Saved user number.").over(PROCESSES),
    row("proc.id.fsuid", (24, 3), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Uid", 3, Form::Number), "File system user number.").over(PROCESSES),
    row("proc.id.gid", (24, 4), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Gid", 0, Form::Number), "Real group number.").over(PROCESSES),
    row("proc.id.egid", (24, 5), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Gid", 1, Form::Number), "Effective group number.").over(PROCESSES),
    row("proc.id.sgid", (24, 6), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Gid", 2, Form::Number), "Saved group number.").over(PROCESSES),
    row("proc.id.fsgid", (24, 7), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Gid", 3, Form::Number), "File system group number.").over(PROCESSES),
    row("proc.id.uid_nm", (24, 8), String, Discrete, NONE, Content::User(0), "Real user name, or number without one.").over(PROCESSES),
    row("proc.id.euid_nm", (24, 9), String, Discrete, NONE, Content::User(1), "Effective user name, or number without one.").over(PROCESSES),
    row("proc.id.suid_nm", (24, 10), String, Discrete, NONE, Content::User(2), "Saved user name, or number without one.").over(PROCESSES),
    row("proc.id.fsuid_nm", (24, 11), String, Discrete, NONE, Content::User(3), "File system user name, or number without one.").over(PROCESSES),
    row("proc.id.gid_nm", (24, 12), String, Discrete, NONE, Content::Group(0), "Real group name, or number without one.").over(PROCESSES),
    row("proc.id.egid_nm", (24, 13), String, Discrete, NONE, Content::Group(1), "Effective group name, or number without one.").over(PROCESSES),
    row("proc.id.sgid_nm", (24, 14), String, Discrete, NONE, Content::Group(2), "Saved group name, or number without one.").over(PROCESSES),
    row("proc.id.fsgid_nm", (24, 15), String, Discrete, NONE, Content::Group(3), "File system group name, or number without one.").over(PROCESSES),
    row("proc.psinfo.signal_s", (24, 16), String, Instant, NONE, Content::Keyed(Kind::Status, "SigPnd", 0, Form::Text), "Pending signals, as hexadecimal digits.").over(PROCESSES),
    row("proc.psinfo.blocked_s", (24, 17), String, Instant, NONE, Content::Keyed(Kind::Status, "SigBlk", 0, Form::Text), "Blocked signals, as hexadecimal digits.").over(PROCESSES),
    row("proc.psinfo.sigignore_s", (24, 18), String, Instant, NONE, Content::Keyed(Kind::Status, "SigIgn", 0, Form::Text), "Ignored signals, as hexadecimal digits.").over(PROCESSES),
    row("proc.psinfo.sigcatch_s", (24, 19), String, Instant, NONE, Content::Keyed(Kind::Status, "SigCgt", 0, Form::Text), "Handled signals, as hexadecimal digits.").over(PROCESSES),
    row("proc.memory.vmsize", (24, 20), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmSize", 0, Form::Number), "Size of the address space.").over(PROCESSES),
    row("proc.memory.vmlock", (24, 21), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmLck", 0, Form::Number), "Memory that is locked.").over(PROCESSES),
    row("proc.memory.vmrss", (24, 22), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmRSS", 0, Form::Number), "Size of the part that is in memory.").over(PROCESSES),
    row("proc.memory.vmdata", (24, 23), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmData", 0, Form::Number), "Size of the data.").over(PROCESSES),
    row("proc.memory.vmstack", (24, 24), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmStk", 0, Form::Number), "Size of the stack.").over(PROCESSES),
    row("proc.memory.vmexe", (24, 25), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmExe", 0, Form::Number), "Size of the program.").over(PROCESSES),
    row("proc.memory.vmlib", (24, 26), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmLib", 0, Form::Number), "Size of the libraries.").over(PROCESSES),
    row("proc.memory.vmswap", (24, 27), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmSwap", 0, Form::Number), "Size of the part that is swapped out.").over(PROCESSES),
    row("proc.psinfo.threads", (24, 28), U32, Instant, NONE, Content::Keyed(Kind::Status, "Threads", 0, Form::Number), "Number of threads.").over(PROCESSES),
    row("proc.psinfo.vctxsw", (24, 29), U32, Instant, NONE, Content::Keyed(Kind::Status, "voluntary_ctxt_switches", 0, Form::Number), "How often the process gave its processor away.").over(PROCESSES),
    row("proc.psinfo.nvctxsw", (24, 30), U32, Instant, NONE, Content::Keyed(Kind::Status, "nonvoluntary_ctxt_switches", 0, Form::Number), "How often its processor was taken away from the process.").over(PROCESSES),
    row("proc.psinfo.cpusallowed", (24, 31), String, Instant, NONE, Content::Keyed(Kind::Status, "Cpus_allowed_list", 0, Form::Text), "Processors that the process may use.").over(PROCESSES),
    row("proc.psinfo.ngid", (24, 32), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Ngid", 0, Form::Number), "Number of the group of tasks that share memory nodes, 0 for none.").over(PROCESSES),
    row("proc.memory.vmpeak", (24, 33), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmPeak", 0, Form::Number), "Largest size that the address space had.").over(PROCESSES),
    row("proc.memory.vmpin", (24, 34), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmPin", 0, Form::Number), "Memory that cannot be moved.").over(PROCESSES),
    row("proc.memory.vmhwm", (24, 35), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmHWM", 0, Form::Number), "Largest size in memory so far.").over(PROCESSES),
    row("proc.memory.vmpte", (24, 36), U32, Instant, KBYTE, Content::Keyed(Kind::Status, "VmPTE", 0, Form::Number), "Size of the page tables.").over(PROCESSES),
    row("proc.namespaces.tgid", (24, 37), String, Discrete, NONE, Content::Keyed(Kind::Status, "NStgid", 0, Form::Text), "Number of the process in the outermost name space that is seen.").over(PROCESSES),
    row("proc.namespaces.pid", (24, 38), String, Discrete, NONE, Content::Keyed(Kind::Status, "NSpid", 0, Form::Text), "Number of the thread in the outermost name space that is seen.").over(PROCESSES),
    row("proc.namespaces.pgid", (24, 39), String, Discrete, NONE, Content::Keyed(Kind::Status, "NSpgid", 0, Form::Text), "Number of the process group in the outermost name space that is seen.").over(PROCESSES),
    row("proc.namespaces.sid", (24, 40), String, Discrete, NONE, Content::Keyed(Kind::Status, "NSsid", 0, Form::Text), "Number of the session in the outermost name space that is seen.").over(PROCESSES),
    row("proc.psinfo.tgid", (24, 41), U32, Discrete, NONE, Content::Keyed(Kind::Status, "Tgid", 0, Form::Number), "Number of the group of threads.").over(PROCESSES),
    row("proc.memory.vmreal", (24, 43), U64, Instant, KBYTE, Content::Sum("VmRSS", "VmSwap"), "Size of what is in memory or swapped out.").over(PROCESSES),
    row("proc.memory.vmnonlib", (24, 44), U64, Instant, KBYTE, Content::Difference("VmRSS", "VmLib"), "Size in memory without the libraries.").over(PROCESSES),
    row("proc.schedstat.cpu_time", (31, 0), U64, Counter, NANOSEC, Content::Word(Kind::Scheduler, 0, Form::Number), "Time on a processor.").over(PROCESSES),
    row("proc.schedstat.run_delay", (31, 1), U64, Counter, NANOSEC, Content::Word(Kind::Scheduler, 1, Form::Number), "Time spent waiting for a processor.").over(PROCESSES),
    row("proc.schedstat.pcount", (31, 2), U64, Counter, COUNT, Content::Word(Kind::Scheduler, 2, Form::Number), "How often the process got a processor.").over(PROCESSES),
    row("proc.io.rchar", (32, 0), U64, Counter, BYTE, Content::Keyed(Kind::Transfers, "rchar", 0, Form::Number), "Bytes read, wherever they came from.").over(PROCESSES),
    row("proc.io.wchar", (32, 1), U64, Counter, BYTE, Content::Keyed(Kind::Transfers, "wchar", 0, Form::Number), "Bytes written, wherever they went to.").over(PROCESSES),
    row("proc.io.syscr", (32, 2), U64, Counter, COUNT, Content::Keyed(Kind::Transfers, "syscr", 0, Form::Number), "System calls that read.").over(PROCESSES),
    row("proc.io.syscw", (32, 3), U64, Counter, COUNT, Content::Keyed(Kind::Transfers, "syscw", 0, Form::Number), "System calls that write.").over(PROCESSES),
    row("proc.io.read_bytes", (32, 4), U64, Counter, BYTE, Content::Keyed(Kind::Transfers, "read_bytes", 0, Form::Number), "Bytes read from devices.").over(PROCESSES),
    row("proc.io.write_bytes", (32, 5), U64, Counter, BYTE, Content::Keyed(Kind::Transfers, "write_bytes", 0, Form::Number), "Bytes written to devices.").over(PROCESSES),
    row("proc.io.cancelled_write_bytes", (32, 6), U64, Counter, BYTE, Content::Keyed(Kind::Transfers, "cancelled_write_bytes", 0, Form::Number), "Bytes whose writing was cancelled, as their files went.").over(PROCESSES),
    row("proc.smaps.rss", (33, 0), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Rss", 0, Form::Number), "Size of the pages in memory.").over(PROCESSES),
    row("proc.smaps.pss", (33, 1), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Pss", 0, Form::Number), "Size of the pages in memory, shared ones divided by the number of their users.").over(PROCESSES),
    row("proc.smaps.pss_anon", (33, 2), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Pss_Anon", 0, Form::Number), "Size of the pages of no file, divided by the number of their users.").over(PROCESSES),
    row("proc.smaps.pss_file", (33, 3), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Pss_File", 0, Form::Number), "Size of the pages of files, divided by the number of their users.").over(PROCESSES),
    row("proc.smaps.pss_shmem", (33, 4), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Pss_Shmem", 0, Form::Number), "Size of the pages of shared memory, divided by the number of their users.").over(PROCESSES),
    row("proc.smaps.shared_clean", (33, 5), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Shared_Clean", 0, Form::Number), "Size of the pages shared and not changed.").over(PROCESSES),
    row("proc.smaps.shared_dirty", (33, 6), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Shared_Dirty", 0, Form::Number), "Size of the pages shared and changed.").over(PROCESSES),
    row("proc.smaps.private_clean", (33, 7), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Private_Clean", 0, Form::Number), "Size of the pages of this process alone, not changed.").over(PROCESSES),
    row("proc.smaps.private_dirty", (33, 8), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Private_Dirty", 0, Form::Number), "Size of the pages of this process alone, changed.").over(PROCESSES),
    row("proc.smaps.referenced", (33, 9), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Referenced", 0, Form::Number), "Size of the pages used lately.").over(PROCESSES),
    row("proc.smaps.anonymous", (33, 10), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Anonymous", 0, Form::Number), "Size of the pages of no file.").over(PROCESSES),
    row("proc.smaps.lazyfree", (33, 11), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "LazyFree", 0, Form::Number), "Size of the pages that may be freed when memory gets short.").over(PROCESSES),
    row("proc.smaps.anonhugepages", (33, 12), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "AnonHugePages", 0, Form::Number), "Size of the pages that are huge and of no file.").over(PROCESSES),
    row("proc.smaps.shmempmdmapped", (33, 13), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "ShmemPmdMapped", 0, Form::Number), "Size of the pages of shared memory, mapped as huge ones.").over(PROCESSES),
    row("proc.smaps.filepmdmapped", (33, 14), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "FilePmdMapped", 0, Form::Number), "Size of the pages of files, mapped as huge ones.").over(PROCESSES),
    row("proc.smaps.shared_hugetlb", (33, 15), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Shared_Hugetlb", 0, Form::Number), "Size of the pages that are huge and shared.").over(PROCESSES),
    row("proc.smaps.private_hugetlb", (33, 16), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Private_Hugetlb", 0, Form::Number), "Size of the pages that are huge and of this process alone.").over(PROCESSES),
    row("proc.smaps.swap", (33, 17), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Swap", 0, Form::Number), "Size of the pages swapped out.").over(PROCESSES),
    row("proc.smaps.swappss", (33, 18), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "SwapPss", 0, Form::Number), "Size of the pages swapped out, divided by the number of their users.").over(PROCESSES),
    row("proc.smaps.locked", (33, 19), U64, Instant, KBYTE, Content::Keyed(Kind::Mappings, "Locked", 0, Form::Number), "Size of the pages that are locked.").over(PROCESSES),
    row("proc.fd.count", (51, 0), U32, Instant, COUNT, Content::Word(Kind::Descriptors, 0, Form::Number), "Number of open file descriptors.").over(PROCESSES),
    row("proc.psinfo.oom_score", (62, 0), U32, Instant, NONE, Content::Word(Kind::OutOfMemoryScore, 0, Form::Number), "How likely the process is ended when there is no memory left, up to 1000.").over(PROCESSES),
    row("proc.psinfo.exe", (69, 0), String, Discrete, NONE, Content::Whole(Kind::Executable), "File of the program.").over(PROCESSES),
    row("proc.psinfo.cwd", (72, 0), String, Discrete, NONE, Content::Whole(Kind::WorkingDirectory), "Working directory.").over(PROCESSES),
    row("proc.autogroup.enabled", (74, 0), U32, Instant, NONE, Content::Setting("proc/sys/kernel/sched_autogroup_enabled"), "1 when sessions share processors evenly, else 0."),
    row("proc.autogroup.id", (74, 1), U32, Discrete, NONE, Content::AutoGroup, "Number of the group among which processors are shared evenly.").over(PROCESSES),
    row("proc.autogroup.nice", (74, 2), I32, Instant, NONE, Content::AutoGroupNice, "Nice value of the group among which processors are shared evenly.").over(PROCESSES),
];
