//! `pmderive val --compat 6.0` prints what pmval of the installed PCP prints:
//! standard output byte for byte, and the exit status.
//!
//! Four tests: archives written here with what is rare, archives of PCP's test
//! suite, random windows of time over them, and every metric of a live pmcd.
//! `PMVAL_ARCHIVES=all` takes all archives of the suite instead of fifty.

#[path = "pmval/archive_runs.rs"]
mod archive_runs;
#[path = "pmval/archive_writer.rs"]
mod archive_writer;
mod command;
#[path = "pmval/comparison.rs"]
mod comparison;
#[path = "pmval/odd.rs"]
mod odd;
#[path = "../runtime/tests/live/real_pmcd.rs"]
mod real_pmcd;
mod side_by_side;

#[path = "pmval/archives.rs"]
mod archives;
#[path = "pmval/live.rs"]
mod live;
#[path = "pmval/rare.rs"]
mod rare;
#[path = "pmval/windows.rs"]
mod windows;
