//! Runs of a command on a terminal of its own.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// Runs a command with its input and both outputs on a terminal; what it has
/// written there, byte for byte.
pub fn run(mut command: Command) -> Vec<u8> {
    let (mut master, slave) = open();
    let stream = || slave.try_clone().expect("a descriptor");
    command.stdin(stream()).stdout(stream()).stderr(stream());
    let mut child = command.spawn().expect("the command runs");
    // The end comes once nobody has the terminal open any more.
    drop((command, slave));
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    // Linux says EIO at the end.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        out.extend_from_slice(&buffer[..count]);
    }
    child.wait().expect("it ends");
    out
}

/// Both sides of a new terminal, which changes nothing that passes through it.
fn open() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is locked");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let path = OsStr::from_bytes(name.as_bytes());
    let slave = OpenOptions::new().read(true).write(true).open(path).expect("it opens");
    let mut modes = tcgetattr(&slave).expect("it is a terminal");
    modes.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &modes).expect("it is a terminal");
    (master.into(), slave)
}
