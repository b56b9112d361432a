//! The metadata files of the archives of a context, for reading records again.
//!
//! Input: files in order of their archives, and places in them. Output: the bytes
//! there. Only the file that was read last is open, so that a thousand
//! archives cost no more than one. What the bytes mean is not known here.

use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::Member;
use crate::archive::record::ReadError;

/// Where a record of the metadata stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPlace {
    /// Position of its file.
    pub(super) file: u32,
    /// Offset in the file of its first byte, or of the part that is wanted.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: usize,
}

/// Metadata files.
#[derive(Default)]
pub(super) struct MetadataFiles {
    members: Vec<Member>,
    /// The file that is open.
    open: Option<(u32, Window)>,
}

impl MetadataFiles {
    /// Position of the file that is added next.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// Adds a file that is open.
    pub(super) fn add(&mut self, member: &Member, window: Window) {
        self.open = Some((self.count(), window));
        self.members.push(member.clone());
    }

    /// Name of a file for messages.
    pub(super) fn name(&self, file: u32) -> String {
        self.members.get(file as usize).map(Member::name).unwrap_or_default()
    }

    /// Adds the name of a file to an error.
    pub(super) fn failed(&self, file: u32, error: impl Into<ReadError>) -> SourceError {
        error.into().in_file(&self.name(file))
    }

    /// A file, open.
    pub(super) fn window(&mut self, file: u32) -> Result<&mut Window, SourceError> {
        let window = match self.open.take() {
            Some((open, window)) if open == file => window,
            _ => {
                let opened = self.members[file as usize].open();
                Window::new(opened.map_err(|error| self.failed(file, error))?)
            }
        };
        Ok(&mut self.open.insert((file, window)).1)
    }

    /// The bytes at a place; fewer where the file became shorter.
    pub(super) fn at(&mut self, place: RecordPlace) -> Result<&[u8], SourceError> {
        let RecordPlace { file, offset, length } = place;
        // Read before it is looked at: an error needs the name of the file.
        if let Err(error) = self.window(file)?.at(offset, length) {
            return Err(self.failed(file, error));
        }
        let bytes = self.window(file)?.at(offset, length).unwrap_or_default();
        Ok(&bytes[..length.min(bytes.len())])
    }
}
