//! Runs of pmval and of `pmderive val` with the same arguments, side by side.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::command::pmderive;
use super::side_by_side::is_disturbed;

/// Seconds until a run is given up.
const LIMIT: &str = "300";

/// Attempts to meet a value of a live source that does not change meanwhile.
const ROUNDS: u32 = 6;

/// Threads that runs are spread over.
const THREADS: usize = 4;

/// Differences that are as they should be: what the arguments contain, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("-O -4 -t 0.4 dyn.text", LATE_TEXT),
    ("-i one dyn.text", LATE_TEXT),
    ("-i two -i \"seven\" -t 0.5 dyn.text", LATE_TEXT),
    ("-O -4 -t 0.4 odd.text", LATE_TEXT),
    ("-O -4 -t 0.4 odd.bytes", LATE_TEXT),
    ("archives/binning ", WRONG_INDEX),
    ("archives/pcp-mpstat3 ", WRONG_INDEX),
    (
        "archives/all-irix-6.5.25 -w 8 -t 1.954sec cxfs",
        "a metric that is not supported, and never has a value, has no values",
    ),
    (
        "archives/all-sles9-sp1 -Z Asia/Kolkata -T 1.5 -A 500msec",
        "a millionth of seconds more than there are in one is carried over",
    ),
    (" 1 month ", NO_DAY),
    (" next month ", NO_DAY),
    (
        "archives/bug-1044 -O 2136.6448 minutes -A 0.25 hours",
        "the mark behind the first time is not overlooked",
    ),
];

/// As to libpcp that is the year 1969.
const NO_DAY: &str = "a day that the month lacks is no date";

/// libpcp believes an index whose last entry is the end of the last record.
const AT_END: &str = "the last record is found if its very time is asked for";

/// libpcp takes the text of the record before, although there is one of the
/// very time, when it met the latter on the way to an earlier sample.
const LATE_TEXT: &str = "a text of the very time, not of the record before";

/// libpcp takes the middle of a record for its beginning.
const WRONG_INDEX: &str = "an index that is wrong is not believed";

/// Runs to make, and what has come of those made.
pub struct Comparison {
    socket: Option<PathBuf>,
    waiting: Mutex<Vec<Vec<String>>>,
}

/// A finished run.
struct Run {
    status: Option<i32>,
    out: String,
    err: String,
}

/// What a list of arguments has come to.
enum Verdict {
    Equal,
    /// pmval crashed, or printed something else the next time, or the
    /// difference is allowed.
    NotComparable(&'static str),
    Different(String),
}

impl Comparison {
    /// Without runs. `None` without PCP, with a word on standard error.
    ///
    /// # Panics
    /// PCP is missing although `CI` is set.
    pub fn new() -> Option<Comparison> {
        if !Path::new("/usr/bin/pmval").exists() {
            let obstacle = "pmval is not installed (tests/real-pcp install)";
            assert!(std::env::var("CI").is_err(), "{obstacle}");
            eprintln!("NOT RUN: {obstacle}");
            return None;
        }
        Some(Comparison { socket: None, waiting: Mutex::default() })
    }

    /// Runs that find a pmcd behind a socket where no host is named.
    pub fn with_pmcd(self, socket: &Path) -> Comparison {
        Comparison { socket: Some(socket.to_owned()), ..self }
    }

    /// Adds a run.
    pub fn add(&self, arguments: &[&str]) {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.waiting.lock().expect("not poisoned").push(arguments);
    }

    fn ours(&self, arguments: &[String]) -> Run {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ours = pmderive(&[&["val", "--compat", "6.0"][..], &arguments].concat());
        let mut limited = Command::new("timeout");
        limited.arg(LIMIT).arg(ours.get_program()).args(ours.get_args());
        self.run(limited)
    }

    fn theirs(&self, arguments: &[String]) -> Run {
        let mut theirs = Command::new("timeout");
        theirs.args([LIMIT, "pmval"]).args(arguments);
        self.run(theirs)
    }

    fn run(&self, mut command: Command) -> Run {
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PCP") || name.starts_with("PM")) {
                command.env_remove(name);
            }
        }
        if let Some(socket) = &self.socket {
            command.env("PMCD_SOCKET", socket);
        }
        command.env("PCP_DERIVED_CONFIG", "").env("LC_ALL", "C").stdin(Stdio::null());
        let output = command.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Run { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Runs both until they agree, for values may change in between.
    fn verdict(&self, arguments: &[String]) -> Verdict {
        let mut theirs = self.theirs(arguments);
        let mut ours_before: Option<String> = None;
        // What pmcd counts of its clients is moved by the runs beside this one.
        let moves = |name: &String| name.starts_with("pmcd.") || is_disturbed(name);
        let mut has_changed = arguments.last().is_some_and(moves);
        let rounds = if self.socket.is_some() { ROUNDS } else { 1 };
        for round in 1.. {
            let Some(status) = theirs.status.filter(|status| *status < 124) else {
                return Verdict::NotComparable("pmval crashed or did not end");
            };
            let ours = self.ours(arguments);
            if (ours.status, &ours.out) == (Some(status), &theirs.out) {
                return Verdict::Equal;
            }
            if round < rounds {
                // The runs beside this one must not stay in step with it.
                thread::sleep(Duration::from_millis(u64::from(round) * 13));
            }
            let again = self.theirs(arguments);
            has_changed |= again.out != theirs.out;
            has_changed |= ours_before.is_some_and(|before| before != ours.out);
            let is_value = ours.status == again.status && header(&ours.out) == header(&again.out);
            if round >= rounds {
                let all = arguments.join(" ");
                if let Some((_, why)) = ALLOWED.iter().find(|(part, _)| all.contains(part)) {
                    return Verdict::NotComparable(why);
                }
                if finds_the_last_record(arguments, &theirs.out, &ours.out) {
                    return Verdict::NotComparable(AT_END);
                }
                if is_value && has_changed {
                    break;
                }
                return Verdict::Different(format!(
                    "status {status}, ours {:?}; {}{}{}",
                    ours.status,
                    first_difference(&theirs.out, &ours.out),
                    said("pmval", &theirs.err),
                    said("ours", &ours.err),
                ));
            }
            (theirs, ours_before) = (again, Some(ours.out));
        }
        Verdict::NotComparable("values changed from one run of pmval to the next")
    }

    /// Makes all runs.
    ///
    /// # Panics
    /// One of them is different.
    pub fn finish(self) {
        let runs = std::mem::take(&mut *self.waiting.lock().expect("not poisoned"));
        let differences = Mutex::new(Vec::new());
        let (next, equal, skipped) =
            (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match self.verdict(run) {
                            Verdict::Equal => {
                                equal.fetch_add(1, Ordering::Relaxed);
                            }
                            Verdict::NotComparable(why) => {
                                skipped.lock().expect("not poisoned").push((why, run.join(" ")));
                            }
                            Verdict::Different(how) => {
                                let text = format!("val {}\n  {how}", run.join(" "));
                                differences.lock().expect("not poisoned").push(text);
                            }
                        }
                    }
                });
            }
        });
        let differences = differences.into_inner().expect("not poisoned");
        let skipped = skipped.into_inner().expect("not poisoned");
        eprintln!(
            "{} runs: {} equal, {} different, {} not comparable",
            runs.len(),
            equal.into_inner(),
            differences.len(),
            skipped.len()
        );
        for (why, run) in skipped.iter().take(20) {
            eprintln!("not comparable ({why}): {run}");
        }
        let shown: Vec<_> = differences.iter().take(40).map(String::as_str).collect();
        assert!(differences.is_empty(), "{}", shown.join("\n"));
    }
}

/// True if records from the end of an archive on are asked for, and pmval finds
/// none.
fn finds_the_last_record(arguments: &[String], theirs: &str, ours: &str) -> bool {
    let bound = |name: &str| theirs.lines().find_map(|line| line.strip_prefix(name));
    let (start, end) = (bound("start:     "), bound("end:       "));
    let rows = ours.strip_prefix(theirs).map(|rows| rows.trim().lines().count());
    arguments[0] == "-U" && start.is_some() && start == end && rows.is_some_and(|rows| rows < 3)
}

/// The lines up to the number of samples and the interval.
fn header(text: &str) -> Vec<&str> {
    let is_of_header = |line: &&str| !line.starts_with("samples:");
    text.lines().take_while(is_of_header).collect()
}

fn said(who: &str, text: &str) -> String {
    match text.trim().lines().next() {
        Some(line) => format!("\n  {who}: {line}"),
        None => String::new(),
    }
}

fn first_difference(theirs: &str, ours: &str) -> String {
    let (mut theirs, mut ours) = (theirs.lines(), ours.lines());
    for line in 1.. {
        let pair = (theirs.next(), ours.next());
        match pair {
            (None, None) => break,
            (a, b) if a != b => return format!("line {line}\n  pmval {a:?}\n  ours  {b:?}"),
            _ => {}
        }
    }
    String::new()
}
