//! The metrics that a set of definitions needs from a source.
//!
//! The texts alone give the names. A source also shows which of them exist and
//! which branches are never chosen. If the language has definitions inside
//! definitions, they are followed.

use std::collections::{BTreeMap, BTreeSet};

use pmderive_runtime::model::InDom;
use pmderive_runtime::source::{MetadataSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bind::{Name, Names, name_in};
use crate::diag::Diagnostics;
use crate::engine::{Engine, Registered, Registry, needed};
use crate::syntax::ast::{Expr, ExprId, NodeKind, PerNode};
use crate::text::Span;

/// The purpose for which a metric is needed, the greatest need first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Its values.
    Values,
    /// Its metadata, for `meta=`; it is not fetched.
    Metadata,
    /// Its existence, for `defined()`; it is not fetched.
    Existence,
    /// None with this source: it is in a branch that is never chosen.
    Nothing,
}

/// A metric of the source that definitions mention.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    /// Its name.
    pub name: Box<str>,
    /// The definitions that mention it, each with its greatest need, in the
    /// order of their names. An expression without a name is given by its text.
    pub needed_by: BTreeMap<Box<str>, Need>,
    /// Its meaning in the source, if a source was asked.
    pub meaning: Option<Name>,
}

/// The needs of a set of definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// Metrics in the order of their names.
    pub metrics: Vec<Dependency>,
    /// Domains from which definitions select instances by name, as far as the
    /// source knows them.
    pub domains: Vec<InDom>,
    /// Names of definitions that are mentioned but cannot be operands in this
    /// language, each with a definition that mentions it.
    pub refused: BTreeMap<Box<str>, Box<str>>,
}

impl Dependency {
    /// The greatest need of all definitions.
    pub fn need(&self) -> Need {
        self.needed_by.values().copied().min().unwrap_or(Need::Nothing)
    }

    /// True if a source was asked and it lacks the metric or its descriptor.
    pub fn is_missing(&self) -> bool {
        matches!(self.meaning, Some(Name::Unknown(_) | Name::NoDescriptor(_)))
    }
}

/// Finds the metrics that a selection needs. Without a source, all branches
/// count, and every name without a definition is a metric. Mistakes in the
/// definitions are not reported.
///
/// # Errors
/// The source failed.
pub fn dependencies(
    engine: &Engine,
    registry: &Registry,
    selection: &[&Registered],
    source: Option<&mut dyn MetadataSource>,
) -> Result<Dependencies, SourceError> {
    let examine = |source: &mut dyn MetadataSource| {
        engine.examine(registry, selection, source, &mut Diagnostics::default())
    };
    let examination = source.map(examine).transpose()?;
    let names = examination.as_ref().map(|examination| &examination.names);
    let all = needed(registry, selection);
    let examined = examination.iter().flat_map(|examination| &examination.expressions);
    let live = all.iter().zip(examined).map(|(one, examined)| (one.name_span, &examined.live));
    let mut walk = Walk {
        registry,
        follows: engine.language().extensions,
        names,
        live: live.collect(),
        found: BTreeMap::new(),
    };
    let mut result = Dependencies::default();
    // Visited definitions, by place and need.
    let mut seen: FxHashSet<(Span, Need)> = FxHashSet::default();
    let mut waiting: Vec<(&Registered, Need)> =
        selection.iter().rev().map(|one| (*one, Need::Values)).collect();
    while let Some((one, need)) = waiting.pop() {
        if seen.insert((one.name_span, need)) {
            walk.definition(one, need, &mut waiting, &mut result.refused);
        }
    }
    if let Some(names) = names {
        let wanted = |position| examination.as_ref().is_none_or(|found| found.is_wanted(position));
        let all = all.iter().enumerate().filter(|(position, _)| wanted(*position));
        let selected = all.flat_map(|(_, one)| selected_domains(&one.expr, names));
        result.domains = BTreeSet::from_iter(selected).into_iter().collect();
    }
    let metrics = walk.found.into_iter().map(|(name, needed_by)| Dependency {
        meaning: names.map(|names| names.get(&name)),
        name,
        needed_by,
    });
    result.metrics = metrics.collect();
    Ok(result)
}

/// A walk through definitions.
struct Walk<'w> {
    registry: &'w Registry,
    /// True if definitions can be operands of others.
    follows: bool,
    names: Option<&'w Names>,
    /// For each definition, the nodes that can be chosen, as far as the source
    /// shows.
    live: FxHashMap<Span, &'w PerNode<bool>>,
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
            // The source's metric takes the place of the definition.
            self.add(&one.name, &one.name, needed);
            return;
        }
        let live = self.live.get(&one.name_span).copied();
        for (id, node) in one.expr.nodes() {
            let is_live = live.and_then(|live| live.get(id)) != Some(&false);
            let own = match &node.kind {
                _ if !is_live => Need::Nothing,
                NodeKind::Defined(_) => Need::Existence,
                NodeKind::MkConst { .. } | NodeKind::NoValue(_) => Need::Metadata,
                _ => Need::Values,
            };
            if let Some((name, _)) = name_in(node) {
                let need = needed.max(own);
                match self.registry.get(name).filter(|_| !self.is_metric(name)) {
                    None => self.add(name, &one.name, need),
                    Some(nested) if self.follows => waiting.push((nested, need)),
                    Some(_) => drop(refused.insert(name.into(), Box::from(&*one.name))),
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

/// Instance domains of the metrics below `[...]` and `matchinst()`.
fn selected_domains(expr: &Expr, names: &Names) -> Vec<InDom> {
    let mut selected: FxHashSet<ExprId> = FxHashSet::default();
    let mut domains = Vec::new();
    // Parents come after their operands, so this goes backwards.
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
