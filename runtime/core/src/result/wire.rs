//! Value sets as pmcd sends them and as archives keep them.
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
//! A block's position counts 4-byte words from the block origin. A block:
//!
//! | offset | size     | field | meaning                         |
//! |--------|----------|-------|---------------------------------|
//! | 0      | 1        | type  | type code of the value          |
//! | 1      | 3        | vlen  | 4 + number of data bytes        |
//! | 4      | vlen - 4 | data  | big-endian numbers, or bytes    |
//!
//! This module never looks at descriptors. The caller knows the meaning of a
//! value's bytes.

use crate::model::{InstId, PmStatus, Pmid, RawValueRef};
use crate::result::ResultPart;

/// Encoded value sets. Other bytes may surround them.
#[derive(Debug, Default)]
pub struct Wire {
    /// Value sets and blocks.
    pub bytes: Vec<u8>,
    /// Offset in `bytes` of the first value set.
    pub first_set: usize,
    /// Number of value sets, back to back from `first_set`.
    pub set_count: usize,
    /// Offset in `bytes` of block position zero. Negative for archive records,
    /// whose positions count from before the record.
    pub block_origin: i64,
}

/// One encoded value set.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireSet<'a> {
    pub(super) pmid: Pmid,
    /// Number of values, or the status if there are none.
    pub(super) count: Result<usize, PmStatus>,
    pub(super) values: WireValues<'a>,
    /// Offset after the set's last byte.
    pub(super) end: usize,
}

/// The values of a set.
#[derive(Clone, Copy, Debug)]
pub struct WireValues<'a> {
    wire: &'a Wire,
    /// True if lanes hold block positions, false if they hold values.
    pub in_blocks: bool,
    lanes: &'a [[u8; 8]],
}

/// One instance's value.
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

impl Wire {
    /// Removes all sets but keeps the buffer.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.first_set, self.set_count, self.block_origin) = (0, 0, 0);
    }

    /// The value set that begins at an offset.
    pub(super) fn set_at(&self, offset: usize) -> Option<WireSet<'_>> {
        let bytes = &self.bytes;
        let pmid = Pmid(word(bytes, offset)?);
        let numval = word(bytes, offset + 4)?.cast_signed();
        let (in_blocks, lanes, end) = match usize::try_from(numval) {
            Err(_) | Ok(0) => (false, &[][..], offset + 8),
            Ok(count) => {
                let format = word(bytes, offset + 8)?;
                let start = offset + 12;
                let end = start.checked_add(count.checked_mul(8)?)?;
                (format != 0, bytes.get(start..end)?.as_chunks().0, end)
            }
        };
        let count = if numval < 0 { Err(PmStatus(numval)) } else { Ok(lanes.len()) };
        let values = WireValues { wire: self, in_blocks, lanes };
        Some(WireSet { pmid, count, values, end })
    }

    /// The metrics of the value sets, with their values.
    pub fn sets(&self) -> impl Iterator<Item = (Pmid, WireValues<'_>)> {
        let mut offset = self.first_set;
        (0..self.set_count).map_while(move |_| {
            let set = self.set_at(offset)?;
            offset = set.end;
            Some((set.pmid, set.values))
        })
    }

    /// Type code and data of the block at a position. `None` if it is not
    /// within the bytes.
    pub fn block(&self, position: u32) -> Option<(u8, &[u8])> {
        let offset = self.block_origin + 4 * i64::from(position);
        let offset = usize::try_from(offset).ok()?;
        let header = self.bytes.get(offset..offset + 4)?;
        let length =
            usize::from(header[1]) << 16 | usize::from(header[2]) << 8 | usize::from(header[3]);
        let data = self.bytes.get(offset + 4..offset.checked_add(length)?)?;
        Some((header[0], data))
    }

    /// Removes the values that `keep` refuses. Sets move towards the first one;
    /// blocks stay in place.
    pub(super) fn retain(&mut self, keep: impl Fn(Pmid, InstId) -> bool) {
        let mut to = self.first_set;
        let mut from = self.first_set;
        for _ in 0..self.set_count {
            let Some(WireSet { pmid, values, end, .. }) = self.set_at(from) else { return };
            let lanes = values.len();
            let start = to;
            // Metric and count, and the format if there are values.
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

    /// Replaces sets of more than `most` values by a status. Sets move towards the first one;
    /// blocks stay in place. Returns the number of replaced sets.
    pub(super) fn refuse_larger(&mut self, most: usize, status: PmStatus) -> usize {
        let (mut from, mut to, mut refused) = (self.first_set, self.first_set, 0);
        for _ in 0..self.set_count {
            let Some(WireSet { pmid, values, end, .. }) = self.set_at(from) else { break };
            if values.len() > most {
                let head = [pmid.0.to_be_bytes(), status.0.to_be_bytes()];
                self.bytes[to..to + 8].copy_from_slice(head.as_flattened());
                to += 8;
                refused += 1;
            } else {
                self.bytes.copy_within(from..end, to);
                to += end - from;
            }
            from = end;
        }
        refused
    }

    /// Encodes the value sets of a part and appends them. Block positions also
    /// count `before` bytes that precede the buffer. Blocks come after all
    /// sets, in the order of their values, as pmcd writes them. A value that
    /// the part lacks is written as an empty aggregate.
    pub fn append(&mut self, part: &ResultPart, before: usize) {
        let out = &mut self.bytes;
        let size = |values: usize| if values == 0 { 8 } else { 12 + 8 * values };
        let sets: usize = part.sets().map(|set| size(set.len())).sum();
        let mut next = before + out.len() + sets;
        out.reserve(sets);
        let mut room = [0; 8];
        let data = |value: Option<RawValueRef<'_>>, room: &mut [u8; 8]| match value {
            None => Ok((AGGREGATE, 0)),
            Some(value) => value.encoded(room).map(|(code, data)| (code, data.len())),
        };
        for set in part.sets() {
            self.set_count += 1;
            out.extend_from_slice(&set.pmid.0.to_be_bytes());
            // The count fits: more values, of 8 bytes each, would not fit into memory.
            let numval = match set.count {
                Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
                Err(status) => status.0,
            };
            out.extend_from_slice(&numval.to_be_bytes());
            if !set.is_empty() {
                out.extend_from_slice(&u32::from(!set.is_in_place()).to_be_bytes());
            }
            for (instance, value) in set.values() {
                out.extend_from_slice(&instance.to_be_bytes());
                let word = match data(value, &mut room) {
                    Err(word) => word,
                    Ok((_, length)) => {
                        let position = u32::try_from(next / 4).unwrap_or(u32::MAX);
                        next += (4 + length).next_multiple_of(4);
                        position
                    }
                };
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        for set in part.sets().filter(|set| !set.is_in_place()) {
            for (_, value) in set.values() {
                let (code, data) = match value.map(|value| value.encoded(&mut room)) {
                    Some(Ok(block)) => block,
                    Some(Err(_)) => continue,
                    None => (AGGREGATE, &[][..]),
                };
                let length = u32::try_from(data.len() + 4).unwrap_or(u32::MAX);
                let [_, a, b, c] = length.to_be_bytes();
                out.extend_from_slice(&[code, a, b, c]);
                out.extend_from_slice(data);
                let padding = data.len().next_multiple_of(4) - data.len();
                out.extend_from_slice(&b"~~~"[..padding]);
            }
        }
    }
}

/// Type code of opaque bytes.
pub(super) const AGGREGATE: u8 = 7;

impl<'a> WireValues<'a> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The lanes, in the order delivered.
    #[inline]
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = Lane> + use<'a> {
        self.lanes.iter().map(Lane::decode)
    }

    /// True if the lanes have exactly these instances, in that order.
    pub(super) fn has_instances(&self, ids: &[InstId]) -> bool {
        // Compares many lanes at once, because usually all are the same.
        let are_same = |(lanes, ids): (&[[u8; 8]], &[InstId])| {
            let pairs = lanes.iter().zip(ids);
            pairs.fold(true, |same, (lane, id)| same & (Lane::decode(lane).instance == *id))
        };
        self.lanes.len() == ids.len() && self.lanes.chunks(64).zip(ids.chunks(64)).all(are_same)
    }

    #[inline]
    pub(super) fn lane(&self, at: usize) -> Option<Lane> {
        self.lanes.get(at).map(Lane::decode)
    }

    /// The value of a lane. `None` if its block is not within the bytes.
    pub(super) fn value(&self, lane: Lane) -> Option<RawValueRef<'a>> {
        if !self.in_blocks {
            return Some(RawValueRef::InPlace(lane.word));
        }
        let (code, bytes) = self.wire.block(lane.word)?;
        Some(RawValueRef::Block { code, bytes })
    }

    /// The data of a block with exactly 8 bytes of data, of any type. `None` if
    /// no such block is at that position.
    #[inline]
    pub(crate) fn block_of_8(&self, position: u32) -> Option<[u8; 8]> {
        let Wire { bytes, block_origin, .. } = self.wire;
        let offset = usize::try_from(block_origin + 4 * i64::from(position)).ok()?;
        let [_, header @ .., a, b, c, d, e, f, g, h] = *bytes.get(offset..)?.first_chunk::<12>()?;
        (header == [0, 0, 12]).then_some([a, b, c, d, e, f, g, h])
    }
}
