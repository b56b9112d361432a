//! Numbers of 64 bits in blocks without a type, as in archives of 1995 and 1996. A metric and
//! its derived metrics have the number that was written, or with `--compat` the number that
//! libpcp reads.

use std::path::Path;

use archive_writer::ArchiveWriter;
use pmderive_runtime::model::{MetricDesc, Pmid, Semantics, Units, Value, ValueType};

#[allow(dead_code, reason = "shared with tests that need more of it")]
use crate::archive_writer;
use crate::command;
use crate::side_by_side;
use command::pmderive;
use side_by_side::{SUITE, files, ours_with, theirs_with, tools_are_installed};

const NUMBERS: [u64; 3] = [159_819_048, 159_819_304, 159_819_560];

const DEFINITIONS: &str = "\
old.derived = disk.all.write
old.twice = disk.all.write + disk.all.write
old.difference = delta(disk.all.write)
old.instant = instant(disk.all.write)
";

/// Writes an archive with a record a second whose numbers are in blocks without
/// a type.
fn write(base: &Path) {
    let mut archive = ArchiveWriter::new((1_700_000_000, 0));
    archive.metric(
        "disk.all.write",
        MetricDesc {
            pmid: Pmid::new(100, 1, 1),
            value_type: ValueType::U64,
            indom: None,
            semantics: Semantics::Instant,
            units: Units::NONE,
        },
    );
    for (second, number) in (0..).zip(NUMBERS) {
        let value = vec![(-1, Value::U64(number))];
        archive.record((1_700_000_000 + second, 0), &[("disk.all.write", Ok(value))]);
    }
    archive.finish(base);
    // The type goes out of the blocks' headers.
    let volume = base.with_extension("0");
    let mut bytes = std::fs::read(&volume).expect("a volume");
    for number in NUMBERS {
        let block = [&[3, 0, 0, 12], &number.to_be_bytes()[..]].concat();
        let at = bytes.windows(12).position(|window| window == block).expect("the value");
        bytes[at] = 0;
    }
    std::fs::write(&volume, bytes).expect("a volume");
}

#[test]
fn a_metric_and_its_derived_metric_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("old");
    write(&base);
    let definitions = folder.path().join("definitions.conf");
    std::fs::write(&definitions, DEFINITIONS).expect("a file");
    let [base, definitions] = [&base, &definitions].map(|path| path.to_str().expect("UTF-8"));
    let printed = |arguments: &[&str]| {
        let mut command = pmderive(arguments);
        command.env("PCP_DERIVED_CONFIG", definitions);
        String::from_utf8(command.output().expect("the command runs").stdout).expect("text")
    };
    let written: fn(u64) -> u64 = |number| number;
    // As they stand in the archive, on a machine with the bytes in another order or not.
    let native: fn(u64) -> u64 = u64::from_be;
    for dialect in ["off", "6.0", "7.2"] {
        let seen = if dialect == "off" { written } else { native };
        for metric in ["disk.all.write", "old.derived", "old.instant"] {
            // Of the first record, and where values are interpolated.
            for (origin, number) in [(&[][..], NUMBERS[0]), (&["-O", "+1"], NUMBERS[1])] {
                let arguments = ["info", "--compat", dialect, "-f", "-a", base];
                let expected = format!("\n{metric}\n    value {}\n", seen(number));
                let printed = printed(&[&arguments[..], origin, &[metric]].concat());
                assert_eq!(printed, expected, "{dialect} {origin:?}");
            }
            // Interpolated, and record by record, where nothing is derived.
            let ways = if metric.starts_with("old.") { &["-a"][..] } else { &["-a", "-U"] };
            for way in ways {
                let arguments =
                    ["val", "--compat", dialect, "-Z", "UTC", "-w", "30", way, base, metric];
                let printed = printed(&arguments);
                let rows: Vec<&str> = printed
                    .lines()
                    .filter(|line| line.starts_with("22:13:"))
                    .filter_map(|line| line.split_whitespace().last())
                    .collect();
                let expected = NUMBERS.map(|number| seen(number).to_string());
                assert_eq!(rows, expected, "{dialect} {way} {printed}");
            }
        }
    }
}

#[test]
fn as_the_tools_of_pcp() {
    if !tools_are_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("old");
    write(&own);
    let definitions = folder.path().join("definitions.conf");
    std::fs::write(&definitions, DEFINITIONS).expect("a file");
    let variables = &[("PCP_DERIVED_CONFIG", definitions.to_str().expect("UTF-8"))];
    let mut archives = vec![own];
    for old in ["960624.08.17_v2", "babylon.pmview_v2"] {
        let archive = Path::new(SUITE).join("archives").join(old);
        match files(&archive).is_empty() {
            false => archives.push(archive),
            true => eprintln!("NOT RUN: {} is not installed", archive.display()),
        }
    }
    let metrics = ["disk.all.write", "old.derived", "old.twice", "old.difference", "old.instant"];
    for archive in &archives {
        let archive = archive.to_str().expect("UTF-8");
        for metric in metrics {
            for (tool, options) in [
                ("pminfo", "-f"),
                ("pminfo", "-f -O +1"),
                ("pmval", "-s 9 -Z UTC"),
                ("pmval", "-s 9 -Z UTC -U"),
                ("pmval", "-s 9 -Z UTC -r -t 0.4 -O +1"),
            ] {
                let mut arguments: Vec<&str> = options.split(' ').collect();
                arguments.extend(["-a", archive, metric]);
                let theirs = theirs_with(variables, tool, &arguments);
                let ours = ours_with(variables, tool, &arguments);
                assert_eq!(ours.out, theirs.out, "{tool} {arguments:?}");
                assert_eq!(ours.err, theirs.err, "{tool} {arguments:?}");
            }
        }
    }
}
