//! The outcome of one evaluation, as a view: it copies and builds nothing until
//! asked.

use std::fmt;

use super::decode::unpack_range;
use super::general::NodeValue;
use super::layout::{Frame, Layout, OutputPlan};
use crate::kernel::interp::read;
use crate::kernel::{Scalar, ops::LaneBits};
use crate::model::{InstId, RawValue, Timestamp, ValueType};
use crate::program::{NodeId, Output, OutputId, Status, scalar_of};
use crate::result::ResultBatch;

/// The instance of a single value.
const SINGLE: InstId = -1;

/// Values of all derived metrics of an evaluator after one fetch. They are
/// valid until the buffers are used again.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'w> {
    pub(super) timestamp: Timestamp,
    pub(super) fetched: &'w ResultBatch,
    pub(super) layout: &'w Layout,
    pub(super) frame: &'w Frame,
    pub(super) program: &'w [Output],
    /// Parallel to `program`: the node with the general path's value, if that
    /// was used.
    pub(super) general: &'w [Option<NodeId>],
    pub(super) nodes: &'w [NodeValue],
    pub(super) blobs: &'w [u8],
}

/// Outcome of one metric: its status, and the instances parallel to the values.
#[derive(Clone, Copy, Debug)]
pub struct Values<'w> {
    /// The status: values, or the reason why there are none.
    pub status: Status,
    /// Instances; empty without values. A metric without an instance domain has
    /// -1, or the number that the source uses in its place.
    pub instances: &'w [InstId],
    value_type: ValueType,
    lanes: LaneSource<'w>,
    blobs: &'w [u8],
}

#[derive(Clone, Copy, Debug)]
enum LaneSource<'w> {
    Column(&'w [u8]),
    Bits(&'w [u64]),
}

/// One value. Its text stays where it was delivered, so that reading the values
/// of a fetch copies nothing; a [`model::Value`](crate::model::Value) owns its
/// text, and can be kept.
///
/// ```
/// use pmderive_core::{eval::Value, model};
///
/// assert_eq!(Value::U32(3).as_f64(), Some(3.0));
/// assert_eq!(Value::Text(b"eth0").as_f64(), None);
/// let kept = model::Value::from(Value::Text(b"eth0"));
/// assert_eq!(kept, model::Value::Text("eth0".into()));
/// assert_eq!(format!("{} {kept}", Value::F64(0.5)), "0.5 eth0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'w> {
    /// 32-bit signed integer.
    I32(i32),
    /// 32-bit unsigned integer.
    U32(u32),
    /// 64-bit signed integer.
    I64(i64),
    /// 64-bit unsigned integer.
    U64(u64),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
    /// Text without its NUL, in the bytes that were delivered.
    Text(&'w [u8]),
    /// Opaque bytes.
    Bytes(&'w [u8]),
}

impl Value<'_> {
    /// The nearest number of double precision. Text and bytes have none.
    pub fn as_f64(self) -> Option<f64> {
        Some(match self {
            Value::I32(value) => value.into(),
            Value::U32(value) => value.into(),
            Value::I64(value) => value as f64,
            Value::U64(value) => value as f64,
            Value::F32(value) => value.into(),
            Value::F64(value) => value,
            Value::Text(_) | Value::Bytes(_) => return None,
        })
    }
}

/// As [`model::Value`](crate::model::Value) prints.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::model::Value::from(*self).fmt(f)
    }
}

/// The form in which archives are written. Text keeps its bytes, which need not be UTF-8. Bytes
/// become an aggregate, whatever the metric's type is.
///
/// ```
/// use pmderive_core::eval::Value;
/// use pmderive_core::model::{RawValue, ValueType};
///
/// assert_eq!(RawValue::from(Value::U32(7)), RawValue::InPlace(7));
/// let RawValue::Block { code, bytes } = RawValue::from(Value::Text(b"caf\xe9")) else {
///     unreachable!("text is a block");
/// };
/// assert_eq!(ValueType::from_code(code.into()), ValueType::String);
/// assert_eq!(*bytes, *b"caf\xe9\0");
/// ```
impl From<Value<'_>> for RawValue {
    fn from(value: Value<'_>) -> RawValue {
        match value {
            Value::Text(text) => RawValue::Block {
                // The code is below 11.
                code: ValueType::String.code() as u8,
                bytes: [text, &[0]].concat().into(),
            },
            value => RawValue::encode(&value.into()),
        }
    }
}

/// Bytes become an aggregate, whatever the metric's type is.
impl From<Value<'_>> for crate::model::Value {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::I32(value) => Self::I32(value),
            Value::U32(value) => Self::U32(value),
            Value::I64(value) => Self::I64(value),
            Value::U64(value) => Self::U64(value),
            Value::F32(value) => Self::F32(value),
            Value::F64(value) => Self::F64(value),
            Value::Text(text) => Self::Text(String::from_utf8_lossy(text).into()),
            Value::Bytes(bytes) => Self::Aggregate(bytes.into()),
        }
    }
}

impl<'w> Evaluation<'w> {
    /// Time stamp of the fetch.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The fetched values, as they were delivered: the program's inputs, then
    /// those of [`super::Evaluator::also_fetch`].
    pub fn fetched(&self) -> &'w ResultBatch {
        self.fetched
    }

    /// Number of metrics. They are in the order of the program's outputs.
    pub fn len(&self) -> usize {
        self.program.len()
    }

    /// True if no metrics were selected.
    pub fn is_empty(&self) -> bool {
        self.program.is_empty()
    }

    /// The metrics, with their values.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = (OutputId, Values<'w>)> + '_ {
        let count = u32::try_from(self.len()).expect("identifiers have 32 bits");
        (0..count).map(OutputId).map(|output| (output, self.get(output)))
    }

    /// Values of one of the program's outputs.
    ///
    /// # Panics
    /// The program has no such output.
    pub fn get(&self, output: OutputId) -> Values<'w> {
        let output = output.index();
        let value_type = self.program[output].value_type;
        let with = |status, instances, lanes| Values {
            status,
            instances,
            value_type,
            lanes,
            blobs: self.blobs,
        };
        let layout: &'w Layout = self.layout;
        // A single value has the instance number of its metric.
        let bearer = self.program[output].instance_of.and_then(|slot| layout.bearer(slot));
        let instances = |own: &'w [InstId]| match (own, bearer) {
            (&[SINGLE], Some(bearer)) => std::slice::from_ref(bearer),
            _ => own,
        };
        if let Some(node) = self.general[output] {
            let value = &self.nodes[node.index()];
            return with(value.status, instances(&value.ids), LaneSource::Bits(&value.lanes));
        }
        let home = layout.sections.outputs[output];
        let state = layout.state(home.section);
        match state.map(|state| (state, &state.plan.outputs[home.at as usize])) {
            Some((state, OutputPlan::Column { place, set })) => {
                let offset = self.frame.placed[home.section.index()].offset(*place);
                let ids = state.ids(*set);
                // The frame has padding and other columns behind the values.
                let bytes = ids.len() * value_type.lane_bytes();
                let column = &self.frame.arena[offset as usize..][..bytes];
                with(Status::Values, instances(ids), LaneSource::Column(column))
            }
            Some((_, OutputPlan::Without(status))) => with(*status, &[][..], LaneSource::Bits(&[])),
            // Outputs without a column always take the general path.
            Some((_, OutputPlan::General(_))) | None => {
                let status = Status::Failed(crate::model::PmStatus::BOTCH);
                with(status, &[][..], LaneSource::Bits(&[]))
            }
        }
    }
}

impl<'w> Values<'w> {
    /// Values that no evaluator has computed. `bits` are parallel to the instances; those of 32
    /// bits are in the low half. A text is its place in `blobs`: the start is in the high half,
    /// the length in the low half.
    pub fn of(
        status: Status,
        value_type: ValueType,
        instances: &'w [InstId],
        bits: &'w [u64],
        blobs: &'w [u8],
    ) -> Values<'w> {
        Values { status, instances, value_type, lanes: LaneSource::Bits(bits), blobs }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Type of the values.
    pub fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// The bits of all values with their instances, if they are numbers. 32-bit
    /// values are in the low half.
    pub fn numbers(&self) -> Option<impl ExactSizeIterator<Item = (InstId, u64)> + '_> {
        let scalar = scalar_of(self.value_type)?;
        let bits = move |lane| self.bits(scalar, lane);
        let instances = self.instances.iter().enumerate();
        Some(instances.map(move |(lane, instance)| (*instance, bits(lane))))
    }

    /// Copies all values into lanes of the type's size, in the machine's byte
    /// order.
    ///
    /// # Panics
    /// The values are not numbers, or `lanes` has not room for exactly all of
    /// them.
    pub fn copy_numbers(&self, lanes: &mut [u8]) {
        let width = self.value_type.lane_bytes();
        assert!(scalar_of(self.value_type).is_some(), "{} is no number", self.value_type);
        assert_eq!(lanes.len(), self.len() * width, "the bytes of all values");
        match (self.lanes, width) {
            (LaneSource::Column(column), _) => lanes.copy_from_slice(column),
            (LaneSource::Bits(bits), 8) => {
                let lanes = lanes.as_chunks_mut().0.iter_mut();
                lanes.zip(bits).for_each(|(lane, bits)| *lane = bits.to_ne_bytes());
            }
            (LaneSource::Bits(bits), _) => {
                let lanes = lanes.as_chunks_mut().0.iter_mut();
                lanes.zip(bits).for_each(|(lane, bits)| *lane = (*bits as u32).to_ne_bytes());
            }
        }
    }

    #[inline]
    fn bits(&self, scalar: Scalar, lane: usize) -> u64 {
        match self.lanes {
            LaneSource::Bits(bits) => bits[lane],
            LaneSource::Column(column) => read(scalar, column, lane * scalar.bytes()),
        }
    }

    /// Value of the instance at a position.
    ///
    /// # Panics
    /// The position is not below [`Values::len`].
    pub fn get(&self, lane: usize) -> Value<'w> {
        let bits = self.bits(scalar_of(self.value_type).unwrap_or(Scalar::U64), lane);
        match self.value_type {
            ValueType::I32 => Value::I32(i32::from_bits64(bits)),
            ValueType::U32 => Value::U32(u32::from_bits64(bits)),
            ValueType::I64 => Value::I64(i64::from_bits64(bits)),
            ValueType::U64 => Value::U64(bits),
            ValueType::F32 => Value::F32(f32::from_bits64(bits)),
            ValueType::F64 => Value::F64(f64::from_bits(bits)),
            ValueType::String => Value::Text(self.bytes(bits)),
            _ => Value::Bytes(self.bytes(bits)),
        }
    }

    fn bytes(&self, bits: u64) -> &'w [u8] {
        self.blobs.get(unpack_range(bits)).unwrap_or_default()
    }

    /// All values with their instances.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (InstId, Value<'w>)> + Clone {
        (0..self.len()).map(move |lane| (self.instances[lane], self.get(lane)))
    }
}
