//! All metrics of archives, with all types and scales, as libpcp gives them.

use std::path::{Path, PathBuf};

use pmderive_runtime::context::Context;
use pmderive_runtime::model::{InDom, ValueType};
use pmderive_runtime::source::MetadataSource;

use crate::libpcp::{From, Libpcp, Step, answers, differences};

/// Archives of PCP's test suite: of all versions, compressed ones, with
/// instances that come and go, with all types of values.
const ARCHIVES: [&str; 12] = [
    "pcp-mpstat",
    "bozo-disk",
    "bug1057",
    "changeinst",
    "dyninsts",
    "eventrec",
    "ok-foo",
    "ok-mv-bigbin",
    "pcp-dstat",
    "procpid-encode",
    "rattle",
    "value-test",
];

/// Scales that fit some metrics, and some that fit no metric.
const SCALES: [Option<&str>; 18] = [
    None,
    Some("rate"),
    Some("instant"),
    Some(""),
    Some("2"),
    Some("Kbyte"),
    Some("Mbyte / hour"),
    Some("byte / ms"),
    Some("Kbyte/sec^2"),
    Some("count"),
    Some("count x 10^3 / sec"),
    Some("10 count / min"),
    Some("sec"),
    Some("1000 ms"),
    Some("ms/sec"),
    Some("sec/sec"),
    Some("bogus"),
    Some("Zbyte"),
];

const FETCHES: usize = 5;

/// Largest number of metrics of one archive.
const METRICS: usize = 120;

/// Entries for the metrics of an archive. Every metric comes as an item, with
/// its first instance, and as a whole, with alternating types and scales.
fn steps(path: &Path) -> Vec<Step> {
    let mut context = Context::archive(path).unwrap_or_else(|error| panic!("{error}"));
    let mut names = context.traverse("").expect("names");
    let every = names.len().div_ceil(METRICS);
    names = names.into_iter().step_by(every).collect();
    let mut steps = Vec::new();
    let mut turn = 0;
    for metric in names {
        let pmid = context.lookup_names(&[&metric]).expect("an archive").remove(0);
        let Ok(pmid) = pmid else { continue };
        let desc = context.lookup_descs(&[pmid]).expect("an archive").remove(0);
        let Ok(desc) = desc else { continue };
        let mut first = |indom: InDom| {
            let domain = context.known_instances(indom).expect("an archive").ok()?;
            domain.instances().next().map(|(_, name)| name.to_owned())
        };
        let instance = desc.indom.and_then(&mut first);
        for scale in SCALES {
            turn += 1;
            let scale = scale.map(str::to_owned);
            let code = [0, 1, 2, 3, 4, 5, 6][turn % 7];
            let (instance, metric) = (instance.clone(), metric.clone());
            steps.push(if turn % 3 == 0 {
                Step::Indom { metric, scale, code, most: 2000 }
            } else {
                Step::Item { metric, instance, scale, code }
            });
        }
        // The value unchanged, and in the metric's own units.
        let (own, code) = (Some(desc.units.to_string()), ValueType::F64.code());
        steps.push(Step::Item { metric, instance, scale: own, code });
    }
    steps.extend(std::iter::repeat_n(Step::Fetch, FETCHES));
    steps
}

fn path(name: &str) -> PathBuf {
    Path::new("/var/lib/pcp/testsuite/archives").join(name)
}

#[test]
fn values_of_archives_are_those_of_libpcp() {
    let Some(libpcp) = Libpcp::new() else { return };
    let only = std::env::var("FETCH_GROUP_ARCHIVES").ok();
    let names: Vec<&str> = match &only {
        Some(names) => names.split(',').collect(),
        None => ARCHIVES.to_vec(),
    };
    let (mut lines, mut failures) = (0, Vec::new());
    for name in names {
        let from = From::Archive(path(name));
        let steps = steps(&path(name));
        let (theirs, ours) = (libpcp.answers(&from, &steps, false), answers(&from, &steps, false));
        println!("{name}: {} steps, {} lines", steps.len(), theirs.len());
        lines += theirs.len();
        let differences = differences(&theirs, &ours);
        failures.extend(differences.iter().map(|difference| format!("{name}: {difference}")));
    }
    assert!(
        failures.is_empty(),
        "{} of {lines}:\n{}",
        failures.len(),
        failures[..failures.len().min(300)].join("\n")
    );
    assert!(only.is_some() || lines > 20_000, "{lines}");
}
