//! The kernel as a whole: load, uptime, name and version, page size, and the
//! time that tasks waited for a resource.

use std::sync::{Arc, LazyLock};

use pmderive_core::model::{InstId, InstanceDomain, Semantics::*, ValueType::*, text_of_bytes};
use procfs::prelude::FromRead;
use procfs::{LoadAverage, Uptime};

use super::area::Area;
use super::table::{
    Row, SINGLE,
    indom::{LOAD, PRESSURE},
    put_number, row,
    units::*,
};
use crate::agent::{AgentValue, Values};
use crate::files::{Files, ReadMark};
use crate::text;

/// The value that a table row selects.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// The three load averages.
    Load,
    /// A number from /proc/loadavg.
    Tasks(fn(&LoadAverage) -> u32),
    /// A number of seconds from /proc/uptime.
    Uptime(fn(&Uptime) -> f64),
    /// A string from uname(2).
    Uname(fn(&rustix::system::Uname) -> &std::ffi::CStr),
    /// Bytes in a page of memory.
    PageSize,
    /// The share of time that tasks stalled, averaged over three spans.
    StallShare(Stall),
    /// The total time that tasks stalled.
    StallTime(Stall),
}

/// A line of a file below /proc/pressure.
#[derive(Clone, Copy)]
pub(super) struct Stall {
    file: &'static str,
    /// `some` or `full`.
    line: &'static str,
}

const fn stall(file: &'static str, line: &'static str) -> Stall {
    Stall { file, line }
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = &[
    row("kernel.all.load", (2, 0), F32, Instant, NONE, Content::Load, "Tasks running, ready or in uninterruptible sleep, averaged over 1, 5 and 15 minutes.").over(LOAD),
    row("kernel.all.runnable", (2, 2), U32, Instant, NONE, Content::Tasks(|load| load.cur), "Tasks that are running or ready to run."),
    row("kernel.all.nprocs", (2, 3), U32, Instant, NONE, Content::Tasks(|load| load.max), "Processes and threads that exist."),
    row("kernel.all.lastpid", (2, 1), U32, Instant, NONE, Content::Tasks(|load| load.latest_pid), "Process identifier that was given out last."),
    row("kernel.all.uptime", (26, 0), F64, Instant, SEC, Content::Uptime(|uptime| uptime.uptime), "Time since the system was booted."),
    row("kernel.all.idletime", (26, 1), F64, Instant, SEC, Content::Uptime(|uptime| uptime.idle), "Time that the processors were idle since then, summed over them."),
    row("kernel.uname.sysname", (12, 2), String, Discrete, NONE, Content::Uname(|uname| uname.sysname()), "Name of the operating system."),
    row("kernel.uname.nodename", (12, 4), String, Discrete, NONE, Content::Uname(|uname| uname.nodename()), "Name of the host."),
    row("kernel.uname.release", (12, 0), String, Discrete, NONE, Content::Uname(|uname| uname.release()), "Release of the kernel."),
    row("kernel.uname.version", (12, 1), String, Discrete, NONE, Content::Uname(|uname| uname.version()), "Version and build of the kernel."),
    row("kernel.uname.machine", (12, 3), String, Discrete, NONE, Content::Uname(|uname| uname.machine()), "Architecture of the hardware."),
    row("hinv.machine", (18, 7), String, Discrete, NONE, Content::Uname(|uname| uname.machine()), "Architecture of the hardware."),
    row("hinv.pagesize", (1, 11), U32, Discrete, BYTE, Content::PageSize, "Size of a page of memory."),
    row("kernel.all.pressure.cpu.some.avg", (83, 0), F32, Instant, NONE, Content::StallShare(stall("proc/pressure/cpu", "some")), "Percentage of time that some task waited for a processor.").over(PRESSURE),
    row("kernel.all.pressure.cpu.some.total", (83, 1), U64, Counter, MICROSEC, Content::StallTime(stall("proc/pressure/cpu", "some")), "Time that some task waited for a processor."),
    row("kernel.all.pressure.memory.some.avg", (84, 0), F32, Instant, NONE, Content::StallShare(stall("proc/pressure/memory", "some")), "Percentage of time that some task waited for memory.").over(PRESSURE),
    row("kernel.all.pressure.memory.some.total", (84, 1), U64, Counter, MICROSEC, Content::StallTime(stall("proc/pressure/memory", "some")), "Time that some task waited for memory."),
    row("kernel.all.pressure.memory.full.avg", (84, 2), F32, Instant, NONE, Content::StallShare(stall("proc/pressure/memory", "full")), "Percentage of time that all tasks that were not idle waited for memory.").over(PRESSURE),
    row("kernel.all.pressure.memory.full.total", (84, 3), U64, Counter, MICROSEC, Content::StallTime(stall("proc/pressure/memory", "full")), "Time that all tasks that were not idle waited for memory."),
    row("kernel.all.pressure.io.some.avg", (85, 0), F32, Instant, NONE, Content::StallShare(stall("proc/pressure/io", "some")), "Percentage of time that some task waited for input or output.").over(PRESSURE),
    row("kernel.all.pressure.io.some.total", (85, 1), U64, Counter, MICROSEC, Content::StallTime(stall("proc/pressure/io", "some")), "Time that some task waited for input or output."),
    row("kernel.all.pressure.io.full.avg", (85, 2), F32, Instant, NONE, Content::StallShare(stall("proc/pressure/io", "full")), "Percentage of time that all tasks that were not idle waited for input or output.").over(PRESSURE),
    row("kernel.all.pressure.io.full.total", (85, 3), U64, Counter, MICROSEC, Content::StallTime(stall("proc/pressure/io", "full")), "Time that all tasks that were not idle waited for input or output."),
    row("kernel.all.pressure.irq.full.avg", (93, 0), F32, Instant, NONE, Content::StallShare(stall("proc/pressure/irq", "full")), "Percentage of time that all tasks that were not idle waited for the end of interrupts.").over(PRESSURE),
    row("kernel.all.pressure.irq.full.total", (93, 1), U64, Counter, MICROSEC, Content::StallTime(stall("proc/pressure/irq", "full")), "Time that all tasks that were not idle waited for the end of interrupts."),
];

/// The instances of the load averages.
static LOADS: LazyLock<Arc<InstanceDomain>> = LazyLock::new(|| {
    let named = [(1, "1 minute"), (5, "5 minute"), (15, "15 minute")];
    Arc::new(InstanceDomain::new(named.map(|(number, name)| (number, name.into())).into()))
});

/// The instances of the stall averages, numbered by the seconds that they span.
static SPANS: LazyLock<Arc<InstanceDomain>> = LazyLock::new(|| {
    let named = [(10, "10 second"), (60, "1 minute"), (300, "5 minute")];
    Arc::new(InstanceDomain::new(named.map(|(number, name)| (number, name.into())).into()))
});

/// Reader of /proc/loadavg, /proc/uptime and /proc/pressure.
#[derive(Default)]
pub(super) struct Kernel {
    load_read: ReadMark,
    load: Option<LoadAverage>,
    uptime_read: ReadMark,
    uptime: Option<Uptime>,
    pressure: Vec<Pressure>,
}

/// The numbers read from one line of one file.
struct Pressure {
    of: Stall,
    read: ReadMark,
    shares: [(InstId, Option<f32>); 3],
    microseconds: Option<u64>,
}

impl Kernel {
    fn load(&mut self, files: &mut Files) -> Option<&LoadAverage> {
        if self.load_read.is_due(files) {
            let contents = files.read("proc/loadavg");
            self.load = contents.and_then(|contents| LoadAverage::from_read(contents).ok());
        }
        self.load.as_ref()
    }

    fn uptime(&mut self, files: &mut Files) -> Option<&Uptime> {
        if self.uptime_read.is_due(files) {
            let contents = files.read("proc/uptime");
            self.uptime = contents.and_then(|contents| Uptime::from_read(contents).ok());
        }
        self.uptime.as_ref()
    }

    fn pressure(&mut self, of: Stall, files: &mut Files) -> &Pressure {
        let known = |known: &Pressure| known.of.file == of.file && known.of.line == of.line;
        let position = self.pressure.iter().position(known).unwrap_or_else(|| {
            self.pressure.push(Pressure::new(of));
            self.pressure.len() - 1
        });
        let pressure = &mut self.pressure[position];
        if pressure.read.is_due(files) {
            pressure.parse(files.read(of.file).unwrap_or_default());
        }
        pressure
    }
}

impl Pressure {
    fn new(of: Stall) -> Pressure {
        let shares = [10, 60, 300].map(|seconds| (seconds, None));
        Pressure { of, read: ReadMark::default(), shares, microseconds: None }
    }

    fn parse(&mut self, contents: &[u8]) {
        *self = Pressure { read: std::mem::take(&mut self.read), ..Pressure::new(self.of) };
        for line in text::lines(contents) {
            let mut words = text::words(line);
            if words.next() != Some(self.of.line.as_bytes()) {
                continue;
            }
            for (key, value) in words.filter_map(|word| text::split_once(word, b'=')) {
                match key {
                    b"avg10" => self.shares[0].1 = text::number(value),
                    b"avg60" => self.shares[1].1 = text::number(value),
                    b"avg300" => self.shares[2].1 = text::number(value),
                    b"total" => self.microseconds = text::number(value),
                    _ => {}
                }
            }
        }
    }
}

impl Area for Kernel {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];
    const DOMAINS: &'static [u32] = &[LOAD, PRESSURE];

    fn put(&mut self, content: Content, files: &mut Files, values: &mut Values<'_, '_>) {
        match content {
            Content::Load => {
                let Some(load) = self.load(files) else { return };
                for (minutes, share) in [(1, load.one), (5, load.five), (15, load.fifteen)] {
                    values.put(minutes, AgentValue::F32(share));
                }
            }
            Content::Tasks(of) => {
                put_number(values, SINGLE, self.load(files).map(|load| u64::from(of(load))));
            }
            Content::Uptime(of) => {
                if let Some(uptime) = self.uptime(files) {
                    values.put(SINGLE, AgentValue::F64(of(uptime)));
                }
            }
            Content::Uname(of) => {
                let uname = rustix::system::uname();
                values.put(SINGLE, AgentValue::Text(&text_of_bytes(of(&uname).to_bytes())));
            }
            Content::PageSize => {
                put_number(values, SINGLE, u64::try_from(rustix::param::page_size()).ok());
            }
            Content::StallShare(of) => {
                for (span, share) in self.pressure(of, files).shares {
                    if let Some(share) = share {
                        values.put(span, AgentValue::F32(share));
                    }
                }
            }
            Content::StallTime(of) => {
                put_number(values, SINGLE, self.pressure(of, files).microseconds);
            }
        }
    }

    fn domain(&self, serial: u32) -> Arc<InstanceDomain> {
        Arc::clone(if serial == LOAD { &LOADS } else { &SPANS })
    }
}
