//! Numbers of 64 bits in blocks without a type, as archives of 1995 and 1996 have
//! them: a metric and what is derived from it are the same number.

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "pmval/archive_writer.rs"]
mod archive_writer;

use std::process::Command;

use archive_writer::ArchiveWriter;
use pmderive_runtime::model::{MetricDesc, Pmid, Semantics, Units, Value, ValueType};

const NUMBER: u64 = 159_819_048;

#[test]
fn a_metric_and_its_derived_metric_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("old");
    let mut archive = ArchiveWriter::new((1_700_000_000, 0));
    archive.metric(
        "old.u64",
        MetricDesc {
            pmid: Pmid::new(100, 1, 1),
            value_type: ValueType::U64,
            indom: None,
            semantics: Semantics::Instant,
            units: Units::NONE,
        },
    );
    archive.record((1_700_000_000, 0), &[("old.u64", Ok(vec![(-1, Value::U64(NUMBER))]))]);
    archive.finish(&base);
    // The type goes out of the block's header.
    let volume = base.with_extension("0");
    let mut bytes = std::fs::read(&volume).expect("a volume");
    let block = [&[3, 0, 0, 12], &NUMBER.to_be_bytes()[..]].concat();
    let at = bytes.windows(12).position(|window| window == block).expect("the value");
    bytes[at] = 0;
    std::fs::write(&volume, bytes).expect("a volume");
    let definitions = folder.path().join("definitions.conf");
    std::fs::write(&definitions, "old.derived = old.u64\n").expect("a file");

    let values = |command: &str, metric: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_pmderive"))
            .args([command, "-f", "-a"])
            .arg(&base)
            .arg(metric)
            .env("PCP_DERIVED_CONFIG", &definitions)
            .output()
            .expect("the command runs");
        String::from_utf8(output.stdout).expect("text")
    };
    for metric in ["old.u64", "old.derived"] {
        let expected = format!("\n{metric}\n    value {NUMBER}\n");
        assert_eq!(values("info", metric), expected);
    }
}
