//! Labels, help texts and instances of archives as `pminfo(1)` and `pmdumplog(1)` print them.

use std::path::{Path, PathBuf};
use std::process::Command;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{InDom, LabelLevel, Pmid, TextKind, TextSubject, Timestamp};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};

use crate::pminfo::{self, Quirks};
use crate::suite::{all_installed, available, installed, own};

/// Archives with labels or help texts, and some without; all that are
/// installed if `ARCHIVES_COMPARE_ALL` is set.
fn archives() -> Vec<PathBuf> {
    const SOME: [&str; 13] = [
        "sample-labels",
        "mmv.help",
        "omnibus_v2",
        "omnibus_v3",
        "mirage-3",
        "pcp-ps",
        "pcp-ss",
        "pcp-free",
        "mark_no_mark_0",
        "bug1057",
        "dyninsts",
        "eventrec",
        "pmproxy",
    ];
    let mut paths: Vec<PathBuf> = match std::env::var_os("ARCHIVES_COMPARE_ALL") {
        Some(_) => all_installed("archives"),
        None => SOME.iter().filter_map(|name| installed("archives", name)).collect(),
    };
    paths.extend(["own-dyn", "own-types"].map(own));
    paths
}

/// The output of one of PCP's tools. Its lines need not be UTF-8.
fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(name);
    // Only the metrics of the archive itself.
    let output = command.args(arguments).env("LC_ALL", "C").env("PCP_DERIVED_CONFIG", "").output();
    let lines = |bytes: &[u8]| {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let text = lines.map(|line| match std::str::from_utf8(line) {
            Ok(line) => line.to_owned(),
            Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
        });
        text.collect()
    };
    available(output.is_ok(), name).then(|| lines(&output.expect(name).stdout))
}

fn as_argument(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Sets the origin to pminfo's, the first record of the metric. The error is
/// pminfo's message when there is none.
fn position(context: &mut ArchiveContext, name: &str) -> Result<(), String> {
    context.set_position(Timestamp::new(0, 0)).expect("a position");
    let pmid = context.lookup_names(&[name]).expect("an answer")[0].expect(name);
    let list = FetchList::new(vec![pmid], vec![]);
    let fetched = context.fetch(&list, &mut ResultBatch::default());
    fetched.map(drop).map_err(|error| format!("{name}: pmFetch: {}\n", error.status()))
}

#[test]
fn labels_texts_and_instances_are_those_that_pminfo_prints() {
    for path in archives() {
        // Another test covers archives that cannot be opened.
        let Ok(mut context) = ArchiveContext::open(&path) else { continue };
        let names = context.traverse("").expect("names");
        let mut arguments = vec!["-a", as_argument(&path), "-lmtT"];
        arguments.extend(names.iter().map(String::as_str));
        let Some(printed) = tool("pminfo", &arguments) else { return };
        let host = format!("{{\"hostname\":\"{}\"}}", context.label().host);
        let mut quirks = Quirks::new(&host, true);
        let mut ours = String::new();
        for name in &names {
            ours += &match position(&mut context, name) {
                Ok(()) => pminfo::described(&mut context, name, &mut quirks),
                Err(message) => message,
            };
        }
        for (ours, theirs) in ours.lines().zip(printed.lines()) {
            assert_eq!(ours, theirs, "{}", path.display());
        }
        assert_eq!(ours.len(), printed.len(), "{}", path.display());
    }
}

fn numbers<const N: usize>(text: &str) -> [u32; N] {
    let mut numbers = text.split('.').map(|number| number.parse().expect(text));
    std::array::from_fn(|_| numbers.next().expect(text))
}

fn pmid(text: &str) -> Pmid {
    let [domain, cluster, item] = numbers(text);
    Pmid::new(domain, cluster, item)
}

fn indom(text: &str) -> InDom {
    let [domain, serial] = numbers(text);
    InDom::new(domain, serial)
}

/// `InDom 29.3[4]` and the like: the level, and the instance or -1.
fn level(text: &str) -> (LabelLevel, i32) {
    let (kind, ident) = text.split_once(' ').unwrap_or((text, ""));
    match (kind, ident.split_once('[')) {
        ("Context", _) => (LabelLevel::Context, -1),
        ("Domain", _) => (LabelLevel::Domain(ident.parse().expect(text)), -1),
        ("Cluster", _) => {
            let [domain, cluster] = numbers(ident);
            // Any of its metrics will do.
            (LabelLevel::Cluster(Pmid::new(domain, cluster, 7)), -1)
        }
        ("PMID", _) => (LabelLevel::Item(pmid(ident)), -1),
        ("InDom", None) => (LabelLevel::InDom(indom(ident)), -1),
        ("InDom", Some((ident, instance))) => {
            let instance = instance.trim_end_matches(']').parse().expect(text);
            (LabelLevel::Instances(indom(ident)), instance)
        }
        _ => panic!("{text}"),
    }
}

/// `Mon Jan 27 23:31:51.063803 2020 (0.019878) 1580167911`
fn stamp(line: &str) -> Option<Timestamp> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, clock, _, _, sec] = fields[..] else { return None };
    let (_, fraction) = clock.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let nsec = fraction.parse::<i64>().ok()? * 10i64.pow(9u32.checked_sub(digits)?);
    Some(Timestamp::new(sec.parse().ok()?, nsec))
}

/// `    InDom 29.3[4] labels (18 bytes): {"transient":true}`: whose labels, and their text.
fn labels(line: &str) -> Option<(&str, &str)> {
    let (whose, rest) = line.strip_prefix("    ")?.split_once(" labels (")?;
    Some((whose, rest.split_once(" bytes): ")?.1))
}

#[test]
fn labels_have_the_times_and_places_that_pmdumplog_prints() {
    let mut compared = 0;
    for path in archives() {
        let Ok(mut context) = ArchiveContext::open(&path) else { continue };
        let arguments = ["-xxx", "-Z", "UTC", "-e", as_argument(&path)];
        let Some(printed) = tool("pmdumplog", &arguments) else { return };
        let mut current = None;
        for line in printed.lines() {
            if let Some(stamp) = stamp(line) {
                context.set_position(stamp).expect("a position");
                current = None;
            } else if let Some((whose, json)) = labels(line) {
                let (level, instance) = level(whose);
                let sets = context.labels(level).expect("an answer").expect("labels");
                let set = sets.into_iter().find(|set| set.instance() == instance);
                let set = set.unwrap_or_else(|| panic!("{}: {line}", path.display()));
                assert_eq!(set.json(), json, "{}: {line}", path.display());
                current = Some(set);
                compared += 1;
            } else if let Some((number, rest)) =
                line.strip_prefix("        [").and_then(|rest| rest.split_once("] name("))
            {
                // `name(2,9) : value(13,4) [instances,optional]`
                let set = current.as_ref().expect("a set was printed before");
                let place = set.places()[number.parse::<usize>().expect(line)];
                let ours = format!(
                    "{},{}) : value({},{})",
                    place.name, place.name_len, place.value, place.value_len
                );
                assert_eq!(rest.split(" [").next(), Some(&*ours), "{}: {line}", path.display());
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn texts_of_domains_are_those_that_pmdumplog_prints() {
    let mut compared = 0;
    for path in archives() {
        let Ok(mut context) = ArchiveContext::open(&path) else { continue };
        let Some(printed) = tool("pmdumplog", &["-h", as_argument(&path)]) else { return };
        let mut lines = printed.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((number, rest)) =
                line.strip_prefix("InDom: ").map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
            else {
                continue;
            };
            let subject = TextSubject::Domain(indom(number));
            let mut text = |kind| context.text(subject, kind).expect("an answer").expect(line);
            match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(one_line) => assert_eq!(&*text(TextKind::OneLine), one_line),
                None => {
                    let first = lines.peek().copied().unwrap_or_default();
                    let help = text(TextKind::Help);
                    // The one line stands in for an empty text.
                    let mut one_line = || text(TextKind::OneLine);
                    let expected = if first.is_empty() { &*one_line() } else { first };
                    assert_eq!(help.lines().next().unwrap_or_default(), expected);
                }
            }
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}
