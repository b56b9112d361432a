//! The metadata files of a context's archives, to read their records again.
//!
//! Input: files in the order of their archives, and places in them. Output: the bytes
//! there. Only the file that was read last is open, so a thousand archives need no more
//! than one.

use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::Member;
use crate::archive::framing::ReadError;
use crate::archive::positions::MetadataFileId;

/// The place of a record, or of a part of one, in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPlace {
    /// The file.
    pub(super) file: MetadataFileId,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: usize,
}

/// All metadata files of a context.
#[derive(Default)]
pub(super) struct MetadataFiles {
    members: Vec<Member>,
    /// The file that is open.
    open: Option<(MetadataFileId, Window)>,
}

impl MetadataFiles {
    /// Position of the file that is added next.
    pub(super) fn next(&self) -> MetadataFileId {
        MetadataFileId::at(self.members.len())
    }

    /// The same files, none of them open.
    pub(super) fn separate(&self) -> MetadataFiles {
        MetadataFiles { members: self.members.clone(), open: None }
    }

    /// Adds a file that is open.
    pub(super) fn add(&mut self, member: &Member, window: Window) {
        self.open = Some((self.next(), window));
        self.members.push(member.clone());
    }

    /// Name of a file, for messages.
    pub(super) fn name(&self, file: MetadataFileId) -> String {
        self.members.get(file.index()).map(Member::name).unwrap_or_default()
    }

    /// Adds the name of a file to an error.
    pub(super) fn failed(&self, file: MetadataFileId, error: impl Into<ReadError>) -> SourceError {
        error.into().in_file(&self.name(file))
    }

    /// Opens a file unless it is open.
    pub(super) fn window(&mut self, file: MetadataFileId) -> Result<&mut Window, SourceError> {
        let window = match self.open.take() {
            Some((open, window)) if open == file => window,
            _ => {
                let opened = self.members[file.index()].open();
                Window::new(opened.map_err(|error| self.failed(file, error))?)
            }
        };
        Ok(&mut self.open.insert((file, window)).1)
    }

    /// The bytes at a place; fewer if the file has become shorter.
    pub(super) fn at(&mut self, place: RecordPlace) -> Result<&[u8], SourceError> {
        let RecordPlace { file, offset, length } = place;
        // The bytes are read twice because an error needs the name of the file, which
        // the borrow of the first reading would block.
        if let Err(error) = self.window(file)?.at(offset, length) {
            return Err(self.failed(file, error));
        }
        let bytes = self.window(file)?.at(offset, length).unwrap_or_default();
        Ok(&bytes[..length.min(bytes.len())])
    }
}
