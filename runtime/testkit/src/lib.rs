//! Tools for tests, benchmarks and fuzzers; never published.
#![deny(unsafe_code)]

pub mod archives;
pub mod choices;
pub mod counting;
pub mod fake_pmcd;
pub mod fleet;
pub mod kernels;
pub mod mix;
pub mod oracle;
pub mod pminfo;
pub mod real_pmcd;
pub mod real_receivers;
pub mod receiver;
pub mod replays;
pub mod sim;
