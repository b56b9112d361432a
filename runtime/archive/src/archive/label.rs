//! The label: the first record of every file of an archive (`LOGARCHIVE(5)`).
//!
//! | offset v2 | v3  | size    | field                                            |
//! |-----------|-----|---------|--------------------------------------------------|
//! | 0         | 0   | 4       | length, 132 or 808                               |
//! | 4         | 4   | 4       | magic, its last byte is the version              |
//! | 8         | 8   | 4       | pid of the writer                                |
//! | 12        | 12  | 8, 12   | start                                            |
//! | 20        | 24  | 4       | volume; -1 for the metadata, -2 for the index    |
//! |           | 28  | 8       | feature bits, and a reserved word                |
//! | 24        | 36  | 64, 256 | host                                             |
//! | 88        | 292 | 40, 256 | time zone                                        |
//! |           | 548 | 256     | zoneinfo                                         |
//! | 128       | 804 | 4       | length                                           |
//!
//! This module checks that a label is that of its file's role. Only
//! [`ArchiveLabel::belongs_to`] compares it with another label.

use pmderive_core::model::{PmStatus, Timestamp, text_of_bytes, until_nul};

use crate::archive::bytes::Window;
use crate::archive::framing::{Damage, Fields, LENGTH_WORD, ReadError, Version};
use crate::archive::layout::{LabelTexts, MAGIC};

/// Feature bits that do not change how an archive is read. This one is for PCP's own
/// tests.
const HARMLESS_FEATURES: u32 = 0x8000_0000;

/// The label of an archive (`pmGetArchiveLabel(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveLabel {
    /// Version of the format.
    pub version: Version,
    /// Process identifier of the writer.
    pub pid: u32,
    /// Time when recording began.
    pub start: Timestamp,
    /// Feature bits; 0 in version 2.
    pub features: u32,
    /// Host whose metrics were recorded.
    pub host: Box<str>,
    /// Time zone of that host, in the form of the `TZ` variable.
    pub timezone: Box<str>,
    /// Time zone of that host as a place, such as `:Australia/Melbourne`; often empty.
    pub zoneinfo: Box<str>,
}

/// The kind of the file that a label belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A data volume with its number.
    Volume(i32),
    Metadata,
    Index,
}

impl Role {
    /// The number of this role in the label.
    pub(crate) const fn code(self) -> i32 {
        match self {
            Role::Volume(number) => number,
            Role::Metadata => -1,
            Role::Index => -2,
        }
    }
}

impl ArchiveLabel {
    /// Reads and checks the label at the start of a file. Records begin at
    /// [`Version::label_size`].
    pub(super) fn read(window: &mut Window, role: Role) -> Result<ArchiveLabel, ReadError> {
        // A damaged file may be readable up to the end of a short label only.
        let size = match window.at(0, 2 * LENGTH_WORD)?.get(2 * LENGTH_WORD - 1) {
            Some(3) => Version::V3.label_size(),
            _ => Version::V2.label_size(),
        };
        let bytes = window.at(0, size)?;
        if bytes.len() < 2 * LENGTH_WORD {
            let message = "the file is too short for a label";
            return Err(Damage::new(PmStatus::NODATA, 0, message).into());
        }
        ArchiveLabel::decode(bytes, role)
            .map_err(|damage| Damage { status: label_status(damage.status), ..damage }.into())
    }

    fn decode(bytes: &[u8], role: Role) -> Result<ArchiveLabel, Damage> {
        let mut fields = Fields::new("label", bytes, 0);
        let begin = fields;
        let length = fields.u32("length")?;
        let at_magic = fields;
        let magic = fields.u32("magic")?;
        let version = match magic {
            _ if magic & 0xffff_ff00 != MAGIC => {
                return Err(at_magic
                    .damage("magic", format_args!("{magic:#010x} is not that of an archive")));
            }
            _ if magic & 0xff == 2 => Version::V2,
            _ if magic & 0xff == 3 => Version::V3,
            _ => {
                let problem = format!("version {} is neither 2 nor 3", magic & 0xff);
                return Err(at_magic.damage("magic", problem));
            }
        };
        let size = version.label_size();
        if usize::try_from(length) != Ok(size) {
            return Err(begin.damage("length", format_args!("{length} instead of {size}")));
        }
        if bytes.len() < size {
            let problem = format!("{length}, but the file is shorter");
            return Err(begin.damage("length", problem));
        }
        let pid = fields.u32("pid")?;
        let start = fields.timestamp(version, "start")?;
        let at_volume = fields;
        let volume = fields.i32("volume")?;
        if volume != role.code() {
            let problem = format!("{volume} instead of {}", role.code());
            return Err(at_volume.damage("volume", problem));
        }
        let LabelTexts { host, timezone, zoneinfo } = version.label_texts();
        let features = match version {
            Version::V2 => 0,
            Version::V3 => {
                let at_features = fields;
                let features = fields.u32("features")?;
                if features & !HARMLESS_FEATURES != 0 {
                    let problem = format!("{features:#010x} has bits of unknown meaning");
                    let damage = at_features.damage("features", problem);
                    return Err(Damage { status: PmStatus::FEATURE, ..damage });
                }
                fields.u32("reserved")?;
                features
            }
        };
        let text = |bytes| text_of_bytes(until_nul(bytes)).into();
        let host = text(fields.take(host, "host")?);
        let timezone = text(fields.take(timezone, "timezone")?);
        let zoneinfo = text(fields.take(zoneinfo, "zoneinfo")?);
        let at_trailer = fields;
        let trailer = fields.u32("trailer")?;
        if trailer != length {
            return Err(at_trailer.damage("trailer", format_args!("{trailer} instead of {length}")));
        }
        Ok(ArchiveLabel { version, pid, start, features, host, timezone, zoneinfo })
    }

    /// Fails unless this label belongs to the archive whose first data volume has the
    /// label `first`. Start times may differ.
    pub(super) fn belongs_to(&self, first: &ArchiveLabel) -> Result<(), Damage> {
        let difference = if self.version != first.version {
            "version"
        } else if self.pid != first.pid {
            "pid"
        } else if self.host != first.host {
            "host"
        } else {
            return Ok(());
        };
        let message = format!("label.{difference}: differs from that of the first data volume");
        Err(Damage::new(PmStatus::LABEL, 0, message))
    }
}

/// To the caller, any problem inside a label is a bad label.
fn label_status(status: PmStatus) -> PmStatus {
    if status == PmStatus::LOGREC { PmStatus::LABEL } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::bytes::Bytes;
    use std::io::{self, Read};
    use std::sync::Arc;

    fn label_v2() -> Vec<u8> {
        let mut bytes = vec![0; 132];
        for (offset, word) in
            [(0, 132u32), (4, 0x5005_2602), (8, 77), (12, 1000), (16, 500), (20, 0), (128, 132)]
        {
            bytes[offset..offset + 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes[24..28].copy_from_slice(b"host");
        bytes[88..91].copy_from_slice(b"UTC");
        bytes
    }

    fn read(bytes: &[u8], role: Role) -> Result<ArchiveLabel, (PmStatus, String)> {
        let mut window = Window::new(Box::new(Arc::<[u8]>::from(bytes)));
        ArchiveLabel::read(&mut window, role).map_err(|error| {
            let error = error.in_file("f");
            (error.status(), error.to_string())
        })
    }

    #[test]
    fn a_good_label_is_read() {
        let label = read(&label_v2(), Role::Volume(0)).expect("it is good");
        assert_eq!(label.start, Timestamp::new(1000, 500_000));
        assert_eq!((&*label.host, &*label.timezone, label.pid), ("host", "UTC", 77));
    }

    /// A file that can only be read up to here.
    struct ReadableUpTo(Vec<u8>);

    impl Bytes for ReadableUpTo {
        fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.get(offset as usize..) {
                None | Some([]) => Err(io::Error::other("damaged")),
                Some(mut rest) => rest.read(buffer),
            }
        }

        fn size(&mut self) -> io::Result<u64> {
            Err(io::Error::other("damaged"))
        }
    }

    #[test]
    fn a_short_label_is_read_where_damage_follows() {
        let mut window = Window::new(Box::new(ReadableUpTo(label_v2())));
        ArchiveLabel::read(&mut window, Role::Volume(0)).expect("the label is good");
    }

    #[test]
    fn bad_labels_say_what_is_wrong() {
        let patched = |offset: usize, word: u32| {
            let mut bytes = label_v2();
            bytes[offset..offset + 4].copy_from_slice(&word.to_be_bytes());
            bytes
        };
        let cases = [
            (vec![0; 7], PmStatus::NODATA, "f: at byte 0: the file is too short for a label"),
            (patched(0, 131), PmStatus::LABEL, "f: at byte 0: label.length: 131 instead of 132"),
            (
                patched(4, 0x5005_2601),
                PmStatus::LABEL,
                "f: at byte 4: label.magic: version 1 is neither 2 nor 3",
            ),
            (
                patched(4, 1),
                PmStatus::LABEL,
                "f: at byte 4: label.magic: 0x00000001 is not that of an archive",
            ),
            (patched(20, 3), PmStatus::LABEL, "f: at byte 20: label.volume: 3 instead of 0"),
            (patched(128, 9), PmStatus::LABEL, "f: at byte 128: label.trailer: 9 instead of 132"),
            (
                label_v2()[..100].to_vec(),
                PmStatus::LABEL,
                "f: at byte 0: label.length: 132, but the file is shorter",
            ),
        ];
        for (bytes, status, message) in cases {
            assert_eq!(read(&bytes, Role::Volume(0)), Err((status, message.to_string())));
        }
        assert!(read(&label_v2(), Role::Metadata).is_err());
    }
}
