//! Numbers of the format that both reader and writer use (`LOGARCHIVE(5)`) and that
//! belong to no single kind of record.

use crate::archive::framing::Version;

/// The magic word of a label without its last byte, the version.
pub(crate) const MAGIC: u32 = 0x5005_2600;

/// Type of a metadata record: descriptor and names of a metric.
pub(crate) const DESC: u32 = 1;
/// Type of a metadata record: all instances of a domain, version 2.
pub(crate) const INSTANCES_V2: u32 = 2;
/// Type of a metadata record: labels, version 2.
pub(crate) const LABELS_V2: u32 = 3;
/// Type of a metadata record: a help text.
pub(crate) const TEXT: u32 = 4;
/// Type of a metadata record: all instances of a domain, version 3.
pub(crate) const INSTANCES: u32 = 5;
/// Type of a metadata record: instances that came and went, version 3.
pub(crate) const INSTANCES_DELTA: u32 = 6;
/// Type of a metadata record: labels, version 3.
pub(crate) const LABELS: u32 = 7;

/// Sizes in bytes of the texts in a label. Each includes the terminating NUL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelTexts {
    pub(crate) host: usize,
    pub(crate) timezone: usize,
    /// 0 if the version has no such field.
    pub(crate) zoneinfo: usize,
}

impl Version {
    /// The number in the last byte of the magic word.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Version::V2 => 2,
            Version::V3 => 3,
        }
    }

    /// Sizes of the texts in a label.
    pub(crate) const fn label_texts(self) -> LabelTexts {
        match self {
            Version::V2 => LabelTexts { host: 64, timezone: 40, zoneinfo: 0 },
            Version::V3 => LabelTexts { host: 256, timezone: 256, zoneinfo: 256 },
        }
    }

    /// Size of an entry of the index in bytes.
    pub(crate) const fn index_entry_size(self) -> usize {
        match self {
            Version::V2 => 20,
            Version::V3 => 32,
        }
    }
}
