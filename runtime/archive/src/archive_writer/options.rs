//! What is to be known of an archive before it is begun, and what of it does
//! not fit into the label of a version.

use super::WriteError;
use crate::archive::{ArchiveLabel, Version};
use pmderive_core::model::Timestamp;

/// What is to be known of an archive before it is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// Version of the format; version 2 for readers before PCP 6.
    pub version: Version,
    /// When recording begins: the time of the first record, or earlier.
    pub start: Timestamp,
    /// Host whose metrics are recorded; in version 2 up to 63 bytes, else 255.
    pub host: Box<str>,
    /// Time zone of that host, in the form of the `TZ` variable; in version 2
    /// up to 39 bytes, else 255.
    pub timezone: Box<str>,
    /// Time zone of that host by its place, such as `:Australia/Melbourne`, or
    /// nothing; up to 255 bytes. Version 2 leaves it out.
    pub zoneinfo: Box<str>,
    /// Process that records.
    pub pid: i32,
    /// Size in bytes that a data volume does not exceed, unless by a single
    /// record. `None` for no limit but that of version 2, of 2 GiB.
    pub volume_bytes: Option<u64>,
}

impl From<ArchiveLabel> for WriterOptions {
    /// As in the archive that has this label, but in one volume.
    fn from(label: ArchiveLabel) -> WriterOptions {
        let ArchiveLabel { version, pid, start, features: _, host, timezone, zoneinfo } = label;
        let pid = pid.cast_signed();
        WriterOptions { version, start, host, timezone, zoneinfo, pid, volume_bytes: None }
    }
}

impl WriterOptions {
    /// Checks that the texts of a label fit.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        let version = self.version;
        let sizes = version.label_texts();
        let texts = [
            ("the host name", &self.host, sizes.host),
            ("the time zone", &self.timezone, sizes.timezone),
            ("the place of the time zone", &self.zoneinfo, sizes.zoneinfo),
        ];
        for (what, text, size) in texts {
            // Version 2 leaves the last one out.
            let Some(limit) = size.checked_sub(1) else { continue };
            let length = text.len();
            if length > limit {
                return Err(WriteError::TooLong { what: what.to_owned(), length, limit, version });
            }
            if text.contains('\0') {
                let (what, text) = (what.to_owned(), text.to_string());
                return Err(WriteError::Text {
                    what,
                    text,
                    problem: "contains a NUL, which ends texts",
                });
            }
        }
        Ok(())
    }
}

impl Version {
    /// A time as it is stored: version 2 drops what is finer than a microsecond.
    pub(super) fn stored(self, time: Timestamp) -> Result<Timestamp, WriteError> {
        match self {
            Version::V3 => Ok(time),
            Version::V2 if i32::try_from(time.sec).is_err() => Err(WriteError::Year2038 { time }),
            Version::V2 => Ok(Timestamp { sec: time.sec, nsec: time.nsec / 1000 * 1000 }),
        }
    }
}
