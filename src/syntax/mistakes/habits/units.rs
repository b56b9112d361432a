//! Units and times that are written directly behind numbers: `10MB`, `5m`.

use pmderive_runtime::model::parse_interval;

use crate::dialect::Dialect;
use crate::syntax::keywords;

/// Units behind numbers in other languages that PCP does not know in small letters, with PCP's
/// units. A single letter is a time if PromQL has it for one.
const OTHERS: [(&str, &str); 9] = [
    ("b", "byte"),
    ("k", "Kbyte"),
    ("g", "Gbyte"),
    ("t", "Tbyte"),
    ("usec", "microsec"),
    ("msec", "millisec"),
    ("secs", "sec"),
    ("m", "min"),
    ("mins", "min"),
];

/// PCP's units for a word behind a number.
pub(in crate::syntax) fn of_number(word: &str, dialect: Dialect) -> Option<String> {
    let known = match word {
        // A capital letter is always a size.
        "M" => Some("Mbyte"),
        _ => keywords::meant(word, &OTHERS),
    };
    Some(keywords::units(known.unwrap_or(word), dialect).ok()?.to_string())
}

/// The interval of a window of time as PromQL and Grafana write it, `5m` or
/// `$__rate_interval`, in PCP's form. A common interval stands in where the
/// text has none.
pub(crate) fn window(text: &str) -> Option<String> {
    if text.starts_with("$_") || text.eq_ignore_ascii_case("$interval") {
        return Some("5 min".to_owned());
    }
    let text = text.split(':').next()?.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "ms" => "msec",
        "s" => "sec",
        "m" => "min",
        "h" => "hour",
        "d" => "day",
        _ => return None,
    };
    (!number.is_empty() && number.len() < 8).then(|| format!("{number} {unit}"))
}

/// The interval between double quotes, as PCP or others write it, in PCP's form.
pub(in crate::syntax) fn window_in_quotes(text: &str) -> Option<String> {
    let text = text.strip_prefix('"')?.strip_suffix('"')?.trim();
    window(text).or_else(|| {
        let digits = text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(text.len() - digits);
        let written = format!("{number} {}", unit.trim_start());
        parse_interval(&written).is_ok().then_some(written)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_numbers() {
        for (other, units) in OTHERS {
            assert_eq!(of_number(other, Dialect::Fixed).as_deref(), Some(units));
        }
        for (word, units) in [
            ("MB", Some("Mbyte")),
            ("M", Some("Mbyte")),
            ("gib", Some("Gbyte")),
            ("kbytes", Some("Kbyte")),
            ("S", Some("sec")),
            ("Hours", Some("hour")),
            ("furlong", None),
        ] {
            assert_eq!(of_number(word, Dialect::Fixed).as_deref(), units, "{word}");
        }
    }

    #[test]
    fn windows_are_intervals() {
        for (text, interval) in [
            ("5m", Some("5 min")),
            ("1h:30s", Some("1 hour")),
            ("$__rate_interval", Some("5 min")),
            ("vda", None),
            ("5", None),
            ("m", None),
        ] {
            assert_eq!(window(text).as_deref(), interval, "{text}");
        }
    }
}
