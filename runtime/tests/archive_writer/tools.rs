//! PCP's tools, applied to archives.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A tool's output about an archive: standard output, then standard error.
/// `None` where PCP is not installed, which only a developer's machine may do.
pub fn print(tool: &str, arguments: &[&str], archive: &Path) -> Option<String> {
    let output = Command::new(tool)
        .args(arguments)
        .arg(archive)
        .env("PCP_DERIVED_CONFIG", "")
        .env("TZ", "UTC")
        // Tools in Python need the interpreter of the system.
        .env("PATH", "/usr/bin:/bin:/usr/lib/pcp/bin")
        .output();
    let Ok(output) = output else {
        let required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!required, "{tool} is not installed");
        eprintln!("SKIPPED: {tool} is not installed");
        return None;
    };
    let mut text = String::new();
    for line in [output.stdout, output.stderr].concat().split_inclusive(|byte| *byte == b'\n') {
        // Lines that are not UTF-8 are read as Latin-1, as our reader does it.
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(_) => text.extend(line.iter().map(|byte| char::from(*byte))),
        }
    }
    if !output.status.success() {
        text.push_str(&format!("{tool}: {}\n", output.status));
    }
    Some(text)
}

/// A folder to write into: in memory where that is possible, as the writer
/// waits for disks when it ends.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a folder")
}
