//! The options of a new archive, and the check that they fit into its label.

use super::WriteError;
use super::error::invalid;
use crate::archive::{ArchiveLabel, Version};
use pmderive_core::model::{Timestamp, UtcTime};

/// The facts that the writer needs before it begins an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// Version of the format. Readers before PCP 6 need version 2.
    pub version: Version,
    /// Start of the recording: the time of the first record, or earlier.
    pub start: Timestamp,
    /// Host whose metrics are recorded: up to 63 bytes in version 2, 255 in version 3.
    pub host: Box<str>,
    /// Time zone of that host, as in the `TZ` variable: up to 39 bytes in version 2,
    /// 255 in version 3.
    pub timezone: Box<str>,
    /// Place of that time zone, such as `:Australia/Melbourne`, or empty: up to 255
    /// bytes. Version 2 does not store it.
    pub zoneinfo: Box<str>,
    /// Identifier of the recording process.
    pub pid: i32,
    /// Maximum size of a data volume in bytes. Only a volume of a single record may
    /// exceed it. `None`: no limit, except for 2 GiB in version 2.
    pub volume_bytes: Option<u64>,
}

impl From<ArchiveLabel> for WriterOptions {
    /// The options of the archive that has this label, with one volume.
    fn from(label: ArchiveLabel) -> WriterOptions {
        let ArchiveLabel { version, pid, start, features: _, host, timezone, zoneinfo } = label;
        let pid = pid.cast_signed();
        WriterOptions { version, start, host, timezone, zoneinfo, pid, volume_bytes: None }
    }
}

impl WriterOptions {
    /// Checks that the texts fit into the label.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        let version = self.version;
        let sizes = version.label_texts();
        let texts = [
            ("the host name", &self.host, sizes.host),
            ("the time zone", &self.timezone, sizes.timezone),
            ("the place of the time zone", &self.zoneinfo, sizes.zoneinfo),
        ];
        for (what, text, size) in texts {
            // Version 2 has no room for `zoneinfo`.
            let Some(limit) = size.checked_sub(1) else { continue };
            let length = text.len();
            if length > limit {
                return Err(WriteError::too_long(what, length, limit, version));
            }
            if text.contains('\0') {
                return Err(WriteError::text(what, text, "contains a NUL, which ends texts"));
            }
        }
        Ok(())
    }
}

impl Version {
    /// The time as the archive stores it. Version 2 truncates it to microseconds.
    pub(super) fn stored(self, time: Timestamp) -> Result<Timestamp, WriteError> {
        match self {
            Version::V3 => Ok(time),
            Version::V2 if i32::try_from(time.sec).is_err() => {
                let first = Timestamp { sec: i32::MIN.into(), nsec: 0 };
                let last = Timestamp { sec: i32::MAX.into(), nsec: 999_999_000 };
                let [time, first, last] = [time, first, last].map(UtcTime);
                let problem = format!(
                    "{time} is out of reach of version 2, whose times go from {first} to {last}; \
                     use version 3"
                );
                Err(WriteError::misuse(invalid(), problem))
            }
            Version::V2 => Ok(Timestamp { sec: time.sec, nsec: time.nsec / 1000 * 1000 }),
        }
    }
}
