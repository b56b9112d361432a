//! Archives that tests write, with their metrics and values.

use pmderive_archive::archive::Version;
use pmderive_archive::archive_writer::WriterOptions;
use pmderive_core::model::Timestamp;

/// An archive of version 3 with one volume, of a host in UTC.
pub fn options(host: &str, start: Timestamp) -> WriterOptions {
    WriterOptions {
        version: Version::V3,
        start,
        host: host.into(),
        timezone: "UTC".into(),
        zoneinfo: "".into(),
        pid: 1,
        volume_bytes: None,
    }
}
