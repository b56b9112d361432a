//! The readers meet bytes that no kernel writes, and devices that come and go.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pmderive_core::model::ValueType;
use pmderive_core::result::ResultBatch;
use pmderive_core::source::{FetchList, FetchSource, MetadataSource};

use super::fuzz::fuzz_linux_files;
use super::table::indom;
use super::*;
use crate::LocalContext;

/// The files of the recorded trees. Each file is a seed.
fn seeds() -> Vec<Vec<u8>> {
    fn collect(directory: &Path, seeds: &mut Vec<Vec<u8>>) {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                collect(&entry.path(), seeds);
            } else if entry.file_name() != "expected.txt" {
                seeds.push(fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut seeds = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/linux-broken"), &mut seeds);
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/linux-2.6"), &mut seeds);
    assert!(seeds.len() > 30);
    seeds
}

#[test]
fn no_bytes_are_too_strange() {
    fuzz_linux_files(b"");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for seed in seeds() {
        fuzz_linux_files(&seed);
        // Cut short files at every byte, long ones at some bytes.
        for end in (0..seed.len()).step_by(1 + seed.len() / 40) {
            fuzz_linux_files(&seed[..end]);
        }
        for _ in 0..40 {
            let mut bytes = seed.clone();
            for _ in 0..3 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if let Some(position) = (random >> 8).checked_rem(bytes.len() as u64) {
                    bytes[position as usize] ^= 1 << (random & 7);
                }
            }
            fuzz_linux_files(&bytes);
        }
    }
}

#[test]
fn the_tables_fit_together() {
    // Attaching refuses a name or identifier that occurs twice.
    let agent = LinuxAgent::new();
    let metrics = agent.metrics();
    LocalContext::with_agents(vec![Box::new(agent)]).unwrap();
    assert!(metrics.len() > 400);
    for metric in metrics {
        assert!(metric.help.ends_with('.') && metric.help.len() > 10, "{}", metric.name);
    }
}

#[test]
fn devices_that_return_get_their_numbers_back() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("proc/diskstats");
    fs::create_dir(root.path().join("proc")).unwrap();
    let agent = LinuxAgent::with_root(root.path());
    let mut context = LocalContext::with_agents(vec![Box::new(agent)]).unwrap();
    let reads = context.lookup_names(&["disk.dev.read"]).unwrap()[0].unwrap();
    let list = FetchList::new(vec![reads], vec![InDom::new(DOMAIN, indom::DISK)]);
    let mut batch = ResultBatch::default();
    let mut fetch = |devices: &[&str]| {
        let lines = (1..).zip(devices).map(|(count, name)| format!("8 0 {name} {count} 0 0 0\n"));
        fs::write(&file, lines.collect::<String>()).unwrap();
        context.fetch(&list, &mut batch).unwrap();
        let set = batch.parts()[0].sets().next().unwrap();
        let lanes: Vec<_> = set.instances().collect();
        (lanes, batch.domains[0].clone().unwrap())
    };
    let (lanes, before) = fetch(&["sda", "sdb"]);
    assert_eq!(lanes, [0, 1]);
    let (_, same) = fetch(&["sda", "sdb"]);
    assert!(Arc::ptr_eq(&before, &same));

    let (lanes, domain) = fetch(&["sdb"]);
    assert_eq!(lanes, [1]);
    assert_eq!(domain.instances().collect::<Vec<_>>(), [(1, "sdb")]);
    let (lanes, domain) = fetch(&["sdc", "sdb", "sda"]);
    assert_eq!(lanes, [0, 1, 2]);
    assert_eq!(domain.name(2), Some("sdc"));
    assert_eq!(domain.name(0), Some("sda"));
}

#[test]
fn a_fetch_reads_a_file_once_and_the_next_one_anew() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("proc/loadavg");
    fs::create_dir(root.path().join("proc")).unwrap();
    fs::write(&file, "1.00 2.00 3.00 1/2 3\n").unwrap();
    let mut agent = LinuxAgent::with_root(root.path());
    let mut read = || agent.files.read("proc/loadavg").map(<[u8]>::to_vec);
    assert!(read().is_some());

    let mut context = LocalContext::with_agents(vec![Box::new(agent)]).unwrap();
    let names = ["kernel.all.runnable", "kernel.all.nprocs", "kernel.all.lastpid"];
    let pmids = context.lookup_names(&names).unwrap().into_iter().map(Result::unwrap).collect();
    let list = FetchList::new(pmids, Vec::new());
    let mut batch = ResultBatch::default();
    let mut fetch = || {
        context.fetch(&list, &mut batch).unwrap();
        let sets = batch.parts()[0].sets();
        sets.map(|set| set.value(0)?.number(ValueType::U32)).collect::<Vec<_>>()
    };
    assert_eq!(fetch(), [Some(1), Some(2), Some(3)]);
    fs::write(&file, "1.00 2.00 3.00 4/5 6\n").unwrap();
    assert_eq!(fetch(), [Some(4), Some(5), Some(6)]);
    fs::remove_file(&file).unwrap();
    assert_eq!(fetch(), [None, None, None]);
}
