//! The limit of open files: every host uses one for its connection.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside those of hosts: sinks, definitions, connections to the listener.
const OTHER_FILES: u64 = 512;

/// Raises the limit of open files as far as the system allows.
///
/// # Errors
/// The limit is too low for this many hosts; the text says so.
pub fn allow_files(hosts: usize) -> Result<(), String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = hosts as u64 + OTHER_FILES;
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let wanted = Rlimit { current: maximum, maximum };
    if maximum.is_none_or(|most| most >= needed) && setrlimit(Resource::Nofile, wanted).is_ok() {
        return Ok(());
    }
    let most = maximum.map_or("what the system allows".to_owned(), |most| most.to_string());
    Err(format!(
        "{hosts} hosts need {needed} open files, and the limit is {most}: raise it \
         (`ulimit -n`, `LimitNOFILE=` of the unit), or divide the fleet between processes"
    ))
}
