//! The archive source against real archives: those recorded for this project
//! (`tests/archives` at the top level), those of PCP's own test suite, and
//! what PCP's tools say about both.

#[path = "../shared/choices.rs"]
mod choices;
#[path = "../shared/counting.rs"]
mod counting;
mod damage;
mod described;
mod fetching;
mod growing;
mod interpolated;
mod libpcp;
mod modes;
mod multi;
mod mutations;
#[path = "../shared/oracle.rs"]
mod oracle;
mod pmdumplog;
#[path = "../shared/pminfo.rs"]
mod pminfo;
mod suite;
