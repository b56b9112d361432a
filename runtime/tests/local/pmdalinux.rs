//! The Linux agent next to PCP's own, which `pminfo -L` loads into its
//! process, so that no pmcd is needed.
//!
//! pmdalinux keeps the numbers it gives to instances in files; here it gets
//! an empty directory for them, so that both number afresh.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use pmderive_runtime::local::LocalContext;
use pmderive_runtime::source::MetadataSource;

use crate::golden::{metrics_of_tree, tree};
use crate::pminfo::{self, Quirks};
use crate::render::{Rendered, render};

const SHARED_OBJECT: &str = "/var/lib/pcp/pmdas/linux/pmda_linux.so";

/// Rounds of fetches after which a value must have agreed once.
const ROUNDS: usize = 20;

/// Differences that are meant, by the beginning of the metric's name.
const MEANT_ON_ANY_HOST: &[(&str, &str)] = &[
    ("network.interface.speed", "a speed of -1 means that it is unknown"),
    ("network.interface.baudrate", "a speed of -1 means that it is unknown"),
    ("vfs.files.max", "a limit beyond 32 bits would be a wrong number"),
    ("mem.vmstat.balloon_", "pmdalinux confuses inflate and deflate"),
];

/// Differences that are meant, on the recorded trees only: the beginning of
/// the tree's name, that of the metric's, and why.
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

/// True where pmdalinux says 0, "unknown" or that it failed, and we have no
/// value, of something that the tree's kernel does not provide.
fn made_up(ours: &[String], theirs: &[String]) -> bool {
    let missing: Vec<&String> = theirs.iter().filter(|value| !ours.contains(value)).collect();
    let extra = ours.iter().any(|value| value.starts_with(' ') && !theirs.contains(value));
    let nothing = |value: &String| {
        [" 0", "\"unknown\""].iter().any(|nothing| value.ends_with(nothing))
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

/// True when PCP is there. Without it nothing is compared, which must not
/// happen where the whole test suite is meant to run.
fn installed() -> bool {
    let installed = Path::new(SHARED_OBJECT).exists();
    if !installed {
        assert!(std::env::var_os("CI").is_none(), "PCP is not installed");
        eprintln!("NOT RUN: pmdalinux is not installed");
    }
    installed
}

/// PCP with files of its own: the name space that its packages define, and
/// nowhere the numbers that pmdalinux gave to instances before.
struct Pcp {
    directory: tempfile::TempDir,
}

impl Pcp {
    fn new() -> Pcp {
        let directory = tempfile::tempdir().expect("a directory");
        let name_space = directory.path().join("pmns");
        fs::create_dir(&name_space).expect("a directory");
        for entry in fs::read_dir("/var/lib/pcp/pmns").expect("PCP's name space").flatten() {
            // All parts but those that are built from the others.
            if !["root", "root.prev", "stdpmid", ".NeedRebuild"]
                .iter()
                .any(|built| entry.file_name() == *built)
            {
                fs::copy(entry.path(), name_space.join(entry.file_name())).expect("a copy");
            }
        }
        symlink("/var/lib/pcp/pmdas", directory.path().join("pmdas")).expect("a link");
        let mut rebuild = Command::new(name_space.join("Rebuild"));
        rebuild.current_dir(&name_space).env("PCP_VAR_DIR", directory.path());
        let output = rebuild.output().expect("Rebuild runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Pcp { directory }
    }

    /// What `pminfo` says of metrics, described like ours.
    fn pminfo(&self, root: &Path, names: &[String]) -> BTreeMap<String, Rendered> {
        // One metric at a time: where a file is missing, pmdalinux fails a whole fetch.
        let text = self.printed(root, &["-b", "1", "-d", "-m", "-f"], names);
        text.split("\n\n").filter_map(metric).collect()
    }

    /// What `pminfo` prints, with these options.
    fn printed(&self, root: &Path, options: &[&str], names: &[String]) -> String {
        let numbers = self.directory.path().join("config");
        if numbers.exists() {
            fs::remove_dir_all(&numbers).expect("removed");
        }
        fs::create_dir_all(numbers.join("pmda")).expect("a directory");
        // The name of pmdalinux's entry point comes after that of its file.
        let agent = format!("add,60,{SHARED_OBJECT},linux_init");
        // pmdalinux has room for so many processors.
        let processors = available_parallelism().map_or(8, |number| number.get().max(8));
        let output = Command::new("pminfo")
            .args(["-L", "-K", "clear", "-K", &agent])
            .args(options)
            .args(names)
            .env("PCP_VAR_DIR", self.directory.path())
            .env("PCP_DERIVED_CONFIG", "")
            .env("LINUX_STATSPATH", root)
            .env("LINUX_NCPUS", processors.to_string())
            .output()
            .expect("pminfo runs");
        output.stdout.iter().copied().map(char::from).collect()
    }
}

/// A paragraph of what pminfo prints.
fn metric(paragraph: &str) -> Option<(String, Rendered)> {
    let mut lines = paragraph.trim_matches('\n').lines();
    let (name, pmid) = lines.next()?.split_once(' ')?;
    let description = [pmid, lines.next()?, lines.next()?].join("\n");
    let values = lines.map(str::to_owned).collect();
    Some((name.to_owned(), Rendered { name: name.to_owned(), description, values }))
}

/// The numbers of values, by instance; `None` when there is one that is no number.
fn numbers(values: &[String]) -> Option<BTreeMap<&str, f64>> {
    values
        .iter()
        .map(|value| {
            let (instance, number) = value.rsplit_once("value ")?;
            Some((instance, number.parse().ok()?))
        })
        .collect()
}

/// True when both have a number for each of the same instances.
fn same_instances(one: &Rendered, other: &Rendered) -> bool {
    match (numbers(&one.values), numbers(&other.values)) {
        (Some(one), Some(other)) => one.keys().eq(other.keys()),
        _ => false,
    }
}

/// True when each of our numbers is from the one before to the one after.
fn between(before: &Rendered, ours: &Rendered, after: &Rendered) -> bool {
    if before.values == ours.values || ours.values == after.values {
        return true;
    }
    let (Some(before), Some(ours), Some(after)) =
        (numbers(&before.values), numbers(&ours.values), numbers(&after.values))
    else {
        return false;
    };
    before.keys().eq(ours.keys())
        && after.keys().eq(ours.keys())
        && ours.iter().all(|(instance, ours)| {
            let (before, after) = (before[instance], after[instance]);
            (before.min(after)..=before.max(after)).contains(ours)
        })
}

#[test]
fn descriptors_and_values_on_this_host_are_pmdalinuxs() {
    if !installed() {
        return;
    }
    let pcp = Pcp::new();
    let mut context = LocalContext::new();
    let mut names = context.traverse("").expect("in this process");
    // One reading each shows that pmdalinux has all metrics and describes them alike.
    let theirs = pcp.pminfo(Path::new(""), &names);
    let ours = render(&mut context, &names).expect("in this process");
    for metric in &ours {
        let theirs = theirs.get(&metric.name).unwrap_or_else(|| panic!("{}", metric.name));
        assert_eq!(metric.description, theirs.description, "{}", metric.name);
    }
    names.retain(|name| !meant_on_any_host(name));

    // Values move while both read, so that ours has to lie between two of
    // theirs; what fluctuates may miss that in one round, but not in all.
    let mut left: BTreeSet<String> = names.iter().cloned().collect();
    let mut last = String::new();
    for _ in 0..ROUNDS {
        let asked: Vec<String> = left.iter().cloned().collect();
        let before = pcp.pminfo(Path::new(""), &asked);
        let ours = render(&mut context, &asked).expect("in this process");
        let after = pcp.pminfo(Path::new(""), &asked);
        for metric in ours {
            let (before, after) = (&before[&metric.name], &after[&metric.name]);
            let disturbed = metric.description.contains("Semantics: instant")
                && DISTURBED.iter().any(|prefix| metric.name.starts_with(prefix))
                && same_instances(before, &metric);
            if between(before, &metric, after) || disturbed {
                left.remove(&metric.name);
            } else {
                last = format!("{before:?}\n{metric:?}\n{after:?}");
            }
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("never the same as pmdalinux's: {left:?}, for example\n{last}");
}

#[test]
fn labels_on_this_host_are_pmdalinuxs() {
    if !installed() {
        return;
    }
    let mut context = LocalContext::new();
    let names = context.traverse("").expect("in this process");
    let printed = Pcp::new().printed(Path::new(""), &["-l"], &names);
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
    if !installed() {
        return;
    }
    let pcp = Pcp::new();
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
