//! Every mode of `pmSetMode(3)`, compared with libpcp over its test archives.
//!
//! Cases come from a generator with a fixed seed: starts before, within and
//! after the archive, at records and between them, steps of either sign.
//! `ARCHIVE_ROUNDS` asks for more of them, `ARCHIVE_NAMES` for some archives.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pmderive_runtime::archive::{ArchiveContext, InterpolationRules, MarkRule};
use pmderive_runtime::model::{Pmid, Timestamp};
use pmderive_runtime::source::MetadataSource;

use crate::choices::Choices;
use crate::libpcp::{Case, Kind, Libpcp, RULES, Tally, own_answers};
use crate::suite::{all_installed, everything, installed};

/// Archives that libpcp reads otherwise, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("960624.08.17_v2", "blocks with the type code 0, which libpcp delivers byte-swapped"),
    ("babylon.pmview_v2", "blocks with the type code 0, which libpcp delivers byte-swapped"),
    ("binning", "its index points into the middle of records, and libpcp follows it"),
    ("bozo.client_v2", "blocks with the type code 0, which libpcp delivers byte-swapped"),
    ("pcp-mpstat3", "its index points into the middle of records, and libpcp follows it"),
];

pub fn nanoseconds(from: Timestamp, to: Timestamp) -> i64 {
    (to.sec - from.sec) * 1_000_000_000 + i64::from(to.nsec) - i64::from(from.nsec)
}

fn later(time: Timestamp, nanoseconds: i64) -> Timestamp {
    Timestamp::new(time.sec, i64::from(time.nsec) + nanoseconds)
}

/// The time stamps in the indexes of archives that are not compressed.
fn index_stamps(path: &Path) -> Vec<Timestamp> {
    let list = path.to_str().expect("a plain name").split(',').map(PathBuf::from);
    let files = list.flat_map(|name| match std::fs::read_dir(&name) {
        Ok(entries) => entries.map(|entry| entry.expect("readable").path()).collect(),
        Err(_) => vec![PathBuf::from(format!("{}.index", name.display()))],
    });
    let indexes = files.filter(|file| file.extension().is_some_and(|suffix| suffix == "index"));
    indexes.flat_map(|index| stamps_in(&std::fs::read(index).unwrap_or_default())).collect()
}

fn stamps_in(bytes: &[u8]) -> Vec<Timestamp> {
    let is_version_2 = bytes.get(7) == Some(&2);
    let (label, size) = if is_version_2 { (132, 20) } else { (808, 32) };
    let entries = bytes.get(label..).unwrap_or_default().chunks_exact(size);
    let stamp = |entry: &[u8]| {
        let word = |at: usize| {
            i64::from(u32::from_be_bytes(entry[at..at + 4].try_into().expect("4 bytes")))
        };
        match is_version_2 {
            true => Timestamp::new(word(0), 1000 * word(4)),
            false => Timestamp::new(word(4) << 32 | word(0), word(8)),
        }
    };
    entries.map(stamp).collect()
}

/// Cases over one archive.
pub fn cases(path: &Path, rounds: usize, choices: &mut Choices) -> Vec<Case> {
    let Ok(mut context) = ArchiveContext::open(path) else { return Vec::new() };
    let Ok(end) = context.end_time() else { return Vec::new() };
    let start = context.label().start;
    let all: Vec<Pmid> = everything(&mut context).pmids().to_vec();
    let stamps = crate::fetching::stamps(&mut context);
    let indexed = index_stamps(path);
    let span = nanoseconds(start, end).max(1);
    let mut cases = Vec::new();
    for round in 0..rounds {
        let count = choices.below(40) + 1;
        let first = choices.below(all.len());
        let stride = choices.below(7) + 1;
        let pmids: Vec<Pmid> = all
            .iter()
            .cycle()
            .skip(first)
            .take(all.len())
            .step_by(stride)
            .take(count)
            .copied()
            .collect();
        let within = (choices.below(1 << 30) as f64 / (1u64 << 30) as f64 * span as f64) as i64;
        let record = stamps.get(choices.below(stamps.len())).map_or(start, |s| s.0);
        let at = match choices.below(8) {
            0 => start,
            1 => end,
            2 => record,
            3 => later(record, choices.below(3) as i64 - 1),
            4 => later(start, -(choices.below(2_000_000_000) as i64)),
            5 => later(end, choices.below(2_000_000_000) as i64),
            _ => later(start, within),
        };
        // If the index has the end of a record for its time, libpcp starts
        // behind that record and misses it.
        let is_indexed = |at| indexed.contains(&at) || indexed.contains(&later(at, -1000));
        let is_missed = is_indexed(at) && matches!(round % 6, 3 | 5);
        // Backward from just before an entry, it continues from the entry
        // before.
        let is_passed = round % 6 == 4
            && indexed.iter().any(|entry| *entry > at && *entry <= later(at, 1_000_000));
        // Times before 1970 stand for others there. And through the few
        // entries of these archives' indexes libpcp steps over marks unseen.
        let is_coarse = path.to_string_lossy().contains("/19970807.09.5") && round % 6 == 2;
        if is_missed || is_passed || is_coarse || at.sec < 0 {
            continue;
        }
        // Times whose nanoseconds add up to 10^9 have no carry there.
        let step = span / (choices.below(60) as i64 + 1) + choices.below(1000) as i64 + 1;
        let kind = match round % 6 {
            0 | 1 => Kind::Interpolated { step },
            2 => Kind::Interpolated { step: -step },
            3 => Kind::Forward,
            4 => Kind::Backward,
            _ => Kind::Records,
        };
        let fetches = 25;
        // Small numbers are instances of many domains.
        let admitted = match choices.below(4) {
            0 => (0..40).filter(|_| choices.below(2) == 0).collect(),
            _ => Vec::new(),
        };
        let archive = path.to_owned();
        cases.push(Case { archive, kind, start: at, count: fetches, pmids, admitted });
    }
    cases
}

#[test]
fn every_mode_answers_as_libpcp() {
    let Some(oracle) = Libpcp::new() else { return };
    let rounds = std::env::var("ARCHIVE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let only = std::env::var("ARCHIVE_NAMES").unwrap_or_default();
    let mut tally = Tally::default();
    for path in all_installed("archives") {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        if LEFT_OUT.iter().any(|(left_out, _)| *left_out == name)
            || !only.is_empty() && !only.split(',').any(|one| one == name)
        {
            continue;
        }
        let seed = name.bytes().fold(17u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        let cases = cases(&path, rounds.unwrap_or(6), &mut Choices(seed));
        let answers = oracle.answers(&cases, &[]);
        assert_eq!(answers.len(), cases.len(), "{name}: one answer a case");
        for (case, want) in cases.iter().zip(answers) {
            if want.iter().any(|line| line.starts_with("crashed")) {
                continue;
            }
            let got = own_answers(case, RULES);
            tally.compare(&name, case, &want, &got);
        }
    }
    tally.finish();
}

#[test]
fn variables_of_the_environment_are_followed() {
    let Some(oracle) = Libpcp::new() else { return };
    let wrapping = InterpolationRules { counters_wrap: true, ..RULES };
    let markless = InterpolationRules { marks: MarkRule::Never, ..RULES };
    let beyond = |seconds| MarkRule::Beyond(Duration::from_secs(seconds));
    let six = InterpolationRules { marks: beyond(6), ..RULES };
    for (name, metric, from, step, variable, rules) in [
        ("uwrap", "sample.wrap.ulong", 0.5, 0.7, ("PCP_COUNTER_WRAP", "1"), wrapping),
        ("gap", "pmcd.pdu_in.total", 6.0, 1.7, ("PCP_IGNORE_MARK_RECORDS", ""), markless),
        ("gap", "pmcd.pdu_in.total", 6.0, 1.7, ("PCP_IGNORE_MARK_RECORDS", "0"), markless),
        ("gap", "pmcd.pdu_in.total", 6.0, 1.7, ("PCP_IGNORE_MARK_RECORDS", "6sec"), six),
    ] {
        let Some(archive) = installed("archives", name) else { return };
        let mut context = ArchiveContext::open(&archive).expect("it is good");
        let pmids: Vec<Pmid> =
            context.lookup_names(&[metric]).expect("known").into_iter().flatten().collect();
        let nanoseconds = |seconds: f64| (seconds * 1e9) as i64;
        let start = later(context.label().start, nanoseconds(from));
        let kind = Kind::Interpolated { step: nanoseconds(step) };
        let case = Case { archive, kind, start, count: 9, pmids, admitted: vec![] };
        let want = &oracle.answers(std::slice::from_ref(&case), &[variable])[0];
        assert_eq!(&own_answers(&case, rules), want, "{name} {variable:?}");
        assert_ne!(&own_answers(&case, RULES), want, "{name} {variable:?} makes no difference");
    }
}
