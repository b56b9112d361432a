//! Units: recorded answers of libpcp, and cases beyond them.

use pmderive_runtime::model::{Conversion, Units, UnitsErrorKind, fuzz_units};

use crate::{rows, units};

#[test]
fn text_that_aborts_libpcp_is_an_error() {
    for row in rows("units", "parse_abort") {
        let text = row[0].as_str().unwrap();
        let error = Units::parse(text).expect_err(text);
        assert!(text[error.range].starts_with("time-"), "{text}");
    }
    assert!(Units::parse("time-6^0").is_err());
    assert!(Units::parse("temperature (C) foo").is_err());
}

#[test]
fn units_print_as_they_read() {
    for row in rows("units", "format") {
        let units = units(&row[0]);
        let text = row[1].as_str().unwrap();
        // PCP 7 writes the count that PCP 6 leaves out.
        let bare_scale = text.starts_with('x');
        let text = if bare_scale { format!("count {text}") } else { text.to_string() };
        assert_eq!(units.to_string(), text);
        // A scale without its dimension leaves no trace in the text.
        let unused = [
            (units.dim_space, units.scale_space != 0),
            (units.dim_time, units.scale_time != 0),
            (units.dim_count, units.scale_count != 0),
        ];
        // `count x 10^7` is also how the seventh power of `count x 10` prints.
        let ambiguous = units.scale_count == 1 && units.dim_count.unsigned_abs() > 1;
        if !unused.contains(&(0, true)) && !ambiguous {
            let parsed = Units::parse(&text).unwrap();
            assert_eq!((parsed.units, parsed.multiplier), (units, 1.0), "{text}");
        }
    }
}

/// Text as it is written, and as it prints or the error.
const VERSION_7: &[(&str, Result<&str, &str>)] = &[
    ("temperature (C)", Ok("temperature (C)")),
    ("Temperature (F)", Ok("temperature (F)")),
    ("temperature(C)", Err("unrecognized or duplicate base unit")),
    ("temperature  (C)", Err("unrecognized or duplicate base unit")),
    ("temperature (mV)", Err("unrecognized or duplicate base unit")),
    ("temperature (C)^2", Err("unrecognized or duplicate base unit")),
    ("temperature (C) foo", Err("unrecognized or duplicate base unit")),
    ("voltage (mV)", Ok("voltage (mV)")),
    ("VOLTAGE (MV)", Ok("voltage (mV)")),
    ("power (W) / sec", Ok("power (W) / sec")),
    ("sec / power (W)", Ok("sec / power (W)")),
    ("byte / temperature (K)", Ok("byte / temperature (K)")),
    ("/ sec current (uA)", Ok("/ current (uA) sec")),
    ("sec current (uA)", Ok("current (uA) sec")),
    ("power (kW) power (W)", Err("multiple extra units not allowed")),
    ("power (kW) / power (W)", Err("extra units cannot appear in both dividend and divisor")),
    ("Kbyte^2", Ok("Kbyte^2")),
    ("Kbyte ^2", Err("unrecognized or duplicate base unit")),
    ("Kbyte^-1", Ok("/ Kbyte")),
    ("Kbyte^0", Ok("")),
    ("Kbyte^16", Err("unrecognized or duplicate base unit")),
    ("Kbyte^02", Err("unrecognized or duplicate base unit")),
    ("Kbyte^+2", Err("unrecognized or duplicate base unit")),
    ("byte byte", Err("unrecognized or duplicate base unit")),
    ("byte^0 byte", Ok("byte")),
    ("byte/byte", Ok("")),
    ("Kbyte/byte", Ok("")),
    ("sec/msec", Err("unrecognized or duplicate base unit")),
    ("sec/ms", Ok("")),
    ("byte sec count", Ok("byte sec count")),
    ("count x 10^3/sec", Ok("count x 10^3 / sec")),
    ("count x 10 / sec", Ok("count x 10 / sec")),
    ("COUNT X 10^-3", Ok("count x 10^-3")),
    ("count x10^3", Err("unrecognized or duplicate base unit")),
    ("KB/s", Ok("Kbyte / sec")),
    ("mbit", Err("unrecognized or duplicate base unit")),
    ("MiB", Ok("Mbyte")),
    ("h", Ok("hour")),
    ("m", Err("unrecognized or duplicate base unit")),
    ("min", Ok("min")),
    ("1 / sec", Ok("/ sec")),
    ("/", Ok("")),
    ("a/b/c", Err("unrecognized or duplicate base unit")),
    ("byte/sec/sec", Err("unrecognized or duplicate base unit")),
    ("byte / sec sec", Err("unrecognized or duplicate base unit")),
    ("-1 byte", Ok("byte")),
    ("1e400 byte", Err("invalid floating point literal")),
    ("- byte", Err("invalid floating point literal")),
    ("1.5.2 byte", Ok("byte")),
    ("1byte", Ok("byte")),
    ("byte1", Err("unrecognized or duplicate base unit")),
    ("BYTE", Ok("byte")),
    ("  byte  ", Ok("byte")),
    ("byte^3 / byte^-6", Err("space dimension out of bounds")),
    ("byte^7 / byte^-7", Err("space dimension out of bounds")),
    ("time-3", Ok("sec")),
    ("time-03", Err("unrecognized or duplicate base unit")),
    ("space-2 / time-4", Ok("Mbyte / min")),
    ("counts", Ok("count")),
    ("Zbyte", Ok("Zbyte")),
    ("Tbyte", Ok("Tbyte")),
    ("µs", Err("unrecognized or duplicate base unit")),
];

#[test]
fn units_strings_of_version_7() {
    for (text, expected) in VERSION_7 {
        let printed = Units::parse(text).map(|parsed| parsed.units.to_string());
        let printed = printed.map_err(|error| error.to_string());
        let expected = expected.map(str::to_string).map_err(str::to_string);
        assert_eq!(printed, expected, "{text:?}");
    }
}

#[test]
fn errors_point_at_the_word() {
    for (text, kind, word) in [
        ("Kbyte / msec", UnitsErrorKind::BaseUnit, "msec"),
        ("sec per byte", UnitsErrorKind::BaseUnit, "per"),
        ("byte sec Kbyte", UnitsErrorKind::BaseUnit, "Kbyte"),
        ("sec^16 byte", UnitsErrorKind::BaseUnit, "^16"),
        ("a/b/c", UnitsErrorKind::BaseUnit, "a"),
        ("sec/byte /count", UnitsErrorKind::BaseUnit, "/count"),
        ("byte µs sec", UnitsErrorKind::BaseUnit, "µs"),
        ("1e999sec", UnitsErrorKind::Number, "1e999"),
        ("byte -x", UnitsErrorKind::Number, "-x"),
        ("sec byte^8", UnitsErrorKind::SpaceDimension, "byte^8"),
        ("byte / sec^9", UnitsErrorKind::TimeDimension, "sec^9"),
        ("count x 10^8", UnitsErrorKind::CountDimension, "count x 10^8"),
        ("power (W) voltage (V)", UnitsErrorKind::MultipleExtra, "voltage (V)"),
        ("power (W) / voltage (V)", UnitsErrorKind::ExtraOnBothSides, "voltage (V)"),
    ] {
        let error = Units::parse(text).expect_err(text);
        assert_eq!((error.kind, &text[error.range]), (kind, word), "{text}");
    }
}

#[test]
fn unknown_scales_and_quantities_have_a_printed_form() {
    let extra = |quantity, unit| Units {
        extra: pmderive_runtime::model::ExtraUnit { quantity, unit },
        ..Units::NONE
    };
    assert_eq!(extra(9, 1).to_string(), "extra-9");
    assert_eq!(extra(-9, 1).to_string(), "/ extra-9");
    assert_eq!(extra(2, 7).to_string(), "voltage (scale-7)");
}

#[test]
fn damaged_units_text_never_panics() {
    for (seed, _) in VERSION_7 {
        for end in 0..=seed.len() {
            fuzz_units(&seed.as_bytes()[..end]);
        }
        for bit in 0..seed.len() * 8 {
            let mut damaged = seed.as_bytes().to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fuzz_units(&damaged);
        }
        for (other, _) in VERSION_7 {
            fuzz_units(format!("{seed} {other}").as_bytes());
            fuzz_units(format!("{seed}/{other}").as_bytes());
        }
    }
}

/// Words of the wire: some random ones, and all parsed units.
fn wire_words() -> Vec<u32> {
    let mut words: Vec<u32> = VERSION_7
        .iter()
        .filter_map(|(text, _)| Units::parse(text).ok())
        .map(|parsed| parsed.units.to_wire())
        .collect();
    let mut state = 0x9e37_79b9u32;
    for _ in 0..300 {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        words.push(state);
        // Random dimensions never match; those of a ratio and of an extra quantity may.
        words.push(state & 0x000f_ff07 | 0x1f00_0008);
    }
    words
}

#[test]
fn any_two_units_convert_both_ways_or_not_at_all() {
    let units: Vec<Units> = wire_words().into_iter().map(Units::from_wire).collect();
    let mut converted = 0;
    for from in &units {
        assert!(from.to_string().len() < 60, "{from}");
        for to in &units {
            let there = Conversion::between(*from, *to);
            let back = Conversion::between(*to, *from);
            assert_eq!(there.is_ok(), back.is_ok(), "{from} to {to}");
            let (Ok(there), Ok(back)) = (there, back) else { continue };
            assert!(there.mult >= 1 && there.div >= 1, "{from} to {to}");
            let value = back.apply_f64(there.apply_f64(20.0));
            assert!((value - 20.0).abs() < 1e-9, "{from} to {to}: {value}");
            converted += 1;
        }
    }
    assert!(converted > 500, "{converted}");
}
