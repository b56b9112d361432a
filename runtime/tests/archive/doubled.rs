//! Records in which an instance or a metric is twice, which no writer of archives makes:
//! interpolation takes the last one, as libpcp does.

use std::fs;
use std::path::{Path, PathBuf};

use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::model::{
    InDom, InstId, InstanceDomain, MetricDesc, Pmid, RawValue, Semantics, Timestamp, Units,
    ValueType,
};
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_testkit::archives;

use crate::libpcp::{Case, Kind, Libpcp, RULES, own_answers};

const METRIC: Pmid = Pmid::new(242, 0, 1);
const INDOM: InDom = InDom::new(242, 1);

/// A metric and an instance that are renamed once they are written.
const OTHER_METRIC: Pmid = Pmid::new(242, 0, 1002);
const OTHER_INSTANCE: InstId = 7777;

/// A value set: in the second number of a value is what it adds to ten times the second.
type Set = (Pmid, &'static [(InstId, i64)]);

/// Writes an archive with these sets every second, from 1000 to 1010.
fn write(base: &Path, semantics: Semantics, sets: &[Set]) {
    let options = archives::options("doubled", Timestamp::new(1000, 0));
    let mut writer = ArchiveWriter::create(base, options).expect("a new archive");
    for (pmid, name) in [(METRIC, "test.one"), (OTHER_METRIC, "test.two")] {
        let (value_type, indom) = (ValueType::U32, Some(INDOM));
        let desc = MetricDesc { pmid, value_type, indom, semantics, units: Units::NONE };
        writer.describe(&desc, &[name]).expect("a good metric");
    }
    let names = [(0, "a"), (1, "b"), (OTHER_INSTANCE, "c")];
    let domain = InstanceDomain::new(names.map(|(id, name)| (id, name.into())).to_vec());
    writer.instances(Timestamp::new(1000, 0), INDOM, &domain).expect("it is new");
    for second in 1000..=1010 {
        let value = |(instance, more): &(InstId, i64)| {
            let bits = u32::try_from(10 * second + more).expect("small");
            InstanceValue { instance: *instance, value: RawValue::InPlace(bits) }
        };
        let set = |(pmid, values): &Set| MetricValues {
            pmid: *pmid,
            outcome: Ok(values.iter().map(value).collect()),
        };
        let timestamp = Timestamp::new(second, 0);
        let sets = sets.iter().map(set).collect();
        let result = FetchResult { timestamp, sets, ..FetchResult::default() };
        writer.record(&result).expect("room for it");
    }
    writer.finish().expect("room for it");
    let volume = PathBuf::from(format!("{}.0", base.display()));
    let mut bytes = fs::read(&volume).expect("it was written");
    let renamed = [(OTHER_METRIC.0, METRIC.0), (OTHER_INSTANCE.cast_unsigned(), 1)];
    for word in bytes.as_chunks_mut::<4>().0 {
        let to = renamed.iter().find(|(from, _)| from.to_be_bytes() == *word);
        *word = to.map_or(*word, |(_, to)| to.to_be_bytes());
    }
    fs::write(&volume, bytes).expect("room for it");
}

#[test]
fn the_last_of_two_values_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let oracle = Libpcp::new();
    let instance: &[Set] = &[(METRIC, &[(OTHER_INSTANCE, 1), (0, 3), (1, 7)])];
    let metric: &[Set] = &[(METRIC, &[(0, 2), (1, 1)]), (OTHER_METRIC, &[(0, 3), (1, 7)])];
    for (name, sets) in [("instance", instance), ("metric", metric)] {
        for semantics in [Semantics::Counter, Semantics::Instant, Semantics::Discrete] {
            let archive = folder.path().join(format!("{name}-{semantics}"));
            write(&archive, semantics, sets);
            // Times whose nanoseconds add up to 10^9 have no carry in libpcp.
            let series = [(1002, 310_000_000), (1002, 1_000_000_000), (1005, -300_000_000)];
            let cases = series.map(|(start, step)| Case {
                archive: archive.clone(),
                kind: Kind::Interpolated { step },
                start: Timestamp::new(start, 100_000_000),
                count: 6,
                pmids: vec![METRIC],
                admitted: Vec::new(),
            });
            let got = cases.each_ref().map(|case| own_answers(case, RULES));
            // At 1002.1: 10023 and 10027, or one more each as a tenth of the way is over.
            let more = u32::from(semantics == Semantics::Counter);
            let first = got[0][1].split(' ').skip(2).collect::<Vec<_>>();
            let want = [(0, 10023 + more), (1, 10027 + more)];
            let want = want.map(|(id, bits)| format!("{id}={bits:x}"));
            assert!(want.iter().all(|value| first.contains(&&**value)), "{name}: {first:?}");
            if let Some(oracle) = &oracle {
                assert_eq!(got.to_vec(), oracle.answers(&cases, &[]), "{name} {semantics}");
            }
        }
    }
}
