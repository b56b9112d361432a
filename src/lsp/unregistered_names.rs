//! Names in lines that the registry left out: in help texts, in definitions with a mistake, and
//! in those of a name that is taken. A search for a name includes them. Other modules report
//! the mistakes.

use std::ops::Range;

use crate::dialect::Language;
use crate::engine::Registry;
use crate::syntax::{
    Line, LineForm, OutlinedLine, ParsedBefore, Token, is_space, name_mistake, outline_again,
    tokens,
};
use crate::text::{SourceId, Span};

use super::positions::number;

/// A name in a line that the registry left out.
#[derive(Clone, Debug)]
pub struct UnregisteredName {
    /// The name.
    pub name: Box<str>,
    /// Its place.
    pub span: Span,
    /// The whole definition from its name on, if the line defines this name.
    pub definition: Option<Span>,
}

/// The names in lines of a text that its registry left out, in order.
pub fn unregistered(
    id: SourceId,
    text: &str,
    registry: &Registry,
    has_mistakes: bool,
    before: &mut ParsedBefore,
) -> Vec<UnregisteredName> {
    if !has_mistakes && !text.contains("oneline") && !text.contains("helptext") {
        return Vec::new();
    }
    let mut found = NameList { id, language: before.language(), names: Vec::new() };
    outline_again(text, before, |line| found.add(&line, registry));
    found.names
}

/// True if the text behind a name and `(` is any attribute with its text.
fn is_of_help_text(text: &str) -> bool {
    let Some((attribute, rest)) = text.split_once(')') else { return false };
    let rest = rest.trim_start();
    !attribute.contains('.') && rest.starts_with('=') && !rest.starts_with("==")
}

struct NameList {
    id: SourceId,
    language: Language,
    names: Vec<UnregisteredName>,
}

impl NameList {
    fn add(&mut self, OutlinedLine { line, form, .. }: &OutlinedLine<'_>, registry: &Registry) {
        match form {
            LineForm::Blank | LineForm::Comment => {}
            LineForm::Text { name, .. } => self.push(line, name.clone(), None),
            LineForm::Definition { name, .. } => {
                let span = self.span(line, name.clone());
                let first = registry.get(&line.text[name.clone()]);
                if first.is_none_or(|first| first.name_span != span) {
                    self.add_mistaken(line);
                }
            }
            LineForm::Mistake | LineForm::Unterminated => self.add_mistaken(line),
        }
    }

    /// Adds the names in a refused line, if it has the form of a definition or of a help text.
    fn add_mistaken(&mut self, line: &Line<'_>) {
        let text = &*line.text;
        let start = text.len() - text.trim_start_matches(is_space).len();
        if text[start..].starts_with('#') {
            return;
        }
        let before = text.find(['=', '(']).map(|at| (at, text[..at].trim_end_matches(is_space)));
        let named =
            before.filter(|(_, name)| name_mistake(name.get(start..).unwrap_or("")).is_none());
        match named {
            Some((at, name)) if text[at..].starts_with('=') => {
                let end = text.trim_end_matches(is_space).len();
                let whole = self.span(line, start..end);
                self.push(line, start..name.len(), Some(whole));
                self.add_uses(line, at + 1);
            }
            Some((at, name)) if is_of_help_text(&text[at + 1..]) => {
                self.push(line, start..name.len(), None);
            }
            _ => self.add_uses(line, 0),
        }
    }

    /// Adds the words behind an offset of a line that may be names of metrics.
    fn add_uses(&mut self, line: &Line<'_>, base: usize) {
        let all = tokens(&line.text[base..], self.language);
        let mut is_in_labels = false;
        for (at, one) in all.iter().enumerate() {
            let before = |back: usize| at.checked_sub(back).map(|at| all[at].token);
            let next = all.get(at + 1).map(|one| one.token);
            match one.token {
                Token::By => is_in_labels = true,
                Token::RightParen => is_in_labels = false,
                Token::Name(name) => {
                    let is_function = next == Some(Token::LeftParen) && !name.contains('.');
                    let is_value = before(1) == Some(Token::Assign)
                        && matches!(before(2), Some(Token::Keyword(_)));
                    if !is_function && !is_value && !is_in_labels {
                        self.push(line, base + one.start as usize..base + one.end as usize, None);
                    }
                }
                _ => {}
            }
        }
    }

    fn push(&mut self, line: &Line<'_>, name: Range<usize>, definition: Option<Span>) {
        let span = self.span(line, name.clone());
        self.names.push(UnregisteredName { name: line.text[name].into(), span, definition });
    }

    fn span(&self, line: &Line<'_>, range: Range<usize>) -> Span {
        let place = line.origin.span(number(range.start), number(range.end));
        Span { source: self.id, ..place }
    }
}
