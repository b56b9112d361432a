//! A fetch's results in encoded form, and the walk over their value sets.
//!
//! A value set, all words big-endian:
//!
//! | offset | size  | field   | meaning                                                     |
//! |--------|-------|---------|-------------------------------------------------------------|
//! | 0      | 4     | pmid    | metric                                                      |
//! | 4      | 4     | numval  | number of values, or a status when negative                 |
//! | 8      | 4     | valfmt  | only if numval > 0: 0 values in place, 1 or 2 in blocks      |
//! | 12     | 8 * n | values  | instance, then the value or the position of its block       |
//!
//! A block's position counts 4-byte words from the part's block origin. A block:
//!
//! | offset | size     | field | meaning                         |
//! |--------|----------|-------|---------------------------------|
//! | 0      | 1        | type  | type code of the value          |
//! | 1      | 3        | vlen  | 4 + number of data bytes        |
//! | 4      | vlen - 4 | data  | big-endian numbers, or bytes    |
//!
//! This module never looks at descriptors: what the bytes of a value mean is
//! for the caller to know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{
    InDom, InstId, InstanceDomain, InstanceProfile, PmStatus, Pmid, RawValueRef, Timestamp,
};

/// The answer to one fetch: one part, or several where the request had to be
/// split. Buffers are kept from fetch to fetch.
#[derive(Debug, Default)]
pub struct ResultBatch {
    parts: Vec<ResultPart>,
    used: usize,
    /// Lent to a connection while it receives.
    pub(crate) spare: Vec<u8>,
    /// Instance domains asked for with the fetch, parallel to
    /// [`crate::source::FetchList::domains`].
    pub domains: Vec<Result<Arc<InstanceDomain>, PmStatus>>,
}

/// One encoded result.
#[derive(Debug, Default)]
pub struct ResultPart {
    /// When the values were taken.
    pub timestamp: Timestamp,
    /// Value sets and blocks, in any order and with any other bytes around them.
    pub bytes: Vec<u8>,
    /// Offset in `bytes` of the first value set.
    pub first_set: usize,
    /// Number of value sets, back to back from `first_set`.
    pub set_count: usize,
    /// Offset in `bytes` that block position zero means; negative for archive
    /// records, whose positions count from before the record.
    pub block_origin: i64,
    /// Which layout the bytes have, if the source keeps account of that.
    pub layout: Option<LayoutId>,
}

/// What all parts with the same identity have in common: every byte but those
/// of numbers, which are the words of values in place and the data of blocks.
/// What was found out about one such part holds for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayoutId(u64);

impl LayoutId {
    /// An identity that no layout had before in this process.
    pub fn fresh() -> LayoutId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        LayoutId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl ResultBatch {
    /// Forgets the previous results but keeps their buffers.
    pub fn clear(&mut self) {
        self.used = 0;
        self.domains.clear();
    }

    /// A further part to fill, with an empty buffer.
    pub fn add_part(&mut self) -> &mut ResultPart {
        if self.used == self.parts.len() {
            self.parts.push(ResultPart::default());
        }
        let part = &mut self.parts[self.used];
        self.used += 1;
        part.bytes.clear();
        part.first_set = 0;
        part.set_count = 0;
        part.block_origin = 0;
        part.layout = None;
        part
    }

    /// A further part with the bytes that its buffer had before, if those have
    /// a layout: only time and numbers have to be written.
    pub fn add_part_again(&mut self, layout: LayoutId) -> Option<&mut ResultPart> {
        let part = self.parts.get_mut(self.used)?;
        if part.layout != Some(layout) {
            return None;
        }
        self.used += 1;
        Some(part)
    }

    /// The parts of the latest fetch, in the order of its slots.
    pub fn parts(&self) -> &[ResultPart] {
        &self.parts[..self.used]
    }

    /// Time stamp of the fetch: that of its first part.
    pub fn timestamp(&self) -> Timestamp {
        self.parts().first().map_or(Timestamp::default(), |part| part.timestamp)
    }
}

impl ResultPart {
    /// Walks the value sets.
    pub fn sets(&self) -> ValueSets<'_> {
        ValueSets { part: self, offset: self.first_set, left: self.set_count }
    }

    /// The value set that begins at an offset, as [`ValueSets::offset`] gave it.
    pub fn set_at(&self, offset: usize) -> Option<ValueSet<'_>> {
        ValueSets { part: self, offset, left: 1 }.next()
    }

    /// The value of a lane of `set`, which is one of this part's. `None` when it
    /// is in a block that does not lie within the part.
    #[inline]
    pub fn value(&self, set: &ValueSet<'_>, lane: Lane) -> Option<RawValueRef<'_>> {
        if !set.in_blocks {
            return Some(RawValueRef::InPlace(lane.word));
        }
        let (code, bytes) = self.block(lane.word)?;
        Some(RawValueRef::Block { code, bytes })
    }

    /// The block at a position: its type code and its data. `None` when it
    /// does not lie within the part.
    pub fn block(&self, position: u32) -> Option<(u8, &[u8])> {
        let offset = self.block_origin + 4 * i64::from(position);
        let offset = usize::try_from(offset).ok()?;
        let header = self.bytes.get(offset..offset + 4)?;
        let length =
            usize::from(header[1]) << 16 | usize::from(header[2]) << 8 | usize::from(header[3]);
        let data = self.bytes.get(offset + 4..offset.checked_add(length)?)?;
        Some((header[0], data))
    }

    /// The data of a block of exactly 8 bytes of data, whatever its type code.
    /// `None` when there is none at that position.
    #[inline]
    pub fn block_of_8(&self, position: u32) -> Option<[u8; 8]> {
        let offset = usize::try_from(self.block_origin + 4 * i64::from(position)).ok()?;
        let [_, header @ .., a, b, c, d, e, f, g, h] =
            *self.bytes.get(offset..)?.first_chunk::<12>()?;
        (header == [0, 0, 12]).then_some([a, b, c, d, e, f, g, h])
    }
}

impl ResultBatch {
    /// Takes away the values of instances that a profile does not admit;
    /// `indom` tells the instance domain of a metric that has one.
    pub fn select(&mut self, profile: &InstanceProfile, indom: impl Fn(Pmid) -> Option<InDom>) {
        if profile.is_everything() {
            return;
        }
        for part in &mut self.parts[..self.used] {
            part.retain(|pmid, instance| {
                indom(pmid).is_none_or(|indom| profile.admits(indom, instance))
            });
        }
    }
}

impl ResultPart {
    /// Takes away the values that `keep` does not want. Sets move towards the
    /// first one, blocks stay where they are.
    fn retain(&mut self, keep: impl Fn(Pmid, InstId) -> bool) {
        self.layout = None;
        let mut to = self.first_set;
        let mut from = self.first_set;
        for _ in 0..self.set_count {
            let mut sets = ValueSets { part: self, offset: from, left: 1 };
            let Some(set) = sets.next() else { return };
            let (pmid, lanes, end) = (set.pmid, set.lanes().len(), sets.offset());
            let start = to;
            // Metric and count; with values, their format as well.
            let head = if lanes == 0 { 8 } else { 12 };
            self.bytes.copy_within(from..from + head, to);
            to += head;
            let mut kept = 0u32;
            for lane in (from + head..end).step_by(8) {
                let instance = word(&self.bytes, lane).map_or(-1, u32::cast_signed);
                if keep(pmid, instance) {
                    self.bytes.copy_within(lane..lane + 8, to);
                    to += 8;
                    kept += 1;
                }
            }
            if lanes > 0 {
                self.bytes[start + 4..start + 8].copy_from_slice(&kept.to_be_bytes());
                // A set without values has no format.
                to = if kept == 0 { start + 8 } else { to };
            }
            from = end;
        }
    }
}

/// Iterator over the value sets of a part; ends early when the bytes do.
#[derive(Clone, Debug)]
pub struct ValueSets<'a> {
    part: &'a ResultPart,
    offset: usize,
    left: usize,
}

/// One metric's values in a result.
#[derive(Clone, Copy, Debug)]
pub struct ValueSet<'a> {
    /// The metric.
    pub pmid: Pmid,
    /// Number of values, or why there are none.
    pub count: Result<usize, PmStatus>,
    /// True when lanes hold positions of blocks instead of values.
    pub in_blocks: bool,
    /// The encoded lanes, 8 bytes each.
    lanes: &'a [u8],
}

/// One instance's value in a value set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Instance identifier.
    pub instance: InstId,
    /// The value itself, or the position of its block.
    pub word: u32,
}

impl Lane {
    #[inline]
    fn decode(&[a, b, c, d, e, f, g, h]: &[u8; 8]) -> Lane {
        Lane { instance: i32::from_be_bytes([a, b, c, d]), word: u32::from_be_bytes([e, f, g, h]) }
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

impl ValueSets<'_> {
    /// Offset of the next value set in the part's bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for ValueSets<'a> {
    type Item = ValueSet<'a>;

    fn next(&mut self) -> Option<ValueSet<'a>> {
        self.left = self.left.checked_sub(1)?;
        let bytes = &self.part.bytes;
        let pmid = Pmid(word(bytes, self.offset)?);
        let numval = word(bytes, self.offset + 4)? as i32;
        if numval <= 0 {
            self.offset += 8;
            let count = if numval == 0 { Ok(0) } else { Err(PmStatus(numval)) };
            return Some(ValueSet { pmid, count, in_blocks: false, lanes: &[] });
        }
        let format = word(bytes, self.offset + 8)?;
        let count = numval as usize;
        let start = self.offset + 12;
        let end = start.checked_add(count.checked_mul(8)?)?;
        let lanes = bytes.get(start..end)?;
        self.offset = end;
        Some(ValueSet { pmid, count: Ok(count), in_blocks: format != 0, lanes })
    }
}

impl<'a> ValueSet<'a> {
    /// The lanes, in the order delivered.
    #[inline]
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = Lane> + use<'a> {
        let (lanes, _) = self.lanes.as_chunks::<8>();
        lanes.iter().map(Lane::decode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{BlockValue, ResultWriter};

    #[test]
    fn a_profile_takes_values_away() {
        let [disks, other] = [InDom(7), InDom(8)];
        let mut batch = ResultBatch::default();
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
        for (pmid, count) in [(1, 3), (2, 1), (3, 3), (4, 0), (5, 2)] {
            writer.set(Pmid(pmid));
            for instance in 0..count {
                match pmid {
                    3 => writer.block(instance, BlockValue::U64(instance as u64)),
                    2 => writer.in_place(-1, 20),
                    _ => writer.in_place(instance, pmid * 10),
                }
            }
        }
        writer.status(Pmid(6), PmStatus::AGAIN);
        writer.set(Pmid(7));
        writer.in_place(1, 70);
        writer.finish();
        let indom = |pmid: Pmid| match pmid.0 {
            2 => None,
            7 => Some(other),
            _ => Some(disks),
        };
        let delivered = |batch: &ResultBatch| {
            let part = &batch.parts()[0];
            let lanes = |set: ValueSet<'_>| {
                let value = |lane: Lane| match set.in_blocks {
                    true => part.block(lane.word).map_or(&[][..], |(_, data)| data).to_vec(),
                    false => lane.word.to_be_bytes().to_vec(),
                };
                let lanes: Vec<_> = set.lanes().map(|lane| (lane.instance, value(lane))).collect();
                (set.pmid.0, set.count, lanes)
            };
            part.sets().map(lanes).collect::<Vec<_>>()
        };
        let mut expected = delivered(&batch);
        let mut profile = InstanceProfile::default();
        batch.select(&profile, indom);
        assert_eq!(delivered(&batch), expected);
        for gone in [[1, 9], [0, 2]] {
            profile.exclude(disks, &gone);
            batch.select(&profile, indom);
            for (pmid, count, lanes) in &mut expected {
                if !matches!(pmid, 2 | 7) {
                    lanes.retain(|(instance, _)| !gone.contains(instance));
                    *count = count.map(|_| lanes.len());
                }
            }
            assert_eq!(delivered(&batch), expected);
        }
    }
}
