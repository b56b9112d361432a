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
//! A fetch walks forward over framed records, skips marks (and remembers that
//! there was a gap) and records that hold none of its metrics, and copies the
//! first one that does. Its value sets are then repeated behind the copy in
//! the order of the fetch, so that the blocks they point to stay where they are.
//!
//! Files are read in chunks through a sliding window (`bytes`), compressed
//! ones are expanded as far as they are read (`decompress`). Damage is
//! reported with file and offset, and reading can go on behind it. Records whose
//! times do not fit are left out (`order`), and what no reader notices is found
//! by `inspection`.
//!
//! Backward it is the same. Between records, `interpolation` keeps the records
//! around the time of a fetch and computes the values there.
//!
//! What a writer appends is found while reading goes on; `growth` is for those
//! who wait for it.
//!
//! A single archive is a context of one: only `opening`, `sequence` and `meta`
//! know that there may be more, and only one data volume and one metadata file
//! are open for each reader.

mod answers;
mod bytes;
mod context;
mod decompress;
pub(crate) mod domain_record;
mod domains;
mod fetching;
pub(crate) mod files;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz_files;
mod growth;
mod identity;
mod index;
mod inspection;
mod interpolation;
mod known;
pub(crate) mod label;
pub(crate) mod labels;
pub(crate) mod layout;
mod meta;
mod meta_contents;
mod meta_files;
mod metadata_records;
mod names;
mod opening;
mod order;
pub(crate) mod record;
mod resolve;
mod selection;
mod sequence;
mod single;
mod texts;
mod untyped;
pub(crate) mod values;
mod volume;
mod volumes;

pub use context::{ArchiveContext, ArchivePart, OpenOptions};
#[cfg(any(test, feature = "fuzz"))]
pub use decompress::fuzz_decompress;
pub use files::base_of_file;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_archive, fuzz_archives};
pub use interpolation::{InterpolationRules, MarkRule, Neighbour, Overflow};
pub use label::ArchiveLabel;
pub use metadata_records::{MetadataRecord, MetadataRecords};
pub use record::Version;
