//! Comments that silence a lint.
//!
//! `# pmderive: allow PMD0301, PMD0305` stands above a definition, perhaps with
//! other comments between them, and silences these warnings about it. A reason may
//! follow, behind `because` or `:`. (The language has no comments behind
//! definitions.) A comment that silences nothing causes a warning itself, so none
//! is left behind.

use std::ops::Range;

use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::dialect::Language;
use crate::syntax::{OwnComment, Request, own_comments};
use crate::text::{SourceId, SourceMap, Span};

/// A code that a comment names.
struct Allowed {
    code: Code,
    /// The place that names it.
    span: Span,
    /// The whole comment, line end included.
    comment: Span,
    /// Number of codes that the comment names.
    count: usize,
    /// The bytes of the definition below it.
    range: Range<usize>,
    is_used: bool,
}

/// Removes the diagnostics that comments in these texts allow. `linted` are the names of
/// definitions that lints have seen whole, with the metadata of a source. Comments above
/// them that allow nothing are reported.
pub fn apply_allowances(
    texts: impl IntoIterator<Item = SourceId>,
    language: Language,
    linted: &[Span],
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    let mut found = Diagnostics::default();
    let mut allowed: Vec<Allowed> = Vec::new();
    for text in texts {
        allowed.extend(allowances(text, language, sources, &mut found));
    }
    allowed.sort_by_key(Allowed::start);
    diagnostics.retain(|one| {
        let mut is_allowed = false;
        if one.severity == Severity::Warning {
            for allowed in above(&mut allowed, one.span).iter_mut() {
                if allowed.code == one.code {
                    allowed.is_used = true;
                    is_allowed = true;
                }
            }
        }
        !is_allowed
    });
    let mut linted: Vec<(SourceId, usize)> = linted.iter().map(start_of).collect();
    linted.sort_unstable();
    let is_linted = |one: &Allowed| {
        let (source, range) = (one.span.source, &one.range);
        let first = linted.partition_point(|name| *name < (source, range.start));
        linted.get(first).is_some_and(|name| *name < (source, range.end))
    };
    let idle = allowed.iter().filter(|one| !one.is_used && !depends_on_host(one.code));
    found.extend(idle.filter(|one| is_linted(one)).map(unused));
    diagnostics.extend(found);
}

impl Allowed {
    /// The text and the first byte of the definition.
    fn start(&self) -> (SourceId, usize) {
        (self.span.source, self.range.start)
    }
}

/// The text of a span and its first byte there.
fn start_of(span: &Span) -> (SourceId, usize) {
    (span.source, span.start as usize)
}

/// The allowances above the definition that a span begins in. All are sorted by definition,
/// and definitions do not overlap.
fn above(allowed: &mut [Allowed], span: Span) -> &mut [Allowed] {
    let at = start_of(&span);
    let end = allowed.partition_point(|one| one.start() <= at);
    let Some(last) = end.checked_sub(1).map(|last| &allowed[last]) else { return &mut [] };
    let start = last.start();
    if start.0 != at.0 || !last.range.contains(&at.1) {
        return &mut [];
    }
    let first = allowed.partition_point(|one| one.start() < start);
    &mut allowed[first..end]
}

/// True for warnings that depend on the host although the definition is the same and right
/// on all, or that depend on a command's arguments.
fn depends_on_host(code: Code) -> bool {
    matches!(
        code,
        Code::NoSuchInstance
            | Code::HiddenByMetric
            | Code::UnknownMetric
            | Code::NoDescriptor
            | Code::UnusedDefinition
            | Code::NeedlessOperation
    )
}

/// An allowance above a definition that needs none. Another host may need it.
fn unused(one: &Allowed) -> Diagnostic {
    let message = format!("nothing here needs {} to be allowed", one.code);
    let diagnostic = Diagnostic::warning(Code::IdleComment, one.span, message)
        .label(one.span, "is not warned of in the line below");
    match one.count {
        1 => diagnostic.help("remove the comment").guess(one.comment, ""),
        _ => diagnostic.help("remove the code"),
    }
}

/// The allowances in the comments of a text. Mistakes in them are reported.
fn allowances(
    source: SourceId,
    language: Language,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Allowed> {
    let text = &sources.get(source).text;
    let mut all = Vec::new();
    for comment in own_comments(text, language) {
        match comment.request {
            Request::Allow => {
                let codes = allowed(source, text, &comment, diagnostics);
                // A comment without codes is reported.
                diagnostics.extend(comment.warning(source).filter(|_| !codes.is_empty()));
                all.extend(codes);
            }
            _ => diagnostics.extend(comment.warning(source)),
        }
    }
    all
}

/// The codes that a comment allows.
fn allowed(
    source: SourceId,
    text: &str,
    comment: &OwnComment,
    diagnostics: &mut Diagnostics,
) -> Vec<Allowed> {
    let span = |range: Range<usize>| Span::within(source, text, range);
    let words = text.get(comment.words.clone()).unwrap_or_default();
    let codes = words.strip_prefix("allow").unwrap_or_default();
    let mut allowed = Vec::new();
    let mut start = comment.words.end - codes.len();
    let codes = without_reason(codes);
    let count = codes.split(',').count();
    for item in codes.split(',') {
        let at = start + item.len() - item.trim_start().len();
        let place = at..at + item.trim().len();
        start += item.len() + 1;
        match item.trim().parse::<Code>() {
            Ok(code) => allowed.push(Allowed {
                code,
                span: span(place),
                comment: span(comment.line.clone()),
                count,
                range: comment.below.clone().unwrap_or_default(),
                is_used: false,
            }),
            Err(error) => {
                let warning =
                    Diagnostic::warning(Code::IdleComment, span(place), error.to_string());
                let help =
                    "such a comment is written `# pmderive: allow PMD0301, PMD0305 because ...`";
                diagnostics.push(warning.help(help));
            }
        }
    }
    allowed
}

/// The codes without the reason behind them.
fn without_reason(codes: &str) -> &str {
    const BECAUSE: &str = " because ";
    let ends = [codes.find(BECAUSE), codes.find(':').filter(|at| *at > 0)];
    let end = ends.into_iter().flatten().min().unwrap_or(codes.len());
    &codes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    fn left(text: &str, warnings: &[(&str, Code)]) -> Vec<String> {
        let mut sources = SourceMap::default();
        let source = sources.add("x.conf", text);
        let mut diagnostics = Diagnostics::default();
        for (word, code) in warnings {
            let at = u32::try_from(text.find(word).expect("a word of the text")).expect("small");
            diagnostics.push(Diagnostic::warning(*code, Span::new(source, at, at + 1), "warned"));
        }
        let starts = text.match_indices('\n').map(|(end, _)| end + 1).chain([0]);
        let names = starts.filter(|start| text[*start..].starts_with(['a', 'c']));
        let span = |at: usize| Span::new(source, at as u32, at as u32 + 1);
        let names: Vec<Span> = names.map(span).collect();
        apply_allowances([source], Dialect::Fixed.into(), &names, &sources, &mut diagnostics);
        let shown = |one: &Diagnostic| format!("{} {}", one.code, sources.slice(one.span));
        diagnostics.iter().map(shown).collect()
    }

    #[test]
    fn comments_allow_what_is_below_them() {
        let one = Code::GaugeDelta;
        assert!(left("# pmderive: allow PMD0301\na = here\n", &[("here", one)]).is_empty());
        for reason in [" because it is a gauge", ": it is a gauge, really", " : x", " because a: b"]
        {
            let text = format!("# pmderive: allow PMD0301{reason}\na = here\n");
            assert!(left(&text, &[("here", one)]).is_empty(), "{text}");
            let text = format!("# pmderive: allow PMD0305, 301{reason}\na = here\n");
            assert_eq!(left(&text, &[("here", one)]), ["PMD0320 PMD0305"], "{text}");
        }
        let text = "#pmderive: allow PMD0305, 301\n# more\na = b + \\\n here\n";
        assert_eq!(left(text, &[("here", one)]), ["PMD0320 PMD0305"]);
        let text = "# pmderive: allow PMD0301\n\na = here\n";
        assert_eq!(left(text, &[("here", one)]), ["PMD0301 h", "PMD0320 allow PMD0301"]);
        // Another host may need it.
        assert!(left("# pmderive: allow PMD0323\na = b\n", &[]).is_empty());
        // This line was not looked at.
        assert!(left("# pmderive: allow PMD0301\nb = a +\n", &[]).is_empty());
        let text = "# pmderive: allow PMD0301\na = b\nc = here\n";
        assert_eq!(left(text, &[("here", one)]), ["PMD0301 h", "PMD0320 PMD0301"]);
    }

    #[test]
    fn what_such_a_comment_cannot_say() {
        assert_eq!(left("# pmderive: allow nothing\na = b\n", &[]), ["PMD0320 nothing"]);
        assert_eq!(left("# pmderive: deny PMD0301\n", &[]), ["PMD0320 deny PMD0301"]);
        assert_eq!(left("# pmderive: allow\n", &[]), ["PMD0320 "]);
        assert_eq!(left("# pmderive: allow because of x\n", &[]), ["PMD0320 "]);
        for export in ["# pmderive: export\na = b\n", "#pmderive:export\n# note\na = b\n"] {
            assert!(left(export, &[]).is_empty(), "{export}");
        }
        for export in ["# pmderive: export\n\na = b\n", "a = b\n# pmderive: export"] {
            assert_eq!(left(export, &[]), ["PMD0320 export"], "{export}");
        }
        assert_eq!(left("# pmderive: export\na(oneline) = b\n", &[]), ["PMD0320 export"]);
        assert_eq!(left("# pmderive: exprot\na = b\n", &[]), ["PMD0320 exprot"]);
        assert!(left("# about pmderive: a comment\n", &[]).is_empty());
    }
}
