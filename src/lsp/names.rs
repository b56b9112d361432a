//! Where names are: the outline of a text, the definition of a name, all places
//! where it is written, and renaming it in a whole folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    DocumentSymbol, DocumentSymbolResponse, Location, SymbolKind, TextEdit, Uri, WorkspaceEdit,
};

use super::analysis::{Analysis, whole};
use super::files::{OpenTexts, below_like, path_of, uri_of};
use super::positions::{Encoding, LineIndex};
use crate::bind::references;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Registered, Registry};
use crate::syntax::name_mistake;
use crate::text::{SourceMap, Span};

/// The definitions of a text, in its order.
pub fn symbols(analysis: &Analysis) -> DocumentSymbolResponse {
    let symbol = |one: &Arc<Registered>| {
        let place = whole(one);
        let expression = analysis.sources.slice(place).split_once('=').map(|(_, text)| text.trim());
        #[allow(deprecated, reason = "the type has no other way to be made")]
        DocumentSymbol {
            name: one.name.to_string(),
            detail: expression.map(str::to_owned),
            kind: SymbolKind::VARIABLE,
            tags: None,
            deprecated: None,
            range: analysis.range(place),
            selection_range: analysis.range(one.name_span),
            children: None,
        }
    };
    DocumentSymbolResponse::Nested(analysis.definitions().map(symbol).collect())
}

/// Where the name at an offset is defined.
pub fn definition(analysis: &Analysis, offset: usize) -> Option<Location> {
    let (name, _) = analysis.name_at(offset)?;
    analysis.location(analysis.registry.get(name)?.name_span)
}

/// All places of the name at an offset, in the text and in the files beside it.
pub fn mentions(analysis: &Analysis, offset: usize, with_definition: bool) -> Vec<Location> {
    let Some((name, _)) = analysis.name_at(offset) else { return Vec::new() };
    let wanted = analysis.mentions(name).into_iter();
    let wanted = wanted.filter(|one| with_definition || !one.is_definition);
    wanted.filter_map(|one| analysis.location(one.span)).collect()
}

/// Renames the definition at an offset in all files with the same ending below
/// the folder that is open, or below the file's own.
///
/// # Errors
/// Words that say why it cannot be renamed.
pub fn rename(
    analysis: &Analysis,
    offset: usize,
    new_name: &str,
    folders: &[PathBuf],
    open: &OpenTexts,
    language: Language,
) -> Result<WorkspaceEdit, String> {
    let Some((name, _)) = analysis.name_at(offset) else {
        return Err("there is no name of a metric here".to_owned());
    };
    if analysis.registry.get(name).is_none() {
        return Err(format!("`{name}` is not defined in these files, so it cannot be renamed"));
    }
    if let Some(mistake) = name_mistake(new_name) {
        return Err(format!("`{new_name}` is no name of a metric: {}", mistake.rule));
    }
    if new_name != name && analysis.registry.get(new_name).is_some() {
        return Err(format!("`{new_name}` is defined already"));
    }
    let mut changes: BTreeMap<String, (Uri, Vec<TextEdit>)> = BTreeMap::new();
    let mut texts: Vec<(Uri, Arc<str>)> = vec![(analysis.uri.clone(), Arc::clone(analysis.text()))];
    if let Some(path) = path_of(&analysis.uri) {
        for file in below_like(folder_of(&path, folders), &path) {
            let Some(uri) = uri_of(&file).filter(|_| file != path) else { continue };
            texts.extend(open.read(&file).map(|text| (uri, text)));
        }
    }
    for (uri, text) in texts {
        let edits = edits_in(&text, name, new_name, language, analysis.lines.encoding());
        if !edits.is_empty() {
            changes.insert(uri.as_str().to_owned(), (uri, edits));
        }
    }
    let changes = Some(changes.into_values().collect());
    Ok(WorkspaceEdit { changes, ..WorkspaceEdit::default() })
}

/// The folder of the editor that a file is in, or else its own.
fn folder_of<'p>(path: &'p Path, folders: &'p [PathBuf]) -> &'p Path {
    let inside = folders.iter().filter(|folder| path.starts_with(folder));
    let nearest = inside.max_by_key(|folder| folder.components().count());
    nearest.map(PathBuf::as_path).or_else(|| path.parent()).unwrap_or(path)
}

/// The edits that rename a metric in one text.
fn edits_in(
    text: &Arc<str>,
    name: &str,
    new_name: &str,
    language: Language,
    encoding: Encoding,
) -> Vec<TextEdit> {
    if !text.contains(name) {
        return Vec::new();
    }
    let mut sources = SourceMap::default();
    let id = sources.add("", Arc::clone(text));
    let mut registry = Registry::new(language);
    registry.add_text(id, &sources, &mut Diagnostics::default());
    let lines = LineIndex::new(text, encoding);
    let mut spans = Vec::new();
    for one in registry.definitions() {
        spans.extend((&*one.name == name).then_some(one.name_span));
        let same = references(&one.expr).filter(|one| one.name == name);
        spans.extend(same.map(|one| one.span));
    }
    let edit = |span: Span| TextEdit {
        range: lines.range(text, span.start as usize..span.end as usize),
        new_text: new_name.to_owned(),
    };
    spans.into_iter().map(edit).collect()
}
