//! Results of fetches.
//!
//! A [`ResultBatch`] has parts. Each part has its value sets in one of two
//! forms, the natural form of its source:
//!
//! | content     | form                                            | from                        |
//! |-------------|-------------------------------------------------|-----------------------------|
//! | [`Wire`]    | the encoding of pmcd and of archives, untouched | replies, records of archives |
//! | [`Columns`] | typed columns in the machine's own order        | interpolation, local agents, memory, derived metrics |
//!
//! A source with encoded results may deliver them in columns instead: if a
//! result differs from an earlier one only in numbers, it comes in columns
//! ([`ResultBatch::add_part_as_before`]).
//!
//! Within a process, nothing is encoded. [`ResultWriter`] makes columns.
//! [`Wire::append`] encodes columns when they leave the process as a PDU, and
//! the archive writer does it when they go to a file.
//!
//! ```text
//!   reply, record ──► Wire ─────┐                  ┌──► evaluator: words are swapped, columns copied
//!                               ├──► ValueSet ─────┼──► FetchResult, fetch groups, archive writer
//!   ResultWriter ───► Columns ──┘   one reading    └──► Wire::append ──► PDU
//! ```
//!
//! Readers see only a [`ValueSet`] with instances and [`RawValueRef`]s, and
//! need not know its form. A value is the same in both forms, even if it does
//! not fit its metric's type: a word in place, a number with the type that its
//! writer chose, or a block with its original bytes.
//!
//! [`RawValueRef`]: crate::model::RawValueRef

mod batch;
mod blocks;
mod columns;
mod known;
mod owned;
mod sets;
mod skeleton;
mod wire;
mod writer;

pub use batch::{ResultBatch, ResultPart, Spare};
pub use blocks::end_of_blocks_of_8;
pub(crate) use columns::Form;
pub use columns::{Columns, LayoutId};
pub use known::KnownResults;
pub use owned::{FetchResult, InstanceValue, MetricValues};
pub(crate) use sets::Content;
pub use sets::{SetPlace, ValueSet, ValueSets};
pub use skeleton::Encoded;
pub use wire::{Lane, Wire, WireValues};
pub use writer::{BlockValue, ResultWriter};
