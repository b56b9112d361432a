//! The archive source against real archives: those recorded for this project
//! (`tests/archives` at the top level), and those of PCP's own test suite. Also compares with the
//! output of PCP's tools about both.

mod damage;
mod described;
mod doubled;
mod fetching;
mod growing;
mod interpolated;
mod libpcp;
mod modes;
mod multi;
mod mutations;
mod pmdumplog;
mod suite;

use pmderive_testkit::choices;
use pmderive_testkit::counting;
use pmderive_testkit::oracle;
use pmderive_testkit::pminfo;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;
