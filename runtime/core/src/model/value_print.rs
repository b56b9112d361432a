//! Prints values as `pmPrintValue(3)` does: in columns, from the raw bytes of a
//! result. Also prints the two short forms of PCP's reports.
//!
//! Text is printed with its original bytes, so the output is bytes.

use super::events::{EventSummary, summarize_events, summarize_events_as_version_6};
use super::value_text::{native_block, write_double, write_float};
use super::{PmStatus, RawValue, RawValueRef, Timestamp, Value, ValueType, until_nul};

/// The time of day of a point in time, with this many digits after the seconds
/// (3 or 9), in the time zone of the program that prints.
pub type ClockText<'c> = &'c dyn Fn(Timestamp, usize) -> String;

impl RawValue {
    /// Like [`RawValueRef::print`].
    pub fn print(
        &self,
        out: &mut Vec<u8>,
        value_type: ValueType,
        width: i32,
        clock: ClockText<'_>,
    ) {
        self.borrowed().print(out, value_type, width, clock);
    }
}

impl RawValueRef<'_> {
    /// Appends the value of a metric of type `value_type` in at least `width`
    /// columns (`pmPrintValue(3)`). It is aligned to the right; a negative
    /// `width` aligns it to the left. A value that does not fit its type is
    /// printed like one of unknown type: in all possible readings, each in so
    /// many columns.
    ///
    /// As in libpcp, text and opaque bytes are never padded on the right, and
    /// event records are not padded at all.
    pub fn print(self, out: &mut Vec<u8>, value_type: ValueType, width: i32, clock: ClockText<'_>) {
        self.print_with(summarize_events, out, value_type, width, clock);
    }

    /// Like [`RawValueRef::print`], with the counts and times of PCP 6: where event
    /// records were missed, it misreads those behind them.
    pub fn print_version_6(
        self,
        out: &mut Vec<u8>,
        value_type: ValueType,
        width: i32,
        clock: ClockText<'_>,
    ) {
        self.print_with(summarize_events_as_version_6, out, value_type, width, clock);
    }

    fn print_with(
        self,
        summarize: fn(RawValueRef<'_>, ValueType) -> Result<EventSummary, PmStatus>,
        out: &mut Vec<u8>,
        value_type: ValueType,
        width: i32,
        clock: ClockText<'_>,
    ) {
        if let Ok(summary) = summarize(self, value_type) {
            return print_events(out, &summary, value_type, clock);
        }
        if value_type == ValueType::String
            && let RawValueRef::Block { code: 0 | 6, bytes } = self
        {
            return right(out, &[b"\"", until_nul(bytes), b"\""].concat(), width);
        }
        let mut room = [0; 8];
        match (self.extract(value_type, value_type), self.encoded(&mut room)) {
            (Ok(value), _) if print_number(out, &value, width) => {}
            (_, Err(word)) => print_unknown_word(out, word, width),
            (_, Ok((code, bytes))) => {
                print_unknown_block(out, &native_block(code, bytes), width);
            }
        }
    }
}

/// Prints a number. Returns false if the value is not a number.
fn print_number(out: &mut Vec<u8>, value: &Value, width: i32) -> bool {
    let mut digits = itoa::Buffer::new();
    let mut text = String::new();
    let text = match value {
        Value::I32(value) => digits.format(*value),
        Value::U32(value) => digits.format(*value),
        Value::I64(value) => digits.format(*value),
        Value::U64(value) => digits.format(*value),
        Value::F32(value) => {
            write_float(&mut text, *value);
            &text
        }
        Value::F64(value) => {
            write_double(&mut text, *value);
            &text
        }
        _ => return false,
    };
    pad(out, text.as_bytes(), width);
    true
}

/// Pads like C's `%*s`.
fn pad(out: &mut Vec<u8>, text: &[u8], width: i32) {
    let columns = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
    let blanks = columns.saturating_sub(text.len());
    if width < 0 {
        out.extend_from_slice(text);
        out.resize(out.len() + blanks, b' ');
    } else {
        out.resize(out.len() + blanks, b' ');
        out.extend_from_slice(text);
    }
}

/// Aligns to the right and never pads on the right.
fn right(out: &mut Vec<u8>, text: &[u8], width: i32) {
    pad(out, text, width.max(0));
}

/// Prints a possible reading of bytes and a blank, unless it is NaN.
fn print_reading(out: &mut Vec<u8>, reading: &Value, width: i32) {
    let is_nan = match reading {
        Value::F32(value) => value.is_nan(),
        Value::F64(value) => value.is_nan(),
        _ => false,
    };
    if !is_nan {
        print_number(out, reading, width);
        out.push(b' ');
    }
}

fn print_unknown_word(out: &mut Vec<u8>, word: u32, width: i32) {
    print_reading(out, &Value::U32(word), width);
    print_reading(out, &Value::F32(f32::from_bits(word)), width);
    out.extend_from_slice(b"0x");
    // The width includes the prefix, unless it is 2 or less.
    let width = if width > 2 { width - 2 } else { width };
    pad(out, format!("{word:x}").as_bytes(), width);
}

/// Prints all readings of a block. `bytes` are in the byte order of this
/// machine.
fn print_unknown_block(out: &mut Vec<u8>, bytes: &[u8], width: i32) {
    if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
        print_reading(out, &Value::U64(u64::from_ne_bytes(bytes)), width);
        print_reading(out, &Value::F64(f64::from_ne_bytes(bytes)), width);
    }
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        print_reading(out, &Value::F32(f32::from_ne_bytes(bytes)), width);
    }
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        right(out, &[b"\"", bytes, b"\""].concat(), width);
        out.push(b' ');
    }
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    right(out, format!("[{digits}]").as_bytes(), width);
}

/// Appends the text of `pmPrintValue(3)` for bytes of type AGGREGATE or of
/// unknown type: all possible readings, as numbers of this machine's byte order
/// and as text, and the bytes in hexadecimal.
pub fn write_unknown_block(out: &mut String, bytes: &[u8]) {
    let mut printed = Vec::new();
    print_unknown_block(&mut printed, bytes, 0);
    // The printed text is ASCII: other bytes appear only as digits.
    out.extend(printed.into_iter().map(char::from));
}

fn print_events(
    out: &mut Vec<u8>,
    summary: &EventSummary,
    value_type: ValueType,
    clock: ClockText<'_>,
) {
    let digits = if value_type == ValueType::HighResEvent { 9 } else { 3 };
    let plural = if summary.records == 1 { "" } else { "s" };
    let mut text = format!("[{} event record{plural}", summary.records);
    if summary.missed > 0 {
        text.push_str(&format!(" ({} missed)", summary.missed));
    }
    if let Some((first, last)) = summary.span {
        text.push_str(&format!(" timestamp{plural} {}", clock(first, digits)));
        if summary.records > 1 {
            text.push_str(&format!("...{}", clock(last, digits)));
        }
    }
    text.push(']');
    out.extend_from_slice(text.as_bytes());
}

/// Longest text to print in full, in bytes, and the number of bytes to print of
/// a longer one.
const WHOLE_TEXT: usize = 37;
const CUT_TEXT: usize = 34;

/// Number of bytes that are printed of an aggregate.
const CUT_AGGREGATE: usize = 12;

impl Value {
    /// The value in a few characters, for messages (`pmAtomStr(3)`): numbers as
    /// C's `%d` and `%e` print them, text in quotes with at most 37 bytes, the
    /// first bytes of an aggregate.
    pub fn atom_text(&self) -> String {
        match self {
            Value::I32(value) => value.to_string(),
            Value::U32(value) => value.to_string(),
            Value::I64(value) => value.to_string(),
            Value::U64(value) => value.to_string(),
            Value::F32(value) => format_e(f64::from(*value), 6),
            Value::F64(value) => format_e(*value, 6),
            Value::Text(text) if text.len() <= WHOLE_TEXT => format!("\"{text}\""),
            Value::Text(text) => {
                // Cutting a character in two would make the text invalid.
                let end = text.floor_char_boundary(CUT_TEXT);
                format!("\"{}...\"", &text[..end])
            }
            Value::Aggregate(bytes) => {
                let shown = &bytes[..bytes.len().min(CUT_AGGREGATE)];
                let mut text = format!("[type=AGGREGATE len={}]", bytes.len());
                for group in shown.chunks(4) {
                    text.push(' ');
                    text.extend(group.iter().map(|byte| format!("{byte:02x}")));
                }
                if shown.len() < bytes.len() {
                    text.push_str(" ...");
                }
                text
            }
            Value::Event(bytes) | Value::HighResEvent(bytes) => {
                let count = bytes.first_chunk().map_or(0, |count| i32::from_be_bytes(*count));
                format!("[{count} event record{}]", if count == 1 { "" } else { "s" })
            }
        }
    }
}

/// The text that C prints for `%.{digits}e`, except for the sign of NaN.
pub fn format_e(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return super::format_g(value, 1);
    }
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// The magnitudes from which positive and negative numbers get each suffix.
const SUFFIXES: [(f64, f64, f64, char); 5] = [
    (999_995_000_000.0, 99_995_000_000.0, 1e12, 'T'),
    (999_995_000.0, 99_995_000.0, 1e9, 'G'),
    (999_995.0, 99_995.0, 1e6, 'M'),
    (999.995, 99.995, 1e3, 'K'),
    (0.0, 0.0, 1.0, ' '),
];

/// A number in seven columns, with a suffix for its thousands
/// (`pmNumberStr(3)`). NaN is shown as zero.
pub fn number_text(value: f64) -> String {
    if value >= 999_995_000_000_000.0 {
        return " inf?  ".to_owned();
    }
    if value <= -99_995_000_000_000.0 {
        return "-inf?  ".to_owned();
    }
    let magnitude = value.abs();
    for (positive, negative, unit, suffix) in SUFFIXES {
        let from = if value < 0.0 { negative } else { positive };
        if magnitude >= from {
            let shown = value / unit;
            // A number that is rounded to zero has no sign.
            let shown = if unit == 1.0 && magnitude < 0.005 { 0.0 } else { shown };
            return format!("{shown:6.2}{suffix}");
        }
    }
    "  0.00 ".to_owned()
}
