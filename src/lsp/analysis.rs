//! What one open text says by itself: its definitions, the names in them, and
//! what is wrong with the texts. No source of metrics is asked here.

use std::path::PathBuf;
use std::sync::Arc;

use lsp_types::Uri;

use super::files::{OpenTexts, beside, path_of, uri_of};
use super::positions::{Encoding, LineIndex};
use crate::bind::references;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Registered, Registry};
use crate::text::{SourceId, SourceMap, Span};

/// A text at a moment, with the definitions of the files beside it.
#[derive(Debug)]
pub struct Analysis {
    /// The text.
    pub uri: Uri,
    /// The editor's number of the text's state.
    pub version: i32,
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// The text among them.
    pub own: SourceId,
    /// The lines of the text.
    pub lines: LineIndex,
    /// The text's definitions, and those of the files beside it that have other names.
    pub registry: Registry,
    /// What is wrong with the text.
    pub diagnostics: Diagnostics,
    /// The files beside it.
    pub others: Vec<(SourceId, PathBuf)>,
}

/// A place where a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Where.
    pub span: Span,
    /// True where the name is defined.
    pub is_definition: bool,
}

impl Analysis {
    /// Reads a text that is open, and the definition files beside it.
    pub fn new(
        uri: &Uri,
        open: &OpenTexts,
        language: Language,
        encoding: Encoding,
    ) -> Option<Analysis> {
        let opened = open.get(uri)?;
        let mut sources = SourceMap::default();
        let mut registry = Registry::new(language);
        let mut diagnostics = Diagnostics::default();
        let path = path_of(uri);
        let name = path.as_deref().map_or(uri.as_str().into(), |path| path.to_string_lossy());
        let own = sources.add(&*name, Arc::clone(&opened.text));
        registry.add_text(own, &sources, &mut diagnostics);
        let mut others = Vec::new();
        for file in path.as_deref().map(beside).unwrap_or_default() {
            let Some(text) = open.read(&file) else { continue };
            let id = sources.add(&*file.to_string_lossy(), text);
            // What is wrong there is shown where it is opened; names that both
            // define are this text's.
            registry.add_text(id, &sources, &mut Diagnostics::default());
            others.push((id, file));
        }
        let lines = LineIndex::new(&opened.text, encoding);
        Some(Analysis {
            uri: uri.clone(),
            version: opened.version,
            sources,
            own,
            lines,
            registry,
            diagnostics,
            others,
        })
    }

    /// The text.
    pub fn text(&self) -> &Arc<str> {
        &self.sources.get(self.own).text
    }

    /// The definitions of the text itself.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.registry.definitions().iter().filter(|one| one.name_span.source == self.own)
    }

    /// The definition whose name or expression is at an offset of the text.
    pub fn definition_at(&self, offset: usize) -> Option<&Arc<Registered>> {
        self.definitions().find(|one| {
            let whole = whole(one);
            (whole.start as usize..=whole.end as usize).contains(&offset)
        })
    }

    /// The name of a metric at an offset of the text, and where it is written.
    pub fn name_at(&self, offset: usize) -> Option<(&str, Span)> {
        let is_at = |span: Span| (span.start as usize..=span.end as usize).contains(&offset);
        let definition = self.definition_at(offset)?;
        if is_at(definition.name_span) {
            return Some((&definition.name, definition.name_span));
        }
        let found = references(&definition.expr).find(|one| is_at(one.span))?;
        Some((found.name, found.span))
    }

    /// Where a name is written in the text and the files beside it, in the order
    /// of the registry.
    pub fn mentions(&self, name: &str) -> Vec<Mention> {
        let mut found = Vec::new();
        for one in self.registry.definitions() {
            if &*one.name == name {
                found.push(Mention { span: one.name_span, is_definition: true });
            }
            let same = references(&one.expr).filter(|one| one.name == name);
            found.extend(same.map(|one| Mention { span: one.span, is_definition: false }));
        }
        found
    }

    /// The file of a text of [`Analysis::sources`].
    pub fn uri_of(&self, source: SourceId) -> Option<Uri> {
        if source == self.own {
            return Some(self.uri.clone());
        }
        let (_, path) = self.others.iter().find(|(id, _)| *id == source)?;
        uri_of(path)
    }

    /// The place of a span, of whichever text it is.
    pub fn location(&self, span: Span) -> Option<lsp_types::Location> {
        let text = &self.sources.get(span.source).text;
        let bytes = span.start as usize..span.end as usize;
        let range = match span.source == self.own {
            true => self.lines.range(text, bytes),
            false => LineIndex::new(text, self.lines.encoding()).range(text, bytes),
        };
        Some(lsp_types::Location { uri: self.uri_of(span.source)?, range })
    }

    /// The range of a span of the text itself.
    pub fn range(&self, span: Span) -> lsp_types::Range {
        self.lines.range(self.text(), span.start as usize..span.end as usize)
    }
}

/// A definition from the first byte of its name to the last one of its
/// expression.
pub fn whole(definition: &Registered) -> Span {
    let nodes = definition.expr.nodes().map(|(_, node)| node.span);
    nodes.fold(definition.name_span, Span::to)
}
