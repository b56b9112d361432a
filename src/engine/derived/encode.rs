//! Writes value sets into a result whose buffers are kept: those of derived
//! metrics, and copies of those that the source delivered.
//!
//! The form is that of [`pmderive_runtime::result`]; blocks stand behind all
//! sets, so their positions are known when the sets are written.

use pmderive_runtime::eval::{Evaluation, Value, Values};
use pmderive_runtime::model::{InstId, PmStatus, Pmid, Timestamp, ValueType};
use pmderive_runtime::program::Status;
use pmderive_runtime::result::{
    LayoutId, NumberPlace, ResultBatch, ResultPart, ValueSet, append_numbers,
};

/// Longest data of a block, whose header has 24 bits for it and itself.
const MAX_BLOCK_BYTES: usize = 0xff_ffff - 4;

/// What is kept from result to result.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Blocks of the result being written.
    pub blocks: Vec<u8>,
    /// Where each fetched value set is: part and offset, by slot.
    pub fetched: Vec<(usize, usize)>,
    /// The result before.
    pub written: Written,
}

/// What was found out about a result, for others that differ from it in
/// nothing but the numbers of derived metrics.
#[derive(Debug, Default)]
pub struct Written {
    /// The plan and the layout of the evaluation that it was written for.
    of: Option<(u64, LayoutId)>,
    /// Layout of the result; `None` until it is worth the while to find out, or
    /// if there are other values than numbers.
    layout: Option<LayoutId>,
    /// The outputs that have values, and where these stand.
    sets: Vec<(usize, NumberPlace)>,
}

impl Written {
    /// Adds the part that was written before with the numbers of now. False,
    /// with nothing added, if more than those differs.
    pub fn again(
        &self,
        plan: u64,
        values: &Evaluation<'_>,
        stamp: Timestamp,
        batch: &mut ResultBatch,
    ) -> bool {
        let Some(layout) = self.layout else { return false };
        if values.layout().is_none_or(|of| self.of != Some((plan, of))) {
            return false;
        }
        let Some(part) = batch.add_part_again(layout) else { return false };
        part.timestamp = stamp;
        for (output, place) in &self.sets {
            values.get(*output).overwrite(place, &mut part.bytes);
        }
        true
    }

    /// Takes note of a part that was written for a plan, whose entries are
    /// outputs or have no values; once for those that come again.
    pub fn learn(
        &mut self,
        plan: u64,
        values: &Evaluation<'_>,
        outputs: impl Iterator<Item = Option<usize>>,
        part: &mut ResultPart,
    ) {
        let of = values.layout().map(|layout| (plan, layout));
        let is_again = of.is_some() && self.of == of;
        (self.of, self.layout) = (of, None);
        if !is_again {
            return;
        }
        self.sets.clear();
        let mut sets = part.sets();
        for output in outputs {
            let offset = sets.offset();
            let Some(set) = sets.next() else { return };
            if set.lanes().len() == 0 {
                continue;
            }
            let place = output.and_then(|output| {
                let value_type = values.get(output).value_type();
                Some((output, part.numbers(offset, &set, value_type)?))
            });
            let Some(place) = place else { return };
            self.sets.push(place);
        }
        self.layout = Some(LayoutId::fresh());
        part.layout = self.layout;
    }
}

/// Writes a result.
pub struct Encoder<'e> {
    part: &'e mut ResultPart,
    blocks: &'e mut Vec<u8>,
}

impl<'e> Encoder<'e> {
    /// Begins a result in `part`, which is empty.
    pub fn new(part: &'e mut ResultPart, blocks: &'e mut Vec<u8>, stamp: Timestamp) -> Encoder<'e> {
        part.timestamp = stamp;
        blocks.clear();
        Encoder { part, blocks }
    }

    /// Puts the blocks behind the sets, and gives the part.
    pub fn finish(self) -> &'e mut ResultPart {
        // Sets are whole words. Lengths are far below what an i64 holds.
        self.part.block_origin = i64::try_from(self.part.bytes.len()).unwrap_or(i64::MAX);
        self.part.bytes.extend_from_slice(self.blocks);
        self.part
    }

    fn word(&mut self, word: u32) {
        self.part.bytes.extend_from_slice(&word.to_be_bytes());
    }

    /// A set without values.
    pub fn empty(&mut self, pmid: Pmid) {
        self.part.set_count += 1;
        self.word(pmid.0);
        self.word(0);
    }

    /// A set of a metric that failed.
    pub fn failed(&mut self, pmid: Pmid, status: PmStatus) {
        self.part.set_count += 1;
        self.word(pmid.0);
        self.word(status.0.cast_unsigned());
    }

    /// A set of `count` values, which `write` adds one after the other. When
    /// it fails the set is one of a metric that failed.
    fn values(
        &mut self,
        pmid: Pmid,
        count: usize,
        in_blocks: bool,
        write: impl FnOnce(&mut Self) -> Result<(), PmStatus>,
    ) {
        let (start, blocks) = (self.part.bytes.len(), self.blocks.len());
        let Ok(numval) = i32::try_from(count) else { return self.failed(pmid, PmStatus::TOOBIG) };
        self.part.set_count += 1;
        self.word(pmid.0);
        self.word(numval.cast_unsigned());
        self.word(u32::from(in_blocks));
        if let Err(status) = write(self) {
            self.part.bytes.truncate(start);
            self.part.set_count -= 1;
            self.blocks.truncate(blocks);
            self.failed(pmid, status);
        }
    }

    fn in_place(&mut self, instance: InstId, bits: u32) {
        self.word(instance.cast_unsigned());
        self.word(bits);
    }

    /// A value in a block of its own, whose data are the pieces together.
    fn block(&mut self, instance: InstId, code: u8, pieces: &[&[u8]]) -> Result<(), PmStatus> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        if length > MAX_BLOCK_BYTES {
            return Err(PmStatus::TOOBIG);
        }
        let position = u32::try_from(self.blocks.len() / 4).map_err(|_| PmStatus::TOOBIG)?;
        self.word(instance.cast_unsigned());
        self.word(position);
        let [_, header @ ..] = (length as u32 + 4).to_be_bytes();
        self.blocks.push(code);
        self.blocks.extend_from_slice(&header);
        pieces.iter().for_each(|piece| self.blocks.extend_from_slice(piece));
        self.blocks.resize(self.blocks.len().next_multiple_of(4), 0);
        Ok(())
    }

    /// A set that the source delivered in `part`.
    pub fn copied(&mut self, part: &ResultPart, set: &ValueSet<'_>) {
        match set.count {
            Err(status) => self.failed(set.pmid, status),
            Ok(0) => self.empty(set.pmid),
            Ok(count) => self.values(set.pmid, count, set.in_blocks, |encoder| {
                for lane in set.lanes() {
                    if !set.in_blocks {
                        encoder.in_place(lane.instance, lane.word);
                        continue;
                    }
                    let (code, data) = part.block(lane.word).ok_or(PmStatus::LOGREC)?;
                    encoder.block(lane.instance, code, &[data])?;
                }
                Ok(())
            }),
        }
    }

    /// A set of a derived metric.
    pub fn derived(&mut self, pmid: Pmid, values: &Values<'_>) {
        match values.status {
            Status::Failed(status) => return self.failed(pmid, status),
            Status::Empty(_) => return self.empty(pmid),
            Status::Values if values.is_empty() => return self.empty(pmid),
            Status::Values => {}
        }
        match values.numbers() {
            Some(numbers) => self.numbers(pmid, values.value_type(), numbers),
            None => self.values(pmid, values.len(), true, |encoder| {
                // Every type that values have fits.
                let code = u8::try_from(values.value_type().code()).unwrap_or(u8::MAX);
                for (instance, value) in values.iter() {
                    match value {
                        Value::Text(text) => encoder.block(instance, code, &[text, &[0]])?,
                        Value::Bytes(bytes) => encoder.block(instance, code, &[bytes])?,
                        _ => return Err(PmStatus::BOTCH),
                    }
                }
                Ok(())
            }),
        }
    }

    fn numbers(
        &mut self,
        pmid: Pmid,
        value_type: ValueType,
        values: impl ExactSizeIterator<Item = (InstId, u64)>,
    ) {
        // No number takes more in a block. All positions have to fit.
        let blocks = values.len().saturating_mul(12).saturating_add(self.blocks.len());
        if i32::try_from(values.len()).is_err() || u32::try_from(blocks / 4).is_err() {
            return self.failed(pmid, PmStatus::TOOBIG);
        }
        self.part.set_count += 1;
        self.word(pmid.0);
        append_numbers(&mut self.part.bytes, self.blocks, value_type, true, values);
    }
}
