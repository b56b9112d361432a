//! The Linux agent next to PCP's own, which `pminfo -L` loads into its process
//! without a pmcd.
//!
//! pmdalinux keeps the numbers of its instances in files. Here it gets an empty
//! directory for them, so both agents number afresh.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pmderive_runtime::local::{LinuxAgent, LocalContext};
use pmderive_runtime::source::MetadataSource;

use crate::golden::{metrics_of_tree, tree};
use crate::pcp::Pcp;
use crate::pminfo::{self, Quirks};
use crate::render::{Rendered, render};

/// Rounds of fetches after which a value must have agreed once.
const ROUNDS: usize = 20;

/// Intended differences, by the beginning of the metric's name.
const MEANT_ON_ANY_HOST: &[(&str, &str)] = &[
    ("network.interface.speed", "a speed of -1 means that it is unknown"),
    ("network.interface.baudrate", "a speed of -1 means that it is unknown"),
    ("vfs.files.max", "a limit beyond 32 bits would be a wrong number"),
    ("mem.vmstat.balloon_", "pmdalinux confuses inflate and deflate"),
];

/// Intended differences, on the recorded trees only: the beginning of the
/// tree's name, that of the metric's, and the reason.
const MEANT_ON_TREES: &[(&str, &str, &str)] = &[
    ("linux-", "network.interface.mtu", "pmdalinux asks this host's kernel"),
    ("linux-", "network.interface.up", "pmdalinux asks this host's kernel"),
    ("linux-", "network.interface.running", "pmdalinux asks this host's kernel"),
    ("linux-modern", "network.interface.duplex", "pmdalinux asks this host's kernel"),
    ("linux-", "filesys.", "pmdalinux leaves out what is not mounted on this host"),
    ("linux-modern", "disk.dev.capacity", "pmdalinux reads /proc/partitions, not in the tree"),
    ("linux-modern", "disk.dev.scheduler", "pmdalinux does not know names with a slash"),
    ("linux-modern", "disk.all.total_rawactive", "pmdalinux lets the sum wrap at 32 bits"),
    ("linux-modern", "hinv.cpu.", "pmdalinux goes astray when a processor is offline"),
    ("linux-2.6", "kernel.all.pid_max", "pmdalinux makes a limit up where there is no file"),
];

/// Instantaneous values that pminfo changes by running: the memory, files,
/// sockets and processes it uses itself. They are compared on recorded trees.
const DISTURBED: &[&str] =
    &["mem.", "vfs.", "filesys.", "kernel.all.nprocs", "kernel.all.run", "network.sockstat."];

/// True if pmdalinux gives 0, an unsigned -1, "unknown" or a failure, and we
/// give no value, for a fact that the kernel does not provide.
fn made_up(ours: &[String], theirs: &[String]) -> bool {
    let missing: Vec<&String> = theirs.iter().filter(|value| !ours.contains(value)).collect();
    let extra = ours.iter().any(|value| value.starts_with(' ') && !theirs.contains(value));
    let nothing = |value: &String| {
        [" 0", " 4294967295", "\"unknown\""].iter().any(|nothing| value.ends_with(nothing))
            || value.starts_with("No value")
            || value.starts_with("Error: ")
    };
    !extra && missing.into_iter().all(nothing)
}

fn meant_on_any_host(name: &str) -> bool {
    MEANT_ON_ANY_HOST.iter().any(|(prefix, _)| name.starts_with(prefix))
}

fn meant_on_tree(tree: &str, name: &str) -> bool {
    let mut list = MEANT_ON_TREES.iter();
    list.any(|(trees, prefix, _)| tree.starts_with(trees) && name.starts_with(prefix))
}

/// The values of a metric by instance. Without values, the reason is the only
/// key.
fn by_instance(metric: &Rendered) -> BTreeMap<&str, &str> {
    let parts = |line: &'_ String| line.split_once("value ").map(|(key, _)| key.len());
    let values = metric.values.iter();
    values.map(|line| line.split_at(parts(line).unwrap_or(line.len()))).collect()
}

/// True if our value is that of one of their two readings, or a number between
/// them.
fn fits(before: &str, ours: &str, after: &str) -> bool {
    let number = |text: &str| text.strip_prefix("value ").and_then(|text| text.parse::<f64>().ok());
    if before == ours || ours == after {
        return true;
    }
    match (number(before), number(ours), number(after)) {
        (Some(before), Some(ours), Some(after)) => {
            (before.min(after)..=before.max(after)).contains(&ours)
        }
        _ => false,
    }
}

/// The instances whose values fit, see [`fits`]. `None` if theirs has other
/// instances.
fn fitting<'m>(
    before: &Rendered,
    ours: &'m Rendered,
    after: &Rendered,
) -> Option<BTreeSet<&'m str>> {
    let (before, ours, after) = (by_instance(before), by_instance(ours), by_instance(after));
    if !before.keys().eq(ours.keys()) || !after.keys().eq(ours.keys()) {
        return None;
    }
    let fitting = ours.iter().filter(|(key, value)| fits(before[*key], value, after[*key]));
    Some(fitting.map(|(key, _)| *key).collect())
}

fn linux() -> LocalContext {
    LocalContext::with_agents(vec![Box::new(LinuxAgent::new())]).expect("a consistent agent")
}

#[test]
fn descriptors_and_values_on_this_host_are_pmdalinuxs() {
    let Some(pcp) = Pcp::with_agent(60, "linux") else { return };
    let mut context = linux();
    let mut names = context.traverse("").expect("in this process");
    // One reading each shows that pmdalinux has all metrics and describes them alike.
    let theirs = pcp.pminfo(Path::new(""), &names);
    let ours = render(&mut context, &names).expect("in this process");
    for metric in &ours {
        let theirs = theirs.get(&metric.name).unwrap_or_else(|| panic!("{}", metric.name));
        assert_eq!(metric.description, theirs.description, "{}", metric.name);
    }
    names.retain(|name| !meant_on_any_host(name));

    // Values move during both readings, so ours must lie between two of theirs.
    // Fluctuating values may miss that in one round, but not in all. Each
    // instance of a metric fluctuates by itself.
    let mut left: BTreeMap<String, BTreeSet<String>> =
        names.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    let mut last = String::new();
    for _ in 0..ROUNDS {
        let asked: Vec<String> = left.keys().cloned().collect();
        let before = pcp.pminfo(Path::new(""), &asked);
        let ours = render(&mut context, &asked).expect("in this process");
        let after = pcp.pminfo(Path::new(""), &asked);
        for metric in ours {
            let (before, after) = (&before[&metric.name], &after[&metric.name]);
            let disturbed = metric.description.contains("Semantics: instant")
                && DISTURBED.iter().any(|prefix| metric.name.starts_with(prefix));
            let fitted = left.get_mut(&metric.name).expect("it was asked for");
            let fits = fitting(before, &metric, after).is_some_and(|fitting| {
                fitted.extend(fitting.into_iter().map(str::to_owned));
                disturbed || by_instance(&metric).keys().all(|key| fitted.contains(*key))
            });
            if fits || made_up(&metric.values, &before.values) {
                left.remove(&metric.name);
            } else {
                last = format!("{before:?}\n{metric:?}\n{after:?}");
            }
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("never the same as pmdalinux's: {:?}, for example\n{last}", left.keys());
}

#[test]
fn labels_on_this_host_are_pmdalinuxs() {
    let Some(pcp) = Pcp::with_agent(60, "linux") else { return };
    let mut context = linux();
    let names = context.traverse("").expect("in this process");
    let printed = pcp.printed(Path::new(""), &["-l"], &names);
    let mut quirks = Quirks::new("", false);
    let ours: String =
        names.iter().map(|name| pminfo::labelled(&mut context, name, &mut quirks)).collect();
    for (ours, theirs) in ours.lines().zip(printed.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), printed.len());
    assert!(ours.contains("\"device_type\":\"cpu\""));
    assert_eq!(context.warnings(), [] as [&str; 0]);
}

#[test]
fn values_of_recorded_trees_are_pmdalinuxs() {
    let Some(pcp) = Pcp::with_agent(60, "linux") else { return };
    let mut different = Vec::new();
    for name in ["linux-modern", "linux-2.6"] {
        let root = tree(name);
        let ours = metrics_of_tree(&root);
        let names: Vec<String> = ours.iter().map(|metric| metric.name.clone()).collect();
        let theirs = pcp.pminfo(&root, &names);
        for metric in ours {
            let theirs = &theirs[&metric.name].values;
            if metric.values != *theirs
                && !made_up(&metric.values, theirs)
                && !meant_on_any_host(&metric.name)
                && !meant_on_tree(name, &metric.name)
            {
                different.push(format!("{name} {}: {:?} {theirs:?}", metric.name, metric.values));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
