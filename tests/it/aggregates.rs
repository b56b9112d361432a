//! Aggregates across hosts: definitions over a fleet, fed with frames of invented hosts.
//!
//! In random fleets hosts come, go, fail, are late and differ in kind. Their results are
//! compared bit for bit with a model, which keeps every value and starts afresh for each slot.
//! So are processes that share a fleet.

mod fleet;
mod mistakes;
mod model;
mod random;
mod reload;
mod tables;
