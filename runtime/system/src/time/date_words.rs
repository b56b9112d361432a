//! The words of dates in free form, and the tokens of such a text.

use pmderive_core::model::is_c_space;

/// A token of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A number without a sign, or a word for one.
    Number(i64),
    /// A number with a sign.
    Signed(i64),
    /// True for the afternoon.
    Half(bool),
    /// 1 to 12.
    Month(i64),
    /// 0 for Sunday.
    Weekday(i64),
    /// A unit of time.
    Unit(Unit),
    Ago,
    Zone(Zone),
    /// The word for summer time after a zone.
    Dst,
    /// `/`, `:` or `,`.
    Sign(char),
    /// Anything else.
    Other,
}

/// The unit that a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A unit of this many seconds.
    Seconds(i64),
    /// A unit of this many seconds. If no time is given, the time of day
    /// becomes midnight.
    WholeDays(i64),
    /// A unit of this many months.
    Months(i64),
}

/// A zone by its abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// Minutes west of UTC, in winter.
    pub west: i64,
    pub is_dst: bool,
}

const DAY: i64 = 86_400;

const MONTHS: &[(&str, i64)] = &[
    ("january", 1),
    ("february", 2),
    ("march", 3),
    ("april", 4),
    ("may", 5),
    ("june", 6),
    ("july", 7),
    ("august", 8),
    ("september", 9),
    ("sept", 9),
    ("october", 10),
    ("november", 11),
    ("december", 12),
];

const WEEKDAYS: &[(&str, i64)] = &[
    ("sunday", 0),
    ("monday", 1),
    ("tuesday", 2),
    ("tues", 2),
    ("wednesday", 3),
    ("wednes", 3),
    ("thursday", 4),
    ("thur", 4),
    ("thurs", 4),
    ("friday", 5),
    ("saturday", 6),
];

/// Units of time; each word may be plural.
const UNITS: &[(&str, Unit)] = &[
    ("year", Unit::Months(12)),
    ("month", Unit::Months(1)),
    ("fortnight", Unit::Seconds(14 * DAY)),
    ("week", Unit::Seconds(7 * DAY)),
    ("day", Unit::Seconds(DAY)),
    ("hour", Unit::Seconds(3600)),
    ("minute", Unit::Seconds(60)),
    ("min", Unit::Seconds(60)),
    ("second", Unit::Seconds(1)),
    ("sec", Unit::Seconds(1)),
];

/// `second` is missing because it is a unit. `next` is two, as it always was.
const OTHERS: &[(&str, Token)] = &[
    ("tomorrow", Token::Unit(Unit::WholeDays(DAY))),
    ("yesterday", Token::Unit(Unit::WholeDays(-DAY))),
    ("today", Token::Unit(Unit::WholeDays(0))),
    ("now", Token::Unit(Unit::Seconds(0))),
    ("this", Token::Unit(Unit::Seconds(0))),
    ("ago", Token::Ago),
    ("last", Token::Number(-1)),
    ("next", Token::Number(2)),
    ("first", Token::Number(1)),
    ("third", Token::Number(3)),
    ("fourth", Token::Number(4)),
    ("fifth", Token::Number(5)),
    ("sixth", Token::Number(6)),
    ("seventh", Token::Number(7)),
    ("eighth", Token::Number(8)),
    ("ninth", Token::Number(9)),
    ("tenth", Token::Number(10)),
    ("eleventh", Token::Number(11)),
    ("twelfth", Token::Number(12)),
];

/// Zones in winter, with their hours west of UTC.
const ZONES: &[(&str, i64)] = &[
    ("gmt", 0),
    ("ut", 0),
    ("utc", 0),
    ("wet", 0),
    ("wat", 1),
    ("at", 2),
    ("ast", 4),
    ("est", 5),
    ("cst", 6),
    ("mst", 7),
    ("pst", 8),
    ("yst", 9),
    ("hst", 10),
    ("cat", 10),
    ("ahst", 10),
    ("nt", 11),
    ("idlw", 12),
    ("cet", -1),
    ("met", -1),
    ("mewt", -1),
    ("swt", -1),
    ("fwt", -1),
    ("eet", -2),
    ("bt", -3),
    ("zp4", -4),
    ("zp5", -5),
    ("zp6", -6),
    ("wast", -7),
    ("cct", -8),
    ("jst", -9),
    ("east", -10),
    ("gst", -10),
    ("nzt", -12),
    ("nzst", -12),
    ("idle", -12),
];

/// Zones in summer, with their hours west of UTC in winter.
const SUMMER_ZONES: &[(&str, i64)] = &[
    ("bst", 0),
    ("adt", 4),
    ("edt", 5),
    ("cdt", 6),
    ("mdt", 7),
    ("pdt", 8),
    ("ydt", 9),
    ("hdt", 10),
    ("mest", -1),
    ("sst", -1),
    ("fst", -1),
    ("wadt", -7),
    ("eadt", -10),
    ("nzdt", -12),
];

/// Number of letters of a word that count.
const WORD_LENGTH: usize = 19;

/// The tokens of a text. Text in parentheses is a remark. A sign without a
/// number after it is ignored.
///
/// `None` if a number is too large.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let digits = |at: usize| bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            byte if is_c_space(*byte) => at += 1,
            b'0'..=b'9' => {
                let length = digits(at);
                tokens.push(Token::Number(text[at..at + length].parse().ok()?));
                at += length;
            }
            b'+' | b'-' => {
                let length = 1 + digits(at + 1);
                if length > 1 {
                    tokens.push(Token::Signed(text[at..at + length].parse().ok()?));
                }
                at += length;
            }
            byte if byte.is_ascii_alphabetic() => {
                let is_part = |b: &&u8| b.is_ascii_alphabetic() || **b == b'.';
                let length = bytes[at..].iter().take_while(is_part).count();
                tokens.push(word(&text[at..at + length.min(WORD_LENGTH)]));
                at += length;
            }
            b'(' => at += remark_length(&bytes[at..]),
            b'/' | b':' | b',' => {
                tokens.push(Token::Sign(char::from(*byte)));
                at += 1;
            }
            // A C program's text ends here too.
            0 => break,
            _ => {
                tokens.push(Token::Other);
                at += 1;
            }
        }
    }
    Some(tokens)
}

/// Length of the text in parentheses, up to the end of the text if they are not
/// closed.
fn remark_length(bytes: &[u8]) -> usize {
    let mut depth = 0usize;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    bytes.len()
}

fn find<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn word(text: &str) -> Token {
    let mut word = text.to_ascii_lowercase();
    match &*word {
        "am" | "a.m." => return Token::Half(false),
        "pm" | "p.m." => return Token::Half(true),
        _ => {}
    }
    if word.len() == 4 && word.ends_with('.') {
        word.truncate(3);
    }
    let named = |table: &[(&str, i64)]| match word.len() {
        3 => table.iter().find(|(name, _)| name.starts_with(&*word)).map(|(_, value)| *value),
        _ => find(table, &word),
    };
    let unit = |word: &str| find(UNITS, word).map(Token::Unit);
    named(MONTHS)
        .map(Token::Month)
        .or_else(|| named(WEEKDAYS).map(Token::Weekday))
        .or_else(|| zone(&word))
        .or_else(|| (word == "dst").then_some(Token::Dst))
        .or_else(|| unit(&word))
        .or_else(|| unit(word.strip_suffix('s')?))
        .or_else(|| find(OTHERS, &word))
        .or_else(|| military_zone(&word))
        .or_else(|| if word.contains('.') { zone(&word.replace('.', "")) } else { None })
        .unwrap_or(Token::Other)
}

fn zone(word: &str) -> Option<Token> {
    let winter = find(ZONES, word).map(|hours| Zone { west: hours * 60, is_dst: false });
    let summer = || find(SUMMER_ZONES, word).map(|hours| Zone { west: hours * 60, is_dst: true });
    winter.or_else(summer).map(Token::Zone)
}

/// Zones of one letter: A is an hour west of UTC and M twelve; N is an hour
/// east and Y twelve; there is no J. (The military counts the other way.)
fn military_zone(word: &str) -> Option<Token> {
    let &[letter] = word.as_bytes() else { return None };
    let hours = match letter {
        b'a'..=b'i' => i64::from(letter - b'a') + 1,
        b'k'..=b'm' => i64::from(letter - b'a'),
        b'n'..=b'y' => -(i64::from(letter - b'n') + 1),
        b'z' => 0,
        _ => return None,
    };
    Some(Token::Zone(Zone { west: hours * 60, is_dst: false }))
}
