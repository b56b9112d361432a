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
//! Everything but `storage` is a function of values to bytes. Each record is
//! written by one system call, what it refers to before it: so what is on disk
//! is a readable archive at any time, to tools that read it while it grows as
//! much as after a kill. A kill within that one call can, in theory, leave the
//! beginning of a last record in a file. Readers pass over it in data and
//! index; in the metadata they do not, where it has to be cut off. The files
//! come with the first record, metadata and volume before the index, and every
//! file at once complete with its label, a volume with a record.
//!
//! What the format or libpcp cannot take is refused before anything is written.

mod data;
mod domains;
mod encode;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod in_memory;
mod known;
mod metadata;
mod storage;

use std::path::Path;

pub use error::WriteError;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_archive_writer;
pub use in_memory::Written;
pub use known::name_problem;

use crate::archive::label::Role;
use crate::archive::{ArchiveLabel, MetadataRecord, Version};
use crate::archive_writer::data::{DataEncoder, Values};
use crate::archive_writer::encode::IndexEntry;
use crate::archive_writer::known::{Known, label_subject, subject};
use crate::archive_writer::storage::{Disk, Storage};
use pmderive_core::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid, TextKind, TextSubject, Timestamp,
};
use pmderive_core::result::{FetchResult, ResultBatch};

/// Bytes of data after which an entry of the index is due.
const INDEX_EVERY: u64 = 100_000;

/// Size that no file of version 2 exceeds.
const V2_FILE: u64 = i32::MAX as u64;

/// What is to be known of an archive before it is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// Version of the format; version 2 for readers before PCP 6.
    pub version: Version,
    /// When recording begins: the time of the first record, or earlier.
    pub start: Timestamp,
    /// Host whose metrics are recorded; in version 2 up to 63 bytes, else 255.
    pub host: Box<str>,
    /// Time zone of that host, in the form of the `TZ` variable; in version 2
    /// up to 39 bytes, else 255.
    pub timezone: Box<str>,
    /// Time zone of that host by its place, such as `:Australia/Melbourne`, or
    /// nothing; up to 255 bytes. Version 2 leaves it out.
    pub zoneinfo: Box<str>,
    /// Process that records.
    pub pid: i32,
    /// Size in bytes that a data volume does not exceed, unless by a single
    /// record. `None` for no limit but that of version 2, of 2 GiB.
    pub volume_bytes: Option<u64>,
}

impl From<ArchiveLabel> for WriterOptions {
    /// As in the archive that has this label, but in one volume.
    fn from(label: ArchiveLabel) -> WriterOptions {
        let ArchiveLabel { version, pid, start, features: _, host, timezone, zoneinfo } = label;
        let pid = pid.cast_signed();
        WriterOptions { version, start, host, timezone, zoneinfo, pid, volume_bytes: None }
    }
}

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
        check_options(&options)?;
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

    /// Appends the metadata record in the buffer, unless encoding it gave a
    /// length that is too long for `what` it is.
    fn append_metadata(
        &mut self,
        encoded: Result<(), usize>,
        what: impl FnOnce() -> String,
    ) -> Result<(), WriteError> {
        let version = self.options.version;
        encoded.map_err(|length| WriteError::TooLong {
            what: what(),
            length,
            limit: i32::MAX as usize,
            version,
        })?;
        let size = self.metadata_size + self.bytes.len() as u64;
        if version == Version::V2 && size > V2_FILE {
            return Err(WriteError::Full { path: self.storage.path(Role::Metadata) });
        }
        self.storage.append(Role::Metadata, &self.bytes)?;
        self.metadata_size = size;
        Ok(())
    }

    /// Appends the encoded data record, to a new volume where the present one
    /// is full, and then the entry of the index that is due.
    fn append_data(&mut self, time: Timestamp) -> Result<(), WriteError> {
        let version = self.options.version;
        let label_size = version.label_size() as u64;
        let length = self.data.record.len() as u64;
        let limit = match (version, self.options.volume_bytes) {
            (Version::V2, limit) => limit.map_or(V2_FILE, |limit| limit.min(V2_FILE)),
            (Version::V3, limit) => limit.unwrap_or(u64::MAX),
        };
        let (volume, offset) = match self.volume {
            Some((number, size)) if size + length <= limit => {
                self.storage.append(Role::Volume(number), &self.data.record)?;
                (number, size)
            }
            full => {
                if version == Version::V2 && label_size + length > V2_FILE {
                    let what = "the data record".to_owned();
                    let (length, limit) = (length as usize, (V2_FILE - label_size) as usize);
                    return Err(WriteError::TooLong { what, length, limit, version });
                }
                let number = full.map_or(0, |(number, _)| number.saturating_add(1));
                let mut bytes = encode::label(&self.options, Role::Volume(number));
                bytes.extend_from_slice(&self.data.record);
                self.storage.create(Role::Volume(number), &bytes)?;
                (number, label_size)
            }
        };
        self.volume = Some((volume, offset + length));
        self.latest = time;
        let entry = IndexEntry { stamp: time, volume, metadata: self.metadata_size, offset };
        self.last = Some(entry);
        // Readers do without an index, and without nothing else.
        if self.index_size == 0 {
            self.create_index()?;
        }
        let is_due = self.domain_changed
            || volume != self.indexed.volume
            || offset - self.indexed.offset >= INDEX_EVERY;
        // Of two entries of one time readers could find the later one only.
        if is_due && time > self.indexed.stamp {
            self.append_index(entry)?;
        }
        Ok(())
    }

    /// Creates the index, with an entry for the start of the archive.
    fn create_index(&mut self) -> Result<(), WriteError> {
        let mut bytes = encode::label(&self.options, Role::Index);
        encode::index_entry(&mut bytes, self.options.version, self.indexed);
        self.storage.create(Role::Index, &bytes)?;
        self.index_size = bytes.len() as u64;
        Ok(())
    }

    fn append_index(&mut self, entry: IndexEntry) -> Result<(), WriteError> {
        if self.index_size == 0 {
            self.create_index()?;
        }
        let version = self.options.version;
        let size = self.index_size + version.index_entry_size() as u64;
        if version == Version::V2 && size > V2_FILE {
            return Err(WriteError::Full { path: self.storage.path(Role::Index) });
        }
        self.bytes.clear();
        encode::index_entry(&mut self.bytes, version, entry);
        self.storage.append(Role::Index, &self.bytes)?;
        self.index_size = size;
        self.indexed = entry;
        self.domain_changed = false;
        Ok(())
    }
}

impl Version {
    /// A time as it is stored: version 2 drops what is finer than a microsecond.
    fn stored(self, time: Timestamp) -> Result<Timestamp, WriteError> {
        match self {
            Version::V3 => Ok(time),
            Version::V2 if i32::try_from(time.sec).is_err() => Err(WriteError::Year2038 { time }),
            Version::V2 => Ok(Timestamp { sec: time.sec, nsec: time.nsec / 1000 * 1000 }),
        }
    }
}

/// Checks that the texts of a label fit.
fn check_options(options: &WriterOptions) -> Result<(), WriteError> {
    let version = options.version;
    let sizes = version.label_texts();
    let texts = [
        ("the host name", &options.host, sizes.host),
        ("the time zone", &options.timezone, sizes.timezone),
        ("the place of the time zone", &options.zoneinfo, sizes.zoneinfo),
    ];
    for (what, text, size) in texts {
        // Version 2 leaves the last one out.
        let Some(limit) = size.checked_sub(1) else { continue };
        let length = text.len();
        if length > limit {
            return Err(WriteError::TooLong { what: what.to_owned(), length, limit, version });
        }
        if text.contains('\0') {
            let (what, text) = (what.to_owned(), text.to_string());
            return Err(WriteError::Text {
                what,
                text,
                problem: "contains a NUL, which ends texts",
            });
        }
    }
    Ok(())
}
