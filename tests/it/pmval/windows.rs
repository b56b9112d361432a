//! Windows of time in every syntax, over archives of PCP's test suite: random
//! ones, the same in every run. `PMVAL_WINDOWS=N` makes N of them.

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::source::MetadataSource;
use pmderive_runtime::time::{BrokenDown, TimeZone};

use super::archive_runs::{Choice, instance};
use super::archives::suite;
use super::comparison::Comparison;
use super::side_by_side::size;

/// Runs, unless more are asked for.
const RUNS: usize = 150;

/// Archives are files of at most this size; runs shall be short.
const LARGEST: u64 = 2_000_000;

/// Zones that -Z chooses.
const ZONES: &[&str] =
    &["UTC", "America/New_York", "EST5EDT", "Asia/Kolkata", "AEST-10", "XYZ+3:30"];

/// Lengths of time as options have them.
const LENGTHS: &[&str] = &[
    "0",
    "1",
    "2sec",
    "500msec",
    "1.5",
    "0.001",
    "7 seconds",
    "1min",
    "2.5m",
    "90s",
    "1hour",
    "0.25 hours",
    "1d",
    "3days",
    "2 fortnights",
    "1000",
    "1h",
    "-1",
    "1min30sec",
    "1 month",
];

/// Free dates, as date(1) has them.
const FREE: &[&str] = &[
    "now",
    "yesterday",
    "tomorrow",
    "1 hour ago",
    "2 minutes",
    "last week",
    "next month",
    "noon",
    "midnight",
    "10 seconds ago",
];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// An archive to choose windows of.
struct Subject {
    path: String,
    context: ArchiveContext,
    names: Vec<String>,
    start: Timestamp,
    seconds: f64,
}

impl Subject {
    fn open(path: &std::path::Path) -> Option<Subject> {
        let mut context = ArchiveContext::open(path).ok()?;
        let names = context.traverse("").ok()?;
        let start = context.label().start;
        let seconds = context.end_time().ok()?.seconds_since(start);
        let path = path.to_str()?.to_owned();
        (!names.is_empty()).then_some(Subject { path, context, names, start, seconds })
    }

    /// A time, mostly within the archive, in one of the forms of PCPIntro(1).
    fn time(&self, zone: &TimeZone, choice: &mut Choice) -> String {
        let part = |choice: &mut Choice| choice.below(1301) as f64 / 1000.0 - 0.15;
        match choice.below(8) {
            0 => LENGTHS[choice.below(LENGTHS.len())].to_owned(),
            1 => FREE[choice.below(FREE.len())].to_owned(),
            2..4 => {
                let sign = ["", "+", "-"][choice.below(3)];
                let seconds = part(choice).abs() * self.seconds;
                match choice.below(4) {
                    0 => format!("{sign}{}", seconds.round()),
                    1 => format!("{sign}{:.3}sec", seconds),
                    2 => format!("{sign}{:.4} minutes", seconds / 60.0),
                    _ => format!("{sign}{:.0}msec", seconds * 1000.0),
                }
            }
            _ => {
                let seconds = self.start.to_seconds() + part(choice) * self.seconds;
                let time = zone.local(Timestamp::from_seconds(seconds));
                date(&time, choice)
            }
        }
    }
}

/// A date in one of its forms.
fn date(time: &BrokenDown, choice: &mut Choice) -> String {
    let BrokenDown { year, month, day, hour, minute, second, nanosecond, .. } = *time;
    let name = MONTHS[month as usize - 1];
    // Of other fractions libpcp cuts off the last nanosecond.
    let milliseconds = nanosecond / 125_000_000 * 125;
    let weekday = &time.to_string()[..3];
    match choice.below(9) {
        0 => format!("@{hour}:{minute:02}"),
        1 => format!("@{hour:02}:{minute:02}:{second:02}"),
        2 => format!("@{hour:02}:{minute:02}:{second:02}.{milliseconds:03}"),
        3 => format!("@ {weekday} {name} {day} {hour}:{minute:02}:{second:02} {year}"),
        4 => format!("@{name} {day} {hour:02}:{minute:02}:{second:02}"),
        5 => format!("@{name} {day}"),
        6 => format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
        7 => format!("@{day} {name} {year} {hour:02}:{minute:02}"),
        _ => format!("@{hour:02}:{minute:02}:{second:02} {weekday}"),
    }
}

/// Options for one run.
fn options(subject: &mut Subject, metric: &str, choice: &mut Choice) -> Vec<String> {
    let mut options = Vec::new();
    let mut zone = TimeZone::system();
    match choice.below(6) {
        0 => {
            options.push("-z".to_owned());
            zone = TimeZone::of_source(&mut subject.context).unwrap_or(zone);
        }
        1 => {
            let chosen = ZONES[choice.below(ZONES.len())];
            options.extend(["-Z".to_owned(), chosen.to_owned()]);
            zone = TimeZone::parse(chosen);
        }
        _ => {}
    }
    for option in ["-S", "-T", "-O"] {
        if choice.below(2) == 0 {
            options.extend([option.to_owned(), subject.time(&zone, choice)]);
        }
    }
    if choice.below(3) == 0 {
        options.extend(["-A".to_owned(), LENGTHS[choice.below(LENGTHS.len())].to_owned()]);
    }
    let samples = choice.below(12);
    let by_record = choice.below(4) == 0;
    if by_record || samples < 3 {
        options.extend(["-s".to_owned(), samples.to_string()]);
    }
    if !by_record {
        let interval = subject.seconds / (2 + choice.below(30)) as f64;
        options.extend(["-t".to_owned(), format!("{:.3}", interval.max(0.001))]);
    }
    if choice.below(3) == 0 {
        options.push(["-r", "-X", "-XX"][choice.below(3)].to_owned());
    }
    match choice.below(8) {
        0 => options.extend(["-w".to_owned(), (1 + choice.below(30)).to_string()]),
        1 => options.extend(["-f".to_owned(), choice.below(8).to_string()]),
        2 => options.extend(
            instance(&mut subject.context, metric, choice)
                .into_iter()
                .flat_map(|name| ["-i".to_owned(), name]),
        ),
        _ => {}
    }
    options.insert(0, subject.path.clone());
    options.insert(0, if by_record { "-U" } else { "-a" }.to_owned());
    options.push(metric.to_owned());
    options
}

#[test]
fn random_windows() {
    let Some(comparison) = Comparison::new() else { return };
    let runs = std::env::var("PMVAL_WINDOWS").map_or(RUNS, |runs| runs.parse().expect("a number"));
    let archives: Vec<_> = suite().into_iter().filter(|path| size(path) < LARGEST).collect();
    assert!(archives.len() > 50, "pcp-testsuite is not installed");
    let mut choice = Choice(7);
    let mut made = 0;
    for path in archives.iter().cycle().skip(choice.below(archives.len())).step_by(7) {
        let Some(mut subject) = Subject::open(path) else { continue };
        for _ in 0..5 {
            let metric = subject.names[choice.below(subject.names.len())].clone();
            let arguments = options(&mut subject, &metric, &mut choice);
            comparison.add(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            made += 1;
            if made >= runs {
                return comparison.finish();
            }
        }
    }
}
