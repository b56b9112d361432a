//! Values of frames as doubles, which are the numbers of receivers.

use std::fmt::Write as _;

use pmderive_runtime::model::ValueType;

/// The double for "not a number". Other bits may have another meaning.
pub const NOT_A_NUMBER: f64 = f64::from_bits(0x7ff8_0000_0000_0001);

/// The double that marks the end of a series in remote write.
pub const ENDED: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// The value as the nearest double; `bits` are those of
/// [`Column::bits`](crate::fleet::frame::columns::Column::bits).
pub fn as_double(value_type: ValueType, bits: u64) -> f64 {
    let double = match value_type {
        ValueType::I32 => f64::from(bits as u32 as i32),
        ValueType::U32 => f64::from(bits as u32),
        ValueType::I64 => bits as i64 as f64,
        ValueType::U64 => bits as f64,
        ValueType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    };
    if double.is_nan() { NOT_A_NUMBER } else { double }
}

/// Writes a value that reads back as [`as_double`]; whole numbers have all digits.
pub fn write(out: &mut String, value_type: ValueType, bits: u64) {
    let mut digits = itoa::Buffer::new();
    match value_type {
        ValueType::I32 => out.push_str(digits.format(bits as u32 as i32)),
        ValueType::U32 => out.push_str(digits.format(bits as u32)),
        ValueType::I64 => out.push_str(digits.format(bits as i64)),
        ValueType::U64 => out.push_str(digits.format(bits)),
        _ => write_double(out, as_double(value_type, bits)),
    }
}

/// Writes the fewest digits that only this double has.
pub fn write_double(out: &mut String, double: f64) {
    if double.is_nan() {
        out.push_str("NaN");
    } else if double.is_infinite() {
        out.push_str(if double > 0.0 { "+Inf" } else { "-Inf" });
    } else if double == double.trunc() && double.abs() < 1e15 {
        // Writing into a string does not fail.
        let _ = write!(out, "{double}");
    } else {
        let _ = write!(out, "{double:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_the_same_double() {
        let cases: [(ValueType, u64, &str); 14] = [
            (ValueType::I32, 0xffff_ffff, "-1"),
            (ValueType::I32, 0xdead_beef_0000_0007, "7"),
            (ValueType::U32, 0xffff_ffff, "4294967295"),
            (ValueType::I64, u64::MAX, "-1"),
            (ValueType::U64, u64::MAX, "18446744073709551615"),
            (ValueType::U64, (1 << 53) + 1, "9007199254740993"),
            (ValueType::F32, u64::from(0.4_f32.to_bits()), "0.4000000059604645"),
            (ValueType::F64, 0.1_f64.to_bits(), "0.1"),
            (ValueType::F64, 100_f64.to_bits(), "100"),
            (ValueType::F64, (-0.0_f64).to_bits(), "-0"),
            (ValueType::F64, 1e300_f64.to_bits(), "1e300"),
            (ValueType::F64, 5e-324_f64.to_bits(), "5e-324"),
            (ValueType::F64, f64::NEG_INFINITY.to_bits(), "-Inf"),
            // A computed value with these bits does not end a series.
            (ValueType::F64, 0x7ff0_0000_0000_0002, "NaN"),
        ];
        for (value_type, bits, text) in cases {
            let mut out = String::new();
            write(&mut out, value_type, bits);
            assert_eq!(out, text);
            let read: f64 = text.parse().expect("a number");
            let double = as_double(value_type, bits);
            if double.is_nan() {
                assert_eq!(double.to_bits(), NOT_A_NUMBER.to_bits());
            } else {
                assert_eq!(double.to_bits(), read.to_bits(), "{text}");
            }
        }
    }
}
