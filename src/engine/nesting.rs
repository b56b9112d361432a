//! Derived metrics as operands of others: the definitions that a selection
//! needs, in an order with operands first.
//!
//! The input is parsed definitions; the caller says which names are
//! definitions. A definition that needs itself is reported with the whole
//! cycle. All algorithms are loops. The number of levels is limited, because
//! the work per definition grows with it.

use std::cell::LazyCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use pmderive_runtime::program::DefinitionKey;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::{Registered, Registry};
use crate::bind::{DefinitionId, Reference, references};
use crate::check::Examined;
use crate::check::typed::{TypedExpr, TypedKind};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::text::Span;

/// Largest number of levels of derived metrics below a definition.
pub const MAX_LEVELS: usize = 5_000;

/// Largest number of steps of a cycle to show.
const MAX_DRAWN: usize = 8;

/// The selection, and after it all definitions that it mentions directly or
/// indirectly, each once. Without extensions, only `mkconst()` and `novalue()`
/// can use a definition: they copy its metadata.
pub(crate) fn needed<'r>(
    registry: &'r Registry,
    selection: &[&'r Registered],
) -> Vec<&'r Registered> {
    needed_and_nested(registry, selection).0
}

/// The same definitions, and whether any of them mentions a definition.
pub(super) fn needed_and_nested<'r>(
    registry: &'r Registry,
    selection: &[&'r Registered],
) -> (Vec<&'r Registered>, bool) {
    let mut needed = selection.to_vec();
    // Most selections need no others.
    let mut known: Option<FxHashSet<&str>> = None;
    let named = || selection.iter().filter(|one| one.is_named).map(|one| &*one.name);
    let mut next = 0;
    while let Some(one) = needed.get(next) {
        next += 1;
        for Reference { name, .. } in references(&one.expr) {
            if let Some(operand) = registry.get(name)
                && known.get_or_insert_with(|| named().collect()).insert(&operand.name)
            {
                needed.push(operand);
            }
        }
    }
    (needed, known.is_some())
}

/// Definitions by position, operands before users.
pub(super) struct Order {
    /// Each position once.
    pub positions: Vec<DefinitionId>,
    /// For each position, true if the definition is part of a cycle or has too
    /// many levels below it. Such a definition is already reported.
    pub is_refused: Vec<bool>,
    /// For each position, the definitions that it mentions.
    pub operands: Vec<Vec<Mention>>,
}

impl Order {
    /// The order of `count` definitions that mention no other.
    pub fn of_any(count: usize) -> Order {
        Order {
            positions: (0..count).map(DefinitionId::at).collect(),
            is_refused: vec![false; count],
            operands: vec![Vec::new(); count],
        }
    }
}

/// A definition that another definition mentions.
#[derive(Clone, Copy)]
pub(super) struct Mention {
    /// Its position.
    pub definition: DefinitionId,
    /// The first place that mentions it.
    span: Span,
}

/// Puts definitions in order and reports cycles. `is_definition` says which
/// names are definitions.
pub(super) fn order(
    definitions: &[&Registered],
    is_definition: impl Fn(&str) -> bool,
    diagnostics: &mut Diagnostics,
) -> Order {
    let operands = mentions(definitions, is_definition);
    let mut is_refused = vec![false; definitions.len()];
    let mut levels = vec![0usize; definitions.len()];
    let mut positions = Vec::with_capacity(definitions.len());
    let mut state = vec![State::New; definitions.len()];
    // The path from a start; for each definition, the number of visited operands.
    let mut way: Vec<(DefinitionId, usize)> = Vec::new();
    for start in 0..definitions.len() {
        if state[start] == State::New {
            state[start] = State::OnTheWay;
            way.push((DefinitionId::at(start), 0));
        }
        while let Some((id, visited)) = way.last_mut() {
            let Some(mention) = operands[id.index()].get(*visited) else {
                let (id, position) = (*id, id.index());
                let level = |operand: &Mention| levels[operand.definition.index()];
                let deepest = operands[position].iter().max_by_key(|operand| level(operand));
                levels[position] = deepest.map_or(1, |operand| level(operand) + 1);
                if let Some(operand) = deepest.filter(|_| levels[position] > MAX_LEVELS) {
                    // Definitions that need this one do not fail for the same
                    // reason again.
                    levels[position] = 0;
                    is_refused[position] = true;
                    diagnostics.push(too_deep(definitions[position], operand.span));
                }
                state[position] = State::Done;
                positions.push(id);
                way.pop();
                continue;
            };
            *visited += 1;
            let operand = mention.definition;
            match state[operand.index()] {
                State::New => {
                    state[operand.index()] = State::OnTheWay;
                    way.push((operand, 0));
                }
                State::OnTheWay => {
                    let first = way.iter().rposition(|(id, _)| *id == operand);
                    let cycle: Vec<(DefinitionId, Span)> = way[first.unwrap_or(0)..]
                        .iter()
                        .map(|(id, visited)| (*id, operands[id.index()][visited - 1].span))
                        .collect();
                    // One diagnostic for each definition is enough.
                    if cycle.iter().any(|(id, _)| !is_refused[id.index()]) {
                        diagnostics.push(draw(definitions, &cycle));
                    }
                    cycle.iter().for_each(|(id, _)| is_refused[id.index()] = true);
                }
                State::Done => {}
            }
        }
    }
    Order { positions, is_refused, operands }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    OnTheWay,
    Done,
}

/// For each definition, the definitions that it mentions, each once.
fn mentions(
    definitions: &[&Registered],
    is_definition: impl Fn(&str) -> bool,
) -> Vec<Vec<Mention>> {
    // Most definitions mention no others.
    let by_name = LazyCell::new(|| {
        let mut by_name: FxHashMap<&str, DefinitionId> =
            FxHashMap::with_capacity_and_hasher(definitions.len(), FxBuildHasher);
        for (position, one) in definitions.iter().enumerate().filter(|(_, one)| one.is_named) {
            by_name.entry(&one.name).or_insert(DefinitionId::at(position));
        }
        by_name
    });
    let mentions = |one: &&Registered| {
        let mut seen = FxHashSet::default();
        references(&one.expr)
            .filter(|reference| is_definition(reference.name))
            .filter_map(|Reference { name, span, .. }| {
                Some(Mention { definition: *by_name.get(name)?, span })
            })
            .filter(|mention| seen.insert(mention.definition))
            .collect()
    };
    definitions.iter().map(mentions).collect()
}

fn too_deep(one: &Registered, operand: Span) -> Diagnostic {
    let message =
        format!("with `{}` more than {MAX_LEVELS} definitions stand on each other", one.name);
    let mut diagnostic =
        Diagnostic::error(Code::TooComplex, operand, message).label(operand, "one level too many");
    diagnostic.metric = one.is_named.then(|| Box::from(&*one.name));
    diagnostic
}

/// The diagnostic for a cycle of definitions. Each step has the place that
/// mentions the next.
fn draw(definitions: &[&Registered], cycle: &[(DefinitionId, Span)]) -> Diagnostic {
    let name = |index: usize| &definitions[cycle[index % cycle.len()].0.index()].name;
    let first = cycle[0].1;
    let message = match cycle.len() {
        1 => format!("`{}` needs itself", name(0)),
        count => format!("{count} definitions need each other"),
    };
    let mut diagnostic = Diagnostic::error(Code::DefinitionCycle, first, message);
    let drawn = cycle.len().min(MAX_DRAWN);
    for (index, (_, span)) in cycle.iter().enumerate().take(drawn) {
        let text = format!("`{}` needs `{}`", name(index), name(index + 1));
        diagnostic = diagnostic.label(*span, text);
    }
    let mut way: Vec<&str> = (0..drawn).map(|index| &**name(index)).collect();
    let left_out = format!("... ({} more)", cycle.len() - drawn);
    if cycle.len() > drawn {
        way.push(&left_out);
    }
    way.push(name(0));
    let diagnostic = diagnostic.help(match cycle.len() {
        1 => "a value is of one moment; `delta()` and `rate()` look back to the previous sample"
            .into(),
        _ => way.join(" -> "),
    });
    diagnostic.of_metric(name(0))
}

/// Reports cycles among registered definitions without asking a source. A
/// source may have metrics of the same names.
pub fn report_cycles(registry: &Registry, diagnostics: &mut Diagnostics) {
    let definitions: Vec<&Registered> = registry.definitions().iter().map(|one| &**one).collect();
    order(&definitions, |name| registry.get(name).is_some(), diagnostics);
}

/// Determines which definitions have values that the first `selected` ones
/// need, including these.
pub(super) fn with_values(
    definitions: &[&Registered],
    selected: usize,
    order: &Order,
    examined: &[Examined],
) -> Vec<bool> {
    let mut wanted = vec![false; definitions.len()];
    wanted[..selected].fill(true);
    for id in order.positions.iter().rev() {
        let operands = &order.operands[id.index()];
        if !wanted[id.index()] || operands.is_empty() {
            continue;
        }
        let live = &examined[id.index()].live;
        let named: FxHashSet<&str> = references(&definitions[id.index()].expr)
            .filter(|reference| reference.wants_value)
            .filter(|reference| live.get(reference.node) == Some(&true))
            .map(|reference| reference.name)
            .collect();
        for operand in operands.iter().map(|mention| mention.definition.index()) {
            wanted[operand] |= named.contains(&*definitions[operand].name);
        }
    }
    wanted
}

/// The expressions to plan.
pub(crate) struct Arranged {
    /// Typed expressions with their keys. [`TypedKind::Derived`] is a
    /// position here.
    pub typed: Vec<(DefinitionKey, TypedExpr)>,
    /// For each definition, its position in `typed`.
    pub outputs: Vec<Option<DefinitionId>>,
}

/// Arranges the wanted expressions without mistakes: the first `chosen` ones
/// and those that they need. The operands of a definition that cannot be used
/// are not evaluated for it. A definition's key includes those of its
/// operands, because previous samples of another operand mean something else.
pub(super) fn arrange(
    chosen: usize,
    keys: &[DefinitionKey],
    order: &[DefinitionId],
    wanted: &[bool],
    mut examined: Vec<Examined>,
) -> Arranged {
    let mut typed: Vec<(DefinitionKey, TypedExpr)> = Vec::with_capacity(order.len());
    let mut outputs: Vec<Option<DefinitionId>> = vec![None; examined.len()];
    let mut used: Vec<bool> = (0..examined.len()).map(|position| position < chosen).collect();
    for id in order.iter().rev() {
        let expression = &examined[id.index()];
        if !used[id.index()] || !expression.is_whole {
            continue;
        }
        for node in &expression.typed.nodes {
            if let TypedKind::Derived(operand) = node.kind {
                used[operand.index()] = true;
            }
        }
    }
    let is_needed = |position: &usize| wanted[*position] && used[*position];
    for position in order.iter().map(|id| id.index()).filter(is_needed) {
        let found = std::mem::take(&mut examined[position]);
        if !found.is_whole {
            continue;
        }
        let mut expr = found.typed;
        let mut hasher = DefaultHasher::new();
        let mut is_nested = false;
        for node in &mut expr.nodes {
            if let TypedKind::Derived(operand) = &mut node.kind {
                let planned = outputs[operand.index()];
                let planned = planned.expect("operands come before their users");
                *operand = planned;
                typed[planned.index()].0.hash(&mut hasher);
                is_nested = true;
            }
        }
        let own = keys[position];
        own.hash(&mut hasher);
        outputs[position] = Some(DefinitionId::at(typed.len()));
        typed.push((if is_nested { DefinitionKey(hasher.finish()) } else { own }, expr));
    }
    Arranged { typed, outputs }
}
