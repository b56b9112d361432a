//! Reads compressed files of an archive as if they were plain.
//!
//! ```text
//!   suffix ──► Compression        magic bytes
//!                                      │
//!   file ──► Input ──► xz │ gzip, lzw, pack │ bzip2 │ zstd ──► Output
//!                      units: blocks, members, streams, frames   │
//!                                                                ▼
//!   Bytes ◄── at any offset ◄── Expansion: a temporary file without a name
//! ```
//!
//! Input: a file and the compression that its suffix stands for. Output: [`Bytes`] at
//! any offset of the expanded contents.
//!
//! Units are expanded on demand, and only as a whole: contents that contradict their
//! checksum are not given out. If a file was cut within a unit, the expanded part of
//! that unit is. All readers of a file share one expansion.

mod bzip2;
mod expansion;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod gzip;
mod input;
mod lzw;
mod output;
mod pack;
#[cfg(test)]
mod tests;
mod units;
mod xz;
mod zstd;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pmderive_core::locks::lock;

pub(super) use self::expansion::ExpandError;

use self::expansion::Expansion;
use self::input::Input;
use self::units::Units;
use crate::archive::bytes::{Bytes, open_plain};

/// The compression of a file, according to the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    /// Not compressed.
    None,
    /// Formats that `xz` expands: xz and lzma.
    Xz,
    /// Formats that `gzip` expands: gzip, compress and pack.
    Gzip,
    /// The format of `bzip2`.
    Bzip2,
    /// The format of `zstd`.
    Zstd,
}

/// All suffixes that PCP recognizes as those of compressed files.
const SUFFIXES: &[(&str, Compression)] = &[
    (".xz", Compression::Xz),
    (".lzma", Compression::Xz),
    (".bz2", Compression::Bzip2),
    (".bz", Compression::Bzip2),
    (".gz", Compression::Gzip),
    (".Z", Compression::Gzip),
    (".z", Compression::Gzip),
    (".zst", Compression::Zstd),
];

impl Compression {
    /// Splits a file name into its stem and the compression of its suffix.
    pub(super) fn of_name(name: &[u8]) -> (&[u8], Compression) {
        for (suffix, compression) in SUFFIXES {
            if let Some(stem) = name.strip_suffix(suffix.as_bytes()) {
                return (stem, *compression);
            }
        }
        (name, Compression::None)
    }

    /// The compressed form of a file that is not there itself.
    pub(super) fn of_missing(path: &Path) -> Option<(PathBuf, Compression)> {
        SUFFIXES.iter().find_map(|(suffix, compression)| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            let path = PathBuf::from(name);
            path.is_file().then_some((path, *compression))
        })
    }

    /// A decoder for a whole file. `None` for plain files.
    fn units(self) -> Option<Box<dyn Units>> {
        Some(match self {
            Compression::None => return None,
            Compression::Xz => Box::<xz::Units>::default(),
            Compression::Gzip => Box::new(gzip::Units),
            Compression::Bzip2 => Box::new(bzip2::Units),
            Compression::Zstd => Box::new(zstd::Units),
        })
    }
}

/// Number of idle expansions to keep for later readers.
const KEPT: usize = 4;

/// The path of a file, and its expansion.
type Expanded = (PathBuf, Arc<Expansion>);

/// Expansions of the files of one directory. All readers of a context share them, so
/// each file is expanded once.
#[derive(Clone, Debug, Default)]
pub(super) struct Expansions {
    /// The file that was opened last comes last.
    recent: Arc<Mutex<Vec<Expanded>>>,
    /// Maximum size in bytes of each expansion, if the caller set one.
    limit: Option<u64>,
}

impl Expansions {
    /// A cache without expansions. Each may have `limit` bytes. Without a limit, each
    /// may have 16 GiB or nine tenths of the free space, whichever is less.
    pub(super) fn within(limit: Option<u64>) -> Expansions {
        Expansions { limit, ..Expansions::default() }
    }

    /// The same expansions, of which new ones have at most `bytes` bytes.
    pub(super) fn up_to(&self, bytes: u64) -> Expansions {
        let limit = self.limit.map_or(bytes, |limit| limit.min(bytes));
        Expansions { recent: Arc::clone(&self.recent), limit: Some(limit) }
    }

    /// Opens a file to read its expanded contents.
    pub(super) fn open(&self, path: &Path, compression: Compression) -> io::Result<Box<dyn Bytes>> {
        let Some(units) = compression.units() else {
            return Ok(Box::new(open_plain(path)?));
        };
        // The list is valid even if another thread panicked while it had the lock.
        let mut recent = lock(&self.recent);
        let (path, expansion) = match recent.iter().position(|(known, _)| known == path) {
            Some(at) => recent.remove(at),
            None => {
                let mut input = Input::new(Box::new(open_plain(path)?));
                let blocks = match compression {
                    Compression::Xz => xz::blocks(&mut input),
                    _ => None,
                };
                (path.to_path_buf(), Arc::new(Expansion::new(input, units, blocks, self.limit)?))
            }
        };
        if recent.len() >= KEPT {
            recent.remove(0);
        }
        recent.push((path, Arc::clone(&expansion)));
        Ok(Box::new(expansion))
    }
}
