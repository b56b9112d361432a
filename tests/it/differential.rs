//! Random expressions, answered by the library and by the libpcp 6.0 of this machine.
//! Acceptance, metadata, and the values of several fetches are compared to the bit, at records
//! and between them.
//!
//! libpcp answers through `tests/differential/oracle.c`, which this test compiles. Seeds are
//! fixed. `DIFFERENTIAL_ROUNDS` sets the number of rounds, `DIFFERENTIAL_SEED` another seed,
//! and `DIFFERENTIAL_ARCHIVES` another folder.

mod generate;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use pmderive::dialect::Dialect;
use pmderive::engine::Backend;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::source::MetadataSource;
use pmderive_testkit::oracle;

use crate::answers;
use answers::{Answer, Walk, desc_difference, fetch_difference, fetches, is_ok};
use generate::{Choices, Known, Pool, Vocabulary, is_stale_extreme, tokens};
use oracle::{Oracle, answer};

/// Fetches of records in a walk.
const RECORDS: usize = 6;

/// Most interpolated fetches in a walk.
const INTERPOLATED: usize = 40;

/// libpcp as a program.
struct Libpcp(Oracle);

impl Libpcp {
    /// Compiles it, see [`Oracle::compile`].
    fn new() -> Option<Libpcp> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/differential/oracle.c");
        Oracle::compile(source, &[]).map(Libpcp)
    }

    /// Answers to cases, in order.
    fn answers(&self, cases: &[Answer], archives: &Path) -> Vec<Answer> {
        let mut input = String::new();
        for case in cases {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
            let archive = text(&case["archive"]);
            let archive = match &*archive {
                "" => String::new(),
                name => archives.join(name).display().to_string(),
            };
            let mode = &case["mode"];
            let (start, expr) = (text(&mode["start"]), text(&case["expr"]));
            let number = |key: &str| mode[key].as_i64().unwrap_or_default();
            let (step, count) = (number("step_ms"), number("count"));
            let _ = writeln!(input, "{archive}\t{start}\t{step}\t{count}\t{expr}");
        }
        let mut command = self.0.command();
        command.stderr(Stdio::null());
        let answers: Vec<Answer> = answer(command, input)
            .lines()
            .map(|line| {
                // Whether anything comes before a crash is not known beforehand.
                let line = line.replace("} \"crashed\"", "},\"crashed\"");
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect();
        assert_eq!(answers.len(), cases.len(), "one answer a case");
        answers
    }
}

/// What was compared.
#[derive(Default, Debug)]
struct Tally {
    cases: usize,
    bound: usize,
    fetches: usize,
    values: usize,
    crashed: usize,
    failures: Vec<String>,
}

impl Tally {
    fn compare(&mut self, case: &Answer, want: &Answer, got: &Answer) {
        self.cases += 1;
        self.crashed += usize::from(want.contains_key("crashed"));
        if let Some(text) = self.difference(case, want, got) {
            let (expr, mode) = (&case["expr"], &case["mode"]);
            self.failures.push(format!("{} {mode}: {expr}\n    {text}", case["archive"]));
        }
    }

    fn difference(&mut self, case: &Answer, want: &Answer, got: &Answer) -> Option<String> {
        let without_fetches = |answer: &Answer| {
            let mut answer = answer.clone();
            answer.remove("fetches");
            answer
        };
        if !want.contains_key("register") {
            // It crashed while parsing.
            return None;
        }
        if is_ok(want, "bind") != Some(true) || is_ok(got, "bind") != Some(true) {
            return answers::difference(&without_fetches(want), &without_fetches(got));
        }
        self.bound += 1;
        if let Some(text) = desc_difference(want, got) {
            return Some(text);
        }
        let expr = case["expr"].as_str().unwrap_or_default();
        let is_backward = case["mode"]["step_ms"].as_i64().is_some_and(|step| step < 0);
        if is_backward && expr.contains('[') {
            // See `backward-instances` in tests/conformance/differences.txt; so
            // does the oracle with their names.
            return None;
        }
        let value_type = want["desc"]["type"].as_str().unwrap_or_default();
        if want.contains_key("crashed") || without_metrics(expr) || value_type.contains("EVENT") {
            return None;
        }
        let (wanted, given) = (fetches(want), fetches(got));
        if wanted.len() != given.len() {
            return Some(format!("{} fetches instead of {}", given.len(), wanted.len()));
        }
        for (at, (want, got)) in wanted.iter().zip(given).enumerate() {
            if is_stale_extreme(expr, got) {
                continue;
            }
            self.fetches += 1;
            self.values += want["values"].as_array().map_or(0, Vec::len);
            let (mut want, mut got) = (want.clone(), got.clone());
            if is_backward {
                remove_names(&mut want);
                remove_names(&mut got);
            }
            if let Some(text) = fetch_difference(&want, &got, value_type) {
                return Some(format!("fetch {at}: {text}"));
            }
        }
        None
    }
}

/// Takes the names of instances out of a fetch.
fn remove_names(fetch: &mut serde_json::Value) {
    for value in fetch["values"].as_array_mut().into_iter().flatten() {
        value[1].take();
    }
}

/// True if nothing in an expression is fetched: libpcp's second fetch of it fails.
fn without_metrics(expr: &str) -> bool {
    let mut rest = expr.to_string();
    for function in ["defined(", "anon("] {
        while let Some(start) = rest.find(function) {
            let end = rest[start..].find(')').map_or(rest.len(), |end| start + end);
            rest.replace_range(start..end, "");
        }
    }
    let rest = rest.replace("event.flags", "");
    // Whatever has a point between letters is the name of a metric.
    let letters: Vec<char> = rest.chars().collect();
    !letters.windows(3).any(|three| {
        three[1] == '.' && three[0].is_ascii_alphanumeric() && three[2].is_ascii_alphabetic()
    })
}

fn vocabulary(archive: &Path, choices: &mut Choices) -> Option<Vocabulary> {
    let mut source = ArchiveContext::open(archive).ok()?;
    let mut names = source.traverse("").expect("names of an archive");
    let mut metrics = Vec::new();
    while !names.is_empty() && metrics.len() < 50 {
        metrics.push(names.swap_remove(choices.below(names.len())));
    }
    let names: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let pmids: Vec<_> =
        source.lookup_names(&names).ok()?.into_iter().filter_map(Result::ok).collect();
    let mut instances = vec!["none".to_string()];
    for desc in source.lookup_descs(&pmids).ok()?.into_iter().filter_map(Result::ok) {
        let Some(indom) = desc.indom else { continue };
        let Ok(known) = source.known_instances(indom).ok()? else { continue };
        instances.extend(known.instances().map(|(_, name)| name.to_string()).take(12));
    }
    Some(Vocabulary { metrics, instances })
}

/// Which fetches the expressions of a round are compared in.
#[derive(Clone, Copy, PartialEq)]
enum Fetched {
    Records,
    BetweenRecords,
}

impl Fetched {
    /// A walk over an archive: of records, from the beginning or from
    /// somewhere among the first ones, else from anywhere in steps of any size.
    fn walk(self, archive: &Path, choices: &mut Choices) -> Option<Walk> {
        let mut source = ArchiveContext::open(archive).ok()?;
        let start = source.label().start.to_seconds();
        if self == Fetched::BetweenRecords {
            let end = source.end_time().ok()?.to_seconds();
            let walk = walk_between((start, end), choices);
            let is_compared = walk.step_ms > 0 || !begins_in_gap(&mut source, &walk);
            return is_compared.then_some(walk);
        }
        let mut walk = Walk { start: "0.000000000".to_owned(), step_ms: 0, count: RECORDS };
        if choices.one_in(2) {
            let mut times = Vec::new();
            while let (true, Ok(record)) = (times.len() < 2 * RECORDS, source.next_record()) {
                times.push(record.timestamp.to_seconds());
            }
            let part = choices.below(1000) as f64 / 800.0;
            let first = *times.first()?;
            walk.start = format!("{:.6}000", first + (times.last()? - first) * part);
        }
        Some(walk)
    }
}

/// Steps from a thousandth of the archive to all of it, some of them backward.
fn walk_between((start, end): (f64, f64), choices: &mut Choices) -> Walk {
    let span = end - start;
    let part = |choices: &mut Choices| choices.below(10_000) as f64 / 10_000.0;
    let step_ms = ((span * 1000.0 * 0.001f64.powf(part(choices))) as i64).max(1);
    let count = 1 + choices.below(INTERPOLATED);
    let is_backward = choices.one_in(4);
    // Mostly so that the walk is within the archive, now and then partly outside.
    let from = match choices.below(8) {
        0 => start,
        1 => start - step_ms as f64 / 500.0 * part(choices),
        2 => end,
        _ => start + span * part(choices),
    };
    // Some of the times are those of records.
    let digits = *choices.pick(&[0, 1, 3, 6, 9]);
    let fraction = format!("{:.digits$}", from);
    let (seconds, rest) = fraction.split_once('.').unwrap_or((&fraction, ""));
    Walk {
        start: format!("{seconds}.{rest:0<9}"),
        step_ms: if is_backward { -step_ms } else { step_ms },
        count,
    }
}

/// True if the start of a walk is right behind a mark; see `backward-gap` in
/// tests/conformance/differences.txt.
fn begins_in_gap(source: &mut ArchiveContext, walk: &Walk) -> bool {
    let start: f64 = walk.start.parse().expect("seconds");
    let mut before = None;
    while let Ok(record) = source.next_record() {
        if record.timestamp.to_seconds() > start {
            break;
        }
        before = Some(record);
    }
    before.is_some_and(|record| record.sets.is_empty())
}

fn round(
    oracle: &Libpcp,
    archives: &Path,
    archive: &str,
    (fetched, seed): (Fetched, u64),
    tally: &mut Tally,
) {
    let mut choices = Choices::new(seed);
    let path = archives.join(archive);
    let Some(vocabulary) = vocabulary(&path, &mut choices) else { return };
    let Some(walk) = fetched.walk(&path, &mut choices) else { return };
    let ask = |texts: &[String]| -> (Vec<Answer>, Vec<Answer>) {
        let case =
            |(at, text): (usize, &String)| answers::case(&at.to_string(), archive, &walk, text);
        let cases: Vec<Answer> = texts.iter().enumerate().map(case).collect();
        let given = answers::answers(&cases, archives, Dialect::Pcp6_0, Backend::Interp);
        (cases, given)
    };
    let mut pool = Pool { vocabulary, known: Vec::new() };
    let mut texts = pool.vocabulary.metrics.clone();
    for generation in 0..5 {
        let (cases, given) = ask(&texts);
        let wanted = oracle.answers(&cases, archives);
        for ((case, want), got) in cases.iter().zip(&wanted).zip(&given) {
            tally.compare(case, want, got);
        }
        let known = texts.iter().zip(&given);
        let known = known.filter_map(|(text, got)| Known::new(text, generation == 0, got));
        pool.known.extend(known);
        if pool.known.is_empty() {
            return;
        }
        texts = (0..300)
            .filter_map(|_| pool.expression(&mut choices))
            .filter(|text| text.len() < 400)
            .take(100)
            .collect();
        if generation == 0 {
            texts.extend(["1", "0", "2.5", "mkconst(3, type=32)"].map(str::to_string));
        }
    }
}

fn archives_of(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder of archives")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| {
            let base = name.strip_suffix(".xz").unwrap_or(&name);
            base.strip_suffix(".meta").map(str::to_string)
        })
        .collect();
    names.sort();
    names
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn report(tally: &Tally) {
    println!(
        "{} cases, {} bound, {} fetches, {} values, {} crashes of libpcp",
        tally.cases, tally.bound, tally.fetches, tally.values, tally.crashed
    );
    let shown: Vec<&str> = tally
        .failures
        .iter()
        .take(number("DIFFERENTIAL_SHOWN", 25) as usize)
        .map(String::as_str)
        .collect();
    assert!(tally.failures.is_empty(), "{} differ:\n{}", tally.failures.len(), shown.join("\n"));
}

fn random_expressions(fetched: Fetched) {
    let Some(oracle) = Libpcp::new() else { return };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    let folder = std::env::var_os("DIFFERENTIAL_ARCHIVES").map_or(own, PathBuf::from);
    let names = archives_of(&folder);
    let seed = number("DIFFERENTIAL_SEED", 1);
    let mut tally = Tally::default();
    for round_of in 0..number("DIFFERENTIAL_ROUNDS", 1) {
        for (at, name) in (0..).zip(&names) {
            let (cases, failures) = (tally.cases, tally.failures.len());
            let seed = (seed + round_of) * 1000 + at;
            round(&oracle, &folder, name, (fetched, seed), &mut tally);
            // A long run that is stopped has said what it found.
            eprintln!("{name}: {} cases", tally.cases - cases);
            for failure in &tally.failures[failures..] {
                eprintln!("{failure}");
            }
        }
    }
    assert!(tally.bound > 1000 && tally.values > 5000, "too few: {tally:?}");
    report(&tally);
}

#[test]
fn random_expressions_over_archives() {
    random_expressions(Fetched::Records);
}

#[test]
fn random_expressions_between_records() {
    random_expressions(Fetched::BetweenRecords);
}

#[test]
fn random_tokens() {
    let Some(oracle) = Libpcp::new() else { return };
    let mut choices = Choices::new(number("DIFFERENTIAL_SEED", 1));
    let mut tally = Tally::default();
    for _ in 0..number("DIFFERENTIAL_ROUNDS", 1) {
        let case = |_| answers::registration("tokens", &tokens(&mut choices));
        let cases: Vec<Answer> = (0..3000).map(case).collect();
        let given = answers::answers(&cases, Path::new(""), Dialect::Pcp6_0, Backend::Interp);
        let wanted = oracle.answers(&cases, Path::new(""));
        for ((case, want), got) in cases.iter().zip(&wanted).zip(&given) {
            tally.compare(case, want, got);
        }
    }
    report(&tally);
}
