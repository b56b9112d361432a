//! Finds the nearest word of a list to a misspelt one.
//!
//! The caller's list alone determines the language. This module also has the forms of words that
//! several messages share.

use std::fmt::Display;

/// The candidate nearest to `word`, if it is near enough to be meant. Its case
/// may differ, it may begin with the same three letters or more, or at most a
/// third of its letters may be wrong.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Nothing that long is a misspelling of a word of our language.
    if word.len() > 32 {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let beginning = candidates
        .iter()
        .copied()
        .find(|candidate| word.len() >= 3 && candidate.starts_with(word.as_str()));
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3).min(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
        .or(beginning)
}

/// Number of mistakes of one list for which words are suggested.
const MAX_SUGGESTED: usize = 200;

/// [`nearest`] for a mistake before which so many were reported in the same list. All
/// candidates are compared for each mistake, so very many of them get no suggestion.
pub fn nearest_after<'c>(
    reported: usize,
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if reported < MAX_SUGGESTED { nearest(word, candidates) } else { None }
}

/// Longest name of a metric to find suggestions for.
const MAX_NAME: usize = 128;
/// Largest number of misspelt letters in a metric's name.
const MAX_MISSPELT: usize = 2;

/// The metric nearest to an unknown one, if it is near enough to be meant. It
/// may differ in case and in the marks between its words, or in at most two
/// letters. It may begin and end with the same components, or continue where
/// this name ends. The result does not depend on the order of the candidates.
pub fn nearest_metric<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if name.is_empty() || name.len() > MAX_NAME {
        return None;
    }
    let small = name.to_ascii_lowercase();
    let name = &*small;
    let ends = name.contains('.').then(|| (name.split('.').next(), name.rsplit('.').next()));
    let own_letters = letters(name);
    let mut same: Option<&str> = None;
    let mut misspelt: Option<(usize, &str)> = None;
    let mut related: Option<&str> = None;
    let mut below: Option<&str> = None;
    for candidate in candidates {
        let order = |name: &'c str| (name.len(), name);
        if has_same_words(candidate, name) && same.is_none_or(|one| order(candidate) < order(one)) {
            same = Some(candidate);
        }
        // A wrong letter changes at most two bits of the set of letters.
        let differs = || (letters(candidate) ^ own_letters).count_ones() as usize;
        if candidate.len().abs_diff(name.len()) <= MAX_MISSPELT && differs() <= 2 * MAX_MISSPELT {
            let wrong = strsim::osa_distance(name, &candidate.to_ascii_lowercase());
            let found = (wrong, candidate);
            if wrong <= MAX_MISSPELT && misspelt.is_none_or(|other| found < other) {
                misspelt = Some(found);
            }
        }
        let is_related = ends.is_some_and(|(first, last)| {
            candidate.split('.').next() == first && candidate.rsplit('.').next() == last
        });
        if is_related && related.is_none_or(|other| order(candidate) < order(other)) {
            related = Some(candidate);
        }
        let is_below = name.len() >= 3 && candidate.starts_with(name);
        if is_below && below.is_none_or(|other| candidate < other) {
            below = Some(candidate);
        }
    }
    same.or(misspelt.map(|(_, candidate)| candidate)).or(related).or(below)
}

/// The metrics below a group of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Number of them.
    pub count: usize,
    /// The nearest of them, at most a few: those with the fewest components,
    /// and of these the shortest.
    pub nearest: Vec<String>,
}

/// Largest number of metrics of a group to name.
const MAX_NAMED: usize = 3;

impl Group {
    /// The metrics among `candidates` whose names continue that of the group. A
    /// point at the group's end makes no difference.
    pub fn below<'c>(group: &str, candidates: impl IntoIterator<Item = &'c str>) -> Group {
        let group = group.strip_suffix('.').unwrap_or(group);
        let is_below = |name: &&str| {
            let rest = name.strip_prefix(group).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| !rest.is_empty())
        };
        let mut names: Vec<&str> = candidates.into_iter().filter(is_below).collect();
        names.sort_unstable_by_key(|name| (name.matches('.').count(), name.len(), *name));
        names.dedup();
        let nearest = names.iter().take(MAX_NAMED).map(|name| (*name).to_owned()).collect();
        Group { count: names.len(), nearest }
    }
}

/// True for names that differ only in case, points, hyphens and underscores.
pub fn has_same_words(one: &str, other: &str) -> bool {
    fn plain(name: &str) -> impl Iterator<Item = u8> {
        let letters = name.bytes().filter(|byte| !matches!(byte, b'.' | b'-' | b'_'));
        letters.map(|byte| byte.to_ascii_lowercase())
    }
    let begins = |name: &str| name.bytes().next().map(|byte| byte.to_ascii_lowercase());
    begins(one) == begins(other)
        && one.len().abs_diff(other.len()) <= 8
        && plain(one).eq(plain(other))
}

/// The set of letters of a text, ignoring case; letters beyond ASCII share
/// bits.
fn letters(text: &str) -> u32 {
    text.bytes().fold(0, |letters, byte| letters | 1 << (byte & 31))
}

/// A count with its noun, as in `2 errors`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `a`, `b` or `c`
pub fn choices<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_find_their_words() {
        let words = ["avg", "count", "matchinst", "rescale"];
        for (word, meant) in [
            ("Avg", Some("avg")),
            ("ave", Some("avg")),
            ("cuont", Some("count")),
            ("matchinstance", None),
            ("match", Some("matchinst")),
            ("matchints", Some("matchinst")),
            ("rescael", Some("rescale")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), meant, "{word}");
        }
    }

    #[test]
    fn metrics_by_letters_components_and_beginnings() {
        let names =
            ["mem.util.free", "mem.physmem", "swap.free", "disk.dev.total", "disk.dev.read"];
        for (name, meant) in [
            ("mem.util.fre", Some("mem.util.free")),
            ("mem.free", Some("mem.util.free")),
            ("disk.dev", Some("disk.dev.read")),
            ("disk.dev.totla", Some("disk.dev.total")),
            ("Mem.Util.Free", Some("mem.util.free")),
            ("mem.util-free", Some("mem.util.free")),
            ("mem_phys_mem", Some("mem.physmem")),
            ("Disk.Dev.Totla", Some("disk.dev.total")),
            ("network.total", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest_metric(name, names), meant, "{name}");
        }
    }

    #[test]
    fn metrics_below_a_group() {
        let names =
            ["a.bc.d", "a.b.long", "a.b.c.d", "a.b.y", "a.b.x", "a.b.y", "a.b", "a.b.", "b.a.b.c"];
        let group = Group::below("a.b", names);
        assert_eq!(group.count, 4);
        assert_eq!(group.nearest, ["a.b.x", "a.b.y", "a.b.long"]);
        assert_eq!(Group::below("a.b.", names), group);
        assert_eq!(Group::below("a.b.x", names), Group::default());
    }

    #[test]
    fn choices_read_as_a_sentence() {
        assert_eq!(choices(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(choices(["a"]), "`a`");
    }
}
