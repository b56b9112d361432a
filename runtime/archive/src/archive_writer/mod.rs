//! Writes archives (`LOGARCHIVE(5)`), versions 3 and 2, that every PCP tool reads.
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
//! Everything but `storage` is a function of values to bytes. One system call
//! writes each record, after the records that it refers to. So there is a readable
//! archive on disk at any time, for tools that read it while it grows and after a
//! kill. A kill within that one call can, in theory, leave the beginning of a last
//! record in a file. Readers pass over it in data and index, but not in the
//! metadata, where it has to be cut off. The first record creates the files,
//! metadata and volume before the index. Each file appears with its label, and a
//! volume with a record as well.
//!
//! What the format or libpcp cannot take is refused before anything is written.

mod append;
mod data;
mod domains;
mod encode;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz_storage;
mod known;
mod metadata;
mod options;
mod storage;

use std::path::Path;

pub use error::WriteError;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_archive_writer;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz_storage::MemoryFiles;
pub use known::name_problem;
pub use options::WriterOptions;

use crate::archive::MetadataRecord;
use crate::archive::label::Role;
use crate::archive_writer::data::{DataEncoder, Values};
use crate::archive_writer::encode::IndexEntry;
use crate::archive_writer::known::{Known, label_subject, subject};
use crate::archive_writer::storage::{Disk, Storage};
use pmderive_core::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid, TextKind, TextSubject, Timestamp,
};
use pmderive_core::result::{FetchResult, ResultBatch};

/// An archive that is being written.
///
/// Metrics are described before they are recorded, and the instances of a
/// domain are told before values of them are. All calls with a time come in
/// order of time. After an error the archive is readable, holds nothing of what
/// was refused, and writing can go on.
///
/// Dropping the writer leaves an archive as well, without the last entry of
/// the index, which costs readers time only.
pub struct ArchiveWriter {
    options: WriterOptions,
    storage: Box<dyn Storage>,
    known: Known,
    data: DataEncoder,
    /// Buffer for metadata and index.
    bytes: Vec<u8>,
    /// Sizes of metadata and index in bytes; 0 where there is no file yet.
    metadata_size: u64,
    index_size: u64,
    /// Number and size in bytes of the data volume that grows.
    volume: Option<(i32, u64)>,
    /// Latest time that a call had.
    latest: Timestamp,
    /// Where the last record is.
    last: Option<IndexEntry>,
    /// The last entry of the index.
    indexed: IndexEntry,
    /// A domain changed since.
    domain_changed: bool,
}

/// The identifier that a derived metric has in an archive: with the bit that
/// tells tools to take its values instead of deriving them again. That of any
/// other metric is left alone.
pub fn logged_pmid(pmid: Pmid) -> Pmid {
    match pmid.is_derived() {
        true => Pmid::new(pmid.domain(), pmid.cluster() | 2048, pmid.item()),
        false => pmid,
    }
}

impl ArchiveWriter {
    /// Begins the archive with the base name `base`, whose files are there with
    /// the first record.
    ///
    /// # Errors
    /// A file of an archive of that name exists; the folder cannot be written
    /// to; a text of `options` is too long, or the start out of reach, for the
    /// version.
    pub fn create(base: &Path, options: WriterOptions) -> Result<ArchiveWriter, WriteError> {
        options.check()?;
        ArchiveWriter::begin(Box::new(Disk::new(base)?), options)
    }

    /// Finds out whether an archive with the base name `base` could be begun
    /// now, so far as no file of one has that name.
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
            known: Known::default(),
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

    /// Describes a metric and gives it names, perhaps none. What is known
    /// already is not written again, but further names are added.
    ///
    /// # Errors
    /// The metric was described differently before; another metric has one of
    /// the names; a name is too long, or has an empty component; the
    /// identifier is that of a derived metric, see [`logged_pmid`].
    pub fn describe(&mut self, desc: &MetricDesc, names: &[&str]) -> Result<(), WriteError> {
        let version = self.options.version;
        let Some(names) = self.known.new_names(version, desc, names)? else { return Ok(()) };
        let encoded = metadata::desc(&mut self.bytes, desc, &names);
        self.append_metadata(encoded, || format!("the descriptor of metric {}", desc.pmid))?;
        self.known.described(desc, &names);
        Ok(())
    }

    /// Gives a metric or instance domain a help text, in place of an earlier one.
    ///
    /// # Errors
    /// What it is about was not described, or there is a NUL in it.
    pub fn text(&mut self, of: TextSubject, kind: TextKind, text: &str) -> Result<(), WriteError> {
        if !self.known.is_new_text(of, kind, text)? {
            return Ok(());
        }
        let encoded = metadata::text(&mut self.bytes, of, kind, text);
        self.append_metadata(encoded, || format!("a help text of {}", subject(of)))?;
        self.known.told(of, kind, text);
        Ok(())
    }

    /// Makes `sets` the labels of a level from `time` on: one set, or on the
    /// level of instances one for each. Nothing is written when these are the
    /// labels in force. Where there were sets and are none any more, empty ones
    /// are written.
    ///
    /// # Errors
    /// Time goes backwards; what the labels are of was not described; they are
    /// too many or too long.
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

    /// Makes these the instances of a domain from `time` on. Nothing is
    /// written when they are the ones in force; in version 3 only what came
    /// and went, where that is shorter.
    ///
    /// # Errors
    /// Time goes backwards; no metric over the domain was described; an
    /// instance is negative, or a NUL in its name.
    pub fn instances(
        &mut self,
        time: Timestamp,
        indom: InDom,
        domain: &InstanceDomain,
    ) -> Result<(), WriteError> {
        let time = self.next_time(time)?;
        let version = self.options.version;
        let position = self.known.domain(indom)?;
        let Some(update) = self.known.domains[position].update(version, indom, domain)? else {
            return Ok(());
        };
        let encoded = update.encode(&mut self.bytes, version, time, indom);
        self.append_metadata(encoded, || format!("instance domain {indom}"))?;
        self.latest = time;
        self.domain_changed = true;
        self.known.domains[position].written(update, self.bytes.len());
        Ok(())
    }

    /// Says what a record of another archive's metadata says.
    ///
    /// # Errors
    /// As the method has for what the record is about.
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

    /// Writes a result as one record, with the time of the result.
    ///
    /// # Errors
    /// Time goes backwards; there is no metric in it, or one twice; a metric
    /// was not described, or its values are not of its type; an instance has no
    /// name at this time. The system fails: when it is about the index, the
    /// record itself is there, and the entry is due again with the next one.
    pub fn record(&mut self, result: &FetchResult) -> Result<(), WriteError> {
        self.write(result.timestamp, result.sets.iter())
    }

    /// As [`ArchiveWriter::record`], from a result that was not copied out of its batch. A
    /// fetch that was split becomes one record with the time of the first part.
    ///
    /// # Errors
    /// As for [`ArchiveWriter::record`].
    pub fn record_batch(&mut self, batch: &ResultBatch) -> Result<(), WriteError> {
        self.write(batch.timestamp(), batch.sets())
    }

    /// Says that recording was interrupted: nothing is known of the time
    /// between the record before and the one that follows. PCP's writers
    /// choose 1 ms after the record before.
    ///
    /// # Errors
    /// Time goes backwards.
    pub fn mark(&mut self, time: Timestamp) -> Result<(), WriteError> {
        let time = self.next_time(time)?;
        encode::mark(&mut self.data.record, self.options.version, time);
        self.append_data(time)
    }

    /// Waits until everything written so far would survive a crash of the
    /// machine. That of this process it survives anyway.
    ///
    /// # Errors
    /// The system fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.storage.sync()
    }

    /// Ends the archive, with an entry of the index for its last record.
    ///
    /// # Errors
    /// The system fails; or [`WriteError::Empty`] without a record, when the
    /// archive never comes into being: no tool could open it.
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

    /// A time as the archive will have it, not before any other.
    fn next_time(&self, time: Timestamp) -> Result<Timestamp, WriteError> {
        let stored = self.options.version.stored(time)?;
        if stored < self.latest {
            return Err(WriteError::Backwards { time, latest: self.latest });
        }
        Ok(stored)
    }

    fn write<S: Values>(
        &mut self,
        time: Timestamp,
        sets: impl Iterator<Item = S> + Clone,
    ) -> Result<(), WriteError> {
        let time = self.next_time(time)?;
        self.data.encode(self.options.version, time, sets, &mut self.known)?;
        self.append_data(time)
    }
}
