//! Comments that swallow the next line: a backslash at the end of a comment joins it with the
//! line below.
//!
//! A comment of several lines may be joined on purpose, so only a line that would
//! define something is missed.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Language;
use crate::syntax::{LineForm, OutlinedLine, outline};
use crate::text::{SourceId, SourceMap, Span};

/// Examines the comments of whole texts, which may define nothing at all.
pub(crate) fn lint_comments(
    texts: impl IntoIterator<Item = SourceId>,
    language: Language,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    // Without version 7 no lines are joined.
    if !language.dialect.is_version_7() {
        return;
    }
    for source in texts {
        let text = &sources.get(source).text;
        // Outlining reads the whole text, and such comments are rare.
        if !text.lines().any(|line| line.starts_with('#') && line.ends_with('\\')) {
            continue;
        }
        for line in outline(text, language) {
            if line.form == LineForm::Comment {
                diagnostics.extend(swallowed(
                    source,
                    &text[..line.range.end],
                    line.range.start,
                    language,
                ));
            }
        }
    }
}

/// The first line that the comment from `start` on swallows; `text` ends with the
/// comment.
fn swallowed(source: SourceId, text: &str, start: usize, language: Language) -> Option<Diagnostic> {
    let comment = text.get(start..)?;
    let mut ends = comment.match_indices("\\\n").map(|(at, mark)| (start + at, mark.len()));
    ends.find_map(|(backslash, length)| {
        let below = text.get(backslash + length..)?;
        let name = defined(outline(below, language).first()?)?;
        let span = Span::within(source, text, backslash..backslash + 1);
        let message = format!("this comment takes the definition of `{name}` along");
        Some(
            Diagnostic::warning(Code::SwallowedLine, span, message)
                .label(span, "joins the next line to the comment")
                .help("leave the backslash out, or write something behind it")
                .guess(span, ""),
        )
    })
}

/// The definition that a line would be by itself.
fn defined(line: &OutlinedLine<'_>) -> Option<String> {
    let (LineForm::Definition { name, .. } | LineForm::Text { name, .. }) = &line.form else {
        return None;
    };
    line.line.text.get(name.clone()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn found(text: &str, dialect: Dialect) -> Vec<(u32, String)> {
        let mut sources = SourceMap::default();
        let source = sources.add("x.conf", text);
        let mut diagnostics = Diagnostics::default();
        lint_comments([source], dialect.into(), &sources, &mut diagnostics);
        diagnostics.iter().map(|one| (one.span.start, one.message.clone())).collect()
    }

    #[test]
    fn lines_that_comments_take_along() {
        let message = |name: &str| format!("this comment takes the definition of `{name}` along");
        for (text, expected) in [
            ("# C:\\\na.b = c\n", Some((4, "a.b"))),
            ("# C:\\\na.b = c", Some((4, "a.b"))),
            ("x = y\n# C:\\\na.b = c + \\\n d\n", Some((10, "a.b"))),
            ("# one \\\n two \\\na.b = c\n", Some((13, "a.b"))),
            ("# one \\\na.b(oneline) = text\n", Some((6, "a.b"))),
            ("# one \\\n two\na.b = c\n", None),
            ("# one \\\n# two\na.b = c\n", None),
            ("# one \\\n\na.b = c\n", None),
            ("# one \\\r\na.b = c\n", None),
            ("# one\\", None),
        ] {
            let expected: Vec<_> =
                expected.map(|(at, name)| (at, message(name))).into_iter().collect();
            assert_eq!(found(text, Dialect::Fixed), expected, "{text}");
            assert_eq!(found(text, Dialect::Pcp7_2), expected, "{text}");
            // Lines are joined from version 7 on.
            assert!(found(text, Dialect::Pcp6_0).is_empty(), "{text}");
        }
    }
}
