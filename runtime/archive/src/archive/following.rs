//! The progress of a context that follows a growing archive.

use std::collections::HashSet;
use std::path::PathBuf;

use pmderive_core::model::Timestamp;

use crate::archive::sequence::{Place, Sequence};

/// State of a context that follows its archive.
pub(super) struct Following {
    /// Reads ahead of the context. Its position is after the last record that counts.
    pub(super) scout: Sequence,
    pub(super) last_counted: Place,
    /// Latest time of a record that counts; `None` if there is no such record.
    pub(super) end: Option<Timestamp>,
    /// The record that does not count yet because its metadata are missing, and the
    /// number of records after it when it was last looked at.
    pub(super) held: Option<(Place, usize)>,
    /// Archives of the directory that are no continuation of the last one, by their base
    /// names.
    pub(super) no_continuation: HashSet<PathBuf>,
    /// The file of the last volume is gone or another one, so nothing will be appended.
    pub(super) is_over: bool,
}
