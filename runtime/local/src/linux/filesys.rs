//! Mounted file systems on devices of this host. /proc/self/mounts tells where
//! they are mounted, statvfs(3) their sizes.
//!
//! An instance is a device. If a device is mounted more than once, the first
//! mount counts.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, Semantics::*, ValueType::*, text_of_bytes};
use rustix::fs::StatVfs;

use super::area::Area;
use super::table::{Devices, Row, SINGLE, indom::FILESYS, put_number, row, units::*};
use crate::agent::{AgentValue, Values};
use crate::files::Files;
use crate::text;

/// The value that a table row selects for each file system.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// A number from statvfs(3).
    Stat(fn(&StatVfs) -> Option<u64>),
    /// Used space in percent of the space that users can have.
    Full,
    /// Directory that the file system is mounted on.
    MountDir,
    /// 1 if the file system is mounted read-only.
    ReadOnly,
    /// Number of file systems.
    Number,
}

/// Size in kilobytes of a number of blocks.
fn kilobytes(stat: &StatVfs, blocks: u64) -> Option<u64> {
    Some(blocks.checked_mul(stat.f_frsize)? / 1024)
}

/// Blocks in use.
fn used(stat: &StatVfs) -> Option<u64> {
    stat.f_blocks.checked_sub(stat.f_bfree)
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = &[
    row("hinv.nfilesys", (5, 0), U32, Discrete, COUNT, Content::Number, "Number of file systems mounted from devices of this host."),
    row("filesys.capacity", (5, 1), U64, Discrete, KBYTE, Content::Stat(|stat| kilobytes(stat, stat.f_blocks)), "Size of each file system.").over(FILESYS),
    row("filesys.used", (5, 2), U64, Instant, KBYTE, Content::Stat(|stat| kilobytes(stat, used(stat)?)), "Space in use in each file system.").over(FILESYS),
    row("filesys.free", (5, 3), U64, Instant, KBYTE, Content::Stat(|stat| kilobytes(stat, stat.f_bfree)), "Space that is free in each file system.").over(FILESYS),
    row("filesys.avail", (5, 10), U64, Instant, KBYTE, Content::Stat(|stat| kilobytes(stat, stat.f_bavail)), "Space that is free in each file system and not reserved.").over(FILESYS),
    row("filesys.maxfiles", (5, 4), U32, Discrete, NONE, Content::Stat(|stat| Some(stat.f_files)), "Inodes of each file system.").over(FILESYS),
    row("filesys.usedfiles", (5, 5), U32, Instant, NONE, Content::Stat(|stat| stat.f_files.checked_sub(stat.f_ffree)), "Inodes in use in each file system.").over(FILESYS),
    row("filesys.freefiles", (5, 6), U32, Instant, NONE, Content::Stat(|stat| Some(stat.f_ffree)), "Inodes that are free in each file system.").over(FILESYS),
    row("filesys.mountdir", (5, 7), String, Discrete, NONE, Content::MountDir, "Directory that each file system is mounted on.").over(FILESYS),
    row("filesys.full", (5, 8), F64, Instant, NONE, Content::Full, "Used space of each file system in percent of what users can have.").over(FILESYS),
    row("filesys.blocksize", (5, 9), U32, Instant, BYTE, Content::Stat(|stat| Some(stat.f_bsize)), "Preferred size of a transfer for each file system.").over(FILESYS),
    row("filesys.readonly", (5, 11), U32, Instant, NONE, Content::ReadOnly, "1 for a file system that is mounted read-only, else 0.").over(FILESYS),
];

/// Types of file systems that are never on a device of this host, even if their
/// device has such a name.
const PSEUDO: [&[u8]; 13] = [
    b"autofs",
    b"cgroup",
    b"configfs",
    b"devfs",
    b"devpts",
    b"devtmpfs",
    b"nfs",
    b"proc",
    b"securityfs",
    b"selinuxfs",
    b"squashfs",
    b"sysfs",
    b"tmpfs",
];

/// True for a mount that counts: the root on any device, and every mount of a
/// device of this host.
fn is_local(device: &[u8], directory: &[u8], kind: &[u8]) -> bool {
    (device.starts_with(b"/dev") || directory == b"/") && !PSEUDO.contains(&kind)
}

struct Mount {
    directory: Box<[u8]>,
    read_only: bool,
    /// The answer of statvfs(3) in this fetch. The outer `None`: not asked yet.
    stat: Option<Option<StatVfs>>,
}

/// Reader of /proc/self/mounts.
#[derive(Default)]
pub(super) struct Filesystems {
    contents: Vec<u8>,
    mounts: Devices<Mount>,
}

impl Mount {
    fn stat(&mut self, files: &Files) -> Option<&StatVfs> {
        let directory = &self.directory;
        self.stat.get_or_insert_with(|| rustix::fs::statvfs(files.path(directory)).ok()).as_ref()
    }
}

impl Area for Filesystems {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];
    const DOMAINS: &'static [u32] = &[FILESYS];

    fn read(&mut self, files: &mut Files) {
        let contents = files.read("proc/self/mounts");
        let readable = contents.is_some();
        let contents = contents.unwrap_or_default();
        if readable && contents == self.contents {
            self.mounts.rows_mut().for_each(|(_, mount)| mount.stat = None);
            return;
        }
        self.contents.clear();
        self.contents.extend_from_slice(contents);
        self.mounts.begin(readable);
        for line in text::lines(&self.contents) {
            let mut words = text::words(line);
            let (Some(device), Some(directory), Some(kind)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if !is_local(device, directory, kind) {
                continue;
            }
            let mut options = words.next().unwrap_or_default().split(|byte| *byte == b',');
            let mount = Mount {
                directory: text::unescape(directory).into(),
                read_only: options.any(|option| option == b"ro"),
                stat: None,
            };
            self.mounts.add(&text_of_bytes(device), mount);
        }
        self.mounts.end();
    }

    fn put(&mut self, content: Content, files: &mut Files, values: &mut Values<'_, '_>) {
        if let Content::Number = content {
            return put_number(values, SINGLE, self.mounts.count());
        }
        for (number, mount) in self.mounts.rows_mut() {
            match content {
                Content::Stat(of) => put_number(values, number, mount.stat(files).and_then(of)),
                Content::Full => {
                    let Some(stat) = mount.stat(files) else { continue };
                    let Some(used) = used(stat) else { continue };
                    let all = used as f64 + stat.f_bavail as f64;
                    if all > 0.0 {
                        values.put(number, AgentValue::F64(used as f64 * 100.0 / all));
                    }
                }
                Content::MountDir => {
                    values.put(number, AgentValue::Text(&text_of_bytes(&mount.directory)))
                }
                Content::ReadOnly => put_number(values, number, Some(mount.read_only.into())),
                Content::Number => {}
            }
        }
    }

    fn domain(&self, _: u32) -> Arc<InstanceDomain> {
        self.mounts.domain()
    }
}
