//! Damaged archives: the results of opening and reading them.

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{PmStatus, Pmid, Timestamp, ValueType};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode};

use crate::suite::{all_installed, installed, own};

/// The result of reading one damaged archive.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Opening fails with this status.
    Refused(i32),
    /// Number of readable records before the first error or the end, the status
    /// there, and the time of the end or a status.
    Read { records: usize, status: i32, end: Result<Timestamp, i32> },
}

use Outcome::{Read, Refused};

const LABEL: Outcome = Refused(-12372);
const CORRUPT: Outcome = Refused(-12373);
const NO_DATA: Outcome = Refused(-12354);

/// Readable up to the end of the archive.
const fn whole(records: usize, sec: i64, nsec: u32) -> Outcome {
    Read { records, status: -12370, end: Ok(Timestamp { sec, nsec }) }
}

/// Readable up to damage.
const fn part(records: usize, end: Result<Timestamp, i32>) -> Outcome {
    Read { records, status: -12373, end }
}

/// libpcp's results for the damaged archives of its test suite. Where this reader knows better, the
/// table has its own results.
const DAMAGED: &[(&str, Outcome)] = &[
    ("541380", LABEL),
    ("ace", LABEL),
    ("badlabel-0", whole(9, 1_424_488_832, 261_978_000)),
    ("badlabel-1", LABEL),
    // The label of its index is bad: libpcp refuses it, here the index only counts as missing.
    ("badlabel-2", whole(9, 1_424_488_832, 261_978_000)),
    ("badlen-0", whole(9, 1_290_580_168, 472_149_000)),
    // The first record's lengths differ; the eight others can be read behind it.
    ("badlen-1", part(0, Ok(Timestamp { sec: 1_290_580_168, nsec: 472_149_000 }))),
    ("badlen-10", LABEL),
    ("badlen-11", Read { records: 0, status: -12370, end: Err(-12373) }),
    ("badlen-2", part(0, Err(-12373))),
    ("badlen-3", part(0, Err(-12373))),
    ("badlen-4", NO_DATA),
    ("badlen-5", LABEL),
    ("badlen-6", LABEL),
    ("badlen-7", LABEL),
    ("badlen-8", LABEL),
    // The metadata end within a record: libpcp refuses that.
    ("badlen-9", whole(9, 1_309_730_334, 314_406_000)),
    ("badlog-1", part(2, Ok(Timestamp { sec: 902_428_473, nsec: 248_687_000 }))),
    // One record is stamped three years too early.
    ("badlog-3", whole(8, 902_428_480, 258_477_000)),
    // The label claims a later start than that of the first records.
    ("badlog-4", whole(6, 902_428_480, 258_477_000)),
    ("badmeta-1", whole(9, 902_428_480, 258_477_000)),
    ("badmeta-2", whole(9, 902_428_480, 258_477_000)),
    ("badmeta-3", CORRUPT),
    ("badmeta-4", CORRUPT),
    ("badmeta-5", CORRUPT),
    ("badti-1", whole(9, 902_428_480, 258_477_000)),
    ("badti-2", whole(9, 902_428_480, 258_477_000)),
    ("badti-3", whole(9, 902_428_480, 258_477_000)),
    // Its index points into the label: libpcp reads nothing.
    ("badti-4", whole(9, 902_428_480, 258_477_000)),
    ("corrupted_labelset", CORRUPT),
    ("empty", NO_DATA),
    ("ok-truncbin", part(416, Ok(Timestamp { sec: 1_316_673_609, nsec: 688_004_000 }))),
    ("bozo.client_v2.meta.bad", Refused(-12375)),
];

fn outcome(path: &std::path::Path) -> Outcome {
    let mut context = match ArchiveContext::open(path) {
        Ok(context) => context,
        Err(error) => return Refused(error.status().0),
    };
    let end = context.end_time().map_err(|error| error.status().0);
    // A list without metrics gets every record.
    let list = FetchList::new(Vec::new(), Vec::new());
    let mut batch = ResultBatch::default();
    let mut records = 0;
    loop {
        match context.fetch(&list, &mut batch) {
            Ok(_) => records += 1,
            Err(error) => return Read { records, status: error.status().0, end },
        }
    }
}

#[test]
fn damaged_archives_give_what_libpcp_gives_or_more() {
    for (name, expected) in DAMAGED {
        let Some(path) = installed("badarchives", name) else { return };
        assert_eq!(outcome(&path), *expected, "{name}");
    }
}

#[test]
fn some_are_refused_where_nothing_is_passed_over() {
    for (name, file, is_told, status) in [
        // The metadata end within a record.
        ("badlen-9", ".meta", true, PmStatus::LOGREC),
        ("badlabel-2", ".index", false, PmStatus::LABEL),
    ] {
        let Some(path) = installed("badarchives", name) else { return };
        let open = || ArchiveContext::open(&path).expect("the rest can be read");
        let place = format!("{name}{file}: at byte ");
        let told = open().take_warnings();
        assert_eq!(told.len(), usize::from(is_told), "{name}: {told:?}");
        assert!(told.iter().all(|error| error.to_string().contains(&place)), "{told:?}");
        let error = open().pass_over_nothing().expect_err(name);
        assert_eq!(error.status(), status, "{error}");
        assert!(error.to_string().contains(&place), "{error}");
    }
}

#[test]
fn an_index_is_refused_as_by_libpcp_where_nothing_is_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("a");
    let read = |suffix: &str| std::fs::read(own(&format!("own-dyn2.{suffix}"))).expect("a file");
    for suffix in ["0", "meta"] {
        std::fs::write(base.with_extension(suffix), read(suffix)).expect("space");
    }
    let checked = |index: &[u8]| {
        std::fs::write(base.with_extension("index"), index).expect("space");
        let mut context = ArchiveContext::open(&base).expect("the index only saves time");
        context.pass_over_nothing().map_err(|error| error.status())
    };
    let index = read("index");
    let other = |at: usize| {
        let mut index = index.clone();
        index[at] ^= 1;
        index
    };
    for (index, expected) in [
        (&index[..], Ok(())),
        (&index[..133], Ok(())),
        (&index[..132], Err(PmStatus::NODATA)),
        (&index[..131], Err(PmStatus::LABEL)),
        (&index[..7], Err(PmStatus::NODATA)),
        (&index[..0], Err(PmStatus::NODATA)),
        // Pid, start and host.
        (&other(11), Err(PmStatus::LABEL)),
        (&other(15), Ok(())),
        (&other(24), Err(PmStatus::LABEL)),
    ] {
        assert_eq!(checked(index), expected);
    }
}

#[test]
fn without_a_record_there_are_no_values_but_damage_is_told() {
    for (name, expected) in [
        // A single byte stands behind the label.
        ("badlen-11", [None, Some(PmStatus::EOL)]),
        ("badlen-2", [Some(PmStatus::LOGREC), Some(PmStatus::LOGREC)]),
        ("badlen-3", [Some(PmStatus::LOGREC), Some(PmStatus::LOGREC)]),
    ] {
        let Some(path) = installed("badarchives", name) else { return };
        let mut context = ArchiveContext::open(path).expect("the label is good");
        let mode = Mode::Interpolated { step: 1_000_000_000 };
        context.set_mode(mode, None).expect("archives have it");
        let list = crate::suite::everything(&mut context);
        let mut batch = ResultBatch::default();
        let found = expected.map(|_| match context.fetch(&list, &mut batch) {
            Ok(_) => None,
            Err(error) => Some(error.status()),
        });
        assert_eq!(found, expected, "{name}");
    }
}

/// Values that are not encoded as the type of their metric say nothing, and
/// the metric fails between records; those beside it do not.
#[test]
fn between_values_of_another_type_there_is_a_status() {
    let folder = tempfile::tempdir().expect("room for an archive");
    let (original, copy) = (own("own-fleet"), folder.path().join("copy"));
    for suffix in ["0", "index", "meta"] {
        let to = copy.with_extension(suffix);
        std::fs::copy(original.with_extension(suffix), to).expect("the files are there");
    }
    let mut context = ArchiveContext::open(&original).expect("a good archive");
    let names = ["disk.dev.read", "disk.dev.total", "kernel.all.load"];
    let pmids = context.lookup_names(&names).expect("it knows them");
    let pmids: Vec<Pmid> = pmids.into_iter().flatten().collect();
    assert_eq!(pmids.len(), names.len());
    // In the metadata the metric's type follows its identifier, and this the kind of record.
    let metadata = copy.with_extension("meta");
    let mut bytes = std::fs::read(&metadata).expect("it was copied");
    let record = [1u32.to_be_bytes(), pmids[0].0.to_be_bytes()].concat();
    let at = bytes.windows(8).position(|window| window == record).expect("it is described") + 8;
    bytes[at..at + 4].copy_from_slice(&ValueType::I32.code().to_be_bytes());
    std::fs::write(&metadata, bytes).expect("it can be written");

    let mut context = ArchiveContext::open(&copy).expect("nothing is wrong with its form");
    let start = context.label().start;
    let from = Timestamp::new(start.sec + 3, i64::from(start.nsec) + 1);
    context.set_mode(Mode::Interpolated { step: 10_000_000 }, Some(from)).expect("they have it");
    let list = FetchList::new(pmids, Vec::new());
    let mut batch = ResultBatch::default();
    for _ in 0..5 {
        context.fetch(&list, &mut batch).expect("the others are good");
        let counts: Vec<_> = batch.parts()[0].sets().map(|set| set.count).collect();
        assert_eq!(counts[0], Err(PmStatus::LOGREC));
        assert!(counts[1].is_ok_and(|count| count > 0) && counts[2] == Ok(3), "{counts:?}");
    }
}

#[test]
fn reading_goes_on_behind_damage_and_reports_a_gap() {
    let Some(path) = installed("badarchives", "badlen-1") else { return };
    let mut context = ArchiveContext::open(path).expect("the label is good");
    let list = FetchList::new(Vec::new(), Vec::new());
    let mut batch = ResultBatch::default();
    let error = context.fetch(&list, &mut batch).expect_err("the first record is damaged");
    assert!(
        error
            .to_string()
            .ends_with("badlen-1.0: at byte 260: data record.trailer: 128 instead of 132"),
        "{error}"
    );
    let gaps: Vec<bool> =
        std::iter::from_fn(|| Some(context.fetch(&list, &mut batch).ok()?.gap)).collect();
    assert_eq!(gaps, [true, false, false, false, false, false, false, false]);
}

#[test]
fn every_sound_archive_of_the_test_suite_opens() {
    for path in all_installed("archives") {
        ArchiveContext::open(path).unwrap_or_else(|error| panic!("{error}"));
    }
}
