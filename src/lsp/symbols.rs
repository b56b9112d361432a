//! Finds definitions by a part of their names, in all files of a project.

use std::collections::HashSet;

use lsp_types::{Location, SymbolInformation, SymbolKind, Uri};

use super::analysis::Analysis;
use super::files::{key, uri_of};
use super::matching::matched;
use super::tree::Other;
use super::unregistered_names::UnregisteredName;
use crate::text::Span;

/// Definitions that are found, at most. Further typing leaves fewer.
const MAX_FOUND: usize = 1_000;

/// A search for definitions by a typed text.
pub struct Search<'q> {
    query: &'q str,
    /// Files that were searched, by their keys.
    seen: HashSet<String>,
    found: Vec<(u8, SymbolInformation)>,
}

impl<'q> Search<'q> {
    /// Starts a search for a part of a name.
    pub fn new(query: &'q str) -> Search<'q> {
        Search { query, seen: HashSet::new(), found: Vec::new() }
    }

    /// Searches an open text.
    pub fn add_open(&mut self, analysis: &Analysis) {
        let registered = analysis.definitions().map(|one| (&*one.name, one.name_span));
        let names = registered.chain(analysis.refused_here().map(name_of));
        self.add(&analysis.uri, names, |span| analysis.range(span));
    }

    /// Searches a file, unless that was done before.
    pub fn add_file(&mut self, Other { path, parsed, .. }: &Other) {
        let Some(uri) = uri_of(path) else { return };
        let registered = parsed.registry.definitions().iter();
        let registered = registered.map(|one| (&*one.name, one.name_span));
        let refused = parsed.unregistered.iter().filter(|one| one.definition.is_some());
        self.add(&uri, registered.chain(refused.map(name_of)), |span| {
            parsed.lines.range(&parsed.text.text, span.start as usize..span.end as usize)
        });
    }

    fn add<'n>(
        &mut self,
        uri: &Uri,
        names: impl Iterator<Item = (&'n str, Span)>,
        range: impl Fn(Span) -> lsp_types::Range,
    ) {
        if !self.seen.insert(key(uri)) {
            return;
        }
        for (name, span) in names {
            let Some(how) = matched(name, self.query) else { continue };
            #[allow(deprecated, reason = "the type has no other way to be made")]
            let symbol = SymbolInformation {
                name: name.to_owned(),
                kind: SymbolKind::VARIABLE,
                tags: None,
                deprecated: None,
                location: Location { uri: uri.clone(), range: range(span) },
                container_name: None,
            };
            self.found.push((how.rank, symbol));
        }
    }

    /// The best results, by name, then by file.
    pub fn found(mut self) -> Vec<SymbolInformation> {
        self.found.sort_by(|(rank, one), (other_rank, other)| {
            let (uri, other_uri) = (one.location.uri.as_str(), other.location.uri.as_str());
            (rank, &one.name, uri).cmp(&(other_rank, &other.name, other_uri))
        });
        self.found.into_iter().map(|(_, symbol)| symbol).take(MAX_FOUND).collect()
    }
}

fn name_of(one: &UnregisteredName) -> (&str, Span) {
    (&one.name, one.span)
}
