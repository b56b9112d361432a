//! The words of units: tables of spellings for each scale.
//!
//! Printing and parsing of units both read these tables and hold no words of
//! their own. `units_parse` and `units_text` combine the words.

/// One of the three basic axes of [`Units`](super::Units).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Space,
    Time,
    Count,
}

impl Axis {
    pub(super) const ALL: [Axis; 3] = [Axis::Space, Axis::Time, Axis::Count];
}

/// A spelling, its axis and its scale.
pub(super) struct Word {
    pub(super) text: &'static str,
    pub(super) axis: Axis,
    pub(super) scale: i8,
}

/// Names that `pmUnitsStr(3)` prints, by scale.
pub(super) const SPACE_NAMES: [&str; 9] =
    ["byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte", "Pbyte", "Ebyte", "Zbyte", "Ybyte"];

/// Names that `pmUnitsStr(3)` prints, by scale.
pub(super) const TIME_NAMES: [&str; 6] = ["nanosec", "microsec", "millisec", "sec", "min", "hour"];

/// Beginning of the word for a scale beyond the last name; the scale's number
/// follows.
pub(super) const SPACE_NUMBERED: &str = "space-";

/// Beginning of the word for a scale beyond the last name; the scale's number
/// follows.
pub(super) const TIME_NUMBERED: &str = "time-";

/// The largest number that may follow [`SPACE_NUMBERED`] or [`TIME_NUMBERED`].
pub(super) const LAST_NUMBERED: i8 = 15;

macro_rules! words {
    (
        time { $($time_scale:literal: $($time:literal)*;)* }
        prefixes { $($scale:literal: $letter:literal $decimal:literal $binary:literal;)* }
    ) => {
        /// Every word that can be read, except the numbered ones and `count x
        /// 10^N`.
        pub(super) const WORDS: &[Word] = &[
            $($(Word { text: $time, axis: Axis::Time, scale: $time_scale },)*)*
            Word { text: "byte", axis: Axis::Space, scale: 0 },
            Word { text: "bytes", axis: Axis::Space, scale: 0 },
            $(
                Word { text: concat!($letter, "byte"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($letter, "bytes"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($letter, "B"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($letter, "iB"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($decimal, "byte"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($decimal, "bytes"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($binary, "byte"), axis: Axis::Space, scale: $scale },
                Word { text: concat!($binary, "bytes"), axis: Axis::Space, scale: $scale },
            )*
            Word { text: "count", axis: Axis::Count, scale: 0 },
            Word { text: "counts", axis: Axis::Count, scale: 0 },
        ];
    };
}

words! {
    time {
        0: "nanosec" "nanosecond" "nanoseconds" "ns";
        1: "microsec" "microsecond" "microseconds" "us";
        2: "millisec" "millisecond" "milliseconds" "ms";
        3: "sec" "second" "seconds" "s";
        4: "min" "minute" "minutes";
        5: "hour" "hours" "hr" "h";
    }
    // Powers of 1024 in every spelling.
    prefixes {
        1: "K" "Kilo" "Kibi";
        2: "M" "Mega" "Mebi";
        3: "G" "Giga" "Gibi";
        4: "T" "Tera" "Tebi";
        5: "P" "Peta" "Pebi";
        6: "E" "Exa" "Exbi";
        7: "Z" "Zetta" "Zebi";
        8: "Y" "Yotta" "Yobi";
    }
}

/// An extra quantity of PCP 7, with the names of its units in the order of
/// their numbers.
pub(super) struct ExtraWord {
    pub(super) name: &'static str,
    /// The name of each unit from number 1 on, and its size as a power of ten
    /// of the quantity's basic unit. Temperatures do not use the powers.
    pub(super) units: &'static [(&'static str, i32)],
}

/// Number of the one quantity whose units do not differ by powers of ten.
pub(super) const TEMPERATURE: u8 = 1;

/// The extra quantities, from number 1.
pub(super) const EXTRA_WORDS: &[ExtraWord] = &[
    ExtraWord { name: "temperature", units: &[("C", 0), ("F", 0), ("K", 0)] },
    ExtraWord { name: "voltage", units: &[("V", 0), ("mV", -3), ("uV", -6)] },
    ExtraWord { name: "current", units: &[("A", 0), ("mA", -3), ("uA", -6)] },
    ExtraWord { name: "power", units: &[("kW", 3), ("W", 0), ("mW", -3), ("uW", -6)] },
];

/// The extra quantity with a number of either sign.
pub(super) fn extra_word(quantity: i8) -> Option<&'static ExtraWord> {
    let number = usize::from(quantity.unsigned_abs());
    EXTRA_WORDS.get(number.checked_sub(1)?)
}
