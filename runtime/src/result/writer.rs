//! Encodes value sets: for the local source, for tests and for peers that we
//! play ourselves.

use crate::model::{InstId, PmStatus, Pmid, Timestamp};
use crate::result::ResultPart;

/// A value to be stored in a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockValue<'a> {
    /// 64-bit signed integer.
    I64(i64),
    /// 64-bit unsigned integer.
    U64(u64),
    /// 32-bit floating point.
    F32(f32),
    /// 64-bit floating point.
    F64(f64),
    /// Text; the terminating NUL is added.
    Text(&'a str),
    /// Opaque bytes.
    Aggregate(&'a [u8]),
}

/// Writes value sets in order, then their blocks, into one part.
///
/// Each set is begun with [`ResultWriter::set`] or [`ResultWriter::status`],
/// followed by its values; a set holds values of one kind only, those in
/// place (32 and U32) or those in blocks.
#[derive(Debug)]
pub struct ResultWriter<'p> {
    part: &'p mut ResultPart,
    blocks: Vec<u8>,
    /// Offsets of lane words that hold a position relative to `blocks`.
    pending: Vec<usize>,
    /// Offset of the current set.
    current: usize,
}

impl<'p> ResultWriter<'p> {
    /// Begins a result in `part`, whose buffer is emptied.
    pub fn new(part: &'p mut ResultPart, timestamp: Timestamp) -> ResultWriter<'p> {
        part.bytes.clear();
        part.timestamp = timestamp;
        part.first_set = 0;
        part.set_count = 0;
        part.block_origin = 0;
        ResultWriter { part, blocks: Vec::new(), pending: Vec::new(), current: 0 }
    }

    fn push(&mut self, word: u32) {
        self.part.bytes.extend_from_slice(&word.to_be_bytes());
    }

    fn patch(&mut self, offset: usize, word: u32) {
        self.part.bytes[offset..offset + 4].copy_from_slice(&word.to_be_bytes());
    }

    /// Begins a set that has no values yet.
    pub fn set(&mut self, pmid: Pmid) {
        self.current = self.part.bytes.len();
        self.part.set_count += 1;
        self.push(pmid.0);
        self.push(0);
    }

    /// Writes a set whose metric failed.
    pub fn status(&mut self, pmid: Pmid, status: PmStatus) {
        self.set(pmid);
        self.patch(self.current + 4, status.0 as u32);
    }

    /// Turns the current set, whatever was added to it, into one whose metric failed.
    pub fn fail(&mut self, status: PmStatus) {
        self.part.bytes.truncate(self.current + 4);
        self.push(status.0 as u32);
        while self.pending.last().is_some_and(|offset| *offset >= self.current) {
            self.pending.pop();
        }
    }

    fn lane(&mut self, instance: InstId, in_blocks: bool, word: u32) {
        let offset = self.current + 4;
        let count = u32::from_be_bytes([
            self.part.bytes[offset],
            self.part.bytes[offset + 1],
            self.part.bytes[offset + 2],
            self.part.bytes[offset + 3],
        ]);
        if count == 0 {
            self.push(u32::from(in_blocks));
        }
        self.patch(offset, count + 1);
        self.push(instance as u32);
        self.push(word);
    }

    /// Adds a 32-bit value (32 and U32) to the current set.
    pub fn in_place(&mut self, instance: InstId, bits: u32) {
        self.lane(instance, false, bits);
    }

    /// Adds a value of any other type to the current set.
    pub fn block(&mut self, instance: InstId, value: BlockValue<'_>) {
        let position = (self.blocks.len() / 4) as u32;
        match value {
            BlockValue::I64(v) => self.data(2, &v.to_be_bytes()),
            BlockValue::U64(v) => self.data(3, &v.to_be_bytes()),
            BlockValue::F32(v) => self.data(4, &v.to_be_bytes()),
            BlockValue::F64(v) => self.data(5, &v.to_be_bytes()),
            BlockValue::Text(v) => {
                self.header(6, v.len() + 1);
                self.blocks.extend_from_slice(v.as_bytes());
                self.blocks.push(0);
            }
            BlockValue::Aggregate(v) => self.data(7, v),
        }
        self.block_lane(instance, position);
    }

    /// Adds a value whose bytes are those of a block of a type code.
    pub fn encoded_block(&mut self, instance: InstId, code: u8, bytes: &[u8]) {
        let position = (self.blocks.len() / 4) as u32;
        self.data(code, bytes);
        self.block_lane(instance, position);
    }

    fn block_lane(&mut self, instance: InstId, position: u32) {
        while !self.blocks.len().is_multiple_of(4) {
            self.blocks.push(b'~');
        }
        self.lane(instance, true, position);
        self.pending.push(self.part.bytes.len() - 4);
    }

    fn header(&mut self, code: u8, length: usize) {
        let length = (length + 4) as u32;
        self.blocks.extend_from_slice(&(u32::from(code) << 24 | length & 0xff_ffff).to_be_bytes());
    }

    fn data(&mut self, code: u8, bytes: &[u8]) {
        self.header(code, bytes.len());
        self.blocks.extend_from_slice(bytes);
    }

    /// Appends the blocks and settles their positions.
    pub fn finish(mut self) {
        let base = (self.part.bytes.len() / 4) as u32;
        for offset in std::mem::take(&mut self.pending) {
            let bytes = &self.part.bytes[offset..offset + 4];
            let position = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            self.patch(offset, base + position);
        }
        self.part.bytes.extend_from_slice(&self.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Lane, ResultBatch};

    #[test]
    fn a_set_that_fails_late_leaves_the_others_alone() {
        let mut batch = ResultBatch::default();
        let part = batch.add_part();
        let mut writer = ResultWriter::new(part, Timestamp::new(7, 5));
        writer.set(Pmid(1));
        writer.block(-1, BlockValue::U64(1));
        writer.set(Pmid(2));
        writer.block(0, BlockValue::U64(2));
        writer.block(1, BlockValue::U64(3));
        writer.fail(PmStatus::TYPE);
        writer.set(Pmid(3));
        writer.block(-1, BlockValue::U64(4));
        writer.finish();
        let part = &batch.parts()[0];
        let sets: Vec<_> = part.sets().collect();
        assert_eq!(sets.len(), 3);
        assert_eq!(sets[1].count, Err(PmStatus::TYPE));
        for (set, value) in [(0, 1u64), (2, 4)] {
            let lane = sets[set].lanes().next().unwrap();
            assert_eq!(part.block(lane.word), Some((3, &value.to_be_bytes()[..])));
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut batch = ResultBatch::default();
        let part = batch.add_part();
        let mut writer = ResultWriter::new(part, Timestamp::new(7, 5));
        writer.set(Pmid(1));
        writer.in_place(-1, 42);
        writer.status(Pmid(2), PmStatus::AGAIN);
        writer.set(Pmid(3));
        writer.block(10, BlockValue::F64(1.5));
        writer.block(11, BlockValue::Text("hi"));
        writer.set(Pmid(4));
        writer.finish();
        let part = &batch.parts()[0];
        let sets: Vec<_> = part.sets().collect();
        assert_eq!(sets.len(), 4);
        assert_eq!(sets[0].lanes().collect::<Vec<_>>(), [Lane { instance: -1, word: 42 }]);
        assert_eq!(sets[1].count, Err(PmStatus::AGAIN));
        let lanes: Vec<_> = sets[2].lanes().collect();
        assert!(sets[2].in_blocks);
        assert_eq!(part.block(lanes[0].word), Some((5, &1.5f64.to_be_bytes()[..])));
        assert_eq!(part.block(lanes[1].word), Some((6, &b"hi\0"[..])));
        assert_eq!(sets[3].count, Ok(0));
    }
}
