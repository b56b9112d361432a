//! Watches a fleet: thousands of hosts, each fetched once in an interval and
//! evaluated at once (`pmderive serve`).
//!
//! ```text
//! serve.toml ── config ──┐
//! hosts.json ── targets ─┼─► plan ──► engine ──► host ── frame ──► ring ──► sink (JSON lines,
//! shop.conf ── registry ─┘          (threads)  (a task each)│              remote write, /metrics)
//!                                        ▲                  ▼                 ▲
//!                              pmcd, by AsyncHostContext    aggregates ── frame of the fleet
//! ```
//!
//! A host never waits for a sink, nor for another host. Sinks get two kinds of events of a
//! host. The values of a slot are a [`frame::Frame`]; the end of series is a [`frame::Stale`].
//! [`server`] connects all parts, and changes from one plan to the next.

pub mod aggregates;
pub mod condition;
pub mod config;
pub mod counting;
pub mod engine;
pub mod frame;
pub mod host;
pub mod labels;
pub mod log;
pub mod numbers;
pub mod plan;
mod redaction;
pub mod server;
pub mod sinks;
pub mod slot;
pub mod stages;
pub mod targets;
pub mod world;
