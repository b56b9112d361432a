//! The archive source against real archives: those recorded for this project
//! (`tests/archives` at the top level), those of PCP's own test suite, and
//! what PCP's tools say about both.

mod damage;
mod described;
mod fetching;
mod pmdumplog;
#[path = "../shared/pminfo.rs"]
mod pminfo;
mod suite;
