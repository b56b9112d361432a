//! Appends encoded records to the files of an archive. This module decides which file
//! and volume a record goes to, when a new volume begins, and when the index gets an
//! entry.

use super::encode;
use super::{ArchiveWriter, WriteError};
use crate::archive::Version;
use crate::archive::index::IndexEntry;
use crate::archive::label::Role;
use pmderive_core::model::Timestamp;

/// The index gets an entry after this many bytes of data.
const INDEX_EVERY: u64 = 100_000;

/// Maximum size of a file of version 2.
const V2_FILE: u64 = i32::MAX as u64;

impl ArchiveWriter {
    /// Appends the metadata record in the buffer. `encoded` is the outcome of encoding
    /// it; an error holds a length that is too long. `what` names the record for the
    /// message.
    pub(super) fn append_metadata(
        &mut self,
        encoded: Result<(), usize>,
        what: impl FnOnce() -> String,
    ) -> Result<(), WriteError> {
        let version = self.options.version;
        encoded
            .map_err(|length| WriteError::too_long(&what(), length, i32::MAX as usize, version))?;
        let size = self.metadata_size + self.bytes.len() as u64;
        if version == Version::V2 && size > V2_FILE {
            return Err(WriteError::Full { path: self.storage.path(Role::Metadata) });
        }
        self.storage.append(Role::Metadata, &self.bytes)?;
        self.metadata_size = size;
        Ok(())
    }

    /// Appends the encoded data record, then an index entry if one is due. A new volume
    /// begins when the present one is full.
    pub(super) fn append_data(&mut self, time: Timestamp) -> Result<(), WriteError> {
        let version = self.options.version;
        let label_size = version.label_size() as u64;
        let length = self.data.record.len() as u64;
        let limit = match (version, self.options.volume_bytes) {
            (Version::V2, limit) => limit.map_or(V2_FILE, |limit| limit.min(V2_FILE)),
            (Version::V3, limit) => limit.unwrap_or(u64::MAX),
        };
        let (volume, offset) = match self.volume {
            Some((number, size)) if size + length <= limit => {
                self.storage.append(Role::Volume(number), &self.data.record)?;
                (number, size)
            }
            full => {
                if version == Version::V2 && label_size + length > V2_FILE {
                    let (length, limit) = (length as usize, (V2_FILE - label_size) as usize);
                    return Err(WriteError::too_long("the data record", length, limit, version));
                }
                let number = full.map_or(0, |(number, _)| number.saturating_add(1));
                let mut bytes = encode::label(&self.options, Role::Volume(number));
                bytes.extend_from_slice(&self.data.record);
                self.storage.create(Role::Volume(number), &bytes)?;
                (number, label_size)
            }
        };
        self.volume = Some((volume, offset + length));
        self.latest = time;
        let entry = IndexEntry { stamp: time, volume, metadata: self.metadata_size, offset };
        self.last = Some(entry);
        // The index comes last, because it is the only file that readers can do without.
        if self.index_size == 0 {
            self.create_index()?;
        }
        let is_due = self.domain_changed
            || volume != self.indexed.volume
            || offset - self.indexed.offset >= INDEX_EVERY;
        // Readers could find only the later one of two entries with the same time.
        if is_due && time > self.indexed.stamp {
            self.append_index(entry)?;
        }
        Ok(())
    }

    /// Creates the index, with an entry for the start of the archive.
    fn create_index(&mut self) -> Result<(), WriteError> {
        let mut bytes = encode::label(&self.options, Role::Index);
        encode::index_entry(&mut bytes, self.options.version, self.indexed);
        self.storage.create(Role::Index, &bytes)?;
        self.index_size = bytes.len() as u64;
        Ok(())
    }

    /// Appends an entry of the index.
    pub(super) fn append_index(&mut self, entry: IndexEntry) -> Result<(), WriteError> {
        if self.index_size == 0 {
            self.create_index()?;
        }
        let version = self.options.version;
        let size = self.index_size + version.index_entry_size() as u64;
        if version == Version::V2 && size > V2_FILE {
            return Err(WriteError::Full { path: self.storage.path(Role::Index) });
        }
        self.bytes.clear();
        encode::index_entry(&mut self.bytes, version, entry);
        self.storage.append(Role::Index, &self.bytes)?;
        self.index_size = size;
        self.indexed = entry;
        self.domain_changed = false;
        Ok(())
    }
}
