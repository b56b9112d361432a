//! Applies the edits that diagnostics offer.

use crate::text::{SourceId, SourceMap};

use super::{Diagnostics, Fix};

/// A text with all edits that are certain, and how many those were. Of edits
/// that overlap the first one is applied; the others may be offered again.
/// `None` if there is none.
pub fn applied(
    diagnostics: &Diagnostics,
    source: SourceId,
    sources: &SourceMap,
) -> Option<(String, usize)> {
    let mut edits: Vec<&Fix> = diagnostics
        .iter()
        .filter_map(|one| one.fix.as_ref())
        .filter(|fix| fix.is_certain && fix.span.source == source)
        .collect();
    edits.sort_by_key(|fix| (fix.span.start, fix.span.end));
    let text = &sources.get(source).text;
    let mut out = String::with_capacity(text.len());
    let (mut end, mut count) = (0, 0);
    for fix in edits {
        let (start, stop) = (fix.span.start as usize, fix.span.end as usize);
        // Two edits of one place might say the same.
        if start < end || count > 0 && start == end {
            continue;
        }
        out.push_str(&text[end..start]);
        out.push_str(&fix.text);
        (end, count) = (stop, count + 1);
    }
    out.push_str(&text[end..]);
    (count > 0 && out != **text).then_some((out, count))
}

/// The text of a definition file with all edits that are certain.
#[cfg(test)]
pub(crate) fn mended(text: &str) -> Option<String> {
    let mut sources = SourceMap::default();
    let source = sources.add("x.conf", text);
    let mut diagnostics = Diagnostics::default();
    let dialect = crate::dialect::Dialect::Fixed;
    crate::syntax::parse_definitions(source, &sources, dialect, &mut diagnostics);
    applied(&diagnostics, source, &sources).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Code, Diagnostic};
    use crate::text::Span;

    #[test]
    fn certain_edits_that_do_not_overlap() {
        let mut sources = SourceMap::default();
        let source = sources.add("x", "0123456789");
        let mut diagnostics = Diagnostics::default();
        let at = |start, end| Span::new(source, start, end);
        let error = || Diagnostic::error(Code::UnexpectedToken, at(0, 0), "wrong");
        diagnostics.push(error().fix(at(6, 8), "b"));
        diagnostics.push(error().fix(at(1, 3), "a"));
        diagnostics.push(error().fix(at(2, 4), "not"));
        diagnostics.push(error().guess(at(9, 10), "not"));
        diagnostics.push(error());
        assert_eq!(applied(&diagnostics, source, &sources), Some(("0a345b89".to_owned(), 2)));
        assert_eq!(applied(&Diagnostics::default(), source, &sources), None);
    }
}
