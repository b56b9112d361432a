//! Patches from one text to another, in the unified form that patch(1) reads.
//!
//! `similar` finds the lines that differ. It gets lines as numbers, so its generic
//! search is compiled once, for numbers.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::time::Instant;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag, group_diff_ops};

/// Number of equal lines to show around lines that differ.
const CONTEXT: usize = 3;

/// A patch that turns `before` into `after`, both called `name`. Empty if they are
/// equal.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    let texts = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<&str>>());
    let groups = group_diff_ops(operations(&texts, None), CONTEXT);
    let mut patch = String::new();
    if !groups.is_empty() {
        // A tab ends a name with blanks in it.
        let end = if name.contains(' ') { "\t" } else { "" };
        for sign in ["--- ", "+++ "] {
            write_line(&mut patch, sign, &format!("{name}{end}"));
        }
    }
    for group in &groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let [old, new] = [
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        ]
        .map(lines);
        write_line(&mut patch, "@@ ", &format!("-{old} +{new} @@"));
        for operation in group {
            let (tag, old, new) = operation.as_tag_tuple();
            let changed = match tag {
                DiffTag::Equal => vec![(" ", &texts[0][old])],
                _ => vec![("-", &texts[0][old]), ("+", &texts[1][new])],
            };
            for (sign, lines) in changed {
                lines.iter().for_each(|line| write_line(&mut patch, sign, line));
            }
        }
    }
    patch
}

/// The operations that turn the first text into the second, in lines. After `until`,
/// they need not be the fewest.
pub(crate) fn operations(texts: &[Vec<&str>; 2], until: Option<Instant>) -> Vec<DiffOp> {
    let mut known = HashMap::new();
    let [old, new] = texts.each_ref().map(|lines| -> Vec<usize> {
        let mut numbers = Vec::with_capacity(lines.len());
        for line in lines {
            let next = known.len();
            numbers.push(*known.entry(*line).or_insert(next));
        }
        numbers
    });
    let mut found = Compact::new(Replace::new(Capture::new()), &old, &new);
    let (old_lines, new_lines) = (0..old.len(), 0..new.len());
    let Ok(()) = myers::diff_deadline(&mut found, &old, old_lines, &new, new_lines, until);
    found.into_inner().into_inner().into_ops()
}

/// Writes a line of a patch. The last line of a text may lack its end.
fn write_line(patch: &mut String, sign: &str, line: &str) {
    patch.push_str(sign);
    patch.push_str(line);
    if matches!(sign, "-" | "+" | " ") && !line.ends_with('\n') {
        patch.push_str("\n\\ No newline at end of file");
    }
    if !line.ends_with('\n') {
        patch.push('\n');
    }
}

/// Lines as the head of a group of changes writes them, counted from one. An empty range
/// gives the line before it.
fn lines(range: Range<usize>) -> String {
    let mut text = String::new();
    let _ = match range.len() {
        0 => write!(text, "{},0", range.start),
        1 => write!(text, "{}", range.start + 1),
        count => write!(text, "{},{count}", range.start + 1),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn patches() {
        let numbered = |changed: &[usize]| -> String {
            let line = |at| match changed.contains(&at) {
                true => format!("new {at}\n"),
                false => format!("line {at}\n"),
            };
            (1..=20).map(line).collect()
        };
        for (before, after, expected) in [
            ("a\n", "a\n", ""),
            ("", "a\n", "--- f\n+++ f\n@@ -0,0 +1 @@\n+a\n"),
            ("a\n", "", "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n"),
            (
                "a\nb",
                "a\nb\n",
                "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
            ),
            (
                &numbered(&[]),
                &numbered(&[5, 18]),
                "--- f\n+++ f\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+new 5\n line 6\n \
                 line 7\n line 8\n@@ -15,6 +15,6 @@\n line 15\n line 16\n line 17\n-line 18\n+new \
                 18\n line 19\n line 20\n",
            ),
        ] {
            assert_eq!(unified("f", before, after), expected);
            let expected =
                expected.replacen("- f\n", "- a f\t\n", 1).replacen("+ f\n", "+ a f\t\n", 1);
            assert_eq!(unified("a f", before, after), expected);
        }
    }
}
