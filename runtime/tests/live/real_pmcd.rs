//! A pmcd of an installed PCP, started for one test and stopped with it.
//!
//! Tests of several packages share this file.

// None of them needs all of it.
#![allow(dead_code)]

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

/// A running pmcd with the sample agents.
pub struct RealPmcd {
    pub pid: u32,
    pub port: u16,
    pub socket: PathBuf,
    folder: tempfile::TempDir,
}

/// A port that nobody listens on, below those that the system gives to
/// outgoing connections, so that none of these takes it meanwhile.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % 1000).expect("below 1000");
    loop {
        let port = 20_000 + process * 10 + NEXT.fetch_add(1, Ordering::Relaxed) % 10_000;
        if std::net::TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// The script, from any package of the workspace.
fn script() -> Command {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = folders.map(|folder| folder.join("tests/real-pcp")).find(|path| path.exists());
    Command::new(found.expect("tests/real-pcp"))
}

impl RealPmcd {
    /// Starts a pmcd on a free port. `None` without PCP or without the rights
    /// to start it, with a word on standard error.
    ///
    /// # Panics
    /// pmcd does not start, or cannot be started although `CI` is set.
    pub fn start() -> Option<RealPmcd> {
        let installed = Path::new("/usr/lib/pcp/bin/pmcd").exists();
        let root = std::fs::metadata("/proc/self").is_ok_and(|owner| owner.uid() == 0);
        let obstacle = match (installed, root) {
            (true, true) => None,
            (true, false) => Some("pmcd has to be started by root"),
            (false, _) => Some("PCP is not installed (tests/real-pcp install)"),
        };
        if let Some(obstacle) = obstacle {
            assert!(std::env::var("CI").is_err(), "{obstacle}");
            eprintln!("NOT RUN: {obstacle}");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("pmcd").tempdir().expect("a folder");
        // pmcd changes its user before it makes its files.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("permissions");
        let port = free_port();
        let mut pmcd = RealPmcd { pid: 0, port, socket: PathBuf::new(), folder };
        pmcd.launch();
        Some(pmcd)
    }

    fn launch(&mut self) {
        let started = self.script("start").output().expect("tests/real-pcp");
        let printed = String::from_utf8_lossy(&started.stdout);
        let said = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "{printed}{said}");
        let field = |name: &str| {
            printed.lines().find_map(|line| line.strip_prefix(name)).expect("a printed field")
        };
        self.pid = field("pid ").parse().expect("a process");
        self.socket = field("socket ").into();
    }

    fn script(&self, action: &str) -> Command {
        let mut script = script();
        script.args([action, &self.port.to_string()]).env("TMPDIR", self.folder.path());
        script
    }

    /// Stops it and starts another in its place.
    ///
    /// # Panics
    /// One of the two fails.
    pub fn restart(&mut self) {
        assert!(self.script("stop").status().expect("tests/real-pcp").success());
        self.launch();
    }

    /// Ends an agent, a process that this pmcd started.
    pub fn kill_agent(&self, pid: u32) {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("kill").success());
    }

    /// What one of PCP's tools prints about this pmcd, in the C locale.
    pub fn tool(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(name)
            .args(["-h", &format!("unix:{}", self.socket.display())])
            .args(arguments)
            .env("LC_ALL", "C")
            .env_remove("PCP_DERIVED_CONFIG")
            .output()
            .expect(name);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for RealPmcd {
    fn drop(&mut self) {
        let stopped = self.script("stop").status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("pmcd on port {} could not be stopped", self.port);
        }
    }
}
