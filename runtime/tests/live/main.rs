//! The live source: against fake pmcds, and against a real pmcd.

mod described;
mod fake;
mod fakes;
mod like_real;
mod many_hosts;
mod real;
mod real_calls;
mod reconnect;
mod round_trips;
mod secure;

use pmderive_testkit::{pminfo, real_pmcd};
