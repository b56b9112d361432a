//! Analysis of one open text, without a source of metrics: its definitions, the names in them,
//! and its mistakes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lsp_types::Uri;

use super::files::{OpenTexts, path_of};
use super::positions::{Encoding, LineIndex};
use super::settings::Settings;
use super::text_cache::TextCache;
use super::tree::{self, Other, Tree};
use super::unregistered_names::{UnregisteredName, unregistered};
use crate::bind::references;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registered, Registry};
use crate::escape;
use crate::syntax::ast::NodeKind;
use crate::text::{SourceId, SourceMap, Span};

/// An open text, analysed with the definitions of the other files in its project.
#[derive(Debug)]
pub struct Analysis {
    /// The text.
    pub uri: Uri,
    /// The revision of the text.
    pub revision: u64,
    /// The settings of its folder.
    pub settings: Settings,
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// Identifier of the text among them.
    pub own: SourceId,
    /// The lines of the text.
    pub lines: LineIndex,
    /// The text's definitions, and those of other files under other names.
    pub registry: Registry,
    /// Mistakes of the text.
    pub diagnostics: Diagnostics,
    /// The other files.
    pub others: Vec<Other>,
    /// Files that cannot be read as text, or are too long.
    pub unread: Vec<PathBuf>,
    /// The first file that is too long.
    pub too_long: Option<PathBuf>,
    /// The folder of the project, if it has too many files.
    pub too_large: Option<PathBuf>,
    /// True if the text's definitions are over the fleet.
    pub is_over_fleet: bool,
    /// The definitions over the fleet, if the text has such.
    #[cfg(feature = "fleet")]
    pub over_fleet: Option<OverFleet>,
    /// The names in lines of the text that the registry left out.
    unregistered: Vec<UnregisteredName>,
    /// Answers that need the whole text, once a request needed them.
    pub answers: Answers,
}

/// Answers that need the whole text, encoded in JSON. Each is computed once.
#[derive(Debug, Default)]
pub struct Answers {
    /// The outline.
    pub symbols: OnceLock<Arc<str>>,
    /// The kind of each word.
    pub tokens: OnceLock<Arc<str>>,
    /// The edits that format the text.
    pub format: OnceLock<Arc<str>>,
}

/// Definitions over the fleet beside those of its hosts.
#[cfg(feature = "fleet")]
#[derive(Debug)]
pub struct OverFleet {
    /// The text's definitions.
    pub definitions: Arc<crate::fleet::aggregates::FleetDefinitions>,
    /// The definitions of hosts.
    pub hosts: Registry,
    /// True if hosts may have metrics that no definition names.
    pub is_open: bool,
}

/// A place of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The place.
    pub span: Span,
    /// True where the name is defined.
    pub is_definition: bool,
}

/// The other files of a project: the tree, and the open folders. `None` for a text that is no
/// file.
pub type Others<'t> = (&'t mut Tree, &'t [std::path::PathBuf]);

impl Analysis {
    /// Analyses an open text and the other definition files of its project. Unchanged parts
    /// come from the cache.
    pub fn new(
        uri: &Uri,
        open: &OpenTexts,
        settings: Settings,
        (tree, folders): Others<'_>,
        encoding: Encoding,
        before: &mut TextCache,
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
        let tree::Others { files: others, unread, too_long, too_large } = others;
        if let (Some(path), Some(_)) = (&path, &settings.file) {
            // With settings, `check` reads all files as one set of definitions.
            let earlier = others.iter().filter(|one| one.path < *path);
            let earlier = earlier.filter(|one| one.is_over_fleet == is_over_fleet);
            follow(earlier, &registry, &unregistered, &mut diagnostics);
        }
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
        // The editor shows mistakes of other files in those files. If both define a name, the
        // text's definition counts. Definitions of hosts cannot use those over the fleet.
        for other in others.iter().filter(|other| is_over_fleet || !other.is_over_fleet) {
            registry.adopt(&other.parsed.registry);
        }
        let lines = LineIndex::new(&opened.text, encoding);
        before.parsed.end_reading();
        Some(Analysis {
            uri: uri.clone(),
            revision: opened.revision,
            settings,
            sources,
            own,
            lines,
            registry,
            diagnostics,
            others,
            unread,
            too_long,
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

    /// The definition whose name or expression contains an offset of the text.
    pub fn definition_at(&self, offset: usize) -> Option<&Arc<Registered>> {
        self.definitions().find(|one| {
            let whole = whole(one);
            (whole.start as usize..=whole.end as usize).contains(&offset)
        })
    }

    /// The evaluated form of a definition. Over the fleet, aggregates are its metrics.
    pub fn evaluated<'a>(&'a self, definition: &'a Registered) -> &'a Registered {
        #[cfg(feature = "fleet")]
        if let Some(over_fleet) = &self.over_fleet {
            return over_fleet.definitions.named(&definition.name).map_or(definition, |one| &**one);
        }
        definition
    }

    /// The name of a metric at an offset of the text, and its place.
    pub fn name_at(&self, offset: usize) -> Option<(&str, Span)> {
        let is_at = |span: Span| (span.start as usize..=span.end as usize).contains(&offset);
        let unregistered = self.unregistered.iter().find(|one| is_at(one.span));
        if let Some(UnregisteredName { name, span, .. }) = unregistered {
            return Some((name, *span));
        }
        let definition = self.definition_at(offset)?;
        if is_at(definition.name_span) {
            return Some((&definition.name, definition.name_span));
        }
        let found = references(&definition.expr).find(|one| is_at(one.span))?;
        Some((found.name, found.span))
    }

    /// All places of a name in the text and the other files, file by file.
    pub fn mentions(&self, name: &str) -> Vec<Mention> {
        let mut found = Vec::new();
        add_mentions(name, self.definitions(), &self.unregistered, &mut found);
        self.others.iter().for_each(|other| other.add_mentions(name, &mut found));
        found
    }

    /// The place at which a name is defined, with or without a mistake.
    pub fn defined_at(&self, name: &str) -> Option<Span> {
        let registered = self.registry.get(name).map(|one| one.name_span);
        registered.or_else(|| self.refused().find(|one| &*one.name == name).map(|one| one.span))
    }

    /// The definitions of the text itself that the registry left out.
    pub fn refused_here(&self) -> impl Iterator<Item = &UnregisteredName> {
        self.unregistered.iter().filter(|one| one.definition.is_some())
    }

    /// The definitions of all files that the registry left out.
    pub fn refused(&self) -> impl Iterator<Item = &UnregisteredName> {
        let others = self.others.iter().flat_map(|other| &other.parsed.unregistered);
        self.refused_here().chain(others.filter(|one| one.definition.is_some()))
    }

    /// The location of a span, in any of the texts.
    pub fn location(&self, span: Span) -> Option<lsp_types::Location> {
        if span.source == self.own {
            return Some(lsp_types::Location { uri: self.uri.clone(), range: self.range(span) });
        }
        self.others.iter().find(|other| other.parsed.id == span.source)?.location(span)
    }

    /// Names of labels in a `by` of the project's definitions.
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

    /// True for a span in the text itself.
    pub fn has(&self, span: Span) -> bool {
        span.source == self.own
    }

    /// The ranges of ascending spans in the text itself.
    pub fn ranges<'a>(
        &'a self,
        ascending: impl Iterator<Item = Span> + 'a,
    ) -> impl Iterator<Item = lsp_types::Range> + 'a {
        let bytes = ascending.map(|span| span.start as usize..span.end as usize);
        self.lines.ranges(self.text(), bytes)
    }

    /// The range of a span in the text itself.
    pub fn range(&self, span: Span) -> lsp_types::Range {
        self.lines.range(self.text(), span.start as usize..span.end as usize)
    }
}

/// Adds the names that earlier files of the project define. One of them can already have a name of
/// the text, and a help text can belong to a metric there.
fn follow<'o>(
    earlier: impl Iterator<Item = &'o Other>,
    registry: &Registry,
    unregistered: &[UnregisteredName],
    diagnostics: &mut Diagnostics,
) {
    let earlier: Vec<&Other> = earlier.collect();
    let is_earlier = |name: &str| earlier.iter().any(|one| one.parsed.registry.get(name).is_some());
    let texts = unregistered.iter().filter(|one| one.definition.is_none());
    let of_earlier: HashSet<Span> =
        texts.filter(|text| is_earlier(&text.name)).map(|text| text.span).collect();
    diagnostics.retain(|one| one.code != Code::BadAttribute || !of_earlier.contains(&one.span));
    let mut taken: HashSet<Span> = HashSet::new();
    for other in earlier {
        for name in other.parsed.registry.definitions().iter().map(|one| &*one.name) {
            let Some(own) = registry.get(name) else { continue };
            if taken.insert(own.name_span) {
                let message = format!("`{name}` is defined already");
                let place = escape::path(&other.path);
                let help = format!("the first definition stays; it is in {place}");
                diagnostics.push(
                    Diagnostic::error(Code::DuplicateName, own.name_span, message)
                        .label(own.name_span, "defined again here")
                        .help(help),
                );
            }
        }
    }
}

/// The places of a name in one file, in order.
pub fn add_mentions<'d>(
    name: &str,
    definitions: impl Iterator<Item = &'d Arc<Registered>>,
    unregistered: &[UnregisteredName],
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
    found.extend(unregistered.map(|UnregisteredName { span, definition, .. }| Mention {
        span: *span,
        is_definition: definition.is_some(),
    }));
    found[first..].sort_by_key(|one| one.span);
}

#[cfg(feature = "fleet")]
impl OverFleet {
    /// Reads definitions over the fleet, and reports their mistakes.
    fn read(registry: &Registry, hosts: Registry, diagnostics: &mut Diagnostics) -> OverFleet {
        use crate::fleet::aggregates::{FleetDefinitions, HostMetrics};
        // Without definitions of hosts, their metrics are unknown.
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

/// The span of a definition, from its name to the end of its expression.
pub fn whole(definition: &Registered) -> Span {
    let nodes = definition.expr.nodes().map(|(_, node)| node.span);
    nodes.fold(definition.name_span, Span::to)
}
