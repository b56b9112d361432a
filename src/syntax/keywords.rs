//! The names of libpcp's functions, and the values of `type=`, `semantics=`,
//! `units=`, `indom=` and of the arguments of `anon()` and `rescale()`.
//!
//! This module turns a spelling into a value of the model, or into the words
//! with which libpcp refuses it. Callers know the places and make diagnostics.

use pmderive_runtime::model::{InDom, Semantics, Units, UnitsError, ValueType};

use crate::dialect::Dialect;

use super::ast::{Number, NumberValue};

/// Words that a call may begin with.
pub(crate) const FUNCTION_NAMES: [&str; 15] = [
    "avg",
    "count",
    "delta",
    "max",
    "min",
    "sum",
    "anon",
    "rate",
    "instant",
    "mkconst",
    "rescale",
    "defined",
    "matchinst",
    "scalar",
    "novalue",
];

/// Spellings of `type=`, any case.
pub const TYPES: [(&str, ValueType); 6] = [
    ("32", ValueType::I32),
    ("u32", ValueType::U32),
    ("64", ValueType::I64),
    ("u64", ValueType::U64),
    ("float", ValueType::F32),
    ("double", ValueType::F64),
];

/// Spellings of `semantics=`, any case.
pub const SEMANTICS: [(&str, Semantics); 3] = [
    ("counter", Semantics::Counter),
    ("instant", Semantics::Instant),
    ("discrete", Semantics::Discrete),
];

/// Spellings of the argument of `anon()`, this case only.
pub const ANON_TYPES: [(&str, ValueType); 6] = [
    ("PM_TYPE_32", ValueType::I32),
    ("PM_TYPE_U32", ValueType::U32),
    ("PM_TYPE_64", ValueType::I64),
    ("PM_TYPE_U64", ValueType::U64),
    ("PM_TYPE_FLOAT", ValueType::F32),
    ("PM_TYPE_DOUBLE", ValueType::F64),
];

/// Highest domain number of an instance domain; 511 is reserved for derived
/// metrics.
const MAX_DOMAIN: u32 = 510;

/// The type of a `type=` value.
pub fn value_type(text: &str) -> Option<ValueType> {
    meant(text, &TYPES)
}

/// The semantics of a `semantics=` value.
pub fn semantics(text: &str) -> Option<Semantics> {
    meant(text, &SEMANTICS)
}

/// The spelling of a value in a table.
pub fn spelling<T: PartialEq>(table: &[(&'static str, T)], wanted: T) -> Option<&'static str> {
    table.iter().find(|(_, value)| *value == wanted).map(|(name, _)| *name)
}

/// Names of types in other languages, in small letters.
const OTHER_TYPES: [(&str, &str); 6] = [
    ("int32_t|int|integer|int32|i32|pm_type_32", "32"),
    ("uint32_t|uint|unsigned|uint32|pm_type_u32", "u32"),
    ("int64_t|long|int64|i64|pm_type_64", "64"),
    ("uint64_t|uint64|ulong|pm_type_u64", "u64"),
    ("f32|pm_type_float", "float"),
    ("f64|real|number|pm_type_double", "double"),
];

/// Names of semantics in other languages, in small letters.
const OTHER_SEMANTICS: [(&str, &str); 3] = [
    ("pm_sem_counter", "counter"),
    ("gauge|instantaneous|rate|pm_sem_instant", "instant"),
    ("constant|pm_sem_discrete", "discrete"),
];

/// The spelling of the type that a foreign word means.
pub fn meant_type(text: &str) -> Option<&'static str> {
    meant(text, &OTHER_TYPES)
}

/// The spelling of the semantics that a foreign word means.
pub fn meant_semantics(text: &str) -> Option<&'static str> {
    meant(text, &OTHER_SEMANTICS)
}

/// The value of a word in a table, in small or large letters. A row has words with `|`
/// between them.
pub fn meant<T: Copy>(text: &str, table: &[(&str, T)]) -> Option<T> {
    let is_one_of = |words: &str| words.split('|').any(|word| word.eq_ignore_ascii_case(text));
    table.iter().find(|(words, _)| is_one_of(words)).map(|(_, value)| *value)
}

/// The type of an `anon()` argument.
pub fn anon_type(text: &str) -> Option<ValueType> {
    ANON_TYPES.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

/// The instance domain of an `indom=` value; `Some(None)` for `null`.
pub fn indom(text: &str) -> Option<Option<InDom>> {
    if text.eq_ignore_ascii_case("null") {
        return Some(None);
    }
    let indom: InDom = text.parse().ok()?;
    (indom.domain() <= MAX_DOMAIN).then_some(Some(indom))
}

/// Dimension and scale of a units text. A multiplier in it has no effect.
pub fn units(text: &str, dialect: Dialect) -> Result<Units, UnitsError> {
    let parsed =
        if dialect.is_version_7() { Units::parse(text) } else { Units::parse_version_6(text) };
    parsed.map(|parsed| parsed.units)
}

/// True if a constant spelled like this may have this type.
pub fn constant_fits(number: &Number, value_type: ValueType) -> bool {
    match number.value {
        NumberValue::Integer(_) => true,
        NumberValue::Double(_) => matches!(value_type, ValueType::F32 | ValueType::F64),
    }
}

/// The meaning of a number's spelling as the lexer accepts it.
pub fn number(text: &str) -> Number {
    let value = match text.parse::<u32>() {
        Ok(integer) => NumberValue::Integer(integer),
        // A lone point is the only spelling that the standard library does not read; it counts as
        // zero.
        Err(_) => NumberValue::Double(text.parse().unwrap_or(0.0)),
    };
    Number { text: text.into(), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_domains_are_domain_dot_serial() {
        assert_eq!(indom("null"), Some(None));
        assert_eq!(indom("NULL"), Some(None));
        assert_eq!(indom("510.4194303"), Some(Some(InDom::new(510, 4_194_303))));
        for bad in ["511.0", "0.4194304", "123", "1.2x", "-1.0", "0.-2", "0.", ".1", "+1.2", ""] {
            assert_eq!(indom(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_keep_their_spelling() {
        let read = |text| number(text).value;
        assert_eq!(read("00012"), NumberValue::Integer(12));
        assert_eq!(read("4294967295"), NumberValue::Integer(u32::MAX));
        assert_eq!(read("1."), NumberValue::Double(1.0));
        assert_eq!(read(".5"), NumberValue::Double(0.5));
        assert_eq!(read("."), NumberValue::Double(0.0));
        assert_eq!(&*number("1.50").text, "1.50");
    }
}
