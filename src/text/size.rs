//! Sizes as users write them, such as `100Mb`.

/// Units of sizes, by the letter that they begin with (see `-v` of pmlogger(1)).
const UNITS: &[(&[&str], u64)] = &[
    (&["b", "byte"], 1),
    (&["k", "kb", "kib", "kbyte", "kilobyte"], 1 << 10),
    (&["m", "mb", "mib", "mbyte", "megabyte"], 1 << 20),
    (&["g", "gb", "gib", "gbyte", "gigabyte"], 1 << 30),
    (&["t", "tb", "tib", "tbyte", "terabyte"], 1 << 40),
];

/// Parses a number of bytes with its unit.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let singular = unit.strip_suffix('s').unwrap_or(&unit);
    if unit.is_empty() && !number.is_empty() {
        return Err(format!("the unit is missing, as in {number}Mb or {number}bytes"));
    }
    let unit = UNITS.iter().find(|(words, _)| words.contains(&singular));
    match unit.and_then(|(_, bytes)| number.parse::<u64>().ok()?.checked_mul(*bytes)) {
        Some(0) => Err("a size is 1 byte at least".to_owned()),
        Some(size) => Ok(size),
        None => Err("a size is a number with its unit, as in 100Mb or 1Gbyte".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("100bytes", Some(100)),
            ("1b", Some(1)),
            ("2 KiB", Some(2048)),
            ("100Mb", Some(100 << 20)),
            ("10Gbytes", Some(10 << 30)),
            ("3megabyte", Some(3 << 20)),
            ("100", None),
            ("0k", None),
            ("k", None),
            ("", None),
            ("-1k", None),
            ("10mins", None),
            ("99999999999999999999k", None),
            ("18446744073709551615k", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }
}
