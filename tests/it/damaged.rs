//! Damaged archives. A command reports each unreadable part once, with file, offset and reason,
//! and its exit status shows it. Its other output is the same as for the whole archive.
//!
//! `PMDERIVE_MUTATIONS=N` makes N times as many randomly damaged copies.

use std::path::Path;
use std::process::Command;

use pmderive_testkit::choices;

use crate::command;
use choices::Choices;
use command::{Run, finished, run};

const FLEET: &str = "own-fleet";
const TYPES: &str = "own-types";

/// Damage of one file: the bytes at an offset are overwritten, or the file ends.
#[derive(Clone, Copy, Debug)]
enum Damage<'d> {
    Write(usize, &'d [u8]),
    Cut(usize),
    Append(&'d [u8]),
}

/// Files of an archive, as they are in this project.
fn original(archive: &str, suffix: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    std::fs::read(folder.join(format!("{archive}.{suffix}"))).expect("a file")
}

/// A copy of an archive of this project with damage, called `d`.
struct Damaged(tempfile::TempDir);

impl Damaged {
    fn new(archive: &str, suffix: &str, damage: Damage<'_>) -> Damaged {
        let folder = tempfile::tempdir().expect("a folder");
        for one in ["0", "meta", "index"] {
            let mut bytes = original(archive, one);
            match damage {
                _ if one != suffix => {}
                Damage::Write(at, new) => bytes[at..at + new.len()].copy_from_slice(new),
                Damage::Cut(length) => bytes.truncate(length),
                Damage::Append(more) => bytes.extend_from_slice(more),
            }
            std::fs::write(folder.path().join(format!("d.{one}")), bytes).expect("space");
        }
        Damaged(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Runs a command over it; `OUT` in the arguments is a new file. Its own
    /// name is `d` in what is printed.
    fn run(&self, arguments: &str) -> Run {
        let other = tempfile::tempdir().expect("a folder");
        let out = other.path().join("out").to_str().expect("UTF-8").to_owned();
        let archive = self.path("d");
        let words = arguments.split(' ').map(|word| match word {
            "OUT" => out.as_str(),
            word => word,
        });
        let mut words: Vec<&str> = words.collect();
        match words[0] {
            "archive" => words.push(&archive),
            _ => words.splice(1..1, ["-Z", "UTC", "-a", &archive]).for_each(drop),
        }
        let ran = run(&words);
        Run { out: ran.out.replace(&archive, "d"), ..ran }
    }
}

/// The third record of own-fleet says that it is longer than the file.
const LENGTH: Damage<'_> = Damage::Write(50_077, &[0x40]);
/// own-fleet ends within its tenth record.
const CUT: Damage<'_> = Damage::Cut(200_000);

/// Commands with their exit status, and whether they print what they print of
/// the whole archive up to where it is damaged.
const COMMANDS: &[(&str, i32, bool)] = &[
    ("eval --format csv hinv.ncpu", 3, true),
    ("eval --format csv -t 1 hinv.ncpu rate(disk.dev.total)", 3, true),
    ("eval --format csv -t 0.3 hinv.ncpu rate(disk.dev.total)", 3, true),
    ("eval --format csv --compat 6.0 -t 1 hinv.ncpu", 3, true),
    ("eval --format csv --compat 7.2 -t 1 hinv.ncpu", 3, true),
    ("eval --format csv --reverse hinv.ncpu", 3, false),
    ("eval --format csv --reverse -t 1 hinv.ncpu", 3, false),
    ("export -t 1 hinv.ncpu disk.dev.total", 3, true),
    ("export hinv.ncpu disk.dev.total", 3, true),
    ("val -t 1 hinv.ncpu", 1, false),
    ("val -t 0.5 hinv.ncpu", 1, false),
    ("record -o OUT hinv.ncpu", 3, false),
    ("record -t 1 -o OUT hinv.ncpu", 3, false),
];

#[test]
fn a_volume_that_ends_early_is_told_once_by_every_command() {
    for (damage, place) in [(LENGTH, 50_076), (CUT, 196_832)] {
        for (arguments, status, is_prefix) in COMMANDS {
            let what = format!("{damage:?} {arguments}");
            let damaged = Damaged::new(FLEET, "0", damage);
            let Run { status: found, out, err } = damaged.run(arguments);
            assert_eq!(found, Some(*status), "{what}: {err}");
            // Backward, the first record of which the trailer is wrong is met first.
            let is_backward = arguments.contains("--reverse") && place == 50_076;
            let place = if is_backward { 75_476 } else { place };
            let told = format!("d.0: at byte {place}: data record");
            assert_eq!(err.matches(&told).count(), 1, "{what}: {err}");
            assert_eq!(err.matches("at byte").count(), 1, "{what}: {err}");
            // Reading goes on behind a record with a wrong length.
            if !is_prefix || matches!(damage, Damage::Write(..)) {
                continue;
            }
            let whole = Damaged::new(FLEET, "0", Damage::Append(&[])).run(arguments);
            assert_eq!((whole.status, &*whole.err), (Some(0), ""), "{what}");
            assert!(whole.out.starts_with(&out) && whole.out != out, "{what}: {out}");
            assert!(out.lines().count() > 2, "{what}: {out}");
        }
    }
}

/// Bytes behind the last record that are too few for the length of one.
const TAILS: [&[u8]; 3] = [&[0], &[0, 0], &[0, 0, 1]];

#[test]
fn bytes_behind_the_last_record_are_told_by_who_reads_to_the_end() {
    let whole = Damaged::new(FLEET, "0", Damage::Append(&[]));
    for tail in TAILS {
        let damaged = Damaged::new(FLEET, "0", Damage::Append(tail));
        for (arguments, status, _) in COMMANDS {
            let what = format!("{tail:?} {arguments}");
            let Run { status: found, out, err } = damaged.run(arguments);
            // libpcp takes them for the end.
            let is_told = !arguments.contains("--compat 6.0");
            assert_eq!(found, Some(if is_told { *status } else { 0 }), "{what}: {err}");
            let count = usize::from(is_told);
            assert_eq!(err.matches("d.0: at byte 297392: data record").count(), count, "{what}");
            assert_eq!(err.matches("at byte").count(), count, "{what}: {err}");
            if !arguments.starts_with("record") {
                assert_eq!(out, whole.run(arguments).out, "{what}");
            }
        }
        for arguments in [
            "eval -s 2 hinv.ncpu",
            "eval -t 1 -T @20:26:48 hinv.ncpu",
            "info -f hinv.ncpu",
            "val -s 3 hinv.ncpu",
            "val --compat 6.0 hinv.ncpu",
            "val --compat 7.2 hinv.ncpu",
            "archive",
        ] {
            let run = damaged.run(arguments);
            assert_eq!((run.status, &*run.err), (Some(0), ""), "{arguments}");
        }
        // While it is followed they may become a record.
        let followed = damaged.run("eval --follow=0.2 -s 12 hinv.ncpu");
        assert_eq!((followed.status, &*followed.err), (Some(0), ""));
        let left = damaged.run("eval --follow=0.2 hinv.ncpu");
        assert_eq!(left.status, Some(3), "{}", left.err);
        assert_eq!(left.err.matches("d.0: at byte 297392: data record").count(), 1);
    }
}

#[test]
fn metadata_that_end_early_are_told_once_by_every_command() {
    let whole = Damaged::new(FLEET, "0", Damage::Append(&[]));
    // Within the last record, and within its length.
    for length in [42_100, 42_037] {
        let damaged = Damaged::new(FLEET, "meta", Damage::Cut(length));
        for (arguments, status, _) in COMMANDS {
            let what = format!("{length} {arguments}");
            let Run { status: found, out, err } = damaged.run(arguments);
            assert_eq!(found, Some(*status), "{what}: {err}");
            assert_eq!(err.matches("d.meta: ").count(), 1, "{what}: {err}");
            // Before version 7.1.4 libpcp refuses such an archive, unless there is hardly a record.
            let is_refused = arguments.contains("--compat 6.0") && length == 42_100;
            if !arguments.starts_with("record") && !is_refused {
                assert_eq!(out, whole.run(arguments).out, "{what}");
            }
        }
        for (arguments, status) in [
            ("info -f hinv.ncpu", 1),
            ("probe -v hinv.ncpu", 1),
            ("archive", 3),
            ("archive --scan", 3),
        ] {
            let run = damaged.run(arguments);
            assert_eq!(run.status, Some(status), "{arguments}: {}", run.err);
            assert_eq!(run.err.matches("d.meta: ").count(), 1, "{arguments}: {}", run.err);
        }
        let scanned = damaged.run("archive --scan");
        assert!(scanned.out.contains("damaged places: 1\n"), "{}", scanned.out);
        let archive = damaged.path("d");
        for command in ["check", "deps", "explain"] {
            let run = run(&[command, "-a", &archive, "hinv.ncpu"]);
            assert_eq!(run.status, Some(3), "{command}: {}", run.err);
        }
    }
}

#[test]
fn a_volume_that_is_missing_is_told_by_who_passes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("d");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    let (source, name) = (source.to_str().expect("UTF-8"), base.to_str().expect("UTF-8"));
    let recorded = run(&["record", "-a", source, "-v", "60Kb", "-o", name, "."]);
    assert_eq!(recorded.status, Some(0), "{}", recorded.err);
    // Two of twelve records, of 20:26:46 and 20:26:47.
    std::fs::remove_file(folder.path().join("d.2")).expect("it is there");
    let damaged = Damaged(folder);
    for (arguments, status, _) in COMMANDS {
        let is_told = !arguments.contains("--compat 6.0");
        let found = damaged.run(arguments);
        let expected = if is_told { *status } else { 0 };
        assert_eq!(found.status, Some(expected), "{arguments}: {}", found.err);
        let told = found.err.matches("is missing").count();
        assert_eq!(told, usize::from(is_told), "{arguments}: {}", found.err);
    }
    let early = damaged.run("eval -s 3 hinv.ncpu");
    assert_eq!((early.status, &*early.err), (Some(0), ""));
    // Nothing is held past it.
    let held = damaged.run("export -t 1 -S @20:26:43 -T @20:26:48 hinv.ncpu");
    let without: Vec<&str> = held.out.lines().filter(|line| line.contains(",operand-")).collect();
    let times = ["20:26:45", "20:26:46", "20:26:47"];
    assert_eq!(without.len(), 3, "{}", held.out);
    assert!(without.iter().zip(times).all(|(line, time)| line.contains(time)), "{without:?}");
    let scanned = damaged.run("archive --scan");
    assert_eq!(scanned.status, Some(3));
    assert!(
        scanned.out.ends_with("Records: 10, and 1 marks; damaged places: 2\n"),
        "{}",
        scanned.out
    );
    assert!(scanned.err.contains("d.3: at byte 0: the previous volume is 1"), "{}", scanned.err);
    assert!(scanned.err.contains("d.index: "), "{}", scanned.err);
}

/// The index knows them. Who does not read up to there does not meet the end.
#[test]
fn a_volume_that_is_missing_at_an_end_is_told_by_who_comes_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    let (source, base) = (source.to_str().expect("UTF-8"), folder.path().join("whole"));
    let name = base.to_str().expect("UTF-8");
    let recorded = run(&["record", "-a", source, "-v", "60Kb", "-o", name, "."]);
    assert_eq!(recorded.status, Some(0), "{}", recorded.err);
    let volumes = (0..).take_while(|volume| base.with_extension(volume.to_string()).exists());
    let last = volumes.last().expect("a volume");
    for (missing, words) in [
        (0, "d.1: at byte 0: the index begins with volume 0"),
        (last, "the index ends with volume"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for file in std::fs::read_dir(base.parent().expect("a folder")).expect("files") {
            let from = file.expect("a file").path();
            let suffix = from.extension().expect("a suffix").to_str().expect("UTF-8").to_owned();
            if suffix != missing.to_string() {
                std::fs::copy(&from, folder.path().join("d").with_extension(suffix))
                    .expect("a copy");
            }
        }
        let damaged = Damaged(folder);
        for (arguments, status, _) in COMMANDS {
            let is_told = !arguments.contains("--compat 6.0");
            let found = damaged.run(arguments);
            let expected = if is_told { *status } else { 0 };
            assert_eq!(found.status, Some(expected), "{missing} {arguments}: {}", found.err);
            let told = found.err.matches(words).count();
            assert_eq!(told, usize::from(is_told), "{missing} {arguments}: {}", found.err);
        }
        let early = damaged.run("eval -s 2 hinv.ncpu");
        let is_met = early.err.contains(words);
        assert_eq!(
            (early.status, is_met),
            if missing == 0 { (Some(3), true) } else { (Some(0), false) }
        );
    }
}

/// The installed tools print the same, on both streams, with the same status.
/// Without an index they do not look for the end before the damage, and pmval
/// then keeps the rest of the values to itself, which is not followed.
#[test]
fn the_tools_say_the_same_of_damage() {
    if !Path::new("/usr/bin/pmval").exists() {
        assert!(std::env::var_os("CI").is_none(), "PCP is not installed");
        eprintln!("NOT RUN: PCP is not installed (tests/real-pcp install)");
        return;
    }
    let damages = [
        ("0", LENGTH),
        ("0", CUT),
        ("0", Damage::Append(TAILS[1])),
        ("0", Damage::Append(&[0; 40])),
        ("0", Damage::Cut(900)),
        ("meta", Damage::Cut(42_100)),
        ("meta", Damage::Cut(42_040)),
        ("meta", Damage::Cut(42_037)),
        ("index", Damage::Cut(990)),
    ];
    let runs = [
        "pmval -a ARCHIVE",
        "pmval -t 0.5 -a ARCHIVE",
        "pmval -s 3 -a ARCHIVE",
        "pmval -U ARCHIVE",
        "pminfo -O 2 -f -a ARCHIVE",
        "pmprobe -O -2 -v -a ARCHIVE",
    ];
    let mut differences = Vec::new();
    for (suffix, damage) in damages {
        let damaged = Damaged::new(FLEET, suffix, damage);
        let archive = damaged.path("d");
        for has_index in [true, false] {
            if !has_index {
                std::fs::remove_file(damaged.path("d.index")).expect("it is there");
            }
            for line in runs.iter().filter(|line| has_index || !line.starts_with("pmval")) {
                let words: Vec<&str> = line.split(' ').collect();
                let words: Vec<&str> = words
                    .iter()
                    .map(|word| if *word == "ARCHIVE" { &archive } else { *word })
                    .collect();
                let (tool, options) = (words[0], &words[1..]);
                let options = [&["-Z", "UTC"], options, &["hinv.ncpu"]].concat();
                let theirs = std::process::Command::new(tool)
                    .args(&options)
                    .env("PCP_DERIVED_CONFIG", "")
                    .output()
                    .expect("it runs");
                let theirs = finished(theirs);
                let ours = run(&[&[&tool[2..], "--compat", "6.0"], &options[..]].concat());
                if ours != theirs {
                    let index = if has_index { "" } else { " and no index" };
                    differences.push(format!("{damage:?}{index}: {line}: {ours:?}\n{theirs:?}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn a_table_of_a_damaged_archive_is_partial() {
    for (suffix, damage) in
        [("0", LENGTH), ("0", CUT), ("0", Damage::Append(TAILS[1])), ("meta", Damage::Cut(42_100))]
    {
        let damaged = Damaged::new(FLEET, suffix, damage);
        let table = damaged.path("table.csv");
        let run = damaged.run(&format!("export -t 1 -o {table} hinv.ncpu"));
        assert_eq!(run.status, Some(3), "{}", run.err);
        assert!(!Path::new(&table).exists());
        assert!(Path::new(&format!("{table}.partial")).exists(), "{}", run.err);
    }
}

#[test]
fn a_fetch_that_finds_damage_tells_where_it_is() {
    let damaged = Damaged::new(FLEET, "0", LENGTH);
    for arguments in ["info -f -O 3sec hinv.ncpu mem.physmem", "probe -v -O 3sec hinv.ncpu"] {
        let run = damaged.run(arguments);
        assert_eq!(run.status, Some(1), "{}", run.err);
        assert_eq!(run.err.matches("d.0: at byte 50076: ").count(), 1, "{}", run.err);
        assert!(run.out.contains("hinv.ncpu"), "{}", run.out);
    }
}

/// The time of the fifth of ten records, one second apart.
const TIME: usize = 14_372;

#[test]
fn a_record_with_a_wrong_time_is_left_out_and_told() {
    let whole = Damaged::new(TYPES, "0", Damage::Append(&[]));
    for (time, why) in [
        (0x6553_ff14_u32, "is after 2023-11-14T22:13:25.000000000Z, the time of the next record"),
        (0x7fff_ffff, "is after 2023-11-14T22:13:25.000000000Z, the time of the next record"),
        (0, "is before 2023-11-14T22:13:20.000000000Z, the start in the label"),
    ] {
        let damaged = Damaged::new(TYPES, "0", Damage::Write(TIME, &time.to_be_bytes()));
        for arguments in ["eval --format csv s.i.u32", "eval --format csv -t 1 s.i.u32"] {
            let (found, expected) = (damaged.run(arguments), whole.run(arguments));
            assert_eq!(found.status, Some(3), "{arguments}: {}", found.err);
            assert!(found.err.contains(why), "{arguments}: {}", found.err);
            assert_eq!(found.err.matches("d.0: at byte 14368: ").count(), 1, "{}", found.err);
            let without = |out: &str| -> Vec<String> {
                out.lines().filter(|line| !line.contains("22:13:24")).map(str::to_owned).collect()
            };
            assert_eq!(without(&found.out), without(&expected.out), "{arguments}");
        }
        for arguments in ["export s.i.u32", "record -o OUT s.i.u32"] {
            let found = damaged.run(arguments);
            assert_eq!(found.status, Some(3), "{arguments}: {}", found.err);
        }
        for (arguments, status) in [("val s.i.u32", 1), ("val --compat 6.0 s.i.u32", 0)] {
            assert_eq!(damaged.run(arguments).status, Some(status), "{arguments}");
        }
        let scanned = damaged.run("archive --scan");
        assert_eq!(scanned.status, Some(3));
        let counted = "Records: 9, and 0 marks; 1 left out, whose times are out of order; \
                       damaged places: 1\n";
        assert!(scanned.out.ends_with(counted), "{}", scanned.out);
    }
}

/// own-fleet in three volumes, to be damaged, and as it is.
struct Volumes {
    damaged: Damaged,
    whole: Damaged,
}

/// Where the volumes end in own-fleet: after its third, its sixth and its last record.
const ENDS: [usize; 3] = [75_480, 149_088, 297_392];

/// The volume of the fifth record, and the place there of the number of values of its first metric.
/// It is that of 20:26:46, after that of 20:26:44 and before those of 20:26:47 and 20:26:48.
const FIFTH: (u32, usize) = (1, 808 + 100_884 - ENDS[0] + 24);

/// The same of the last record, that of 20:27:06.
const LAST: (u32, usize) = (2, 808 + 273_044 - ENDS[1] + 24);

impl Volumes {
    fn new() -> Volumes {
        let bytes = original(FLEET, "0");
        let damaged = Damaged::new(FLEET, "0", Damage::Append(&[]));
        let mut start = 808;
        for (volume, end) in (0_u32..).zip(ENDS) {
            let mut one = bytes[..808].to_vec();
            one[24..28].copy_from_slice(&volume.to_be_bytes());
            one.extend_from_slice(&bytes[start..end]);
            std::fs::write(damaged.path(&format!("d.{volume}")), one).expect("space");
            start = end;
        }
        Volumes { damaged, whole: Damaged::new(FLEET, "0", Damage::Append(&[])) }
    }

    fn change(&self, volume: u32, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.damaged.path(&format!("d.{volume}"));
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        change(&mut bytes);
        std::fs::write(path, bytes).expect("space");
    }

    /// Gives the first metric of a record, [`FIFTH`] or [`LAST`], more values than there are.
    fn break_record(&self, (volume, count): (u32, usize)) {
        let most = i32::MAX.to_be_bytes();
        self.change(volume, |bytes| bytes[count..count + 4].copy_from_slice(&most));
    }

    /// Runs a command. It tells damage once, and prints what it prints of the whole archive,
    /// except values of the times in `lost`.
    fn is_read_without(&self, lost: &[&str], place: &str, arguments: &str) {
        let (found, expected) = (self.damaged.run(arguments), self.whole.run(arguments));
        let told = &found.err;
        assert_eq!(found.status, Some(3), "{arguments}: {told}");
        assert_eq!(told.matches(place).count(), 1, "{arguments}: {told}");
        assert_eq!(told.matches("at byte").count(), 1, "{arguments}: {told}");
        let is_kept = |line: &&str| {
            let has_value = !line.contains(",operand-") && !line.contains(",gap");
            has_value && !lost.iter().any(|time| line.contains(time))
        };
        let kept =
            |out: &str| -> Vec<String> { out.lines().filter(is_kept).map(str::to_owned).collect() };
        assert_eq!(kept(&found.out), kept(&expected.out), "{arguments}: {told}");
        assert!(kept(&found.out).len() > 5, "{arguments}: {}", found.out);
        let values = |line: &&str| lost.iter().any(|time| line.contains(time));
        let others: Vec<&str> = found.out.lines().filter(values).collect();
        let numbers = |line: &str| {
            let value = line.rsplit(',').find(|field| !field.is_empty());
            value.is_some_and(|value| value.parse::<f64>().is_ok())
        };
        assert!(!others.iter().any(|line| numbers(line)), "{arguments}: {others:?}");
    }
}

#[test]
fn reading_goes_on_after_a_record_that_is_damaged_inside() {
    let volumes = Volumes::new();
    volumes.break_record(FIFTH);
    let place = format!("d.1: at byte {}: numval", FIFTH.1);
    for (lost, arguments) in [
        (&[":46"][..], "eval --format csv hinv.ncpu kernel.all.pswitch"),
        (&[":46"], "eval --format csv --reverse hinv.ncpu kernel.all.pswitch"),
        (&[":46"], "export kernel.all.pswitch"),
        // No rate across the loss.
        (&[":46", ":47"], "eval --format csv rate(kernel.all.pswitch)"),
        // Nothing is interpolated across it, before or after.
        (&[":45", ":46"], "eval --format csv -t 1 kernel.all.pswitch"),
        (&[":45", ":46"], "eval --format csv --compat 7.2 -t 1 kernel.all.pswitch"),
        (&[":45", ":46"], "eval --format csv -t 1 --reverse kernel.all.pswitch"),
        (&[":45", ":46", ":47"], "eval --format csv -t 1 rate(kernel.all.pswitch)"),
    ] {
        volumes.is_read_without(lost, &place, arguments);
    }
    for arguments in ["record -o OUT kernel.all.pswitch", "record -t 1 -o OUT kernel.all.pswitch"] {
        let recorded = volumes.damaged.run(arguments);
        assert_eq!(recorded.status, Some(3), "{}", recorded.err);
        assert_eq!(recorded.err.matches(&place).count(), 1, "{}", recorded.err);
        assert!(recorded.err.contains("to 2023-11-15T20:27:06"), "{}", recorded.err);
    }
    let shown = volumes.damaged.run("val kernel.all.pswitch");
    assert_eq!(shown.status, Some(1), "{}", shown.err);
    assert_eq!(shown.err.matches(&place).count(), 1, "{}", shown.err);
    // libpcp ends there.
    for arguments in ["eval --compat 6.0 hinv.ncpu", "eval --compat 6.0 -t 1 hinv.ncpu"] {
        let ended = volumes.damaged.run(arguments);
        assert_eq!(ended.status, Some(3), "{}", ended.err);
        assert_eq!(ended.err.matches(&place).count(), 1, "{}", ended.err);
        assert!(!ended.out.contains(":48"), "{}", ended.out);
    }
    let tool = volumes.damaged.run("val --compat 6.0 hinv.ncpu");
    assert_eq!(tool.status, Some(1));
    assert!(tool.err.contains("Corrupted record in a PCP archive log"), "{}", tool.err);
}

/// A record with a wrong length before it or behind it costs no other record.
#[test]
fn reading_goes_on_after_a_record_with_a_wrong_length() {
    let start = FIFTH.1 - 24;
    for place in [start, start + 24_348 - 4] {
        for length in [0_u32, 7, 1 << 20, i32::MAX as u32, u32::MAX] {
            let volumes = Volumes::new();
            volumes.change(FIFTH.0, |bytes| {
                bytes[place..place + 4].copy_from_slice(&length.to_be_bytes());
            });
            for (lost, arguments) in [
                (&[":46"][..], "eval --format csv kernel.all.pswitch"),
                (&[":46"], "eval --format csv --reverse kernel.all.pswitch"),
                (&[":46"], "eval --format csv --reverse -T -0 kernel.all.pswitch"),
                (&[":45", ":46"], "eval --format csv -t 1 kernel.all.pswitch"),
                (&[":45", ":46"], "eval --format csv -t 1 --reverse kernel.all.pswitch"),
            ] {
                volumes.is_read_without(lost, "d.1: at byte", arguments);
            }
        }
    }
    // Nothing follows the damage.
    let last = Damaged::new(FLEET, "0", Damage::Write(273_044, &[0, 0, 0, 7]));
    let found = last.run("eval --format csv hinv.ncpu");
    assert_eq!(found.status, Some(3));
    let told = "0: at byte 273044: data record: its length, 7, is impossible\n";
    assert!(found.err.ends_with(told), "{}", found.err);
    // To libpcp, such an archive has no end, and is over after its start.
    let as_pmval = last.run("val --compat 6.0 hinv.ncpu");
    assert_eq!(as_pmval.status, Some(0), "{}", as_pmval.err);
    assert!(as_pmval.err.contains("Cannot locate end of archive"), "{}", as_pmval.err);
    assert_eq!(as_pmval.out.matches("20:2").count(), 2, "{}", as_pmval.out);
}

/// The end is looked for behind all damage, and backward reading begins there.
#[test]
fn a_damaged_end_hides_nothing_before_it() {
    for damaged in [&[LAST][..], &[FIFTH, LAST]] {
        let volumes = Volumes::new();
        damaged.iter().for_each(|place| volumes.break_record(*place));
        for arguments in [
            "eval --format csv kernel.all.pswitch",
            "eval --format csv --reverse kernel.all.pswitch",
            "eval --format csv -t 1 kernel.all.pswitch",
            "eval --format csv -t 1 --reverse kernel.all.pswitch",
        ] {
            let found = volumes.damaged.run(arguments);
            assert_eq!(found.status, Some(3), "{arguments}: {}", found.err);
            for (volume, at) in damaged {
                let place = format!("d.{volume}: at byte {at}: numval");
                assert!(found.err.contains(&place), "{arguments}: {}", found.err);
            }
            for time in ["20:26:40", "20:26:48", "20:27:02", "20:27:05"] {
                assert!(found.out.contains(time), "{arguments}: {time}: {}", found.out);
            }
            assert!(!found.out.contains("20:27:06"), "{arguments}: {}", found.out);
        }
    }
}

#[test]
fn records_of_a_volume_have_no_rate_across_those_that_were_lost() {
    let volumes = Volumes::new();
    volumes.break_record(FIFTH);
    let archive = volumes.damaged.path("d");
    let shown = run(&["val", "-Z", "UTC", "-U", &archive, "kernel.all.pswitch"]);
    assert_eq!(shown.status, Some(1), "{}", shown.err);
    let lines: Vec<&str> = shown.out.lines().filter(|line| line.starts_with("20:2")).collect();
    let after = lines.iter().find(|line| line.contains(":47.")).expect("a row");
    assert!(after.contains("No values available"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains(":46.")), "{lines:?}");
}

#[test]
fn volumes_without_a_label_are_passed_over() {
    for (volume, label, place) in [
        // Empty, cut within the label, and anything else.
        (1, &[][..], "d.1: at byte 0: the file is too short"),
        (1, &original(FLEET, "0")[..100], "d.1: at byte "),
        (1, &[7; 4000], "d.1: at byte 4: label.magic"),
    ] {
        let volumes = Volumes::new();
        volumes.change(volume, |bytes| *bytes = label.to_vec());
        // Its records are those of 20:26:44, 46 and 47.
        let lost = [":44", ":46", ":47"];
        let after = [":44", ":45", ":46", ":47", ":48"];
        for (lost, arguments) in [
            (&lost[..], "eval --format csv kernel.all.pswitch"),
            (&lost[..], "eval --format csv --reverse kernel.all.pswitch"),
            (&after[..4], "eval --format csv -t 1 kernel.all.pswitch"),
            (&after[..4], "eval --format csv -t 1 --reverse kernel.all.pswitch"),
            (&after, "eval --format csv rate(kernel.all.pswitch)"),
        ] {
            volumes.is_read_without(lost, place, arguments);
        }
        // libpcp does not notice it.
        for arguments in ["val --compat 6.0 hinv.ncpu", "eval --compat 6.0 -t 1 hinv.ncpu"] {
            let passed = volumes.damaged.run(arguments);
            assert_eq!((passed.status, &*passed.err), (Some(0), ""), "{arguments}");
            assert!(passed.out.contains("20:27:06"), "{}", passed.out);
        }
    }
}

#[test]
fn an_end_without_records_and_a_bad_start_stay_errors() {
    // The last volume has no label: everything before it is read.
    let volumes = Volumes::new();
    volumes.change(3, |bytes| bytes.resize(4000, 7));
    for arguments in [
        "eval --format csv kernel.all.pswitch",
        "eval --format csv --reverse kernel.all.pswitch",
        "eval --format csv -t 1 kernel.all.pswitch",
        "eval --format csv -t 1 --reverse kernel.all.pswitch",
    ] {
        volumes.is_read_without(&[], "d.3: at byte 4: label.magic", arguments);
    }
    // The first one has none.
    let volumes = Volumes::new();
    volumes.change(0, Vec::clear);
    for arguments in ["eval hinv.ncpu", "eval -t 1 hinv.ncpu", "eval --compat 6.0 hinv.ncpu"] {
        let refused = volumes.damaged.run(arguments);
        assert_eq!((refused.status, &*refused.out), (Some(3), ""));
        assert!(refused.err.contains("d.0: at byte 0: the file is too short"), "{}", refused.err);
    }
}

#[test]
fn a_damaged_index_says_nothing_about_missing_volumes() {
    let index = original(FLEET, "index");
    let commands = ["eval --format csv hinv.ncpu", "eval --format csv -t 1 hinv.ncpu"];
    let whole = Damaged::new(FLEET, "0", Damage::Append(&[]));
    // Its first entry has volume 9, and the others volume 0, or more metadata than there are.
    for (damage, told) in [
        (Damage::Write(808 + 12, &9_u32.to_be_bytes()), "byte 840: index: an entry with volume 0"),
        (Damage::Write(808 + 12, &[0x31; 180]), "byte 808: index: an entry with "),
    ] {
        let damaged = Damaged::new(FLEET, "index", damage);
        for arguments in commands {
            let found = damaged.run(arguments);
            assert_eq!((found.status, &found.out), (Some(3), &whole.run(arguments).out));
            assert!(found.err.contains(told) && !found.err.contains("missing"), "{}", found.err);
        }
    }
    // One that is no index at all is not used.
    let random = Damaged::new(FLEET, "index", Damage::Write(0, &vec![0x31; index.len()]));
    for arguments in commands {
        let found = random.run(arguments);
        assert_eq!((found.status, &*found.err), (Some(0), ""));
    }
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_hold_a_reader_up() {
    let damaged = Damaged::new(FLEET, "0", Damage::Append(&[]));
    let whole = damaged.run("eval --format csv hinv.ncpu");
    let replace = |name: &str| {
        let path = damaged.path(name);
        std::fs::remove_file(&path).expect("it is there");
        assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
    };
    replace("d.index");
    assert_eq!(damaged.run("eval --format csv hinv.ncpu").out, whole.out);
    replace("d.0");
    let found = damaged.run("eval --format csv hinv.ncpu");
    assert_eq!(found.status, Some(3));
    assert!(found.err.contains("d.0: not a regular file"), "{}", found.err);
}

#[test]
fn a_scan_sees_damage_of_metadata_and_index() {
    let index = original(FLEET, "index");
    let (first, last) = (808, index.len() - 32);
    let word = |value: u32| value.to_be_bytes();
    for (suffix, damage, told) in [
        ("0", Damage::Append(&[0]), "d.0: at byte 297392: data record: its length"),
        ("0", Damage::Append(&[0, 0, 1]), "d.0: at byte 297392: data record: its length"),
        ("index", Damage::Append(&[1, 2, 3]), "d.index: at byte 1000: index: 3 bytes"),
        ("index", Damage::Cut(index.len() - 5), "27 bytes are left, too few for an entry"),
        ("index", Damage::Write(first + 28, &word(811)), "no record begins at byte 811 of its"),
        ("index", Damage::Write(last + 28, &word(7_000_000)), "which has 297392 bytes"),
        ("index", Damage::Write(last + 20, &word(60_000)), "which have 42111 bytes"),
        ("index", Damage::Write(last + 12, &word(9)), "there is no volume 9"),
        ("index", Damage::Write(last, &word(1_600_000_000)), "the time of the previous entry"),
        ("index", Damage::Write(last - 32, &word(1_800_000_000)), "is not that of the records"),
        ("index", Damage::Write(4, &word(0)), "d.index: at byte 4: label.magic"),
        ("index", Damage::Cut(5), "too short for a label"),
        ("index", Damage::Write(16, &word(9)), "d.index: at byte 19: label: 0x09 differs from"),
        ("index", Damage::Write(296, b"+2"), "d.index: at byte 296: label: 0x"),
        ("index", Damage::Write(800, b"x"), "d.index: at byte 800: label: 0x78 differs from 0x00"),
        ("meta", Damage::Write(12, &word(1)), "d.meta: at byte 12: label: 0x00 differs from 0x65"),
        ("0", Damage::Write(800, b"x"), "d.meta: at byte 800: label: 0x00 differs from 0x78"),
        // The first descriptor: its type, semantics and units.
        ("meta", Damage::Write(820, &word(16)), "820: desc.type: 16 of 60.0.44 is unknown"),
        ("meta", Damage::Write(828, &word(7)), "828: desc.sem: 7 of 60.0.44 is unknown"),
        ("meta", Damage::Write(832, &word(0x0100_6000)), "832: desc.units: 0x01006000 of 60.0.44"),
        ("meta", Damage::Write(832, &word(0x1009_0000)), "832: desc.units: 0x10090000 of 60.0.44"),
        ("meta", Damage::Write(832, &word(0x0100_2028)), "832: desc.units: 0x01002028 of 60.0.44"),
        ("meta", Damage::Write(832, &word(0x0100_2001)), "832: desc.units: 0x01002001 of 60.0.44"),
    ] {
        let what = format!("{suffix} {damage:?}");
        let scanned = Damaged::new(FLEET, suffix, damage).run("archive --scan");
        assert_eq!(scanned.status, Some(3), "{what}: {}{}", scanned.out, scanned.err);
        assert!(scanned.err.contains(told), "{what}: {}", scanned.err);
    }
    // A scale without a dimension says nothing, as agents have left it.
    for whole in [Damage::Append(&[]), Damage::Write(832, &word(0x000f_f100))] {
        let scanned = Damaged::new(FLEET, "meta", whole).run("archive --scan");
        assert_eq!((scanned.status, &*scanned.err), (Some(0), ""), "{}", scanned.out);
    }
}

/// Words of a volume overwritten, and cuts, by chance: no command prints what is
/// not in the whole archive without saying so.
#[test]
fn nothing_is_lost_in_silence() {
    let times = std::env::var("PMDERIVE_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let mut choices = Choices(0xda_4a6e);
    let volume = original(TYPES, "0");
    let commands = [
        "eval --format csv s.i.u32 s.c.u64",
        "eval --format csv -t 0.7 s.i.u32 s.c.u64",
        "export -t 1 s.i.u32 s.c.u64",
    ];
    let whole = Damaged::new(TYPES, "0", Damage::Append(&[]));
    let whole = commands.map(|arguments| whole.run(arguments).out);
    for _ in 0..8 * times.unwrap_or(1_usize) {
        let at = 808 + choices.below(volume.len() - 812) / 4 * 4;
        let words = [0, 1, 8, 0x40, 0x7fff_ffff, 0x8000_0000, u32::MAX];
        let word = words[choices.below(words.len())].to_be_bytes();
        let damage = match choices.below(3) {
            0 => Damage::Cut(at + choices.below(4)),
            _ => Damage::Write(at, &word),
        };
        let damaged = Damaged::new(TYPES, "0", damage);
        for (arguments, whole) in commands.iter().zip(&whole) {
            let Run { status, out, err } = damaged.run(arguments);
            let what = format!("{damage:?} {arguments}");
            assert!(matches!(status, Some(0 | 1 | 3)), "{what}: {status:?} {err}");
            // A value may be another one; that it is missing is told.
            let is_short = out.lines().count() < whole.lines().count();
            let is_boundary = matches!(damage, Damage::Cut(_)) && err.is_empty();
            assert!(!is_short || is_boundary || !err.is_empty(), "{what}: {out}");
            assert_eq!(err.is_empty(), status == Some(0), "{what}: {status:?} {err}");
        }
    }
}
