//! The answer to one fetch, in buffers that are reused from fetch to fetch.
//!
//! A part is encoded or in columns; this module looks into neither form.

use std::sync::Arc;

use crate::model::{InDom, InstId, InstanceDomain, InstanceProfile, PmStatus, Pmid, Timestamp};
use crate::result::known::KnownResults;
use crate::result::{Columns, Encoded, LayoutId, SetPlace, ValueSet, ValueSets, Wire};

/// The answer to one fetch: one part, or several if the request was split. Its
/// buffers are reused from fetch to fetch.
#[derive(Debug, Default)]
pub struct ResultBatch {
    parts: Vec<ResultPart>,
    used: usize,
    refused: usize,
    /// Buffers for the connection that fills the batch.
    pub spare: Spare,
    /// The requested instance domains, parallel to
    /// [`crate::source::FetchList::domains`].
    pub domains: Vec<Result<Arc<InstanceDomain>, PmStatus>>,
}

/// Buffers that a connection borrows while it works.
#[derive(Debug, Default)]
pub struct Spare {
    /// Received bytes.
    pub inbox: Vec<u8>,
    /// Bytes to send.
    pub outbox: Vec<u8>,
    known: KnownResults,
}

/// The value sets of one moment, encoded or in columns. A new part has columns
/// and no sets.
#[derive(Debug, Default)]
pub struct ResultPart {
    /// Time of the values.
    pub timestamp: Timestamp,
    is_wire: bool,
    /// Only one of the two is valid; the other keeps its buffers for reuse.
    wire: Wire,
    columns: Columns,
}

impl ResultBatch {
    /// Forgets the previous results but keeps their buffers.
    pub fn clear(&mut self) {
        (self.used, self.refused) = (0, 0);
        self.domains.clear();
    }

    /// Adds an empty part to fill.
    pub fn add_part(&mut self) -> &mut ResultPart {
        if self.used == self.parts.len() {
            self.parts.push(ResultPart::default());
        }
        let part = &mut self.parts[self.used];
        self.used += 1;
        part.set_columns();
        part
    }

    /// Adds a part with the columns that it had in an earlier fetch, if they
    /// have this layout. Then only the time and the numbers must be written.
    pub fn add_part_again(&mut self, layout: LayoutId) -> Option<&mut ResultPart> {
        let part = self.parts.get_mut(self.used)?;
        if part.layout() != Some(layout) {
            return None;
        }
        self.used += 1;
        Some(part)
    }

    /// Adds an encoded result in columns, if it differs only in numbers from an
    /// earlier one ([`ResultBatch::notice`]) for the same list. The result is
    /// then as sound as that one. Returns for each metric of the list whether
    /// the result has a set of it. Otherwise it adds nothing.
    pub fn add_part_as_before(
        &mut self,
        encoded: &Encoded<'_>,
        timestamp: Timestamp,
    ) -> Option<&[bool]> {
        if self.used == self.parts.len() {
            self.parts.push(ResultPart::default());
        }
        let part = &mut self.parts[self.used];
        let (skeleton, ()) = self.spare.known.deliver(encoded, self.used, &mut part.columns)?;
        (part.timestamp, part.is_wire) = (timestamp, false);
        self.used += 1;
        Some(skeleton.holds())
    }

    /// Records an encoded result that was checked and becomes the next part.
    /// `wanted` has for each metric of the list the offset of its value set, if
    /// there is one.
    pub fn notice<W: Iterator<Item = (Pmid, Option<usize>)>>(
        &mut self,
        encoded: &Encoded<'_>,
        wanted: impl FnOnce() -> W,
    ) {
        self.spare.known.notice(encoded, self.used, || (wanted(), ()));
    }

    /// Replaces value sets of the last part that have more than `most` values by the status
    /// `PM_ERR_TOOBIG`, if the part is encoded. Their memory is freed.
    pub fn refuse_larger_sets(&mut self, most: usize) {
        let Some(part) = self.parts[..self.used].last_mut().filter(|part| part.is_wire) else {
            return;
        };
        let refused = part.wire.refuse_larger(most, PmStatus::TOOBIG);
        if refused > 0 {
            // The blocks of refused sets may be most of the bytes.
            let mut rest = Wire::default();
            rest.append(part, 0);
            part.wire = rest;
            self.refused += refused;
        }
    }

    /// Number of value sets that [`ResultBatch::refuse_larger_sets`] has replaced since the batch
    /// was cleared.
    pub fn refused_sets(&self) -> usize {
        self.refused
    }

    /// The parts of the latest fetch, in the order of its slots.
    pub fn parts(&self) -> &[ResultPart] {
        &self.parts[..self.used]
    }

    /// The value sets of all parts.
    pub fn sets(&self) -> impl Iterator<Item = ValueSet<'_>> + Clone {
        self.parts().iter().flat_map(ResultPart::sets)
    }

    /// The value sets with their places.
    pub fn placed_sets(&self) -> impl Iterator<Item = (SetPlace, ValueSet<'_>)> {
        let parts = self.parts().iter().enumerate();
        parts.flat_map(|(position, part)| part.sets().placed(position))
    }

    /// The value set at a place that [`ResultBatch::placed_sets`] gave, if the batch still
    /// has the same sets.
    pub fn set_at(&self, place: SetPlace) -> Option<ValueSet<'_>> {
        ValueSets::at(self.parts().get(place.part)?, place.at).next()
    }

    /// Time stamp of the fetch: that of its first part.
    pub fn timestamp(&self) -> Timestamp {
        self.parts().first().map_or(Timestamp::default(), |part| part.timestamp)
    }

    /// Encodes all parts that are in columns, in pmcd's form.
    pub fn encode(&mut self) {
        self.parts[..self.used].iter_mut().for_each(ResultPart::encode);
    }

    /// Removes values of instances that a profile does not admit. `indom` gives
    /// the instance domain of a metric, if it has one.
    pub fn select(&mut self, profile: &InstanceProfile, indom: impl Fn(Pmid) -> Option<InDom>) {
        if profile.is_everything() {
            return;
        }
        let keep = |pmid: Pmid, instance: InstId| {
            indom(pmid).is_none_or(|indom| profile.admits(indom, instance))
        };
        for part in &mut self.parts[..self.used] {
            match part.is_wire {
                true => part.wire.retain(keep),
                false => part.columns.retain(keep),
            }
        }
    }
}

impl ResultPart {
    /// Turns the part into an empty encoded part, to be filled.
    pub fn set_wire(&mut self) -> &mut Wire {
        self.is_wire = true;
        self.wire.clear();
        &mut self.wire
    }

    /// Turns the part into empty columns, to be filled by a
    /// [`ResultWriter`](crate::result::ResultWriter).
    pub(super) fn set_columns(&mut self) -> &mut Columns {
        self.is_wire = false;
        self.columns.clear();
        &mut self.columns
    }

    /// The encoded form; `None` for a part of columns.
    pub fn wire(&self) -> Option<&Wire> {
        self.is_wire.then_some(&self.wire)
    }

    /// Like [`ResultPart::wire`], for changes.
    pub fn wire_mut(&mut self) -> Option<&mut Wire> {
        self.is_wire.then_some(&mut self.wire)
    }

    /// The columns; `None` for an encoded part.
    pub fn columns(&self) -> Option<&Columns> {
        (!self.is_wire).then_some(&self.columns)
    }

    /// Like [`ResultPart::columns`], for changes.
    pub fn columns_mut(&mut self) -> Option<&mut Columns> {
        (!self.is_wire).then_some(&mut self.columns)
    }

    /// Identity of the layout, if the source tracks it.
    pub fn layout(&self) -> Option<LayoutId> {
        self.columns()?.layout()
    }

    /// Number of value sets. For an encoded part, the number that its header
    /// claims.
    pub fn set_count(&self) -> usize {
        if self.is_wire { self.wire.set_count } else { self.columns.len() }
    }

    /// Iterates over the value sets.
    pub fn sets(&self) -> ValueSets<'_> {
        ValueSets::of(self)
    }

    /// Encodes the value sets, if they are in columns.
    pub fn encode(&mut self) {
        let mut wire = std::mem::take(&mut self.wire);
        if !self.is_wire {
            wire.clear();
            wire.append(self, 0);
        }
        (self.wire, self.is_wire) = (wire, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RawValue, Timestamp};
    use crate::result::{BlockValue, ResultWriter};

    type Delivered = Vec<(u32, Result<usize, PmStatus>, Vec<(InstId, RawValue)>)>;

    fn delivered(batch: &ResultBatch) -> Delivered {
        let values = |set: ValueSet<'_>| {
            set.values().map(|(id, value)| (id, value.expect("a value").to_owned())).collect()
        };
        batch.sets().map(|set| (set.pmid.0, set.count, values(set))).collect()
    }

    #[test]
    fn larger_sets_are_refused_and_their_memory_is_freed() {
        let mut batch = ResultBatch::default();
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
        for (pmid, count) in [(1, 2), (2, 100_000), (3, 3), (4, 4), (5, 0), (7, 3), (8, 100_000)] {
            writer.set(Pmid(pmid));
            for instance in 0..count {
                match pmid % 2 {
                    0 => writer.block(instance, BlockValue::U64(instance as u64)),
                    _ => writer.block(instance, BlockValue::Text(&instance.to_string())),
                }
            }
        }
        writer.status(Pmid(6), PmStatus::AGAIN);
        writer.set(Pmid(9));
        writer.in_place(-1, 90);
        batch.encode();
        let mut expected = delivered(&batch);
        batch.refuse_larger_sets(100_000);
        assert_eq!((delivered(&batch), batch.refused_sets()), (expected.clone(), 0));
        batch.refuse_larger_sets(3);
        for (_, count, values) in &mut expected {
            if count.is_ok_and(|count| count > 3) {
                (*count, *values) = (Err(PmStatus::TOOBIG), Vec::new());
            }
        }
        assert_eq!((delivered(&batch), batch.refused_sets()), (expected, 3));
        let wire = batch.parts()[0].wire().expect("an encoded part");
        assert!(wire.bytes.capacity() < 1000, "{}", wire.bytes.capacity());
        batch.clear();
        assert_eq!(batch.refused_sets(), 0);
    }

    #[test]
    fn a_profile_takes_values_away() {
        let [disks, other] = [InDom(7), InDom(8)];
        for is_encoded in [false, true] {
            let mut batch = ResultBatch::default();
            let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
            for (pmid, count) in [(1, 3), (2, 1), (3, 3), (4, 0), (5, 2), (8, 3), (9, 3)] {
                writer.set(Pmid(pmid));
                for instance in 0..count {
                    match pmid {
                        3 => writer.block(instance, BlockValue::U64(instance as u64)),
                        8 => writer.block(instance, BlockValue::Text(&instance.to_string())),
                        9 => writer.block(instance, BlockValue::F32(instance as f32)),
                        2 => writer.in_place(-1, 20),
                        _ => writer.in_place(instance, pmid * 10),
                    }
                }
            }
            writer.status(Pmid(6), PmStatus::AGAIN);
            writer.set(Pmid(7));
            writer.in_place(1, 70);
            if is_encoded {
                batch.encode();
            }
            let indom = |pmid: Pmid| match pmid.0 {
                2 => None,
                7 => Some(other),
                _ => Some(disks),
            };
            let mut expected = delivered(&batch);
            assert_eq!(expected.len(), 9);
            let mut profile = InstanceProfile::default();
            batch.select(&profile, indom);
            assert_eq!(delivered(&batch), expected);
            for gone in [[1, 9], [0, 2]] {
                profile.exclude(disks, &gone);
                batch.select(&profile, indom);
                for (pmid, count, values) in &mut expected {
                    if !matches!(pmid, 2 | 7) {
                        values.retain(|(instance, _)| !gone.contains(instance));
                        *count = count.map(|_| values.len());
                    }
                }
                assert_eq!(delivered(&batch), expected);
            }
        }
    }
}
