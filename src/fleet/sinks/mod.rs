//! Sinks: the destinations of values. Each has its own [`ring::Ring`], or keeps only the newest
//! frames, so that no host waits for it.
//!
//! ```text
//!                 ┌─ ring ─► encode ─► remote_write ─► client ─► receiver
//! Event ──────────┤
//!                 └─ newest ─► scrape, text ◄─ http ◄─ clients
//! ```
//!
//! Names, labels and values of series are the same in all sinks ([`names`]).

pub mod client;
pub mod delivery;
pub mod encode;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod held_bytes;
pub mod http;
pub mod inlet;
pub mod json_lines;
pub mod names;
pub mod newest_frames;
pub mod number;
pub mod numbers;
pub mod outlets;
pub mod query;
pub mod remote_write;
pub mod ring;
#[cfg(any(test, feature = "fuzz"))]
pub mod samples;
pub mod scrape;
pub mod secret;
pub mod sink_set;
pub mod text;
pub mod tls;
