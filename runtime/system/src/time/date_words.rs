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

/// In their order; a stroke is between forms of one name.
const MONTHS: &str = "january february march april may june july august september/sept october \
                      november december";
const WEEKDAYS: &str =
    "sunday monday tuesday/tues wednesday/wednes thursday/thur/thurs friday saturday";

/// Ordinals from the first on. `second` is missing because it is a unit.
const ORDINALS: &str = "first - third fourth fifth sixth seventh eighth ninth tenth eleventh \
                        twelfth";

/// Units of time; each word may be plural.
pub(super) const UNITS: &[(&str, Unit)] = &[
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

/// `next` is two, as it always was.
const OTHERS: &[(&str, Token)] = &[
    ("tomorrow", Token::Unit(Unit::WholeDays(DAY))),
    ("yesterday", Token::Unit(Unit::WholeDays(-DAY))),
    ("today", Token::Unit(Unit::WholeDays(0))),
    ("now", Token::Unit(Unit::Seconds(0))),
    ("this", Token::Unit(Unit::Seconds(0))),
    ("ago", Token::Ago),
    ("last", Token::Number(-1)),
    ("next", Token::Number(2)),
];

/// Hours west of UTC of zones in winter.
const ZONES: &[(i64, &str)] = &[
    (0, "gmt ut utc wet"),
    (1, "wat"),
    (2, "at"),
    (4, "ast"),
    (5, "est"),
    (6, "cst"),
    (7, "mst"),
    (8, "pst"),
    (9, "yst"),
    (10, "hst cat ahst"),
    (11, "nt"),
    (12, "idlw"),
    (-1, "cet met mewt swt fwt"),
    (-2, "eet"),
    (-3, "bt"),
    (-4, "zp4"),
    (-5, "zp5"),
    (-6, "zp6"),
    (-7, "wast"),
    (-8, "cct"),
    (-9, "jst"),
    (-10, "east gst"),
    (-12, "nzt nzst idle"),
];

/// Hours west of UTC in winter of zones in summer.
const SUMMER_ZONES: &[(i64, &str)] = &[
    (0, "bst"),
    (4, "adt"),
    (5, "edt"),
    (6, "cdt"),
    (7, "mdt"),
    (8, "pdt"),
    (9, "ydt"),
    (10, "hdt"),
    (-1, "mest sst fst"),
    (-7, "wadt"),
    (-10, "eadt"),
    (-12, "nzdt"),
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

/// The position in a list of the name with a form that `is_it` accepts.
fn position(list: &str, is_it: impl Fn(&str) -> bool) -> Option<i64> {
    (0..).zip(list.split(' ')).find(|(_, name)| name.split('/').any(&is_it)).map(|(at, _)| at)
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
    let is_named = |name: &str| name == word || word.len() == 3 && name.starts_with(&*word);
    let named = |list| position(list, is_named);
    let unit = |word: &str| find(UNITS, word).map(Token::Unit);
    named(MONTHS)
        .map(|month| Token::Month(month + 1))
        .or_else(|| named(WEEKDAYS).map(Token::Weekday))
        .or_else(|| zone(&word))
        .or_else(|| (word == "dst").then_some(Token::Dst))
        .or_else(|| unit(&word))
        .or_else(|| unit(word.strip_suffix('s')?))
        .or_else(|| find(OTHERS, &word))
        .or_else(|| Some(Token::Number(position(ORDINALS, |name| name == word)? + 1)))
        .or_else(|| military_zone(&word))
        .or_else(|| if word.contains('.') { zone(&word.replace('.', "")) } else { None })
        .unwrap_or(Token::Other)
}

fn zone(word: &str) -> Option<Token> {
    let named = |(table, is_dst): (&[(i64, &str)], bool)| {
        let mut rows = table.iter();
        let (hours, _) = rows.find(|(_, names)| names.split(' ').any(|name| name == word))?;
        Some(Token::Zone(Zone { west: hours * 60, is_dst }))
    };
    [(ZONES, false), (SUMMER_ZONES, true)].into_iter().find_map(named)
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
