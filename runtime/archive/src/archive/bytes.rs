//! Positional reading of the files of an archive, and a sliding window over one file.
//!
//! Input: an open file. Output: the bytes at an offset, as many as asked for unless the
//! file ends earlier. This module does not remember where a file ends, because it may grow.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Bytes read at a time: enough for a label at first, more as reading continues. The
/// first size is small because thousands of contexts have one window or more each.
const FIRST_CHUNK: usize = 1024;
const CHUNK: usize = 16 * 1024;

/// Bytes that are read beyond a record longer than a chunk: enough for the header of the
/// next one. More would have to be moved when that one is read.
const AHEAD: usize = 64;

/// Greater lengths are compared with the file's size before a buffer grows for them.
const TRUSTED_LENGTH: usize = 1024 * 1024;

/// Bytes that can be read at any offset.
pub(super) trait Bytes: Send {
    /// Reads some bytes at `offset` into `buffer`. The result is 0 only at the end of
    /// the file or if `buffer` is empty.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Current size in bytes.
    fn size(&mut self) -> io::Result<u64>;
}

/// Opens an uncompressed file. Anything else is an error: a pipe would be waited for.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !about.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

impl Bytes for File {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, buffer, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// A buffer that slides over a file. Reading forward costs one read per chunk. The
/// buffer exceeds a chunk only for a record that is longer.
pub(super) struct Window {
    file: Box<dyn Bytes>,
    buffer: Vec<u8>,
    /// Offset in the file of the first byte in the buffer.
    start: u64,
    /// Number of valid bytes in the buffer.
    filled: usize,
}

impl Window {
    pub(super) fn new(file: Box<dyn Bytes>) -> Window {
        Window { file, buffer: Vec::new(), start: 0, filled: 0 }
    }

    /// The bytes from `offset` on: all that are in the buffer, and at least `length`
    /// unless the file ends earlier.
    pub(super) fn at(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let skip = match self.skip(offset) {
            Some(skip) if self.filled - skip >= length => skip,
            skip => {
                self.slide(offset, skip);
                self.fill(length)?;
                0
            }
        };
        Ok(&self.buffer[skip..self.filled])
    }

    /// Like [`Window::at`], for reading backward: the bytes before `offset` are read as
    /// well.
    pub(super) fn before(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let end = offset.saturating_add(length as u64);
        if offset < self.start || end > self.start.saturating_add(self.filled as u64) {
            let start = end.saturating_sub(CHUNK as u64).min(offset);
            let span = usize::try_from(end - start).unwrap_or(usize::MAX);
            self.at(start, span)?;
        }
        self.at(offset, length)
    }

    /// The bytes from `offset` on if at least `length` are in the buffer.
    pub(super) fn held(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.buffer[..self.filled].get(self.skip(offset)?..).filter(|held| held.len() >= length)
    }

    /// The first `N` bytes from `offset` on. The buffer stays as it is, even if
    /// `offset` is far away. `None` if the file ends earlier.
    pub(super) fn peek<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        if let Some(held) = self.held(offset, N) {
            return Ok(held.first_chunk().copied());
        }
        let mut bytes = [0; N];
        let mut read = 0;
        while read < N {
            match self.file.read_at(offset.saturating_add(read as u64), &mut bytes[read..])? {
                0 => return Ok(None),
                count => read += count,
            }
        }
        Ok(Some(bytes))
    }

    /// Frees the buffer until the next read.
    pub(super) fn release(&mut self) {
        (self.buffer, self.filled) = (Vec::new(), 0);
    }

    /// Current size of the file in bytes.
    pub(super) fn size(&mut self) -> io::Result<u64> {
        self.file.size()
    }

    /// Position of `offset` in the buffer, if it is there or directly after it.
    fn skip(&self, offset: u64) -> Option<usize> {
        let skip = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (skip <= self.filled).then_some(skip)
    }

    fn slide(&mut self, offset: u64, skip: Option<usize>) {
        match skip {
            Some(skip) => {
                self.buffer.copy_within(skip..self.filled, 0);
                self.filled -= skip;
                if self.buffer.len() < CHUNK {
                    self.buffer.resize((2 * self.buffer.len()).max(FIRST_CHUNK), 0);
                }
            }
            None => self.filled = 0,
        }
        self.start = offset;
    }

    fn fill(&mut self, length: usize) -> io::Result<()> {
        while self.filled < length {
            if self.filled == self.buffer.len() {
                // A record that is certainly there is read at once: each step would copy the bytes
                // of the step before.
                let at_once = if length <= TRUSTED_LENGTH { length + AHEAD } else { CHUNK };
                self.buffer.resize((self.buffer.len() * 2).max(FIRST_CHUNK).max(at_once), 0);
            }
            let offset = self.start.saturating_add(self.filled as u64);
            let end = length.saturating_add(AHEAD).max(CHUNK).min(self.buffer.len());
            let count = self.file.read_at(offset, &mut self.buffer[self.filled..end])?;
            if count == 0 {
                break;
            }
            self.filled += count;
        }
        Ok(())
    }

    /// True if the file has `length` bytes at `offset`. An absurd length is denied
    /// without reading, so a damaged length word does not pull the rest of the file
    /// into memory.
    pub(super) fn holds(&mut self, offset: u64, length: usize) -> io::Result<bool> {
        if length > TRUSTED_LENGTH {
            let end = offset.saturating_add(length as u64);
            if end > self.size()? {
                return Ok(false);
            }
        }
        Ok(self.at(offset, length)?.len() >= length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_slides_grows_and_jumps() {
        let bytes: Vec<u8> = (0..400_000u32).map(|i| (i % 251) as u8).collect();
        let mut window = Window::new(Box::new(std::sync::Arc::<[u8]>::from(bytes.as_slice())));
        for (offset, length) in
            [(0, 10), (5, 200_000), (100_000, 131_072), (399_990, 100), (3, 4), (500_000, 1)]
        {
            let expected = bytes.get(offset..).unwrap_or_default();
            let got = window.at(offset as u64, length).expect("memory does not fail");
            assert!(got.len() >= length.min(expected.len()), "{offset} {length}");
            assert_eq!(got, &expected[..got.len()]);
            let got = got.to_vec();
            assert_eq!(window.held(offset as u64, got.len()), Some(&got[..]));
            assert_eq!(window.held(offset as u64, got.len() + 1), None);
        }
        assert!(window.holds(0, 400_000).expect("memory does not fail"));
        assert!(!window.holds(1, 400_000).expect("memory does not fail"));
        assert!(!window.holds(1, usize::MAX).expect("memory does not fail"));
    }
}
