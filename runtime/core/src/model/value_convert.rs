//! Converts values of one type to another.
//!
//! Input: a value. Output: a value of the wanted type, or the reason why there
//! is none. A number never changes silently, except by rounding to a
//! floating-point type and by cutting off a fraction.

use super::value_text::{format_g, native_block};
use super::{Conversion, PmStatus, RawValue, RawValueRef, Units, Value, ValueType};

impl RawValue {
    /// Converts the value of a metric of type `value_type` to type `wanted`
    /// (`pmExtractValue(3)`). A value in place of unknown type counts as a 32.
    ///
    /// # Errors
    /// [`PmStatus::CONV`] if the bits are not those of a `value_type`, and the
    /// errors of [`Value::convert`].
    pub fn extract(&self, value_type: ValueType, wanted: ValueType) -> Result<Value, PmStatus> {
        self.borrowed().extract(value_type, wanted)
    }
}

impl RawValueRef<'_> {
    /// Like [`RawValue::extract`].
    ///
    /// # Errors
    /// As [`RawValue::extract`].
    pub fn extract(self, value_type: ValueType, wanted: ValueType) -> Result<Value, PmStatus> {
        let mut room = [0; 8];
        let value = match self.encoded(&mut room) {
            Err(_) if value_type == ValueType::Unknown => self.decode(ValueType::I32)?,
            Err(_) => self.decode(value_type)?,
            Ok((code, bytes)) => {
                let due = u8::try_from(value_type.code()).unwrap_or(u8::MAX);
                if !matches!(due, 2..=7) || !(code == 0 || code == due) {
                    return Err(PmStatus::CONV);
                }
                if code == 0 && value_type.is_numeric() {
                    // An old agent left the type out, so pmcd did not know that
                    // the bytes had to be swapped.
                    let bytes = &native_block(due, bytes)[..];
                    RawValueRef::Block { code: due, bytes }.decode(value_type)?
                } else {
                    self.decode(value_type)?
                }
            }
        };
        if value.value_type() == wanted { Ok(value) } else { value.convert(wanted) }
    }
}

impl Value {
    /// Converts the value to type `wanted`, as `pmExtractValue(3)` of PCP 7
    /// does. Fractions are cut off. Numbers become text as C's `%d` and `%.16g`
    /// print them.
    ///
    /// # Errors
    /// - [`PmStatus::TRUNC`]: the number is too large, or too small for a
    ///   signed type;
    /// - [`PmStatus::SIGN`]: the number is negative and `wanted` is unsigned;
    /// - [`PmStatus::CONV`]: NaN to an integer, text to a number, and opaque
    ///   bytes or event records to or from any other type.
    pub fn convert(&self, wanted: ValueType) -> Result<Value, PmStatus> {
        match (self, wanted) {
            (Value::Text(_), ValueType::String) | (Value::Aggregate(_), ValueType::Aggregate) => {
                return Ok(self.clone());
            }
            _ => {}
        }
        let number = self.number()?;
        Ok(match wanted {
            ValueType::I32 => Value::I32(number.signed(F64_2_31, F32_2_31)?),
            ValueType::U32 => Value::U32(number.unsigned(F64_2_32, F32_2_32)?),
            ValueType::I64 => Value::I64(number.signed(F64_2_63, F32_2_63)?),
            ValueType::U64 => Value::U64(number.unsigned(F64_2_64, F32_2_64)?),
            ValueType::F32 => Value::F32(number.float()),
            ValueType::F64 => Value::F64(number.double()),
            ValueType::String => Value::Text(number.text().into()),
            _ => return Err(PmStatus::CONV),
        })
    }

    /// The nearest number of double precision. `None` for text, bytes and event
    /// records.
    pub fn as_f64(&self) -> Option<f64> {
        self.number().ok().map(|number| number.double())
    }

    /// Converts the value to other units (`pmConvScale(3)`). Integers are
    /// computed exactly: value times factor, plus one half, then truncated.
    ///
    /// # Errors
    /// The errors of [`Conversion::between`]; [`PmStatus::TRUNC`] if the result
    /// does not fit the type (libpcp delivers another number);
    /// [`PmStatus::CONV`] if the value is not a number.
    pub fn rescale(&self, from: Units, to: Units) -> Result<Value, PmStatus> {
        let conversion = Conversion::between(from, to)?;
        let exact = |value: i128| {
            let (mult, div) = (i128::from(conversion.mult), i128::from(conversion.div));
            let scaled = (value * mult + div / 2) / div;
            match conversion.extra {
                // Whole numbers of such units are small enough to be exact in a
                // double.
                Some(_) => {
                    Conversion { mult: 1, div: 1, ..conversion }.apply_f64(scaled as f64) as i128
                }
                None => scaled,
            }
        };
        Ok(match self {
            Value::I32(value) => Value::I32(narrow(exact((*value).into()))?),
            Value::U32(value) => Value::U32(narrow(exact((*value).into()))?),
            Value::I64(value) => Value::I64(narrow(exact((*value).into()))?),
            Value::U64(value) => Value::U64(narrow(exact((*value).into()))?),
            Value::F32(value) => Value::F32(conversion.apply_f32(*value)),
            Value::F64(value) => Value::F64(conversion.apply_f64(*value)),
            _ => return Err(PmStatus::CONV),
        })
    }

    fn number(&self) -> Result<Number, PmStatus> {
        Ok(match self {
            Value::I32(value) => Number::Integer((*value).into()),
            Value::U32(value) => Number::Integer((*value).into()),
            Value::I64(value) => Number::Integer((*value).into()),
            Value::U64(value) => Number::Integer((*value).into()),
            Value::F32(value) => Number::Float(*value),
            Value::F64(value) => Number::Double(*value),
            _ => return Err(PmStatus::CONV),
        })
    }
}

fn narrow<T: TryFrom<i128>>(value: i128) -> Result<T, PmStatus> {
    T::try_from(value).map_err(|_| PmStatus::TRUNC)
}

// Magnitudes from which libpcp refuses a DOUBLE and a FLOAT: the type's largest
// value, rounded to the precision of the compared number.
const F64_2_31: f64 = 2_147_483_647.0;
const F32_2_31: f32 = 2_147_483_648.0;
const F64_2_32: f64 = 4_294_967_295.0;
const F32_2_32: f32 = 4_294_967_296.0;
const F64_2_63: f64 = 9_223_372_036_854_775_808.0;
const F32_2_63: f32 = 9_223_372_036_854_775_808.0;
const F64_2_64: f64 = 18_446_744_073_709_551_616.0;
const F32_2_64: f32 = 18_446_744_073_709_551_616.0;

/// A number of any type.
enum Number {
    Integer(i128),
    Float(f32),
    Double(f64),
}

impl Number {
    /// The number without its fraction; an error for NaN.
    fn whole(&self) -> Result<i128, PmStatus> {
        match self {
            Number::Integer(value) => Ok(*value),
            _ if self.double().is_nan() => Err(PmStatus::CONV),
            // The conversion saturates, so a number that does not fit stays too
            // large.
            _ => Ok(self.double() as i128),
        }
    }

    fn signed<T: TryFrom<i128>>(&self, limit: f64, float_limit: f32) -> Result<T, PmStatus> {
        match self {
            Number::Float(value) if value.abs() >= float_limit => Err(PmStatus::TRUNC),
            Number::Double(value) if value.abs() >= limit => Err(PmStatus::TRUNC),
            _ => narrow(self.whole()?),
        }
    }

    fn unsigned<T: TryFrom<i128>>(&self, limit: f64, float_limit: f32) -> Result<T, PmStatus> {
        let (is_too_large, is_negative) = match self {
            Number::Integer(value) => (false, *value < 0),
            Number::Float(value) => (*value >= float_limit, *value < 0.0),
            Number::Double(value) => (*value >= limit, *value < 0.0),
        };
        if is_too_large {
            return Err(PmStatus::TRUNC);
        }
        if is_negative {
            return Err(PmStatus::SIGN);
        }
        narrow(self.whole()?)
    }

    fn float(&self) -> f32 {
        match self {
            Number::Integer(value) => *value as f32,
            Number::Float(value) => *value,
            Number::Double(value) => *value as f32,
        }
    }

    fn double(&self) -> f64 {
        match self {
            Number::Integer(value) => *value as f64,
            Number::Float(value) => f64::from(*value),
            Number::Double(value) => *value,
        }
    }

    fn text(&self) -> String {
        match self {
            Number::Integer(value) => value.to_string(),
            _ => format_g(self.double(), 16),
        }
    }
}
