//! Applies the edits that diagnostics offer.

use crate::text::{SourceId, SourceMap};

use super::{Diagnostics, Fix};

/// The certain edits of a text, in the text's order. Of overlapping edits it has the
/// first one; the others may be offered again.
pub(crate) fn certain(diagnostics: &Diagnostics, source: SourceId) -> Vec<&Fix> {
    let mut edits: Vec<&Fix> = diagnostics
        .iter()
        .filter_map(|one| one.fix.as_ref())
        .filter(|fix| fix.is_certain && fix.span.source == source)
        .collect();
    edits.sort_by_key(|fix| (fix.span.start, fix.span.end));
    let mut end = None;
    // Two edits of one place might say the same.
    edits.retain(|fix| {
        let is_apart = end.is_none_or(|end| fix.span.start > end);
        end = if is_apart { Some(fix.span.end) } else { end };
        is_apart
    });
    edits
}

/// A text with all certain edits applied, and their number. `None` if there is none.
pub fn applied(
    diagnostics: &Diagnostics,
    source: SourceId,
    sources: &SourceMap,
) -> Option<(String, usize)> {
    let edits = certain(diagnostics, source);
    let text = &sources.get(source).text;
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for fix in &edits {
        // An edit of another text fits nowhere.
        out.push_str(text.get(end..fix.span.start as usize)?);
        out.push_str(&fix.text);
        end = fix.span.end as usize;
    }
    out.push_str(text.get(end..)?);
    (out != **text).then_some((out, edits.len()))
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
