//! Aggregates across hosts: definitions over a fleet, fed with frames of invented
//! hosts.
//!
//! Random fleets, in which hosts come, go, fail, are late and are of different
//! kinds, are compared bit for bit with a model that keeps every value and begins
//! from nothing for each slot; and so are processes that share a fleet.

mod fleet;
mod mistakes;
mod model;
mod random;
mod reload;
mod tables;
