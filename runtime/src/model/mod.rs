//! The vocabulary of the PMAPI: identifiers, descriptors, units, statuses,
//! time stamps, instance domains, labels.
//!
//! Plain values without behaviour towards any source of metrics.

mod c_number;
pub(crate) mod calendar;
mod desc;
mod events;
mod help_text;
mod indom;
mod interval;
mod labels;
mod labels_merge;
mod labels_parse;
mod labels_print;
mod metric_spec;
mod pmid;
mod profile;
mod seconds;
mod state_change;
mod status;
mod status_text;
mod time;
mod units;
mod units_convert;
mod units_parse;
mod units_text;
mod units_words;
mod value;
mod value_convert;
mod value_parse;
mod value_print;
mod value_text;
mod version;

pub(crate) use c_number::{is_c_space, leading_number};
pub use desc::{MetricDesc, Semantics, ValueType};
pub use events::{
    EVENT_FLAGS, EVENT_MISSED, EventFlags, EventParameter, EventRecord, fuzz_events, native_events,
};
pub use help_text::{TextKind, TextSubject};
pub use indom::{InDom, InstId, InstanceDomain, InstanceNames};
pub use interval::{IntervalError, fuzz_interval, parse_interval};
pub(crate) use interval::{blanks_before, write_fault};
pub(crate) use labels::label_text;
pub use labels::{Label, LabelFlags, LabelLevel, LabelPlace, LabelPlaceError, LabelSet};
pub(crate) use labels_merge::{LabelMap, json_string};
pub use labels_parse::{LabelTextError, fuzz_labels};
pub use metric_spec::{MetricSpec, MetricSpecError, SpecSource, fuzz_metric_spec};
pub use pmid::Pmid;
pub use profile::{DomainProfile, InstanceProfile, Selection};
pub use state_change::StateChange;
pub use status::PmStatus;
pub use time::{Timestamp, UtcTime};
pub use units::{ExtraUnit, Units};
pub use units_convert::Conversion;
pub use units_parse::{ParsedUnits, UnitsError, UnitsErrorKind, fuzz_units};
pub use units_words::units_words;
pub use value::{RawValue, RawValueRef, Value};
pub use value_parse::fuzz_value;
pub use value_print::{ClockText, format_e, number_text, write_unknown_block};
pub use value_text::{
    format_g, write_double, write_exact_double, write_exact_float, write_float, write_g,
};
pub use version::PcpVersion;
