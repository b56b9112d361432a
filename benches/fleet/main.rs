//! The cost of fleets of like hosts: memory, processor time, and the time until
//! all are back. The figures are one line each, or JSON with `--json`.
//!
//! ```text
//! cargo bench --bench fleet                     everything but a real pmcd
//! cargo bench --bench fleet -- -h HOST          contexts of that pmcd as well
//! cargo bench --bench fleet -- --only alike     one part: alike, drawn, classes, blocking, churn,
//!                                               records, between, context, derived, async
//! cargo bench --bench fleet -- --hosts 100      another size (1,000)
//! ```
//!
//! Each part is a process of its own, so it has nothing left over from another
//! part. Its fake pmcds are a further process. A host has 100 metrics, 30 of
//! them over 6 instance domains; 1,000 definitions have 4,600 values of it.
//! After every ten fetches and after each disturbance, the values of every host
//! are compared with those of the interpreter with plans of its own. A
//! difference is a failure.

mod churn;
mod client;
mod contexts;
mod definitions;
mod hosts;
mod like_hosts;
mod meter;
mod oracle;
mod plan;
mod rows;
mod tasks;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};

use pmderive_testkit::counting;

use plan::Plan;
use rows::Row;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// First argument of the process of a part.
const PART: &str = "part";

/// Parts that need no real pmcd.
const PARTS: [&str; 7] = ["alike", "drawn", "classes", "blocking", "churn", "records", "between"];
/// Parts that need one.
const REAL_PARTS: [&str; 3] = ["context", "derived", "async"];

/// The amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Hosts.
    pub hosts: u32,
    /// Hosts at the first look at memory.
    pub few: u32,
    /// Fetches that are timed together.
    pub rounds: u32,
    /// Number of runs; the median counts.
    pub turns: u32,
    /// Instance domains, for churn in one of them.
    pub domains: u32,
    /// Contexts of an archive or of a real pmcd.
    pub contexts: u32,
}

impl Sizes {
    /// The sizes for this number of hosts.
    fn of(hosts: u32) -> Sizes {
        let large = hosts >= 100;
        Sizes {
            hosts,
            few: hosts / 5,
            rounds: if large { 20 } else { 2 },
            turns: if large { 9 } else { 1 },
            domains: if large { 1_000 } else { 20 },
            contexts: if large { 40 } else { 5 },
        }
    }
}

/// The parts to run.
struct Wanted {
    sizes: Sizes,
    json: bool,
    only: Option<String>,
    host: Option<String>,
}

fn wanted(arguments: &[String]) -> Result<Wanted, Box<dyn Error>> {
    let mut wanted = Wanted { sizes: Sizes::of(1_000), json: false, only: None, host: None };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().cloned().ok_or(format!("{argument}: what?"));
        match argument.as_str() {
            // An argument that cargo adds.
            "--bench" => {}
            "--json" => wanted.json = true,
            "--hosts" => wanted.sizes = Sizes::of(value()?.parse()?),
            "--only" => wanted.only = Some(value()?),
            "-h" => wanted.host = Some(value()?),
            other => return Err(format!("{other}: no such option").into()),
        }
    }
    Ok(wanted)
}

fn part(name: &str, sizes: Sizes, host: Option<&str>) -> Result<Vec<Row>, Box<dyn Error>> {
    let alike = Plan { hosts: sizes.hosts, classes: 1, is_drawn: false };
    match (name, host) {
        ("alike", _) => like_hosts::all(name, alike, sizes),
        ("drawn", _) => like_hosts::memory(name, Plan { is_drawn: true, ..alike }, sizes),
        ("classes", _) => like_hosts::memory(name, Plan { classes: 20, ..alike }, sizes),
        ("blocking", _) => contexts::allocations(sizes),
        ("churn", _) => churn::all(sizes),
        ("records" | "between", _) => contexts::of_archive(name, sizes),
        ("context" | "derived" | "async", Some(host)) => contexts::of_pmcd(name, host, sizes),
        _ => Err(format!("{name}: no such part, or it needs -h HOST").into()),
    }
}

/// Runs a part in a process of its own.
fn part_elsewhere(
    name: &str,
    sizes: Sizes,
    host: Option<&str>,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([PART, name, &sizes.hosts.to_string()]).args(host).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{name}: failed").into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(Row::parse).collect())
}

/// Runs the requested parts, and prints their figures.
fn report(arguments: &[String]) -> Result<Vec<Row>, Box<dyn Error>> {
    let Wanted { sizes, json, only, host } = wanted(arguments)?;
    let real = REAL_PARTS.iter().filter(|_| host.is_some());
    let parts = PARTS.iter().chain(real).filter(|part| only.as_ref().is_none_or(|o| o == *part));
    let mut rows: Vec<Row> = Vec::new();
    for name in parts {
        let host = host.as_deref().filter(|_| REAL_PARTS.contains(name));
        let mut found = part_elsewhere(name, sizes, host)?;
        let resident =
            |rows: &[Row], key: &str| rows.iter().find(|row| row.key == key).map(|row| row.value);
        let pair = (resident(&found, "classes-resident"), resident(&rows, "alike-resident"));
        if let (Some(many), Some(one)) = pair {
            let each = (many - one) / 19.0;
            found.push(Row::new("classes-class", "memory per further class", each, "KB"));
        }
        for row in &found {
            println!("{}", if json { row.json() } else { row.text() });
        }
        rows.append(&mut found);
    }
    Ok(rows)
}

/// One of the three processes. Returns the figures if it prints them.
pub fn run(arguments: &[String]) -> Result<Vec<Row>, Box<dyn Error>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [hosts::SERVE, ..] => {
            let plan = Plan::parse(&arguments[1..]).ok_or("what a plan is")?;
            meter::raise_limit_of_files();
            hosts::serve(plan)?;
            Ok(Vec::new())
        }
        [PART, name, hosts, ref host @ ..] => {
            // If one task ended, all others would wait for it.
            std::panic::set_hook(Box::new(|panic| {
                eprintln!("fleet: {panic}");
                std::process::exit(101);
            }));
            let rows = part(name, Sizes::of(hosts.parse()?), host.first().copied())?;
            rows.iter().for_each(|row| println!("{}", row.json()));
            Ok(rows)
        }
        _ => report(arguments),
    }
}

/// See above.
#[allow(dead_code, reason = "a test has its own")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleet: {error}");
            ExitCode::FAILURE
        }
    }
}
