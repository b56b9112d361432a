//! The live source: against scripted peers, and against a real pmcd.

mod described;
mod fake;
mod fake_pmcd;
#[path = "../shared/pminfo.rs"]
mod pminfo;
mod real;
mod real_pmcd;
