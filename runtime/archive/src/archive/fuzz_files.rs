//! Archives with files in memory, for tests and fuzzing.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::escape;
use pmderive_core::source::SourceError;

use crate::archive::bytes::Bytes;
use crate::archive::context::ArchiveContext;
use crate::archive::files::{ArchiveFiles, Member};
use crate::archive::options::OpenOptions;
use crate::archive::resolve::NamedArchive;

impl ArchiveContext {
    /// Opens an archive with known files.
    pub(super) fn from_files(files: ArchiveFiles) -> Result<ArchiveContext, SourceError> {
        let name = files.base.clone();
        let shown = escape::path(&name).into_owned();
        ArchiveContext::of(
            shown,
            vec![NamedArchive { name, files: Ok(files) }],
            OpenOptions::default(),
        )
    }

    /// Opens an archive with these files. There must be at least one volume; volumes
    /// are in ascending order of their numbers.
    pub(crate) fn of_bytes(
        metadata: &[u8],
        index: Option<&[u8]>,
        volumes: &[(i32, Vec<u8>)],
    ) -> Result<ArchiveContext, SourceError> {
        let member = |name, bytes: &[u8]| Member::Memory { name, bytes: Arc::from(bytes) };
        let volumes = volumes.iter();
        ArchiveContext::from_files(ArchiveFiles {
            base: PathBuf::from("memory"),
            metadata: member("memory.meta", metadata),
            index: index.map(|bytes| member("memory.index", bytes)),
            volumes: volumes.map(|(n, bytes)| (*n, member("memory.volume", bytes))).collect(),
        })
    }
}

impl Bytes for Arc<[u8]> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn size(&mut self) -> io::Result<u64> {
        Ok(u64::try_from(self.len()).unwrap_or(u64::MAX))
    }
}
