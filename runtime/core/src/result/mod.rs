//! Results of fetches.
//!
//! A [`ResultBatch`] has parts, and each part has its value sets in one of two
//! forms, whichever its source has anyway:
//!
//! | content     | what it is                                      | from                        |
//! |-------------|-------------------------------------------------|-----------------------------|
//! | [`Wire`]    | the encoding of pmcd and of archives, untouched | replies, records of archives |
//! | [`Columns`] | typed columns in the machine's own order        | interpolation, local agents, memory, derived metrics |
//!
//! Nobody encodes for a neighbour in the same process. [`ResultWriter`] makes
//! columns; [`Wire::append`] encodes them where bytes are to leave the process as
//! a PDU, and the archive writer where they go to a file.
//!
//! ```text
//!   reply, record ──► Wire ─────┐                  ┌──► evaluator: words are swapped, columns copied
//!                               ├──► ValueSet ─────┼──► FetchResult, fetch groups, archive writer
//!   ResultWriter ───► Columns ──┘   one reading    └──► Wire::append ──► PDU
//! ```
//!
//! Readers see one thing, a [`ValueSet`] with instances and [`RawValueRef`]s, and
//! need not know which of the two is behind it. What a value says is the same in
//! both forms, also where it does not fit its metric's type: a word in place, a
//! number with the type that its writer gave it, or a block of bytes as it came.
//!
//! [`RawValueRef`]: crate::model::RawValueRef

mod batch;
mod columns;
mod owned;
mod sets;
mod wire;
mod writer;

pub use batch::{ResultBatch, ResultPart, Spare};
pub(crate) use columns::Form;
pub use columns::{Columns, LayoutId};
pub use owned::{FetchResult, InstanceValue, MetricValues};
pub(crate) use sets::Content;
pub use sets::{ValueSet, ValueSets};
pub use wire::{Lane, Wire, WireValues};
pub use writer::{BlockValue, ResultWriter};
