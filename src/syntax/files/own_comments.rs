//! Comments for pmderive about the definition below them: `# pmderive: allow
//! PMD0301` and `# pmderive: export`. Other comments may stand in between. A blank line separates a
//! comment from the text below.

use std::ops::Range;

use crate::diag::{Code, Diagnostic};
use crate::dialect::Language;
use crate::text::{SourceId, Span, offset};

use super::line_form::LineForm;
use super::outline::outline;

/// The beginning of such a comment, behind the `#`.
const MARK: &str = "pmderive:";

/// The request of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Not to warn of the codes behind the word.
    Allow,
    /// To give the definition to the sinks of `serve`.
    Export,
    /// A request that is not understood.
    Unknown,
}

/// A comment for pmderive. Ranges are bytes of the text.
#[derive(Debug)]
pub(crate) struct OwnComment {
    /// Its request.
    pub request: Request,
    /// The whole line, line end included.
    pub line: Range<usize>,
    /// The text behind the colon.
    pub words: Range<usize>,
    /// The line below it. For an export, this is a definition, right or wrong.
    pub below: Option<Range<usize>>,
}

/// The comments of a text for pmderive.
pub(crate) fn own_comments(text: &str, language: Language) -> Vec<OwnComment> {
    let mut all = Vec::new();
    // Outlining reads the whole text, and most have no such comments.
    if !text.contains(MARK) {
        return all;
    }
    let mut waiting = 0;
    for line in outline(text, language) {
        match line.form {
            LineForm::Comment => all.extend(own_comment(text, line.range)),
            LineForm::Blank => waiting = all.len(),
            form => {
                let is_text = matches!(form, LineForm::Text { .. });
                for one in all.get_mut(waiting..).unwrap_or_default() {
                    one.below =
                        (!is_text || one.request != Request::Export).then(|| line.range.clone());
                }
                waiting = all.len();
            }
        }
    }
    all
}

fn own_comment(text: &str, line: Range<usize>) -> Option<OwnComment> {
    let whole = text.get(line.clone())?.trim_end();
    let words = whole.trim_start_matches('#').trim_start().strip_prefix(MARK)?.trim_start();
    let is_allow = |codes: &str| !codes.starts_with(char::is_alphanumeric);
    let request = match words.strip_prefix("allow") {
        Some(codes) if is_allow(codes) => Request::Allow,
        None if words == "export" => Request::Export,
        _ => Request::Unknown,
    };
    let end = line.start + whole.len();
    Some(OwnComment { request, line, words: end - words.len()..end, below: None })
}

impl OwnComment {
    /// A warning, if the comment does nothing: it is not understood, or marks no
    /// definition.
    pub fn warning(&self, source: SourceId) -> Option<Diagnostic> {
        let (message, help) = match self.request {
            Request::Unknown => (
                "this comment says nothing that is understood",
                "such a comment is written `# pmderive: allow PMD0301, PMD0305 because ...` or \
                 `# pmderive: export`",
            ),
            Request::Allow if self.below.is_none() => (
                "this comment allows nothing",
                "write it above a definition, without a blank line in between",
            ),
            Request::Export if self.below.is_none() => (
                "this comment exports nothing",
                "write it above a definition, without a blank line in between",
            ),
            _ => return None,
        };
        let words = Span::new(source, offset(self.words.start), offset(self.words.end));
        Some(Diagnostic::warning(Code::IdleComment, words, message).help(help))
    }
}
