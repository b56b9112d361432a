//! Arguments of `-D` and `PCP_DEBUG`, see pmdbg(1). This program traces nothing, but refuses the
//! same texts as PCP's tools.

use crate::dialect::Dialect;

/// Names of the parts that can be traced, in version 6.0.
const NAMES: &str = "\
    pdu fetch profile value context indom pdubuf log logmeta optfetch af appl0 appl1 \
    appl2 pmns libpmda timecontrol pmc derive lock interp config pmapi fault auth \
    discovery attr http desperate deprecated exec labels series libweb alloc services \
    appl3 appl4 appl5 access qa search query compress dev0 dev1 dev2 pmlc appl6 appl7 \
    appl8 appl9 tls all";

/// True for a list of such names and numbers, with commas between. Names that only later
/// versions have are refused.
pub fn is_debug_spec(text: &str, dialect: Dialect) -> bool {
    if dialect != Dialect::Pcp6_0 {
        return true;
    }
    let is_number = |word: &str| {
        let digits = word.strip_prefix('-').unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_name =
        |word: &str| NAMES.split_ascii_whitespace().any(|name| name.eq_ignore_ascii_case(word));
    let words = text.strip_suffix(',').filter(|words| !words.is_empty()).unwrap_or(text);
    text.is_empty() || words.split(',').all(|word| is_number(word) || is_name(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_taken() {
        for text in ["", "all", "PDU,fetch", "5", "-1,fetch,", "999999999999"] {
            assert!(is_debug_spec(text, Dialect::Pcp6_0), "{text:?}");
        }
        for text in ["foo", "fetch,foo", "0x1", " fetch", ",", "fetch,,pdu", "1x", "-"] {
            assert!(!is_debug_spec(text, Dialect::Pcp6_0), "{text:?}");
        }
    }
}
