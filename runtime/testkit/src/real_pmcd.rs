//! A pmcd of an installed PCP, started for one test and stopped with it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

/// A running pmcd with the sample agents.
pub struct RealPmcd {
    /// Its process.
    pub pid: u32,
    /// Its port on loopback.
    pub port: u16,
    /// Its socket in the file system.
    pub socket: PathBuf,
    folder: tempfile::TempDir,
    settings: Settings,
}

/// Further settings of a pmcd.
#[derive(Clone, Default)]
pub struct Settings {
    /// Options of its command line.
    pub options: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
}

/// A free port below the range of outgoing connections, which therefore do not
/// occupy it meanwhile.
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

/// Starts a server on a free port, and on another one if a process has taken
/// that port meanwhile.
///
/// # Panics
/// If it does not start on any port.
pub(crate) fn on_a_free_port(mut start: impl FnMut(u16) -> Result<(), String>) {
    let mut said = String::new();
    for _ in 0..3 {
        match start(free_port()) {
            Ok(()) => return,
            Err(error) => said += &error,
        }
    }
    panic!("{said}");
}

/// A script below `tests`, from any package of the workspace.
pub(crate) fn script_named(name: &str) -> Command {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut scripts = folders.map(|folder| folder.join("tests").join(name));
    Command::new(scripts.find(|path| path.is_file()).expect("a script"))
}

fn script() -> Command {
    script_named("real-pcp")
}

/// True if a pmcd can be started here; if not, a message on standard error says
/// why.
fn can_start() -> bool {
    let installed = Path::new("/usr/lib/pcp/bin/pmcd").exists();
    let root = std::fs::metadata("/proc/self").is_ok_and(|owner| owner.uid() == 0);
    let obstacle = match (installed, root) {
        (true, true) => return true,
        (true, false) => "pmcd has to be started by root",
        (false, _) => "PCP is not installed (tests/real-pcp install)",
    };
    not_run(obstacle);
    false
}

/// Reports why a test does not run. In CI all tests have to run, so there it fails.
pub fn not_run(obstacle: &str) {
    assert!(std::env::var("CI").is_err(), "{obstacle}");
    eprintln!("NOT RUN: {obstacle}");
}

/// A folder of this test that pmcd can read, which changes its user.
pub fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("pmcd").tempdir().expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("permissions");
    folder
}

/// A running pmproxy.
pub struct RealPmproxy {
    /// Its port on loopback.
    pub port: u16,
    folder: tempfile::TempDir,
}

impl RealPmproxy {
    /// Starts a pmproxy on a free port; only where a pmcd was started.
    ///
    /// # Panics
    /// It does not start.
    pub fn start() -> RealPmproxy {
        RealPmproxy::start_with("false")
    }

    /// [`RealPmproxy::start`], and it answers HTTP as well.
    ///
    /// # Panics
    /// As there.
    pub fn with_http() -> RealPmproxy {
        RealPmproxy::start_with("true")
    }

    fn start_with(http: &str) -> RealPmproxy {
        let mut proxy = RealPmproxy { port: 0, folder: open_folder() };
        on_a_free_port(|port| {
            proxy.port = port;
            let mut script = proxy.script("proxy");
            let started = script.env("PROXY_HTTP", http).output().expect("tests/real-pcp");
            let said = String::from_utf8_lossy(&started.stderr).into_owned();
            started.status.success().then_some(()).ok_or(said)
        });
        proxy
    }

    fn script(&self, action: &str) -> Command {
        let mut script = script();
        script.args([action, &self.port.to_string()]).env("TMPDIR", self.folder.path());
        script
    }
}

impl Drop for RealPmproxy {
    fn drop(&mut self) {
        let _ = self.script("stop").status();
    }
}

impl RealPmcd {
    /// Starts a pmcd on a free port. `None` without PCP or without the rights
    /// to start it, with a message on standard error.
    ///
    /// # Panics
    /// If pmcd does not start, or cannot be started although `CI` is set.
    pub fn start() -> Option<RealPmcd> {
        RealPmcd::start_with(Settings::default())
    }

    /// [`RealPmcd::start`] with settings.
    ///
    /// # Panics
    /// As there.
    pub fn start_with(settings: Settings) -> Option<RealPmcd> {
        if !can_start() {
            return None;
        }
        let (folder, socket) = (open_folder(), PathBuf::new());
        let mut pmcd = RealPmcd { pid: 0, port: 0, socket, folder, settings };
        on_a_free_port(|port| {
            pmcd.port = port;
            pmcd.launch()
        });
        Some(pmcd)
    }

    /// The contents of its log.
    pub fn log(&self) -> String {
        let path = self.folder.path().join(format!("real-pcp.{}/pmcd.log", self.port));
        std::fs::read_to_string(path).expect("a log")
    }

    fn launch(&mut self) -> Result<(), String> {
        let mut script = self.script("start");
        script.args(&self.settings.options).envs(self.settings.environment.iter().cloned());
        let started = script.output().expect("tests/real-pcp");
        let printed = String::from_utf8_lossy(&started.stdout);
        let said = String::from_utf8_lossy(&started.stderr);
        if !started.status.success() {
            return Err(format!("{printed}{said}"));
        }
        let field = |name: &str| {
            printed.lines().find_map(|line| line.strip_prefix(name)).expect("a printed field")
        };
        self.pid = field("pid ").parse().expect("a process");
        self.socket = field("socket ").into();
        Ok(())
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
        self.launch().expect("it starts where it was");
    }

    /// Ends an agent, a process that this pmcd started.
    pub fn kill_agent(&self, pid: u32) {
        let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("kill").success());
    }

    /// The output of one of PCP's tools about this pmcd, in the C locale.
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
