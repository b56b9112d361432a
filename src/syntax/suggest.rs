//! What was probably meant: the nearest of a list of known words.
//!
//! Knows nothing of the language but the words it is given.

/// The candidate nearest to `word`, if one is near enough to be meant: the
/// same but for case, begun with the same three letters or more and not ended,
/// or at most a third of its letters wrong.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Nothing that long is a misspelling of a word of ours.
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
        .map(|candidate| (distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3).min(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
        .or(beginning)
}

/// How many bytes must be inserted, deleted, replaced or swapped with their
/// neighbour to make one text from the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, a) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *a == to[column - 1] && from[row - 1] == *b;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[to.len()]
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
    fn choices_read_as_a_sentence() {
        assert_eq!(choices(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(choices(["a"]), "`a`");
    }
}
