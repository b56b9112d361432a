//! Which metrics a set of definitions needs of a source.
//!
//! The texts alone tell the names; names that a source knows tell besides
//! which of them exist and which branches will never be chosen. Definitions
//! that others are built on are followed where the language has that.

use std::collections::{BTreeMap, BTreeSet};

use pmderive_runtime::model::InDom;
use pmderive_runtime::source::{MetadataSource, SourceError};
use rustc_hash::FxHashSet;

use crate::bind::{Name, Names, name_in, references};
use crate::check::live_nodes;
use crate::dialect::Language;
use crate::engine::{Registered, Registry};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprId, NodeKind};

/// What a metric is needed for, the greatest need first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Its values.
    Values,
    /// Its metadata, for `meta=`; it is not fetched.
    Metadata,
    /// Whether it exists, for `defined()`; it is not fetched.
    Existence,
    /// Nothing with this source: it is in a branch that is never chosen.
    Nothing,
}

/// A metric of the source that definitions mention.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    /// Its name.
    pub name: Box<str>,
    /// The definitions that mention it, each with its greatest need, in the
    /// order of their names. Expressions without a name are given by their text.
    pub needed_by: BTreeMap<Box<str>, Need>,
    /// What the source knows of it, if there is one.
    pub meaning: Option<Name>,
}

/// The needs of a set of definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// Metrics in the order of their names.
    pub metrics: Vec<Dependency>,
    /// Domains from which definitions select instances by name, as far as the
    /// source tells.
    pub domains: Vec<InDom>,
    /// Names of definitions that are needed but cannot be operands in this
    /// language, each with a definition that mentions it.
    pub refused: BTreeMap<Box<str>, Box<str>>,
}

impl Dependency {
    /// The greatest need of all.
    pub fn need(&self) -> Need {
        self.needed_by.values().copied().min().unwrap_or(Need::Nothing)
    }

    /// True if there is a source, and it does not have the metric or knows
    /// nothing of it.
    pub fn is_missing(&self) -> bool {
        matches!(self.meaning, Some(Name::Unknown(_) | Name::NoDescriptor(_)))
    }
}

/// Finds the metrics that a selection needs. Without a source all branches
/// count, and every name that no definition has is a metric.
///
/// # Errors
/// The source failed.
pub fn dependencies(
    registry: &Registry,
    selection: &[&Registered],
    language: Language,
    source: Option<&mut dyn MetadataSource>,
) -> Result<Dependencies, SourceError> {
    let all = with_nested(registry, selection, language);
    let names = match source {
        None => None,
        Some(source) => {
            let expressions = all.iter().map(|one| &one.expr);
            let own = all.iter().filter(|one| one.is_named).map(|one| &*one.name);
            let is_derived = |name: &str| registry.get(name).is_some();
            Some(Names::look_up(expressions, own, is_derived, source)?)
        }
    };
    let mut walk = Walk { registry, language, names: names.as_ref(), found: BTreeMap::new() };
    let mut result = Dependencies::default();
    // Definitions that were looked at, by place and need.
    let mut seen: FxHashSet<(Span, Need)> = FxHashSet::default();
    let mut waiting: Vec<(&Registered, Need)> =
        selection.iter().rev().map(|one| (*one, Need::Values)).collect();
    while let Some((one, need)) = waiting.pop() {
        if seen.insert((one.name_span, need)) {
            walk.definition(one, need, &mut waiting, &mut result.refused);
        }
    }
    if let Some(names) = &names {
        let selected = all.iter().flat_map(|one| selected_domains(&one.expr, names));
        result.domains = BTreeSet::from_iter(selected).into_iter().collect();
    }
    let metrics = walk.found.into_iter().map(|(name, needed_by)| Dependency {
        meaning: names.as_ref().map(|names| names.get(&name)),
        name,
        needed_by,
    });
    result.metrics = metrics.collect();
    Ok(result)
}

/// The selection, and all definitions below it.
fn with_nested<'r>(
    registry: &'r Registry,
    selection: &[&'r Registered],
    language: Language,
) -> Vec<&'r Registered> {
    let mut all: Vec<&Registered> = Vec::new();
    let mut seen: FxHashSet<Span> = FxHashSet::default();
    let mut waiting: Vec<&Registered> = selection.iter().rev().copied().collect();
    while let Some(one) = waiting.pop() {
        if !seen.insert(one.name_span) {
            continue;
        }
        all.push(one);
        if language.extensions {
            let names = references(&one.expr).map(|reference| reference.name);
            waiting.extend(names.filter_map(|name| registry.get(name)));
        }
    }
    all
}

/// A walk through definitions.
struct Walk<'w> {
    registry: &'w Registry,
    language: Language,
    names: Option<&'w Names>,
    /// Needs of metrics by name and definition.
    found: BTreeMap<Box<str>, BTreeMap<Box<str>, Need>>,
}

impl<'w> Walk<'w> {
    fn definition(
        &mut self,
        one: &'w Registered,
        needed: Need,
        waiting: &mut Vec<(&'w Registered, Need)>,
        refused: &mut BTreeMap<Box<str>, Box<str>>,
    ) {
        if one.is_named && self.is_metric(&one.name) {
            // The source's metric counts in place of the definition.
            self.add(&one.name, &one.name, needed);
            return;
        }
        let dialect = self.language.dialect;
        let live = match self.names {
            Some(names) => live_nodes(&one.expr, names, dialect),
            None => vec![true; one.expr.len()],
        };
        for ((_, node), live) in one.expr.nodes().zip(live) {
            let own = match &node.kind {
                _ if !live => Need::Nothing,
                NodeKind::Defined(_) => Need::Existence,
                NodeKind::MkConst { .. } | NodeKind::NoValue(_) => Need::Metadata,
                _ => Need::Values,
            };
            if let Some((name, _)) = name_in(node) {
                let need = needed.max(own);
                match self.registry.get(name).filter(|_| !self.is_metric(name)) {
                    None => self.add(name, &one.name, need),
                    Some(nested) if self.language.extensions => waiting.push((nested, need)),
                    Some(_) => drop(refused.insert(name.into(), one.name.clone())),
                }
            }
        }
    }

    fn add(&mut self, name: &str, definition: &str, need: Need) {
        let needs = self.found.entry(name.into()).or_default();
        let known = needs.entry(definition.into()).or_insert(need);
        *known = need.min(*known);
    }

    fn is_metric(&self, name: &str) -> bool {
        let meaning = self.names.map(|names| names.get(name));
        matches!(meaning, Some(Name::Metric(_) | Name::NoDescriptor(_)))
    }
}

/// Instance domains of metrics below `[...]` and `matchinst()`.
fn selected_domains(expr: &Expr, names: &Names) -> Vec<InDom> {
    let mut selected: FxHashSet<ExprId> = FxHashSet::default();
    let mut domains = Vec::new();
    // Parents come after their operands.
    for (id, node) in expr.nodes().rev() {
        let selects = matches!(node.kind, NodeKind::Select { .. } | NodeKind::Match { .. });
        if !selects && !selected.contains(&id) {
            continue;
        }
        expr.operands(id, |operand| {
            selected.insert(operand);
        });
        if let NodeKind::Metric(name) = &node.kind
            && let Name::Metric(desc) = names.get(name)
        {
            domains.extend(desc.indom);
        }
    }
    domains
}
