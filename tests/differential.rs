//! Random expressions, answered by the library and by the libpcp 6.0 of this
//! machine: whether they are accepted, their metadata, and the values of
//! several fetches, to the bit.
//!
//! libpcp answers through `tests/differential/oracle.c`, which is compiled
//! here. Seeds are fixed. `DIFFERENTIAL_ROUNDS` and `DIFFERENTIAL_SEED` ask
//! for more and for others, `DIFFERENTIAL_ARCHIVES` for another folder.

mod answers;
#[path = "differential/generate.rs"]
mod generate;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use answers::{Answer, desc_difference, fetch_difference, fetches, is_ok};
use generate::{Choices, Known, Pool, Vocabulary, is_stale_extreme, tokens};
use pmderive::dialect::Dialect;
use pmderive::engine::Backend;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::source::MetadataSource;

const FETCHES: usize = 6;

/// libpcp as a program.
struct Oracle {
    folder: tempfile::TempDir,
}

impl Oracle {
    /// Compiles it. `None` without PCP, with a word on standard error.
    ///
    /// # Panics
    /// PCP is missing although `CI` is set, or the compiler fails.
    fn new() -> Option<Oracle> {
        if !Path::new("/usr/include/pcp/pmapi.h").exists() {
            let obstacle = "PCP's headers are not installed (tests/real-pcp install)";
            assert!(std::env::var("CI").is_err(), "{obstacle}");
            eprintln!("NOT RUN: {obstacle}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/oracle.c");
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-o"])
            .arg(folder.path().join("oracle"))
            .arg(source)
            .arg("-lpcp")
            .status();
        assert!(compiled.expect("cc").success());
        Some(Oracle { folder })
    }

    /// Answers to cases, in order.
    fn answers(&self, cases: &[Answer], archives: &Path) -> Vec<Answer> {
        let mut child = Command::new(self.folder.path().join("oracle"))
            .env("PCP_DERIVED_CONFIG", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the oracle");
        let mut input = String::new();
        for case in cases {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
            let archive = text(&case["archive"]);
            let archive = match &*archive {
                "" => String::new(),
                name => archives.join(name).display().to_string(),
            };
            let start = text(&case["mode"]["start"]);
            let _ = writeln!(input, "{archive}\t{start}\t{FETCHES}\t{}", text(&case["expr"]));
        }
        let mut stdin = child.stdin.take().expect("a pipe");
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("the oracle's answers");
        writer.join().expect("no panic").expect("a pipe that is read");
        let answers: Vec<Answer> = String::from_utf8_lossy(&output.stdout)
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
            let (expr, mode) = (&case["expr"], &case["mode"]["start"]);
            self.failures.push(format!("{} from {mode}: {expr}\n    {text}", case["archive"]));
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
            if let Some(text) = fetch_difference(want, got, value_type) {
                return Some(format!("fetch {at}: {text}"));
            }
        }
        None
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

fn round(oracle: &Oracle, archives: &Path, archive: &str, seed: u64, tally: &mut Tally) {
    let mut choices = Choices::new(seed);
    let Some(vocabulary) = vocabulary(&archives.join(archive), &mut choices) else { return };
    let mut start = "0.000000000".to_string();
    let ask = |start: &str, texts: &[String]| -> (Vec<Answer>, Vec<Answer>) {
        let case = |(at, text): (usize, &String)| {
            answers::case(&at.to_string(), archive, start, FETCHES, text)
        };
        let cases: Vec<Answer> = texts.iter().enumerate().map(case).collect();
        let given = answers::answers(&cases, archives, Dialect::Pcp6_0, Backend::Interp);
        (cases, given)
    };
    let (_, bare) = ask(&start, &vocabulary.metrics);
    if choices.one_in(2) {
        // Somewhere among the first records.
        let times: Vec<f64> = bare
            .iter()
            .flat_map(fetches)
            .filter_map(|fetch| fetch["t"].as_str()?.parse().ok())
            .collect();
        let first = times.iter().copied().fold(f64::INFINITY, f64::min);
        let last = times.iter().copied().fold(first, f64::max);
        if first.is_finite() {
            let part = choices.below(1000) as f64 / 800.0;
            start = format!("{:.6}000", first + (last - first) * part);
        }
    }
    let mut pool = Pool { vocabulary, known: Vec::new() };
    let mut texts = pool.vocabulary.metrics.clone();
    for generation in 0..5 {
        let (cases, given) = ask(&start, &texts);
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

#[test]
fn random_expressions_over_archives() {
    let Some(oracle) = Oracle::new() else { return };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    let folder = std::env::var_os("DIFFERENTIAL_ARCHIVES").map_or(own, PathBuf::from);
    let names = archives_of(&folder);
    let seed = number("DIFFERENTIAL_SEED", 1);
    let mut tally = Tally::default();
    for round_of in 0..number("DIFFERENTIAL_ROUNDS", 1) {
        for (at, name) in (0..).zip(&names) {
            let (cases, failures) = (tally.cases, tally.failures.len());
            round(&oracle, &folder, name, (seed + round_of) * 1000 + at, &mut tally);
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
fn random_tokens() {
    let Some(oracle) = Oracle::new() else { return };
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
