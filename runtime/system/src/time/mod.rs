//! Time as people write and read it: zones, points in time, windows.
//!
//! ```text
//!   posix     rules as text    ┐
//!   zoneinfo  files of zones   ┴─► zone ─► broken_down   times shown and read back
//!
//!   intervals (of model)   ┐
//!   ctime_form  dates      ├─► specification ─► window   what options say
//!   date_form   free dates ┘            │
//!                                       └─► options   zone and window for a source
//! ```
//!
//! Points in time themselves are [`pmderive_core::model::Timestamp`]s. Nothing
//! here knows a source of metrics, except for two questions that are asked of
//! it: its time zone, and its first and last time.

mod broken_down;
mod ctime_form;
mod date_form;
mod date_words;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod options;
mod posix;
mod specification;
mod window;
mod zone;
mod zoneinfo;

pub use broken_down::BrokenDown;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_window, fuzz_zone};
pub use options::{ReportingChoices, ReportingError, ReportingOptions, TimeBounds, ZoneOption};
pub use window::{TimeWindow, WindowError, WindowOption, WindowSpec};
pub use zone::{TimeZone, TimeZoneError, TimeZoneProblem};
