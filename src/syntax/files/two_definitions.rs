//! Two definitions in one line: the edit that gives each a line of its own.
//!
//! The modules of `mistakes` find the tokens between them. An expression alone has no lines, so
//! only a definition file accepts this edit.

use crate::diag::{Code, Diagnostic, Fix};
use crate::dialect::Language;
use crate::syntax::mistakes::calls::KEYWORDS;
use crate::syntax::mistakes::habits::is_understood;
use crate::syntax::names::{is_of_name, name_mistake};
use crate::syntax::origin::Origin;
use crate::text::{Span, offset};

/// Adds a fix to a diagnostic at the border of two definitions on one line. The fix
/// moves the second one to a line of its own. `expression` is the text after the first
/// `=` of the line, and `origin` is its place.
pub(super) fn split(
    diagnostic: &mut Diagnostic,
    expression: &str,
    origin: &Origin,
    language: Language,
) {
    let may_be = matches!(diagnostic.code, Code::UnexpectedToken | Code::IllegalCharacter);
    if !may_be || diagnostic.fix.is_some() {
        return;
    }
    let Some((place, is_certain)) = between(diagnostic.span, expression, origin, language) else {
        return;
    };
    let end = if expression.ends_with('\r') { "\r\n" } else { "\n" };
    diagnostic.fix = Some(Fix { span: place, text: end.to_owned(), is_certain });
}

/// The place between two definitions, with the blanks there: a whole expression stands before
/// it and a whole definition behind it. The second result says whether the latter cannot be
/// an argument of a call. Names of metrics have a point, and keywords of calls have none.
fn between(
    mark: Span,
    expression: &str,
    origin: &Origin,
    language: Language,
) -> Option<(Span, bool)> {
    let is_here = |at: &usize| origin.span(offset(*at), offset(*at + 1)) == mark;
    let (at, mark) = expression.match_indices([',', ';', '=']).find(|(at, _)| is_here(at))?;
    let (first, second) = match mark {
        "=" => {
            let before = expression[..at].trim_end();
            expression.split_at(before.trim_end_matches(is_of_name).len())
        }
        _ => (&expression[..at], &expression[at + 1..]),
    };
    let (first, second) = (first.trim_end(), second.trim_start());
    let (name, value) = second.split_once('=')?;
    let name = name.trim();
    let are_whole = name_mistake(name).is_none()
        && !KEYWORDS.contains(&name)
        && is_understood(first, language)
        && is_understood(value.trim(), language);
    let place = origin.span(offset(first.len()), offset(expression.len() - second.len()));
    are_whole.then_some((place, mark == ";" || name.contains('.')))
}

#[cfg(test)]
mod tests {
    use crate::syntax::tests::mended;

    #[test]
    fn each_definition_gets_a_line() {
        for (text, expected) in [
            ("a = b, c.d = e\n", Some("a = b\nc.d = e\n")),
            ("a = b ,c.d=e + 1\r\n", Some("a = b\r\nc.d=e + 1\r\n")),
            ("a = b, \\\n c.d = e\n", Some("a = b\nc.d = e\n")),
            ("a = matchinst(/x,y/, b), c.d = e\n", Some("a = matchinst(/x,y/, b)\nc.d = e\n")),
            ("a = b ; c = d\n", Some("a = b\nc = d\n")),
            ("a = rate(b) c.d = e[f]\n", Some("a = rate(b)\nc.d = e[f]\n")),
            // It may be an argument of the call before it.
            ("a = mkconst(1, type=u32), semantics=instant\n", None),
            ("a = sum(b), by=host\n", None),
            // One of the two is not a definition.
            ("a = b +, c = d\n", None),
            ("a = b, c = d +\n", None),
            ("a = b, c..d = e\n", None),
        ] {
            assert_eq!(mended(text).as_deref(), expected, "{text}");
        }
    }
}
