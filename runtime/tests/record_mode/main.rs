//! Record mode: the order of calls and the files always; archives of the real
//! pmlogger, and the folio of the real libpcp_gui, where PCP is installed.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::record_mode::{RecordError, Recording};
use pmderive_runtime::source::{FetchSource, MetadataSource};
use pmderive_testkit::oracle;
use pmderive_testkit::real_pmcd;

use oracle::Oracle;
use real_pmcd::RealPmcd;

const INVALID: PmStatus = PmStatus(-22);

/// The text of a folio, with the unique part of names and the time left out.
fn folio(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let mut base = "";
    for line in text.lines() {
        if let Some((_, archive)) = line.rsplit_once(' ').filter(|_| line.starts_with("Archive:")) {
            base = &archive[..6];
        }
    }
    let lines = text.lines().map(|line| match line.split_once(" at ") {
        Some((made, time)) if line.starts_with("Created:") => {
            assert_eq!(time.len(), 24, "{time}");
            format!("{made} at TIME\n")
        }
        _ => format!("{line}\n"),
    });
    lines.collect::<String>().replace(base, "UNIQUE")
}

/// # Panics
/// The condition does not hold within minutes.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(180), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn calls_have_an_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("folio");
    let mut recording = Recording::create(&path, "tests", true).unwrap();
    let status = |outcome: Result<(), RecordError>| outcome.map_err(|error| error.status());
    // Nothing to record yet.
    assert_eq!(status(recording.start()), Err(INVALID));
    assert_eq!(status(recording.stop(None, "")), Err(INVALID));
    assert_eq!(status(recording.argument(None, "-s5")), Err(INVALID));
    let again = Recording::create(&path, "tests", true).unwrap_err();
    assert_eq!(again.status(), PmStatus(-17), "{again}");
    // The manual describes this, but libpcp_gui does not do it.
    writeln!(recording.replay_config().unwrap(), "replay").unwrap();
    let first = recording.add_host("nohost.invalid", true).unwrap();
    assert_eq!(recording.add_host("other", true).unwrap_err().status(), INVALID);
    let second = recording.add_host("nohost.invalid", false).unwrap();
    assert_eq!(recording.add_host("two\nlines", false).unwrap_err().status(), INVALID);
    writeln!(recording.config(first).unwrap(), "log once {{ a }}").unwrap();
    recording.argument(Some(first), "-s5").unwrap();
    for action in [Recording::stop, Recording::detach, Recording::show_status] {
        assert_eq!(status(action(&mut recording, Some(first), "")), Err(INVALID));
    }
    assert_eq!(recording.wait(first).unwrap_err().status(), INVALID);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let archive = name(&recording.archive(first));
    let base = archive.strip_suffix(".nohost.invalid").unwrap();
    assert_eq!(name(&recording.archive(second)), format!("{base}a.nohost.invalid"));
    assert_eq!(name(&recording.log_file(first)), format!("{archive}.log"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read(&format!("{archive}.config")), "log once { a }\n");
    assert_eq!(read(base), "replay\n");
    assert!(!recording.is_on());
    let nowhere = Recording::create(Path::new("/nosuch/folder/folio"), "tests", false);
    assert_eq!(nowhere.unwrap_err().status(), PmStatus(-2));
}

#[test]
fn the_folio_is_that_of_libpcp_gui() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/record_mode/oracle.c");
    let Some(oracle) = Oracle::compile(source, &["-l:libpcp_gui.so.2"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let hosts = ["nohost.invalid", "other.invalid", "a-rather-long-name-of-a-host.invalid"];
    for replay in ["0", "1"] {
        let theirs = folder.path().join(format!("theirs{replay}"));
        let mut oracle = oracle.command();
        assert!(oracle.arg(&theirs).arg(replay).args(hosts).status().unwrap().success());

        let ours = folder.path().join(format!("ours{replay}"));
        let mut recording = Recording::create(&ours, "tests", replay == "1").unwrap();
        let last = hosts.len() - 1;
        let ids: Vec<_> = (0..hosts.len())
            .map(|index| recording.add_host(hosts[index], index == last).unwrap())
            .collect();
        recording.start().unwrap();
        assert_eq!(folio(&ours), folio(&theirs));

        // Each call reports that there are no such hosts.
        for id in ids {
            assert!(!recording.wait(id).unwrap().success());
            let log = std::fs::read_to_string(recording.log_file(id)).unwrap();
            assert!(log.contains("Cannot connect to PMCD"), "{log}");
            let ended = recording.show_status(Some(id), "").unwrap_err();
            assert_eq!(ended.status(), PmStatus::IPC, "{ended}");
        }
        assert!(!recording.is_on());
        assert_eq!(recording.stop(None, "").unwrap_err().status(), INVALID);
    }
}

/// A process that is killed in the end, even if the test fails.
struct KilledOnDrop(u32);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let killed = Command::new("kill").args(["-TERM", &self.0.to_string()]).status();
        if !killed.is_ok_and(|status| status.success()) {
            eprintln!("process {} could not be ended", self.0);
        }
    }
}

#[test]
fn archives_are_recorded_by_pmlogger() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("folio");
    let mut recording = Recording::create(&path, "tests", false).unwrap();
    let hosts = ["localhost", "127.0.0.1"].map(|host| {
        let host = recording.add_host(&format!("{host}:{}", pmcd.port), false).unwrap();
        let config = recording.config(host).unwrap();
        writeln!(config, "log mandatory on 50 msec {{ sample.seconds sample.bin }}").unwrap();
        host
    });
    recording.start().unwrap();
    assert!(recording.is_on() && recording.add_host("late", false).is_err());
    assert_eq!(recording.start().unwrap_err().status(), INVALID);
    let records = |archive: &Path| {
        let mut context = ArchiveContext::open(archive).ok()?;
        let pmid = context.lookup_names(&["sample.bin"]).ok()?.pop()?.ok()?;
        let mut stamps = Vec::new();
        while let Ok(result) = context.fetch_values(&[pmid]) {
            let values = result.sets[0].outcome.as_ref().map_or(0, Vec::len);
            assert_eq!(values, 9, "instances of sample.bin");
            stamps.push(result.timestamp);
        }
        Some(stamps)
    };
    for host in hosts {
        let archive = recording.archive(host);
        wait_for("records", || records(&archive).is_some_and(|stamps| stamps.len() > 2));
    }
    recording.show_status(Some(hosts[0]), "").unwrap();
    let log = recording.log_file(hosts[0]);
    wait_for("the status in the log", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("has been in progress for"))
    });
    let detached = KilledOnDrop(recording.process_id(hosts[1]).unwrap());
    recording.detach(Some(hosts[1]), "").unwrap();
    recording.stop(None, "").unwrap();
    assert!(!recording.is_on());
    assert!(recording.wait(hosts[0]).unwrap().success());
    // The other one continues until it is ended.
    assert_eq!(recording.exit_status(hosts[1]).unwrap(), None);
    let log = recording.log_file(hosts[1]);
    wait_for("the detached logger", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("has asked pmlogger"))
    });
    drop(detached);
    recording.wait(hosts[1]).unwrap();

    for host in hosts {
        let archive = recording.archive(host);
        let stamps = records(&archive).expect("an archive");
        assert!(!stamps.is_empty() && stamps.is_sorted());
        let dumped = Command::new("pmdumplog").arg(&archive).arg("sample.bin").output().unwrap();
        let dumped = String::from_utf8_lossy(&dumped.stdout).into_owned();
        let metrics = dumped.matches("value 900").count();
        assert_eq!(metrics, stamps.len(), "{dumped}");
    }
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.matches("Archive:").count(), 2, "{text}");
}
