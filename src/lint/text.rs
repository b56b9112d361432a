//! Lints about slips that the text alone shows.

use super::subject::Subject;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::NodeKind;

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (_, node) in subject.nodes() {
        let number = match &node.kind {
            NodeKind::Number(number) => Some((number, node.span)),
            NodeKind::MkConst { number, .. } => Some((&number.value, number.span)),
            _ => None,
        };
        if let Some((number, span)) = number
            && &*number.text == "."
        {
            diagnostics.push(
                Diagnostic::warning(Code::LonePoint, span, "a lone `.` is the number 0")
                    .label(span, "digits are missing")
                    .help("if zero is meant, write it")
                    .guess(span, "0.0"),
            );
        }
        if let Some(found) = beyond_blank(&node.kind) {
            // A look at the instances may have reported it already.
            let is_new =
                |earlier: &Diagnostic| (earlier.code, earlier.span) != (found.code, found.span);
            if diagnostics.iter().all(is_new) {
                diagnostics.push(found);
            }
        }
    }
}

/// Advice about a pattern that would match more than the first word.
pub(super) const SELECT_INSTEAD: &str = "matchinst() sees an instance's name up to its first \
     blank; match that part, or select one instance with [...]";

/// The mistake of a `matchinst()` whose pattern needs a blank.
pub(super) fn beyond_blank(kind: &NodeKind) -> Option<Diagnostic> {
    let NodeKind::Match { pattern, negated, .. } = kind else { return None };
    if !needs_blank(&pattern.value) {
        return None;
    }
    let message = match negated {
        false => "this pattern can match no instance",
        true => "this pattern keeps no instance out",
    };
    Some(
        Diagnostic::warning(Code::PatternBeyondBlank, pattern.span, message)
            .label(pattern.span, "needs a blank, but is compared with the first word only")
            .help(SELECT_INSTEAD),
    )
}

/// True if every match of a regular expression contains a blank. Returns true
/// for plain sequences only.
fn needs_blank(pattern: &str) -> bool {
    let mut characters = pattern.chars().peekable();
    let mut found = false;
    while let Some(character) = characters.next() {
        match character {
            '|' | '(' => return false,
            '\\' => {
                characters.next();
            }
            '[' => {
                // A `]` that is the first member does not end the set.
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
                let mut before = '[';
                for member in characters.by_ref() {
                    // The end of a class such as `[:alpha:]` does not end the
                    // set.
                    if member == ']' && !matches!(before, ':' | '.' | '=') {
                        break;
                    }
                    before = member;
                }
            }
            ' ' => found |= !matches!(characters.peek(), Some('*' | '?' | '{')),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::needs_blank;

    #[test]
    fn blanks_that_must_be_matched() {
        for pattern in ["15 minute", "^a b$", "a[0-9] +b", "[]x] y", "[[:digit:]] x"] {
            assert!(needs_blank(pattern), "{pattern}");
        }
        for pattern in ["", "15", "a *b", "a ?", "a {0}", "a b|c", "(a b)?", "[ ]", "a[ b]", "[] ]"]
        {
            assert!(!needs_blank(pattern), "{pattern}");
        }
    }
}
