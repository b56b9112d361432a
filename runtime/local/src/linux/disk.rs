//! Traffic of disks and partitions, from /proc/diskstats
//! (Documentation/admin-guide/iostats.rst of the kernel).
//!
//! The kernel lists all block devices alike. Names decide which of them are
//! disks and which are partitions, as in pmdalinux.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, Semantics::*, ValueType::*, text_of_bytes};

use super::area::Area;
use super::table::{
    Devices, Row, SINGLE,
    indom::{DISK, PARTITION},
    put_number, row, sum,
    units::*,
};
use crate::agent::{AgentValue, Values};
use crate::files::Files;
use crate::text;

/// The numbers of a device's line. A number is `None` where the kernel does not
/// write it: kernels before 4.18 do not count discards, kernels before 5.5 no
/// flushes.
type Counts = [Option<u64>; 17];

const READS: usize = 0;
const READS_MERGED: usize = 1;
const SECTORS_READ: usize = 2;
const READ_MS: usize = 3;
const WRITES: usize = 4;
const WRITES_MERGED: usize = 5;
const SECTORS_WRITTEN: usize = 6;
const WRITE_MS: usize = 7;
const IN_FLIGHT: usize = 8;
const ACTIVE_MS: usize = 9;
const QUEUE_MS: usize = 10;
const DISCARDS: usize = 11;
const DISCARDS_MERGED: usize = 12;
const SECTORS_DISCARDED: usize = 13;
const DISCARD_MS: usize = 14;
const FLUSHES: usize = 15;
const FLUSH_MS: usize = 16;

/// The value that a table row selects.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// A count of each disk.
    Disk(fn(&Counts) -> Option<u64>),
    /// A count of each partition.
    Partition(fn(&Counts) -> Option<u64>),
    /// The sum of a count over the disks that have it.
    All(fn(&Counts) -> Option<u64>),
    /// Number of disks.
    Number,
    /// Size of a disk in kilobytes.
    Capacity,
    /// Name of the scheduler that a disk uses.
    Scheduler,
}

/// Kilobytes of a number of sectors of 512 bytes.
fn kilobytes(sectors: Option<u64>) -> Option<u64> {
    Some(sectors? / 2)
}

/// The table of metrics. Each count of a line becomes three metrics: one for
/// each disk, one for each partition, one for all disks together. A line gives
/// their item numbers and two types: the first for disks and partitions, the
/// second for all disks together.
#[rustfmt::skip]
macro_rules! table {
    (
        $($name:literal $disk:literal $partition:literal $all:literal,
          $each:ident $sum:ident, $semantics:ident, $units:ident, $of:expr, $help:literal;)*
        [$($row:expr,)*]
    ) => {
        &[
            $(row(concat!("disk.dev.", $name), (0, $disk), $each, $semantics, $units, Content::Disk($of), concat!($help, ", for each disk.")).over(DISK),)*
            $(row(concat!("disk.partitions.", $name), (10, $partition), $each, $semantics, $units, Content::Partition($of), concat!($help, ", for each partition.")).over(PARTITION),)*
            $(row(concat!("disk.all.", $name), (0, $all), $sum, $semantics, $units, Content::All($of), concat!($help, ", over all disks.")),)*
            $($row,)*
        ]
    };
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = table! {
    "read" 4 0 24, U64 U64, Counter, COUNT, |c| c[READS], "Reads completed";
    "write" 5 1 25, U64 U64, Counter, COUNT, |c| c[WRITES], "Writes completed";
    "total" 28 2 29, U64 U64, Counter, COUNT, |c| sum([c[READS], c[WRITES]]), "Reads and writes completed";
    "blkread" 6 3 26, U64 U64, Counter, COUNT, |c| c[SECTORS_READ], "Blocks of 512 bytes read";
    "blkwrite" 7 4 27, U64 U64, Counter, COUNT, |c| c[SECTORS_WRITTEN], "Blocks of 512 bytes written";
    "blktotal" 36 5 37, U64 U64, Counter, COUNT, |c| sum([c[SECTORS_READ], c[SECTORS_WRITTEN]]), "Blocks of 512 bytes read and written";
    "read_bytes" 38 6 41, U64 U64, Counter, KBYTE, |c| kilobytes(c[SECTORS_READ]), "Kilobytes read";
    "write_bytes" 39 7 42, U64 U64, Counter, KBYTE, |c| kilobytes(c[SECTORS_WRITTEN]), "Kilobytes written";
    "total_bytes" 40 8 43, U64 U64, Counter, KBYTE, |c| kilobytes(sum([c[SECTORS_READ], c[SECTORS_WRITTEN]])), "Kilobytes read and written";
    "read_merge" 49 9 51, U64 U64, Counter, COUNT, |c| c[READS_MERGED], "Reads merged with others in the queue";
    "write_merge" 50 10 52, U64 U64, Counter, COUNT, |c| c[WRITES_MERGED], "Writes merged with others in the queue";
    "avactive" 46 11 44, U32 U64, Counter, MILLISEC, |c| c[ACTIVE_MS], "Time during which requests were outstanding";
    "aveq" 47 12 45, U32 U64, Counter, MILLISEC, |c| c[QUEUE_MS], "Time that requests were outstanding, summed over them";
    "read_rawactive" 72 13 74, U32 U64, Counter, MILLISEC, |c| c[READ_MS], "Time that reads were outstanding, summed over them";
    "write_rawactive" 73 14 75, U32 U64, Counter, MILLISEC, |c| c[WRITE_MS], "Time that writes were outstanding, summed over them";
    "total_rawactive" 79 15 80, U32 U64, Counter, MILLISEC, |c| sum([c[READ_MS], c[WRITE_MS]]), "Time that reads and writes were outstanding, summed over them";
    "discard" 88 17 96, U64 U64, Counter, COUNT, |c| c[DISCARDS], "Discards completed";
    "discard_merge" 91 20 99, U64 U64, Counter, COUNT, |c| c[DISCARDS_MERGED], "Discards merged with others in the queue";
    "blkdiscard" 89 18 97, U64 U64, Counter, COUNT, |c| c[SECTORS_DISCARDED], "Blocks of 512 bytes discarded";
    "discard_bytes" 90 19 98, U64 U64, Counter, KBYTE, |c| kilobytes(c[SECTORS_DISCARDED]), "Kilobytes discarded";
    "discard_rawactive" 92 21 100, U32 U32, Counter, MILLISEC, |c| c[DISCARD_MS], "Time that discards were outstanding, summed over them";
    "flush" 93 22 101, U64 U64, Counter, COUNT, |c| c[FLUSHES], "Flushes completed";
    "flush_rawactive" 94 23 102, U32 U32, Counter, MILLISEC, |c| c[FLUSH_MS], "Time that flushes were outstanding, summed over them";
    "inflight" 95 24 104, U32 U64, Instant, NONE, |c| c[IN_FLIGHT], "Requests outstanding";
    [
        row("hinv.ndisk", (0, 33), U32, Discrete, NONE, Content::Number, "Number of disks."),
        row("disk.dev.capacity", (0, 87), U64, Discrete, KBYTE, Content::Capacity, "Size of each disk.").over(DISK),
        row("disk.dev.scheduler", (0, 59), String, Discrete, NONE, Content::Scheduler, "Scheduler in use for the requests of each disk.").over(DISK),
    ]
};

/// The kind of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    Partition,
    /// A device on top of others, in memory, or read-only by nature.
    Neither,
}

/// Devices that are neither disks nor partitions: the beginning of the name,
/// and whether a digit must follow it.
const NEITHER: [(&[u8], bool); 6] = [
    (b"loop", false),
    (b"ram", false),
    (b"zram", false),
    (b"md", false),
    (b"dm-", false),
    (b"sr", true),
];

/// Devices whose own names end in a number. The names of their partitions end
/// in `p` and a number.
const NUMBERED: [&[u8]; 4] = [b"mmcblk", b"nvme", b"nbd", b"rbd"];

/// Tells disks and partitions apart by name.
fn kind(name: &[u8]) -> Kind {
    for (prefix, digit_follows) in NEITHER {
        if let Some(rest) = name.strip_prefix(prefix)
            && (!digit_follows || rest.first().is_some_and(u8::is_ascii_digit))
        {
            return Kind::Neither;
        }
    }
    let stem = without_digits(name);
    let is_partition = if let Some((_, within)) = text::split_once(name, b'/') {
        within.contains(&b'p')
    } else if NUMBERED.iter().any(|prefix| name.starts_with(prefix)) {
        stem.len() < name.len() && stem.ends_with(b"p")
    } else {
        stem.len() < name.len()
    };
    if is_partition { Kind::Partition } else { Kind::Disk }
}

/// A name without the number at its end.
fn without_digits(name: &[u8]) -> &[u8] {
    let last = name.iter().rposition(|byte| !byte.is_ascii_digit());
    &name[..last.map_or(0, |last| last + 1)]
}

/// The counts of a line. Before Linux 2.6.25, the line of a partition has four:
/// reads, sectors read, writes, sectors written.
fn counts(words: &mut dyn Iterator<Item = &[u8]>) -> Counts {
    let counts: Counts = text::numbers(words);
    if counts[3].is_some() && counts[4..].iter().all(Option::is_none) {
        let mut short = Counts::default();
        short[READS] = counts[0];
        short[SECTORS_READ] = counts[1];
        short[WRITES] = counts[2];
        short[SECTORS_WRITTEN] = counts[3];
        return short;
    }
    counts
}

/// Reader of /proc/diskstats and /sys/block.
#[derive(Default)]
pub(super) struct Disks {
    disks: Devices<Counts>,
    partitions: Devices<Counts>,
}

impl Disks {
    /// Calls `visit` with the contents of one file for each disk below
    /// /sys/block.
    fn each_attribute(
        &self,
        attribute: &str,
        files: &mut Files,
        mut visit: impl FnMut(i32, &[u8]),
    ) {
        for (number, _) in self.disks.rows() {
            // /sys writes an exclamation mark for a slash in a device's name.
            let name = self.disks.name(*number).replace('/', "!");
            if let Some(contents) = files.read(&format!("sys/block/{name}/{attribute}")) {
                visit(*number, contents);
            }
        }
    }
}

/// The scheduler in brackets. A disk without a choice names its only scheduler
/// without brackets.
fn scheduler(contents: &[u8]) -> Option<&[u8]> {
    let bracketed = |word: &'_ [u8]| word.starts_with(b"[") && word.ends_with(b"]");
    let mut words = text::words(contents);
    if let Some(word) = words.find(|word| bracketed(word)) {
        return word.get(1..word.len().checked_sub(1)?);
    }
    let mut words = text::words(contents);
    words.next().filter(|_| words.next().is_none())
}

impl Area for Disks {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];
    const DOMAINS: &'static [u32] = &[DISK, PARTITION];

    fn read(&mut self, files: &mut Files) {
        let contents = files.read("proc/diskstats");
        self.disks.begin(contents.is_some());
        self.partitions.begin(contents.is_some());
        for line in text::lines(contents.unwrap_or_default()) {
            let mut words = text::words(line).skip(2);
            let Some(name) = words.next() else { continue };
            let devices = match kind(name) {
                Kind::Disk => &mut self.disks,
                Kind::Partition => &mut self.partitions,
                Kind::Neither => continue,
            };
            devices.add(&text_of_bytes(name), counts(&mut words));
        }
        self.disks.end();
        self.partitions.end();
    }

    fn put(&mut self, content: Content, files: &mut Files, values: &mut Values<'_, '_>) {
        let mut put_each = |devices: &Devices<Counts>, of: fn(&Counts) -> Option<u64>| {
            for (number, counts) in devices.rows() {
                put_number(values, *number, of(counts));
            }
        };
        match content {
            Content::Disk(of) => put_each(&self.disks, of),
            Content::Partition(of) => put_each(&self.partitions, of),
            Content::All(of) => {
                let mut counts = self.disks.rows().iter().filter_map(|(_, counts)| of(counts));
                let total = counts.next().map(|first| counts.fold(first, u64::wrapping_add));
                put_number(values, SINGLE, total);
            }
            Content::Number => put_number(values, SINGLE, self.disks.count()),
            Content::Capacity => self.each_attribute("size", files, |number, contents| {
                let sectors = text::words(contents).next().and_then(text::number);
                put_number(values, number, kilobytes(sectors));
            }),
            Content::Scheduler => {
                self.each_attribute("queue/scheduler", files, |number, contents| {
                    if let Some(name) = scheduler(contents) {
                        values.put(number, AgentValue::Text(&text_of_bytes(name)));
                    }
                });
            }
        }
    }

    fn domain(&self, serial: u32) -> Arc<InstanceDomain> {
        if serial == DISK { self.disks.domain() } else { self.partitions.domain() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_disks_from_partitions() {
        use Kind::*;
        let expected: &[(Kind, &[&str])] = &[
            (Disk, &["sda", "sdaa", "vdb", "xvdb", "dasda", "ubda", "srx", "dmx", "pmem0s"]),
            (Disk, &["nvme0n1", "nvme0c1n1", "mmcblk0", "mmcblk0boot0", "nbd0", "nbd0p", "rbd0"]),
            (Disk, &["cciss/c0d0", "ida/c0d0", "drbd/0", "etherd/e1.1"]),
            (Partition, &["sda1", "vda15", "xvda1", "fd0", "pmem0", "pmem0p1", "bcache0", "zd0"]),
            (Partition, &["nvme0n1p1", "mmcblk0p1", "nbd0p1", "rbd0p1", "nvme1c1n1p2"]),
            (Partition, &["cciss/c0d0p1", "cciss/c0d0p", "rd/c0d0p1", "etherd/e1.1p1"]),
            (Neither, &["loop0", "ram0", "zram0", "md0", "md127p1", "md_d0", "dm-0", "sr0"]),
        ];
        for (kind, names) in expected {
            for name in *names {
                assert_eq!(super::kind(name.as_bytes()), *kind, "{name}");
            }
        }
    }

    #[test]
    fn the_scheduler_in_use() {
        for (contents, name) in [
            ("none [mq-deadline] kyber bfq\n", Some("mq-deadline")),
            ("[none]\n", Some("none")),
            ("none\n", Some("none")),
            ("none kyber\n", None),
            ("[\n", Some("[")),
            ("", None),
        ] {
            assert_eq!(scheduler(contents.as_bytes()), name.map(str::as_bytes), "{contents:?}");
        }
    }
}
