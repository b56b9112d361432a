//! Recordings of a source whose times repeat: an instance domain cannot change twice at one time,
//! so the next sample brings what was held back.

use std::sync::Arc;

use pmderive::record::{Origin, Recorder, Recording};
use pmderive::runtime::archive::{ArchiveContext, Version};
use pmderive::runtime::memory::{MemoryMetadata, MemorySource};
use pmderive::runtime::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive::runtime::result::{ResultBatch, ResultWriter};
use pmderive::runtime::source::{FetchEvents, FetchList};
use pmderive::{Definitions, Engine, Session};

const DOMAIN: InDom = InDom::new(400, 1);
const PMID: Pmid = Pmid::new(400, 0, 1);

/// Seconds and numbers of instances of the samples. The third changes the domain once more at
/// the time of the second; the fourth has the same instances.
const SAMPLES: [(i64, InstId); 4] = [(0, 10), (1, 11), (1, 12), (2, 12)];

#[test]
fn the_next_sample_brings_a_change_that_was_held_back() {
    let mut metadata = MemoryMetadata::default();
    let desc = MetricDesc {
        pmid: PMID,
        value_type: ValueType::U32,
        indom: Some(DOMAIN),
        semantics: Semantics::Instant,
        units: Units::NONE,
    };
    metadata.add_metric("shop.load", desc);
    let mut samples = SAMPLES.into_iter();
    let feed = move |_: &FetchList, metadata: &mut MemoryMetadata, batch: &mut ResultBatch| {
        let (second, count) = samples.next().expect("no more than these");
        let names = (0..count).map(|id| (id, format!("instance {id}").into()));
        metadata.set_instances(DOMAIN, names.collect());
        let time = Timestamp::new(1_700_000_000 + second, 0);
        let mut writer = ResultWriter::new(batch.add_part(), time);
        writer.set(PMID);
        (0..count).for_each(|id| writer.in_place(id, 7));
        Ok(FetchEvents::default())
    };
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("again");
    let source = MemorySource::new("shop", metadata, feed);
    let session = Session::new(Engine::default(), Arc::new(Definitions::default()), source)
        .expect("one language");
    let recording = Recording {
        base: base.clone(),
        version: Version::V3,
        volume_bytes: None,
        origin: Origin {
            host: "shop".into(),
            timezone: "UTC".into(),
            zoneinfo: "".into(),
            pid: 1,
            start: None,
        },
        names: vec!["shop.load".into()],
        with_operands: false,
        end: None,
        is_archive: false,
        label_times: Vec::new(),
        records: None,
    };
    let mut recorder = Recorder::new(session, recording).expect("the metric is there");
    for _ in SAMPLES {
        recorder.sample().expect("each sample is recorded");
    }
    recorder.finish().expect("there are records");
    let mut archive = ArchiveContext::open(&base).expect("an archive");
    let counts: Vec<usize> = std::iter::from_fn(|| archive.next_record().ok())
        .filter_map(|record| record.sets.first()?.outcome.as_ref().ok().map(Vec::len))
        .collect();
    // Values of instances without a name are left out.
    assert_eq!(counts, [10, 11, 11, 12]);
}
