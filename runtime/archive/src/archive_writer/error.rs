//! Why an archive, or a part of it, cannot be written.

use std::io;
use std::path::PathBuf;

use pmderive_core::escape;
use pmderive_core::model::{InDom, InstId, PmStatus, Pmid, Timestamp, UtcTime, ValueType};
use pmderive_core::source::Fault;

use crate::archive::Version;

/// Something was not written. Everything written before remains a readable archive, and
/// writing can go on, except after [`WriteError::Unusable`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file already has the name of one of this archive's files. That file is left
    /// alone.
    #[error("{} exists already; archives are never overwritten, so remove it or choose another name", escape::path(&path))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused to create or write a file. Nothing of the failed record stays
    /// in it.
    #[error("{}: {source}", escape::path(&path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        r#source: io::Error,
    },
    /// An earlier failure left a part of a record in the file, and it could not be
    /// removed.
    #[error("{}: an earlier failure left part of a record at its end; nothing more can be written", escape::path(&path))]
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
    /// [`super::ArchiveWriter::finish`] was called before any record was written. No
    /// file is left.
    #[error("{}: no record was written, so there is no archive", escape::path(&path))]
    Empty {
        /// Base name of the archive.
        path: PathBuf,
    },
    /// A time that the version cannot store.
    #[error("{} is out of reach of version 2, whose times end with {}; use version 3",
        UtcTime(*time), UtcTime(Timestamp { sec: i32::MAX.into(), nsec: 999_999_000 }))]
    Year2038 {
        /// The time given.
        time: Timestamp,
    },
    /// A time lies before an earlier one.
    #[error("{} is earlier than {}: archives are written in order of time", UtcTime(*time), UtcTime(*latest))]
    Backwards {
        /// The time given.
        time: Timestamp,
        /// The latest time so far; at first, the start of the archive.
        latest: Timestamp,
    },
    /// A text is too long for its place.
    #[error("{what} is {length} bytes long; version {} has room for {limit}", version.number())]
    TooLong {
        /// What the text is, such as `the host name`.
        what: String,
        /// Its length in bytes.
        length: usize,
        /// The maximum length in bytes.
        limit: usize,
        /// Version of the archive.
        version: Version,
    },
    /// A text that cannot be stored, or that no reader could look up.
    #[error("{what} {text:?} {problem}")]
    Text {
        /// What the text is, such as `the name of metric 60.0.1`.
        what: String,
        /// The text given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A metric with an identifier that no metric of an archive can have.
    #[error("{pmid} cannot be the identifier of a metric in an archive; record a derived metric as {} (see logged_pmid)", super::logged_pmid::logged_pmid(*pmid))]
    NotLogged {
        /// The identifier given.
        pmid: Pmid,
    },
    /// Something refers to a metric or domain that was not described before.
    #[error("{what} was not described before; call describe first")]
    NotDescribed {
        /// What is missing, such as `metric 60.0.1`.
        what: String,
    },
    /// The metric was described before, with another value in one field.
    #[error("metric {pmid} was described before, with another {field}")]
    Redescribed {
        /// The metric.
        pmid: Pmid,
        /// `type`, `instance domain`, `semantics` or `units`.
        field: &'static str,
    },
    /// The name belongs to another metric.
    #[error("{name} is the name of metric {owner} and cannot be that of {pmid}")]
    NameTaken {
        /// The name.
        name: String,
        /// The metric that has the name.
        owner: Pmid,
        /// The metric that should get the name.
        pmid: Pmid,
    },
    /// A record has no metrics; it would be read as a mark.
    #[error("the record of {} has no metric; if recording was interrupted, write a mark", UtcTime(*time))]
    NoMetrics {
        /// Time of the record.
        time: Timestamp,
    },
    /// One record has two value sets of the same metric.
    #[error("metric {pmid} occurs twice in one record")]
    MetricTwice {
        /// The metric.
        pmid: Pmid,
    },
    /// A status that does not stand for a failure.
    #[error("metric {pmid}: status {code} is not a failure: those are negative")]
    Status {
        /// The metric.
        pmid: Pmid,
        /// The status given.
        code: i32,
    },
    /// A value that does not fit the metric's type.
    #[error("metric {pmid}, instance {instance}: {problem}, but its type is {value_type}")]
    ValueType {
        /// The metric.
        pmid: Pmid,
        /// The instance.
        instance: InstId,
        /// Type of the metric.
        value_type: ValueType,
        /// What the value is instead.
        problem: String,
    },
    /// A metric without instance domain has a value that is not its single value.
    #[error(
        "metric {pmid} has no instance domain, so its only value has instance -1, not {instance}"
    )]
    NotSingular {
        /// The metric.
        pmid: Pmid,
        /// The instance.
        instance: InstId,
    },
    /// A value belongs to an instance that has no name in its domain.
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
    /// A metric has two values of one instance.
    #[error("metric {pmid} has two values of instance {instance}")]
    InstanceTwice {
        /// The metric.
        pmid: Pmid,
        /// The instance.
        instance: InstId,
    },
    /// A negative instance identifier.
    #[error("instance domain {indom}: {instance} cannot be an instance: it is negative")]
    NegativeInstance {
        /// The domain.
        indom: InDom,
        /// The identifier given.
        instance: InstId,
    },
    /// Labels that cannot be stored.
    #[error("labels of {what}: {problem}")]
    Labels {
        /// The subject of the labels, such as `metric 60.0.1`.
        what: String,
        /// What is wrong with them.
        problem: String,
    },
}

impl WriteError {
    /// Who is at fault: the environment where the system refuses or a file is
    /// full, otherwise the caller, whose calls no archive can express.
    pub fn fault(&self) -> Fault {
        match self {
            WriteError::Io { .. } | WriteError::Unusable { .. } | WriteError::Full { .. } => {
                Fault::Environment
            }
            _ => Fault::User,
        }
    }

    /// The status that libpcp would return.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults() {
        let path = || PathBuf::from("a.0");
        let source = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(WriteError::Io { path: path(), source }.fault(), Fault::Environment);
        assert_eq!(WriteError::Full { path: path() }.fault(), Fault::Environment);
        assert_eq!(WriteError::Exists { path: path() }.fault(), Fault::User);
        assert_eq!(WriteError::MetricTwice { pmid: Pmid::new(1, 0, 0) }.fault(), Fault::User);
    }
}
