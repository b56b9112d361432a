//! The vocabulary of the PMAPI: identifiers, descriptors, units, statuses,
//! time stamps, instance domains, labels.
//!
//! These are plain values.

mod byte_text;
mod c_number;
pub mod calendar;
mod desc;
mod dotted;
mod events;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
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
mod text_fault;
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

#[doc(hidden)]
pub use byte_text::{text_of_bytes, until_nul};
#[doc(hidden)]
pub use c_number::trim_c_space;
pub use c_number::{NumberError, is_c_space, leading_number};
pub use desc::{MetricDesc, Semantics, ValueType};
pub use events::{
    EVENT_FLAGS, EVENT_MISSED, EventFlags, EventParameter, EventRecord, native_events,
};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_events, fuzz_interval, fuzz_labels, fuzz_metric_spec, fuzz_units, fuzz_value};
pub use help_text::{TextKind, TextSubject};
pub use indom::{InDom, InstId, InstanceDomain, InstanceNames};
pub use interval::{AMBIGUOUS_UNIT, ambiguous_unit, parse_interval};
pub use labels::label_text;
pub use labels::{Label, LabelFlags, LabelLevel, LabelPlace, LabelPlaceError, LabelSet};
pub use labels_merge::{LabelMap, json_string};
pub use labels_parse::LabelTextError;
pub use metric_spec::{MetricSpec, SpecSource};
pub use pmid::Pmid;
pub use profile::{DomainProfile, InstanceProfile, Selection};
pub use state_change::StateChange;
pub use status::PmStatus;
pub use text_fault::{TextFault, blanks_before, write_fault};
pub use time::{Timestamp, UtcTime};
pub use units::{ExtraUnit, Units};
pub use units_convert::Conversion;
pub use units_parse::{ParsedUnits, UnitsError, UnitsErrorKind};
pub use value::{RawValue, RawValueRef, Value};
pub use value_print::{ClockText, format_e, number_text, write_unknown_block};
pub use value_text::{
    format_g, write_double, write_exact_double, write_exact_float, write_float, write_g,
    write_shortest_double, write_shortest_float,
};
pub use version::PcpVersion;
