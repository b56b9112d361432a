//! Signals at random moments. A fixed seed chooses when commands that take samples are ended or
//! killed, from the first milliseconds on.
//!
//! Afterwards the disk has a valid archive or none, and a table that is complete, or
//! `.partial`, or none. The name is free again. There is no other file, not even after SIGKILL.
//! `PMDERIVE_SIGNALS=N` runs N moments instead of a few.

use std::ffi::OsStr;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::new_file::NewFile;

use crate::command;
use command::{Run, finished, pmderive, run};

const FLEET: &str = "tests/archives/own-fleet";

const SIGNALS: [&str; 5] = ["-TERM", "-HUP", "-INT", "-QUIT", "-KILL"];

/// Moments that are tried in each test.
fn moments() -> u64 {
    let chosen = std::env::var("PMDERIVE_SIGNALS").ok();
    chosen.and_then(|moments| moments.parse().ok()).unwrap_or(25)
}

/// The next of numbers that the same seed always gives (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// True for a signal that does not end a command here: SIGHUP under nohup(1),
/// SIGINT and SIGQUIT in the background of a script.
fn is_ignored(signal: &str) -> bool {
    let number = match signal {
        "-HUP" => 1,
        "-INT" => 2,
        "-QUIT" => 3,
        _ => return false,
    };
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("hexadecimal digits");
    mask >> (number - 1) & 1 != 0
}

/// True where a file need not have a name (`O_TMPFILE`), so that not even
/// SIGKILL leaves one.
fn files_need_no_name() -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let affixes = (OsStr::new("a"), OsStr::new("b"));
    let _file = NewFile::create(folder.path(), affixes).expect("a file");
    std::fs::read_dir(folder.path()).expect("a folder").count() == 0
}

/// What a run has left that was sent a signal.
struct Left {
    /// The signal, and after how long it came, for messages.
    what: String,
    /// The signal that ended the process, if one did.
    killed_by: Option<i32>,
    run: Run,
    files: Vec<String>,
}

/// Runs the command in a folder of its own again and again, each time with a
/// signal at another moment: half of them early.
fn at_random_moments(
    seed: u64,
    arguments: impl Fn(&str) -> Vec<String>,
    check: impl Fn(&Path, &Left),
) {
    let mut state = seed;
    for moment in 0..moments() {
        let signal = match SIGNALS[moment as usize % SIGNALS.len()] {
            signal if is_ignored(signal) => "-TERM",
            signal => signal,
        };
        // A debug build takes some 50 milliseconds until it begins to write.
        let longest = if next(&mut state).is_multiple_of(2) { 60_000 } else { 400_000 };
        let delay = Duration::from_micros(next(&mut state) % longest);
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out.csv");
        let arguments = arguments(out.to_str().expect("UTF-8"));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = pmderive(&arguments);
        let mut printed = tempfile::tempfile().expect("a file");
        let stdout = printed.try_clone().expect("the same file");
        command.stdout(stdout).stderr(Stdio::piped());
        let child = command.spawn().expect("the command runs");
        std::thread::sleep(delay);
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).output();
        sent.expect("there is such a command");
        let output = child.wait_with_output().expect("its end");
        let killed_by = output.status.signal();
        let mut run = finished(output);
        printed.rewind().expect("a file");
        printed.read_to_string(&mut run.out).expect("text");
        let entries = std::fs::read_dir(folder.path()).expect("a folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().into_string().expect("UTF-8")
        };
        let mut files: Vec<String> = entries.map(name).collect();
        files.sort_unstable();
        let what = format!("moment {moment} of seed {seed:#x}: {signal} after {delay:?}");
        check(&out, &Left { what, killed_by, run, files });
    }
}

/// An archive is whole but for a write that the kernel itself cuts short; gives
/// the number of its records.
fn records(archive: &Path, is_killed: bool, what: &str) -> usize {
    let mut context = match ArchiveContext::open(archive) {
        Ok(context) => context,
        Err(error) => panic!("{what}: {error}"),
    };
    let mut records = 0;
    loop {
        match context.next_record() {
            Ok(_) => records += 1,
            Err(error) if error.is_end_of_archive() => return records,
            // The kernel ends a long write at a page when the process is killed.
            Err(error) if is_killed && error.status() == PmStatus::LOGREC => return records,
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// What `record` leaves. Afterwards its name can be used, unless there is an archive.
fn check_recording(out: &Path, left: &Left) {
    let Left { what, killed_by, run, files } = left;
    let is_killed = killed_by.is_some() && !files_need_no_name();
    let is_temporary = |file: &&String| is_killed && file.ends_with(".new");
    let files: Vec<&String> = files.iter().filter(|file| !is_temporary(file)).collect();
    let suffixes = files.iter().map(|file| file.strip_prefix("out.csv.").unwrap_or("none of it"));
    let suffixes: Vec<&str> = suffixes.collect();
    let is_volume = |suffix: &&str| suffix.parse::<u32>().is_ok();
    let is_archive = suffixes.iter().any(is_volume);
    match is_archive {
        true => {
            let is_known = |suffix: &&str| ["meta", "index"].contains(suffix) || is_volume(suffix);
            assert!(suffixes.iter().all(is_known), "{what}: {files:?}");
            let count = records(out, killed_by.is_some(), what);
            assert!(count > 0, "{what}: an archive has records");
        }
        // Killed between two system calls: the next recording takes it over.
        false if suffixes == ["meta"] && killed_by.is_some() => {}
        false => assert!(files.is_empty(), "{what}: {files:?}"),
    }
    match run.status {
        // It may have come to its end before the signal came.
        Some(0) => assert!(is_archive, "{what}: {}", run.err),
        Some(1) => assert!(!is_archive, "{what}: {}", run.err),
        status => assert!(status.is_none() && killed_by.is_some(), "{what}: {}", run.err),
    }
    if !is_archive {
        let out = out.to_str().expect("UTF-8");
        let again = self::run(&["record", "-a", FLEET, "-o", out, "hinv.ncpu"]);
        assert_eq!(again.status, Some(0), "{what}: the name is taken: {}", again.err);
    }
}

#[test]
fn a_live_recording() {
    let arguments = |out: &str| {
        let own =
            ["record", "-L", "-t", "1msec", "-v", "20kb", "-o", out, "kernel.all.load", "mem.util"];
        own.map(str::to_owned).to_vec()
    };
    at_random_moments(0x5eed_0001, arguments, check_recording);
}

#[test]
fn a_recording_of_an_archive() {
    let arguments = |out: &str| {
        let own = ["record", "-a", FLEET, "-t", "1msec", "-v", "100kb", "-o", out, "."];
        own.map(str::to_owned).to_vec()
    };
    at_random_moments(0x5eed_0002, arguments, check_recording);
}

/// What `export` leaves.
fn check_table(out: &Path, left: &Left) {
    let Left { what, killed_by, run, files } = left;
    let is_killed = killed_by.is_some() && !files_need_no_name();
    let is_temporary = |file: &&str| is_killed && file.ends_with(".unfinished");
    let files = files.iter().map(String::as_str).filter(|file| !is_temporary(file));
    let files: Vec<&str> = files.collect();
    let expected: &[&[&str]] = match (run.status, killed_by) {
        (Some(0), None) => &[&["out.csv"]],
        // A signal before the first sample leaves nothing to tell.
        (Some(1), None) => &[&["out.csv.partial"], &[]],
        (None, Some(_)) => &[&[]],
        status => panic!("{what}: {status:?}: {}", run.err),
    };
    assert!(expected.contains(&&files[..]), "{what}: {files:?}: {}", run.err);
    for file in files {
        let table = std::fs::read_to_string(out.with_file_name(file)).expect("a table");
        let columns = table.lines().map(|line| line.matches(',').count());
        assert!(table.ends_with('\n') && columns.min() >= Some(9), "{what}: {file}");
    }
}

#[test]
fn a_live_export() {
    let arguments = |out: &str| {
        let own = ["export", "-L", "-s", "100000", "-t", "1msec", "-o", out, "kernel.all.load"];
        own.map(str::to_owned).to_vec()
    };
    at_random_moments(0x5eed_0003, arguments, check_table);
}

#[test]
fn an_export_of_an_archive() {
    let arguments = |out: &str| {
        let own = ["export", "-a", FLEET, "-t", "1msec", "-o", out, "disk.dev.total"];
        own.map(str::to_owned).to_vec()
    };
    at_random_moments(0x5eed_0004, arguments, check_table);
}

/// What was printed ends with a whole sample, of three lines in CSV; the kernel ends a
/// write at a page when the process is killed.
#[test]
fn samples_that_are_printed() {
    let eval = "eval -L -s 100000 -t 1msec --format csv kernel.all.load";
    let val = "val -L -s 100000 -t 1msec kernel.all.load";
    for (seed, line, lines) in [(0x5eed_0005, eval, 3), (0x5eed_0006, val, 1)] {
        let arguments = |_: &str| line.split(' ').map(str::to_owned).collect();
        at_random_moments(seed, arguments, |_, Left { what, run, .. }| {
            let out = &run.out;
            let is_cut = out.len().is_multiple_of(4096);
            assert!(is_cut || out.ends_with('\n'), "{what}: {out}");
            let samples = out.lines().count().saturating_sub(1);
            assert!(is_cut || samples.is_multiple_of(lines), "{what}: {out}");
        });
    }
}

/// Under nohup(1) the end of a terminal is none for a recording.
#[test]
fn a_hangup_that_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let arguments = ["record", "-L", "-t", "1msec", "-o", out.to_str().expect("UTF-8"), "mem"];
    let command = pmderive(&arguments);
    let script = format!("trap '' HUP; exec {:?} {}", command.get_program(), arguments.join(" "));
    let child = Command::new("bash")
        .args(["-c", &script])
        .env("PCP_DERIVED_CONFIG", "")
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash");
    let count = || ArchiveContext::open(&out).map_or(0, |_| records(&out, true, "it grows"));
    let send = |signal: &str| {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.expect("there is such a command").success());
    };
    let wait_for = |least: usize| {
        while count() < least {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for(2);
    send("-HUP");
    wait_for(count() + 20);
    send("-TERM");
    let run = finished(child.wait_with_output().expect("its end"));
    assert_eq!(run.status, Some(0), "{}", run.err);
}

/// A pipe that nobody reads is not open yet. Any signal ends the wait for a reader.
#[test]
fn a_pipe_without_a_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let out = pipe.to_str().expect("UTF-8");
    let mut command = pmderive(&["export", "-a", FLEET, "--format", "csv", "-o", out, "hinv.ncpu"]);
    let mut child = command.spawn().expect("the command runs");
    std::thread::sleep(Duration::from_millis(500));
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(sent.expect("there is such a command").success());
    assert_eq!(child.wait().expect("its end").signal(), Some(15));
}
