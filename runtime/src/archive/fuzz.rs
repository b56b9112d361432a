//! Entry point for fuzzing: a whole archive from one blob.
//!
//! In: arbitrary bytes. Out: nothing, but every path from opening to the last
//! fetch was taken. Nothing touches the file system.

use std::path::PathBuf;
use std::sync::Arc;

use crate::archive::context::ArchiveContext;
use crate::archive::files::{ArchiveFiles, Member};
use crate::model::Timestamp;
use crate::result::ResultBatch;
use crate::source::{FetchList, FetchSource, Freshness, MetadataSource};

/// Fetches that one input may cost.
const MAX_FETCHES: usize = 10_000;

/// The archive in a blob: two big-endian words of 4 bytes, the sizes of
/// metadata and index, then the metadata, the index, and volume 0.
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

/// Opens the archive in `data` and does everything with it that a context
/// offers. Never panics, whatever the bytes are.
#[doc(hidden)]
pub fn fuzz_archive(data: &[u8]) {
    let Some(Ok(mut context)) = files_of(data).map(ArchiveContext::from_files) else {
        return;
    };
    walk(&mut context);
}

/// Reads everything in an archive. Gives the number of fetches that succeeded.
pub(super) fn walk(context: &mut ArchiveContext) -> usize {
    let names = context.traverse("").unwrap_or_default();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut pmids: Vec<_> =
        context.lookup_names(&names).unwrap_or_default().into_iter().flatten().collect();
    pmids.sort_unstable();
    pmids.dedup();
    let descs = context.lookup_descs(&pmids).unwrap_or_default();
    let mut domains: Vec<_> = descs.into_iter().flatten().filter_map(|desc| desc.indom).collect();
    domains.sort_unstable();
    domains.dedup();
    let end = context.end_time();
    let list = FetchList::new(pmids, domains);
    let mut batch = ResultBatch::default();
    let mut fetched = 0;
    for _ in 0..MAX_FETCHES {
        match context.fetch(&list, &mut batch) {
            Ok(_) => {
                fetched += 1;
                check(&list, &batch);
            }
            Err(error) if error.is_end_of_archive() => break,
            // Reading goes on behind damage, or tries the same record again.
            Err(_) => continue,
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

/// What every fetch promises.
fn check(list: &FetchList, batch: &ResultBatch) {
    assert_eq!(batch.domains.len(), list.domains().len());
    let [part] = batch.parts() else {
        panic!("a fetch from an archive has one part");
    };
    let mut count = 0;
    for (set, pmid) in part.sets().zip(list.pmids()) {
        assert_eq!(set.pmid, *pmid, "sets come in the order of the list");
        if set.in_blocks {
            for lane in set.lanes() {
                assert!(part.block(lane.word).is_some(), "blocks were checked");
            }
        }
        count += 1;
    }
    assert_eq!(count, list.pmids().len(), "every metric has its set");
}
