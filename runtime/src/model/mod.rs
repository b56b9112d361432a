//! The vocabulary of the PMAPI: identifiers, descriptors, units, statuses,
//! time stamps and instance domains.
//!
//! Plain values without behaviour towards any source of metrics.

mod desc;
mod indom;
mod pmid;
mod status;
mod time;
mod units;

pub use desc::{MetricDesc, Semantics, ValueType};
pub use indom::{InDom, InstId, InstanceDomain};
pub use pmid::Pmid;
pub use status::PmStatus;
pub use time::Timestamp;
pub use units::{ExtraUnit, Units};
