//! Runs of `val` over an archive: some of its metrics, with options in turn.

// Not every test needs all of it.
#![allow(dead_code)]

use std::path::Path;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::source::MetadataSource;

/// Metrics of an archive, at most.
const METRICS: usize = 12;

/// Options by turns. `@N` is an Nth of the time that the archive covers, and
/// `INSTANCE` an instance of the metric. Samples are few: archives are long.
const OPTIONS: &[&[&str]] = &[
    &["-t", "@7"],
    &["-U", "-s", "20"],
    &["-r", "-t", "@5"],
    &["-z", "-t", "@4"],
    &["-Z", "America/New_York", "-s", "3", "-t", "@9"],
    &["-s", "5"],
    &["-f", "2", "-t", "@6"],
    &["-w", "8", "-t", "@5"],
    &["-X", "-t", "@5", "-O", "@9"],
    &["-XX", "-U", "-s", "10", "-S", "@3"],
    &["-S", "@3", "-T", "@6", "-t", "@11"],
    &["-O", "-@8", "-t", "@30"],
    &["-i", "INSTANCE", "-t", "@5"],
    &["-A", "10sec", "-t", "@4"],
    &["-r", "-U", "-i", "INSTANCE", "-s", "12"],
];

/// The same choice in every run.
pub struct Choice(pub u64);

impl Choice {
    /// A number below another.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// A time that is an Nth of another.
fn part(time: f64, text: &str) -> String {
    match text.split_once('@') {
        Some((sign, parts)) => {
            let parts: f64 = parts.parse().expect("a number");
            format!("{sign}{:.3}sec", (time / parts).max(0.001))
        }
        None => text.to_owned(),
    }
}

/// An instance of a metric, if it has any.
pub fn instance(archive: &mut ArchiveContext, metric: &str, choice: &mut Choice) -> Option<String> {
    let pmid = archive.lookup_names(&[metric]).ok()?.pop()?.ok()?;
    let indom = archive.lookup_descs(&[pmid]).ok()?.pop()?.ok()?.indom?;
    let domain = archive.known_instances(indom).ok()?.ok()?;
    let count = domain.instances().count();
    let (_, name) = domain.instances().nth(choice.below(count.max(1)))?;
    (!name.contains(['"', '\''])).then(|| format!("'{name}'"))
}

/// Arguments for runs over an archive; `turn` goes through the options.
pub fn of(base: &Path, choice: &mut Choice, turn: &mut usize) -> Vec<Vec<String>> {
    let path = base.to_str().expect("UTF-8");
    // What cannot be opened is compared too.
    let Ok(mut archive) = ArchiveContext::open(base) else {
        return vec![["-a", path, "-s", "2", "hinv.ncpu"].map(str::to_owned).to_vec()];
    };
    let end = archive.end_time().unwrap_or_default();
    let Timestamp { sec, nsec } = archive.label().start;
    let time = end.seconds_since(Timestamp { sec, nsec });
    let names = archive.traverse("").unwrap_or_default();
    let metrics: Vec<&String> = match names.len() {
        0..=METRICS => names.iter().collect(),
        many => (0..METRICS).map(|_| &names[choice.below(many)]).collect(),
    };
    let mut runs = Vec::new();
    for metric in metrics {
        for _ in 0..2 {
            let options = OPTIONS[*turn % OPTIONS.len()];
            *turn += 1;
            let instance = instance(&mut archive, metric, choice);
            let mut arguments = vec!["-a".to_owned(), path.to_owned()];
            for option in options {
                match *option {
                    "-U" => arguments[0] = "-U".to_owned(),
                    "INSTANCE" => arguments.push(instance.clone().unwrap_or("none".to_owned())),
                    option => arguments.push(part(time, option)),
                }
            }
            arguments.push(metric.clone());
            runs.push(arguments);
        }
    }
    runs
}
