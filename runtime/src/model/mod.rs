//! The vocabulary of the PMAPI: identifiers, descriptors, units, statuses,
//! time stamps, instance domains, labels.
//!
//! Plain values without behaviour towards any source of metrics.

mod c_number;
mod desc;
mod help_text;
mod indom;
mod interval;
mod labels;
mod labels_merge;
mod labels_parse;
mod pmid;
mod status;
mod time;
mod units;
mod units_convert;
mod units_parse;
mod units_text;
mod units_words;
mod value_text;

pub use desc::{MetricDesc, Semantics, ValueType};
pub use help_text::{TextKind, TextSubject};
pub use indom::{InDom, InstId, InstanceDomain};
pub use interval::{IntervalError, fuzz_interval, parse_interval};
pub(crate) use labels::label_text;
pub use labels::{Label, LabelFlags, LabelLevel, LabelPlace, LabelPlaceError, LabelSet};
pub(crate) use labels_merge::{LabelMap, json_string};
pub use labels_parse::{LabelTextError, fuzz_labels};
pub use pmid::Pmid;
pub use status::PmStatus;
pub use time::{Timestamp, UtcTime};
pub use units::{ExtraUnit, Units};
pub use units_convert::Conversion;
pub use units_parse::{ParsedUnits, UnitsError, UnitsErrorKind, fuzz_units};
pub use units_words::units_words;
pub use value_text::{
    format_g, write_double, write_exact_double, write_exact_float, write_float, write_g,
    write_text, write_unknown_block, write_unknown_word,
};
