//! Joins definitions that span several lines, for PCP before version 7, which has no
//! such lines.

use std::borrow::Cow;

use crate::dialect::{Dialect, Language};
use crate::syntax::{LineForm, outline};

/// Joins each definition of several lines into one line, if that is a definition in this
/// language. Everything else stays byte for byte.
pub fn joined(text: &str, language: Language) -> Cow<'_, str> {
    if !text.contains("\\\n") {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for line in outline(text, Language { dialect: Dialect::Pcp7_2, ..language }) {
        let raw = &text[line.range.clone()];
        if !matches!(line.form, LineForm::Definition { .. }) || !raw.contains("\\\n") {
            continue;
        }
        let whole = line.line.text.trim_end().to_owned() + "\n";
        let read = outline(&whole, language);
        if let [one] = &read[..]
            && let LineForm::Definition { .. } = one.form
        {
            out.push_str(&text[done..line.range.start]);
            out.push_str(&whole);
            done = line.range.end;
        }
    }
    out.push_str(&text[done..]);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_in_several_lines_become_one() {
        for (text, expected) in [
            ("a = b \\\n  + c\n", "a = b   + c\n"),
            ("# x\n\na = b\n", "# x\n\na = b\n"),
            // A comment may continue as well, and then swallows a definition.
            ("# x \\\na = b \\\n + c\n", "# x \\\na = b \\\n + c\n"),
            // Text that version 6 does not understand stays, as do other lines.
            ("a = delta(b \\\n + c)\n", "a = delta(b \\\n + c)\n"),
            ("a(oneline) = b \\\nc\n", "a(oneline) = b \\\nc\n"),
            ("a = b \\", "a = b \\"),
            ("a = b + \\\n", "a = b + \\\n"),
        ] {
            assert_eq!(joined(text, Dialect::Pcp6_0.into()), expected, "{text:?}");
        }
    }
}
