//! Archives (`LOGARCHIVE(5)`), versions 2 and 3, as a source of metrics.
//!
//! ```text
//!   names, directories ──► resolve ──► files      which files there are of each archive
//!                                        │
//!                                        ▼
//!                                     opening     archives that fit together, in order of time
//!
//!   BASE.meta  ──► meta     descriptors ─► names      read once, when archives are opened (of
//!   of each          │      (meta_contents)           all of them as one); what a writer appends
//!   archive          │                                to the last one later, when needed
//!   (meta_files)     ├────► labels, texts             positions; decoded when they are asked for
//!                    └────► domains                   positions of instance lists; decoded for
//!                              │                      the time of a record, kept while in force
//!   BASE.index ──► index       │
//!                    │ hint    │
//!                    ▼         │
//!   BASE.0     ──► volumes ──► │
//!   BASE.1 …    of one archive │
//!                    │         │
//!                    ▼         │
//!                 sequence ──► │ ──► a record: length │ stamp │ value sets │ blocks │ length
//!          of all archives,    │                                   │
//!          with marks between  │                          values   │ walks the headers of the sets
//!                              │                       selection   ▼ and finds those of the fetch
//!                              │        Wire.bytes = the record │ its chosen sets, in order
//!                              │                                        ▲ first_set
//!                              └─────►  ResultBatch.domains               block_origin = -8
//! ```
//!
//! A fetch goes forward from record to record. It skips marks (and notes that there was
//! a gap) and records that hold none of its metrics, and copies the first record that
//! does. The value sets of its metrics are then repeated after the copy in the order of
//! the fetch, so the blocks that they refer to stay in place. Fetching backward works
//! the same way. Between records, `interpolation` keeps the records around the time of
//! a fetch and computes the values. `lives` gathers the instances of all times for it.
//!
//! Files are read in chunks through a sliding window (`bytes`). Compressed files are
//! expanded only as far as they are read (`decompress`). Damage is reported with file
//! and offset, and reading can continue after it. Records with wrong times are left out
//! (`order`). `inspection` finds problems that no reader notices.
//!
//! Reading finds the data that a writer has appended meanwhile. `growth` serves callers who wait
//! for them.
//!
//! A single archive is a context with one archive. Only `opening`, `sequence` and
//! `meta` know that there may be several. Each reader has one data volume and one
//! metadata file open at a time.

mod answers;
mod bytes;
mod context;
mod decompress;
pub(crate) mod domain_record;
mod domains;
mod fetching;
pub(crate) mod files;
mod following;
pub(crate) mod framing;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz_files;
mod growth;
mod identity;
pub(crate) mod index;
mod inspection;
mod interpolation;
pub(crate) mod label;
pub(crate) mod labels;
pub(crate) mod layout;
mod lives;
mod meta;
mod meta_contents;
mod meta_files;
mod metadata_records;
mod names;
mod observations;
mod opening;
mod options;
mod order;
mod positions;
mod resolve;
mod selection;
mod sequence;
mod shared_metadata;
mod single;
mod texts;
mod untyped;
pub(crate) mod values;
mod volume;
mod volumes;

pub use context::{ArchiveContext, ArchivePart};
#[cfg(any(test, feature = "fuzz"))]
pub use decompress::fuzz::fuzz_decompress;
pub use files::base_of_file;
pub use framing::Version;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_archive, fuzz_archives};
pub use interpolation::{InterpolationRules, MarkRule, Neighbour, Overflow};
pub use label::ArchiveLabel;
pub use metadata_records::{MetadataRecord, MetadataRecords};
pub use options::OpenOptions;
