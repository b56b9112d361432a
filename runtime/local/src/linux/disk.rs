//! Traffic of disks and partitions, from /proc/diskstats
//! (Documentation/admin-guide/iostats.rst of the kernel).
//!
//! The kernel lists all block devices alike. Which of them are disks and
//! which partitions follows from their names, as in pmdalinux.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, PmStatus, Semantics::*, ValueType::*};

use super::table::{
    Area, Devices, Row, SINGLE,
    indom::{DISK, PARTITION},
    metrics, put_number, row, sum,
    units::*,
};
use crate::agent::{Metric, Value, Values};
use crate::files::{Files, ReadMark};
use crate::text;

/// The numbers of a device's line, each if it is there: kernels before 4.18
/// do not count discards, those before 5.5 no flushes.
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

/// What a row delivers.
#[derive(Clone, Copy)]
enum Source {
    /// A count of each disk.
    Disk(fn(&Counts) -> Option<u64>),
    /// A count of each partition.
    Partition(fn(&Counts) -> Option<u64>),
    /// The sum of a count over the disks that have it.
    All(fn(&Counts) -> Option<u64>),
    /// Number of disks.
    Number,
    /// Kilobytes that a disk has room for.
    Capacity,
    /// Name of the scheduler in use for a disk.
    Scheduler,
}

/// Kilobytes of a number of sectors of 512 bytes.
fn kilobytes(sectors: Option<u64>) -> Option<u64> {
    Some(sectors? / 2)
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Source>] = &[
    row("disk.dev.read", (0, 4), U64, Counter, COUNT, Source::Disk(|c| c[READS]), "Reads completed, for each disk.").over(DISK),
    row("disk.dev.write", (0, 5), U64, Counter, COUNT, Source::Disk(|c| c[WRITES]), "Writes completed, for each disk.").over(DISK),
    row("disk.dev.total", (0, 28), U64, Counter, COUNT, Source::Disk(|c| sum([c[READS], c[WRITES]])), "Reads and writes completed, for each disk.").over(DISK),
    row("disk.dev.blkread", (0, 6), U64, Counter, COUNT, Source::Disk(|c| c[SECTORS_READ]), "Blocks of 512 bytes read, for each disk.").over(DISK),
    row("disk.dev.blkwrite", (0, 7), U64, Counter, COUNT, Source::Disk(|c| c[SECTORS_WRITTEN]), "Blocks of 512 bytes written, for each disk.").over(DISK),
    row("disk.dev.blktotal", (0, 36), U64, Counter, COUNT, Source::Disk(|c| sum([c[SECTORS_READ], c[SECTORS_WRITTEN]])), "Blocks of 512 bytes read and written, for each disk.").over(DISK),
    row("disk.dev.read_bytes", (0, 38), U64, Counter, KBYTE, Source::Disk(|c| kilobytes(c[SECTORS_READ])), "Kilobytes read, for each disk.").over(DISK),
    row("disk.dev.write_bytes", (0, 39), U64, Counter, KBYTE, Source::Disk(|c| kilobytes(c[SECTORS_WRITTEN])), "Kilobytes written, for each disk.").over(DISK),
    row("disk.dev.total_bytes", (0, 40), U64, Counter, KBYTE, Source::Disk(|c| kilobytes(sum([c[SECTORS_READ], c[SECTORS_WRITTEN]]))), "Kilobytes read and written, for each disk.").over(DISK),
    row("disk.dev.read_merge", (0, 49), U64, Counter, COUNT, Source::Disk(|c| c[READS_MERGED]), "Reads merged with others in the queue, for each disk.").over(DISK),
    row("disk.dev.write_merge", (0, 50), U64, Counter, COUNT, Source::Disk(|c| c[WRITES_MERGED]), "Writes merged with others in the queue, for each disk.").over(DISK),
    row("disk.dev.avactive", (0, 46), U32, Counter, MILLISEC, Source::Disk(|c| c[ACTIVE_MS]), "Time during which requests were outstanding, for each disk.").over(DISK),
    row("disk.dev.aveq", (0, 47), U32, Counter, MILLISEC, Source::Disk(|c| c[QUEUE_MS]), "Time that requests were outstanding, summed over them, for each disk.").over(DISK),
    row("disk.dev.read_rawactive", (0, 72), U32, Counter, MILLISEC, Source::Disk(|c| c[READ_MS]), "Time that reads were outstanding, summed over them, for each disk.").over(DISK),
    row("disk.dev.write_rawactive", (0, 73), U32, Counter, MILLISEC, Source::Disk(|c| c[WRITE_MS]), "Time that writes were outstanding, summed over them, for each disk.").over(DISK),
    row("disk.dev.total_rawactive", (0, 79), U32, Counter, MILLISEC, Source::Disk(|c| sum([c[READ_MS], c[WRITE_MS]])), "Time that reads and writes were outstanding, summed over them, for each disk.").over(DISK),
    row("disk.dev.discard", (0, 88), U64, Counter, COUNT, Source::Disk(|c| c[DISCARDS]), "Discards completed, for each disk.").over(DISK),
    row("disk.dev.discard_merge", (0, 91), U64, Counter, COUNT, Source::Disk(|c| c[DISCARDS_MERGED]), "Discards merged with others in the queue, for each disk.").over(DISK),
    row("disk.dev.blkdiscard", (0, 89), U64, Counter, COUNT, Source::Disk(|c| c[SECTORS_DISCARDED]), "Blocks of 512 bytes discarded, for each disk.").over(DISK),
    row("disk.dev.discard_bytes", (0, 90), U64, Counter, KBYTE, Source::Disk(|c| kilobytes(c[SECTORS_DISCARDED])), "Kilobytes discarded, for each disk.").over(DISK),
    row("disk.dev.discard_rawactive", (0, 92), U32, Counter, MILLISEC, Source::Disk(|c| c[DISCARD_MS]), "Time that discards were outstanding, summed over them, for each disk.").over(DISK),
    row("disk.dev.flush", (0, 93), U64, Counter, COUNT, Source::Disk(|c| c[FLUSHES]), "Flushes completed, for each disk.").over(DISK),
    row("disk.dev.flush_rawactive", (0, 94), U32, Counter, MILLISEC, Source::Disk(|c| c[FLUSH_MS]), "Time that flushes were outstanding, summed over them, for each disk.").over(DISK),
    row("disk.dev.inflight", (0, 95), U32, Instant, NONE, Source::Disk(|c| c[IN_FLIGHT]), "Requests outstanding, for each disk.").over(DISK),
    row("disk.partitions.read", (10, 0), U64, Counter, COUNT, Source::Partition(|c| c[READS]), "Reads completed, for each partition.").over(PARTITION),
    row("disk.partitions.write", (10, 1), U64, Counter, COUNT, Source::Partition(|c| c[WRITES]), "Writes completed, for each partition.").over(PARTITION),
    row("disk.partitions.total", (10, 2), U64, Counter, COUNT, Source::Partition(|c| sum([c[READS], c[WRITES]])), "Reads and writes completed, for each partition.").over(PARTITION),
    row("disk.partitions.blkread", (10, 3), U64, Counter, COUNT, Source::Partition(|c| c[SECTORS_READ]), "Blocks of 512 bytes read, for each partition.").over(PARTITION),
    row("disk.partitions.blkwrite", (10, 4), U64, Counter, COUNT, Source::Partition(|c| c[SECTORS_WRITTEN]), "Blocks of 512 bytes written, for each partition.").over(PARTITION),
    row("disk.partitions.blktotal", (10, 5), U64, Counter, COUNT, Source::Partition(|c| sum([c[SECTORS_READ], c[SECTORS_WRITTEN]])), "Blocks of 512 bytes read and written, for each partition.").over(PARTITION),
    row("disk.partitions.read_bytes", (10, 6), U64, Counter, KBYTE, Source::Partition(|c| kilobytes(c[SECTORS_READ])), "Kilobytes read, for each partition.").over(PARTITION),
    row("disk.partitions.write_bytes", (10, 7), U64, Counter, KBYTE, Source::Partition(|c| kilobytes(c[SECTORS_WRITTEN])), "Kilobytes written, for each partition.").over(PARTITION),
    row("disk.partitions.total_bytes", (10, 8), U64, Counter, KBYTE, Source::Partition(|c| kilobytes(sum([c[SECTORS_READ], c[SECTORS_WRITTEN]]))), "Kilobytes read and written, for each partition.").over(PARTITION),
    row("disk.partitions.read_merge", (10, 9), U64, Counter, COUNT, Source::Partition(|c| c[READS_MERGED]), "Reads merged with others in the queue, for each partition.").over(PARTITION),
    row("disk.partitions.write_merge", (10, 10), U64, Counter, COUNT, Source::Partition(|c| c[WRITES_MERGED]), "Writes merged with others in the queue, for each partition.").over(PARTITION),
    row("disk.partitions.avactive", (10, 11), U32, Counter, MILLISEC, Source::Partition(|c| c[ACTIVE_MS]), "Time during which requests were outstanding, for each partition.").over(PARTITION),
    row("disk.partitions.aveq", (10, 12), U32, Counter, MILLISEC, Source::Partition(|c| c[QUEUE_MS]), "Time that requests were outstanding, summed over them, for each partition.").over(PARTITION),
    row("disk.partitions.read_rawactive", (10, 13), U32, Counter, MILLISEC, Source::Partition(|c| c[READ_MS]), "Time that reads were outstanding, summed over them, for each partition.").over(PARTITION),
    row("disk.partitions.write_rawactive", (10, 14), U32, Counter, MILLISEC, Source::Partition(|c| c[WRITE_MS]), "Time that writes were outstanding, summed over them, for each partition.").over(PARTITION),
    row("disk.partitions.total_rawactive", (10, 15), U32, Counter, MILLISEC, Source::Partition(|c| sum([c[READ_MS], c[WRITE_MS]])), "Time that reads and writes were outstanding, summed over them, for each partition.").over(PARTITION),
    row("disk.partitions.discard", (10, 17), U64, Counter, COUNT, Source::Partition(|c| c[DISCARDS]), "Discards completed, for each partition.").over(PARTITION),
    row("disk.partitions.discard_merge", (10, 20), U64, Counter, COUNT, Source::Partition(|c| c[DISCARDS_MERGED]), "Discards merged with others in the queue, for each partition.").over(PARTITION),
    row("disk.partitions.blkdiscard", (10, 18), U64, Counter, COUNT, Source::Partition(|c| c[SECTORS_DISCARDED]), "Blocks of 512 bytes discarded, for each partition.").over(PARTITION),
    row("disk.partitions.discard_bytes", (10, 19), U64, Counter, KBYTE, Source::Partition(|c| kilobytes(c[SECTORS_DISCARDED])), "Kilobytes discarded, for each partition.").over(PARTITION),
    row("disk.partitions.discard_rawactive", (10, 21), U32, Counter, MILLISEC, Source::Partition(|c| c[DISCARD_MS]), "Time that discards were outstanding, summed over them, for each partition.").over(PARTITION),
    row("disk.partitions.flush", (10, 22), U64, Counter, COUNT, Source::Partition(|c| c[FLUSHES]), "Flushes completed, for each partition.").over(PARTITION),
    row("disk.partitions.flush_rawactive", (10, 23), U32, Counter, MILLISEC, Source::Partition(|c| c[FLUSH_MS]), "Time that flushes were outstanding, summed over them, for each partition.").over(PARTITION),
    row("disk.partitions.inflight", (10, 24), U32, Instant, NONE, Source::Partition(|c| c[IN_FLIGHT]), "Requests outstanding, for each partition.").over(PARTITION),
    row("disk.all.read", (0, 24), U64, Counter, COUNT, Source::All(|c| c[READS]), "Reads completed, over all disks."),
    row("disk.all.write", (0, 25), U64, Counter, COUNT, Source::All(|c| c[WRITES]), "Writes completed, over all disks."),
    row("disk.all.total", (0, 29), U64, Counter, COUNT, Source::All(|c| sum([c[READS], c[WRITES]])), "Reads and writes completed, over all disks."),
    row("disk.all.blkread", (0, 26), U64, Counter, COUNT, Source::All(|c| c[SECTORS_READ]), "Blocks of 512 bytes read, over all disks."),
    row("disk.all.blkwrite", (0, 27), U64, Counter, COUNT, Source::All(|c| c[SECTORS_WRITTEN]), "Blocks of 512 bytes written, over all disks."),
    row("disk.all.blktotal", (0, 37), U64, Counter, COUNT, Source::All(|c| sum([c[SECTORS_READ], c[SECTORS_WRITTEN]])), "Blocks of 512 bytes read and written, over all disks."),
    row("disk.all.read_bytes", (0, 41), U64, Counter, KBYTE, Source::All(|c| kilobytes(c[SECTORS_READ])), "Kilobytes read, over all disks."),
    row("disk.all.write_bytes", (0, 42), U64, Counter, KBYTE, Source::All(|c| kilobytes(c[SECTORS_WRITTEN])), "Kilobytes written, over all disks."),
    row("disk.all.total_bytes", (0, 43), U64, Counter, KBYTE, Source::All(|c| kilobytes(sum([c[SECTORS_READ], c[SECTORS_WRITTEN]]))), "Kilobytes read and written, over all disks."),
    row("disk.all.read_merge", (0, 51), U64, Counter, COUNT, Source::All(|c| c[READS_MERGED]), "Reads merged with others in the queue, over all disks."),
    row("disk.all.write_merge", (0, 52), U64, Counter, COUNT, Source::All(|c| c[WRITES_MERGED]), "Writes merged with others in the queue, over all disks."),
    row("disk.all.avactive", (0, 44), U64, Counter, MILLISEC, Source::All(|c| c[ACTIVE_MS]), "Time during which requests were outstanding, over all disks."),
    row("disk.all.aveq", (0, 45), U64, Counter, MILLISEC, Source::All(|c| c[QUEUE_MS]), "Time that requests were outstanding, summed over them, over all disks."),
    row("disk.all.read_rawactive", (0, 74), U64, Counter, MILLISEC, Source::All(|c| c[READ_MS]), "Time that reads were outstanding, summed over them, over all disks."),
    row("disk.all.write_rawactive", (0, 75), U64, Counter, MILLISEC, Source::All(|c| c[WRITE_MS]), "Time that writes were outstanding, summed over them, over all disks."),
    row("disk.all.total_rawactive", (0, 80), U64, Counter, MILLISEC, Source::All(|c| sum([c[READ_MS], c[WRITE_MS]])), "Time that reads and writes were outstanding, summed over them, over all disks."),
    row("disk.all.discard", (0, 96), U64, Counter, COUNT, Source::All(|c| c[DISCARDS]), "Discards completed, over all disks."),
    row("disk.all.discard_merge", (0, 99), U64, Counter, COUNT, Source::All(|c| c[DISCARDS_MERGED]), "Discards merged with others in the queue, over all disks."),
    row("disk.all.blkdiscard", (0, 97), U64, Counter, COUNT, Source::All(|c| c[SECTORS_DISCARDED]), "Blocks of 512 bytes discarded, over all disks."),
    row("disk.all.discard_bytes", (0, 98), U64, Counter, KBYTE, Source::All(|c| kilobytes(c[SECTORS_DISCARDED])), "Kilobytes discarded, over all disks."),
    row("disk.all.discard_rawactive", (0, 100), U32, Counter, MILLISEC, Source::All(|c| c[DISCARD_MS]), "Time that discards were outstanding, summed over them, over all disks."),
    row("disk.all.flush", (0, 101), U64, Counter, COUNT, Source::All(|c| c[FLUSHES]), "Flushes completed, over all disks."),
    row("disk.all.flush_rawactive", (0, 102), U32, Counter, MILLISEC, Source::All(|c| c[FLUSH_MS]), "Time that flushes were outstanding, summed over them, over all disks."),
    row("disk.all.inflight", (0, 104), U64, Instant, NONE, Source::All(|c| c[IN_FLIGHT]), "Requests outstanding, over all disks."),
    row("hinv.ndisk", (0, 33), U32, Discrete, NONE, Source::Number, "Number of disks."),
    row("disk.dev.capacity", (0, 87), U64, Discrete, KBYTE, Source::Capacity, "Size of each disk.").over(DISK),
    row("disk.dev.scheduler", (0, 59), String, Discrete, NONE, Source::Scheduler, "Scheduler in use for the requests of each disk.").over(DISK),
];

/// What a block device counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    Partition,
    /// A device on top of others, in memory, or read-only by nature.
    Neither,
}

/// Devices that are neither disks nor partitions: the beginning of the name
/// and whether a digit must follow it.
const NEITHER: [(&[u8], bool); 6] = [
    (b"loop", false),
    (b"ram", false),
    (b"zram", false),
    (b"md", false),
    (b"dm-", false),
    (b"sr", true),
];

/// Devices whose names end in a number of their own, so that those of their
/// partitions end in `p` and a number.
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
    let without_digits = name.trim_suffix_digits();
    let is_partition = if let Some((_, within)) = text::split_once(name, b'/') {
        within.contains(&b'p')
    } else if NUMBERED.iter().any(|prefix| name.starts_with(prefix)) {
        without_digits.len() < name.len() && without_digits.ends_with(b"p")
    } else {
        without_digits.len() < name.len()
    };
    if is_partition { Kind::Partition } else { Kind::Disk }
}

/// A name without the number at its end.
trait TrimDigits {
    fn trim_suffix_digits(&self) -> &[u8];
}

impl TrimDigits for [u8] {
    fn trim_suffix_digits(&self) -> &[u8] {
        let end = self.iter().rposition(|byte| !byte.is_ascii_digit());
        &self[..end.map_or(0, |last| last + 1)]
    }
}

/// The counts of a line. Before 2.6.25 the lines of partitions have four:
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
    read: ReadMark,
    disks: Devices<Counts>,
    partitions: Devices<Counts>,
}

impl Disks {
    fn read(&mut self, files: &mut Files) {
        if !self.read.is_due(files) {
            return;
        }
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
            devices.add(&text::text(name), counts(&mut words));
        }
        self.disks.end();
        self.partitions.end();
    }

    /// Calls `visit` with the contents of a file of each disk below /sys/block.
    fn each_attribute(
        &self,
        attribute: &str,
        files: &mut Files,
        mut visit: impl FnMut(i32, &[u8]),
    ) {
        for (number, _) in self.disks.rows() {
            // Device names with a slash have an exclamation mark there.
            let name = self.disks.name(*number).replace('/', "!");
            if let Some(contents) = files.read(&format!("sys/block/{name}/{attribute}")) {
                visit(*number, contents);
            }
        }
    }
}

/// The scheduler in brackets; a disk that has no choice names its only one bare.
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
    fn metrics(&self) -> Vec<Metric> {
        metrics(TABLE)
    }

    fn fetch(
        &mut self,
        row: usize,
        files: &mut Files,
        values: &mut Values<'_, '_>,
    ) -> Result<(), PmStatus> {
        self.read(files);
        let mut put_each = |devices: &Devices<Counts>, of: fn(&Counts) -> Option<u64>| {
            for (number, counts) in devices.rows() {
                put_number(values, *number, of(counts));
            }
        };
        match TABLE[row].value {
            Source::Disk(of) => put_each(&self.disks, of),
            Source::Partition(of) => put_each(&self.partitions, of),
            Source::All(of) => {
                let mut counts = self.disks.rows().iter().filter_map(|(_, counts)| of(counts));
                let total = counts.next().map(|first| counts.fold(first, u64::wrapping_add));
                put_number(values, SINGLE, total);
            }
            Source::Number => put_number(values, SINGLE, self.disks.count()),
            Source::Capacity => self.each_attribute("size", files, |number, contents| {
                let sectors = text::words(contents).next().and_then(text::number);
                put_number(values, number, kilobytes(sectors));
            }),
            Source::Scheduler => {
                self.each_attribute("queue/scheduler", files, |number, contents| {
                    if let Some(name) = scheduler(contents) {
                        values.put(number, Value::Text(&text::text(name)));
                    }
                });
            }
        }
        Ok(())
    }

    fn instance_domain(&mut self, serial: u32, files: &mut Files) -> Option<Arc<InstanceDomain>> {
        if serial != DISK && serial != PARTITION {
            return None;
        }
        self.read(files);
        Some(if serial == DISK { self.disks.domain() } else { self.partitions.domain() })
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
