//! Every record, value, descriptor and instance domain as `pmdumplog(1)` prints it.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{
    InDom, MetricDesc, PmStatus, Pmid, RawValueRef, Timestamp, ValueType,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchSource, Freshness, MetadataSource};

use crate::suite::{all_installed, available, everything, own};

/// Archives up to this size are compared, unless `ARCHIVES_COMPARE_ALL` is set.
const SIZE_LIMIT: u64 = 300_000;

fn pmdumplog_is_there() -> bool {
    let found = Command::new("pmdumplog").arg("-V").output().is_ok();
    available(found, "pmdumplog")
}

/// The lines that pmdumplog prints, which need not be UTF-8.
fn dump(path: &Path, option: &str) -> impl Iterator<Item = String> {
    let mut child = Command::new("pmdumplog")
        .args(["-Z", "UTC", "-xxx", "-M", option])
        .arg(path)
        // Only the metrics of the archive itself.
        .env("PCP_DERIVED_CONFIG", "")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("pmdumplog starts");
    let output = child.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).split(b'\n');
    std::iter::from_fn(move || match lines.next() {
        Some(line) => {
            let line = line.expect("a pipe can be read");
            Some(match String::from_utf8(line) {
                Ok(line) => line,
                Err(e) => e.into_bytes().into_iter().map(char::from).collect(),
            })
        }
        None => {
            child.wait().expect("it was started");
            None
        }
    })
}

/// One value as printed: instance, its name, the text.
type Printed = (Option<(i32, Option<String>)>, String);

/// The output for one record.
#[derive(Debug, Default)]
struct Dumped {
    stamp: Timestamp,
    is_mark: bool,
    sets: HashMap<Pmid, Vec<Printed>>,
}

/// `Thu Aug 31 21:14:32.296435 2017 (0.000000) 1504214072 3 metrics`: the
/// stamp and the rest.
fn header(line: &str) -> Option<(Timestamp, &str)> {
    let (date, rest) = line.split_once(" (")?;
    let (_, rest) = rest.split_once(") ")?;
    let clock = date.split_whitespace().nth(3)?;
    let (hours, fraction) = clock.split_once('.')?;
    if hours.split(':').count() != 3 || !line.as_bytes()[0].is_ascii_uppercase() {
        return None;
    }
    let (seconds, rest) = rest.split_once(' ')?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let nanoseconds = fraction.parse::<i64>().ok()? * 10i64.pow(9u32.checked_sub(digits)?);
    Some((Timestamp::new(seconds.parse().ok()?, nanoseconds), rest))
}

fn pmid(text: &str) -> Option<Pmid> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let pmid = Pmid::new(parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(pmid)
}

/// `inst [5 or "five"] value 12`, `value 12`, or `inst [5 or ???] value 12`.
fn value(text: &str) -> Option<Printed> {
    if let Some(value) = text.strip_prefix("value ") {
        return Some((None, value.to_string()));
    }
    let (id, rest) = text.strip_prefix("inst [")?.split_once(" or ")?;
    let (name, value) = rest.split_once("] value ")?;
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    Some((Some((id.parse().ok()?, name.map(String::from))), value.to_string()))
}

/// Groups pmdumplog's lines into records.
fn records(lines: impl Iterator<Item = String>) -> impl Iterator<Item = Dumped> {
    let mut lines = lines;
    let mut current: Option<Dumped> = None;
    let mut set = None;
    std::iter::from_fn(move || {
        for line in lines.by_ref() {
            if let Some((stamp, rest)) = header(&line) {
                set = None;
                let is_mark = rest.trim() == "<mark>";
                let next = Dumped { stamp, is_mark, ..Dumped::default() };
                if let Some(done) = current.replace(next) {
                    return Some(done);
                }
                continue;
            }
            let Some(record) = &mut current else { continue };
            let head = line.strip_prefix("    ").and_then(|line| {
                let (number, rest) = line.split_once(" (")?;
                let (_, rest) = rest.split_once("):")?;
                Some((pmid(number)?, rest.trim_start()))
            });
            if let Some((number, rest)) = head {
                set = Some(number);
                let values = record.sets.entry(number).or_default();
                values.extend(value(rest));
            } else if let Some(number) = set
                && let Some(values) = record.sets.get_mut(&number)
            {
                match line.strip_prefix("        ").and_then(value) {
                    Some(value) => values.push(value),
                    // A string that contains a line break.
                    None => {
                        if let Some((_, text)) = values.last_mut()
                            && text.starts_with('"')
                        {
                            text.push('\n');
                            text.push_str(&line);
                        }
                    }
                }
            }
        }
        current.take()
    })
}

/// Compares one value. It ignores pmdumplog's output about aggregates, events, and blocks of a
/// wrong type.
fn same_value(desc: &MetricDesc, value: Option<RawValueRef<'_>>, text: &str) -> bool {
    let number = |value: f64, tolerance: f64| match text.trim() {
        "nan" | "-nan" => value.is_nan(),
        text => text.parse::<f64>().is_ok_and(|printed| {
            printed == value || (printed - value).abs() <= tolerance * value.abs()
        }),
    };
    let mut room = [0; 8];
    let Some(value) = value else { return false };
    let (word, data) = match value.encoded(&mut room) {
        Err(word) => (word, &[][..]),
        Ok((kind, _)) if i32::from(kind) != desc.value_type.code() => return true,
        Ok((_, data)) => (0, data),
    };
    let eight = data.first_chunk::<8>().copied().unwrap_or_default();
    let four = data.first_chunk::<4>().map_or(word, |data| u32::from_be_bytes(*data));
    match desc.value_type {
        ValueType::I32 => text == word.cast_signed().to_string(),
        ValueType::U32 => text == word.to_string(),
        ValueType::I64 => text == i64::from_be_bytes(eight).to_string(),
        ValueType::U64 => text == u64::from_be_bytes(eight).to_string(),
        ValueType::F32 => number(f64::from(f32::from_bits(four)), 1e-7),
        ValueType::F64 => number(f64::from_be_bytes(eight), 1e-14),
        ValueType::String => {
            let data = data.split(|byte| *byte == 0).next().unwrap_or_default();
            let string = match std::str::from_utf8(data) {
                Ok(string) => string.to_string(),
                Err(_) => data.iter().map(|byte| char::from(*byte)).collect(),
            };
            // The empty line after a record looks like part of the string.
            text.trim_end_matches('\n') == format!("\"{string}\"")
        }
        _ => true,
    }
}

/// Compares all records of an archive; returns their number and that of values.
fn compare_records(path: &Path) -> Result<(usize, usize), String> {
    let mut context = ArchiveContext::open(path).map_err(|e| e.to_string())?;
    context.take_untyped_numbers_as_native();
    let list = everything(&mut context);
    let descs = context.lookup_descs(list.pmids()).map_err(|e| e.to_string())?;
    let descs: HashMap<Pmid, MetricDesc> =
        descs.into_iter().flatten().map(|desc| (desc.pmid, desc)).collect();
    let mut batch = ResultBatch::default();
    let (mut count, mut values) = (0, 0);
    let mut gap = false;
    for dumped in records(dump(path, "-m")) {
        if dumped.is_mark {
            gap = true;
            continue;
        }
        if !dumped.sets.keys().any(|pmid| descs.contains_key(pmid)) {
            continue;
        }
        let at = format!("record {count} at {}", dumped.stamp);
        let events = context.fetch(&list, &mut batch).map_err(|e| format!("{at}: {e}"))?;
        if batch.timestamp() != dumped.stamp {
            return Err(format!("{at}: we have one at {}", batch.timestamp()));
        }
        if events.gap != std::mem::take(&mut gap) {
            return Err(format!("{at}: gap is {}", events.gap));
        }
        let part = &batch.parts()[0];
        for set in part.sets() {
            let desc = &descs[&set.pmid];
            let Some(expected) = dumped.sets.get(&set.pmid) else {
                if set.count != Ok(0) {
                    return Err(format!("{at}: {} should be absent", set.pmid));
                }
                continue;
            };
            if matches!(desc.value_type, ValueType::Event | ValueType::HighResEvent) {
                continue;
            }
            if set.len() != expected.len() {
                return Err(format!(
                    "{at}: {} has {} values instead of {}",
                    set.pmid,
                    set.len(),
                    expected.len()
                ));
            }
            for ((number, value), (instance, text)) in set.values().zip(expected) {
                values += 1;
                if !same_value(desc, value, text) {
                    return Err(format!("{at}: {} {value:?} should be {text}", set.pmid));
                }
                let Some((id, name)) = instance else { continue };
                let domain = desc
                    .indom
                    .and_then(|indom| list.domains().binary_search(&indom).ok())
                    .and_then(|position| batch.domains[position].as_ref().ok());
                let ours = domain.and_then(|domain| domain.name(*id));
                if *id != number || ours != name.as_deref() {
                    return Err(format!(
                        "{at}: {} has instance {} {ours:?} instead of {id} {name:?}",
                        set.pmid, number
                    ));
                }
            }
        }
        count += 1;
    }
    match context.fetch(&list, &mut batch) {
        Err(e) if e.is_end_of_archive() => Ok((count, values)),
        Err(e) => Err(format!("after record {count}: {e}")),
        Ok(_) => Err(format!("pmdumplog has no record at {}", batch.timestamp())),
    }
}

/// Compares all descriptors; returns their number.
fn compare_descs(path: &Path) -> Result<usize, String> {
    let mut context = ArchiveContext::open(path).map_err(|e| e.to_string())?;
    context.take_untyped_numbers_as_native();
    let mut count = 0;
    let mut current: Option<(Pmid, Vec<String>)> = None;
    let mut kind = String::new();
    for line in dump(path, "-d") {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("PMID: ") {
            let (number, names) = rest.split_once(" (").ok_or("no names")?;
            let names = names.trim_end_matches(')').split(" or ").map(String::from).collect();
            current = Some((pmid(number).ok_or("no pmid")?, names));
        } else if let Some(rest) = line.strip_prefix("Data Type: ") {
            kind = rest.to_string();
        } else if let (Some(rest), Some((pmid, names))) =
            (line.strip_prefix("Semantics: "), current.take())
        {
            let desc = context.lookup_descs(&[pmid]).map_err(|e| e.to_string())?[0]
                .map_err(|e| format!("{pmid}: {e}"))?;
            let domain = desc.indom.map_or("PM_INDOM_NULL".to_string(), |d| d.to_string());
            let name = desc.value_type.description().unwrap_or("Not Supported");
            let semantics = desc.semantics.name();
            if !kind.starts_with(&format!("{name}  InDom: {domain} ")) {
                return Err(format!("{pmid}: {name} {domain} instead of {kind}"));
            }
            if !rest.starts_with(&format!("{semantics} ")) && !rest.starts_with("???") {
                return Err(format!("{pmid}: {semantics} instead of {rest}"));
            }
            for name in names.iter().filter(|name| **name != pmid.to_string()) {
                let found = context.lookup_names(&[name]).map_err(|e| e.to_string())?[0];
                if found != Ok(pmid) && found != Err(PmStatus::NONLEAF) {
                    return Err(format!("{name} is {found:?} instead of {pmid}"));
                }
            }
            count += 1;
        }
    }
    Ok(count)
}

/// Instances with their names, in order.
type Instances = Vec<(i32, String)>;

/// Compares all versions of all instance domains; returns their number.
fn compare_instances(path: &Path) -> Result<usize, String> {
    // For each domain and time, the lists; one time may have several.
    let mut expected: BTreeMap<(InDom, Timestamp), Vec<Instances>> = BTreeMap::new();
    let mut indom = None;
    let mut stamp = None;
    for line in dump(path, "-i") {
        if let Some(rest) = line.strip_prefix("InDom: ") {
            let (domain, serial) = rest.trim().split_once('.').ok_or("no domain")?;
            let number = |text: &str| text.parse().map_err(|_| "no number");
            indom = Some(InDom::new(number(domain)?, number(serial)?));
        } else if let Some((time, _)) = header(&line) {
            stamp = Some(time);
            let key = (indom.ok_or("no domain")?, time);
            expected.entry(key).or_default().push(Instances::new());
        } else if let (Some(indom), Some(stamp), Some((id, name))) =
            (indom, stamp, line.trim_start().split_once(" or \""))
            && let Some(list) = expected.get_mut(&(indom, stamp)).and_then(|lists| lists.last_mut())
        {
            let id = id.parse().map_err(|_| format!("{line:?} has no instance"))?;
            list.push((id, name.strip_suffix('"').ok_or("no name")?.to_string()));
        }
    }
    let mut context = ArchiveContext::open(path).map_err(|e| e.to_string())?;
    context.take_untyped_numbers_as_native();
    let count = expected.len();
    for ((indom, stamp), lists) in expected {
        context.set_position(stamp).map_err(|e| e.to_string())?;
        let domain =
            context.instance_domain(indom, Freshness::Cached).map_err(|e| e.to_string())?;
        let domain = domain.map_err(|e| format!("{indom} at {stamp}: {e}"))?;
        let ours: Instances = domain.instances().map(|(id, name)| (id, name.to_string())).collect();
        if !lists.contains(&ours) {
            return Err(format!("{indom} at {stamp}: {ours:?} instead of {lists:?}"));
        }
    }
    Ok(count)
}

/// Archives that cannot be compared, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("procpid-encode2", "names of instances contain line breaks"),
    ("20130706", "a volume is compressed as .bz2"),
];

fn is_small(path: &Path) -> bool {
    let size = |suffix: &str| {
        let mut file = path.as_os_str().to_os_string();
        file.push(suffix);
        std::fs::metadata(file).map_or(0, |data| data.len())
    };
    std::env::var_os("ARCHIVES_COMPARE_ALL").is_some()
        || size(".0") + 10 * size(".0.xz") + size(".meta") < SIZE_LIMIT
}

#[test]
fn archives_read_as_pmdumplog_reads_them() {
    if !pmdumplog_is_there() {
        return;
    }
    let mut paths: Vec<PathBuf> =
        ["own-dyn", "own-dyn2", "own-fleet", "own-sample", "own-types", "own-units"]
            .iter()
            .map(|name| own(name))
            .collect();
    paths.extend(all_installed("archives").into_iter().filter(|path| is_small(path)));
    let mut failures = Vec::new();
    let (mut archives, mut records, mut values, mut descs, mut lists) = (0, 0, 0, 0, 0);
    for path in &paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
            continue;
        }
        archives += 1;
        match compare_records(path) {
            Ok((r, v)) => (records, values) = (records + r, values + v),
            Err(e) => failures.push(format!("{name}: {e}")),
        }
        match compare_descs(path) {
            Ok(count) => descs += count,
            Err(e) => failures.push(format!("{name}: {e}")),
        }
        match compare_instances(path) {
            Ok(count) => lists += count,
            Err(e) => failures.push(format!("{name}: {e}")),
        }
    }
    println!(
        "{archives} archives: {records} records, {values} values, {descs} descriptors, \
         {lists} versions of instance domains"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(values > 1000, "too little was compared");
}
