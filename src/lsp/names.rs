//! Names in a project: the outline of a text, the definition of a name, all its places, and
//! renaming.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsp_types::{
    DocumentSymbol, DocumentSymbolResponse, Location, SymbolKind, TextEdit, Uri, WorkspaceEdit,
};
use pmderive_runtime::bounded;

use super::analysis::{Analysis, whole};
use super::tree::{MAX_BYTES, MAX_LOOKED_AT, Other, Others, projects_of};
use super::unregistered_names::UnregisteredName;
use crate::escape;
use crate::syntax::{Token, TokenAt, name_mistake, tokens};
use crate::text::Span;

/// Longest part of an expression in the outline, in characters.
const MAX_DETAIL: usize = 100;

/// The definitions of a text, in order.
pub fn symbols(analysis: &Analysis) -> DocumentSymbolResponse {
    let registered =
        analysis.definitions().map(|one| (whole(one), one.name_span, one.name.to_string()));
    let refused = analysis.refused_here().filter_map(|one| {
        let UnregisteredName { name, span, definition } = one;
        definition.map(|whole| (whole, *span, name.to_string()))
    });
    let mut all: Vec<(Span, Span, String)> = registered.chain(refused).collect();
    all.sort_by_key(|(_, name, _)| name.start);
    let symbol = |(place, name_span, name)| {
        let expression = analysis.sources.slice(place).split_once('=').map(|(_, text)| text.trim());
        #[allow(deprecated, reason = "the type has no other way to be made")]
        DocumentSymbol {
            name,
            detail: expression.map(|text| beginning(text).to_owned()),
            kind: SymbolKind::VARIABLE,
            tags: None,
            deprecated: None,
            range: analysis.range(place),
            selection_range: analysis.range(name_span),
            children: None,
        }
    };
    DocumentSymbolResponse::Nested(all.into_iter().map(symbol).collect())
}

/// The beginning of an expression; most are short enough to be whole.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(MAX_DETAIL).map_or(text, |(at, _)| &text[..at])
}

/// The location at which the name at an offset is defined.
pub fn definition(analysis: &Analysis, offset: usize) -> Option<Location> {
    let (name, _) = analysis.name_at(offset)?;
    analysis.location(analysis.defined_at(name)?)
}

/// All places of the name at an offset: in the text, in the other files, and in those `around`
/// the project.
pub fn mentions(
    analysis: &Analysis,
    offset: usize,
    with_definition: bool,
    around: &Others,
) -> Vec<Location> {
    let Some((name, _)) = analysis.name_at(offset) else { return Vec::new() };
    let mut places = places(analysis, name, around);
    places.retain(|(_, is_definition)| with_definition || !is_definition);
    places.into_iter().map(|(place, _)| place).collect()
}

/// The places of a name, each with true for its definition. They are in the project, and in
/// files around it that use the project's definition.
fn places(analysis: &Analysis, name: &str, around: &Others) -> Vec<(Location, bool)> {
    let found = analysis.mentions(name);
    let (here, others) = found.split_at(found.partition_point(|one| analysis.has(one.span)));
    // A line may have thousands of them.
    let ranges = analysis.ranges(here.iter().map(|one| one.span));
    let here_at = ranges
        .zip(here)
        .map(|(range, one)| (Location { uri: analysis.uri.clone(), range }, one.is_definition));
    let of_others =
        others.iter().filter_map(|one| Some((analysis.location(one.span)?, one.is_definition)));
    let mut places: Vec<(Location, bool)> = here_at.chain(of_others).collect();
    let own = analysis.settings.file.as_deref().and_then(Path::parent);
    let Some(own) = own.filter(|_| analysis.defined_at(name).is_some()) else { return places };
    let elsewhere: Vec<&Path> = defining(name, around).map(|one| &*one.path).collect();
    for file in &around.files {
        // Another project may have its own definition with this name.
        let reads_own = |project: PathBuf| match own.starts_with(&project) {
            true => Some(true),
            false => elsewhere.iter().any(|file| file.starts_with(&project)).then_some(false),
        };
        let mut projects = projects_of(file.path.parent().unwrap_or(own));
        if projects.find_map(reads_own) != Some(true) {
            continue;
        }
        let mut found = Vec::new();
        file.add_mentions(name, &mut found);
        let found = found.into_iter();
        places.extend(found.filter_map(|one| Some((file.location(one.span)?, one.is_definition))));
    }
    places
}

/// The files that define a name.
fn defining<'f>(name: &'f str, files: &'f Others) -> impl Iterator<Item = &'f Other> {
    files.files.iter().filter(move |file| {
        let mut found = Vec::new();
        file.add_mentions(name, &mut found);
        found.iter().any(|one| one.is_definition)
    })
}

/// Renames the definition at an offset in all files of the project. It does so as well in files
/// `around` it that use the definition. `metrics` are the source's names, ascending by bytes;
/// `None` until the source answers.
///
/// # Errors
/// The definition cannot be renamed; the text says why.
pub fn rename(
    analysis: &Analysis,
    offset: usize,
    new_name: &str,
    metrics: Option<&[String]>,
    around: &Others,
) -> Result<WorkspaceEdit, String> {
    let Some((name, _)) = analysis.name_at(offset) else {
        return Err("there is no name of a metric here".to_owned());
    };
    if analysis.defined_at(name).is_none() {
        return Err(format!("`{name}` is not defined in these files, so it cannot be renamed"));
    }
    if let Some(mistake) = name_mistake(new_name) {
        return Err(format!("`{new_name}` is no name of a metric: {}", mistake.rule));
    }
    if !matches!(
        &tokens(new_name, analysis.settings.language)[..],
        [TokenAt { token: Token::Name(_), .. }]
    ) {
        return Err(format!("`{new_name}` is a reserved word"));
    }
    let mut found = analysis.mentions(new_name);
    around.files.iter().for_each(|file| file.add_mentions(new_name, &mut found));
    if new_name != name && found.iter().any(|one| one.is_definition) {
        return Err(format!("`{new_name}` is defined already"));
    }
    let Some(metrics) = metrics else {
        return Err(format!(
            "the source has not yet sent the names of its metrics, and `{new_name}` may be one of \
             them; try again in a moment"
        ));
    };
    if new_name != name && metrics.binary_search_by(|one| (**one).cmp(new_name)).is_ok() {
        return Err(format!("`{new_name}` is a metric of the source"));
    }
    // Expressions that read a metric of this name would read the definition instead.
    if new_name != name && !found.is_empty() {
        return Err(format!("`{new_name}` is read already"));
    }
    if let Some(folder) = analysis.too_large.as_ref().or(around.too_large.as_ref()) {
        return Err(format!("`{name}` may be in files that were not read: {}", too_large(folder)));
    }
    let mut unread = analysis.unread.iter().chain(&around.unread);
    if let Some(file) = unread.find(|file| may_mention(file, name)) {
        let file = escape::path(file);
        return Err(format!("{file} is too long or no text, and may mention `{name}`"));
    }
    let mut changes: BTreeMap<String, (Uri, Vec<TextEdit>)> = BTreeMap::new();
    for (Location { uri, range }, _) in places(analysis, name, around) {
        let key = uri.as_str().to_owned();
        let edit = TextEdit { range, new_text: new_name.to_owned() };
        changes.entry(key).or_insert_with(|| (uri, Vec::new())).1.push(edit);
    }
    let changes = Some(changes.into_values().collect());
    Ok(WorkspaceEdit { changes, ..WorkspaceEdit::default() })
}

/// The message about a folder with too many files.
pub fn too_large(folder: &Path) -> String {
    let folder = escape::path(&folder);
    format!(
        "of the files and folders below {folder} only {MAX_LOOKED_AT} are looked at; a \
         `pmderive.toml` or an open folder further below has fewer"
    )
}

/// The message about a file that is too long, alone or with others.
pub fn too_long(file: &Path) -> String {
    let file = escape::path(&file);
    format!(
        "{file} is not read: files that are not open here may have 1 MiB each, and 64 MiB together"
    )
}

/// True for a file that contains a name, and for one that is unreadable or too long.
fn may_mention(file: &Path, name: &str) -> bool {
    let has = |bytes: Vec<u8>| bytes.windows(name.len()).any(|one| one == name.as_bytes());
    bounded::read_file(file, MAX_BYTES).map_or(true, has)
}
