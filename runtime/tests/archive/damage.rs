//! Damaged archives: what opening and reading them gives.

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{PmStatus, Timestamp};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource};

use crate::suite::{all_installed, installed};

/// What becomes of one damaged archive.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Opening fails with this status.
    Refused(i32),
    /// Records that can be read before the first error or the end, the
    /// status met there, and the time of the end or a status.
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

/// What libpcp makes of the damaged archives of its test suite, and where
/// this reader knows better, what that is.
const DAMAGED: &[(&str, Outcome)] = &[
    ("541380", LABEL),
    ("ace", LABEL),
    ("badlabel-0", whole(9, 1_424_488_832, 261_978_000)),
    ("badlabel-1", LABEL),
    // Its index has a bad label: libpcp refuses it, here it only counts as missing.
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
fn metadata_that_end_within_a_record_are_refused_where_nothing_is_passed_over() {
    let Some(path) = installed("badarchives", "badlen-9") else { return };
    let mut context = ArchiveContext::open(&path).expect("it is read up to the cut");
    let told = context.take_warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    let [told] = &told[..] else { panic!("{told:?}") };
    assert!(told.contains("badlen-9.meta: at byte "), "{told}");
    let mut context = ArchiveContext::open(&path).expect("it is read up to the cut");
    let error = context.pass_over_nothing().expect_err("it is not passed over");
    assert_eq!(error.status(), PmStatus::LOGREC);
}

#[test]
fn reading_goes_on_behind_damage_and_reports_a_gap() {
    let Some(path) = installed("badarchives", "badlen-1") else { return };
    let mut context = ArchiveContext::open(&path).expect("the label is good");
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
        ArchiveContext::open(&path).unwrap_or_else(|error| panic!("{error}"));
    }
}
