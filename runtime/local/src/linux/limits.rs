//! Numbers and limits of the kernel, each in a small file of its own, most of
//! them below /proc/sys.

use pmderive_core::model::{Semantics::*, ValueType::*};

use super::area::Area;
use super::table::{Row, SINGLE, put_number, row, units::*};
use crate::agent::Values;
use crate::files::{Files, ReadMark};
use crate::text;

/// A word of a file, counted from zero.
#[derive(Clone, Copy)]
pub(super) struct Word {
    file: &'static str,
    position: usize,
}

const fn word(file: &'static str, position: usize) -> Word {
    Word { file, position }
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Word>] = &[
    row("vfs.files.count", (27, 0), I32, Instant, NONE, word("proc/sys/fs/file-nr", 0), "Open files of the whole system."),
    row("vfs.files.free", (27, 1), I32, Instant, NONE, word("proc/sys/fs/file-nr", 1), "Structures for open files that are free."),
    row("vfs.files.max", (27, 2), I32, Instant, NONE, word("proc/sys/fs/file-nr", 2), "Open files that the system allows."),
    row("vfs.inodes.count", (27, 3), I32, Instant, NONE, word("proc/sys/fs/inode-state", 0), "Inodes in memory."),
    row("vfs.inodes.free", (27, 4), I32, Instant, NONE, word("proc/sys/fs/inode-state", 1), "Inodes in memory that are free."),
    row("vfs.dentry.count", (27, 5), I32, Instant, NONE, word("proc/sys/fs/dentry-state", 0), "Directory entries in memory."),
    row("vfs.dentry.free", (27, 6), I32, Instant, NONE, word("proc/sys/fs/dentry-state", 1), "Directory entries in memory that are not in use."),
    row("vfs.aio.count", (27, 7), I32, Instant, NONE, word("proc/sys/fs/aio-nr", 0), "Asynchronous requests that may be outstanding at present."),
    row("vfs.aio.max", (27, 8), I32, Instant, NONE, word("proc/sys/fs/aio-max-nr", 0), "Asynchronous requests that the system allows."),
    row("kernel.all.entropy.avail", (72, 0), U32, Instant, NONE, word("proc/sys/kernel/random/entropy_avail", 0), "Bits of entropy at hand."),
    row("kernel.all.entropy.poolsize", (72, 1), U32, Instant, NONE, word("proc/sys/kernel/random/poolsize", 0), "Bits that the pool of entropy has room for."),
    row("kernel.all.pid_max", (72, 2), U32, Discrete, NONE, word("proc/sys/kernel/pid_max", 0), "Process identifiers stay below this number."),
    row("kernel.all.nptys", (72, 3), U32, Instant, NONE, word("proc/sys/kernel/pty/nr", 0), "Pseudoterminals in use."),
];

/// Reader of these files.
#[derive(Default)]
pub(super) struct Limits {
    read: Vec<Limit>,
}

/// The first numbers of a file.
struct Limit {
    file: &'static str,
    read: ReadMark,
    numbers: [Option<u64>; 4],
}

impl Area for Limits {
    type Content = Word;
    const TABLES: &'static [&'static [Row<Word>]] = &[TABLE];

    fn put(&mut self, content: Word, files: &mut Files, values: &mut Values<'_, '_>) {
        let Word { file, position } = content;
        let known = self.read.iter().position(|limit| limit.file == file);
        let known = known.unwrap_or_else(|| {
            let read = ReadMark::default();
            self.read.push(Limit { file, read, numbers: Default::default() });
            self.read.len() - 1
        });
        let limit = &mut self.read[known];
        if limit.read.is_due(files) {
            limit.numbers = text::numbers(text::words(files.read(file).unwrap_or_default()));
        }
        put_number(values, SINGLE, limit.numbers.get(position).copied().flatten());
    }
}
