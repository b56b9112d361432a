//! The time of an archive's last record (`pmGetArchiveEnd(3)`).
//!
//! In: the data volumes and the index. Out: the stamp of the last record that
//! is complete and sound, marks included. The position of a context is not
//! involved: volumes are opened anew.

use crate::archive::files::ArchiveFiles;
use crate::archive::index::IndexEntry;
use crate::archive::volume::Volume;
use crate::archive::volumes::open_volume;
use crate::model::{PmStatus, Timestamp};
use crate::source::SourceError;

/// Finds the end of an archive: backward from the end of its last volume, or,
/// where that is damaged, forward from the last entry of the index.
pub(super) fn end_time(
    files: &ArchiveFiles,
    index: &[IndexEntry],
) -> Result<Timestamp, SourceError> {
    for position in (0..files.volumes.len()).rev() {
        let Ok((mut volume, ..)) = open_volume(files, position) else {
            continue;
        };
        // The size of a damaged compressed volume is unknown: that is read forward.
        let size = volume.size().unwrap_or(0);
        if let Some(record) = volume.sound_record_before(size) {
            return Ok(record.stamp);
        }
        let number = files.volumes[position].0;
        let start = start_before(&mut volume, number, size, index);
        volume.seek(start);
        let mut last = None;
        while let Some(record) = volume.next_sound() {
            last = Some(record.stamp);
        }
        if let Some(stamp) = last {
            return Ok(stamp);
        }
    }
    Err(SourceError::Damaged {
        target: files.base.display().to_string(),
        status: PmStatus::LOGREC,
        message: "no data volume holds a complete record".to_string(),
    })
}

/// Where to begin reading forward: at the record before the last entry of the
/// index that lies within the volume, since entries may mean ends of records;
/// without such a record at the first one.
fn start_before(volume: &mut Volume, number: i32, size: u64, index: &[IndexEntry]) -> u64 {
    index
        .iter()
        .rfind(|entry| entry.volume == number && entry.offset <= size)
        .and_then(|entry| volume.sound_record_before(entry.offset))
        .map_or(volume.first_offset(), |record| record.offset)
}
