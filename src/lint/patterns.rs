//! Lints about patterns that cost more than necessary, or mean something else.

use super::subject::Subject;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::ast::{Literal, NodeKind};
use crate::text::Span;

pub(super) fn lint(subject: &Subject<'_>, diagnostics: &mut Diagnostics) {
    for (_, node) in subject.nodes() {
        let (pattern, span) = match &node.kind {
            NodeKind::Match { pattern, .. } => (&*pattern.value, pattern.span),
            NodeKind::Call { literal: Some(literal), .. } => match &literal.value {
                Literal::Pattern { pattern, .. } => (&**pattern, literal.span),
                _ => continue,
            },
            _ => continue,
        };
        diagnostics.extend(found(pattern, subject.sources.slice(span), span));
    }
}

/// The diagnostic for an expensive pattern. `written` is its spelling.
fn found(pattern: &str, written: &str, span: Span) -> Option<Diagnostic> {
    let expensive = |message: &str| Diagnostic::warning(Code::ExpensivePattern, span, message);
    if has_back_reference(pattern) {
        return Some(
            expensive("a back-reference makes matching slow")
                .label(span, "is tried from each place in each name")
                .help("write the repeated part out, or choose instances by their names"),
        );
    }
    if repeats_repetition(pattern) {
        return Some(
            expensive("a repetition is repeated, which makes matching slow")
                .label(span, "matches the same text in very many ways")
                .help("one of the two repetitions is enough"),
        );
    }
    if let Some(shell) = of_shell(pattern) {
        let before = &pattern[pattern.len() - 2..pattern.len() - 1];
        let message = format!("`*` repeats the `{before}` before it");
        return Some(
            Diagnostic::warning(Code::ShellPattern, span, message)
                .label(span, "matches anywhere in a name, and needs no `*` at its end")
                .help(format!("did you mean `/{shell}/`?"))
                .guess(span, format!("/{shell}/")),
        );
    }
    // A pattern matches anywhere in a name.
    let mark = written.starts_with('!').into();
    let inside = written.get(mark..)?.trim_start().strip_prefix('/')?.strip_suffix('/')?;
    // The next character may repeat it, and each side of `|` is a pattern of its own.
    let is_repeated = |rest: &str| rest.starts_with(['?', '*', '+', '{']);
    if inside.contains('|') {
        return None;
    }
    let bare = inside.strip_prefix(".*").filter(|rest| !is_repeated(rest)).unwrap_or(inside);
    let bare = match bare.strip_suffix(".*") {
        Some(before) if !before.ends_with('\\') => before,
        _ => bare,
    };
    let is_needless = bare.len() < inside.len() && !bare.is_empty();
    is_needless.then(|| {
        expensive("`.*` at an end of a pattern changes nothing")
            .label(span, "matches anywhere in a name as it is")
            .fix(span, format!("/{bare}/"))
    })
}

/// The intended pattern of `vd*`, a word with a `*` behind it.
fn of_shell(pattern: &str) -> Option<String> {
    let word = pattern.strip_suffix('*')?;
    let word = word.strip_prefix('^').unwrap_or(word);
    let is_word = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then(|| format!("^{word}"))
}

fn has_back_reference(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next().is_some_and(|next| matches!(next, '1'..='9')) {
            return true;
        }
    }
    false
}

/// True for `(a*)*`: a group that holds a repetition without end and is repeated
/// without end itself.
fn repeats_repetition(pattern: &str) -> bool {
    let mut groups: Vec<bool> = Vec::new();
    let mut characters = pattern.chars().peekable();
    let mut is_in_set = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' if !is_in_set => {
                is_in_set = true;
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
            }
            ']' => is_in_set = false,
            _ if is_in_set => {}
            '(' => groups.push(false),
            '*' | '+' => groups.iter_mut().for_each(|repeats| *repeats = true),
            ')' => {
                let repeats = groups.pop().unwrap_or(false);
                if repeats && matches!(characters.peek(), Some('*' | '+')) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::SourceId;

    #[test]
    fn patterns_that_cost() {
        let span = Span::new(SourceId(0), 0, 0);
        let fixed = |pattern: &str| {
            found(pattern, &format!("/{pattern}/"), span).map(|one| one.fix.map(|fix| fix.text))
        };
        let text = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(fixed(".*sd.*"), text("/sd/"));
        assert_eq!(fixed(".*sd"), text("/sd/"));
        assert_eq!(fixed(".* sd"), text("/ sd/"));
        assert_eq!(fixed("(a)-\\1"), Some(None));
        assert_eq!(fixed("(a*b)+"), Some(None));
        assert_eq!(fixed("vd*"), text("/^vd/"));
        for cheap in [" .*sd", ".*?sd", ".*+sd", ".*{2}sd", "sd|.*", ".*a|b"] {
            assert_eq!(fixed(cheap), None, "{cheap}");
        }
        for cheap in ["sd", "^sd.*x", ".*", "a\\.*", "(ab)*", "[(*)]*", "a*(b)", "(a*)b"] {
            assert_eq!(fixed(cheap), None, "{cheap}");
        }
    }
}
