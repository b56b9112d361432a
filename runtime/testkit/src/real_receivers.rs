//! Receivers of metrics as Debian has them, started for one test and stopped with
//! it (`tests/real-prometheus`).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::real_pmcd::{not_run, on_a_free_port, open_folder, script_named};

/// A receiver that runs.
pub struct Receiver {
    /// Its port on loopback.
    pub port: u16,
    folder: tempfile::TempDir,
}

impl Receiver {
    /// Starts a Prometheus that accepts remote write and scrapes these URLs
    /// each second. `None` where it is not installed, with a message on
    /// standard error.
    ///
    /// # Panics
    /// If it does not start, or is not installed although `CI` is set.
    pub fn prometheus(scraped: &[String]) -> Option<Receiver> {
        let mut options = vec!["prometheus".to_owned()];
        options.extend_from_slice(scraped);
        Receiver::start("prometheus", &options)
    }

    /// Starts a VictoriaMetrics.
    ///
    /// # Panics
    /// As for [`Receiver::prometheus`].
    pub fn victoria() -> Option<Receiver> {
        Receiver::start("victoria-metrics", &["victoria".to_owned()])
    }

    fn start(program: &str, options: &[String]) -> Option<Receiver> {
        if !is_installed(program) {
            return None;
        }
        let mut receiver = Receiver { port: 0, folder: open_folder() };
        on_a_free_port(|port| {
            receiver.port = port;
            let mut script = receiver.script(&options[0]);
            let started = script.args(&options[1..]).output().expect("tests/real-prometheus");
            let said = String::from_utf8_lossy(&started.stderr).into_owned();
            started.status.success().then_some(()).ok_or(said)
        });
        Some(receiver)
    }

    /// Its answer to a GET.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
        body.to_owned()
    }

    fn script(&self, action: &str) -> Command {
        let mut script = script_named("real-prometheus");
        script.args([action, &self.port.to_string()]).env("TMPDIR", self.folder.path());
        script
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if !self.script("stop").status().is_ok_and(|status| status.success()) {
            eprintln!("the receiver on port {} could not be stopped", self.port);
        }
    }
}

/// The result of `promtool check metrics` for a text: its exit status (0 all
/// well, 1 it cannot be read, 3 it breaks a convention) and its output. `None`
/// where it is not installed, with a message on standard error.
///
/// # Panics
/// If it cannot be run, or is not installed although `CI` is set.
pub fn promtool_check_metrics(text: &str) -> Option<(i32, String)> {
    if !is_installed("promtool") {
        return None;
    }
    let mut script = script_named("real-prometheus");
    script.arg("check").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().expect("tests/real-prometheus");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("promtool");
    let words = [output.stdout, output.stderr].concat();
    Some((output.status.code().expect("a status"), String::from_utf8_lossy(&words).into_owned()))
}

fn is_installed(program: &str) -> bool {
    let script = PathBuf::from(script_named("real-prometheus").get_program());
    let root = script.ancestors().nth(2).expect("the folder of the tests");
    if root.join("target/receivers/usr/bin").join(program).exists() {
        return true;
    }
    not_run(&format!("{program} is not installed (tests/real-prometheus install)"));
    false
}
