//! Archives (`LOGARCHIVE(5)`), versions 2 and 3, as a source of metrics.
//!
//! ```text
//!   BASE.meta  ──► meta     descriptors ─► names      read once, when the archive is opened;
//!                    │                                what a writer appends later, when needed
//!                    ├────► labels, texts             positions; decoded when they are asked for
//!                    └────► domains                   positions of instance lists; decoded for
//!                              │                      the time of a record, kept while in force
//!   BASE.index ──► index       │
//!                    │ hint    │
//!                    ▼         │
//!   BASE.0     ──► volumes ──► │ ──► a record: length │ stamp │ value sets │ blocks │ length
//!   BASE.1 …       (volume)    │                                   │
//!                              │                          values   │ walks the headers of the sets
//!                              │                                   ▼ and finds those of the fetch
//!                              │        ResultPart.bytes = the record │ its chosen sets, in order
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
//! reported with file and offset, and reading can go on behind it.
//!
//! What is not here: interpolation and contexts of several archives.

mod bytes;
mod context;
mod decompress;
mod domains;
mod end;
mod files;
mod fuzz;
mod index;
mod label;
mod labels;
mod meta;
mod names;
mod record;
mod texts;
mod values;
mod volume;
mod volumes;

pub use context::ArchiveContext;
pub use decompress::fuzz_decompress;
pub use fuzz::fuzz_archive;
pub use label::ArchiveLabel;
pub use record::Version;
