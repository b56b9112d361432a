//! The resources that this process uses: processor time, memory, and the
//! kernel's memory for sockets.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads of this process so far, the system's on their
/// behalf included.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Processor time of this thread so far.
pub fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Memory of this process that is resident, in bytes.
pub fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * page_bytes()
}

/// The kernel's memory for buffers of TCP sockets, in bytes. It covers all
/// processes, and so both ends of a connection.
pub fn kernel_socket_memory() -> i64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let pages = line.and_then(|line| line.split_once(" mem ")?.1.trim().parse().ok());
    pages.unwrap_or(0) * page_bytes()
}

fn page_bytes() -> i64 {
    i64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// Raises this process's limit of files to the maximum.
pub fn raise_limit_of_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If that fails, connecting reports it.
    let _ = setrlimit(Resource::Nofile, raised);
}
