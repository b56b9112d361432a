//! Writes one value set and the blocks of its values.
//!
//! In: values as bits or bytes. Out: the encoding of
//! [`crate::result::ResultBatch`], with sets in one buffer and blocks in
//! another whose first byte is the block origin. Where they come from is not
//! known here.

use crate::model::{InstId, PmStatus, Pmid, ValueType};
use crate::result::append_numbers;

/// A value set that is being written.
pub(super) struct SetWriter<'a> {
    sets: &'a mut Vec<u8>,
    blocks: &'a mut Vec<u8>,
    /// Offset of the set in `sets`.
    start: usize,
    count: u32,
    /// Form of the values; the first one decides.
    in_blocks: bool,
}

impl<'a> SetWriter<'a> {
    /// Begins a set without values.
    pub(super) fn begin(
        pmid: Pmid,
        sets: &'a mut Vec<u8>,
        blocks: &'a mut Vec<u8>,
    ) -> SetWriter<'a> {
        let start = sets.len();
        sets.extend_from_slice(&pmid.0.to_be_bytes());
        sets.extend_from_slice(&[0; 4]);
        SetWriter { sets, blocks, start, count: 0, in_blocks: false }
    }

    /// Number of values so far.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Puts a status in the place of all values.
    pub(super) fn fail(&mut self, status: PmStatus) {
        self.sets.truncate(self.start + 4);
        self.sets.extend_from_slice(&status.0.to_be_bytes());
        self.count = 0;
    }

    fn lane(&mut self, instance: InstId, in_blocks: bool, word: u32) {
        if self.count == 0 {
            self.in_blocks = in_blocks;
            self.sets.extend_from_slice(&u32::from(in_blocks).to_be_bytes());
        }
        self.count += 1;
        self.sets[self.start + 4..self.start + 8].copy_from_slice(&self.count.to_be_bytes());
        self.sets.extend_from_slice(&instance.to_be_bytes());
        self.sets.extend_from_slice(&word.to_be_bytes());
    }

    /// Adds a number.
    pub(super) fn number(
        &mut self,
        instance: InstId,
        value_type: ValueType,
        in_blocks: bool,
        bits: u64,
    ) {
        let in_blocks = if self.count == 0 { in_blocks } else { self.in_blocks };
        match value_type {
            ValueType::I64 | ValueType::U64 | ValueType::F64 => {
                self.bytes(instance, value_type, &bits.to_be_bytes());
            }
            ValueType::F32 if in_blocks => {
                self.bytes(instance, value_type, &(bits as u32).to_be_bytes());
            }
            _ => self.lane(instance, false, bits as u32),
        }
    }

    /// Adds all numbers of a set that has none yet; the same as adding each.
    pub(super) fn numbers(
        &mut self,
        value_type: ValueType,
        in_blocks: bool,
        values: impl ExactSizeIterator<Item = (InstId, u64)>,
    ) {
        self.count = values.len() as u32;
        self.sets.truncate(self.start + 4);
        append_numbers(self.sets, self.blocks, value_type, in_blocks, values);
    }

    /// Adds a value in a block.
    pub(super) fn bytes(&mut self, instance: InstId, value_type: ValueType, data: &[u8]) {
        let position = (self.blocks.len() / 4) as u32;
        // Blocks have no room for codes without a meaning.
        let code = u8::try_from(value_type.code()).unwrap_or(u8::MAX);
        let header = u32::from(code) << 24 | (data.len() as u32 + 4) & 0xff_ffff;
        self.blocks.extend_from_slice(&header.to_be_bytes());
        self.blocks.extend_from_slice(data);
        self.blocks.resize(self.blocks.len().next_multiple_of(4), b'~');
        self.lane(instance, true, position);
    }
}
