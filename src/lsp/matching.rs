//! Matches a typed text with names.

/// Number of ranks.
pub const RANKS: usize = 3;

/// A match of a name with a typed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Rank; smaller is better. 0: the name begins with the typed text. 1: it does so, ignoring
    /// case. 2: a part of it does.
    pub rank: u8,
    /// Offset of the typed text in the name.
    pub at: usize,
}

/// Matches a name with a typed text. Parts begin behind marks such as points. If a name does
/// not match, it will not match after further typing either.
pub fn matched(name: &str, typed: &str) -> Option<Match> {
    if name.starts_with(typed) {
        return Some(Match { rank: 0, at: 0 });
    }
    let is_at = |at: usize| {
        let part = name.get(at..at + typed.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(typed))
    };
    if is_at(0) {
        return Some(Match { rank: 1, at: 0 });
    }
    let is_mark = |byte: u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    let parts = name.bytes().enumerate().filter(|(_, byte)| is_mark(*byte)).map(|(at, _)| at + 1);
    parts.into_iter().find(|at| is_at(*at)).map(|at| Match { rank: 2, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_meant_by_their_parts() {
        for (name, typed, expected) in [
            ("disk.dev.total", "", Some((0, 0))),
            ("disk.dev.total", "disk.d", Some((0, 0))),
            ("disk.dev.total", "DISK.dev.t", Some((1, 0))),
            ("kernel.all.load", "load", Some((2, 11))),
            ("kernel.all.load", "ALL.lo", Some((2, 7))),
            ("/dev/mapper/vg-root", "root", Some((2, 15))),
            ("/dev/mapper/vg-root", "/dev/m", Some((0, 0))),
            ("kernel.all.load", "oad", None),
            ("é.a", "a", Some((2, 3))),
            ("é", "e", None),
        ] {
            let expected = expected.map(|(rank, at)| Match { rank, at });
            assert_eq!(matched(name, typed), expected, "{name} {typed}");
        }
    }
}
