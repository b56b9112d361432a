//! The live source: against fake pmcds, and against a real pmcd.

mod described;
mod fake;
mod fakes;
mod like_real;
mod many_hosts;
#[path = "../shared/pminfo.rs"]
mod pminfo;
mod real;
mod real_calls;
mod real_pmcd;
mod reconnect;
mod round_trips;
mod secure;
