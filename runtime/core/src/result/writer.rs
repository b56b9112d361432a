//! Writes value sets, for all producers of values without an encoding: agents,
//! sources in memory, interpolation, derived metrics, tests.

use crate::model::{InstId, PmStatus, Pmid, RawValueRef, Timestamp, ValueType};
use crate::result::wire::AGGREGATE;
use crate::result::{Columns, Content, Form, ResultPart, ValueSet};

/// A value that is not a 32-bit integer.
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

/// Writes value sets in order into one part.
///
/// Begin each set with [`ResultWriter::set`] or [`ResultWriter::status`] and
/// then add its values. The values should be of one kind: values in place (32
/// and U32) or values in blocks. A set of both kinds becomes a set of blocks.
#[derive(Debug)]
pub struct ResultWriter<'p> {
    columns: &'p mut Columns,
}

impl<'p> ResultWriter<'p> {
    /// Empties `part` and begins a result in it.
    pub fn new(part: &'p mut ResultPart, timestamp: Timestamp) -> ResultWriter<'p> {
        part.timestamp = timestamp;
        ResultWriter { columns: part.set_columns() }
    }

    /// Begins a set without values.
    pub fn set(&mut self, pmid: Pmid) {
        self.columns.begin(pmid, 0);
    }

    /// Writes a set whose metric failed.
    pub fn status(&mut self, pmid: Pmid, status: PmStatus) {
        self.columns.begin(pmid, status.0.min(0));
    }

    /// Turns the current set into one whose metric failed. Earlier values are
    /// removed, and later ones are dropped.
    pub fn fail(&mut self, status: PmStatus) {
        self.columns.fail(status);
    }

    /// Number of values of the current set.
    pub fn count(&self) -> usize {
        self.columns.count()
    }

    /// Adds a 32-bit integer (32 or U32) to the current set.
    pub fn in_place(&mut self, instance: InstId, bits: u32) {
        self.columns.push(instance, RawValueRef::InPlace(bits));
    }

    /// Adds a value of any other type to the current set. A value longer than
    /// 16 MiB makes the metric fail with `PM_ERR_TOOBIG`.
    pub fn block(&mut self, instance: InstId, value: BlockValue<'_>) {
        use ValueType::{F32, F64, I64, U64};
        let (value_type, bits) = match value {
            BlockValue::I64(v) => (I64, v.cast_unsigned()),
            BlockValue::U64(v) => (U64, v),
            BlockValue::F32(v) => (F32, v.to_bits().into()),
            BlockValue::F64(v) => (F64, v.to_bits()),
            BlockValue::Text(v) => return self.pieces(instance, TEXT, &[v.as_bytes(), &[0]]),
            BlockValue::Aggregate(v) => return self.pieces(instance, AGGREGATE, &[v]),
        };
        self.value(instance, RawValueRef::Number { value_type, bits });
    }

    /// Adds a value as the type code and data of a block.
    pub fn encoded_block(&mut self, instance: InstId, code: u8, bytes: &[u8]) {
        self.value(instance, RawValueRef::Block { code, bytes });
    }

    /// Like [`ResultWriter::encoded_block`], with data in pieces.
    pub fn pieces(&mut self, instance: InstId, code: u8, pieces: &[&[u8]]) {
        self.columns.push_bytes(instance, code, pieces);
    }

    /// Adds a value from another result.
    pub fn value(&mut self, instance: InstId, value: RawValueRef<'_>) {
        self.columns.push(instance, value);
    }

    /// Copies a value set from another result. If that lacks a value, the
    /// metric fails with [`PmStatus::LOGREC`].
    pub fn copy(&mut self, set: &ValueSet<'_>) {
        if let Err(status) = set.count {
            return self.status(set.pmid, status);
        }
        self.set(set.pmid);
        if let Content::Columns(columns) = &set.content
            && columns.form() != Form::Bytes
        {
            let lanes = self.columns.fill(columns.form(), columns.ids().iter().copied());
            return lanes.copy_from_slice(columns.lanes());
        }
        for (instance, value) in set.values() {
            match value {
                Some(value) => self.value(instance, value),
                None => return self.fail(PmStatus::LOGREC),
            }
        }
    }

    /// Gives the current set all of its values at once: numbers of
    /// `value_type`. They replace the values that it has. The caller writes
    /// them to the returned bytes, as lanes of the type's size in the machine's
    /// byte order. 32-bit integers are in place. [`ValueType::F32`] is in place
    /// if `in_place` says so, as in old archives.
    ///
    /// The returned bytes are empty if the set has failed ([`ResultWriter::fail`]).
    /// A type that is not numeric makes the metric fail with `PM_ERR_TYPE`.
    pub fn numbers(
        &mut self,
        value_type: ValueType,
        in_place: bool,
        instances: impl ExactSizeIterator<Item = InstId>,
    ) -> &mut [u8] {
        let form = match value_type {
            ValueType::I32 | ValueType::U32 => Form::Words,
            ValueType::F32 if in_place => Form::Words,
            ValueType::F32 | ValueType::I64 | ValueType::U64 | ValueType::F64 => {
                Form::Numbers(value_type)
            }
            _ => {
                self.fail(PmStatus::TYPE);
                return &mut [];
            }
        };
        self.columns.fill(form, instances)
    }
}

/// Type code of text.
const TEXT: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RawValue;
    use crate::result::ResultBatch;

    type Delivered = Vec<(Pmid, Result<usize, PmStatus>, Vec<(InstId, RawValue)>)>;

    /// The contents of a part, read value by value.
    fn read(part: &ResultPart) -> Delivered {
        let value = |(instance, value): (InstId, Option<RawValueRef<'_>>)| {
            (instance, value.expect("all values are there").to_owned())
        };
        part.sets().map(|set| (set.pmid, set.count, set.values().map(value).collect())).collect()
    }

    fn block(code: u8, bytes: &[u8]) -> RawValue {
        RawValue::Block { code, bytes: bytes.into() }
    }

    #[test]
    fn a_set_that_fails_late_leaves_the_others_alone() {
        let mut batch = ResultBatch::default();
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(7, 5));
        writer.set(Pmid(1));
        writer.block(-1, BlockValue::U64(1));
        writer.set(Pmid(2));
        writer.block(0, BlockValue::U64(2));
        writer.block(1, BlockValue::U64(3));
        writer.fail(PmStatus::TYPE);
        writer.block(2, BlockValue::U64(3));
        writer.set(Pmid(3));
        writer.block(-1, BlockValue::U64(4));
        let of = |value: u64| vec![(-1, block(3, &value.to_be_bytes()))];
        let sets = [
            (Pmid(1), Ok(1), of(1)),
            (Pmid(2), Err(PmStatus::TYPE), vec![]),
            (Pmid(3), Ok(1), of(4)),
        ];
        assert_eq!(read(&batch.parts()[0]), sets);
    }

    /// The same values in columns and encoded, read by value and by column.
    #[test]
    fn what_is_written_is_read_back() {
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::new(7, 5));
        writer.set(Pmid(1));
        writer.in_place(-1, 42);
        writer.status(Pmid(2), PmStatus::AGAIN);
        writer.set(Pmid(3));
        writer.block(10, BlockValue::F64(1.5));
        writer.block(11, BlockValue::Text("hi"));
        writer.set(Pmid(4));
        writer.set(Pmid(5));
        writer.encoded_block(7, 3, b"not eight");
        writer.block(8, BlockValue::Aggregate(b""));
        writer.encoded_block(9, 0, &[0, 0, 0, 0, 0, 0, 0, 9]);
        writer.in_place(12, 8);
        writer.set(Pmid(6));
        let lanes = writer.numbers(ValueType::F32, false, [3, 4].into_iter());
        lanes[..4].copy_from_slice(&1.5f32.to_ne_bytes());
        lanes[4..].copy_from_slice(&2.5f32.to_ne_bytes());
        writer.set(Pmid(7));
        writer.numbers(ValueType::F32, true, [3].into_iter()).fill(1);
        writer.set(Pmid(8));
        let lanes = writer.numbers(ValueType::I64, true, [3].into_iter());
        lanes.copy_from_slice(&(-2i64).to_ne_bytes());
        let float = |value: f32| block(4, &value.to_be_bytes());
        let expected = vec![
            (Pmid(1), Ok(1), vec![(-1, RawValue::InPlace(42))]),
            (Pmid(2), Err(PmStatus::AGAIN), vec![]),
            (Pmid(3), Ok(2), vec![(10, block(5, &1.5f64.to_be_bytes())), (11, block(6, b"hi\0"))]),
            (Pmid(4), Ok(0), vec![]),
            (
                Pmid(5),
                Ok(4),
                vec![
                    (7, block(3, b"not eight")),
                    (8, block(7, b"")),
                    (9, block(0, &9u64.to_be_bytes())),
                    (12, block(1, &8u32.to_be_bytes())),
                ],
            ),
            (Pmid(6), Ok(2), vec![(3, float(1.5)), (4, float(2.5))]),
            (Pmid(7), Ok(1), vec![(3, RawValue::InPlace(0x0101_0101))]),
            (Pmid(8), Ok(1), vec![(3, block(2, &(-2i64).to_be_bytes()))]),
        ];
        assert_eq!(read(&part), expected);
        part.encode();
        assert_eq!(read(&part), expected);
        assert_eq!(
            part.sets().nth(4).map(|set| set.numbers(ValueType::U64, &mut vec![])),
            Some(false)
        );
        let mut bits = Vec::new();
        let numbers = part.sets().nth(7).map(|set| set.numbers(ValueType::I64, &mut bits));
        assert_eq!((numbers, &bits[..]), (Some(true), &[(-2i64).cast_unsigned()][..]));
    }

    #[test]
    fn numbers_replace_values_and_do_not_undo_a_failure() {
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::new(7, 5));
        writer.set(Pmid(1));
        writer.fail(PmStatus::AGAIN);
        assert!(writer.numbers(ValueType::U32, false, [1, 2].into_iter()).is_empty());
        writer.set(Pmid(2));
        writer.in_place(7, 70);
        writer.in_place(8, 80);
        writer.in_place(9, 90);
        let lanes = writer.numbers(ValueType::I64, false, [3].into_iter());
        lanes.copy_from_slice(&5i64.to_ne_bytes());
        writer.set(Pmid(3));
        assert!(writer.numbers(ValueType::String, false, [1].into_iter()).is_empty());
        writer.set(Pmid(4));
        writer.in_place(-1, 1);
        let expected = vec![
            (Pmid(1), Err(PmStatus::AGAIN), vec![]),
            (Pmid(2), Ok(1), vec![(3, block(2, &5i64.to_be_bytes()))]),
            (Pmid(3), Err(PmStatus::TYPE), vec![]),
            (Pmid(4), Ok(1), vec![(-1, RawValue::InPlace(1))]),
        ];
        assert_eq!(read(&part), expected);
        part.encode();
        assert_eq!(read(&part), expected);
    }

    /// A value that no block can hold fails; it is not cut short.
    #[test]
    fn values_that_are_too_long_fail() {
        let long = vec![1; 1 << 24];
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::default());
        for length in [long.len(), 0xff_ffff - 3, 0xff_ffff - 4] {
            writer.set(Pmid(1));
            writer.block(-1, BlockValue::Aggregate(&long[..length]));
            writer.block(1, BlockValue::U64(3));
        }
        let counts: Vec<_> = part.sets().map(|set| set.count).collect();
        assert_eq!(counts, [Err(PmStatus::TOOBIG), Err(PmStatus::TOOBIG), Ok(2)]);
    }
}
