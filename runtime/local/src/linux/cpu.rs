//! Processor time and the kernel's event counts, from /proc/stat.
//!
//! The file counts times in clock ticks; the metrics deliver milliseconds. The
//! instances are the processors that the file lists: those online.

use std::sync::Arc;

use pmderive_core::model::{InstId, InstanceDomain, Semantics::*, ValueType::*};

use super::area::Area;
use super::table::{Row, SINGLE, indom::CPU, put_number, row, sum, units::*};
use crate::agent::Values;
use crate::files::Files;
use crate::text;

/// The columns of a processor's line (`proc_stat(5)`). A column is `None` where
/// the kernel does not write it.
type Ticks = [Option<u64>; 10];

const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const IDLE: usize = 3;
const IO_WAIT: usize = 4;
const IRQ: usize = 5;
const SOFT_IRQ: usize = 6;
const STEAL: usize = 7;
const GUEST: usize = 8;
const GUEST_NICE: usize = 9;

/// The value that a table row selects.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// Time of all processors together.
    All(fn(&Ticks) -> Option<u64>),
    /// Time of each processor.
    Each(fn(&Ticks) -> Option<u64>),
    /// The first number of the line that begins with this word.
    Line(Line),
    /// Clock ticks per second.
    TicksPerSecond,
    /// Number of processors.
    Count,
    /// The number in a processor's name.
    Number,
    /// 1 if a processor is online.
    Online,
}

/// Lines of /proc/stat with one number of interest.
#[derive(Clone, Copy)]
pub(super) enum Line {
    Interrupts,
    Switches,
    BootTime,
    Forks,
    Running,
    Blocked,
}

/// The word that each [`Line`] begins with.
const LINES: [&[u8]; 6] =
    [b"intr", b"ctxt", b"btime", b"processes", b"procs_running", b"procs_blocked"];

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = &[
    row("kernel.all.cpu.user", (0, 20), U64, Counter, MILLISEC, Content::All(|t| t[USER]), "Time of all processors in user mode, guests included."),
    row("kernel.all.cpu.nice", (0, 21), U64, Counter, MILLISEC, Content::All(|t| t[NICE]), "Time of all processors in user mode at lowered priority, guests included."),
    row("kernel.all.cpu.sys", (0, 22), U64, Counter, MILLISEC, Content::All(|t| t[SYSTEM]), "Time of all processors in the kernel."),
    row("kernel.all.cpu.idle", (0, 23), U64, Counter, MILLISEC, Content::All(|t| t[IDLE]), "Time of all processors idle with no input or output outstanding."),
    row("kernel.all.cpu.wait.total", (0, 35), U64, Counter, MILLISEC, Content::All(|t| t[IO_WAIT]), "Time of all processors idle while input or output was outstanding."),
    row("kernel.all.cpu.intr", (0, 34), U64, Counter, MILLISEC, Content::All(|t| sum([t[IRQ], t[SOFT_IRQ]])), "Time of all processors serving hard and soft interrupts."),
    row("kernel.all.cpu.irq.hard", (0, 54), U64, Counter, MILLISEC, Content::All(|t| t[IRQ]), "Time of all processors serving hard interrupts."),
    row("kernel.all.cpu.irq.soft", (0, 53), U64, Counter, MILLISEC, Content::All(|t| t[SOFT_IRQ]), "Time of all processors serving soft interrupts."),
    row("kernel.all.cpu.steal", (0, 55), U64, Counter, MILLISEC, Content::All(|t| t[STEAL]), "Time of all processors taken by the hypervisor for other guests."),
    row("kernel.all.cpu.guest", (0, 60), U64, Counter, MILLISEC, Content::All(|t| t[GUEST]), "Time of all processors running guests."),
    row("kernel.all.cpu.guest_nice", (0, 81), U64, Counter, MILLISEC, Content::All(|t| t[GUEST_NICE]), "Time of all processors running guests at lowered priority."),
    row("kernel.all.cpu.vuser", (0, 78), U64, Counter, MILLISEC, Content::All(|t| without_guest(t[USER], t[GUEST])), "Time of all processors in user mode, guests not included."),
    row("kernel.all.cpu.vnice", (0, 82), U64, Counter, MILLISEC, Content::All(|t| without_guest(t[NICE], t[GUEST_NICE])), "Time of all processors in user mode at lowered priority, guests not included."),
    row("kernel.percpu.cpu.user", (0, 0), U64, Counter, MILLISEC, Content::Each(|t| t[USER]), "Time of each processor in user mode, guests included.").over(CPU),
    row("kernel.percpu.cpu.nice", (0, 1), U64, Counter, MILLISEC, Content::Each(|t| t[NICE]), "Time of each processor in user mode at lowered priority, guests included.").over(CPU),
    row("kernel.percpu.cpu.sys", (0, 2), U64, Counter, MILLISEC, Content::Each(|t| t[SYSTEM]), "Time of each processor in the kernel.").over(CPU),
    row("kernel.percpu.cpu.idle", (0, 3), U64, Counter, MILLISEC, Content::Each(|t| t[IDLE]), "Time of each processor idle with no input or output outstanding.").over(CPU),
    row("kernel.percpu.cpu.wait.total", (0, 30), U64, Counter, MILLISEC, Content::Each(|t| t[IO_WAIT]), "Time of each processor idle while input or output was outstanding.").over(CPU),
    row("kernel.percpu.cpu.intr", (0, 31), U64, Counter, MILLISEC, Content::Each(|t| sum([t[IRQ], t[SOFT_IRQ]])), "Time of each processor serving hard and soft interrupts.").over(CPU),
    row("kernel.percpu.cpu.irq.hard", (0, 57), U64, Counter, MILLISEC, Content::Each(|t| t[IRQ]), "Time of each processor serving hard interrupts.").over(CPU),
    row("kernel.percpu.cpu.irq.soft", (0, 56), U64, Counter, MILLISEC, Content::Each(|t| t[SOFT_IRQ]), "Time of each processor serving soft interrupts.").over(CPU),
    row("kernel.percpu.cpu.steal", (0, 58), U64, Counter, MILLISEC, Content::Each(|t| t[STEAL]), "Time of each processor taken by the hypervisor for other guests.").over(CPU),
    row("kernel.percpu.cpu.guest", (0, 61), U64, Counter, MILLISEC, Content::Each(|t| t[GUEST]), "Time of each processor running guests.").over(CPU),
    row("kernel.percpu.cpu.guest_nice", (0, 83), U64, Counter, MILLISEC, Content::Each(|t| t[GUEST_NICE]), "Time of each processor running guests at lowered priority.").over(CPU),
    row("kernel.percpu.cpu.vuser", (0, 76), U64, Counter, MILLISEC, Content::Each(|t| without_guest(t[USER], t[GUEST])), "Time of each processor in user mode, guests not included.").over(CPU),
    row("kernel.percpu.cpu.vnice", (0, 84), U64, Counter, MILLISEC, Content::Each(|t| without_guest(t[NICE], t[GUEST_NICE])), "Time of each processor in user mode at lowered priority, guests not included.").over(CPU),
    row("kernel.all.intr", (0, 12), U64, Counter, COUNT, Content::Line(Line::Interrupts), "Interrupts served."),
    row("kernel.all.pswitch", (0, 13), U64, Counter, COUNT, Content::Line(Line::Switches), "Switches of context."),
    row("kernel.all.sysfork", (0, 14), U64, Counter, COUNT, Content::Line(Line::Forks), "Processes and threads created."),
    row("kernel.all.running", (0, 15), U64, Instant, NONE, Content::Line(Line::Running), "Tasks that are running or ready to run."),
    row("kernel.all.blocked", (0, 16), U64, Instant, NONE, Content::Line(Line::Blocked), "Tasks that wait for input or output."),
    row("kernel.all.boottime", (0, 17), I64, Discrete, SEC, Content::Line(Line::BootTime), "When the system was booted, since the epoch."),
    row("kernel.all.hz", (0, 48), U32, Discrete, COUNT_PER_SEC, Content::TicksPerSecond, "Clock ticks in which the kernel reports processor time."),
    row("hinv.ncpu", (0, 32), U32, Discrete, NONE, Content::Count, "Number of processors that are online."),
    row("hinv.map.cpu_num", (18, 6), U32, Discrete, NONE, Content::Number, "Number of each processor.").over(CPU),
    row("hinv.cpu.online", (55, 0), U32, Instant, NONE, Content::Online, "1 for each processor that is online.").over(CPU),
];

/// Time in user mode without the time spent for guests. The kernel counts guest
/// time in both columns.
fn without_guest(own: Option<u64>, guest: Option<u64>) -> Option<u64> {
    Some(own?.saturating_sub(guest.unwrap_or(0)))
}

/// Reader of /proc/stat.
pub(super) struct Cpu {
    ticks_per_second: u64,
    all: Ticks,
    each: Vec<(InstId, Ticks)>,
    lines: [Option<u64>; LINES.len()],
    /// A processor's name gives its instance number, so this needs no
    /// [`crate::Instances`].
    domain: Arc<InstanceDomain>,
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu {
            ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
            all: Ticks::default(),
            each: Vec::new(),
            lines: Default::default(),
            domain: Arc::default(),
        }
    }
}

impl Cpu {
    fn milliseconds(&self, ticks: Option<u64>) -> Option<u64> {
        Some(ticks?.checked_mul(1000)? / self.ticks_per_second)
    }
}

/// The number of a processor, which is also its instance number.
fn processor_number(digits: &[u8]) -> Option<InstId> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    text::number(digits)
}

impl Area for Cpu {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];
    const DOMAINS: &'static [u32] = &[CPU];

    fn read(&mut self, files: &mut Files) {
        self.all = Ticks::default();
        self.each.clear();
        self.lines = Default::default();
        for line in text::lines(files.read("proc/stat").unwrap_or_default()) {
            let mut words = text::words(line);
            let Some(first) = words.next() else { continue };
            if first == b"cpu" {
                self.all = text::numbers(words);
            } else if let Some(number) = first.strip_prefix(b"cpu").and_then(processor_number) {
                self.each.push((number, text::numbers(words)));
            } else if let Some(line) = LINES.iter().position(|word| *word == first) {
                self.lines[line] = words.next().and_then(text::number);
            }
        }
        self.each.sort_by_key(|(number, _)| *number);
        self.each.dedup_by_key(|(number, _)| *number);
        let known = self.domain.instances().map(|(number, _)| number);
        if !known.eq(self.each.iter().map(|(number, _)| *number)) {
            let named = self.each.iter().map(|(number, _)| {
                let name = format!("cpu{number}").into();
                (*number, name)
            });
            self.domain = Arc::new(InstanceDomain::new(named.collect()));
        }
    }

    fn put(&mut self, content: Content, files: &mut Files, values: &mut Values<'_, '_>) {
        match content {
            Content::All(of) => {
                put_number(values, SINGLE, self.milliseconds(of(&self.all)));
            }
            Content::Each(of) => {
                for (number, ticks) in &self.each {
                    put_number(values, *number, self.milliseconds(of(ticks)));
                }
            }
            Content::Line(line) => {
                put_number(values, SINGLE, self.lines[line as usize]);
            }
            Content::TicksPerSecond => put_number(values, SINGLE, Some(self.ticks_per_second)),
            Content::Count => {
                // An empty list means that the file could not be read.
                let count = u64::try_from(self.each.len()).ok().filter(|count| *count > 0);
                put_number(values, SINGLE, count);
            }
            Content::Number => {
                for (number, _) in &self.each {
                    put_number(values, *number, u64::try_from(*number).ok());
                }
            }
            Content::Online => {
                for (number, _) in &self.each {
                    let name = format!("sys/devices/system/cpu/cpu{number}/online");
                    // A processor that cannot be switched off has no such file.
                    let online = match files.read(&name) {
                        Some(contents) => text::words(contents).next().and_then(text::number),
                        None => Some(1),
                    };
                    put_number(values, *number, online);
                }
            }
        }
    }

    fn domain(&self, _: u32) -> Arc<InstanceDomain> {
        Arc::clone(&self.domain)
    }
}
