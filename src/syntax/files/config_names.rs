//! Wrong names and ends of lines in definition files, and what to write in their
//! places.

use std::ops::Range;

use crate::diag::pcp::FileLine;
use crate::diag::{Code, Diagnostic, Fix};
use crate::syntax::names::{NameMistake, is_of_name, is_space, name_mistake};
use crate::syntax::origin::{Origin, span};
use crate::text::Span;

/// Words before a definition in other languages that do not affect its values.
const DECLARING: [&str; 16] = [
    "auto", "const", "def", "define", "derive", "let", "local", "metric", "mut", "my", "our",
    "record", "set", "static", "val", "var",
];

/// Words before a name that do affect its values.
const TYPES: [&str; 9] =
    ["counter", "double", "export", "float", "gauge", "int", "long", "u32", "u64"];

/// Keys of a file of Prometheus rules.
pub(super) const RULE_KEYS: [&str; 6] = ["alert", "expr", "for", "groups", "record", "rules"];

/// Letters beyond English ones, with their English spellings.
const LETTERS: [(&str, &str); 12] = [
    ("\u{e4}", "ae"),
    ("\u{f6}", "oe"),
    ("\u{fc}", "ue"),
    ("\u{df}", "ss"),
    ("\u{e9}", "e"),
    ("\u{e8}", "e"),
    ("\u{ea}", "e"),
    ("\u{e0}", "a"),
    ("\u{e1}", "a"),
    ("\u{f3}", "o"),
    ("\u{f1}", "n"),
    ("\u{e7}", "c"),
];

/// The mistake in a metric's name, if there is one.
pub(super) fn check_name(
    name: &str,
    range: &Range<usize>,
    end: usize,
    origin: &Origin,
    pcp: &FileLine<'_>,
) -> Option<Diagnostic> {
    if name.is_empty() {
        return Some(
            Diagnostic::error(
                Code::BadDefinitionLine,
                span(origin, &(end..end + 1)),
                "there is no metric name",
            )
            .help("a definition is written `name = expression`")
            .pcp(pcp.error_with_line(format_args!("derived metric name missing"))),
        );
    }
    let NameMistake { at, rule } = name_mistake(name)?;
    let place = span(origin, &(range.start + at.start..range.start + at.end));
    let diagnostic = advised(bad_name(name, place, rule), name, range, origin);
    let said = pcp.error(format_args!("illegal derived metric name ({name})"));
    let diagnostic = diagnostic.pcp(said);
    Some(match name_mistake(name.strip_suffix('.').unwrap_or(name)) {
        None => diagnostic.guess(place, ""),
        Some(_) => diagnostic,
    })
}

/// True for a mistake that more text might fix.
pub(super) fn ends_too_early(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, Code::UnexpectedEnd | Code::UnbalancedDelimiter)
}

/// True for a line that begins with blanks and has other characters.
pub(super) fn is_indented(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or_default();
    line.starts_with([' ', '\t']) && !line.trim().is_empty()
}

/// True if a text begins with an indented line that may continue an expression. Such a
/// line is not a comment, definition or help text.
pub(super) fn goes_on(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or_default().trim();
    is_indented(text) && !line.starts_with('#') && !is_assignment(line)
}

/// True for a line such as `name = expression` or `name(oneline) = text`.
pub(in crate::syntax) fn is_assignment(line: &str) -> bool {
    let rest = line.trim_start_matches(is_of_name);
    let after = rest.trim_start();
    let after = match after.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
        Some((_, after)) => after.trim_start(),
        None => after,
    };
    rest.len() < line.len() && after.starts_with('=') && !after.starts_with("==")
}

/// Offset of the colon of `name: expression`.
pub(super) fn colon_for_assign(content: &str) -> Option<usize> {
    let (name, expression) = content.split_once(':')?;
    let bare = name.trim_end_matches(is_space);
    let is_definition =
        name_mistake(bare).is_none() && !RULE_KEYS.contains(&bare) && !expression.trim().is_empty();
    is_definition.then_some(name.len())
}

/// The report on a name, if the habit behind it is recognised.
fn advised(
    diagnostic: Diagnostic,
    name: &str,
    range: &Range<usize>,
    origin: &Origin,
) -> Diagnostic {
    let is_name = |name: &str| name_mistake(name).is_none();
    let whole = span(origin, range);
    let quoted = name.strip_prefix(['"', '\'']).and_then(|rest| rest.strip_suffix(['"', '\'']));
    if let Some(inside) = quoted.filter(|inside| is_name(inside)) {
        return diagnostic.help("names have no quotes").fix(whole, inside);
    }
    if let Some(before) = name.strip_suffix([':', '+', '-', '*', '/'])
        && is_name(before.trim_end_matches(is_space))
    {
        let mark = span(origin, &(range.end - 1..range.end));
        let diagnostic = Diagnostic { span: mark, labels: Vec::new(), ..diagnostic };
        let diagnostic = diagnostic.label(mark, "not before the `=`");
        let diagnostic = diagnostic.help("a definition is written with `=` alone");
        // `+=` adds to an existing value.
        let (text, is_certain) = (String::new(), name.ends_with(':'));
        return diagnostic.edit(Fix { span: mark, text, is_certain });
    }
    if let Some((word, rest)) = name.split_once(is_space)
        && (DECLARING.contains(&word) || TYPES.contains(&word))
        && is_name(rest.trim_start_matches(is_space))
    {
        let name = rest.trim_start_matches(is_space);
        let start = range.end - name.len();
        let declaring = word;
        let word = span(origin, &(range.start..start));
        let help = format!("a definition begins with its name: write `{} =`", name.trim());
        let (text, is_certain) = (String::new(), !TYPES.contains(&declaring));
        return diagnostic.help(help).edit(Fix { span: word, text, is_certain });
    }
    if let Some(meant) = spelt(name) {
        return diagnostic.help(format!("did you mean `{meant}`?")).guess(whole, meant);
    }
    let joined = name.replace('-', "_");
    if joined != name && is_name(&joined) {
        let pointed = name.replace('-', ".");
        let help = match is_name(&pointed) {
            true => format!("did you mean `{joined}` or `{pointed}`?"),
            false => format!("did you mean `{joined}`?"),
        };
        return diagnostic.help(help).guess(whole, joined);
    }
    diagnostic
}

/// A valid name like this one. It has points for PromQL's colons, English letters
/// for others, and a letter before a digit.
fn spelt(name: &str) -> Option<String> {
    let mut meant = name.replace(':', ".");
    for (letter, spelling) in LETTERS {
        meant = meant.replace(letter, spelling);
    }
    if meant.starts_with(|first: char| first.is_ascii_digit() || first == '_') {
        meant = format!("m{meant}");
    }
    (meant != name && name.len() <= 60 && name_mistake(&meant).is_none()).then_some(meant)
}

/// A name that breaks a rule.
pub(crate) fn bad_name(name: &str, place: Span, wrong: &str) -> Diagnostic {
    let shown = if name.len() <= 60 { name } else { "this" };
    let message = format!("`{shown}` cannot be the name of a metric");
    Diagnostic::error(Code::BadMetricName, place, message).label(place, wrong)
}
