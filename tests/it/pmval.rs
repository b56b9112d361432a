//! `pmderive val --compat 6.0` prints what pmval of the installed PCP prints:
//! standard output byte for byte, and the exit status.
//!
//! Four tests: unusual archives written here, archives of PCP's test suite, random windows of
//! time over them, and every metric of a live pmcd. `PMVAL_ARCHIVES=all` uses all archives of
//! the suite instead of fifty.

mod archives;
mod comparison;
mod live;
mod odd;
mod rare;
mod windows;

use pmderive_testkit::real_pmcd;

use crate::archive_runs;
use crate::archive_writer;
use crate::command;
use crate::side_by_side;
