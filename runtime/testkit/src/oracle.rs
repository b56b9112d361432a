//! The libpcp of this machine, as a program that answers a test's questions.
//! Compiles a test's C file and talks with it; the test defines the protocol.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A compiled program.
pub struct Oracle {
    folder: tempfile::TempDir,
}

impl Oracle {
    /// Compiles the C file at an absolute path and links it with libpcp and
    /// `libraries`. `None` without PCP, with a message on standard error.
    ///
    /// # Panics
    /// If PCP is missing although `CI` is set, or if the compiler fails.
    pub fn compile(source: &str, libraries: &[&str]) -> Option<Oracle> {
        if !Path::new("/usr/include/pcp/pmapi.h").exists() {
            let obstacle = "PCP's headers are not installed (tests/real-pcp install)";
            assert!(std::env::var("CI").is_err(), "{obstacle}");
            eprintln!("NOT RUN: {obstacle}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-D_GNU_SOURCE", "-o"])
            .arg(folder.path().join("oracle"))
            .arg(source)
            .args(libraries)
            .arg("-lpcp")
            .status();
        assert!(compiled.expect("cc").success());
        Some(Oracle { folder })
    }

    /// A run of the program, without the derived metrics of this machine.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.folder.path().join("oracle"));
        command.env("PCP_DERIVED_CONFIG", "");
        command
    }
}

/// Writes all input to a run of the program, and returns all its output.
///
/// # Panics
/// If it does not read its input or fails.
pub fn answer(mut command: Command, input: String) -> String {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the oracle");
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the oracle's answers");
    writer.join().expect("no panic").expect("a pipe that is read");
    assert!(output.status.success(), "the oracle: {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
