//! The commands named after PCP's tools: `info`, `val` and `probe` print what pminfo(1),
//! pmval(1) and pmprobe(1) print.
//!
//! ```text
//! arguments (with --compat) ──► options ──► source ─┬─► walk ──► batches ──► fetch ──► info, probe
//!                                   │               └─► samples ──► val
//!                                   └─► mistakes (what is wrong with definitions)
//! ```

pub mod arguments;
mod batches;
mod fetch;
pub mod info;
mod mistakes;
mod options;
pub mod probe;
mod source;
pub mod val;
mod walk;
