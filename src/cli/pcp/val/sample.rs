//! The values of one fetch, in buffers that are reused for each sample.

use pmderive_runtime::model::{InstId, PmStatus, RawValueRef, Timestamp, Value, ValueType};
use pmderive_runtime::result::ValueSet;

/// The values of one metric at one time, in ascending order of instances.
pub struct Sample {
    /// Time of the sample.
    pub time: Timestamp,
    value_type: ValueType,
    instances: Vec<InstId>,
    /// The values, parallel to `instances`, if all are numbers of the metric's type.
    bits: Vec<u64>,
    /// Otherwise the values, parallel to `instances`.
    others: Vec<Stored>,
    /// The bytes of all blocks.
    bytes: Vec<u8>,
    /// The instances that were sorted last, in the order of delivery.
    delivered: Vec<InstId>,
    /// Their positions in ascending order.
    order: Vec<usize>,
    /// Buffers for sorting: instances, bits and others.
    former: (Vec<InstId>, Vec<u64>, Vec<Stored>),
}

/// A number of a metric's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// A type of numbers.
    pub value_type: ValueType,
    /// A number of 32 bits is in the low half.
    pub bits: u64,
}

/// A value in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleValue<'s> {
    /// A number.
    Number(Number),
    /// Any other value, as the source delivered it.
    Raw(RawValueRef<'s>),
}

impl Number {
    /// The number as `f64`.
    #[inline(always)]
    pub fn to_f64(self) -> f64 {
        match self.value_type {
            ValueType::I32 => f64::from(self.bits as i32),
            ValueType::U32 => f64::from(self.bits as u32),
            ValueType::I64 => self.bits as i64 as f64,
            ValueType::U64 => self.bits as f64,
            ValueType::F32 => f64::from(f32::from_bits(self.bits as u32)),
            _ => f64::from_bits(self.bits),
        }
    }

    /// Decimal digits, if the type has no fraction.
    #[inline]
    pub fn digits<'t>(&self, text: &'t mut itoa::Buffer) -> Option<&'t str> {
        match self.value_type {
            ValueType::I32 => Some(text.format(self.bits as i32)),
            ValueType::U32 => Some(text.format(self.bits as u32)),
            ValueType::I64 => Some(text.format(self.bits as i64)),
            ValueType::U64 => Some(text.format(self.bits)),
            _ => None,
        }
    }
}

impl SampleValue<'_> {
    /// The value of a metric of type `value_type` as a number.
    ///
    /// # Errors
    /// The value is of another type, or is no number.
    #[inline]
    pub fn number(&self, value_type: ValueType) -> Result<f64, PmStatus> {
        let raw = match self {
            SampleValue::Number(number) => return Ok(number.to_f64()),
            SampleValue::Raw(raw) => raw,
        };
        match raw.extract(value_type, ValueType::F64)? {
            Value::F64(number) => Ok(number),
            _ => Err(PmStatus::CONV),
        }
    }
}

#[derive(Clone, Copy)]
enum Stored {
    InPlace(u32),
    Number(ValueType, u64),
    /// A block: its type code, and the start and the end of its bytes.
    Block(u8, usize, usize),
}

impl Sample {
    /// An empty sample of a metric of type `value_type`.
    pub fn new(value_type: ValueType) -> Sample {
        Sample {
            time: Timestamp::default(),
            value_type,
            instances: Vec::new(),
            bits: Vec::new(),
            others: Vec::new(),
            bytes: Vec::new(),
            delivered: Vec::new(),
            order: Vec::new(),
            former: Default::default(),
        }
    }

    /// Copies a value set.
    ///
    /// # Errors
    /// There are no values, and this is why. It is [`PmStatus::IPC`] if there is no set, or if
    /// a block is missing.
    pub fn read(&mut self, set: Option<ValueSet<'_>>) -> Result<(), PmStatus> {
        self.clear();
        let set = set.ok_or(PmStatus::IPC)?;
        set.count?;
        if set.numbers(self.value_type, &mut self.bits) {
            self.instances.extend(set.instances());
        } else {
            for (instance, value) in set.values() {
                self.push(instance, value.ok_or(PmStatus::IPC)?);
            }
        }
        self.sort();
        Ok(())
    }

    fn clear(&mut self) {
        self.instances.clear();
        self.bits.clear();
        self.others.clear();
        self.bytes.clear();
    }

    fn push(&mut self, instance: InstId, raw: RawValueRef<'_>) {
        let value = match raw {
            RawValueRef::InPlace(word) => Stored::InPlace(word),
            RawValueRef::Number { value_type, bits } => Stored::Number(value_type, bits),
            RawValueRef::Block { code, bytes } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Stored::Block(code, start, self.bytes.len())
            }
        };
        self.instances.push(instance);
        self.others.push(value);
    }

    /// Sorts by instance. Values of the same instance keep their order.
    fn sort(&mut self) {
        if self.instances.is_sorted() {
            return;
        }
        let Sample { instances, bits, others, delivered, order, former, .. } = self;
        if instances != delivered {
            order.clear();
            order.extend(0..instances.len());
            order.sort_by_key(|at| instances[*at]);
            delivered.clone_from(instances);
        }
        rearrange(instances, &mut former.0, order);
        rearrange(bits, &mut former.1, order);
        rearrange(others, &mut former.2, order);
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// The instances of the values, ascending.
    pub fn instances(&self) -> &[InstId] {
        &self.instances
    }

    /// True if both samples have only numbers, for the same instances.
    pub fn has_numbers_of(&self, other: &Sample) -> bool {
        self.others.is_empty() && self.instances == other.instances && self.bits == other.bits
    }

    /// The bits of [`Number`]s, parallel to `instances`. `None` unless the sample has exactly
    /// these instances and only numbers.
    pub fn bits_of(&self, instances: &[InstId]) -> Option<&[u64]> {
        (self.others.is_empty() && self.instances == instances).then_some(&self.bits)
    }

    /// The values with their instances, ascending.
    pub fn values(&self) -> impl Iterator<Item = (InstId, SampleValue<'_>)> {
        self.instances.iter().enumerate().map(|(at, instance)| (*instance, self.value(at)))
    }

    /// The value, if there is exactly one.
    pub fn single(&self) -> Option<SampleValue<'_>> {
        (self.instances.len() == 1).then(|| self.value(0))
    }

    /// The first value of an instance.
    pub fn of_instance(&self, instance: InstId) -> Option<SampleValue<'_>> {
        self.ascending().of_instance(instance)
    }

    /// A search for values of ascending instances.
    pub fn ascending(&self) -> Ascending<'_> {
        Ascending { sample: self, next: 0 }
    }

    fn value(&self, at: usize) -> SampleValue<'_> {
        if let Some(bits) = self.bits.get(at).copied() {
            return SampleValue::Number(Number { value_type: self.value_type, bits });
        }
        SampleValue::Raw(match self.others[at] {
            Stored::InPlace(word) => RawValueRef::InPlace(word),
            Stored::Number(value_type, bits) => RawValueRef::Number { value_type, bits },
            Stored::Block(code, start, end) => {
                RawValueRef::Block { code, bytes: &self.bytes[start..end] }
            }
        })
    }
}

/// Reorders values, if there are any; `former` is a buffer.
fn rearrange<T: Copy>(values: &mut Vec<T>, former: &mut Vec<T>, order: &[usize]) {
    std::mem::swap(values, former);
    values.clear();
    values.extend(order.iter().filter_map(|at| former.get(*at).copied()));
}

/// See [`Sample::ascending`].
pub struct Ascending<'s> {
    sample: &'s Sample,
    next: usize,
}

impl<'s> Ascending<'s> {
    /// The first value of an instance. Instances must ascend from call to call.
    #[inline]
    pub fn of_instance(&mut self, instance: InstId) -> Option<SampleValue<'s>> {
        let instances = &self.sample.instances;
        while *instances.get(self.next)? < instance {
            self.next += 1;
        }
        (instances[self.next] == instance).then(|| self.sample.value(self.next))
    }
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::model::Pmid;
    use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};

    use super::*;

    #[test]
    fn values_come_in_the_order_of_instances() {
        let block = |bytes| RawValueRef::Block { code: 6, bytes };
        let (one, seven, none) = (block(b"one"), block(b"seven"), block(b""));
        let mut batch = ResultBatch::default();
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
        writer.set(Pmid(1));
        writer.value(7, seven);
        writer.value(-1, one);
        writer.value(7, block(b"again"));
        writer.value(3, none);
        let mut sample = Sample::new(ValueType::Aggregate);
        for _ in 0..2 {
            sample.read(batch.sets().next()).expect("there is one");
            assert_eq!(sample.instances(), [-1, 3, 7, 7]);
            assert!(sample.bits.is_empty());
            assert_eq!(sample.of_instance(7), Some(SampleValue::Raw(seven)));
            assert!(sample.single().is_none());
            let mut search = sample.ascending();
            let mut find = |instance| search.of_instance(instance);
            assert_eq!(find(-1), Some(SampleValue::Raw(one)));
            assert_eq!(find(2), None);
            assert_eq!(find(3), Some(SampleValue::Raw(none)));
            assert_eq!(find(3), Some(SampleValue::Raw(none)));
            assert_eq!(find(7), Some(SampleValue::Raw(seven)));
            assert_eq!(find(8), None);
        }
        ResultWriter::new(batch.add_part(), Timestamp::new(2, 0)).set(Pmid(2));
        sample.read(batch.sets().last()).expect("there are two");
        assert!(sample.is_empty());
    }

    /// Whether it is kept as a number or as it was delivered, a value says the same.
    #[test]
    fn numbers_are_those_that_are_extracted() {
        use ValueType::{F32, F64, I32, I64, U32, U64};
        let bits = 0xc05e_dd2f_1a9f_be77_u64;
        let mut as_numbers = 0;
        for value_type in [I32, U32, I64, U64, F32, F64] {
            let blocks = [
                BlockValue::I64(bits as i64),
                BlockValue::U64(bits),
                BlockValue::F32(f32::from_bits(bits as u32)),
                BlockValue::F64(f64::from_bits(bits)),
                BlockValue::Text("1234567"),
            ];
            for block in blocks.into_iter().map(Some).chain([None]) {
                let mut batch = ResultBatch::default();
                let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
                writer.set(Pmid(1));
                for instance in [9, 4] {
                    match &block {
                        Some(block) => writer.block(instance, *block),
                        None => writer.in_place(instance, bits as u32),
                    }
                }
                let mut sample = Sample::new(value_type);
                sample.read(batch.sets().next()).expect("it has a set");
                assert_eq!(sample.instances(), [4, 9]);
                let set = batch.sets().next().expect("there is one");
                let raw = set.value(0).expect("there are two");
                let extracted = raw.extract(value_type, F64).map(|value| match value {
                    Value::F64(number) => number.to_bits(),
                    other => panic!("{other:?}"),
                });
                as_numbers += sample.bits.len();
                for (_, value) in sample.values() {
                    assert_eq!(value.number(value_type).map(f64::to_bits), extracted);
                    let mut text = itoa::Buffer::new();
                    if let SampleValue::Number(number) = value
                        && let Some(digits) = number.digits(&mut text)
                    {
                        let mut printed = Vec::new();
                        raw.print(&mut printed, value_type, 0, &|_, _| String::new());
                        assert_eq!(digits.as_bytes(), printed);
                    }
                }
            }
        }
        assert_eq!(as_numbers, 12);
    }

    #[test]
    fn without_a_set_there_is_no_sample() {
        assert_eq!(Sample::new(ValueType::U32).read(None), Err(PmStatus::IPC));
    }
}
