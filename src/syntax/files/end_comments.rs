//! Comments behind definitions, which the language does not allow. The edit moves
//! the comment to a line of its own above the definition.

use crate::diag::{Code, Diagnostic, Fix};
use crate::syntax::origin::Origin;
use crate::text::offset;

/// Changes a diagnostic's edit: it keeps the comment that it would remove.
/// `line` is the text of the logical line, `text` that of the whole file.
pub(super) fn move_comment(diagnostic: &mut Diagnostic, line: &str, origin: &Origin, text: &str) {
    let Some(fix) = &diagnostic.fix else { return };
    if diagnostic.code != Code::IllegalCharacter || !fix.text.is_empty() || !fix.is_certain {
        return;
    }
    let place = origin.span(0, offset(line.trim_end_matches('\r').len()));
    let slice = |start: u32, end: u32| text.get(start as usize..end as usize).unwrap_or_default();
    let comment = slice(diagnostic.span.start, diagnostic.span.end);
    let Some(words) = words(comment) else { return };
    if comment.contains('\n') {
        // Lines that belong to the definition may stand behind the mark.
        diagnostic.fix = Some(Fix { is_certain: false, ..fix.clone() });
        return;
    }
    if words.is_empty() {
        return;
    }
    let end = if line.ends_with('\r') { "\r\n" } else { "\n" };
    let before = slice(place.start, fix.span.start);
    let after = slice(fix.span.end, place.end);
    let definition = format!("{before}{after}");
    let moved = format!("# {words}{end}{}", definition.trim_end());
    diagnostic.fix = Some(Fix { span: place, text: moved, is_certain: true });
    diagnostic.help = Some("a comment has a line of its own above, which begins with `#`".into());
}

/// The words of a comment, without its marks. `None` for a text that is not a
/// comment.
fn words(comment: &str) -> Option<&str> {
    let comment = comment.trim();
    let inside = match comment.strip_prefix("/*") {
        Some(rest) => rest.strip_suffix("*/").unwrap_or(rest),
        None if comment.starts_with('#') => comment.trim_start_matches('#'),
        None => comment.strip_prefix("//")?,
    };
    // A backslash at the end would join the line with the definition.
    Some(inside.trim().trim_end_matches(['\\', ' ', '\t']))
}

#[cfg(test)]
mod tests {
    use crate::syntax::tests::mended;

    #[test]
    fn comments_move_to_the_line_above() {
        for (text, expected) in [
            ("a = b; # c\n", "# c\na = b;\n"),
            ("x = y\n  a = b ## c d  \r\ne = f\n", "x = y\n# c d\r\n  a = b\r\ne = f\n"),
            ("a = b // of c\n", "# of c\na = b\n"),
            ("a = b /* c */ + d\n", "# c\na = b  + d\n"),
            ("a = b + \\\n c # d\n", "# d\na = b + \\\n c\n"),
            ("a = b #control g=1\n", "# control g=1\na = b\n"),
            ("a = b #\n", "a = b \n"),
            ("a = b # pmderive: allow PMD0301\n", "# pmderive: allow PMD0301\na = b\n"),
        ] {
            assert_eq!(mended(text).as_deref(), Some(expected), "{text}");
        }
        // The text behind the mark in the next line may be meant.
        assert_eq!(mended("a = b # c \\\n + d\n"), None);
    }
}
