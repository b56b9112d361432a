//! Limits the memory of interpolation, whatever the length of the archive and the distance of the
//! values.
//!
//! Input: the time of a fetch among the covered records. Output: which of these stay.
//! Forgotten records are read again if they are needed. `far` finds values that are too
//! far away to remember all records up to them.

use std::ops::Range;

use crate::archive::interpolation::Interpolator;
use crate::archive::interpolation::coverage::{Ordinal, Side};
use crate::archive::interpolation::lane::Cut;
use crate::archive::order::Travel;

/// Limits of the remembered data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Number of records kept on the side that time moves away from. Searches there are
    /// rare, and each record needs 16 bytes per metric.
    kept: Ordinal,
    /// Number of records kept if the archive is followed. More are kept to learn how often
    /// metrics occur, which decides how long their next values are awaited.
    kept_to_learn: Ordinal,
    /// Number of records covered on each side even if there is no room for more.
    covered: Ordinal,
    /// Maximum number of records, value sets and instances in distinct lists of
    /// instances. Each takes a few dozen bytes.
    remembered: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room { kept: 8, kept_to_learn: 256, covered: 16, remembered: 256 * 1024 }
    }
}

impl Interpolator {
    /// True if more is remembered than the limit.
    fn is_crowded(&self) -> bool {
        self.coverage.len() + self.metrics.size() > self.room.remembered
    }

    /// True if more records may be covered on `side`. Backwards, records ahead are soon
    /// forgotten, and would be covered again for each instance that has left.
    pub(super) fn may_extend(&self, side: Side, cut: &Cut) -> bool {
        let covered = match side {
            Side::Ahead => self.coverage.end() - cut.after,
            Side::Behind => cut.from - self.coverage.first(),
        };
        let is_left_behind = side == Side::Ahead && self.coverage.travel() == Travel::Backward;
        covered < self.room.covered || !is_left_behind && !self.is_crowded()
    }

    /// Forgets records on the other side during a long way to a time on `side`.
    pub(super) fn make_room(&mut self, side: Side, time: f64) {
        let kept = self.room.covered;
        let (first, end) = (self.coverage.first(), self.coverage.end());
        if end - first <= 2 * kept || !self.is_crowded() {
            return;
        }
        // One of the kept records has to be on the near side of the time.
        let time_of = |ordinal| self.coverage.record(ordinal).map(|record| record.time);
        match side {
            Side::Ahead if time_of(end - kept).is_some_and(|kept| kept < time) => {
                self.keep(end - kept..end);
            }
            Side::Behind if time_of(first + kept).is_some_and(|kept| kept > time) => {
                self.keep(first..first + kept + 1);
            }
            Side::Ahead | Side::Behind => {}
        }
    }

    /// Forgets records that are far away on the side that time moves away from.
    pub(super) fn prune(&mut self, cut: &Cut) {
        let kept = match self.coverage.is_followed() && !self.is_crowded() {
            true => self.room.kept_to_learn,
            false => self.room.kept,
        };
        // Forgetting several at a time is cheaper.
        let limit = kept + kept / 2;
        let (first, end) = (self.coverage.first(), self.coverage.end());
        let is_backward = self.phase.last().is_some_and(|last| cut.time < last);
        if is_backward && end - cut.after > limit {
            self.keep(first..cut.after + kept);
        } else if !is_backward && cut.from - first > limit {
            self.keep(cut.from - kept..end);
        }
    }

    /// Forgets all records except those in a range.
    fn keep(&mut self, records: Range<Ordinal>) {
        self.coverage.keep_from(records.start);
        self.coverage.keep_up_to(records.end);
        self.metrics.keep(self.coverage.first()..self.coverage.end());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::archive::{ArchiveContext, Version};
    use crate::archive_writer::{ArchiveWriter, WriterOptions};
    use pmderive_core::model::{
        InDom, InstanceDomain, MetricDesc, Pmid, RawValue, Semantics, Timestamp, Units, Value,
        ValueType,
    };
    use pmderive_core::result::{FetchResult, InstanceValue, MetricValues, ResultBatch};
    use pmderive_core::source::{FetchList, FetchSource, MetadataSource, Mode};

    const NARROW: Room = Room { kept: 3, kept_to_learn: 3, covered: 3, remembered: 0 };

    /// Everything that a scan delivers, and the error that ended it.
    fn scan(path: &Path, step: i64, room: Room) -> (Vec<FetchResult>, String) {
        let (delivered, end, _) = scan_and_count(path, step, room);
        (delivered, end)
    }

    /// Everything that a scan delivers, its end, and the number of records that were looked
    /// at far from the time.
    fn scan_and_count(path: &Path, step: i64, room: Room) -> (Vec<FetchResult>, String, usize) {
        let mut context = ArchiveContext::open(path).expect("a good archive");
        let names = context.traverse("").expect("it has names");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let pmids = context.lookup_names(&names).expect("it knows its names");
        let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
        let from = match step > 0 {
            true => context.label().start,
            false => context.end_time().expect("it has records"),
        };
        context.set_mode(Mode::Interpolated { step }, Some(from)).expect("archives have it");
        let mut delivered = Vec::new();
        let mut batch = ResultBatch::default();
        loop {
            match context.fetch(&list, &mut batch) {
                Ok(_) => delivered.push(FetchResult::of_batch(&batch, Default::default())),
                Err(error) => {
                    let passed = context.interpolator.as_ref().map_or(0, |used| used.far.passed);
                    return (delivered, error.to_string(), passed);
                }
            }
            context.interpolator.as_mut().expect("it was used").room = room;
        }
    }

    /// An archive with a record every second. In each record, one instance leaves for
    /// good and another one comes.
    fn write_churn(path: &Path, records: i32) {
        const ALIVE: i32 = 20;
        let (pmid, indom) = (Pmid::new(60, 0, 1), InDom::new(60, 1));
        let time = |record: i32| Timestamp::new(1_700_000_000 + i64::from(record), 0);
        let options = WriterOptions {
            version: Version::V3,
            start: time(0),
            host: "churn.example".into(),
            timezone: "UTC".into(),
            zoneinfo: "".into(),
            pid: 1,
            volume_bytes: None,
        };
        let mut writer = ArchiveWriter::create(path, options).expect("a new archive");
        let (value_type, semantics) = (ValueType::U64, Semantics::Counter);
        let desc =
            MetricDesc { pmid, value_type, indom: Some(indom), semantics, units: Units::default() };
        writer.describe(&desc, &["churn.metric"]).expect("it is new");
        for record in 0..records {
            let alive = record..record + ALIVE;
            let names = alive.clone().map(|id| (id, format!("process {id}").into())).collect();
            writer
                .instances(time(record), indom, &InstanceDomain::new(names))
                .expect("later than before");
            let value = |instance: i32| InstanceValue {
                instance,
                value: RawValue::encode(&Value::U64((record * instance).unsigned_abs().into())),
            };
            let sets = vec![MetricValues { pmid, outcome: Ok(alive.map(value).collect()) }];
            let result = FetchResult { timestamp: time(record), sets, ..FetchResult::default() };
            writer.record(&result).expect("all is described");
        }
        writer.finish().expect("there is room");
    }

    /// The rest of the archive is not read again for each instance that leaves.
    #[test]
    fn instances_that_leave_cost_no_search_each() {
        const RECORDS: i32 = 400;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("churn");
        write_churn(&path, RECORDS);
        for step in [250_000_000, 1_500_000_000, -250_000_000, -1_500_000_000] {
            let (delivered, end, far) = scan_and_count(&path, step, Room::default());
            let wide = (delivered, end);
            // Backwards, covered records are forgotten, however much room there is.
            assert_eq!(far > 0, step < 0, "{step}: {far} records");
            assert!(far < 4 * RECORDS as usize, "{step}: {far} records");
            let (delivered, end, passed) = scan_and_count(&path, step, NARROW);
            assert!((delivered, end) == wide, "{step}");
            assert!(wide.0.len() > 200, "{}", wide.0.len());
            assert!(passed > 0, "{step}: nothing was far away");
            assert!(passed < 4 * RECORDS as usize, "{step}: {passed} records");
        }
    }

    /// The same values are delivered whether little or much is remembered.
    #[test]
    fn narrow_room_changes_nothing() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/archives");
        let mut scans = 0;
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is readable").path();
            if path.extension().is_none_or(|extension| extension != "index") {
                continue;
            }
            let base = path.with_extension("");
            for step in [300_000_000, 7_000_000_000, -300_000_000, -7_000_000_000] {
                let wide = scan(&base, step, Room::default());
                for kept in [1, 3] {
                    let room = Room { kept, kept_to_learn: kept, covered: kept, remembered: 0 };
                    assert!(scan(&base, step, room) == wide, "{base:?} {step} {kept}");
                    scans += 1;
                }
            }
        }
        assert!(scans > 20, "{scans}");
    }
}
