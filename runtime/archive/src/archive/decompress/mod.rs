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
//! Input: a file and what its suffix says. Output: [`Bytes`] at any offset of the
//! expanded contents. Units are expanded when they are asked for, and only
//! whole: what a checksum contradicts is not given out. Of a file that was cut
//! within a unit, what is left of that is. All readers of a file share one
//! expansion. What is compressed is not known here.

mod bzip2;
mod expansion;
mod gzip;
mod input;
mod lzw;
mod output;
mod pack;
#[cfg(test)]
mod tests;
mod xz;
mod zstd;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use self::expansion::ExpandError;

use self::expansion::{Expansion, Units};
use self::input::Input;
use crate::archive::bytes::{Bytes, open_plain};

/// How a file is stored, by the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    /// As it is.
    None,
    /// What `xz` expands: xz and lzma.
    Xz,
    /// What `gzip` expands: gzip, compress and pack.
    Gzip,
    /// What `bzip2` expands.
    Bzip2,
    /// What `zstd` expands.
    Zstd,
}

/// Every suffix that PCP takes for a compressed file.
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
    /// Splits the suffix of a compressed file off a file name.
    pub(super) fn of_name(name: &[u8]) -> (&[u8], Compression) {
        for (suffix, compression) in SUFFIXES {
            if let Some(stem) = name.strip_suffix(suffix.as_bytes()) {
                return (stem, *compression);
            }
        }
        (name, Compression::None)
    }

    /// The decoder of a whole file, unit by unit; of plain files, none.
    fn units(self) -> Option<Box<dyn Units>> {
        Some(match self {
            Compression::None => return None,
            Compression::Xz => Box::<xz::Units>::default(),
            Compression::Gzip => Box::<gzip::Units>::default(),
            Compression::Bzip2 => Box::<bzip2::Units>::default(),
            Compression::Zstd => Box::<zstd::Units>::default(),
        })
    }
}

/// How many expansions are kept for the next reader although nobody reads them.
const KEPT: usize = 4;

/// A file, and what it expands to.
type Expanded = (PathBuf, Arc<Expansion>);

/// The files that were expanded of the archives of one directory, so that each
/// is expanded once for all readers of a context.
#[derive(Clone, Debug, Default)]
pub(super) struct Expansions {
    /// The one that was asked for last comes last.
    recent: Arc<Mutex<Vec<Expanded>>>,
    /// What each may expand to, in bytes, if that was said.
    limit: Option<u64>,
}

impl Expansions {
    /// None yet, each of which may expand to `limit` bytes; without a limit, to
    /// 16 GiB or nine tenths of the free space, whichever is less.
    pub(super) fn within(limit: Option<u64>) -> Expansions {
        Expansions { limit, ..Expansions::default() }
    }

    /// Opens a file for reading its expanded contents.
    pub(super) fn open(&self, path: &Path, compression: Compression) -> io::Result<Box<dyn Bytes>> {
        let Some(units) = compression.units() else {
            return Ok(Box::new(open_plain(path)?));
        };
        // A list is as good as ever when another thread panicked.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Expands bytes by the decoder that the first of them chooses, up to a size
/// that only a damaged input of a fuzzer has. Blocks of xz give the same in
/// any order.
///
/// # Panics
/// A decoder does, or it contradicts itself.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_decompress(data: &[u8]) {
    use self::output::Output;

    const LIMIT: u64 = 4 * 1024 * 1024;
    let Some((first, bytes)) = data.split_first() else { return };
    let kinds = [Compression::Xz, Compression::Zstd, Compression::Gzip, Compression::Bzip2];
    let units = kinds[usize::from(first % 4)].units();
    let Some(mut units) = units else { return };
    let new_input = || Input::new(Box::new(Arc::<[u8]>::from(bytes)));
    let mut input = new_input();
    let mut contents = Vec::new();
    let result = loop {
        let mut output = Output::new(&mut contents, LIMIT);
        match units.next(&mut input, &mut output) {
            Ok(true) if contents.len() as u64 >= LIMIT => break Ok(()),
            Ok(true) => {}
            Ok(false) => break Ok(()),
            // Damage is an error; that it is nothing worse is what is tested.
            Err(error) => break Err(error),
        }
    };
    if first % 4 != 0 || result.is_err() {
        return;
    }
    let mut input = new_input();
    for block in xz::blocks(&mut input).into_iter().flatten().rev() {
        let mut alone = Vec::new();
        block.expand(&mut input, &mut Output::new(&mut alone, LIMIT)).expect("it was good before");
        let start = usize::try_from(block.start).expect("little was expanded");
        assert_eq!(alone, contents[start..][..alone.len()], "blocks are independent");
    }
}
