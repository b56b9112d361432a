//! Why an archive, or something in it, cannot be written.

use std::io;
use std::path::PathBuf;

use pmderive_core::escape;
use pmderive_core::model::{InDom, InstId, PmStatus, Pmid, Timestamp, UtcTime, ValueType};

use crate::archive::Version;

/// Something was not written. What had been written before is a readable
/// archive still, and writing can go on, except after [`WriteError::Unusable`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file with the name of one of this archive's exists. It is left alone.
    #[error("{} exists already; archives are never overwritten, so remove it or choose another name", escape::path(&path))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses. Of what was being written nothing is left in the file.
    #[error("{}: {source}", escape::path(&path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// An earlier failure left a part of a record behind that could not be taken away.
    #[error("{}: an earlier failure left half a record at its end, nothing more can be written", escape::path(&path))]
    Unusable {
        /// The file.
        path: PathBuf,
    },
    /// The file has reached the size that offsets of version 2 can express.
    #[error("{} is full: version 2 is limited to 2 GiB here; use version 3", escape::path(&path))]
    Full {
        /// The metadata or index.
        path: PathBuf,
    },
    /// [`super::ArchiveWriter::finish`] without a record; no file is left.
    #[error("{}: no record was written, so there is no archive", escape::path(&path))]
    Empty {
        /// Base name of the archive.
        path: PathBuf,
    },
    /// A point in time that the version has no room for.
    #[error("{} is out of reach of version 2, whose times end with {}; use version 3",
        UtcTime(*time), UtcTime(Timestamp { sec: i32::MAX.into(), nsec: 999_999_000 }))]
    Year2038 {
        /// What was given.
        time: Timestamp,
    },
    /// Time went backwards.
    #[error("{} comes after {}: archives are written in order of time", UtcTime(*time), UtcTime(*latest))]
    Backwards {
        /// What was given.
        time: Timestamp,
        /// The latest time so far, at first the archive's start.
        latest: Timestamp,
    },
    /// A text that has no room where it belongs.
    #[error("{what} is {length} bytes long; version {} has room for {limit}", version.number())]
    TooLong {
        /// What it is, such as `the host name`.
        what: String,
        /// Its length in bytes.
        length: usize,
        /// The most there may be.
        limit: usize,
        /// Version of the archive.
        version: Version,
    },
    /// A text that cannot be stored, or that nobody could look up.
    #[error("{what} {text:?} {problem}")]
    Text {
        /// What it is, such as `the name of metric 60.0.1`.
        what: String,
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A metric whose identifier no metric of an archive can have.
    #[error("{pmid} is no identifier for a metric of an archive; record a derived metric as {} (see logged_pmid)", super::logged_pmid(*pmid))]
    NotLogged {
        /// What was given.
        pmid: Pmid,
    },
    /// A value, text or set of labels of something that was not described before.
    #[error("{what} was not described before; call describe first")]
    NotDescribed {
        /// What it is, such as `metric 60.0.1`.
        what: String,
    },
    /// A metric was described differently before.
    #[error("metric {pmid} was described with another {field} before")]
    Redescribed {
        /// The metric.
        pmid: Pmid,
        /// `type`, `instance domain`, `semantics` or `units`.
        field: &'static str,
    },
    /// Another metric has the name.
    #[error("{name} is the name of metric {owner} and cannot be that of {pmid}")]
    NameTaken {
        /// The name.
        name: String,
        /// Whose it is.
        owner: Pmid,
        /// The metric that was to get it.
        pmid: Pmid,
    },
    /// A record without metrics, which would be a mark.
    #[error("there is no metric in the record of {}; where recording was interrupted, write a mark", UtcTime(*time))]
    NoMetrics {
        /// Time of the record.
        time: Timestamp,
    },
    /// The sets of one result were fetched at times that cannot stand in one record.
    #[error("metric {pmid} is twice in one record")]
    MetricTwice {
        /// The metric.
        pmid: Pmid,
    },
    /// A status that is no error.
    #[error("metric {pmid}: {code} is no status of a failure, those are negative")]
    Status {
        /// The metric.
        pmid: Pmid,
        /// What was given.
        code: i32,
    },
    /// A value that the descriptor does not allow.
    #[error("metric {pmid}, instance {instance}: {problem}, but its type is {value_type}")]
    ValueType {
        /// The metric.
        pmid: Pmid,
        /// The instance.
        instance: InstId,
        /// Type of the metric.
        value_type: ValueType,
        /// What the value is like.
        problem: String,
    },
    /// A value of a metric without instance domain that is not its only one.
    #[error(
        "metric {pmid} has no instance domain, so it has one value, of instance -1, not one of instance {instance}"
    )]
    NotSingular {
        /// The metric.
        pmid: Pmid,
        /// The instance.
        instance: InstId,
    },
    /// A value of an instance that has no name in its domain.
    #[error(
        "metric {pmid}: instance {instance} has no name in domain {indom} at this time; call instances first"
    )]
    UnknownInstance {
        /// The metric.
        pmid: Pmid,
        /// Its instance domain.
        indom: InDom,
        /// The instance.
        instance: InstId,
    },
    /// Two values of one instance.
    #[error("metric {pmid} has two values of instance {instance}")]
    InstanceTwice {
        /// The metric.
        pmid: Pmid,
        /// The instance.
        instance: InstId,
    },
    /// An identifier that no instance can have.
    #[error("instance domain {indom}: {instance} is no instance, those are not negative")]
    NegativeInstance {
        /// The domain.
        indom: InDom,
        /// What was given.
        instance: InstId,
    },
    /// Labels that cannot be stored.
    #[error("labels of {what}: {problem}")]
    Labels {
        /// Whose labels.
        what: String,
        /// What is wrong with them.
        problem: String,
    },
}

impl WriteError {
    /// What libpcp would return.
    pub fn status(&self) -> PmStatus {
        use rustix::io::Errno;
        let system = |errno: Errno| PmStatus(-errno.raw_os_error());
        match self {
            WriteError::Exists { .. } => system(Errno::EXIST),
            WriteError::Io { source, .. } => {
                source.raw_os_error().map_or(PmStatus::GENERIC, |code| PmStatus(-code))
            }
            WriteError::Unusable { .. } => PmStatus::LOGREC,
            WriteError::Full { .. } => system(Errno::FBIG),
            WriteError::Empty { .. } | WriteError::NoMetrics { .. } => PmStatus::NODATA,
            WriteError::NotDescribed { .. } => PmStatus::PMID_LOG,
            WriteError::NotLogged { .. } => PmStatus::PMID,
            WriteError::Redescribed { field, .. } => match *field {
                "type" => PmStatus::LOGCHANGETYPE,
                "instance domain" => PmStatus::LOGCHANGEINDOM,
                "semantics" => PmStatus::LOGCHANGESEM,
                _ => PmStatus::LOGCHANGEUNITS,
            },
            WriteError::NameTaken { .. } => PmStatus::NAME,
            WriteError::ValueType { .. } => PmStatus::TYPE,
            WriteError::UnknownInstance { .. } => PmStatus::INST_LOG,
            WriteError::NotSingular { .. }
            | WriteError::InstanceTwice { .. }
            | WriteError::NegativeInstance { .. } => PmStatus::INST,
            WriteError::TooLong { .. } => PmStatus::TOOBIG,
            WriteError::Year2038 { .. }
            | WriteError::Backwards { .. }
            | WriteError::Text { .. }
            | WriteError::MetricTwice { .. }
            | WriteError::Status { .. }
            | WriteError::Labels { .. } => system(Errno::INVAL),
        }
    }
}
