//! Values from recorded files, and of this very process.

use std::fs;

use pmderive_core::model::{RawValueRef, Timestamp};
use pmderive_core::result::{ResultPart, ResultWriter};

use super::*;

/// The values of all metrics of an agent as text lines: name, instance, and
/// number or bytes.
fn values(agent: &mut ProcessAgent, profile: &InstanceProfile) -> Vec<String> {
    agent.begin_fetch();
    let mut part = ResultPart::default();
    let mut writer = ResultWriter::new(&mut part, Timestamp::default());
    let metrics = agent.metrics();
    for metric in &metrics {
        let mut values = Values::new(&mut writer, metric.desc, profile);
        let outcome = agent.fetch(metric.desc.pmid, &mut values);
        values.finish(outcome);
    }
    let mut lines = Vec::new();
    for (metric, set) in metrics.iter().zip(part.sets()) {
        for (instance, value) in set.values() {
            let value = match value.expect("all values are there") {
                RawValueRef::Block { bytes, .. } => {
                    format!("\"{}\"", bytes.strip_suffix(&[0]).unwrap_or(bytes).escape_ascii())
                }
                RawValueRef::Number { bits, .. } => bits.to_string(),
                RawValueRef::InPlace(word) => word.cast_signed().to_string(),
            };
            lines.push(format!("{} {instance} {value}", metric.name));
        }
    }
    lines
}

/// A tree with two processes. Some files of the second are damaged.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory");
    let stat = "7 (a) b) c) S 1 6 5 34816 6 4194304 137 1 2 3 150 250 350 450 39 19 1 0 129392 2990080 388 1844674407 4294967295 4294967296 1 0 0 1 2 6 4 1 0 0 17 1 50 2 7 8 9 0 0 0 0 0 0 0 0";
    let status = "Name:\ta\nTgid:\t7\nNgid:\t16\nUid:\t0\t1\t77\t0\nGid:\t0\t0\t0\t0\nNStgid:\t7\t1\nVmRSS:\t    1720 kB\nVmLib:\t    1528 kB\nVmSwap:\t 10 kB\nSigPnd:\t00000000000000ff\nCpus_allowed_list:\t0-1,3\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
    for (file, contents) in [
        ("proc/7/stat", stat),
        ("proc/7/status", status),
        ("proc/7/statm", "730 430 404 5 0 89 0\n"),
        ("proc/7/io", "rchar: 6976\nwchar: 1\nsyscr: 10\n"),
        ("proc/7/schedstat", "2761059 5 3\n"),
        (
            "proc/7/smaps_rollup",
            "55-7f ---p 00000000 00:00 0 [rollup]\nRss: 1720 kB\nPss_Anon: 104 kB\n",
        ),
        ("proc/7/cmdline", "/usr/bin/a\0-x\0 y\0"),
        ("proc/7/cgroup", "3:cpu,memory:/x\n0::/y\n"),
        ("proc/7/autogroup", "/autogroup-1 nice -3\n"),
        ("proc/12/autogroup", ""),
        ("proc/12/stat", "12 (kthread) D 2 0 0"),
        ("proc/12/status", "Uid:\tx\nVmRSS:\t99999999999999999999 kB\n"),
        ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nother:x:0:0\nbroken\ndaemon:x:1:1\n"),
        ("etc/group", "wheel:x:0:\n"),
    ] {
        let path = tree.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a directory");
        fs::write(path, contents).expect("written");
    }
    tree
}

#[test]
fn recorded_files_have_the_values_that_they_say() {
    let tree = tree();
    let mut agent = ProcessAgent::with_root(tree.path());
    let found = values(&mut agent, &InstanceProfile::default());
    let expected = include_str!("tests/values.txt");
    assert!(found.join("\n") == expected.trim_end(), "{}", found.join("\n"));
    let domain = agent.instance_domain(InDom::new(DOMAIN, PROCESSES)).expect("the domain");
    let names: Vec<_> = domain.instances().collect();
    assert_eq!(names, [(7, "000007 /usr/bin/a"), (12, "000012 (kthread)")]);
    for (name, pid) in [("12", Ok(12)), ("000007", Ok(7)), ("000007 /usr/bin/a", Ok(7))] {
        assert_eq!(agent.lookup_instance(InDom::new(DOMAIN, PROCESSES), name), pid, "{name}");
    }
    for name in ["1", "x", "7 /usr/bin/a", ""] {
        let found = agent.lookup_instance(InDom::new(DOMAIN, PROCESSES), name);
        assert_eq!(found, Err(PmStatus::INST), "{name}");
    }
}

/// Mapped libraries need not be in memory as a whole.
#[test]
fn libraries_may_be_larger_than_what_is_in_memory() {
    let tree = tree();
    let status = "VmRSS:\t    1528 kB\nVmLib:\t    1720 kB\n";
    fs::write(tree.path().join("proc/7/status"), status).expect("written");
    let mut agent = ProcessAgent::with_root(tree.path());
    let found = values(&mut agent, &InstanceProfile::default());
    assert!(found.iter().any(|line| line == "proc.memory.vmnonlib 7 0"), "{found:?}");
}

#[test]
fn only_what_the_profile_admits_is_read() {
    let tree = tree();
    let mut agent = ProcessAgent::with_root(tree.path());
    let mut profile = InstanceProfile::default();
    profile.include(InDom::new(DOMAIN, PROCESSES), &[12]);
    let found = values(&mut agent, &profile);
    assert!(found.iter().any(|line| line == "proc.psinfo.cmd 12 \"kthread\""), "{found:?}");
    assert!(!found.iter().any(|line| line.split(' ').nth(1) == Some("7")), "{found:?}");
    assert!(agent.processes.contents(Kind::CommandLine, 0).is_none());
}

#[test]
fn this_process_is_among_the_processes() {
    let mut agent = ProcessAgent::new();
    let pid = std::process::id().cast_signed();
    let mut profile = InstanceProfile::default();
    profile.include(InDom::new(DOMAIN, PROCESSES), &[pid]);
    let found = values(&mut agent, &profile);
    let value = |name: &str| {
        let prefix = format!("{name} {pid} ");
        found.iter().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
    };
    assert_eq!(value("proc.psinfo.pid"), Some(pid.to_string()));
    assert_eq!(value("proc.psinfo.tgid"), Some(pid.to_string()));
    let folder = std::env::current_dir().expect("a working directory");
    assert_eq!(value("proc.psinfo.cwd"), Some(format!("\"{}\"", folder.display())));
    for name in ["proc.psinfo.rss", "proc.memory.vmrss", "proc.schedstat.cpu_time", "proc.fd.count"]
    {
        let number: u64 = value(name).expect(name).parse().expect("a number");
        assert!(number > 0, "{name}");
    }
}
