//! Archives in memory, kept as the list of all writes. The list shows the state of the disk if the
//! writer had stopped between two writes, or within one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pmderive_core::locks::lock;
use pmderive_core::source::SourceError;

use crate::archive::ArchiveContext;
use crate::archive::label::Role;
use crate::archive_writer::storage::{Storage, file_name};
use crate::archive_writer::{ArchiveWriter, WriteError, WriterOptions};

/// All writes of an [`ArchiveWriter`], in order.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(Arc<Mutex<Vec<Write>>>);

#[derive(Clone, Debug)]
struct Write {
    role: Role,
    /// The write creates the file.
    is_first: bool,
    bytes: Vec<u8>,
}

/// The files of an archive by name, each with its role and contents.
type Files = BTreeMap<PathBuf, (Role, Vec<u8>)>;

impl ArchiveWriter {
    /// Begins an archive in memory.
    ///
    /// # Errors
    /// As for [`ArchiveWriter::create`].
    pub fn in_memory(options: WriterOptions) -> Result<(ArchiveWriter, MemoryFiles), WriteError> {
        options.check()?;
        let written = MemoryFiles::default();
        Ok((ArchiveWriter::begin(Box::new(written.clone()), options)?, written))
    }
}

impl MemoryFiles {
    /// Sizes in bytes of all writes, and whether each created a file. A write that
    /// creates a file happens as a whole or not at all.
    pub fn sizes(&self) -> Vec<(usize, bool)> {
        self.with(|writes| writes.iter().map(|write| (write.bytes.len(), write.is_first)).collect())
    }

    /// Saves the files to a folder as they were after `writes` writes and `bytes` bytes
    /// of the next write.
    ///
    /// # Errors
    /// The system cannot write a file.
    pub fn save(&self, base: &Path, writes: usize, bytes: usize) -> std::io::Result<()> {
        for (name, (_, contents)) in self.files(base, writes, bytes) {
            std::fs::write(name, contents)?;
        }
        Ok(())
    }

    /// Opens the archive as it was after `writes` writes and `bytes` bytes of the next
    /// write.
    ///
    /// # Errors
    /// As for [`ArchiveContext::open`].
    pub fn open(&self, writes: usize, bytes: usize) -> Result<ArchiveContext, SourceError> {
        let (mut metadata, mut index, mut volumes) = (Vec::new(), None, Vec::new());
        for (role, contents) in self.files(Path::new(""), writes, bytes).into_values() {
            match role {
                Role::Metadata => metadata = contents,
                Role::Index => index = Some(contents),
                Role::Volume(number) => volumes.push((number, contents)),
            }
        }
        volumes.sort_by_key(|(number, _)| *number);
        ArchiveContext::of_bytes(&metadata, index.as_deref(), &volumes)
    }

    fn files(&self, base: &Path, writes: usize, bytes: usize) -> Files {
        let mut files = Files::new();
        self.with(|done| {
            for (number, write) in done.iter().take(writes.saturating_add(1)).enumerate() {
                let kept = if number < writes { write.bytes.len() } else { bytes };
                if kept > 0 {
                    let file = files.entry(file_name(base, write.role));
                    let (_, contents) = file.or_insert((write.role, Vec::new()));
                    contents.extend_from_slice(&write.bytes[..kept.min(write.bytes.len())]);
                }
            }
        });
        files
    }

    fn with<T>(&self, use_of: impl FnOnce(&mut Vec<Write>) -> T) -> T {
        use_of(&mut lock(&self.0))
    }

    fn add(&self, role: Role, is_first: bool, bytes: &[u8]) {
        self.with(|writes| writes.push(Write { role, is_first, bytes: bytes.to_vec() }));
    }
}

impl Storage for MemoryFiles {
    fn create(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError> {
        self.add(role, true, bytes);
        Ok(())
    }

    fn append(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError> {
        self.add(role, false, bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    fn discard(&mut self) -> Result<(), WriteError> {
        self.with(Vec::clear);
        Ok(())
    }

    fn path(&self, role: Role) -> PathBuf {
        file_name(Path::new("memory"), role)
    }
}
