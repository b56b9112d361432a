//! The temporal index: hints for finding a time in the data volumes.
//!
//! | offset v2 | v3 | size  | field                  |
//! |-----------|----|-------|------------------------|
//! | 0         | 0  | 8, 12 | time stamp             |
//! | 8         | 12 | 4     | volume                 |
//! | 12        | 16 | 4, 8  | offset in the metadata |
//! | 16        | 24 | 4, 8  | offset in the volume   |
//!
//! Input: the index file, which has entries of fixed size after its label. Output:
//! entries that may be wrong. The caller must check the bytes at an entry's offset, because some
//! writers have put ends of records there, and worse.

use pmderive_core::model::{PmStatus, Timestamp};

use crate::archive::bytes::Window;
use crate::archive::framing::{Damage, Fields, ReadError, Version};
use crate::archive::label::{ArchiveLabel, Role};

/// One entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) stamp: Timestamp,
    pub(crate) volume: i32,
    /// Offset in the volume of the record with that time stamp.
    pub(crate) offset: u64,
    /// Size of the metadata file at that time, in bytes.
    pub(crate) metadata: u64,
}

/// Reads the label of an index. It must belong to the archive whose first data volume
/// has the label `first`.
fn read_label(window: &mut Window, first: &ArchiveLabel) -> Result<ArchiveLabel, ReadError> {
    let label = ArchiveLabel::read(window, Role::Index)?;
    label.belongs_to(first)?;
    Ok(label)
}

/// Fails unless an index begins as libpcp requires: with a good label and something
/// after it.
pub(super) fn check_index(window: &mut Window, first: &ArchiveLabel) -> Result<(), ReadError> {
    let behind = read_label(window, first)?.version.label_size() as u64;
    if window.at(behind, 1)?.is_empty() {
        let message = "there is nothing after the label";
        return Err(Damage::new(PmStatus::NODATA, behind, message).into());
    }
    Ok(())
}

/// The greatest number of entries that are kept. A writer makes one for each 100 kB of data and
/// for each change of the metadata, so only a false index has more.
const MAX_ENTRIES: usize = 1 << 20;

/// The greatest size in bytes of an index that is expanded: label and entries of version 3.
pub(super) const LARGEST_INDEX: u64 = 808 + 32 * MAX_ENTRIES as u64;

/// Reads the first [`MAX_ENTRIES`] entries of an index. An incomplete last entry is ignored.
pub(super) fn read_index(
    mut window: Window,
    first: &ArchiveLabel,
) -> Result<Vec<IndexEntry>, ReadError> {
    let version = read_label(&mut window, first)?.version;
    let mut reader = IndexReader::new(window, version, version.label_size() as u64);
    let mut entries = Vec::new();
    while entries.len() < MAX_ENTRIES
        && let Some(entry) = reader.next()?
    {
        entries.push(entry);
    }
    Ok(entries)
}

/// Reads the entries of an index one by one.
pub(super) struct IndexReader {
    window: Window,
    version: Version,
    next: u64,
}

impl IndexReader {
    /// Begins at the entry at offset `next`.
    pub(super) fn new(window: Window, version: Version, next: u64) -> IndexReader {
        IndexReader { window, version, next }
    }

    /// Offset of the next entry.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// The next entry. `None` at the end, and at an incomplete entry.
    pub(super) fn next(&mut self) -> Result<Option<IndexEntry>, ReadError> {
        let size = self.version.index_entry_size();
        let Some(bytes) = self.window.at(self.next, size)?.get(..size) else { return Ok(None) };
        let mut fields = Fields::new("index", bytes, self.next);
        let stamp = fields.timestamp(self.version, "stamp")?;
        let volume = fields.i32("volume")?;
        let (metadata, offset) = match self.version {
            Version::V2 => (fields.u32("metadata offset")?.into(), fields.u32("offset")?.into()),
            Version::V3 => (fields.u64("metadata offset")?, fields.u64("offset")?),
        };
        self.next += size as u64;
        Ok(Some(IndexEntry { stamp, volume, offset, metadata }))
    }

    /// Number of bytes after the last entry, if there are any.
    pub(super) fn rest(&mut self) -> Option<usize> {
        let rest = self.window.at(self.next, 1).ok()?.len();
        Some(rest).filter(|rest| *rest > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn entries_are_read_and_a_partial_one_is_not() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/archives/");
        for (name, size) in [("own-dyn", 32), ("own-dyn2", 20)] {
            let read = |suffix: &str| std::fs::read(format!("{path}{name}.{suffix}"));
            let bytes = read("index").expect("it is there");
            let window = |bytes: &[u8]| Window::new(Box::new(Arc::<[u8]>::from(bytes)));
            let label = ArchiveLabel::read(&mut window(&bytes), Role::Index).expect("good");
            let entries = read_index(window(&bytes), &label).expect("good");
            let first = label.version.label_size();
            assert_eq!(entries.len(), (bytes.len() - first) / size, "{name}");
            // The first entry is always the start of the first volume.
            let (stamp, offset) = (label.start, first as u64);
            let start = IndexEntry { stamp, volume: 0, offset, metadata: offset };
            assert_eq!(entries[0], start, "{name}");
            assert!(entries.is_sorted_by_key(|entry| entry.stamp), "{name}");
            let cut = read_index(window(&bytes[..bytes.len() - 1]), &label).expect("good");
            assert_eq!(cut, entries[..entries.len() - 1], "{name}");
            let other = ArchiveLabel { pid: label.pid + 1, ..label };
            assert!(read_index(window(&bytes), &other).is_err(), "{name}");
        }
    }
}
