//! What one open text says by itself: its definitions, the names in them, and
//! what is wrong with the texts. No source of metrics is asked here.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lsp_types::Uri;

use super::files::{OpenTexts, path_of};
use super::positions::{Encoding, LineIndex};
use super::settings::Settings;
use super::text_cache::Before;
use super::tree::{self, Other, Tree};
use super::unregistered_names::{Unregistered, unregistered};
use crate::bind::references;
use crate::diag::Diagnostics;
use crate::engine::{Registered, Registry};
use crate::syntax::ast::NodeKind;
use crate::text::{SourceId, SourceMap, Span};

/// A text at a moment, with the definitions of the other files of its project.
#[derive(Debug)]
pub struct Analysis {
    /// The text.
    pub uri: Uri,
    /// The editor's number of the text's state.
    pub version: i32,
    /// What its folder says.
    pub settings: Settings,
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// The text among them.
    pub own: SourceId,
    /// The lines of the text.
    pub lines: LineIndex,
    /// The text's definitions, and those of other files that have other names.
    pub registry: Registry,
    /// What is wrong with the text.
    pub diagnostics: Diagnostics,
    /// The other files.
    pub others: Vec<Other>,
    /// Those that cannot be read as text.
    pub unread: Vec<PathBuf>,
    /// The folder of the project, if it has more files than are looked at.
    pub too_large: Option<PathBuf>,
    /// True if the text's definitions are over the fleet.
    pub is_over_fleet: bool,
    /// What is over the fleet, if the text's definitions are.
    #[cfg(feature = "fleet")]
    pub over_fleet: Option<OverFleet>,
    /// The names in lines of the text that the registry has nothing of.
    unregistered: Vec<Unregistered>,
    /// Answers that need all of the text, once somebody asked.
    pub answers: Answers,
}

/// Answers that need all of a text, as they are written. They are computed once.
#[derive(Debug, Default)]
pub struct Answers {
    /// The outline.
    pub symbols: OnceLock<Arc<str>>,
    /// What each word is.
    pub tokens: OnceLock<Arc<str>>,
    /// The edits that bring the text into its usual form.
    pub format: OnceLock<Arc<str>>,
}

/// Definitions over the fleet beside those of its hosts.
#[cfg(feature = "fleet")]
#[derive(Debug)]
pub struct OverFleet {
    /// The text's definitions.
    pub definitions: Arc<crate::fleet::aggregates::FleetDefinitions>,
    /// Those of hosts.
    pub hosts: Registry,
    /// Hosts may have metrics that no definition names.
    pub is_open: bool,
}

/// A place where a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Where.
    pub span: Span,
    /// True where the name is defined.
    pub is_definition: bool,
}

/// The other files of a project; none for a text that is no file.
pub type Others<'t> = (&'t mut Tree, &'t [std::path::PathBuf]);

impl Analysis {
    /// Reads a text that is open, and the other definition files of its project. Of
    /// what `before` has of the text, nothing is read again.
    pub fn new(
        uri: &Uri,
        open: &OpenTexts,
        settings: Settings,
        (tree, folders): Others<'_>,
        encoding: Encoding,
        before: &mut Before,
    ) -> Option<Analysis> {
        before.use_language(settings.language);
        let opened = open.get(uri)?;
        let mut sources = SourceMap::default();
        let mut registry = Registry::new(settings.language);
        let mut diagnostics = Diagnostics::default();
        let path = path_of(uri);
        let name = path.as_deref().map_or(uri.as_str().into(), |path| path.to_string_lossy());
        let own = sources.add(&*name, Arc::clone(&opened.text));
        registry.add_text_again(own, &sources, &mut before.parsed, &mut diagnostics);
        let has_mistakes = !diagnostics.is_empty();
        let unregistered =
            unregistered(own, &opened.text, &registry, has_mistakes, &mut before.parsed);
        let others = path.as_deref().map(|path| {
            let others = tree.others(path, folders, &settings, open, encoding);
            (others, settings.is_over_fleet(path))
        });
        let (others, is_over_fleet) = others.unwrap_or_default();
        let tree::Others { files: others, unread, too_large } = others;
        for other in &others {
            sources.insert(other.parsed.id, other.parsed.text.clone());
        }
        #[cfg(feature = "fleet")]
        let over_fleet = is_over_fleet.then(|| {
            let hosts = hosts(&others, settings.language);
            let mut across = registry.clone();
            for other in others.iter().filter(|other| other.is_over_fleet) {
                across.adopt(&other.parsed.registry);
            }
            OverFleet::read(&across, hosts, &mut diagnostics)
        });
        // What is wrong there is shown where it is opened; names that both define
        // are this text's. Definitions of hosts cannot take those over the fleet.
        for other in others.iter().filter(|other| is_over_fleet || !other.is_over_fleet) {
            registry.adopt(&other.parsed.registry);
        }
        let lines = LineIndex::new(&opened.text, encoding);
        before.parsed.end_reading();
        Some(Analysis {
            uri: uri.clone(),
            version: opened.version,
            settings,
            sources,
            own,
            lines,
            registry,
            diagnostics,
            others,
            unread,
            too_large,
            is_over_fleet,
            #[cfg(feature = "fleet")]
            over_fleet,
            unregistered,
            answers: Answers::default(),
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

    /// A definition as it is evaluated: over the fleet, aggregates are its metrics.
    pub fn evaluated<'a>(&'a self, definition: &'a Registered) -> &'a Registered {
        #[cfg(feature = "fleet")]
        if let Some(over_fleet) = &self.over_fleet {
            return over_fleet.definitions.named(&definition.name).map_or(definition, |one| &**one);
        }
        definition
    }

    /// The name of a metric at an offset of the text, and where it is written.
    pub fn name_at(&self, offset: usize) -> Option<(&str, Span)> {
        let is_at = |span: Span| (span.start as usize..=span.end as usize).contains(&offset);
        let unregistered = self.unregistered.iter().find(|one| is_at(one.span));
        if let Some(Unregistered { name, span, .. }) = unregistered {
            return Some((name, *span));
        }
        let definition = self.definition_at(offset)?;
        if is_at(definition.name_span) {
            return Some((&definition.name, definition.name_span));
        }
        let found = references(&definition.expr).find(|one| is_at(one.span))?;
        Some((found.name, found.span))
    }

    /// Where a name is written in the text and the other files, one file after the
    /// other.
    pub fn mentions(&self, name: &str) -> Vec<Mention> {
        let mut found = Vec::new();
        add_mentions(name, self.definitions(), &self.unregistered, &mut found);
        self.others.iter().for_each(|other| other.add_mentions(name, &mut found));
        found
    }

    /// Where a name is defined, also if the definition has a mistake.
    pub fn defined_at(&self, name: &str) -> Option<Span> {
        let registered = self.registry.get(name).map(|one| one.name_span);
        registered.or_else(|| self.refused().find(|one| &*one.name == name).map(|one| one.span))
    }

    /// The definitions of the text itself that the registry does not have.
    pub fn refused_here(&self) -> impl Iterator<Item = &Unregistered> {
        self.unregistered.iter().filter(|one| one.definition.is_some())
    }

    /// The definitions that the registry does not have, of all files.
    pub fn refused(&self) -> impl Iterator<Item = &Unregistered> {
        let others = self.others.iter().flat_map(|other| &other.parsed.unregistered);
        self.refused_here().chain(others.filter(|one| one.definition.is_some()))
    }

    /// The place of a span, of whichever text it is.
    pub fn location(&self, span: Span) -> Option<lsp_types::Location> {
        if span.source == self.own {
            return Some(lsp_types::Location { uri: self.uri.clone(), range: self.range(span) });
        }
        self.others.iter().find(|other| other.parsed.id == span.source)?.location(span)
    }

    /// Names of labels by which definitions of the project take hosts together.
    pub fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        let others = self.others.iter().flat_map(|other| other.parsed.registry.definitions());
        for one in self.definitions().chain(others) {
            for (_, node) in one.expr.nodes() {
                if let NodeKind::Grouped { labels: of_node, .. } = &node.kind {
                    labels.extend(of_node.iter().map(|label| label.value.to_string()));
                }
            }
        }
        labels.extend(["instance", "job"].map(str::to_owned));
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// The range of a span of the text itself.
    pub fn range(&self, span: Span) -> lsp_types::Range {
        self.lines.range(self.text(), span.start as usize..span.end as usize)
    }
}

/// The places of a name in one file, in their order.
pub fn add_mentions<'d>(
    name: &str,
    definitions: impl Iterator<Item = &'d Arc<Registered>>,
    unregistered: &[Unregistered],
    found: &mut Vec<Mention>,
) {
    let first = found.len();
    for one in definitions {
        if &*one.name == name {
            found.push(Mention { span: one.name_span, is_definition: true });
        }
        let same = references(&one.expr).filter(|one| one.name == name);
        found.extend(same.map(|one| Mention { span: one.span, is_definition: false }));
    }
    let unregistered = unregistered.iter().filter(|one| &*one.name == name);
    found.extend(unregistered.map(|Unregistered { span, definition, .. }| Mention {
        span: *span,
        is_definition: definition.is_some(),
    }));
    found[first..].sort_by_key(|one| one.span);
}

#[cfg(feature = "fleet")]
impl OverFleet {
    /// Reads definitions over the fleet; what is wrong with them is reported.
    fn read(registry: &Registry, hosts: Registry, diagnostics: &mut Diagnostics) -> OverFleet {
        use crate::fleet::aggregates::{FleetDefinitions, HostMetrics};
        // Without definitions of hosts nobody knows what these have.
        let is_open = hosts.definitions().is_empty();
        let metrics = HostMetrics::of_groups([&hosts]);
        let metrics = if is_open { metrics.and_others() } else { metrics };
        let definitions = FleetDefinitions::read(registry, &[], &metrics, diagnostics);
        OverFleet { definitions: Arc::new(definitions), hosts, is_open }
    }
}

/// The definitions of hosts in other files.
#[cfg(feature = "fleet")]
fn hosts(others: &[Other], language: crate::dialect::Language) -> Registry {
    let mut registry = Registry::new(language);
    for other in others.iter().filter(|other| !other.is_over_fleet) {
        registry.adopt(&other.parsed.registry);
    }
    registry
}

/// A definition from the first byte of its name to the last one of its
/// expression.
pub fn whole(definition: &Registered) -> Span {
    let nodes = definition.expr.nodes().map(|(_, node)| node.span);
    nodes.fold(definition.name_span, Span::to)
}
