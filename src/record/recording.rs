//! The input of a recording: its source, its metrics, and the archive to write.

use std::path::PathBuf;

use pmderive_runtime::archive::Version;
use pmderive_runtime::model::{Pmid, Timestamp};

use super::label::Origin;

/// The input of a recording, and the archive to write.
#[derive(Debug)]
pub struct Recording<S> {
    /// Base name of the archive; none of its files may exist.
    pub base: PathBuf,
    /// Version of the archive.
    pub version: Version,
    /// Size in bytes at which the next volume begins.
    pub volume_bytes: Option<u64>,
    /// The origin of the values, for the label.
    pub origin: Origin,
    /// Metrics, and nodes of the name space that stand for all metrics below
    /// them.
    pub names: Vec<Box<str>>,
    /// True to record the operands of derived metrics too.
    pub with_operands: bool,
    /// The last time to record.
    pub end: Option<Timestamp>,
    /// True if the source is an archive, which knows instances at any time.
    pub is_archive: bool,
    /// Times at which labels of an archive change, in order.
    pub label_times: Vec<Timestamp>,
    /// Facts about the records of an archive that is read record by record.
    pub records: Option<Records<S>>,
}

/// Facts about the records of an archive that is the source.
#[derive(Debug)]
pub struct Records<S> {
    /// Tells whether the record that was fetched last has a metric, even without values.
    /// Metrics that a record lacks are not recorded.
    pub holds: fn(&mut S, Pmid) -> bool,
    /// The time of the last mark.
    pub last_mark: fn(&mut S) -> Option<Timestamp>,
}

impl<S> Clone for Records<S> {
    fn clone(&self) -> Records<S> {
        *self
    }
}

impl<S> Copy for Records<S> {}
