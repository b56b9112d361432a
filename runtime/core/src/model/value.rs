//! Single values, apart from their results.
//!
//! A result has words and blocks of bytes ([`RawValue`]). Together with the
//! metric's type they make a [`Value`].

use std::fmt;

use super::{PmStatus, ValueType, until_nul, write_shortest_double, write_shortest_float};
use crate::escape::Foreign;

/// A value as a result carries it (`pmValue` of pmFetch(3)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// 32 bits kept in place.
    InPlace(u32),
    /// A block: numbers in network byte order, text with its terminating NUL if
    /// it was sent with one, event arrays as on the wire.
    Block {
        /// Code of the type that the block claims, see
        /// [`ValueType::from_code`].
        code: u8,
        /// Its bytes, without the block's header.
        bytes: Box<[u8]>,
    },
}

/// A [`RawValue`] that borrows its bytes from a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawValueRef<'r> {
    /// 32 bits kept in place.
    InPlace(u32),
    /// A block.
    Block {
        /// Code of the type that the block claims.
        code: u8,
        /// Its bytes, without the block's header.
        bytes: &'r [u8],
    },
    /// A number that is not encoded. On the wire it is a block of its type.
    Number {
        /// FLOAT, 64, U64 or DOUBLE.
        value_type: ValueType,
        /// The bits of the number; a FLOAT is in the low half.
        bits: u64,
    },
}

/// A value with its type (`pmAtomValue` of pmExtractValue(3)).
///
/// ```
/// use pmderive_core::model::Value;
///
/// assert_eq!((Value::U32(3).as_f64(), Value::from("3").as_f64()), (Some(3.0), None));
/// assert_eq!(Value::F64(0.1).to_string(), "0.1");
/// assert_eq!(format!("{:>6}", Value::F32(3.0)), "     3");
/// assert_eq!(Value::from("eth0").to_string(), "eth0");
/// assert_eq!(Value::Aggregate([0, 255].into()).to_string(), "hex:00ff");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// 32-bit signed integer.
    I32(i32),
    /// 32-bit unsigned integer.
    U32(u32),
    /// 64-bit signed integer.
    I64(i64),
    /// 64-bit unsigned integer.
    U64(u64),
    /// 32-bit floating point.
    F32(f32),
    /// 64-bit floating point.
    F64(f64),
    /// Text up to its first NUL. Bytes that are not UTF-8 have become U+FFFD.
    Text(Box<str>),
    /// Opaque bytes.
    Aggregate(Box<[u8]>),
    /// An array of event records with microseconds, as on the wire.
    Event(Box<[u8]>),
    /// An array of event records with nanoseconds, as on the wire.
    HighResEvent(Box<[u8]>),
}

impl Value {
    /// The type of a metric with such values.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::I32(_) => ValueType::I32,
            Value::U32(_) => ValueType::U32,
            Value::I64(_) => ValueType::I64,
            Value::U64(_) => ValueType::U64,
            Value::F32(_) => ValueType::F32,
            Value::F64(_) => ValueType::F64,
            Value::Text(_) => ValueType::String,
            Value::Aggregate(_) => ValueType::Aggregate,
            Value::Event(_) => ValueType::Event,
            Value::HighResEvent(_) => ValueType::HighResEvent,
        }
    }
}

/// Numbers with the fewest digits that read back as the same number, text as
/// [`Foreign`], other bytes in hexadecimal. [`Value::atom_text`] and
/// [`RawValue::print`] have libpcp's forms.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Value::I32(value) => return value.fmt(f),
            Value::U32(value) => return value.fmt(f),
            Value::I64(value) => return value.fmt(f),
            Value::U64(value) => return value.fmt(f),
            Value::F32(value) => write_shortest_float(&mut text, *value),
            Value::F64(value) => write_shortest_double(&mut text, *value),
            Value::Text(value) => return f.pad(&Foreign(value).form(f.alternate())),
            Value::Aggregate(bytes) | Value::Event(bytes) | Value::HighResEvent(bytes) => {
                text.push_str("hex:");
                text.extend(bytes.iter().map(|byte| format!("{byte:02x}")));
            }
        }
        f.pad(&text)
    }
}

impl RawValue {
    /// The value in a result's form: 32-bit integers in place, all others in a
    /// block, text with its NUL. `pmStore(3)` sends this form.
    pub fn encode(value: &Value) -> RawValue {
        let bytes: Box<[u8]> = match value {
            Value::I32(value) => return RawValue::InPlace(value.cast_unsigned()),
            Value::U32(value) => return RawValue::InPlace(*value),
            Value::I64(value) => value.to_be_bytes().into(),
            Value::U64(value) => value.to_be_bytes().into(),
            Value::F32(value) => value.to_be_bytes().into(),
            Value::F64(value) => value.to_be_bytes().into(),
            Value::Text(text) => [text.as_bytes(), &[0]].concat().into(),
            Value::Aggregate(bytes) | Value::Event(bytes) | Value::HighResEvent(bytes) => {
                bytes.clone()
            }
        };
        // The codes of types with values are below 11.
        RawValue::Block { code: value.value_type().code() as u8, bytes }
    }

    /// The same value with borrowed bytes.
    pub fn borrowed(&self) -> RawValueRef<'_> {
        match self {
            RawValue::InPlace(word) => RawValueRef::InPlace(*word),
            RawValue::Block { code, bytes } => RawValueRef::Block { code: *code, bytes },
        }
    }

    /// The value of a metric of type `value_type`.
    ///
    /// # Errors
    /// [`PmStatus::CONV`] if the word or bytes cannot be of that type, or the
    /// block claims another one. A block without a type (code 0) may have any.
    pub fn decode(&self, value_type: ValueType) -> Result<Value, PmStatus> {
        self.borrowed().decode(value_type)
    }
}

impl<'r> RawValueRef<'r> {
    /// The value as a block: type code and bytes. The bytes of a number are
    /// written to `room`. The error is the word of a value in place.
    pub fn encoded<'b>(self, room: &'b mut [u8; 8]) -> Result<(u8, &'b [u8]), u32>
    where
        'r: 'b,
    {
        match self {
            RawValueRef::InPlace(word) => Err(word),
            RawValueRef::Block { code, bytes } => Ok((code, bytes)),
            RawValueRef::Number { value_type, bits } => {
                *room = bits.to_be_bytes();
                let bytes = if value_type == ValueType::F32 { &room[4..] } else { &room[..] };
                // The codes of types with values are below 11.
                Ok((value_type.code() as u8, bytes))
            }
        }
    }

    /// The same value as a plain number, if it is a block that holds a number
    /// of the type that it claims.
    pub fn as_number(self) -> RawValueRef<'r> {
        use ValueType::{F32, F64, I32, I64, U32, U64};
        match self {
            RawValueRef::Block { code, bytes } => {
                let value_type = ValueType::from_code(code.into());
                let bits = match (value_type, bytes) {
                    (F32, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]).into(),
                    (I64 | U64 | F64, &[a, b, c, d, e, f, g, h]) => {
                        u64::from_be_bytes([a, b, c, d, e, f, g, h])
                    }
                    _ => return self,
                };
                RawValueRef::Number { value_type, bits }
            }
            RawValueRef::Number { value_type: I32 | U32, bits } => {
                RawValueRef::InPlace(bits as u32)
            }
            _ => self,
        }
    }

    /// The bits of the value if it is a number of type `wanted`. 32 bits are in
    /// the low half.
    pub fn number(self, wanted: ValueType) -> Option<u64> {
        match self.as_number() {
            RawValueRef::InPlace(word) => {
                matches!(wanted, ValueType::I32 | ValueType::U32).then_some(word.into())
            }
            RawValueRef::Number { value_type, bits } => (value_type == wanted).then_some(bits),
            RawValueRef::Block { .. } => None,
        }
    }
}

impl RawValueRef<'_> {
    /// The same value with its own copy of the bytes.
    pub fn to_owned(self) -> RawValue {
        match self.encoded(&mut [0; 8]) {
            Ok((code, bytes)) => RawValue::Block { code, bytes: bytes.into() },
            Err(word) => RawValue::InPlace(word),
        }
    }

    /// Like [`RawValue::decode`].
    ///
    /// # Errors
    /// As [`RawValue::decode`].
    pub fn decode(self, value_type: ValueType) -> Result<Value, PmStatus> {
        let mut room = [0; 8];
        let (code, bytes) = match (self.encoded(&mut room), value_type) {
            (Err(word), ValueType::I32) => return Ok(Value::I32(word.cast_signed())),
            (Err(word), ValueType::U32) => return Ok(Value::U32(word)),
            (Err(word), ValueType::F32) => return Ok(Value::F32(f32::from_bits(word))),
            (Err(_), _) => return Err(PmStatus::CONV),
            (Ok((code, _)), _) if !value_type.accepts_block_of(code) => return Err(PmStatus::CONV),
            (Ok((code, bytes)), _) => (ValueType::from_code(code.into()), bytes),
        };
        let four = || <[u8; 4]>::try_from(bytes).map_err(|_| PmStatus::CONV);
        let eight = || <[u8; 8]>::try_from(bytes).map_err(|_| PmStatus::CONV);
        Ok(match value_type {
            ValueType::F32 if code == ValueType::F32 => Value::F32(f32::from_be_bytes(four()?)),
            ValueType::I64 => Value::I64(i64::from_be_bytes(eight()?)),
            ValueType::U64 => Value::U64(u64::from_be_bytes(eight()?)),
            ValueType::F64 => Value::F64(f64::from_be_bytes(eight()?)),
            ValueType::String => Value::Text(String::from_utf8_lossy(until_nul(bytes)).into()),
            ValueType::Aggregate | ValueType::AggregateStatic => Value::Aggregate(bytes.into()),
            ValueType::Event => Value::Event(bytes.into()),
            ValueType::HighResEvent => Value::HighResEvent(bytes.into()),
            _ => return Err(PmStatus::CONV),
        })
    }
}

macro_rules! values_from {
    ($($plain:ty => $kind:ident;)*) => {$(
        impl From<$plain> for Value {
            fn from(plain: $plain) -> Value {
                Value::$kind(plain.into())
            }
        }
    )*};
}

values_from! {
    i32 => I32;
    u32 => U32;
    i64 => I64;
    u64 => U64;
    f32 => F32;
    f64 => F64;
    &str => Text;
    String => Text;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block states its type, and is never read as another one.
    #[test]
    fn a_block_of_another_type_is_refused() {
        let values: [Value; 7] = [
            5u64.into(),
            5i64.into(),
            5f64.into(),
            5f32.into(),
            "5".into(),
            Value::Aggregate([0; 8].into()),
            Value::Event([0; 8].into()),
        ];
        for value in &values {
            let raw = RawValue::encode(value);
            for other in &values {
                let expected = if other == value { Ok(value.clone()) } else { Err(PmStatus::CONV) };
                assert_eq!(raw.decode(other.value_type()), expected, "{value:?} as {other:?}");
            }
        }
        let untyped = RawValue::Block { code: 0, bytes: 5u64.to_be_bytes().into() };
        assert_eq!(untyped.decode(ValueType::U64), Ok(5u64.into()));
    }
}
