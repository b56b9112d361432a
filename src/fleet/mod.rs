//! Watches a fleet: thousands of hosts, each fetched once in an interval and
//! evaluated at once (`pmderive serve`).
//!
//! ```text
//! serve.toml ── config ──┐
//! hosts.json ── targets ─┼─► schedule ──► host ── frame ──► ring ──► sink (JSON lines,
//! shop.conf ─── Engine ──┘    (slots)     (a task each)      (one for each sink)  remote write,
//!                                            ▲                               /metrics)
//!                                    pmcd, by AsyncHostContext
//! ```
//!
//! A host never waits for a sink, nor for another host. What a host answered in a
//! slot is a [`frame::Frame`]; that its series ended is a [`frame::Stale`]. Sinks
//! see nothing else of a host.

pub mod aggregates;
pub mod condition;
pub mod config;
pub mod counting;
pub mod engine;
pub mod frame;
pub mod host;
pub mod json_lines;
pub mod labels;
pub mod log;
pub mod numbers;
pub mod outlets;
pub mod plan;
pub mod server;
pub mod sinks;
pub mod slot;
pub mod socket;
pub mod target;
pub mod targets;
pub mod world;
