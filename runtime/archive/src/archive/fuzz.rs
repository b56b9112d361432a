//! Fuzz target: a whole archive from one blob.
//!
//! Input: arbitrary bytes. Output: none. The target takes every path from opening the
//! archive to the last fetch. It does not touch the file system.

use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::model::{
    InstanceProfile, LabelLevel, LabelSet, TextKind, TextSubject, Timestamp, ValueType,
};
use pmderive_core::result::ResultBatch;
use pmderive_core::source::{FetchList, FetchSource, Freshness, MetadataSource, Mode, SourceError};

use crate::archive::context::ArchiveContext;
use crate::archive::files::{ArchiveFiles, Member};
use crate::archive::options::OpenOptions;
use crate::archive::resolve::NamedArchive;

/// Maximum number of fetches for one input, and of those that may fail.
const MAX_FETCHES: usize = 10_000;
const MAX_FAILURES: usize = 20;

/// Number of interpolated fetches in each direction.
const INTERPOLATED: usize = 12;

/// The archive in a blob. The blob begins with two big-endian words of 4 bytes, the
/// sizes of metadata and index. Metadata, index and volume 0 follow.
fn files_of(data: &[u8]) -> Option<ArchiveFiles> {
    let (sizes, rest) = data.split_first_chunk::<8>()?;
    let size = |at: usize| {
        let word = u32::from_be_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]);
        usize::try_from(word).unwrap_or(usize::MAX)
    };
    let (metadata, rest) = rest.split_at(size(0).min(rest.len()));
    let (index, volume) = rest.split_at(size(4).min(rest.len()));
    let member = |name, bytes: &[u8]| Member::Memory { name, bytes: Arc::from(bytes) };
    Some(ArchiveFiles {
        base: PathBuf::from("fuzz"),
        metadata: member("fuzz.meta", metadata),
        index: Some(member("fuzz.index", index)),
        volumes: vec![(0, member("fuzz.0", volume))],
    })
}

/// Opens the archive in `data` and uses everything that a context offers. Must never
/// panic.
#[doc(hidden)]
pub fn fuzz_archive(data: &[u8]) {
    let Some(Ok(mut context)) = files_of(data).map(ArchiveContext::from_files) else {
        return;
    };
    context.parts().for_each(|part| part.inspect(&mut |_| {}));
    describe(&mut context);
    walk(&mut context);
    interpolate(&mut context);
    describe(&mut context);
}

/// Like [`fuzz_archive`], with two archives as one. `data` has the size of the first
/// archive in four bytes, then both archives.
#[doc(hidden)]
pub fn fuzz_archives(data: &[u8]) {
    let Some(mut context) = several_of(data).and_then(Result::ok) else { return };
    describe(&mut context);
    walk(&mut context);
    interpolate(&mut context);
    describe(&mut context);
}

fn several_of(data: &[u8]) -> Option<Result<ArchiveContext, SourceError>> {
    let (size, rest) = data.split_first_chunk::<4>()?;
    let size = usize::try_from(u32::from_be_bytes(*size)).unwrap_or(usize::MAX);
    let (first, second) = rest.split_at(size.min(rest.len()));
    let named =
        |name: &str, blob| Some(NamedArchive { name: name.into(), files: Ok(files_of(blob)?) });
    let archives = vec![named("second", second)?, named("first", first)?];
    Some(ArchiveContext::of("first,second".to_owned(), archives, OpenOptions::default()))
}

/// The names of all metrics of an archive, and all its metrics and domains.
fn everything(context: &mut ArchiveContext) -> (Vec<String>, FetchList) {
    let all = context.traverse("").unwrap_or_default();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut pmids: Vec<_> =
        context.lookup_names(&names).unwrap_or_default().into_iter().flatten().collect();
    pmids.sort_unstable();
    pmids.dedup();
    let descs = context.lookup_descs(&pmids).unwrap_or_default();
    let mut domains: Vec<_> = descs.into_iter().flatten().filter_map(|desc| desc.indom).collect();
    domains.sort_unstable();
    domains.dedup();
    (all, FetchList::new(pmids, domains))
}

/// Reads every value of an archive. Returns the number of successful fetches.
pub(super) fn walk(context: &mut ArchiveContext) -> usize {
    let (_, list) = everything(context);
    let end = context.end_time().ok();
    let mut batch = ResultBatch::default();
    let (mut fetched, mut failed) = (0, 0);
    while fetched < MAX_FETCHES && failed < MAX_FAILURES {
        match context.fetch(&list, &mut batch) {
            Ok(_) => {
                fetched += 1;
                check(&list, &batch);
            }
            Err(error) if error.is_end_of_archive() => break,
            // Reading continues after damage, or tries the same record again.
            Err(_) => failed += 1,
        }
    }
    for indom in list.domains() {
        let _ = context.instance_domain(*indom, Freshness::Current);
    }
    let start = context.label().start;
    for when in [start, Timestamp::default(), end.unwrap_or(start)] {
        if context.set_position(when).is_ok() && context.fetch(&list, &mut batch).is_ok() {
            assert!(batch.timestamp() >= when, "a record from before the position");
        }
    }
    fetched
}

/// The metrics of a list that have numeric values.
fn numbers(context: &mut ArchiveContext, list: &FetchList) -> FetchList {
    use ValueType::{F32, F64, I32, I64, U32, U64};
    let descs = context.lookup_descs(list.pmids()).unwrap_or_default().into_iter().flatten();
    let numbers = descs.filter(|desc| matches!(desc.value_type, I32 | U32 | I64 | U64 | F32 | F64));
    FetchList::new(numbers.map(|desc| desc.pmid).collect(), list.domains().to_vec())
}

/// Interpolates through an archive in both directions. Then reads its records from the
/// end to the start.
fn interpolate(context: &mut ArchiveContext) {
    let (_, list) = everything(context);
    let numbers = numbers(context, &list);
    let start = context.label().start;
    let end = context.end_time().unwrap_or(start);
    let span = (end.seconds_since(start) * 1e9) as i64;
    let step = span / (INTERPOLATED as i64 - 2);
    let mut batch = ResultBatch::default();
    let all = [(start, step), (end, step.saturating_neg()), (start, 1)];
    let all = all.into_iter().flat_map(|window| [(window, &list), (window, &numbers)]);
    for ((from, step), list) in all {
        let mode = Mode::Interpolated { step };
        context.set_mode(mode, Some(from)).expect("archives have this mode");
        for number in 0..INTERPOLATED {
            if number == INTERPOLATED / 2 {
                let mut profile = InstanceProfile::default();
                list.domains().iter().for_each(|indom| profile.exclude(*indom, &[1, 2]));
                context.set_profile(&profile).expect("archives have profiles");
            }
            match context.fetch(list, &mut batch) {
                Ok(_) => check(list, &batch),
                Err(error) if error.is_end_of_archive() => break,
                Err(_) => {}
            }
        }
        context.set_profile(&InstanceProfile::default()).expect("archives have profiles");
    }
    context.set_profile(&InstanceProfile::default()).expect("archives have profiles");
    let mut failed = 0;
    if context.set_mode(Mode::Backward, Some(end)).is_ok() {
        for _ in 0..MAX_FETCHES {
            match context.next_record() {
                Ok(record) => assert!(record.timestamp <= end, "a record from behind"),
                Err(error) if error.is_end_of_archive() || failed > MAX_FAILURES => break,
                Err(_) => failed += 1,
            }
        }
    }
}

/// Asks for all names, texts and labels of an archive, as of its origin.
fn describe(context: &mut ArchiveContext) {
    let (names, list) = everything(context);
    let mut nodes = vec![String::new()];
    let mut leaves = Vec::new();
    while let Some(node) = nodes.pop() {
        for child in context.children(&node).into_iter().flatten().flatten() {
            let separator = if node.is_empty() { "" } else { "." };
            let name = format!("{node}{separator}{}", child.name);
            if child.is_leaf { &mut leaves } else { &mut nodes }.push(name);
        }
    }
    leaves.sort_unstable();
    // The empty name is that of the root.
    let mut below_root: Vec<&String> =
        names.iter().filter(|name| !name.is_empty() && !name.starts_with('.')).collect();
    below_root.sort_unstable();
    assert!(leaves.iter().eq(below_root), "children lead to all names");
    let metrics = list.pmids().iter().map(|pmid| TextSubject::Metric(*pmid));
    let domains = list.domains().iter().map(|indom| TextSubject::Domain(*indom));
    let subjects: Vec<TextSubject> = metrics.chain(domains).collect();
    for kind in [TextKind::OneLine, TextKind::Help] {
        let _ = context.text_of_each(&subjects, kind);
    }
    let mut levels = vec![LabelLevel::Context];
    for pmid in list.pmids() {
        let found = context.names_of(*pmid).expect("names are known").expect("they have names");
        assert!(found.iter().all(|name| names.iter().any(|known| **known == **name)));
        levels.extend([LabelLevel::Domain(pmid.domain()), LabelLevel::Cluster(*pmid)]);
        levels.push(LabelLevel::Item(*pmid));
    }
    for indom in list.domains() {
        levels.extend([LabelLevel::InDom(*indom), LabelLevel::Instances(*indom)]);
    }
    for level in levels {
        let Ok(Ok(sets)) = context.labels(level) else { continue };
        let merged = LabelSet::merged(&sets);
        assert!(merged.labels().all(|label| {
            sets.iter().any(|set| set.labels().any(|other| other.name == label.name))
        }));
    }
}

/// Checks the promises of every fetch.
fn check(list: &FetchList, batch: &ResultBatch) {
    assert_eq!(batch.domains.len(), list.domains().len());
    let [part] = batch.parts() else {
        panic!("a fetch from an archive has one part");
    };
    let mut count = 0;
    for (set, pmid) in part.sets().zip(list.pmids()) {
        assert_eq!(set.pmid, *pmid, "sets come in the order of the list");
        assert!(set.values().all(|(_, value)| value.is_some()), "blocks were checked");
        count += 1;
    }
    assert_eq!(count, list.pmids().len(), "every metric has its set");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small archive of our own: its metadata, its index, and the whole records of
    /// its volume that fit into `limit` bytes, with their ends.
    fn seed(name: &str, label: usize, limit: usize) -> (Vec<u8>, Vec<u8>, Vec<u8>, Vec<usize>) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/archives/");
        let read = |suffix: &str| std::fs::read(format!("{path}{name}.{suffix}")).expect("a seed");
        let mut volume = read("0");
        let mut ends = Vec::new();
        let mut at = label;
        while let Some(word) = volume[at..].first_chunk::<4>() {
            at += usize::try_from(u32::from_be_bytes(*word)).expect("a small record");
            if at > limit {
                break;
            }
            ends.push(at);
        }
        volume.truncate(*ends.last().expect("one record fits"));
        (described(read("meta")), read("index"), volume, ends)
    }

    /// Adds labels and help texts to metadata, for their first metric and its domain,
    /// as of the start of the archive.
    fn described(mut metadata: Vec<u8>) -> Vec<u8> {
        let words = |at: usize, count: usize| metadata[at..at + 4 * count].to_vec();
        let label = if metadata[7] == 3 { 808 } else { 132 };
        let (stamp, kind) = if label == 808 { (words(12, 3), 7) } else { (words(12, 2), 3) };
        let mut at = label;
        while metadata[at + 7] != 1 {
            at += usize::from(u16::from_be_bytes([metadata[at + 2], metadata[at + 3]]));
        }
        let (pmid, indom) = (words(at + 8, 1), words(at + 16, 1));
        let domain = (u32::from_be_bytes([pmid[0], pmid[1], pmid[2], pmid[3]]) >> 22).to_be_bytes();
        let mut add = |kind: u8, parts: &[&[u8]]| {
            let body = parts.concat();
            let length = u32::try_from(body.len() + 12).expect("small").to_be_bytes();
            metadata.extend([&length, &[0, 0, 0, kind][..], &body, &length].concat());
        };
        let set: &[u8] = b"{\"ab\":1}\0\0\0\x01\0\x02\x02\x10\0\x06\0\x01";
        let one = [b"\xff\xff\xff\xff\0\0\0\x08", set].concat();
        let two = [b"\0\0\0\x01\0\0\0\x08", set, b"\0\0\0\x02\0\0\0\0\xff\xff\xff\xea"].concat();
        let levels = [
            (1, &[0xff; 4][..], 1, &one),
            (2, &domain, 1, &one),
            (4, &indom, 1, &one),
            (16, &pmid, 1, &one),
            (32, &indom, 2, &two),
        ];
        for (level, ident, count, sets) in levels {
            add(kind, &[&stamp, &[0, 0, 0, level], ident, &[0, 0, 0, count], sets]);
        }
        for (kind, ident) in [(5, &pmid), (6, &pmid), (9, &indom)] {
            add(4, &[&[0, 0, 0, kind], ident, b"some text\0"]);
        }
        metadata
    }

    #[test]
    fn labels_and_texts_of_the_seeds_are_found() {
        for (name, label) in SEEDS {
            let (metadata, index, volume, _) = seed(name, label, label + 3500);
            let files = files_of(&blob(&metadata, &index, &volume)).expect("an archive");
            let mut context = ArchiveContext::from_files(files).expect("a good archive");
            let context_labels = context.labels(LabelLevel::Context).expect("read").expect("known");
            assert_eq!(context_labels[0].json(), "{\"ab\":1}", "{name}");
            let names = context.traverse("").expect("names");
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let pmids = context.lookup_names(&names).expect("known").into_iter().flatten();
            let pmids: Vec<_> = pmids.collect();
            let subjects: Vec<_> = pmids.iter().map(|pmid| TextSubject::Metric(*pmid)).collect();
            let texts = context.text_of_each(&subjects, TextKind::Help).expect("read");
            assert!(texts.iter().any(|text| text.as_deref() == Ok("some text")), "{name}");
            let levels: Vec<_> = pmids.iter().map(|pmid| LabelLevel::Item(*pmid)).collect();
            let labels = context.labels_of_each(&levels).expect("read");
            assert_eq!(labels.into_iter().flatten().flatten().count(), 1, "{name}");
        }
    }

    fn blob(metadata: &[u8], index: &[u8], volume: &[u8]) -> Vec<u8> {
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).expect("small").to_be_bytes();
        [&size(metadata), &size(index), metadata, index, volume].concat()
    }

    fn fetched(data: &[u8]) -> Option<usize> {
        ArchiveContext::from_files(files_of(data)?).ok().map(|mut context| walk(&mut context))
    }

    const SEEDS: [(&str, usize); 2] = [("own-dyn", 808), ("own-dyn2", 132)];

    #[test]
    fn archives_cut_anywhere_give_a_prefix_or_an_error() {
        for (name, label) in SEEDS {
            let (metadata, index, volume, ends) = seed(name, label, label + 3500);
            for cut in 0..=volume.len() {
                let whole = ends.iter().filter(|end| **end <= cut).count();
                let expected = (cut > label).then_some(whole);
                let data = blob(&metadata, &index, &volume[..cut]);
                assert_eq!(fetched(&data), expected, "{name}: volume cut at {cut}");
                let Some(Ok(mut context)) = files_of(&data).map(ArchiveContext::from_files) else {
                    continue;
                };
                let end = context.end_time().map_err(|error| error.status());
                assert_eq!(end.is_ok(), whole > 0, "{name}: volume cut at {cut}");
                if let Ok(end) = end {
                    let list = FetchList::new(Vec::new(), Vec::new());
                    let mut batch = ResultBatch::default();
                    let mut last = None;
                    while context.fetch(&list, &mut batch).is_ok() {
                        last = Some(batch.timestamp());
                    }
                    assert_eq!(last, Some(end), "{name}: volume cut at {cut}");
                }
            }
            for cut in 0..=metadata.len() {
                let data = blob(&metadata[..cut], &index, &volume);
                let count = fetched(&data);
                assert!(count.is_none_or(|count| count <= ends.len()), "{name}: cut at {cut}");
                // Labels and texts are at the end.
                if cut + 600 > metadata.len()
                    && let Some(Ok(mut context)) = files_of(&data).map(ArchiveContext::from_files)
                {
                    describe(&mut context);
                }
            }
            for cut in 0..=index.len() {
                let data = blob(&metadata, &index[..cut], &volume);
                assert_eq!(fetched(&data), Some(ends.len()), "{name}: index cut at {cut}");
            }
        }
    }

    /// Moves the start in a label of version 3 by `steps` times 256 seconds.
    fn later(bytes: &[u8], steps: u8) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        // The third byte of the start's low word, which has room.
        bytes[14] += steps;
        bytes
    }

    #[test]
    fn two_archives_with_flipped_bits_never_panic() {
        let (metadata, index, volume, ends) = seed("own-dyn", 808, 808 + 3500);
        let first = blob(&metadata, &index, &volume);
        // Starts 256 seconds later, in its labels and records.
        let mut shifted = later(&volume, 1);
        let starts = std::iter::once(808).chain(ends.iter().copied().take(ends.len() - 1));
        starts.for_each(|start| shifted[start + 6] += 1);
        let second = blob(&later(&metadata, 1), &later(&index, 1), &shifted);
        let size = |blob: &[u8]| u32::try_from(blob.len()).expect("small").to_be_bytes();
        let good = [&size(&first)[..], &first, &second].concat();
        let mut context = several_of(&good).expect("two").expect("they fit together");
        assert_eq!(walk(&mut context), 2 * ends.len());
        assert!(context.take_warnings().is_empty());
        let mut state = 0x5eed_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).expect("31 bits") % below
        };
        for _ in 0..700 {
            let mut data = good.clone();
            for _ in 0..=random(4) {
                let at = random(data.len());
                data[at] ^= 1 << random(8);
            }
            data.truncate(data.len() - random(3) * random(200));
            fuzz_archives(&data);
        }
    }

    #[test]
    fn flipped_bits_and_words_never_panic() {
        // A linear congruential generator: every run has the same inputs.
        let mut state = 0x5eed_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).expect("31 bits") % below
        };
        const WORDS: [u32; 8] =
            [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_fffe, 0x1000_0000, 24];
        for (name, label) in SEEDS {
            let (metadata, index, volume, _) = seed(name, label, label + 7000);
            let good = blob(&metadata, &index, &volume);
            for round in 0..1500 {
                let mut data = good.clone();
                for _ in 0..=random(3) {
                    let at = random(data.len() - 4);
                    if round % 3 == 0 {
                        let word = WORDS[random(WORDS.len())];
                        data[at & !3..][..4].copy_from_slice(&word.to_be_bytes());
                    } else {
                        data[at] ^= 1 << random(8);
                    }
                }
                fuzz_archive(&data);
            }
        }
        fuzz_archive(b"");
        fuzz_archive(&[0xff; 64]);
    }
}
