//! The table of `benches/peer/run`: each row is measured with libpcp, with a raw
//! program where there is one, and with pmderive, in turn.
//!
//! Options: the folder of the C programs, that of the archives, the port of the
//! pmcd, the program `pmderive`, and `--quick` for one round of the shorter rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// One measurement.
struct Row {
    name: String,
    unit: &'static str,
    peer: Option<Run>,
    floor: Option<Run>,
    ours: Run,
    aim: f64,
    /// Too long for `--quick`.
    is_long: bool,
}

/// A program, and which of its figures count.
enum Run {
    /// Arguments of a program that prints keys, the keys whose values are added,
    /// and by what the sum is divided.
    Keys(Tool, String, &'static [&'static str], f64),
    /// A line of `limits128`, by what it begins with.
    Limit(String),
    /// The milliseconds of a whole process.
    Whole(Tool, String),
}

/// The owner of the program.
#[derive(Clone)]
enum Tool {
    /// In the folder of C programs.
    C(&'static str),
    /// This program.
    Ours,
    /// The command `pmderive`.
    Command,
    /// A tool of PCP.
    Pcp(&'static str),
}

/// The places of programs and archives.
struct Places {
    programs: PathBuf,
    archives: PathBuf,
    port: String,
    command: Option<PathBuf>,
}

/// Measures and prints the table.
///
/// # Errors
/// A program failed.
pub fn print(options: &[&str]) -> Result<(), String> {
    let [programs, archives, port, command, rest @ ..] = options else {
        return Err("table: a folder of programs, one of archives, a port and a command".into());
    };
    let is_quick = rest.contains(&"--quick");
    let places = Places {
        programs: programs.into(),
        archives: archives.into(),
        port: (*port).to_owned(),
        command: Some(PathBuf::from(command)).filter(|command| command.exists()),
    };
    let rounds = if is_quick { 1 } else { 5 };
    println!(
        "{:<44} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}",
        "", "libpcp", "floor", "pmderive", "times", "of floor", "aim", "of it"
    );
    for row in rows(&places).iter().filter(|row| !(is_quick && row.is_long)) {
        let mut found = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            let runs = [row.peer.as_ref(), row.floor.as_ref(), Some(&row.ours)];
            for (run, found) in runs.iter().zip(&mut found) {
                found.extend(run.map(|run| run.measure(&places)).transpose()?);
            }
        }
        let [peer, floor, ours] = found.map(median);
        let ours = ours.unwrap_or(f64::NAN);
        println!(
            "{:<44} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6.2}",
            format!("{}, {}", row.name, row.unit),
            figure(peer),
            figure(floor),
            figure(Some(ours)),
            figure(peer.map(|peer| peer / ours)),
            figure(floor.map(|floor| ours / floor)),
            figure(Some(row.aim)),
            ours / row.aim
        );
    }
    Ok(())
}

fn median(mut found: Vec<f64>) -> Option<f64> {
    found.sort_by(f64::total_cmp);
    found.get(found.len() / 2).copied()
}

fn figure(number: Option<f64>) -> String {
    match number {
        None => "-".to_owned(),
        Some(number) if number >= 100.0 => format!("{number:.0}"),
        Some(number) if number >= 10.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.2}"),
    }
}

impl Places {
    fn command(&self, tool: &Tool) -> Command {
        let mut command = match tool {
            Tool::C(name) => Command::new(self.programs.join(name)),
            Tool::Ours => Command::new(std::env::current_exe().unwrap_or_default()),
            Tool::Command => Command::new(self.command.as_deref().unwrap_or(Path::new("pmderive"))),
            Tool::Pcp(name) => Command::new(name),
        };
        command.current_dir(&self.archives);
        command
    }
}

impl Run {
    fn measure(&self, places: &Places) -> Result<f64, String> {
        match self {
            Run::Keys(tool, arguments, keys, per) => {
                let output = places
                    .command(tool)
                    .args(arguments.split(' '))
                    .stderr(Stdio::inherit())
                    .output()
                    .map_err(|error| format!("{arguments}: {error}"))?;
                let text = String::from_utf8_lossy(&output.stdout);
                let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
                let pairs: HashMap<&str, &str> = pairs.collect();
                let values = keys.iter().map(|key| pairs.get(key)?.parse::<f64>().ok());
                let sum: Option<f64> = values.sum();
                Ok(sum.ok_or_else(|| format!("{arguments}: lacks {keys:?}: {text}"))? / per)
            }
            Run::Limit(begin) => {
                let path = places.archives.join("limits.txt");
                let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
                let line = text.lines().find(|line| line.starts_with(begin.as_str()));
                let best = line.and_then(|line| line.split_once("best="));
                let best = best.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
                best.ok_or_else(|| format!("limits128 lacks {begin}"))
            }
            Run::Whole(tool, arguments) => {
                let begin = Instant::now();
                let status = places
                    .command(tool)
                    .args(arguments.split(' '))
                    .env("PCP_DERIVED_CONFIG", "")
                    .stdout(Stdio::null())
                    .status()
                    .map_err(|error| format!("{arguments}: {error}"))?;
                match status.success() {
                    true => Ok(begin.elapsed().as_secs_f64() * 1e3),
                    false => Err(format!("{arguments}: {status}")),
                }
            }
        }
    }
}

fn keys(tool: Tool, arguments: String, keys: &'static [&'static str], per: f64) -> Run {
    Run::Keys(tool, arguments, keys, per)
}

fn libpcp(arguments: String, from: &'static [&'static str], per: f64) -> Option<Run> {
    Some(keys(Tool::C("peerbench"), arguments, from, per))
}

fn ours(arguments: String, from: &'static [&'static str], per: f64) -> Run {
    keys(Tool::Ours, arguments, from, per)
}

fn rows(places: &Places) -> Vec<Row> {
    let mut rows = evaluation();
    rows.extend(sources(&places.port));
    rows.extend(compilation(&places.port));
    if places.command.is_some() {
        rows.extend(processes());
    }
    rows
}

/// Rows without a source: metrics and values.
fn evaluation() -> Vec<Row> {
    let per_metric = |count: u32| Row {
        name: format!("P2 a metric of {count}"),
        unit: "ns",
        peer: libpcp(
            format!("fetch -s m334i10 -M 334 -N {count} -r 12"),
            &["extra_ns_per_metric"],
            1.0,
        )
        .filter(|_| count <= 10_000),
        floor: None,
        ours: ours(format!("memory -M 334 -N {count}"), &["derived_ns_per"], 1.0),
        aim: 20.0,
        is_long: count >= 10_000,
    };
    let per_value = |(kind, loop_name, aim): (&str, &str, f64)| Row {
        name: format!("P3 a value of 1,000, {kind}"),
        unit: "ns",
        peer: libpcp(format!("fetch -s m10i1000 -N 10 -k {kind} -r 20"), &["extra_ns"], 10_000.0),
        floor: Some(Run::Limit(format!("limit={loop_name} I=1000 "))),
        ours: ours(format!("memory -N 10 -k {kind} -I 1000"), &["derived_ns_per_value"], 1.0),
        aim,
        is_long: false,
    };
    let churn = Row {
        name: "P4 a value of 10,000, one goes, one comes".into(),
        unit: "ns",
        peer: libpcp("fetch -s m10i10000churn -N 10 -k rate -r 4".into(), &["extra_ns"], 1e5),
        floor: None,
        ours: ours("memory -N 10 -k rate -I 10000 -c 1".into(), &["derived_ns_per_value"], 1.0),
        aim: 2.5,
        is_long: false,
    };
    let mut rows: Vec<Row> = [100, 1_000, 10_000, 100_000].map(per_metric).into();
    rows.extend(
        [
            ("rate", "rate_recip", 1.2),
            ("addd", "addd", 1.0),
            ("tree", "tree", 1.5),
            ("sum", "sum_in_order", 0.9),
        ]
        .map(per_value),
    );
    rows.push(churn);
    rows
}

/// Rows of fetches from a pmcd and from an archive.
fn sources(port: &str) -> Vec<Row> {
    // So many metrics of each type are the operands of so many derived ones.
    let live = |(count, operands, aim): (u32, u32, f64)| Row {
        name: format!("P5 a live fetch of {count}, processor"),
        unit: "us",
        peer: libpcp(
            format!("fetch -s host:localhost:{port} -M 334 -N {count} -r 10"),
            &["derived_cpu_ns"],
            1e3,
        ),
        floor: Some(keys(
            Tool::C("pmcdfloor"),
            format!("-p {port} -M {operands} -t c64,g64,gd"),
            &["client_cpu_ns"],
            1e3,
        )),
        ours: ours(
            format!("fetch -s host:localhost:{port} -M 334 -N {count} -r 200"),
            &["derived_cpu_ns"],
            1e3,
        ),
        aim,
        is_long: count >= 10_000,
    };
    let record = Row {
        name: "P6 a record of an archive, 1,000".into(),
        unit: "us",
        peer: libpcp("fetch -s m334i10 -M 334 -N 1000 -r 50".into(), &["derived_ns"], 1e3),
        floor: None,
        ours: ours("fetch -s m334i10 -M 334 -N 1000 -r 200".into(), &["derived_ns"], 1e3),
        aim: 40.0,
        is_long: false,
    };
    let interpolated = Row {
        name: "P7 an interpolated value, each crosses".into(),
        unit: "ns",
        peer: libpcp(
            "fetch -s m334i10 -M 334 -N 334 -k copy -r 50 -i".into(),
            &["base_ns"],
            3340.0,
        ),
        floor: None,
        ours: ours(
            "fetch -s m334i10 -M 334 -N 334 -k copy -r 200 -i".into(),
            &["derived_ns"],
            3340.0,
        ),
        aim: 10.0,
        is_long: false,
    };
    let mut rows: Vec<Row> =
        [(100, 50, 18.0), (1_000, 237, 70.0), (10_000, 278, 255.0)].map(live).into();
    rows.extend([record, interpolated]);
    rows
}

/// Rows of what happens once.
fn compilation(port: &str) -> Vec<Row> {
    let bind = |count: u32| Row {
        name: format!("P8 register, bind and plan one of {count}"),
        unit: "us",
        peer: libpcp(
            format!("bind -s m334i10 -M 334 -N {count}"),
            &["parse_ns_per", "bind_ns_per"],
            1e3,
        )
        .filter(|_| count <= 10_000),
        floor: None,
        ours: ours(
            format!("bind -s m334i10 -M 334 -N {count}"),
            &["parse_ns_per", "bind_ns_per"],
            1e3,
        ),
        aim: 3.0,
        is_long: count >= 100_000,
    };
    let code = |nodes: u32| Row {
        name: format!("P9 native code of {nodes} nodes"),
        unit: "us",
        peer: None,
        floor: None,
        ours: ours(format!("codegen -N {nodes} -r 20"), &["codegen_ns"], 1e3),
        aim: 35.0 + 7.0 * f64::from(nodes),
        is_long: false,
    };
    let live = |(count, aim): (u32, f64)| Row {
        name: format!("P10 live bind of {count}, processor"),
        unit: "ms",
        peer: libpcp(
            format!("bind -s host:localhost:{port} -M 334 -N {count}"),
            &["bind_ns_per"],
            1e6 / f64::from(count),
        ),
        floor: None,
        ours: ours(
            format!("bind -s host:localhost:{port} -M 334 -N {count}"),
            &["bind_cpu_ns"],
            1e6,
        ),
        aim,
        is_long: count >= 10_000,
    };
    let all = |(name, unit, key, per, aim): (&str, _, &'static [&'static str], f64, f64)| Row {
        name: format!("P13 100,000 definitions, {name}"),
        unit,
        peer: None,
        floor: None,
        ours: ours("bind -s m334i10 -M 334 -N 100000".into(), key, per),
        aim,
        is_long: true,
    };
    let mut rows: Vec<Row> = [100, 1_000, 10_000, 100_000].map(bind).into();
    rows.extend([3, 9, 21, 51, 101].map(code));
    rows.push(Row {
        name: "P9 10,000 of 50 shapes, from text to code".into(),
        unit: "ms",
        peer: None,
        floor: None,
        ours: ours("shapes -N 10000 -k 50 -M 334 -r 5".into(), &["all_ns"], 1e6),
        aim: 60.0,
        is_long: false,
    });
    rows.extend([(1_000, 4.0), (10_000, 40.0)].map(live));
    rows.push(all(("to the first fetch", "s", &["first_fetch_ns"], 1e9, 0.45)));
    rows.push(all(("memory", "MB", &["peak_kb"], 1024.0, 150.0)));
    rows
}

/// Rows of whole processes. Definitions are in `mix1000` and `mix10000`.
fn processes() -> Vec<Row> {
    let row = |name: &str, peer: Option<Run>, arguments: &str, aim| Row {
        name: format!("P14 {name}"),
        unit: "ms",
        peer,
        floor: None,
        ours: Run::Whole(Tool::Command, arguments.into()),
        aim,
        is_long: false,
    };
    let pminfo = |count: u32| {
        let arguments = format!("-c mix{count} -a m334i10 -f derived");
        Some(Run::Whole(Tool::Pcp("pminfo"), arguments))
    };
    vec![
        row("info -f of 1,000", pminfo(1_000), "info -c mix1000 -a m334i10 -f derived", 20.0),
        row(
            "CSV of 59 samples of 1,000",
            None,
            "eval -c mix1000 -a m334i10 -s 59 --format csv",
            60.0,
        ),
        row("eval of 10,000", pminfo(10_000), "eval -c mix10000 -a m334i10 -s 1", 60.0),
    ]
}
