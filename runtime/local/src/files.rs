//! Access to the files below /proc and /sys, or below a recorded tree.
//!
//! One buffer serves all files. This module also numbers the fetches, which
//! tells each reader whether its data is of the current fetch. The readers
//! interpret the files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Largest number of bytes to read of a file. The longest real files,
/// /proc/cpuinfo and /proc/stat of machines with thousands of processors, stay
/// below it.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The root of the tree, and the buffer that its files are read into.
pub(super) struct Files {
    root: PathBuf,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Contents that every file has, in place of those in the tree.
    #[cfg(any(test, feature = "fuzz"))]
    substitute: Option<Vec<u8>>,
    fetch: u64,
}

impl Files {
    /// Files below `root`.
    pub fn new(root: PathBuf) -> Files {
        Files {
            root,
            path: PathBuf::new(),
            buffer: Vec::new(),
            #[cfg(any(test, feature = "fuzz"))]
            substitute: None,
            fetch: 1,
        }
    }

    /// The root of the tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes every file exist and hold `contents` from now on.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn substitute(&mut self, contents: Vec<u8>) {
        self.substitute = Some(contents);
    }

    /// Begins a fetch: earlier readings are out of date.
    pub fn begin(&mut self) {
        self.fetch += 1;
    }

    /// The path below the root for an absolute path, given as bytes.
    pub fn path(&self, absolute: &[u8]) -> PathBuf {
        let slashes = absolute.iter().take_while(|byte| **byte == b'/').count();
        self.root.join(OsStr::from_bytes(&absolute[slashes..]))
    }

    /// The contents of a file, named relative to the root. `None` if it cannot
    /// be read.
    pub fn read(&mut self, name: &str) -> Option<&[u8]> {
        #[cfg(any(test, feature = "fuzz"))]
        if let Some(contents) = &self.substitute {
            return Some(contents);
        }
        self.path.clear();
        self.path.push(&self.root);
        self.path.push(name);
        self.buffer.clear();
        let file = File::open(&self.path).ok()?;
        file.take(MAX_FILE_BYTES).read_to_end(&mut self.buffer).ok()?;
        Some(&self.buffer)
    }
}

/// Remembers the fetch in which something was read.
#[derive(Debug, Default)]
pub(super) struct ReadMark(u64);

impl ReadMark {
    /// True once per fetch: the marked data has to be read.
    pub fn is_due(&mut self, files: &Files) -> bool {
        let due = self.0 != files.fetch;
        self.0 = files.fetch;
        due
    }
}
