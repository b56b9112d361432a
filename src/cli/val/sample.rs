//! The values of one fetch, in buffers that serve for one sample after the other.
//!
//! Knows value sets, not what is printed of them.

use pmderive_runtime::model::{InstId, PmStatus, RawValueRef, Timestamp, Value, ValueType};
use pmderive_runtime::result::{InstanceValue, ResultBatch};

/// The values of one metric at one time, in ascending order of instances.
#[derive(Default)]
pub struct Sample {
    /// When they were taken.
    pub time: Timestamp,
    values: Vec<Place>,
    /// The bytes of blocks.
    bytes: Vec<u8>,
}

/// The value of an instance.
#[derive(Clone, Copy)]
struct Place {
    instance: InstId,
    value: Stored,
    /// What it is as a number, if that is wanted and it is one.
    number: Option<f64>,
}

/// A value in a sample.
#[derive(Clone, Copy)]
pub struct SampleValue<'s> {
    /// As it was delivered.
    pub raw: RawValueRef<'s>,
    number: Option<f64>,
}

impl SampleValue<'_> {
    /// The value of a metric of type `value_type` as a number.
    ///
    /// # Errors
    /// It is not of that type, or is none.
    pub fn number(&self, value_type: ValueType) -> Result<f64, PmStatus> {
        self.number.map_or_else(|| number(self.raw, value_type), Ok)
    }
}

#[derive(Clone, Copy)]
enum Stored {
    InPlace(u32),
    /// A block with its type code: most are numbers.
    Eight(u8, [u8; 8]),
    /// Another block, from one offset in the bytes to another.
    Block(u8, usize, usize),
}

impl Sample {
    /// Takes over the first value set of a batch. Numbers of a type are
    /// decoded if that is given.
    ///
    /// # Errors
    /// Why there are no values; [`PmStatus::IPC`] for a batch without a set, or
    /// where a block is missing.
    pub fn read_batch(
        &mut self,
        batch: &ResultBatch,
        numbers: Option<ValueType>,
    ) -> Result<(), PmStatus> {
        self.clear();
        let mut sets =
            batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
        let (part, set) = sets.next().ok_or(PmStatus::IPC)?;
        self.values.reserve(set.count?);
        for lane in set.lanes() {
            self.push(lane.instance, part.value(&set, lane).ok_or(PmStatus::IPC)?, numbers);
        }
        self.sort();
        Ok(())
    }

    /// Takes over values, which are decoded when they are asked for.
    pub fn read_values(&mut self, values: &[InstanceValue]) {
        self.clear();
        for InstanceValue { instance, value } in values {
            self.push(*instance, value.borrowed(), None);
        }
        self.sort();
    }

    fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
    }

    #[inline]
    fn push(&mut self, instance: InstId, raw: RawValueRef<'_>, numbers: Option<ValueType>) {
        let number = numbers.and_then(|value_type| number(raw, value_type).ok());
        let value = match raw {
            RawValueRef::InPlace(word) => Stored::InPlace(word),
            RawValueRef::Block { code, bytes } => match <[u8; 8]>::try_from(bytes) {
                Ok(bytes) => Stored::Eight(code, bytes),
                Err(_) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(bytes);
                    Stored::Block(code, start, self.bytes.len())
                }
            },
        };
        self.values.push(Place { instance, value, number });
    }

    /// Values of the same instance stay in the order delivered.
    fn sort(&mut self) {
        if !self.values.is_sorted_by_key(|place| place.instance) {
            self.values.sort_by_key(|place| place.instance);
        }
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The instances of the values, ascending.
    pub fn instances(&self) -> impl Iterator<Item = InstId> {
        self.values.iter().map(|place| place.instance)
    }

    /// The values with their instances, ascending.
    pub fn values(&self) -> impl Iterator<Item = (InstId, SampleValue<'_>)> {
        self.values.iter().map(|place| (place.instance, self.value(place)))
    }

    /// The value, if there is exactly one.
    pub fn single(&self) -> Option<SampleValue<'_>> {
        match &self.values[..] {
            [single] => Some(self.value(single)),
            _ => None,
        }
    }

    /// The first value of an instance.
    pub fn of_instance(&self, instance: InstId) -> Option<SampleValue<'_>> {
        self.ascending().of_instance(instance)
    }

    /// A search for values of instances that are asked for in ascending order.
    pub fn ascending(&self) -> Ascending<'_> {
        Ascending { sample: self, next: 0 }
    }

    #[inline]
    fn value<'s>(&'s self, place: &'s Place) -> SampleValue<'s> {
        let raw = match &place.value {
            Stored::InPlace(word) => RawValueRef::InPlace(*word),
            Stored::Eight(code, bytes) => RawValueRef::Block { code: *code, bytes },
            Stored::Block(code, start, end) => {
                RawValueRef::Block { code: *code, bytes: &self.bytes[*start..*end] }
            }
        };
        SampleValue { raw, number: place.number }
    }
}

/// See [`Sample::ascending`].
pub struct Ascending<'s> {
    sample: &'s Sample,
    next: usize,
}

impl<'s> Ascending<'s> {
    /// The first value of an instance, which is none before the last one that
    /// was asked for.
    #[inline]
    pub fn of_instance(&mut self, instance: InstId) -> Option<SampleValue<'s>> {
        let values = &self.sample.values;
        while values.get(self.next)?.instance < instance {
            self.next += 1;
        }
        let place = values.get(self.next)?;
        (place.instance == instance).then(|| self.sample.value(place))
    }
}

/// See [`SampleValue::number`].
#[inline]
fn number(value: RawValueRef<'_>, value_type: ValueType) -> Result<f64, PmStatus> {
    if let RawValueRef::Block { code, bytes } = value
        && i32::from(code) == value_type.code()
        && let Ok(bytes) = <[u8; 8]>::try_from(bytes)
    {
        match value_type {
            ValueType::I64 => return Ok(i64::from_be_bytes(bytes) as f64),
            ValueType::U64 => return Ok(u64::from_be_bytes(bytes) as f64),
            ValueType::F64 => return Ok(f64::from_be_bytes(bytes)),
            _ => {}
        }
    }
    match value.extract(value_type, ValueType::F64)? {
        Value::F64(number) => Ok(number),
        _ => Err(PmStatus::CONV),
    }
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::model::RawValue;

    use super::*;

    #[test]
    fn values_come_in_the_order_of_instances() {
        let value = |instance, value| InstanceValue { instance, value };
        let block = |bytes: &[u8]| RawValue::Block { code: 6, bytes: bytes.into() };
        let mut sample = Sample::default();
        for _ in 0..2 {
            sample.read_values(&[
                value(7, block(b"seven")),
                value(-1, RawValue::InPlace(1)),
                value(7, block(b"again")),
                value(3, block(b"")),
            ]);
            assert_eq!(sample.instances().collect::<Vec<_>>(), [-1, 3, 7, 7]);
            assert_eq!(
                sample.of_instance(7).map(|value| value.raw),
                Some(block(b"seven").borrowed())
            );
            assert!(sample.single().is_none());
            let mut search = sample.ascending();
            let mut find = |instance| search.of_instance(instance).map(|value| value.raw);
            assert_eq!(find(-1), Some(RawValueRef::InPlace(1)));
            assert_eq!(find(2), None);
            assert_eq!(find(3), Some(block(b"").borrowed()));
            assert_eq!(find(3), Some(block(b"").borrowed()));
            assert_eq!(find(7), Some(block(b"seven").borrowed()));
            assert_eq!(find(8), None);
        }
        sample.read_values(&[]);
        assert!(sample.is_empty());
    }

    #[test]
    fn numbers_are_those_that_are_extracted() {
        let bits = 0xc05e_dd2f_1a9f_be77_u64;
        for (value_type, code) in [(ValueType::I64, 2), (ValueType::U64, 3), (ValueType::F64, 5)] {
            for code in [code, 0, 6] {
                let bytes = &bits.to_be_bytes();
                for bytes in [&bytes[..], &bytes[..4]] {
                    let value = RawValueRef::Block { code, bytes };
                    let extracted = value.extract(value_type, ValueType::F64);
                    assert_eq!(number(value, value_type).map(Value::F64), extracted);
                }
            }
        }
        assert_eq!(number(RawValueRef::InPlace(u32::MAX), ValueType::I32), Ok(-1.0));
        assert_eq!(number(RawValueRef::InPlace(1), ValueType::F64), Err(PmStatus::CONV));
    }

    #[test]
    fn a_batch_without_a_set_is_no_sample() {
        let read = Sample::default().read_batch(&ResultBatch::default(), None);
        assert_eq!(read, Err(PmStatus::IPC));
    }
}
