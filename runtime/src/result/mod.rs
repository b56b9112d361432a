//! Encoded results, as sources deliver them.
//!
//! pmcd's replies and the records of archives encode value sets the same way;
//! the local source writes that form too. So there is one decoder, and a fetch
//! copies no value before it reaches its column.

mod batch;
mod numbers;
mod owned;
mod writer;

pub use batch::{Lane, LayoutId, ResultBatch, ResultPart, ValueSet, ValueSets};
pub use numbers::{NumberPlace, append_numbers};
pub use owned::{FetchResult, InstanceValue, MetricValues};
pub use writer::{BlockValue, ResultWriter};
