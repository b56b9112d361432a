//! Writes archives (`LOGARCHIVE(5)`) of versions 2 and 3 that every PCP tool reads.
//!
//! ```text
//!   describe, text, labels ──► known ── new? ──► metadata ──┐
//!   instances ───────────────► known ── changed? ► domains ─┤ BASE.meta   first
//!                                │                          │
//!   record, mark ─► time ──────► │ ─────────────► data ─────┤ BASE.0, 1 … then
//!                                                           │
//!                                   every 100 kB: encode ───┘ BASE.index  last
//!
//!                                         bytes of one record ──► storage
//! ```
//!
//! All modules but `storage` turn values into bytes. Each record is written by one
//! system call, after the records that it refers to. So the files on disk are a
//! readable archive at any time: for tools that read it while it grows, and after a
//! kill. In theory, a kill within a system call can leave a part of the last record in
//! a file. Readers skip such a part in data and index, but not in metadata, where it
//! has to be cut off.
//!
//! The first record creates the files: metadata and volume first, then the index. Each
//! file appears with its label, and a volume with its first record too.
//!
//! If the format or libpcp cannot take something, it is refused before anything is
//! written.

mod append;
mod data;
mod domains;
mod encode;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz_storage;
mod logged_pmid;
mod metadata;
mod options;
mod storage;
mod written_metadata;

use std::fmt;
use std::path::Path;

pub use error::WriteError;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_archive_writer;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz_storage::MemoryFiles;
pub use logged_pmid::logged_pmid;
pub use options::WriterOptions;
pub use written_metadata::name_problem;

use crate::archive::MetadataRecord;
use crate::archive::index::IndexEntry;
use crate::archive::label::Role;
use crate::archive_writer::data::DataEncoder;
use crate::archive_writer::error::invalid;
use crate::archive_writer::storage::{Disk, Storage};
use crate::archive_writer::written_metadata::{WrittenMetadata, label_subject, subject};
use pmderive_core::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, TextKind, TextSubject, Timestamp,
    UtcTime,
};
use pmderive_core::result::FetchResult;

/// Writes an archive.
///
/// ```
/// use pmderive_archive::archive::{ArchiveContext, Version};
/// use pmderive_archive::archive_writer::{ArchiveWriter, WriterOptions};
/// use pmderive_core::model::*;
/// use pmderive_core::result::{FetchResult, InstanceValue, MetricValues};
/// use pmderive_core::source::MetadataSource;
///
/// let folder = tempfile::tempdir()?;
/// let base = folder.path().join("requests");
/// let start = Timestamp::new(1_783_123_200, 0);
/// let options = WriterOptions {
///     version: Version::V3,
///     start,
///     host: "web17".into(),
///     timezone: "UTC".into(),
///     zoneinfo: "".into(),
///     pid: 1,
///     volume_bytes: None,
/// };
/// let pmid = Pmid::new(400, 0, 0);
/// let (value_type, semantics) = (ValueType::U64, Semantics::Counter);
/// let desc = MetricDesc { pmid, value_type, indom: None, semantics, units: Units::NONE };
///
/// let mut writer = ArchiveWriter::create(&base, options)?;
/// writer.describe(&desc, &["my.requests"])?;
/// let value = InstanceValue { instance: -1, value: RawValue::encode(&Value::U64(7)) };
/// let sets = vec![MetricValues { pmid, outcome: Ok(vec![value]) }];
/// writer.record(&FetchResult { timestamp: start, sets, ..FetchResult::default() })?;
/// writer.finish()?;
/// assert_eq!(ArchiveContext::open(&base)?.traverse("")?, ["my.requests"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Describe each metric before you record it, and give the instances of a domain before
/// you record values of them. Calls that take a time must come in order of time. After
/// an error the archive is readable, holds nothing of the refused call, and writing can
/// go on.
///
/// A writer that is dropped also leaves an archive. Its index lacks the last entry,
/// which only costs readers time.
pub struct ArchiveWriter {
    options: WriterOptions,
    storage: Box<dyn Storage>,
    known: WrittenMetadata,
    data: DataEncoder,
    /// Buffer for records of metadata and index.
    bytes: Vec<u8>,
    /// Sizes in bytes of metadata and index; 0 until the file exists.
    metadata_size: u64,
    index_size: u64,
    /// Number and size in bytes of the current data volume.
    volume: Option<(i32, u64)>,
    /// Latest time of any call.
    latest: Timestamp,
    /// Time and place of the last record.
    last: Option<IndexEntry>,
    /// The last entry of the index.
    indexed: IndexEntry,
    /// A domain has changed since the last index entry.
    domain_changed: bool,
}

impl fmt::Debug for ArchiveWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveWriter")
            .field("options", &self.options)
            .field("volume", &self.volume)
            .field("latest", &self.latest)
            .finish_non_exhaustive()
    }
}

impl ArchiveWriter {
    /// Begins an archive with the base name `base`. The first record creates its files.
    ///
    /// # Errors
    /// A file of an archive with that name exists; the folder cannot be written to; a
    /// text of `options` is too long for the version, or the version cannot store the
    /// start.
    pub fn create(base: &Path, options: WriterOptions) -> Result<ArchiveWriter, WriteError> {
        options.check()?;
        ArchiveWriter::begin(Box::new(Disk::new(base)?), options)
    }

    /// Checks that no file of an archive with the base name `base` exists.
    ///
    /// # Errors
    /// As for [`ArchiveWriter::create`].
    pub fn check(base: &Path) -> Result<(), WriteError> {
        Disk::new(base).map(drop)
    }

    fn begin(
        mut storage: Box<dyn Storage>,
        mut options: WriterOptions,
    ) -> Result<ArchiveWriter, WriteError> {
        options.start = options.version.stored(options.start)?;
        let label = encode::label(&options, Role::Metadata);
        storage.create(Role::Metadata, &label)?;
        let size = label.len() as u64;
        let start = options.start;
        Ok(ArchiveWriter {
            options,
            storage,
            known: WrittenMetadata::default(),
            data: DataEncoder::default(),
            bytes: Vec::new(),
            metadata_size: size,
            index_size: 0,
            volume: None,
            latest: start,
            last: None,
            indexed: IndexEntry { stamp: start, volume: 0, metadata: size, offset: size },
            domain_changed: false,
        })
    }

    /// Describes a metric and gives it names, possibly none. A description that the
    /// archive has already is not written again, but further names are added.
    ///
    /// # Errors
    /// The metric was described differently before; another metric has one of the
    /// names; a name is too long or has an empty component; the identifier is that of a
    /// derived metric (see [`logged_pmid`]).
    pub fn describe(&mut self, desc: &MetricDesc, names: &[&str]) -> Result<(), WriteError> {
        let version = self.options.version;
        let Some(names) = self.known.new_names(version, desc, names)? else { return Ok(()) };
        let encoded = metadata::desc(&mut self.bytes, desc, &names);
        self.append_metadata(encoded, || format!("the descriptor of metric {}", desc.pmid))?;
        self.known.described(desc, &names);
        Ok(())
    }

    /// Gives a metric or instance domain a help text. It replaces an earlier one.
    ///
    /// # Errors
    /// The metric or domain was not described; the text contains a NUL.
    pub fn text(&mut self, of: TextSubject, kind: TextKind, text: &str) -> Result<(), WriteError> {
        if !self.known.is_new_text(of, kind, text)? {
            return Ok(());
        }
        let encoded = metadata::text(&mut self.bytes, of, kind, text);
        self.append_metadata(encoded, || format!("a help text of {}", subject(of)))?;
        self.known.note_text(of, kind, text);
        Ok(())
    }

    /// Makes `sets` the labels of a level from `time` on. The level of instances has
    /// one set for each instance, other levels have one set. Nothing is written if
    /// these labels are in force already. If `sets` is empty, empty sets replace those
    /// in force.
    ///
    /// # Errors
    /// Time goes backwards; the subject of the labels was not described; there are too
    /// many labels, or they are too long.
    pub fn labels(
        &mut self,
        time: Timestamp,
        level: LabelLevel,
        sets: &[LabelSet],
    ) -> Result<(), WriteError> {
        let time = self.next_time(time)?;
        let level = level.of_cluster();
        let Some(sets) = self.known.new_labels(level, sets)? else { return Ok(()) };
        let sets = &*sets;
        let version = self.options.version;
        let encoded = metadata::labels(&mut self.bytes, version, time, level, sets);
        self.append_metadata(encoded, || format!("labels of {}", label_subject(level)))?;
        self.latest = time;
        self.known.labelled(level, sets);
        Ok(())
    }

    /// Makes `domain` the instances of a domain from `time` on. Nothing is written if
    /// they are in force already. Version 3 gets only the differences if they are
    /// shorter.
    ///
    /// # Errors
    /// Time goes backwards; no metric with this domain was described; an instance is
    /// negative; a name contains a NUL; the domain changed at this time already
    /// ([`WriteError::ChangedTwice`]).
    pub fn instances(
        &mut self,
        time: Timestamp,
        indom: InDom,
        domain: &InstanceDomain,
    ) -> Result<(), WriteError> {
        let time = self.next_time(time)?;
        let version = self.options.version;
        let position = self.known.domain(indom)?;
        let Some(update) = self.known.domains[position].update(version, time, indom, domain)?
        else {
            return Ok(());
        };
        let encoded = update.encode(&mut self.bytes, version, time, indom);
        self.append_metadata(encoded, || format!("instance domain {indom}"))?;
        self.latest = time;
        self.domain_changed = true;
        self.known.domains[position].written(update, time, self.bytes.len());
        Ok(())
    }

    /// Writes the contents of a metadata record of another archive.
    ///
    /// # Errors
    /// The errors of the method for this kind of record.
    pub fn metadata(&mut self, record: &MetadataRecord) -> Result<(), WriteError> {
        match record {
            MetadataRecord::Metric { desc, names } => {
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                self.describe(desc, &names)
            }
            MetadataRecord::Text { of, kind, text } => self.text(*of, *kind, text),
            MetadataRecord::Instances { time, indom, domain } => {
                self.instances(*time, *indom, domain)
            }
            MetadataRecord::Labels { time, level, sets } => self.labels(*time, *level, sets),
        }
    }

    /// Allows values of instances that have no name at their time, as in some other
    /// archives. The writer does not check whether such an instance occurs twice.
    pub fn allow_instances_without_names(&mut self) {
        self.known.may_lack_names = true;
    }

    /// Writes a result as one record, with the time of the result.
    ///
    /// # Errors
    /// Time goes backwards; the result has no metric, or one metric twice; a metric was
    /// not described, or its values do not have its type; an instance has no name at
    /// this time; the system cannot write. If it cannot write the index, the record is
    /// written nevertheless, and the next record adds the index entry.
    pub fn record(&mut self, result: &FetchResult) -> Result<(), WriteError> {
        let time = self.next_time(result.timestamp)?;
        self.data.encode(self.options.version, time, &result.sets, &mut self.known)?;
        self.append_data(time)
    }

    /// Records that recording was interrupted: the time between the previous record and
    /// the next one is unknown. PCP's writers set the mark 1 ms after the previous
    /// record.
    ///
    /// # Errors
    /// Time goes backwards.
    pub fn mark(&mut self, time: Timestamp) -> Result<(), WriteError> {
        let time = self.next_time(time)?;
        encode::mark(&mut self.data.record, self.options.version, time);
        self.append_data(time)
    }

    /// Waits until everything written so far would survive a crash of the machine. It
    /// survives a crash of this process without that.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.storage.sync()
    }

    /// Ends the archive and adds an index entry for its last record.
    ///
    /// # Errors
    /// The system cannot write. [`WriteError::Empty`] if there was no record: no tool
    /// could open such an archive, so its files are removed.
    pub fn finish(mut self) -> Result<(), WriteError> {
        let Some(last) = self.last else {
            let mut path = self.storage.path(Role::Metadata);
            path.set_extension("");
            self.storage.discard()?;
            return Err(WriteError::Empty { path });
        };
        if last.stamp > self.indexed.stamp {
            self.append_index(last)?;
        }
        self.storage.sync()
    }

    /// The time as the archive stores it, which must not lie before an earlier one.
    fn next_time(&self, time: Timestamp) -> Result<Timestamp, WriteError> {
        let stored = self.options.version.stored(time)?;
        if stored < self.latest {
            let (time, latest) = (UtcTime(time), UtcTime(self.latest));
            let problem =
                format!("{time} is earlier than {latest}: archives are written in order of time");
            return Err(WriteError::misuse(invalid(), problem));
        }
        Ok(stored)
    }
}
