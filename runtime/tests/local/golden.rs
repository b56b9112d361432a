//! The Linux agent over recorded trees of /proc and /sys, compared with the
//! expected values beside them.
//!
//! `linux-modern` is a machine with a present-day kernel. `linux-2.6` is an old
//! one that lacks much. `linux-broken` has lines cut off, malformed numbers and
//! bytes that are not text. `UPDATE_GOLDEN=1` writes the values again; read them before you commit.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pmderive_runtime::local::{LinuxAgent, LocalContext};
use pmderive_runtime::source::MetadataSource;

use crate::render::{Rendered, render};

/// Metrics that come from this host's kernel, whatever the tree is.
const FROM_THE_KERNEL: &[&str] = &[
    "kernel.uname.",
    "hinv.machine",
    "hinv.pagesize",
    "kernel.all.hz",
    "filesys.capacity",
    "filesys.used",
    "filesys.free",
    "filesys.avail",
    "filesys.maxfiles",
    "filesys.full",
    "filesys.blocksize",
];

/// A recorded tree.
pub fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The metrics of a tree that do not depend on this host.
pub fn metrics_of_tree(root: &Path) -> Vec<Rendered> {
    let agent = Box::new(LinuxAgent::with_root(root));
    let mut context = LocalContext::with_agents(vec![agent]).expect("no conflicts");
    let mut names = context.traverse("").expect("in this process");
    names.retain(|name| !FROM_THE_KERNEL.iter().any(|prefix| name.starts_with(prefix)));
    render(&mut context, &names).expect("in this process")
}

fn text(metrics: &[Rendered]) -> String {
    let mut text = String::new();
    for metric in metrics {
        writeln!(text, "{}\n{}", metric.name, metric.values.join("\n")).expect("in memory");
    }
    text
}

fn check(name: &str) {
    let root = tree(name);
    let found = text(&metrics_of_tree(&root));
    let file = root.join("expected.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &found).expect("the tree is writable");
    }
    let expected = std::fs::read_to_string(&file).expect("expected.txt");
    for (position, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{} line {}", file.display(), position + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn a_modern_machine() {
    check("linux-modern");
}

#[test]
fn an_old_machine() {
    check("linux-2.6");
}

#[test]
fn a_broken_machine() {
    check("linux-broken");
}

#[test]
fn without_files_there_are_no_values() {
    let root = tempfile::tempdir().expect("a directory");
    for metric in metrics_of_tree(root.path()) {
        let value = match metric.name.as_str() {
            "swap.in" | "swap.out" => {
                "Error: Metric not supported by this version of monitored application"
            }
            _ => "No value(s) available!",
        };
        assert_eq!(metric.values, [value], "{}", metric.name);
    }
}

#[test]
fn every_metric_can_be_fetched_on_this_host() {
    let mut context = LocalContext::new();
    let names = context.traverse("").expect("in this process");
    let metrics = render(&mut context, &names).expect("in this process");
    let with_values = metrics.iter().filter(|metric| metric.values[0].starts_with(' ')).count();
    assert!(with_values > 200, "only {with_values} metrics have values");
    let load = metrics.iter().find(|metric| metric.name == "kernel.all.load").expect("known");
    assert_eq!(load.values.len(), 3);
}
