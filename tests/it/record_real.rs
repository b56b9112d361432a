//! Recordings as PCP's own tools read them: of a real pmcd, of this machine,
//! cut short at any moment, and over a restart of pmcd.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_testkit::real_pmcd;

use crate::command;
use command::{Run, finished, pmderive};
use real_pmcd::RealPmcd;

const DEFINITIONS: &str = r#"
rec.rate = rate(sample.byte_ctr)
rec.rate(oneline) = bytes a second
rec.rate(helptext) = "Bytes a second,
as they come."
rec.bin = sample.bin * 2
rec.delta = delta(sample.long.million)
rec.text = sample.string.hullo
rec.processes = proc.psinfo.rss * 2
rec.constant = mkconst(4, type=double, units="Kbyte / sec", semantics=instant)
"#;

/// The same by other names.
fn again() -> String {
    DEFINITIONS.replace("rec.", "again.")
}

const METRICS: &[&str] = &[
    "rec.rate",
    "rec.bin",
    "rec.delta",
    "rec.text",
    "rec.constant",
    "sample.bin",
    "sample.long.million",
    "sample.event.records",
    "sample.bad.nosupport",
    "sample.bad.novalues",
    "sample.aggregate.hullo",
    "hinv.ncpu",
    "kernel.all.load",
    "kernel.all.cpu.user",
];

/// A pmcd, a folder, and an archive to be made in it.
struct Setting {
    pmcd: RealPmcd,
    folder: tempfile::TempDir,
    config: String,
    out: String,
}

impl Setting {
    fn new() -> Option<Setting> {
        let pmcd = RealPmcd::start()?;
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let (config, out) = (path("rec.conf"), path("out"));
        std::fs::write(&config, DEFINITIONS).expect("a file");
        std::fs::write(path("again.conf"), again()).expect("a file");
        Some(Setting { pmcd, folder, config, out })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let host = format!("unix:{}", self.pmcd.socket.display());
        let own = ["record", "-h", &host, "-c", &self.config, "-o", &self.out];
        let mut command = pmderive(&[&own[..], arguments].concat());
        // A busy machine takes its time.
        command.env("PMCD_CONNECT_TIMEOUT", "100").env("PMCD_REQUEST_TIMEOUT", "100");
        command
    }

    fn record(&self, arguments: &[&str]) -> Run {
        let run = finished(self.command(arguments).output().expect("the command runs"));
        assert_eq!(run.status, Some(0), "{}", run.err);
        run
    }

    /// Begins a recording and waits until there are some records.
    fn begin(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command runs");
        let mut goes_on = true;
        wait_until(|| {
            goes_on = child.try_wait().expect("a process").is_none();
            !goes_on || records(&self.out) > 2
        });
        if !goes_on {
            panic!("{}", finished(child.wait_with_output().expect("its end")).err);
        }
        child
    }

    /// What a tool prints about the archive.
    fn tool(&self, name: &str, arguments: &[&str]) -> String {
        let (out, err) = tool(name, &[arguments, &[&self.out]].concat(), "");
        assert_eq!(err, "", "{name} {arguments:?}");
        out
    }

    /// pmlogcheck has nothing to say, but for what is so by design: derived
    /// metrics have the instance domains of their operands.
    fn check(&self) {
        let (out, err) = tool("pmlogcheck", &[&self.out], "");
        let said = format!("{out}{err}");
        let complaints = said.lines().filter(|line| {
            !(line.contains("[511.") && line.contains("domain of pmid (511) != domain of indom"))
        });
        assert_eq!(complaints.collect::<Vec<_>>(), [""; 0]);
    }
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    for _ in 0..5000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it does not come to pass");
}

/// What a tool prints, and what it says.
fn tool(name: &str, arguments: &[&str], definitions: &str) -> (String, String) {
    let mut command = Command::new(name);
    command.args(arguments).env("LC_ALL", "C").env("TZ", "UTC");
    let output = command.env("PCP_DERIVED_CONFIG", definitions).output().expect(name);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// Names, descriptors, help texts and labels are those of the live metrics, as
/// pminfo prints them.
#[test]
fn metadata_is_that_of_the_source() {
    let Some(setting) = Setting::new() else { return };
    setting.record(&[&["-t", "100msec", "-s", "3"], METRICS].concat());
    setting.check();
    let socket = format!("unix:{}", setting.pmcd.socket.display());
    for what in ["-d", "-t", "-T"] {
        let of_archive = [&["-a", &setting.out, what], METRICS].concat();
        let of_pmcd = [&["-h", &socket, what], METRICS].concat();
        let (archived, _) = tool("pminfo", &of_archive, "");
        let (live, _) = tool("pminfo", &of_pmcd, &setting.config);
        assert_eq!(archived, live, "{what}");
        assert!(archived.contains("rec.rate") && archived.len() > 500);
    }
    // pminfo 6.0 does not find labels of clusters in archives, ours does.
    let labels = |arguments: &[&str], config: &str| {
        let mut command = pmderive(&[&["info", "-l"], arguments, METRICS].concat());
        finished(command.env("PCP_DERIVED_CONFIG", config).output().expect("the command runs")).out
    };
    let archived = labels(&["-a", &setting.out], "");
    assert_eq!(archived, labels(&["-h", &socket], &setting.config));
    assert!(archived.contains("\"cluster\":\"zero\"") && archived.contains("\"bin\":100"));
}

/// Seconds of the day, as pmdumplog prints a time.
fn seconds(clock: &str) -> f64 {
    let parts = clock.split(':').map(|part| part.parse::<f64>().expect("a number"));
    parts.fold(0.0, |sum, part| 60.0 * sum + part)
}

/// The single values of a metric in the records that pmdumplog prints.
fn values(data: &str, metric: &str) -> Vec<(f64, f64)> {
    let records = data.split("\n\n").filter_map(|record| {
        let head = record.lines().find(|line| line.contains(" metrics"))?;
        let line = record.lines().find(|line| line.contains(metric))?;
        let (_, value) = line.split_once("): value ")?;
        Some((seconds(head.split_whitespace().next()?), value.parse().ok()?))
    });
    records.collect()
}

/// Values of derived metrics are what follows from the operands that pmdumplog
/// prints, and what `eval` derives from them.
#[test]
fn values_follow_from_the_operands() {
    for version in ["2", "3"] {
        let Some(setting) = Setting::new() else { return };
        setting.record(&["-t", "50msec", "-s", "20", "--with-operands", "-V", version]);
        setting.check();
        let config = setting.folder.path().join("again.conf");
        let config = config.to_str().expect("UTF-8");
        let data = setting.tool("pmdumplog", &["-m"]);
        let (counter, rates) = (values(&data, "sample.byte_ctr"), values(&data, "rec.rate"));
        assert_eq!((counter.len(), rates.len()), (20, 19), "{data}");
        // Rates are of the times that pmcd told, of which version 2 drops the nanoseconds.
        let resolution = if version == "2" { 1e-6 } else { 1e-9 };
        for (pair, (time, rate)) in counter.windows(2).zip(rates) {
            let [(before, from), (now, to)] = *pair else { unreachable!() };
            // How long it took is up to the machine, and the day may end meanwhile.
            let (counted, took) = (to - from, (now - before).rem_euclid(86_400.0));
            let difference = (rate * took - counted).abs();
            let tolerance = 2.0 * resolution * rate + 1e-9 * counted;
            assert!(time == now && difference <= tolerance, "{rate} of {counted} in {took}");
        }
        for name in ["rate", "bin", "delta", "text", "processes", "constant"] {
            if name == "rate" && version == "2" {
                continue;
            }
            let [recorded, derived] = ["rec", "again"].map(|top| {
                let metric = format!("{top}.{name}");
                let arguments =
                    ["eval", "-a", &setting.out, "-c", config, "--format", "csv", &metric];
                let run = finished(pmderive(&arguments).output().expect("the command runs"));
                assert_eq!(run.status, Some(0), "{}", run.err);
                // Names of processes, which follow, may well have that of the metric in them.
                let rows = run.out.lines().map(|row| row.replacen(&metric, "metric", 1));
                rows.collect::<Vec<String>>()
            });
            assert!(recorded.len() > 15, "{name}: {recorded:?}");
            // A single difference needs no sample that comes before it, once recorded.
            let same = derived.iter().all(|row| recorded.contains(row));
            assert!(same, "{name} in version {version}: {recorded:?} {derived:?}");
        }
    }
}

/// At a signal the archive gets its end: an entry of the index for the last record.
#[test]
fn signals_end_a_recording() {
    for name in ["-TERM", "-INT"] {
        let Some(setting) = Setting::new() else { return };
        let child = setting.begin(&["-t", "10msec", "-v", "8kb", "rec"]);
        signal(&child, name);
        let run = finished(child.wait_with_output().expect("its end"));
        assert_eq!(run.status, Some(0), "{}", run.err);
        assert!(run.err.contains(" records of 6 metrics, "), "{}", run.err);
        setting.check();
        let index = setting.tool("pmdumplog", &["-t"]);
        let last = index.lines().rev().find(|line| !line.trim().is_empty()).expect("an entry");
        let data = setting.tool("pmdumplog", &["-m"]);
        let mut records = data.lines().filter(|line| line.contains(" metrics"));
        let time = |line: &str| line.split_whitespace().next().expect("a time").to_owned();
        assert_eq!(records.next_back().map(time), Some(time(last)));
    }
}

/// True if the files of an archive end with whole records. The kernel itself
/// cuts a long write at the end of a page when the process is killed meanwhile.
fn is_of_whole_records(base: &Path) -> bool {
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u32::from_be_bytes(*word) as usize);
    let volumes = (0..).map(|number| number.to_string());
    let suffixes = ["meta", "index"].map(str::to_owned).into_iter().chain(volumes);
    let mut files = suffixes.map_while(|suffix| {
        let bytes = std::fs::read(base.with_extension(&suffix)).ok()?;
        Some((suffix, bytes))
    });
    files.all(|(suffix, bytes)| {
        let label = word(&bytes).expect("labels are there at once");
        // Entries of the index have no lengths of their own.
        let entry = (suffix == "index").then_some(if label == 132 { 20 } else { 32 });
        let mut rest = bytes.get(label..);
        while let Some(records) = rest.filter(|records| !records.is_empty()) {
            let length = entry.or_else(|| word(records)).filter(|length| *length > 0);
            rest = length.and_then(|length| records.get(length..));
        }
        rest.is_some()
    })
}

/// Killed at any moment between two writes, what is on disk is an archive.
#[test]
fn killed_at_any_moment() {
    let Some(setting) = Setting::new() else { return };
    let base = Path::new(&setting.out);
    let (mut moment, mut cut) = (0u64, 0);
    while moment < 12 {
        for number in 0..100 {
            let _ = std::fs::remove_file(base.with_extension(number.to_string()));
        }
        for ending in ["meta", "index"] {
            let _ = std::fs::remove_file(base.with_extension(ending));
        }
        let version = if moment % 2 == 0 { "3" } else { "2" };
        let mut child =
            setting.begin(&["-t", "1msec", "-v", "20kb", "-V", version, "rec", "sample.bin"]);
        std::thread::sleep(Duration::from_micros(moment * 7_919));
        child.kill().expect("it runs");
        child.wait().expect("its end");
        if !is_of_whole_records(base) {
            cut += 1;
            assert!(cut < 12, "it is not one write that was cut");
            continue;
        }
        moment += 1;
        setting.check();
        let data = setting.tool("pmdumplog", &["-m"]);
        let seen = data.lines().filter(|line| line.contains(" metrics")).count();
        let mut archive = ArchiveContext::open(base).expect("an archive");
        let mut records = 0;
        loop {
            match archive.next_record() {
                Ok(_) => records += 1,
                Err(error) if error.is_end_of_archive() => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(records > 0 && records == seen, "{records} records, pmdumplog has {seen}");
    }
}

/// Without pmcd nothing is recorded; when it is back there is a mark.
#[test]
fn a_pmcd_that_is_restarted() {
    let Some(mut setting) = Setting::new() else { return };
    let mut child = setting.begin(&["-t", "20msec", "rec"]);
    setting.pmcd.restart();
    let before = records(&setting.out);
    let mut goes_on = true;
    wait_until(|| {
        goes_on = child.try_wait().expect("a process").is_none();
        !goes_on || records(&setting.out) > before + 5
    });
    if goes_on {
        signal(&child, "-TERM");
    }
    let Run { status, err: said, .. } = finished(child.wait_with_output().expect("its end"));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.lines().count() >= 2, "{said}");
    setting.check();
    let data = setting.tool("pmdumplog", &["-m"]);
    assert!(data.contains("<mark>"), "{said}");
    // No difference spans the gap.
    let (_, after) = data.rsplit_once("<mark>").expect("a mark");
    let first: Vec<&str> =
        after.split("\n\n").filter(|record| record.contains("rec.rate")).collect();
    assert!(first[0].contains("(rec.rate): No values returned!"), "{}", first[0]);
    assert!(first[1].contains("(rec.rate): value "), "{}", first[1]);
}

/// How many records can be read of an archive that may be about to be made.
fn records(archive: &str) -> usize {
    let Ok(mut archive) = ArchiveContext::open(Path::new(archive)) else { return 0 };
    std::iter::from_fn(|| archive.next_record().ok()).count()
}

/// This machine, without pmcd.
#[test]
fn this_machine() {
    if !Path::new("/usr/lib/pcp/bin/pmcd").exists() {
        return real_pmcd::not_run("PCP is not installed (tests/real-pcp install)");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let metrics = ["kernel.all.load", "disk.dev", "network.interface.in", "mem.util"];
    let arguments =
        [&["record", "-L", "-t", "50msec", "-s", "5", "-o", out], &metrics[..]].concat();
    let run = finished(pmderive(&arguments).env_remove("TZ").output().expect("the command runs"));
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert_eq!(tool("pmlogcheck", &[out], ""), (String::new(), String::new()));
    let (printed, _) = tool("pminfo", &[&["-a", out, "-f"], &metrics[..]].concat(), "");
    let (live, _) = tool("pminfo", &["-a", out], "");
    for metric in ["kernel.all.load", "disk.dev.read", "network.interface.in.bytes"] {
        assert!(printed.contains(metric) && live.contains(metric), "{printed}");
    }
    assert!(printed.contains("inst [1 or \"1 minute\"] value "), "{printed}");
    let (label, _) = tool("pmdumplog", &["-L", out], "");
    let host = Command::new("hostname").output().expect("hostname").stdout;
    let host = String::from_utf8_lossy(&host).trim().to_owned();
    assert!(label.contains(&format!("from host {host}")), "{label}");
    // Elsewhere that file has the zone of its own machine.
    assert!(label.contains("timezone: ") && !label.contains("/etc/localtime"), "{label}");
}
