//! Reads identifiers that are written as numbers with dots between them.

use super::TextFault;

/// The decimal numbers of a dotted text, which are as many as the limits and within
/// them.
pub(super) fn dotted<const N: usize>(text: &str, limits: [u32; N]) -> Result<[u32; N], TextFault> {
    let fault = |offset, problem| TextFault { text: text.to_owned(), offset, problem };
    let mut numbers = [0; N];
    let mut offset = 0;
    for (at, (number, limit)) in numbers.iter_mut().zip(limits).enumerate() {
        if at > 0 {
            if !text[offset..].starts_with('.') {
                return Err(fault(offset, "a dot and a number are missing"));
            }
            offset += 1;
        }
        let rest = &text[offset..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if digits == 0 {
            return Err(fault(offset, "a decimal number is missing"));
        }
        let value = rest[..digits].parse().ok().filter(|value| *value <= limit);
        *number = value.ok_or_else(|| fault(offset, "the number is too large"))?;
        offset += digits;
    }
    if offset < text.len() {
        return Err(fault(offset, "the identifier should end here"));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use crate::model::{InDom, Pmid};

    #[test]
    fn the_place_of_a_fault_is_told() {
        assert_eq!("511.4095.1023".parse(), Ok(Pmid::new(511, 4095, 1023)));
        assert_eq!("60.0".parse(), Ok(InDom::new(60, 0)));
        for (text, offset, problem) in [
            ("", 0, "a decimal number is missing"),
            ("1.2", 3, "a dot and a number are missing"),
            ("1.2.", 4, "a decimal number is missing"),
            ("1.+2.3", 2, "a decimal number is missing"),
            ("1.4096.3", 2, "the number is too large"),
            ("99999999999.1.1", 0, "the number is too large"),
            ("1.2.3.4", 5, "the identifier should end here"),
            ("1.2.3 ", 5, "the identifier should end here"),
        ] {
            let error = text.parse::<Pmid>().expect_err(text);
            assert_eq!((error.offset, error.problem), (offset, problem), "{text}");
        }
        let error = "60.x".parse::<InDom>().expect_err("no number");
        assert_eq!(error.to_string(), "60.x\n   ^ -- a decimal number is missing");
    }
}
