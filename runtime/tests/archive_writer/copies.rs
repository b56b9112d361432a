//! Real archives, read and written again: PCP's tools and our reader find the
//! same in the copy.
//!
//! Old archives have some data that the writer refuses: values of instances without a name,
//! instances of metrics without a domain, blocks of a wrong type. The copy corrects them. Where
//! pmdumplog would show the corrections, it prints only the metadata. Lists of instances that
//! repeat the one before are not written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use pmderive_runtime::archive::{ArchiveContext, MetadataRecord, MetadataRecords, Version};
use pmderive_runtime::archive_writer::{ArchiveWriter, WriterOptions};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, Pmid, RawValue, TextKind, TextSubject,
    Timestamp, ValueType,
};
use pmderive_runtime::result::FetchResult;

use regex::Regex;

use crate::tools::{print, scratch};

/// Archives up to this size are copied, unless `ARCHIVES_COMPARE_ALL` is set.
const SIZE_LIMIT: u64 = 60_000;

/// An archive as a whole.
#[derive(Default, PartialEq)]
pub struct Contents {
    metrics: BTreeMap<Pmid, (String, HashSet<Box<str>>)>,
    texts: HashMap<(TextSubject, TextKind), Box<str>>,
    instances: HashMap<InDom, Vec<(Timestamp, Arc<InstanceDomain>)>>,
    labels: HashMap<LabelLevel, Vec<(Timestamp, Vec<LabelSet>)>>,
    records: Vec<FetchResult>,
}

/// Adds new contents at the end of a history.
fn extend<T: PartialEq>(history: &mut Vec<(Timestamp, T)>, time: Timestamp, new: T) {
    let time = Timestamp { nsec: time.nsec / 1000 * 1000, ..time };
    if history.last().is_none_or(|(_, last)| *last != new) {
        history.push((time, new));
    }
}

/// Reads everything, with times to the microsecond, and the descriptors. The inner error is damage,
/// up to which everything was read.
fn read(path: &Path) -> Result<(Contents, HashMap<Pmid, MetricDesc>, ArchiveContext), String> {
    let failed = |error: &dyn std::error::Error| error.to_string();
    let mut contents = Contents::default();
    let mut descs = HashMap::new();
    for record in MetadataRecords::open(path).map_err(|error| failed(&error))? {
        match record.map_err(|error| failed(&error))? {
            MetadataRecord::Metric { desc, names } => {
                let metric = contents.metrics.entry(desc.pmid).or_default();
                metric.0 = desc.to_string();
                metric.1.extend(names);
                descs.insert(desc.pmid, desc);
            }
            MetadataRecord::Text { of, kind, text } => {
                contents.texts.insert((of, kind), text);
            }
            MetadataRecord::Instances { time, indom, domain } => {
                extend(contents.instances.entry(indom).or_default(), time, domain);
            }
            MetadataRecord::Labels { time, level, sets } => {
                extend(contents.labels.entry(level).or_default(), time, sets);
            }
        }
    }
    let mut context = ArchiveContext::open(path).map_err(|error| failed(&error))?;
    // The same for pmdumplog in both.
    context.take_untyped_numbers_as_native();
    loop {
        match context.next_record() {
            Ok(record) => contents.records.push(record),
            Err(error) if error.is_end_of_archive() => return Ok((contents, descs, context)),
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Corrects the data that the writer refuses. Returns the number of values that pmdumplog then
/// prints differently: omitted ones, and those read in another type.
fn put_right(
    record: &mut FetchResult,
    descs: &HashMap<Pmid, MetricDesc>,
    domains: &HashMap<InDom, Arc<InstanceDomain>>,
) -> usize {
    let mut changed = 0;
    for set in &mut record.sets {
        let (Ok(values), Some(desc)) = (&mut set.outcome, descs.get(&set.pmid)) else { continue };
        let before = values.len();
        match desc.indom {
            None => values.iter_mut().for_each(|value| value.instance = -1),
            Some(indom) => values.retain(|value| {
                domains.get(&indom).is_some_and(|domain| domain.name(value.instance).is_some())
            }),
        }
        changed += before - values.len();
        for value in values {
            match &mut value.value {
                // Only the writers of version 1 got it wrong.
                RawValue::Block { code, .. } if *code == 0 => {
                    *code = u8::try_from(desc.value_type.code()).unwrap_or(0);
                    changed += 1;
                }
                RawValue::InPlace(word) if desc.value_type == ValueType::F32 => {
                    let bytes = word.to_be_bytes().into();
                    value.value = RawValue::Block { code: 4, bytes };
                }
                _ => {}
            }
        }
    }
    changed
}

/// Copies an archive. Returns the written records, and the number of omitted
/// values.
pub fn copy(from: &Path, to: &Path, version: Version) -> Result<(Contents, usize), String> {
    let (mut contents, descs, context) = read(from)?;
    let options = WriterOptions { version, ..context.label().clone().into() };
    let failed = |error: &dyn std::error::Error| error.to_string();
    let mut writer = ArchiveWriter::create(to, options).map_err(|error| failed(&error))?;
    let mut timed: Vec<(Timestamp, MetadataRecord)> = Vec::new();
    for record in MetadataRecords::open(from).map_err(|error| failed(&error))? {
        let record = record.map_err(|error| failed(&error))?;
        match record {
            MetadataRecord::Instances { time, .. } | MetadataRecord::Labels { time, .. } => {
                timed.push((time, record));
            }
            _ => writer.metadata(&record).map_err(|error| failed(&error))?,
        }
    }
    timed.sort_by_key(|(time, _)| *time);
    let mut timed = timed.into_iter().peekable();
    let mut domains = HashMap::new();
    let mut changed = 0;
    for record in &mut contents.records {
        while let Some((_, said)) = timed.next_if(|(time, _)| *time <= record.timestamp) {
            writer.metadata(&said).map_err(|error| failed(&error))?;
            if let MetadataRecord::Instances { indom, domain, .. } = said {
                domains.insert(indom, domain);
            }
        }
        changed += put_right(record, &descs, &domains);
        match record.sets.is_empty() {
            true => writer.mark(record.timestamp).map_err(|error| failed(&error))?,
            false => writer.record(record).map_err(|error| failed(&error))?,
        }
    }
    // Metadata behind the last record.
    for (_, said) in timed {
        writer.metadata(&said).map_err(|error| failed(&error))?;
    }
    writer.finish().map_err(|error| failed(&error))?;
    Ok((contents, changed))
}

/// The lines of pmdumplog that a copy must have as well: all but the label's
/// version, the sizes of records, the index, and digits behind microseconds.
fn dumped(archive: &Path, options: &[&str]) -> Option<Vec<String>> {
    let text = print("pmdumplog", &[options, &["-Z", "UTC", "-xx"]].concat(), archive)?;
    let in_index = std::cell::Cell::new(false);
    let kept = |line: &&str| {
        match *line {
            "Temporal Index" => in_index.set(true),
            "" => in_index.set(false),
            _ => {}
        }
        let is_size = line.starts_with('[') && line.ends_with(" bytes]");
        !in_index.get() && !is_size && !line.starts_with("Log Label (Log Format Version ")
    };
    let lines = text.lines().filter(kept).map(|line| to_microseconds(line, archive));
    Some(without_repeats(lines))
}

/// Leaves lists of instances out that are the same as the one before.
fn without_repeats(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    // Start of the last list and of the one before it, at their times.
    let (mut last, mut before): (Option<usize>, Option<usize>) = (None, None);
    for line in lines.chain(std::iter::once(String::new())) {
        if !line.starts_with("   ")
            && let (Some(last), Some(before)) = (last, before)
            && kept[before + 1..last] == kept[last + 1..]
        {
            kept.truncate(last);
            // The list before is the last one again.
            if line.ends_with(" instances") {
                kept.push(line);
                continue;
            }
        }
        if line.ends_with(" instances") {
            before = last;
            last = Some(kept.len());
        } else if !line.starts_with("   ") {
            (last, before) = (None, None);
        }
        kept.push(line);
    }
    kept.pop();
    kept
}

/// A line with clock times cut to the microsecond, and without the archive's name.
fn to_microseconds(line: &str, archive: &Path) -> String {
    let line = line.replace(&archive.display().to_string(), "ARCHIVE");
    static FRACTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(\d\.\d{6})\d{3}\b").expect("it is valid"));
    FRACTION.replace_all(&line, "$1").into_owned()
}

/// Compares a copy with its original. The error names the difference.
fn compare(from: &Path, to: &Path, version: Version) -> Result<(), String> {
    let (mut original, changed) = copy(from, to, version)?;
    let (copied, ..) = read(to)?;
    original.records.iter_mut().for_each(|record| {
        if version == Version::V2 {
            record.timestamp.nsec = record.timestamp.nsec / 1000 * 1000;
        }
    });
    for (what, same) in [
        ("metrics", original.metrics == copied.metrics),
        ("texts", original.texts == copied.texts),
        ("instances", original.instances == copied.instances),
        ("labels", original.labels == copied.labels),
        ("records", original.records == copied.records),
    ] {
        same.then_some(()).ok_or_else(|| format!("our reader finds other {what}"))?;
    }
    let lines = |path: &Path, tool: &str| {
        let text = print(tool, &[], path).unwrap_or_default();
        text.lines().map(|line| to_microseconds(line, path)).collect::<HashSet<_>>()
    };
    let known = lines(from, "pmlogcheck");
    if let Some(new) = lines(to, "pmlogcheck").difference(&known).next() {
        return Err(format!("pmlogcheck: {new}"));
    }
    let options: &[&str] =
        if changed == 0 { &["-a", "-e", "-h"] } else { &["-d", "-i", "-e", "-h"] };
    let (Some(one), Some(other)) = (dumped(from, options), dumped(to, options)) else {
        return Ok(());
    };
    let pairs = one.iter().zip(&other);
    if let Some((one, other)) = pairs.into_iter().find(|(one, other)| one != other) {
        return Err(format!("pmdumplog prints {other:?} instead of {one:?}"));
    }
    match one.len() == other.len() {
        true => Ok(()),
        false => Err(format!("pmdumplog prints {} lines instead of {}", other.len(), one.len())),
    }
}

/// Copies all archives of a folder in both versions; returns their number.
fn compare_all(archives: &[PathBuf]) -> usize {
    let folder = scratch();
    let to = folder.path().join("copy");
    let mut failures = Vec::new();
    let mut compared = 0;
    for archive in archives {
        for version in [Version::V2, Version::V3] {
            compared += 1;
            if let Err(error) = compare(archive, &to, version) {
                failures.push(format!("{} as {version:?}: {error}", archive.display()));
            }
            for entry in folder.path().read_dir().expect("it is there") {
                std::fs::remove_file(entry.expect("it is there").path()).expect("it is ours");
            }
        }
    }
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
    compared
}

/// Base names of the archives in a folder that are small enough.
fn archives(folder: &Path) -> Vec<PathBuf> {
    let all = std::env::var_os("ARCHIVES_COMPARE_ALL").is_some();
    let mut sizes: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name().into_string().unwrap_or_default();
        let stem = name.trim_end_matches(".xz").trim_end_matches(".bz2");
        let Some((base, suffix)) = stem.rsplit_once('.') else { continue };
        if ["meta", "index"].contains(&suffix) || suffix.parse::<u32>().is_ok() {
            let size = entry.metadata().expect("it is there").len();
            // Compressed files are larger than they look.
            let size = if stem == name { size } else { 10 * size };
            *sizes.entry(folder.join(base)).or_default() += size;
        }
    }
    sizes.into_iter().filter(|(_, size)| all || *size <= SIZE_LIMIT).map(|(base, _)| base).collect()
}

#[test]
fn copies_of_pcps_archives_equal_them() {
    let folder = Path::new("/var/lib/pcp/testsuite/archives");
    let required = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(folder.is_dir() || !required, "pcp-testsuite is not installed");
    let compared = compare_all(&archives(folder));
    assert!(compared > 100 || !folder.is_dir(), "{compared}");
}

#[test]
fn copies_of_our_archives_equal_them() {
    let own = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/archives"));
    assert!(compare_all(&archives(own)) >= 6);
}
