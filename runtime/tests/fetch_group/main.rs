//! Fetch groups: over a source in memory, and compared with those of libpcp
//! over archives and a real pmcd.

mod archives;
mod libpcp;
mod live;
mod memory;
#[path = "../shared/oracle.rs"]
mod oracle;
#[path = "../live/real_pmcd.rs"]
mod real_pmcd;
