//! The answer to one fetch, in buffers that are kept from fetch to fetch.
//!
//! Knows that parts are encoded or in columns, and neither form.

use std::sync::Arc;

use crate::model::{InDom, InstId, InstanceDomain, InstanceProfile, PmStatus, Pmid, Timestamp};
use crate::result::{Columns, LayoutId, ValueSet, ValueSets, Wire};

/// The answer to one fetch: one part, or several where the request had to be
/// split. Buffers are kept from fetch to fetch.
#[derive(Debug, Default)]
pub struct ResultBatch {
    parts: Vec<ResultPart>,
    used: usize,
    /// For the connection that it is filled from.
    pub spare: Spare,
    /// Instance domains asked for with the fetch, parallel to
    /// [`crate::source::FetchList::domains`].
    pub domains: Vec<Result<Arc<InstanceDomain>, PmStatus>>,
}

/// Buffers that are lent to a connection while it is in use.
#[derive(Debug, Default)]
pub struct Spare {
    /// For what it receives.
    pub inbox: Vec<u8>,
    /// For what it sends.
    pub outbox: Vec<u8>,
}

/// The value sets of one moment, encoded or in columns. A new part has columns
/// without sets.
#[derive(Debug, Default)]
pub struct ResultPart {
    /// When the values were taken.
    pub timestamp: Timestamp,
    is_wire: bool,
    /// Of the two only one counts; the other keeps its buffers.
    wire: Wire,
    columns: Columns,
}

impl ResultBatch {
    /// Forgets the previous results but keeps their buffers.
    pub fn clear(&mut self) {
        self.used = 0;
        self.domains.clear();
    }

    /// A further part to fill, without value sets.
    pub fn add_part(&mut self) -> &mut ResultPart {
        if self.used == self.parts.len() {
            self.parts.push(ResultPart::default());
        }
        let part = &mut self.parts[self.used];
        self.used += 1;
        part.set_columns();
        part
    }

    /// A further part with the columns that it had before, if those have that
    /// layout: only time and numbers have to be written.
    pub fn add_part_again(&mut self, layout: LayoutId) -> Option<&mut ResultPart> {
        let part = self.parts.get_mut(self.used)?;
        if part.layout() != Some(layout) {
            return None;
        }
        self.used += 1;
        Some(part)
    }

    /// The parts of the latest fetch, in the order of its slots.
    pub fn parts(&self) -> &[ResultPart] {
        &self.parts[..self.used]
    }

    /// The value sets of all parts.
    pub fn sets(&self) -> impl Iterator<Item = ValueSet<'_>> + Clone {
        self.parts().iter().flat_map(ResultPart::sets)
    }

    /// Time stamp of the fetch: that of its first part.
    pub fn timestamp(&self) -> Timestamp {
        self.parts().first().map_or(Timestamp::default(), |part| part.timestamp)
    }

    /// Encodes all parts that are not, as if they had come from pmcd.
    pub fn encode(&mut self) {
        self.parts[..self.used].iter_mut().for_each(ResultPart::encode);
    }

    /// Takes away the values of instances that a profile does not admit;
    /// `indom` tells the instance domain of a metric that has one.
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
    /// Makes it an encoded part without value sets, to be filled.
    pub fn set_wire(&mut self) -> &mut Wire {
        self.is_wire = true;
        self.wire.clear();
        &mut self.wire
    }

    /// Makes it a part of columns without value sets, to be filled by a
    /// [`ResultWriter`](crate::result::ResultWriter).
    pub(super) fn set_columns(&mut self) -> &mut Columns {
        self.is_wire = false;
        self.columns.clear();
        &mut self.columns
    }

    /// What is encoded; `None` for a part of columns.
    pub fn wire(&self) -> Option<&Wire> {
        self.is_wire.then_some(&self.wire)
    }

    /// As [`ResultPart::wire`], to be changed.
    pub fn wire_mut(&mut self) -> Option<&mut Wire> {
        self.is_wire.then_some(&mut self.wire)
    }

    /// The columns; `None` for an encoded part.
    pub fn columns(&self) -> Option<&Columns> {
        (!self.is_wire).then_some(&self.columns)
    }

    /// As [`ResultPart::columns`], to be changed.
    pub fn columns_mut(&mut self) -> Option<&mut Columns> {
        (!self.is_wire).then_some(&mut self.columns)
    }

    /// Which layout it has, if the source keeps account of that.
    pub fn layout(&self) -> Option<LayoutId> {
        self.columns()?.layout()
    }

    /// Number of value sets; of an encoded part, those that it is said to have.
    pub fn set_count(&self) -> usize {
        if self.is_wire { self.wire.set_count } else { self.columns.len() }
    }

    /// Walks the value sets.
    pub fn sets(&self) -> ValueSets<'_> {
        ValueSets::of(self)
    }

    /// The value set at a place, as [`ValueSets::place`] gave it.
    pub fn set_at(&self, place: usize) -> Option<ValueSet<'_>> {
        ValueSets::at(self, place).next()
    }

    /// Encodes the value sets, if they are not.
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
