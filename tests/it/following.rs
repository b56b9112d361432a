//! `--follow`: archives that are written while the command reads them, by a test and by the
//! real pmlogger. They give the same output as once they are finished.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::model::{
    InDom, InstanceDomain, MetricDesc, Pmid, RawValue, Semantics, Timestamp, Units, UtcTime,
    ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_testkit::{archives, real_pmcd};

use crate::command;
use command::{finished, pmderive, run};
use real_pmcd::RealPmcd;

/// A process that ends with the test at the latest.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(bytes)).expect("it can be written");
}

#[test]
fn lines_come_as_records_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("a");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-dyn");
    let read = |suffix: &str| std::fs::read(own.with_extension(suffix)).expect("it is there");
    let volume = read("0");
    append(&base.with_extension("meta"), &read("meta"));
    // Nothing but the label, and the half of a record.
    append(&base.with_extension("0"), &volume[..1000]);
    let own = own.to_str().expect("a plain path");
    let archive = base.to_str().expect("a plain path");
    let metric = "oth.i.u32 + 1";
    let whole = run(&["eval", "-a", own, "--format", "csv", metric]).out;
    let times: BTreeSet<&str> =
        whole.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    let samples = times.len().to_string();
    let arguments = ["eval", "-a", archive, "--format", "csv", "--follow", "-s", &samples, metric];
    let mut command = pmderive(&arguments);
    command.stdout(Stdio::piped());
    let mut child = Running(command.spawn().expect("the command"));
    let mut lines = BufReader::new(child.0.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().map(|line| line.expect("text"));
    let (mut at, mut written) = (1000, 1000);
    let mut followed = Vec::new();
    while at < volume.len() {
        at = (at + 3000).min(volume.len());
        append(&base.with_extension("0"), &volume[written..at]);
        written = at;
        // The header and the value of the first record, as soon as it is whole.
        while followed.len() < 2 {
            followed.push(line().expect("a line"));
        }
    }
    followed.extend(std::iter::from_fn(line));
    assert!(followed.len() > 40, "{followed:?}");
    assert_eq!(followed, whole.lines().collect::<Vec<_>>());
}

/// Whoever opens an archive while its writer is in the middle of a record of
/// metadata waits for the rest; only if it never comes is that damage.
#[test]
fn metadata_that_are_half_written_are_no_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    let read = |suffix: &str| std::fs::read(own.with_extension(suffix)).expect("it is there");
    let (metadata, volume) = (read("meta"), read("0"));
    let own = own.to_str().expect("a plain path");
    let commands: [&[&str]; 2] = [
        &["eval", "--format", "csv", "-a"],
        // Its first lines say what the archive is as yet.
        &["val", "-U"],
    ];
    let values = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().skip_while(|line| !line.starts_with("20")).collect()
    };
    for command in commands {
        // Within the length of a record, within its type, and behind that.
        for cut in [42_037, 42_040, 20_000] {
            let base = folder.path().join(format!("{}{cut}", command[0]));
            append(&base.with_extension("meta"), &metadata[..cut]);
            append(&base.with_extension("0"), &volume[..100_884]);
            let archive = base.to_str().expect("a plain path");
            let whole = run(&[command, &[own, "hinv.ncpu"]].concat());
            let whole = values(whole.out.lines().map(str::to_owned).collect());
            assert!(whole.len() > 10, "{whole:?}");
            let samples = whole.len().to_string();
            let asked = [command, &[archive, "hinv.ncpu"], &["--follow", "-s", &samples]].concat();
            let mut followed = pmderive(&asked);
            let followed = followed.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = Running(followed.spawn().expect("the command"));
            let mut lines = BufReader::new(child.0.stdout.take().expect("a pipe")).lines();
            let first = lines.next().expect("a line").expect("text");
            append(&base.with_extension("meta"), &metadata[cut..]);
            append(&base.with_extension("0"), &volume[100_884..]);
            let rest = lines.map(|line| line.expect("text"));
            let found = values([first].into_iter().chain(rest).collect());
            assert_eq!(found, whole, "{asked:?}");
            let mut told = String::new();
            child.0.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
            let status = child.0.wait().expect("it ends");
            assert_eq!((status.code(), &*told), (Some(0), ""), "{asked:?}");
        }
        let base = folder.path().join(format!("{}-stopped", command[0]));
        append(&base.with_extension("meta"), &metadata[..20_000]);
        append(&base.with_extension("0"), &volume);
        let archive = base.to_str().expect("a plain path");
        let asked = [command, &[archive, "hinv.ncpu", "--follow=0.3"]].concat();
        let stopped = run(&asked);
        assert_eq!(stopped.err.matches("at byte 19981: a descriptor").count(), 1, "{stopped:?}");
        let damaged = if command[0] == "val" { 1 } else { 3 };
        assert_eq!(stopped.status, Some(damaged), "{stopped:?}");
    }
}

/// Damage, and a volume that is compressed, do not end the wait; the loss of the file does.
#[test]
fn a_followed_archive_is_damaged_compressed_and_removed() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    let read = |suffix: &str| std::fs::read(own.with_extension(suffix)).expect("it is there");
    let (metadata, volume) = (read("meta"), read("0"));
    // The offset of the fifth record, of the mark, and of the record behind it.
    let (fifth, mark, after_mark) = (100_884, 172_944, 172_968);
    for step in [&[][..], &["-t", "1"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().join("a");
        let first = base.with_extension("0");
        append(&base.with_extension("meta"), &metadata);
        append(&first, &volume[..fifth]);
        let archive = base.to_str().expect("a plain path");
        let asked = ["eval", "-a", archive, "--format", "csv", "--follow", "kernel.all.pswitch"];
        let mut followed = pmderive(&[&asked[..], step].concat());
        let followed = followed.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running(followed.spawn().expect("the command"));
        let mut lines = BufReader::new(child.0.stdout.take().expect("a pipe")).lines();
        let mut read_to = |time: &str| {
            let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(time)));
            assert!(line.is_some(), "{step:?} {time}");
        };
        read_to(":26:43");
        // A record whose length is impossible, and good ones behind it.
        append(&first, &[0, 0, 0, 7]);
        append(&first, &volume[fifth + 4..mark]);
        read_to(":26:47");
        let mut label = volume[..808].to_vec();
        label[24..28].copy_from_slice(&1_i32.to_be_bytes());
        append(&base.with_extension("1"), &label);
        append(&base.with_extension("1"), &volume[mark..after_mark]);
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let plain = std::fs::read(&first).expect("it is there");
        append(
            &base.with_extension("0.zst"),
            &ruzstd::encoding::compress_to_vec(&plain[..], level),
        );
        std::fs::remove_file(&first).expect("it is there");
        append(&base.with_extension("1"), &volume[after_mark..]);
        read_to(":27:05");
        std::fs::remove_file(base.with_extension("1")).expect("it is there");
        let mut told = String::new();
        child.0.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
        assert_eq!(child.0.wait().expect("it ends").code(), Some(3), "{told}");
        let (damage, loss) =
            ("a.0: at byte 100884: data record: its length, 7, is", "a.1: No such");
        assert_eq!(told.matches(damage).count(), 1, "{step:?} {told}");
        assert_eq!(told.matches(loss).count(), 1, "{step:?} {told}");
        assert_eq!(told.lines().count(), 2, "{step:?} {told}");
    }
}

/// What is appended at a time, in seconds: values of `old` by instance and of
/// `new`, or a mark if there are none; and the lines that follow from it.
type Step<'s> = (i64, &'s [(i32, u32)], Option<u32>, &'s [&'s str]);

/// An instance that comes, a metric that comes, and a gap.
const STEPS: &[Step<'_>] = &[
    (0, &[(0, 5)], None, &[]),
    (1, &[(0, 7)], None, &["delta(old),i0,2"]),
    (2, &[(0, 9), (1, 100)], None, &["delta(old),i0,2"]),
    (3, &[(0, 12), (1, 104)], Some(50), &["delta(old),i0,3", "delta(old),i1,4"]),
    (5, &[(0, 12), (1, 105)], Some(60), &["delta(old),i0,0", "delta(old),i1,1", "rate(new),,5.0"]),
    (6, &[], None, &[]),
    (7, &[(0, 14)], Some(70), &[]),
    (8, &[(0, 15)], Some(73), &["delta(old),i0,1", "rate(new),,3.0"]),
];

fn counter(item: u32, indom: Option<InDom>) -> MetricDesc {
    MetricDesc {
        pmid: Pmid::new(60, 0, item),
        value_type: ValueType::U32,
        indom,
        semantics: Semantics::Counter,
        units: Units { dim_count: 1, ..Units::NONE },
    }
}

#[test]
fn differences_and_metrics_that_come_later_outlast_the_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("a");
    let start = Timestamp::new(1_700_000_000, 0);
    let options = archives::options("follow.example", start);
    let mut writer = ArchiveWriter::create(&base, options).expect("a new archive");
    let indom = InDom::new(60, 1);
    let (old, new) = (counter(1, Some(indom)), counter(2, None));
    writer.describe(&old, &["old"]).expect("it is new");
    let mut write = |(second, of_old, of_new, _): &Step<'_>| {
        let timestamp = Timestamp::new(start.sec + second, 0);
        if of_old.is_empty() {
            return writer.mark(timestamp).expect("in order");
        }
        let names = of_old.iter().map(|(id, _)| (*id, format!("i{id}").into())).collect();
        writer.instances(timestamp, indom, &InstanceDomain::new(names)).expect("good names");
        let value = |(instance, value): &(i32, u32)| InstanceValue {
            instance: *instance,
            value: RawValue::InPlace(*value),
        };
        let of_old = of_old.iter().map(value).collect();
        let mut sets = vec![MetricValues { pmid: old.pmid, outcome: Ok(of_old) }];
        if let Some(number) = of_new {
            writer.describe(&new, &["new"]).expect("the same each time");
            let outcome = Ok(vec![value(&(-1, *number))]);
            sets.push(MetricValues { pmid: new.pmid, outcome });
        }
        let result = FetchResult { timestamp, sets, ..FetchResult::default() };
        writer.record(&result).expect("it is good");
    };
    write(&STEPS[0]);
    let archive = base.to_str().expect("a plain path");
    let arguments = ["eval", "-a", archive, "--format", "csv", "delta(old)", "rate(new)"];
    let mut command = pmderive(&arguments);
    command.arg("--follow").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Running(command.spawn().expect("the command"));
    let mut lines = BufReader::new(child.0.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let mut followed = Vec::new();
    for step in &STEPS[1..] {
        write(step);
        if followed.is_empty() {
            followed.push(line());
        }
        // Whatever comes next, the command waits for it.
        for expected in step.3 {
            let time = Timestamp::new(start.sec + step.0, 0);
            followed.push(line());
            assert_eq!(followed.last(), Some(&format!("{},{expected}", UtcTime(time))));
        }
    }
    writer.finish().expect("there is room");
    assert_eq!(followed, run(&arguments).out.lines().collect::<Vec<_>>());
}

/// Writes an archive of one record each second. Instances and metrics depend on the second.
fn write_archive(base: &Path, host: &str, seconds: std::ops::Range<i64>) {
    let start = Timestamp::new(1_700_000_000 + seconds.start, 0);
    let options = archives::options(host, start);
    let mut writer = ArchiveWriter::create(base, options).expect("a new archive");
    let indom = InDom::new(60, 1);
    let (old, new) = (counter(1, Some(indom)), counter(2, None));
    writer.describe(&old, &["old"]).expect("it is new");
    for second in seconds {
        let timestamp = Timestamp::new(1_700_000_000 + second, 0);
        let instances = if second < 13 { 0..2 } else { 1..3 };
        let names = instances.clone().map(|id| (id, format!("i{id}").into())).collect();
        writer.instances(timestamp, indom, &InstanceDomain::new(names)).expect("good names");
        let value = |instance| InstanceValue {
            instance,
            value: RawValue::InPlace((second * second + 7 * i64::from(instance)) as u32),
        };
        let mut sets =
            vec![MetricValues { pmid: old.pmid, outcome: Ok(instances.map(value).collect()) }];
        if second > 11 {
            writer.describe(&new, &["new"]).expect("the same each time");
            sets.push(MetricValues { pmid: new.pmid, outcome: Ok(vec![value(-1)]) });
        }
        writer.record(&FetchResult { timestamp, sets, ..FetchResult::default() }).expect("good");
    }
    writer.finish().expect("there is room");
}

/// pmlogger begins an archive each day. An archive of another host is told, and left out.
#[test]
fn a_directory_goes_on_with_its_next_archive() {
    let finished = tempfile::tempdir().expect("a folder");
    for (name, seconds) in [("20260101", 0..8), ("20260102", 10..18), ("20260103", 20..28)] {
        write_archive(&finished.path().join(name), "follow.example", seconds);
    }
    for mode in [&["-s", "20"][..], &["-s", "36", "-t", "700msec"], &["-s", "10", "-t", "2sec"]] {
        let asked = |folder: &tempfile::TempDir, follow: &[&str]| {
            let archive = folder.path().to_str().expect("UTF-8");
            let metrics = ["delta(old)", "old", "rate(new)"];
            let mut command = pmderive(&["eval", "-a", archive, "--format", "csv"]);
            command.args(follow).args(mode).args(metrics);
            command
        };
        let whole = asked(&finished, &[]).output().expect("the command");
        let whole = String::from_utf8(whole.stdout).expect("text");
        let folder = tempfile::tempdir().expect("a folder");
        write_archive(&folder.path().join("20260101"), "follow.example", 0..8);
        let mut command = asked(&folder, &["--follow"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running(command.spawn().expect("the command"));
        let mut out = BufReader::new(child.0.stdout.take().expect("a pipe"));
        let mut followed = String::new();
        for _ in 0..3 {
            out.read_line(&mut followed).expect("text");
        }
        write_archive(&folder.path().join("other"), "other.example", 9..12);
        write_archive(&folder.path().join("20260102"), "follow.example", 10..18);
        while !followed.contains("22:13:3") {
            assert!(out.read_line(&mut followed).expect("text") > 0, "{mode:?} {followed}");
        }
        write_archive(&folder.path().join("20260103"), "follow.example", 20..28);
        out.read_to_string(&mut followed).expect("text");
        assert_eq!(followed, whole, "{mode:?}");
        let mut told = String::new();
        child.0.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
        assert!(told.contains("other: it is of the host other.example"), "{mode:?} {told}");
        assert_eq!(told.lines().filter(|line| line.contains("warning")).count(), 1, "{told}");
    }
}

/// A pipe that was named as the file has a reader that may go, too.
#[test]
fn an_export_into_a_pipe_ends_with_its_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    let archive = archive.to_str().expect("a plain path");
    let file = pipe.to_str().expect("a plain path");
    let arguments = ["export", "-a", archive, "--follow", "--format", "csv", "-o", file];
    let mut command = pmderive(&[&arguments[..], &["hinv.ncpu"]].concat());
    let mut child = Running(command.stderr(Stdio::piped()).spawn().expect("the command"));
    let whole = run(&["export", "-a", archive, "--format", "csv", "hinv.ncpu"]).out;
    let lines = BufReader::new(std::fs::File::open(&pipe).expect("the pipe")).lines();
    // All that there is, behind which the command waits.
    let read: Vec<String> =
        lines.take(whole.lines().count()).map(|line| line.expect("text")).collect();
    assert_eq!(read, whole.lines().collect::<Vec<_>>());
    let mut told = String::new();
    child.0.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
    assert_eq!(child.0.wait().expect("it ends").code(), Some(3), "{told}");
    assert!(told.ends_with("pipe: Broken pipe (os error 32)\n"), "{told}");
}

/// Nobody tells a command that waits for more that its output is closed, as behind
/// `| head -1`. What goes to a file does not end.
#[test]
fn a_closed_output_ends_the_wait() {
    let own = "tests/archives/own-fleet";
    for command in ["eval", "export", "val"] {
        let mut followed = pmderive(&[command, "-a", own, "--follow", "hinv.ncpu"]);
        let followed = followed.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = followed.spawn().expect("the command");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        assert!(out.read_line(&mut String::new()).expect("text") > 0, "{command}");
        drop(out);
        let ended = finished(child.wait_with_output().expect("it ends"));
        assert_eq!((ended.status, &*ended.err), (Some(0), ""), "{command}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("table.csv");
    let path = table.to_str().expect("UTF-8");
    let mut child = pmderive(&["export", "-a", own, "--follow=500msec", "-o", path, "hinv.ncpu"]);
    let mut child = child.stdout(Stdio::piped()).spawn().expect("the command");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let whole = run(&["export", "-a", own, "hinv.ncpu"]).out;
    assert_eq!(std::fs::read_to_string(table).expect("a table"), whole);
}

#[test]
fn what_cannot_grow_is_not_followed() {
    let live = run(&["eval", "--local", "--follow", "kernel.all.load"]);
    assert_eq!(live.status, Some(2), "{}", live.err);
    assert!(live.err.contains("--follow is for archives"), "{}", live.err);
    let own = "tests/archives/own-dyn";
    for arguments in [
        &["eval", "-a", own, "oth.i.u32"][..],
        &["eval", "-a", own, "-t", "1.3", "rate(sc.c.u32)"],
        &["val", "-a", own, "-t", "2", "oth.i.u32"],
        &["val", "-U", own, "oth.i.u32"],
    ] {
        let plain = run(arguments);
        let followed = run(&[&arguments[..1], &["--follow=1msec"], &arguments[1..]].concat());
        // What is followed has no end, which val says in its header.
        let of_end = ["end: ", "samples: ", "interval: "];
        let lines = |text: &str| {
            let lines = text.lines().filter(|line| !of_end.iter().any(|key| line.starts_with(key)));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(plain.status, followed.status, "{}", followed.err);
        assert_eq!(lines(&plain.out), lines(&followed.out), "{}", followed.err);
    }
}

#[test]
fn an_archive_of_the_real_pmlogger_is_followed() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let config = "log mandatory on 100 msec { sample.bin sample.seconds }\n\
                  log mandatory on 300 msec { sample.colour sample.milliseconds }\n";
    std::fs::write(path("config"), config).expect("it can be written");
    let mut logger = Command::new("pmlogger");
    logger
        .args(["-h", &format!("localhost:{}", pmcd.port), "-s", "40", "-v", "15"])
        .arg("-c")
        .arg(path("config"))
        .arg("-l")
        .arg(path("log"))
        .arg(path("archive"))
        .env("PCP_DERIVED_CONFIG", "");
    let mut logger = Running(logger.spawn().expect("pmlogger"));
    // A first sample is not taken back when its metrics turn out to exist. pmlogger
    // describes a metric just before its first value.
    let is_described = |name: &str| {
        let metadata = std::fs::read(path("archive.meta")).unwrap_or_default();
        metadata.windows(name.len()).any(|window| window == name.as_bytes())
    };
    let all = ["sample.bin", "sample.seconds", "sample.colour", "sample.milliseconds"];
    while !all.into_iter().all(is_described) {
        assert!(logger.0.try_wait().expect("a process").is_none(), "pmlogger has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    let archive = path("archive");
    let archive = archive.to_str().expect("a plain path");
    let metrics = ["sample.bin", "sum(sample.colour) + 1", "sample.milliseconds"];
    let modes: [&[&str]; 2] = [&[], &["-t", "250msec"]];
    let follow = |mode: &[&str]| {
        let arguments = ["eval", "-a", archive, "--format", "csv", "--follow=10sec"];
        let mut command = pmderive(&[&arguments, mode, &metrics].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command")
    };
    let children: Vec<Child> = modes.into_iter().map(follow).collect();
    assert!(logger.0.wait().expect("a process").success());
    assert!(path("archive.1").exists(), "a further volume");
    for (mode, child) in modes.into_iter().zip(children) {
        let followed = finished(child.wait_with_output().expect("the command"));
        let whole = run(&[&["eval", "-a", archive, "--format", "csv"], mode, &metrics].concat());
        assert!(whole.out.lines().count() > 60, "{}", whole.out);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&followed.out), sorted(&whole.out), "{}", followed.err);
    }

    // As pmval has it, once everything is there.
    let val = |program: &mut Command| {
        let arguments = ["-z", "-a", archive, "-t", "250msec", "-r", "sample.milliseconds"];
        finished(program.args(arguments).output().expect("a process")).out
    };
    let pmval = val(Command::new("pmval").env("PCP_DERIVED_CONFIG", ""));
    let followed = val(&mut pmderive(&["val", "--compat", "6.0", "--follow=1msec"]));
    let rows = |text: &str| {
        let rows = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(rows(&pmval).len() > 10, "{pmval}");
    assert_eq!(rows(&followed), rows(&pmval));
}
