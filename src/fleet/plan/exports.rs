//! Finds the exported definitions, and the sinks of each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use glob::Pattern;
use rustc_hash::FxHashSet;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registered, Registry};
use crate::fleet::aggregates::{Operand, counts_of_hosts};
use crate::fleet::config::{Fleet, Group, Sink, SinkKind};
use crate::fleet::sinks::names::{Collision, collisions};
use crate::fleet::sinks::sink_set::{SinkPlace, SinkSet};
use crate::syntax::ast::Spanned;
use crate::syntax::{Request, nearest_after, own_comments};
use crate::text::{SourceId, SourceMap, Span};

/// An exported definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Sinks that want it.
    pub sinks: SinkSet,
    /// True if the group exports it. Others are only operands of aggregates.
    pub is_chosen: bool,
    /// One line about it, if its file has any.
    pub help: Option<Arc<str>>,
}

/// The definitions of a group.
pub struct DefinitionFiles<'d> {
    pub registry: &'d Registry,
    pub sources: &'d SourceMap,
    /// The texts of each file of definitions, parallel to [`Group::definitions`].
    pub files: &'d [Vec<SourceId>],
}

/// An entry of an `export`: a name, or a pattern.
struct Wanted<'e> {
    text: &'e str,
    /// `None` for a name, and for a wrong pattern, which matches nothing.
    pattern: Option<Pattern>,
}

impl Wanted<'_> {
    fn new(entry: &Spanned<Box<str>>) -> Wanted<'_> {
        let is_pattern = entry.value.contains(['*', '?', '[']);
        let pattern = is_pattern.then(|| Pattern::new(&entry.value).ok()).flatten();
        Wanted { text: &entry.value, pattern }
    }

    fn matches(&self, name: &str) -> bool {
        self.text == name || self.pattern.as_ref().is_some_and(|pattern| pattern.matches(name))
    }
}

/// For each sink, the entries of its `export`; `None` if it wants all.
fn wanted_by(sinks: &[Sink]) -> Vec<Option<Vec<Wanted<'_>>>> {
    let lists = sinks.iter().map(|sink| sink.export.as_ref());
    lists.map(|list| list.map(|list| list.iter().map(Wanted::new).collect())).collect()
}

/// The exported definitions of a group. Entries that match nothing are reported.
pub fn exports<'d>(
    group: &Group,
    sinks: &[Sink],
    defined: &DefinitionFiles<'d>,
    of_fleet: &[&Operand],
    diagnostics: &mut Diagnostics,
) -> Vec<(&'d Registered, Export)> {
    let all = defined.registry.all();
    let is_chosen: Vec<bool> = match &group.export {
        None => {
            let marked = marked(defined, diagnostics);
            let is_marked = |one: &&Registered| {
                let (text, at) = (one.name_span.source, one.name_span.start as usize);
                let before = marked.range(..=(text, at)).next_back();
                before.is_some_and(|((of, _), end)| *of == text && at < *end)
            };
            all.iter().map(is_marked).collect()
        }
        Some(entries) => {
            let named: Vec<_> = all.iter().map(|one| (&*one.name, Some(*one))).collect();
            chosen(entries, &group.definitions, defined.files, &named, diagnostics)
        }
    };
    let operands: FxHashSet<&str> = of_fleet.iter().map(|operand| &*operand.name).collect();
    let wanted = wanted_by(sinks);
    let export = |(one, is_chosen): (&'d Registered, bool)| {
        let is_operand = operands.contains(&*one.name);
        let of_fleet = if is_operand { SinkSet::FLEET } else { SinkSet::NONE };
        let of_sinks = if is_chosen { sinks_wanting(&one.name, &wanted) } else { SinkSet::NONE };
        let help = one.pmid.and_then(|pmid| defined.registry.line_about(pmid));
        let (sinks, help) = (of_sinks.union(of_fleet), help.map(Arc::from));
        let export = Export { sinks, is_chosen, help };
        (is_chosen || is_operand).then_some((one, export))
    };
    all.into_iter().zip(is_chosen).filter_map(export).collect()
}

/// The sinks of a configuration for which a condition holds; `all` is parallel to them.
fn sinks_where<T>(all: &[T], condition: impl Fn(&T) -> bool) -> SinkSet {
    (0..).map(SinkPlace).zip(all).filter(|(_, one)| condition(one)).map(|(at, _)| at).collect()
}

/// The sinks that want an exported metric; `wanted` has the entries of each sink.
fn sinks_wanting(metric: &str, wanted: &[Option<Vec<Wanted<'_>>>]) -> SinkSet {
    let is_meant = |list: &Vec<Wanted<'_>>| list.iter().any(|one| one.matches(metric));
    sinks_where(wanted, |list| list.as_ref().is_none_or(is_meant))
}

/// The metrics of the fleet for sinks, each with its sinks. Without an `export` these are all,
/// numbers of hosts included. Entries that match nothing are reported.
pub fn fleet_exports(
    fleet: &Fleet,
    sinks: &[Sink],
    defined: &DefinitionFiles<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Box<str>, SinkSet> {
    let own = defined.registry.all();
    let counts = counts_of_hosts().filter(|name| defined.registry.get(name).is_none());
    let own = own.iter().map(|one| (&*one.name, Some(*one)));
    let all: Vec<_> = own.chain(counts.map(|name| (name, None))).collect();
    let is_chosen = match &fleet.export {
        None => vec![true; all.len()],
        Some(entries) => chosen(entries, &fleet.definitions, defined.files, &all, diagnostics),
    };
    let chosen = all.into_iter().zip(is_chosen).filter(|(_, is_chosen)| *is_chosen);
    let wanted = wanted_by(sinks);
    chosen.map(|((name, _), _)| (name.into(), sinks_wanting(name, &wanted))).collect()
}

/// Whether the entries of an `export` choose a metric, parallel to `all`. These are names, with
/// definitions unless they are numbers of hosts. An entry is a file of definitions, a name or a
/// pattern. Entries that match nothing are reported.
fn chosen(
    entries: &[Spanned<Box<str>>],
    definitions: &[Spanned<PathBuf>],
    files: &[Vec<SourceId>],
    all: &[(&str, Option<&Registered>)],
    diagnostics: &mut Diagnostics,
) -> Vec<bool> {
    let mut is_chosen = vec![false; all.len()];
    for entry in entries {
        // Each path ends with an empty one.
        let is_path = |file: &Spanned<PathBuf>| {
            !entry.value.is_empty() && file.value.ends_with(&*entry.value)
        };
        let file = definitions.iter().position(is_path);
        let wanted = Wanted::new(entry);
        let mut is_used = false;
        for ((name, one), is_chosen) in all.iter().zip(&mut is_chosen) {
            let is_meant = match file {
                Some(at) => one.is_some_and(|one| files[at].contains(&one.name_span.source)),
                None => wanted.matches(name),
            };
            is_used |= is_meant;
            *is_chosen |= is_meant;
        }
        if !is_used {
            let names = all.iter().map(|(name, _)| *name);
            diagnostics.push(unused(entry, names, diagnostics.len()));
        }
    }
    is_chosen
}

/// Reports exports of sinks that no group exports.
pub fn check_sinks<'n>(
    sinks: &[Sink],
    exported: impl Iterator<Item = &'n str> + Clone,
    diagnostics: &mut Diagnostics,
) {
    for entry in sinks.iter().flat_map(|sink| sink.export.iter().flatten()) {
        let wanted = Wanted::new(entry);
        if !exported.clone().any(|name| wanted.matches(name)) {
            diagnostics.push(unused(entry, exported.clone(), diagnostics.len()));
        }
    }
}

/// The sinks that name metrics as Prometheus does.
pub fn with_series(sinks: &[Sink]) -> SinkSet {
    sinks_where(sinks, |sink| !matches!(sink.kind, SinkKind::JsonLines(_)))
}

/// Reports exported metrics that share a series in Prometheus, with each other or with the
/// engine's own.
pub fn check_series(exported: &[(Arc<str>, Span)], diagnostics: &mut Diagnostics) {
    for Collision { series, metrics } in collisions(exported.iter().map(|(name, _)| &**name)) {
        let place = |name: &String| {
            exported.iter().find(|(known, _)| **known == **name).map(|(_, span)| *span)
        };
        let Some(last) = metrics.last().and_then(place) else { continue };
        let message = match metrics.len() {
            1 => format!("`{series}` is a name of the engine's own metrics"),
            _ => format!("to Prometheus, {} are all `{series}`", metrics.join(" and ")),
        };
        let mut diagnostic = Diagnostic::error(Code::BadServeFile, last, message);
        for first in metrics[..metrics.len() - 1].iter().filter_map(place) {
            diagnostic = diagnostic.label(first, "and this is the same series");
        }
        diagnostics.push(diagnostic.help("give it another name, or export it to other sinks only"));
    }
}

/// The report of an entry that matches none of the names, after so many reports.
fn unused<'n>(
    entry: &Spanned<Box<str>>,
    names: impl Iterator<Item = &'n str>,
    reported: usize,
) -> Diagnostic {
    let message = format!("no metric matches `{}`", entry.value);
    let diagnostic = Diagnostic::error(Code::BadServeFile, entry.span, message);
    match nearest_after(reported, &entry.value, names) {
        Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
        None => diagnostic
            .help("a name, a pattern such as `shop.*`, or the path of a file of definitions"),
    }
}

/// The definitions that comments mark for export, each by the place of its start and its end.
/// Comments that mark nothing are reported.
fn marked(
    defined: &DefinitionFiles<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<(SourceId, usize), usize> {
    let mut marked = BTreeMap::new();
    for text in defined.files.iter().flatten().copied() {
        for comment in own_comments(&defined.sources.get(text).text, defined.registry.language()) {
            diagnostics.extend(comment.warning(text));
            if let (Request::Export, Some(below)) = (comment.request, comment.below) {
                marked.insert((text, below.start), below.end);
            }
        }
    }
    marked
}
