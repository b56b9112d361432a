//! Definitions by a part of their names, in all files of a project.

use std::collections::HashSet;

use lsp_types::{Location, SymbolInformation, SymbolKind, Uri};

use super::analysis::Analysis;
use super::files::{key, uri_of};
use super::matching::matched;
use super::tree::Other;
use super::unregistered_names::Unregistered;
use crate::text::Span;

/// Most that is found; typing on narrows it down.
const MAX_FOUND: usize = 1_000;

/// Definitions that are meant by what was typed.
pub struct Search<'q> {
    query: &'q str,
    /// Files that were looked at, by their keys.
    seen: HashSet<String>,
    found: Vec<(u8, SymbolInformation)>,
}

impl<'q> Search<'q> {
    /// Looks for what is meant by a part of a name.
    pub fn new(query: &'q str) -> Search<'q> {
        Search { query, seen: HashSet::new(), found: Vec::new() }
    }

    /// Looks in a text that is open.
    pub fn add_open(&mut self, analysis: &Analysis) {
        let registered = analysis.definitions().map(|one| (&*one.name, one.name_span));
        let names = registered.chain(analysis.refused_here().map(name_of));
        self.add(&analysis.uri, names, |span| analysis.range(span));
    }

    /// Looks in a file, unless it is known already.
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

    /// The best of what was found, by name, then by file.
    pub fn found(mut self) -> Vec<SymbolInformation> {
        self.found.sort_by(|(rank, one), (other_rank, other)| {
            let (uri, other_uri) = (one.location.uri.as_str(), other.location.uri.as_str());
            (rank, &one.name, uri).cmp(&(other_rank, &other.name, other_uri))
        });
        self.found.into_iter().map(|(_, symbol)| symbol).take(MAX_FOUND).collect()
    }
}

fn name_of(one: &Unregistered) -> (&str, Span) {
    (&one.name, one.span)
}
