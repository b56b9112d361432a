//! Reads values from text, as users and metrics of type STRING give them.

use super::c_number::{NumberError, leading_number, trim_c_space};
use super::{PmStatus, Value, ValueType};

/// The system's error for a number out of range (ERANGE), as a status.
const OUT_OF_RANGE: PmStatus = PmStatus(-rustix::io::Errno::RANGE.raw_os_error());

impl Value {
    /// Reads a text as a value of type `wanted`, as pmstore(1) and
    /// pmFetchGroup(3) do. White space and a sign may come first. Then follows
    /// an integer in decimal digits, or in hexadecimal digits after `0x`. For
    /// FLOAT and DOUBLE, it is a number for `strtod(3)`, but not a hexadecimal
    /// one. Nothing may follow the number. An empty text is zero. A negative
    /// number wraps around for a U64.
    ///
    /// # Errors
    /// [`PmStatus::TYPE`] if the text is not such a number, or if `wanted` is
    /// neither a number nor text. `-ERANGE` if the number does not fit.
    pub fn parse(text: &str, wanted: ValueType) -> Result<Value, PmStatus> {
        let number = trim_c_space(text);
        match wanted {
            ValueType::String => Ok(Value::Text(text.into())),
            ValueType::F32 | ValueType::F64 => {
                let value = floating(text, number)?;
                if wanted == ValueType::F64 {
                    return Ok(Value::F64(value));
                }
                let magnitude = value.abs();
                let fits = value.is_nan()
                    || value == 0.0
                    || (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&magnitude);
                // The range is that of C's FLT_MIN and FLT_MAX.
                if fits { Ok(Value::F32(value as f32)) } else { Err(OUT_OF_RANGE) }
            }
            ValueType::I32 => fit(integer(text, number)?).map(Value::I32),
            ValueType::I64 => fit(integer(text, number)?).map(Value::I64),
            ValueType::U32 => fit(unsigned(integer(text, number)?)?).map(Value::U32),
            ValueType::U64 => unsigned(integer(text, number)?).map(Value::U64),
            _ => Err(PmStatus::TYPE),
        }
    }
}

fn fit<T, V: TryFrom<T>>(value: T) -> Result<V, PmStatus> {
    V::try_from(value).map_err(|_| OUT_OF_RANGE)
}

/// Wraps as `strtoul(3)` does: a minus sign negates the unsigned number.
fn unsigned(value: i128) -> Result<u64, PmStatus> {
    let magnitude: u64 = fit(value.unsigned_abs())?;
    Ok(if value < 0 { magnitude.wrapping_neg() } else { magnitude })
}

/// Reads an integer. `number` is `text` without leading white space.
fn integer(text: &str, number: &str) -> Result<i128, PmStatus> {
    if text.is_empty() {
        return Ok(0);
    }
    let (is_negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((digits, 10), |digits| (digits, 16));
    if digits.is_empty() {
        return Err(PmStatus::TYPE);
    }
    let value = digits.chars().try_fold(0i128, |value, digit| {
        let digit = digit.to_digit(radix).ok_or(PmStatus::TYPE)?;
        // Beyond 64 bits, the exact number does not matter.
        Ok(value.saturating_mul(radix.into()).saturating_add(digit.into()))
    })?;
    Ok(if is_negative { -value } else { value })
}

fn floating(text: &str, number: &str) -> Result<f64, PmStatus> {
    if text.is_empty() {
        return Ok(0.0);
    }
    let magnitude = number.trim_start_matches(['-', '+']);
    if magnitude.starts_with("0x") || magnitude.starts_with("0X") {
        return Err(PmStatus::TYPE);
    }
    match leading_number(number) {
        Ok((value, length)) if length == number.len() => Ok(value),
        Err(NumberError::Range(length)) if length == number.len() => Err(OUT_OF_RANGE),
        _ => Err(PmStatus::TYPE),
    }
}
