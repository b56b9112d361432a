//! Values as text, compared with the C library's output.

use std::path::Path;

use pmderive_runtime::model::{format_g, write_exact_double, write_exact_float};

fn text_of(write: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    write(&mut text);
    text
}

/// Lines of `BITS DIGITS TEXT` as glibc's printf wrote them: edges, ties,
/// random bit patterns of doubles and of floats.
#[test]
fn g_is_that_of_the_c_library() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/printf_g.txt");
    let table = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in table.lines() {
        let [bits, digits, expected] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(format_g(value, digits.parse().unwrap()), expected, "{line}");
        rows += 1;
    }
    assert!(rows > 2000, "{rows}");
}

#[test]
fn odd_arguments_of_g() {
    assert_eq!(format_g(1234.5, 0), format_g(1234.5, 1));
    assert_eq!(format_g(0.1, 400), "0.10000000000000001");
    assert_eq!(format_g(f64::NAN.copysign(1.0), 6), "nan");
    assert_eq!(format_g(f64::NAN.copysign(-1.0), 6), "-nan");
    assert_eq!(format_g(f64::INFINITY, 6), "inf");
    assert_eq!(format_g(f64::NEG_INFINITY, 6), "-inf");
}

#[test]
fn exact_text_is_short_and_not_an_integer() {
    for (value, text) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (100.0, "100.0"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (9007199254740992.0, "9007199254740992.0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.0 / 3.0, "0.3333333333333333"),
        (1223383794756801.0 + 0.25, "1223383794756801.2"),
        (83984452.0 + 0.923828125, "83984452.92382812"),
        (2f64.powi(-44), "5.684341886080802e-14"),
        (9007199254740993e-30, "9.007199254740993e-15"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (-f64::NAN, "nan"),
    ] {
        assert_eq!(text_of(|out| write_exact_double(out, value)), text);
    }
    for (value, text) in [
        (0.1f32, "0.1"),
        (16777216.0, "16777216.0"),
        (1e8, "1e+08"),
        (1.0 / 3.0, "0.33333334"),
        (f32::NAN, "nan"),
        (f32::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(text_of(|out| write_exact_float(out, value)), text);
    }
}

#[test]
fn exact_text_reads_back_as_the_same_value() {
    let mut bits = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..20_000 {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        let double = f64::from_bits(bits);
        let text = text_of(|out| write_exact_double(out, double));
        let again: f64 = text.parse().unwrap();
        assert!(again.to_bits() == bits || double.is_nan() && again.is_nan(), "{bits:x} {text}");
        let float = f32::from_bits((bits >> 32) as u32);
        let text = text_of(|out| write_exact_float(out, float));
        let again: f32 = text.parse().unwrap();
        assert!(again == float || float.is_nan() && again.is_nan(), "{float} {text}");
    }
}
