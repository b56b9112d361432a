//! Fetch groups of this library and of the libpcp of this machine, with the
//! same commands.
//!
//! libpcp answers through `oracle.c`, which this test compiles; `oracle.c` has
//! the protocol between the two.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use pmderive_runtime::context::{Context, HostSpec};
use pmderive_runtime::fetch_group::{
    Events, ExtendError, FetchGroup, FetchGroupOptions, Instances, Item, ItemSpec,
};
use pmderive_runtime::model::{PmStatus, Timestamp, Value, ValueType, format_g};

use crate::oracle::{Oracle, answer};

/// One command.
#[derive(Clone, Debug)]
pub enum Step {
    Item {
        metric: String,
        instance: Option<String>,
        scale: Option<String>,
        code: i32,
    },
    Indom {
        metric: String,
        scale: Option<String>,
        code: i32,
        most: usize,
    },
    Event {
        metric: String,
        instance: Option<String>,
        field: String,
        scale: Option<String>,
        code: i32,
        most: usize,
    },
    Fetch,
    Sleep(u64),
    Clear,
}

/// The source of the values.
#[derive(Clone, Debug)]
pub enum From {
    Host(String),
    Archive(PathBuf),
}

pub struct Libpcp(Oracle);

impl Libpcp {
    /// Compiles the oracle, see [`Oracle::compile`].
    pub fn new() -> Option<Libpcp> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fetch_group/oracle.c");
        Oracle::compile(source, &[]).map(Libpcp)
    }

    /// libpcp's answers to all steps, a line for each answer.
    pub fn answers(&self, from: &From, steps: &[Step], counter_wraps: bool) -> Vec<String> {
        let mut input = match from {
            From::Host(name) => format!("host\t{name}\n"),
            From::Archive(path) => format!("archive\t{}\n", path.display()),
        };
        let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        for step in steps {
            let _ = match step {
                Step::Item { metric, instance, scale, code } => {
                    let (instance, scale) = (or_null(instance), or_null(scale));
                    writeln!(input, "item\t{metric}\t{instance}\t{scale}\t{code}")
                }
                Step::Indom { metric, scale, code, most } => {
                    writeln!(input, "indom\t{metric}\t{}\t{code}\t{most}", or_null(scale))
                }
                Step::Event { metric, instance, field, scale, code, most } => {
                    let (instance, scale) = (or_null(instance), or_null(scale));
                    writeln!(input, "event\t{metric}\t{instance}\t{field}\t{scale}\t{code}\t{most}")
                }
                Step::Fetch => writeln!(input, "fetch"),
                Step::Sleep(milliseconds) => writeln!(input, "sleep\t{milliseconds}"),
                Step::Clear => writeln!(input, "clear"),
            };
        }
        let mut command = self.0.command();
        command.env_remove("PCP_COUNTER_WRAP").stderr(Stdio::null());
        if counter_wraps {
            command.env("PCP_COUNTER_WRAP", "1");
        }
        answer(command, input).lines().map(str::to_owned).collect()
    }
}

/// A rate that is not known yet.
const AGAIN: &str = "(-12389)";

/// Stands for [`AGAIN`] after a gap.
const GAP: &str = "(gap)";

/// Stands for the time of a fetch that failed.
const NOW: &str = "now";

/// A line without the parts that depend on the time. With `is_exact`, these are
/// only times of fetches; otherwise all numbers except statuses.
pub fn blurred(line: &str, is_exact: bool) -> String {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
    let is_time = line.split_once('.').is_some_and(|(sec, usec)| {
        sec.len() == 10 && usec.len() == 6 && sec.chars().chain(usec.chars()).all(is_number)
    });
    if is_time {
        return "time".into();
    }
    if is_exact {
        return line.into();
    }
    // The status of a vector stands in front of a colon.
    let (status, line) = line.split_once(':').map_or(("", line), |(status, rest)| (status, rest));
    let (mut blurred, mut in_status) = (format!("{status}:"), false);
    for c in line.chars() {
        in_status = c == '(' || in_status && c != ')';
        let c = if is_number(c) && !in_status { '#' } else { c };
        if c != '#' || !blurred.ends_with('#') {
            blurred.push(c);
        }
    }
    blurred
}

/// The lines that differ, except for allowed differences, with their numbers.
pub fn differences(theirs: &[String], ours: &[String]) -> Vec<String> {
    let mut differences = Vec::new();
    if theirs.len() != ours.len() {
        differences.push(format!("{} lines, not {}", ours.len(), theirs.len()));
    }
    for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
        // libpcp mistakes an earlier conversion's `-ERANGE` for that of a text.
        let is_stale = theirs.contains("(-34)") && !ours.contains("(-34)");
        let is_other = ours == NOW || ours.contains(GAP) || is_stale;
        if theirs != ours && !is_other {
            differences.push(format!("line {at}: {ours}, not {theirs}"));
        }
    }
    differences
}

/// A handle of any kind, with the type of its values.
enum Entry {
    Item(Item<Value>),
    Instances(Instances<Value>),
    Events(Events<Value>),
}

fn shown(value: Result<&Value, PmStatus>) -> String {
    match value {
        Err(status) => format!("({})", status.0),
        Ok(Value::F32(value)) if value.is_nan() => "nan".into(),
        Ok(Value::F64(value)) if value.is_nan() => "nan".into(),
        Ok(Value::F32(value)) => format_g((*value).into(), 9),
        Ok(Value::F64(value)) => format_g(*value, 17),
        Ok(Value::Text(text)) => format!("\"{text}\""),
        Ok(integer) => integer.atom_text(),
    }
}

fn extended<T>(
    outcome: Result<T, ExtendError>,
    wrap: fn(T) -> Entry,
    entries: &mut Vec<Entry>,
) -> String {
    match outcome {
        Ok(handle) => {
            entries.push(wrap(handle));
            "0".into()
        }
        Err(error) => error.status().0.to_string(),
    }
}

/// This library's answers to all steps.
pub fn answers(from: &From, steps: &[Step], counter_wraps: bool) -> Vec<String> {
    let context = match from {
        From::Host(name) => Context::host(&name.parse::<HostSpec>().expect("a host")),
        From::Archive(path) => Context::archive(path),
    };
    let context = match context {
        Ok(context) => context,
        Err(error) => return vec![error.status().0.to_string()],
    };
    let options = FetchGroupOptions { counter_wraps, ..FetchGroupOptions::default() };
    let mut group = FetchGroup::with_options(context, options);
    let mut lines = vec!["0".to_owned()];
    let mut entries = Vec::new();
    let spec = |metric: &str, instance: &Option<String>, scale: &Option<String>, code: i32| {
        let spec = ItemSpec::of(metric).value_type(ValueType::from_code(code));
        let spec = match instance {
            Some(instance) => spec.instance(&**instance),
            None => spec,
        };
        match scale {
            Some(scale) => spec.scale(&**scale),
            None => spec,
        }
    };
    for step in steps {
        lines.push(match step {
            Step::Item { metric, instance, scale, code } => {
                let outcome = group.item(spec(metric, instance, scale, *code));
                extended(outcome, Entry::Item, &mut entries)
            }
            Step::Indom { metric, scale, code, most } => {
                let outcome = group.indom(spec(metric, &None, scale, *code).at_most(*most));
                extended(outcome, Entry::Instances, &mut entries)
            }
            Step::Event { metric, instance, field, scale, code, most } => {
                let spec = spec(metric, instance, scale, *code).at_most(*most);
                extended(group.event(spec, field), Entry::Events, &mut entries)
            }
            Step::Sleep(milliseconds) => {
                std::thread::sleep(std::time::Duration::from_millis(*milliseconds));
                continue;
            }
            Step::Clear => {
                group.clear();
                entries.clear();
                "0".into()
            }
            Step::Fetch => {
                let fetched = group.fetch();
                let status = match &fetched {
                    Ok(events) => events.changes.0,
                    Err(error) => error.status().0,
                };
                lines.push(status.to_string());
                let Timestamp { sec, nsec } = group.timestamp();
                let usec = nsec / 1000;
                // The time of a failure is now.
                let time = if status < 0 { NOW.into() } else { format!("{sec}.{usec:06}") };
                lines.push(time);
                // Rates start without a previous sample, whatever libpcp computes from the
                // difference.
                let is_gap = fetched.is_ok_and(|events| events.gap);
                lines.extend(entries.iter().map(|entry| {
                    let line = read(&group, entry);
                    if is_gap { line.replace(AGAIN, GAP) } else { line }
                }));
                continue;
            }
        });
    }
    lines
}

fn read<S>(group: &FetchGroup<S>, entry: &Entry) -> String {
    let code = |status: Result<(), PmStatus>| status.err().map_or(0, |status| status.0);
    match entry {
        Entry::Item(item) => shown(group.get(*item)),
        Entry::Instances(handle) => {
            let rows = group.instances(*handle);
            let mut line = format!("{}:", code(rows.status()));
            for row in rows.iter() {
                let name = row.name.unwrap_or_default();
                let _ = write!(line, " {}[{name}]={}", row.instance, shown(row.value));
            }
            line
        }
        Entry::Events(handle) => {
            let rows = group.events(*handle);
            let mut line = format!("{}:", code(rows.status()));
            for row in rows.iter() {
                let _ = write!(line, " {}={}", row.timestamp, shown(row.value));
            }
            line
        }
    }
}
