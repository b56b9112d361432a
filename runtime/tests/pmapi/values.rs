//! Values: extraction, conversion of scale, text in and out.

use pmderive_runtime::model::{
    PmStatus, RawValue, Timestamp, Units, Value, ValueType, number_text,
};
use serde_json::{Value as Json, json};

use crate::{bytes, code, compare, hex, number, text, units};

/// A value in the table's form, which is that of a little-endian machine's
/// memory: the format, the block's type, its length if it differs from that of
/// the bytes, and the bytes.
fn raw(format: i64, block_type: i64, length: Option<i64>, mut bytes: Vec<u8>) -> RawValue {
    if format == 0 {
        return RawValue::InPlace(u32::from_le_bytes(bytes.try_into().unwrap()));
    }
    if let Some(length) = length {
        bytes.resize(usize::try_from(length - 4).unwrap(), 0);
    }
    match block_type {
        2 | 3 | 5 if bytes.len() == 8 => bytes.reverse(),
        4 if bytes.len() == 4 => bytes.reverse(),
        _ => {}
    }
    RawValue::Block { code: u8::try_from(block_type).unwrap_or(255), bytes: bytes.into() }
}

fn value_type(value: &Json) -> ValueType {
    ValueType::from_code(code(value))
}

/// A value as the tables have it.
fn shown(value: &Value) -> String {
    match value {
        Value::F32(value) => format!("{value}"),
        Value::F64(value) => format!("{value}"),
        Value::Text(text) => text.to_string(),
        Value::Aggregate(bytes) => hex(bytes),
        integer => integer.atom_text(),
    }
}

/// A number of the tables as [`shown`] shows it.
fn normal(value_type: ValueType, value: &str) -> String {
    let value = value.strip_prefix('-').filter(|rest| *rest == "nan").unwrap_or(value);
    match value_type {
        ValueType::F32 => value.parse::<f32>().unwrap().to_string(),
        ValueType::F64 => value.parse::<f64>().unwrap().to_string(),
        _ => value.to_owned(),
    }
}

/// Status and value, from the table and from us.
fn outcomes(
    wanted: ValueType,
    status: &Json,
    value: &Json,
    ours: Result<Value, PmStatus>,
) -> (String, String) {
    let theirs = match code(status) {
        0 => normal(wanted, text(value)),
        status => status.to_string(),
    };
    let ours = ours.map_or_else(|status| status.0.to_string(), |value| shown(&value));
    (theirs, ours)
}

fn extracted(row: &Json) -> (String, String) {
    let length = (number(&row[3]) >= 4).then(|| number(&row[3]));
    let raw = raw(number(&row[0]), number(&row[2]), length, bytes(&row[4]));
    let (from, to) = (value_type(&row[1]), value_type(&row[5]));
    outcomes(to, &row[6], &row[7], raw.extract(from, to))
}

#[test]
fn values_convert_as_by_libpcp() {
    compare("extract", "rows", extracted);
    compare("extract", "quirks", extracted);
}

/// A value of a type that the table names.
fn atom(value_type: ValueType, value: &str) -> Option<Value> {
    Some(match value_type {
        ValueType::I32 => Value::I32(value.parse().unwrap()),
        ValueType::U32 => Value::U32(value.parse().unwrap()),
        ValueType::I64 => Value::I64(value.parse().unwrap()),
        ValueType::U64 => Value::U64(value.parse().unwrap()),
        ValueType::F32 => Value::F32(value.parse().unwrap()),
        ValueType::F64 => Value::F64(value.parse().unwrap()),
        ValueType::String => Value::Text(value.into()),
        ValueType::Aggregate | ValueType::AggregateStatic => {
            Value::Aggregate(bytes(&json!(value)).into())
        }
        _ => return None,
    })
}

fn rescaled(row: &Json) -> (String, String) {
    let value_type = value_type(&row[0]);
    let ours = match atom(value_type, text(&row[1])) {
        Some(value) => value.rescale(units(&row[2]), units(&row[3])),
        None => Err(PmStatus::CONV),
    };
    outcomes(value_type, &row[4], &row[5], ours)
}

#[test]
fn values_rescale_as_by_libpcp() {
    compare("conv_scale", "rows", rescaled);
    compare("conv_scale", "overflow_quirks", rescaled);
    compare("conv_scale", "crash", |row| {
        let value = atom(value_type(&row[0]), text(&row[1])).unwrap();
        let status = value.rescale(units(&row[2]), units(&row[3])).unwrap_err();
        ("SIGFPE".to_owned(), status.0.to_string())
    });
}

/// Where libpcp overflows, we give the exact result or none.
#[test]
fn integers_rescale_exactly_or_not_at_all() {
    for row in crate::rows("conv_scale", "overflow_quirks") {
        let Some(value @ (Value::I32(_) | Value::U32(_) | Value::I64(_) | Value::U64(_))) =
            atom(value_type(&row[0]), text(&row[1]))
        else {
            continue;
        };
        let (from, to): (Units, Units) = (units(&row[2]), units(&row[3]));
        let Ok(rescaled) = value.rescale(from, to) else { continue };
        let through_double = value.convert(ValueType::F64).unwrap().rescale(from, to).unwrap();
        let (Value::F64(near), Ok(Value::F64(exact))) =
            (through_double, rescaled.convert(ValueType::F64))
        else {
            panic!("{row}");
        };
        assert!((near - exact).abs() <= 1.0 + near.abs() * 1e-12, "{row}: {exact}, not {near}");
    }
}

#[test]
fn text_reads_as_by_libpcp() {
    compare("atoms", "string_value", |row| {
        let wanted = value_type(&row[1]);
        outcomes(wanted, &row[2], &row[3], Value::parse(text(&row[0]), wanted))
    });
}

#[test]
fn values_print_as_by_libpcp() {
    let clock = |_: Timestamp, _| unreachable!();
    compare("atoms", "print_value", |row| {
        let raw = raw(number(&row[0]), number(&row[2]), None, bytes(&row[3]));
        let mut printed = Vec::new();
        raw.print(&mut printed, value_type(&row[1]), code(&row[4]), &clock);
        (text(&row[5]).to_owned(), String::from_utf8(printed).unwrap())
    });
}

/// Output of libpcp 6.0.3 beyond the table.
#[test]
fn more_values_print_as_by_libpcp() {
    let clock = |at: Timestamp, digits: usize| {
        let fraction = format!("{:09}", at.nsec);
        format!("00:00:{:02}.{}", at.sec, &fraction[..digits])
    };
    for (block_type, hex, width, expected) in [
        (6, "68656c6c6f00", -12, "\"hello\""),
        (6, "68656c6c6f00", 12, "     \"hello\""),
        (6, "", 5, "   \"\""),
        (7, "0102030405", -20, "[0102030405]"),
        (7, "", 10, "        \"\"         []"),
        (
            7,
            "3930000000000000",
            -30,
            "12345                          6.099240397910189e-320         [3930000000000000]",
        ),
        (
            7,
            "000000000000f87f",
            30,
            "           9221120237041090560             [000000000000f87f]",
        ),
        (7, "0000c03f", -20, "1.5                  [0000c03f]"),
        (
            7,
            "68656c6c",
            30,
            "                 1.1431415e+27                         \"hell\"                     [68656c6c]",
        ),
        (7, "68ff", 12, "      [68ff]"),
        (4, "0000c0ff", 10, "      -nan"),
        (9, "00000000", 70, "[0 event records]"),
        (
            9,
            "00000001000000050003d09000000000ffffffff",
            10,
            "[1 event record timestamp 00:00:05.250]",
        ),
        (
            9,
            "00000002000000050003d090000000010000000000000006000000000000000000000000",
            10,
            "[2 event records timestamps 00:00:05.250...00:00:06.000]",
        ),
        (
            9,
            "00000001000000050003d0908000000000000007",
            10,
            "[1 event record timestamp 00:00:05.250]",
        ),
        // The first record counts again in place of the second one.
        (
            9,
            "00000003000000050003d0908000000000000007\
             000000060000000000000001000000000000000700000000000000010000000000",
            10,
            "[3 event records (14 missed) timestamps 00:00:05.250...00:00:05.250]",
        ),
        (
            10,
            "0000000100000000000000050000000000000006000000000000000000",
            10,
            "[1 event record timestamp 00:00:05.000000006]",
        ),
    ] {
        let value = bytes(&json!(hex));
        let raw = if block_type < 9 {
            raw(1, block_type, None, value)
        } else {
            RawValue::Block { code: u8::try_from(block_type).unwrap(), bytes: value.into() }
        };
        let mut printed = Vec::new();
        let value_type = ValueType::from_code(i32::try_from(block_type).unwrap());
        raw.borrowed().print_version_6(&mut printed, value_type, width, &clock);
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(printed, expected, "{block_type} {hex} {width}");
    }
    for (word, width, expected) in [
        (0, 2, " 0  0 0x 0"),
        (0, 3, "  0   0 0x0"),
        (0, -5, "0     0     0x0    "),
        (0xffc0_0000, -14, "4290772992     0xffc00000      "),
    ] {
        let mut printed = Vec::new();
        RawValue::InPlace(word).print(&mut printed, ValueType::Unknown, width, &clock);
        assert_eq!(String::from_utf8(printed).unwrap(), expected, "{word} {width}");
    }
    // Bytes that are not UTF-8 stay unchanged.
    let mut printed = Vec::new();
    let latin = RawValue::Block { code: 6, bytes: [0xff, 0xe9, 0].into() };
    latin.print(&mut printed, ValueType::String, 6, &clock);
    assert_eq!(printed, b"  \"\xff\xe9\"");
}

#[test]
fn atoms_print_as_by_libpcp() {
    compare("atoms", "atom_str", |row| {
        let value = row[1].as_str().and_then(|value| atom(value_type(&row[0]), value));
        let ours = value.map_or_else(|| "no value".to_owned(), |value| value.atom_text());
        (text(&row[3]).to_owned(), ours)
    });
}

#[test]
fn numbers_print_as_by_libpcp() {
    compare("strings", "number_str", |row| {
        let value = match text(&row[0]) {
            "-nan" => f64::NAN,
            value => value.parse().unwrap(),
        };
        (text(&row[1]).to_owned(), number_text(value))
    });
}
