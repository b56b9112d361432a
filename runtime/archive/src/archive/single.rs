//! One archive of a context: its files, its label, its index and its end.
//!
//! Input: the files. Output: facts about the archive that do not depend on a reader.
//! Nothing stays open here.

use std::sync::OnceLock;

use pmderive_core::escape;
use pmderive_core::model::{PmStatus, Timestamp};
use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::ArchiveFiles;
use crate::archive::framing::{Damage, ReadError};
use crate::archive::index::{IndexEntry, check_index, read_index};
use crate::archive::label::ArchiveLabel;
use crate::archive::positions::VolumeId;
use crate::archive::volume::open_volume;

/// An archive.
#[derive(Clone, Debug)]
pub(super) struct SingleArchive {
    pub(super) files: ArchiveFiles,
    /// The label of the first data volume.
    pub(super) label: ArchiveLabel,
    /// Entries of the index, read on first use.
    index: OnceLock<Box<[IndexEntry]>>,
}

impl SingleArchive {
    pub(super) fn new(files: ArchiveFiles, label: ArchiveLabel) -> SingleArchive {
        SingleArchive { files, label, index: OnceLock::new() }
    }

    /// Name for messages: the path without suffixes.
    pub(super) fn name(&self) -> String {
        escape::path(&self.files.base).into_owned()
    }

    /// The entries of the index. An index that is missing, damaged or of another
    /// archive counts as empty, because all it can do is save time.
    pub(super) fn index(&self) -> &[IndexEntry] {
        self.index.get_or_init(|| {
            let entries = self.files.index.as_ref().and_then(|member| {
                let window = Window::new(member.open().ok()?);
                read_index(window, &self.label).ok()
            });
            entries.unwrap_or_default().into()
        })
    }

    /// The entries of the index that lead to a volume.
    pub(super) fn entries_of(&self, at: VolumeId) -> impl DoubleEndedIterator<Item = &IndexEntry> {
        let number = self.files.volumes[at.index()].0;
        self.index().iter().filter(move |entry| entry.volume == number)
    }

    /// The first entry of the index that cannot be right. Then the index says nothing about
    /// missing volumes.
    pub(super) fn fault_of_index(&self) -> Option<SourceError> {
        let member = self.files.index.as_ref()?;
        let metadata = &self.files.metadata;
        let size = metadata.open().and_then(|mut metadata| metadata.size()).unwrap_or(u64::MAX);
        let mut before = 0;
        for (number, entry) in (0..).zip(self.index()) {
            let fault = if entry.volume < before {
                format!("volume {} after volume {before}", entry.volume)
            } else if entry.metadata > size {
                format!("{} bytes of metadata, which have {size}", entry.metadata)
            } else {
                before = entry.volume;
                continue;
            };
            let message = format!("index: an entry with {fault}, so it is damaged");
            let version = self.label.version;
            let (label, entries) = (version.label_size() as u64, version.index_entry_size() as u64);
            let damage = Damage::new(PmStatus::LOGREC, label + number * entries, message);
            return Some(ReadError::from(damage).in_file(&member.name()));
        }
        None
    }

    /// Fails if libpcp refuses the archive because of its index.
    ///
    /// # Errors
    /// `PM_ERR_LABEL` or `PM_ERR_NODATA` if the file does not begin like an index of
    /// this archive.
    pub(super) fn check_index(&self) -> Result<(), SourceError> {
        let Some(member) = &self.files.index else { return Ok(()) };
        let opened = member.open().map_err(ReadError::Io);
        match opened.and_then(|opened| check_index(&mut Window::new(opened), &self.label)) {
            Err(ReadError::Damage(damage)) => Err(ReadError::from(damage).in_file(&member.name())),
            // An index that cannot be read is a missing one, also to libpcp.
            Ok(()) | Err(ReadError::Io(_)) => Ok(()),
        }
    }

    /// Time of the last complete and sound record, marks included
    /// (`pmGetArchiveEnd(3)`). It is found backward from the end of the last volume. If
    /// that end is damaged, it is found forward from the last entry of the index.
    pub(super) fn end_time(&self) -> Result<Timestamp, SourceError> {
        self.last_time(false)
    }

    /// The same time as libpcp finds it. Without an entry of the index, libpcp does not
    /// read forward. It stops at the first damage there, and it finds no end if the record
    /// before the entry is damaged.
    pub(super) fn indexed_end_time(&self) -> Result<Timestamp, SourceError> {
        self.last_time(true)
    }

    /// Time of the last sound record. If the end of a volume is damaged, the volume is
    /// read forward.
    fn last_time(&self, as_libpcp: bool) -> Result<Timestamp, SourceError> {
        let mut files = self.files.clone();
        files.volumes.extend(std::iter::successors(self.files.next_volume(), |(last, _)| {
            self.files.volume_after(*last)
        }));
        for at in files.volume_ids().rev() {
            let Ok((mut volume, ..)) = open_volume(&files, at) else {
                continue;
            };
            // The size of a damaged compressed volume is unknown, so it is read
            // forward.
            let size = volume.size().unwrap_or(0);
            if let Some(record) = volume.sound_record_before(size) {
                return Ok(record.stamp);
            }
            let number = files.volumes[at.index()].0;
            // Entries may point at the ends of records.
            let entry = self.index().iter().rfind(|one| one.volume == number && one.offset <= size);
            let record = entry.and_then(|entry| volume.sound_record_before(entry.offset));
            let first = volume.first_offset();
            match entry.map_or(0, |entry| entry.offset) {
                _ if !as_libpcp => {}
                0 => continue,
                offset if offset > first && record.is_none() => break,
                _ => {}
            }
            volume.seek(record.map_or(first, |record| record.offset));
            let mut last = None;
            loop {
                let before = volume.position();
                match volume.next_sound() {
                    Some(record) => last = Some(record.stamp),
                    // A damaged record was passed.
                    None if !as_libpcp && volume.position() != before => {}
                    None => break,
                }
            }
            if let Some(stamp) = last {
                return Ok(stamp);
            }
        }
        Err(SourceError::Damaged {
            target: self.name(),
            status: PmStatus::LOGREC,
            message: "no data volume holds a complete record".to_string(),
        })
    }
}
