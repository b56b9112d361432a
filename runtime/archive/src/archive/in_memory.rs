//! An archive whose files are bytes in memory, for tests and fuzzing.

use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::source::SourceError;

use crate::archive::context::ArchiveContext;
use crate::archive::files::{ArchiveFiles, Member};

impl ArchiveContext {
    /// Opens the archive with these files; volumes come with their numbers,
    /// ascending, and there is at least one.
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
