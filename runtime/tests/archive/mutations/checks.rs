//! Properties of a damaged archive, and the undamaged one to compare with.

use std::collections::BTreeSet;
use std::ops::Range;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{PmStatus, Pmid};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode, SourceError};

use super::allowed::Allowed;
use super::damage::Damage;
use super::subject::{Fetched, Subject, at_times, backward, read, records_of, word};

impl Subject {
    /// An error names its file, which is one of this archive's, and where in
    /// it the damage is.
    pub fn check_error(&self, error: &SourceError, suffix: &str, size: usize, what: &str) {
        let text = error.to_string();
        // A faulty label of a volume is found by comparing it with another.
        let base = self.base().display().to_string();
        let rest = text.strip_prefix(&base).unwrap_or_else(|| panic!("{what}: {text}"));
        if rest == ": no data volume holds a complete record" {
            return;
        }
        let is_named = rest.starts_with(&format!(".{suffix}: ")) || text.contains(": label.");
        assert!(is_named, "{what}: {text}");
        let Some(rest) = rest.split_once("at byte ") else {
            assert!(error.status() == PmStatus::NODATA, "{what}: {text}");
            return;
        };
        let digits = rest.1.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let offset: usize = digits.parse().unwrap_or_else(|_| panic!("{what}: {text}"));
        assert!(offset <= size, "{what}: {text}");
    }

    /// Compares the delivered records with the undamaged ones, which come in the order of `order`.
    pub fn compare(
        &self,
        outcomes: &[Result<Fetched, SourceError>],
        order: &[usize],
        allowed: &Allowed,
        what: &str,
    ) {
        let mut expected = order.iter().copied().peekable();
        let may_be = |number: usize, found: &Fetched| {
            let truth = &self.records[number];
            if truth == found {
                return true;
            }
            let is_soft = |pmid: &Pmid| {
                allowed
                    .values
                    .as_ref()
                    .is_some_and(|(n, pmids)| *n == number && pmids.contains(pmid))
            };
            (truth.0 == found.0 || allowed.stamp == Some(number))
                && truth.1.iter().zip(&found.1).all(|(a, b)| a == b || is_soft(&a.0))
        };
        for found in outcomes.iter().flatten() {
            loop {
                let Some(number) = expected.next() else { panic!("{what}: surplus {found:?}") };
                if may_be(number, found) {
                    break;
                }
                assert!(
                    allowed.missing.contains(&number),
                    "{what}: record {number} is {:?}, not {found:?}; {allowed:?}",
                    self.records[number]
                );
            }
        }
        for number in expected {
            assert!(allowed.missing.contains(&number), "{what}: record {number} is missing");
        }
    }

    /// Damages a volume and reads it in every way.
    pub fn try_volume(&self, suffix: &str, damage: &Damage) {
        let what = format!("{} {suffix} {damage:?}", self.name);
        let damaged = damage.apply(self.bytes(suffix));
        let read = self.with(suffix, &damaged, |context| {
            let end = context.end_time();
            let forward = read(context, &self.list);
            let is_told = context.has_warnings() || forward.iter().any(Result::is_err);
            let back = backward(context, &self.list);
            (end, is_told, forward, back, at_times(context, &self.list, &self.times))
        });
        let Some(allowed) = self.allowed(suffix, damage) else {
            // The label is hit: the volume may be out of use, or as good as ever.
            match read {
                Err(error) => self.check_error(&error, suffix, damaged.len(), &what),
                Ok((_, _, forward, back, _)) => {
                    let all: BTreeSet<usize> = (0..self.records.len()).collect();
                    let allowed = Allowed { missing: all, ..Allowed::default() };
                    let order: Vec<usize> = (0..self.records.len()).collect();
                    if !matches!(damage, Damage::Cut(_) | Damage::Flip { .. } | Damage::Word { .. })
                    {
                        return;
                    }
                    self.compare(&forward, &order, &allowed, &what);
                    let order: Vec<usize> = order.into_iter().rev().collect();
                    self.compare(&back, &order, &allowed, &what);
                }
            }
            return;
        };
        let (end, is_told, forward, back, between) = match read {
            Ok(read) => read,
            Err(error) => {
                // Nothing follows the label any more.
                assert_eq!(error.status(), PmStatus::NODATA, "{what}: {error}");
                return;
            }
        };
        let order: Vec<usize> = (0..self.records.len()).collect();
        self.compare(&forward, &order, &allowed, &format!("{what}, forward"));
        let reverse: Vec<usize> = order.iter().copied().rev().collect();
        self.compare(&back, &reverse, &allowed, &format!("{what}, backward"));
        if let (Damage::Cut(at), "0", 1) = (damage, suffix, self.places.len()) {
            let whole = self.places[0].1.iter().filter(|(place, _)| place.end <= *at);
            let count = whole.filter_map(|(_, number)| *number).count();
            for (outcomes, way) in [(&forward, "forward"), (&back, "backward")] {
                let found = outcomes.iter().flatten().count();
                assert_eq!(found, count, "{what}, {way}");
            }
            // Fewer bytes than a length are not a record yet.
            let is_end = |(place, _): &(Range<usize>, _)| {
                at.checked_sub(place.start).is_some_and(|begun| begun < 4)
            };
            let is_between = self.places[0].1.iter().any(is_end);
            assert_eq!(is_told, !is_between && *at != self.bytes(suffix).len(), "{what}");
        }
        if allowed.must_be_told && forward.iter().flatten().count() < self.records.len() {
            assert!(is_told, "{what}: records are missing without a word");
        }
        if allowed.missing.is_empty() && allowed.values.is_none() {
            assert_eq!(end.as_ref().ok(), Some(&self.end), "{what}");
        }
        for error in forward.iter().chain(&back).filter_map(|outcome| outcome.as_ref().err()) {
            self.check_error(error, suffix, damaged.len(), &what);
        }
        // Data that are missing without a trace cannot be reported.
        let is_told = forward.iter().any(Result::is_err) || allowed.missing.is_empty();
        if allowed.stamp.is_some() || !is_told {
            return;
        }
        let soft = allowed.values.map(|(_, pmids)| pmids).unwrap_or_default();
        for (outcome, truth) in between.iter().zip(&self.between) {
            match outcome {
                Ok(found) => {
                    for (set, good) in found.1.iter().zip(&truth.1) {
                        let is_empty = !matches!(&set.1, Ok(values) if !values.is_empty());
                        let is_part = match (&set.1, &good.1) {
                            (Ok(set), Ok(good)) => set.iter().all(|value| good.contains(value)),
                            _ => false,
                        };
                        assert!(
                            is_empty || is_part || soft.contains(&set.0),
                            "{what}, interpolated: {set:?} instead of {good:?} at {:?}",
                            truth.0
                        );
                    }
                }
                Err(error) if error.is_end_of_archive() => {
                    assert!(!allowed.missing.is_empty(), "{what}: {error}");
                }
                Err(error) => self.check_error(error, suffix, damaged.len(), &what),
            }
        }
    }

    /// Damages the metadata. Opening must fail, or the contents are the same
    /// except for the hit record. A warning covers everything behind it. After
    /// a cut, opening may fail only if no descriptor precedes it.
    pub fn try_metadata(&self, damage: &Damage, good: &Described) {
        let what = format!("{} meta {damage:?}", self.name);
        let bytes = self.bytes("meta");
        let damaged = damage.apply(bytes);
        let read = self.with("meta", &damaged, |context| {
            let described = Described::of(context, &self.list);
            let told = context.take_warnings();
            let forward = read(context, &self.list);
            at_times(context, &self.list, &self.times);
            (described, told, forward)
        });
        let places = records_of(bytes, self.label);
        if let Damage::Cut(at) = damage {
            let is_desc = |place: &&Range<usize>| word(bytes, place.start + 4) == 1;
            let first = places.iter().find(is_desc).expect("there are metrics");
            assert_eq!(read.is_ok(), *at >= first.end, "{what}");
        }
        let (described, told, forward) = match read {
            Ok(read) => read,
            Err(error) => return self.check_error(&error, "meta", damaged.len(), &what),
        };
        told.iter().for_each(|error| self.check_error(error, "meta", damaged.len(), &what));
        if let Damage::Cut(at) = damage {
            let is_between = *at == bytes.len() || places.iter().any(|place| place.start == *at);
            assert_eq!(told.len(), usize::from(!is_between), "{what}: {told:?}");
        }
        let order: Vec<usize> = (0..self.records.len()).collect();
        self.compare(&forward, &order, &Allowed::default(), &what);
        let (touched, has_moved) = damage.touches();
        let hit = places.into_iter().filter(|place| match has_moved || !told.is_empty() {
            // The contents behind a cut are gone.
            true => place.end > touched.start,
            false => place.start < touched.end && touched.start < place.end,
        });
        let kinds: Vec<u32> = hit.map(|place| word(bytes, place.start + 4)).collect();
        let count = |kind: &[u32]| kinds.iter().filter(|found| kind.contains(found)).count();
        let differ = |a: &[String], b: &[String]| a.iter().zip(b).filter(|(a, b)| a != b).count();
        let descs = differ(&described.metrics, &good.metrics);
        assert!(descs <= 2 * count(&[1]), "{what}: {descs} metrics, {kinds:?}");
        let domains = differ(&described.domains, &good.domains);
        assert!(domains <= 2 * count(&[2, 5, 6]), "{what}: {domains} domains, {kinds:?}");
    }

    /// Damages the index: nothing changes.
    pub fn try_index(&self, damage: Option<&Damage>) {
        let what = format!("{} index {damage:?}", self.name);
        let bytes = self.bytes("index");
        let damaged = damage.map_or_else(Vec::new, |damage| damage.apply(bytes));
        let middle = self.records[self.records.len() / 2].0;
        let read = self.with("index", &damaged, |context| {
            context.set_position(middle).expect("the volumes are good");
            let behind = read(context, &self.list);
            context.set_mode(Mode::Backward, Some(middle)).expect("a mode of archives");
            let before = read(context, &self.list);
            let between = at_times(context, &self.list, &self.times);
            (context.end_time(), behind, before, between, backward(context, &self.list))
        });
        let (end, behind, before, between, back) = read.unwrap_or_else(|e| panic!("{what}: {e}"));
        let good = |outcomes: Vec<Result<Fetched, SourceError>>| -> Vec<Fetched> {
            let one =
                |outcome: Result<_, SourceError>| outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
            outcomes.into_iter().map(one).collect()
        };
        let from = self.records.iter().position(|record| record.0 >= middle).expect("it is there");
        assert!(good(behind) == self.records[from..], "{what}");
        let mut reverse = self.records.clone();
        reverse.reverse();
        assert!(good(back) == reverse, "{what}");
        reverse.retain(|record| record.0 <= middle);
        assert!(good(before) == reverse, "{what}");
        assert!(good(between) == self.between, "{what}");
        assert_eq!(end.ok(), Some(self.end), "{what}");
    }
}

/// The metadata of metrics and domains.
pub struct Described {
    metrics: Vec<String>,
    domains: Vec<String>,
}

impl Described {
    pub fn of(context: &mut ArchiveContext, list: &FetchList) -> Described {
        let descs = context.lookup_descs(list.pmids()).expect("the file is there");
        let metrics = list.pmids().iter().zip(descs).map(|(pmid, desc)| {
            let names = context.names_of(*pmid).expect("the file is there");
            format!("{desc:?} {names:?}")
        });
        let metrics = metrics.collect();
        let domain = |indom| {
            let known = context.known_instances(indom).expect("the file is there");
            format!(
                "{:?}",
                known.map(|domain| format!("{:?}", domain.instances().collect::<Vec<_>>()))
            )
        };
        Described { metrics, domains: list.domains().iter().copied().map(domain).collect() }
    }
}
