//! Fetch groups: over a source in memory, and compared with those of libpcp
//! over archives and a real pmcd.

mod archives;
mod libpcp;
mod live;
mod memory;

use pmderive_testkit::oracle;
use pmderive_testkit::real_pmcd;
