//! A cache of encoded results that come again and again, from one source or
//! from many similar ones.
//!
//! A few skeletons are kept beside the buffers of a batch, so they serve all
//! sources that share the batch. A result that comes only once is never learnt:
//! keeping a skeleton costs a part of what it saves.

use crate::model::Pmid;
use crate::result::Columns;
use crate::result::skeleton::{Encoded, Skeleton};

/// Number of forms of results that are kept.
const KEPT: usize = 4;

/// Sightings after which a form is learnt at first, unless a reader says otherwise.
const DUE: u32 = 2;

/// Largest number of sightings before a form is learnt.
const PATIENCE: u32 = 64;

/// Forms of earlier results, each with the findings of its reader.
#[derive(Debug)]
pub struct KnownResults<T = ()> {
    /// The latest first.
    forms: Vec<Known<T>>,
    /// Sightings after which a form is learnt at first.
    due: u32,
}

/// The features that distinguish results at first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    list: u64,
    /// Position of the part in its batch.
    part: usize,
    length: usize,
    first_set: usize,
    set_count: usize,
    block_origin: i64,
}

#[derive(Debug)]
struct Known<T> {
    look: Look,
    /// Sightings since it was learnt last, or since the beginning.
    sightings: u32,
    /// Sightings after which it is learnt.
    due: u32,
    learnt: Option<(Skeleton, T)>,
}

impl Look {
    fn of(encoded: &Encoded<'_>, part: usize) -> Look {
        let Encoded { list, bytes, first_set, set_count, block_origin } = *encoded;
        Look { list, part, length: bytes.len(), first_set, set_count, block_origin }
    }
}

impl<T> Default for KnownResults<T> {
    fn default() -> KnownResults<T> {
        KnownResults::new(DUE)
    }
}

impl<T> KnownResults<T> {
    /// No forms yet. Each will be learnt once it was met `due` times.
    pub fn new(due: u32) -> KnownResults<T> {
        KnownResults { forms: Vec::new(), due }
    }

    /// Forgets all forms.
    pub fn clear(&mut self) {
        self.forms.clear();
    }

    /// The findings of an earlier result that differs from this one only in numbers. They also hold
    /// for this one.
    pub fn recall(&mut self, encoded: &Encoded<'_>) -> Option<&T> {
        let (_, found) = self.deliver(encoded, 0, &mut Columns::default())?;
        Some(found)
    }

    /// Records a checked result. [`KnownResults::recall`] will return `found`, if keeping it is
    /// worthwhile.
    pub fn learn(&mut self, encoded: &Encoded<'_>, found: impl FnOnce() -> T) {
        self.notice(encoded, 0, || (std::iter::empty(), found()));
    }

    /// Writes a result into columns if it differs from a known one only in
    /// numbers. Otherwise the columns are unspecified.
    pub(super) fn deliver(
        &mut self,
        encoded: &Encoded<'_>,
        part: usize,
        columns: &mut Columns,
    ) -> Option<&(Skeleton, T)> {
        let due = self.due;
        let known = self.find(Look::of(encoded, part))?;
        let (skeleton, _) = known.learnt.as_ref()?;
        if !skeleton.deliver(encoded, columns) {
            // A form that always changes is learnt less and less often.
            (known.learnt, known.sightings) = (None, 0);
            known.due = (2 * known.due).min(PATIENCE);
            return None;
        }
        known.due = due;
        known.learnt.as_ref()
    }

    /// Takes notice of a result that was checked. `wanted` returns the metrics of the list with the
    /// offsets of their value sets, and the findings of the reader.
    pub(super) fn notice<W: Iterator<Item = (Pmid, Option<usize>)>>(
        &mut self,
        encoded: &Encoded<'_>,
        part: usize,
        wanted: impl FnOnce() -> (W, T),
    ) {
        let look = Look::of(encoded, part);
        if self.find(look).is_none() {
            self.forms.truncate(KEPT - 1);
            self.forms.insert(0, Known { look, sightings: 0, due: self.due, learnt: None });
        }
        let [known, ..] = &mut self.forms[..] else { return };
        known.sightings += 1;
        if known.sightings == known.due {
            let (wanted, found) = wanted();
            known.learnt = Skeleton::of(encoded, wanted).map(|skeleton| (skeleton, found));
        }
    }

    /// The form with a look, which becomes the first one.
    fn find(&mut self, look: Look) -> Option<&mut Known<T>> {
        let at = self.forms.iter().position(|known| known.look == look)?;
        self.forms[..=at].rotate_right(1);
        self.forms.first_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{InstId, PmStatus, RawValue, Timestamp};
    use crate::result::{BlockValue, ResultBatch, ResultPart, ResultWriter, ValueSet};

    type Value = (InstId, RawValue);

    /// The contents of value sets, read value by value.
    fn contents<'a>(
        sets: impl Iterator<Item = ValueSet<'a>>,
    ) -> Vec<(Pmid, Result<usize, PmStatus>, Vec<Value>)> {
        let value = |(id, value): (InstId, Option<crate::model::RawValueRef<'_>>)| {
            (id, value.expect("it is there").to_owned())
        };
        sets.map(|set| (set.pmid, set.count, set.values().map(value).collect())).collect()
    }

    /// An encoded part with all forms of numbers, and optionally a text.
    fn part(seed: u64, text: Option<&str>) -> ResultPart {
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::new(7, 0));
        let number = |at: u64| seed.wrapping_mul(at + 1);
        writer.set(Pmid(1));
        (0..3).for_each(|id| writer.block(id, BlockValue::U64(number(id as u64))));
        writer.set(Pmid(2));
        (0..70).for_each(|id| writer.in_place(id, number(id as u64) as u32));
        writer.status(Pmid(3), PmStatus::AGAIN);
        writer.set(Pmid(4));
        writer.set(Pmid(5));
        text.into_iter().for_each(|text| writer.block(-1, BlockValue::Text(text)));
        for (pmid, value) in [(6, 1.5), (7, 2.5), (8, f64::NAN)] {
            writer.set(Pmid(pmid));
            writer.block(-1, BlockValue::F64(value + seed as f64));
        }
        writer.set(Pmid(9));
        (0..9).for_each(|id| writer.block(id, BlockValue::F32(id as f32 - seed as f32)));
        writer.set(Pmid(10));
        writer.in_place(-1, number(9) as u32);
        part.encode();
        part
    }

    fn encoded(part: &ResultPart) -> Encoded<'_> {
        let wire = part.wire().expect("it is encoded");
        let (bytes, first_set, set_count) = (&wire.bytes[..], wire.first_set, wire.set_count);
        Encoded { list: 1, bytes, first_set, set_count, block_origin: 0 }
    }

    /// A batch that knows a form of results of the sets at some positions.
    fn batch_knowing(part: &ResultPart, wanted: &[Option<usize>]) -> ResultBatch {
        let mut batch = ResultBatch::default();
        let encoded = encoded(part);
        let sets: Vec<_> = encoded.sets().collect();
        let wanted = wanted.iter().map(|at| match at {
            Some(at) => (sets[*at].0, Some(sets[*at].1)),
            None => (Pmid(99), None),
        });
        for _ in 0..DUE {
            assert!(batch.add_part_as_before(&encoded, part.timestamp).is_none());
            batch.notice(&encoded, || wanted.clone());
        }
        batch
    }

    fn all() -> Vec<Option<usize>> {
        (0..10).map(Some).collect()
    }

    #[test]
    fn results_with_other_numbers_come_in_columns() {
        let mut batch = batch_knowing(&part(1, None), &all());
        for seed in [2, u64::MAX, 3] {
            batch.clear();
            let now = part(seed, None);
            let time = Timestamp::new(seed as i64, 5);
            let holds = batch.add_part_as_before(&encoded(&now), time);
            assert_eq!(holds, Some(&[true; 10][..]));
            assert!(batch.parts()[0].columns().is_some());
            assert_eq!(batch.timestamp(), time);
            assert_eq!(contents(batch.sets()), contents(now.sets()));
            batch.encode();
            assert_eq!(
                batch.parts()[0].wire().map(|wire| &wire.bytes),
                Some(&encoded(&now).bytes.to_vec())
            );
        }
    }

    /// A changed byte is part of a number, or the result is not like the others.
    #[test]
    fn whatever_is_not_a_number_is_compared() {
        let good = part(1, None);
        let (mut batch, mut like) = (ResultBatch::default(), 0);
        for at in 0..encoded(&good).bytes.len() {
            if batch.add_part_as_before(&encoded(&good), good.timestamp).is_none() {
                batch = batch_knowing(&good, &all());
            }
            let mut other = part(1, None);
            other.wire_mut().expect("it is encoded").bytes[at] ^= 0x10;
            batch.clear();
            if batch.add_part_as_before(&encoded(&other), other.timestamp).is_some() {
                assert_eq!(contents(batch.sets()), contents(other.sets()));
                like += 1;
            }
        }
        assert_eq!(like, (3 + 3) * 8 + (70 + 9 + 1) * 4);
    }

    #[test]
    fn what_was_found_is_recalled_where_only_numbers_differ() {
        let good = part(1, None);
        let (mut known, mut like) = (KnownResults::new(3), 0);
        for at in 0..encoded(&good).bytes.len() {
            if known.recall(&encoded(&good)).is_none() {
                known.clear();
                for _ in 0..3 {
                    assert_eq!(known.recall(&encoded(&good)), None);
                    known.learn(&encoded(&good), || "found");
                }
            }
            let mut other = part(1, None);
            other.wire_mut().expect("it is encoded").bytes[at] ^= 0x10;
            like += usize::from(known.recall(&encoded(&other)) == Some(&"found"));
        }
        assert_eq!(like, (3 + 3) * 8 + (70 + 9 + 1) * 4);
    }

    #[test]
    fn metrics_are_selected_and_others_only_compared() {
        let good = part(1, Some("text"));
        let wanted = [Some(8), None, Some(2), Some(0)];
        let mut batch = batch_knowing(&good, &wanted);
        let now = part(5, Some("xyzt"));
        let holds = batch.add_part_as_before(&encoded(&now), now.timestamp);
        assert_eq!(holds, Some(&[true, false, true, true][..]));
        let (all, found) = (contents(now.sets()), contents(batch.sets()));
        assert_eq!(
            found,
            [all[8].clone(), (Pmid(99), Ok(0), vec![]), all[2].clone(), all[0].clone()]
        );
        batch.clear();
        let longer = part(5, Some("longer text"));
        assert!(batch.add_part_as_before(&encoded(&longer), now.timestamp).is_none());
    }

    #[test]
    fn results_with_texts_are_not_learnt() {
        let good = part(1, Some("text"));
        let mut batch = batch_knowing(&good, &all());
        assert!(batch.add_part_as_before(&encoded(&good), good.timestamp).is_none());
    }

    #[test]
    fn what_changes_all_the_time_is_learnt_less_and_less_often() {
        let mut known = KnownResults::default();
        let mut learnt = Vec::new();
        for time in 0..1000u32 {
            let mut part = part(1, None);
            part.wire_mut().expect("it is encoded").bytes[3] = time as u8;
            let encoded = encoded(&part);
            assert!(known.deliver(&encoded, 0, &mut Columns::default()).is_none());
            known.notice(&encoded, 0, || (encoded.sets().map(|(pmid, at)| (pmid, Some(at))), ()));
            if known.forms[0].sightings == known.forms[0].due {
                learnt.push(time);
            }
        }
        assert!(learnt.len() < 25, "{learnt:?}");
        assert_eq!(known.forms.len(), 1);
    }
}
