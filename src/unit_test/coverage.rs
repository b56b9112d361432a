//! What the tests of a file exercise: definitions that were evaluated, and the
//! branches of `?:` that were chosen.
//!
//! For each branch there is a probe, an expression that is not 0 where the branch
//! is chosen. Probes are evaluated beside what a test expects, in the same
//! session, and change nothing there.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diag::Diagnostics;
use crate::engine::{Registered, Registry};
use crate::syntax::ast::{ExprId, NodeKind};
use crate::text::{SourceMap, Span};

/// Longest condition that is probed, in bytes.
const MAX_CONDITION: usize = 4_000;
/// Most branches of one definition that are probed.
const MAX_BRANCHES: usize = 200;

/// What the tests of a file exercise.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The definitions of the file, in their order.
    pub definitions: Vec<Covered>,
    /// The branches in them.
    pub branches: Vec<Covered>,
}

/// A definition or branch.
#[derive(Clone, Debug)]
pub struct Covered {
    /// The definition.
    pub name: Arc<str>,
    /// Where it stands.
    pub span: Span,
    /// What it is, in words, for a branch with the condition on which it is chosen.
    pub what: String,
    /// True once a test has come by.
    pub is_exercised: bool,
}

/// Branches, by position, with their probes.
pub(super) type BranchProbes = Vec<(usize, Arc<Registered>)>;

/// The parts of what tests exercise, while they run.
#[derive(Default)]
pub(super) struct Probes {
    pub coverage: Coverage,
    /// For each definition, its position, and the branches with their probes.
    of_definition: HashMap<Arc<str>, (usize, BranchProbes)>,
}

impl Probes {
    /// Makes probes of the definitions that can be used. Others are never evaluated, and
    /// their mistakes are told.
    pub fn new(
        registry: &Registry,
        is_usable: impl Fn(&Registered) -> bool,
        sources: &mut SourceMap,
    ) -> Probes {
        let mut probes = Probes::default();
        for one in registry.definitions().iter().filter(|one| is_usable(one)) {
            let position = probes.coverage.definitions.len();
            probes.coverage.definitions.push(Covered {
                name: one.name.clone(),
                span: one.name_span,
                what: format!("`{}` is evaluated by no test", one.name),
                is_exercised: false,
            });
            let branches = probes.branches(one, registry, sources);
            probes.of_definition.insert(one.name.clone(), (position, branches));
        }
        probes
    }

    /// The probes of one definition.
    fn branches(
        &mut self,
        one: &Registered,
        registry: &Registry,
        sources: &mut SourceMap,
    ) -> BranchProbes {
        let mut found = Vec::new();
        // The condition on which each node is computed, once it is known.
        let mut waiting: Vec<(ExprId, String)> = vec![(one.expr.root(), String::new())];
        while let Some((id, condition)) = waiting.pop() {
            let NodeKind::Ternary { guard, yes, no } = &one.expr.node(id).kind else {
                one.expr.operands(id, |operand| waiting.push((operand, condition.clone())));
                continue;
            };
            waiting.push((*guard, condition.clone()));
            let text = sources.slice(one.expr.node(*guard).span).replace("\\\n", " ");
            for (branch, op, outcome) in [(*yes, "!=", "true"), (*no, "==", "false")] {
                let chosen = format!("(({text}) {op} 0)");
                let chosen = match condition.is_empty() {
                    true => chosen,
                    false => format!("({condition} && {chosen})"),
                };
                if chosen.len() > MAX_CONDITION || found.len() >= MAX_BRANCHES {
                    continue;
                }
                let source = sources.add("<condition>", &*chosen);
                let mut ignored = Diagnostics::default();
                let probe = registry.parse(source, sources, &mut ignored);
                if let Ok(probe) = probe {
                    found.push((self.coverage.branches.len(), Arc::new(probe)));
                    let shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let when = if condition.is_empty() { "" } else { " where it is asked for" };
                    self.coverage.branches.push(Covered {
                        name: one.name.clone(),
                        span: one.expr.node(branch).span,
                        what: format!(
                            "`{shown}` is never {outcome}{when}, so this is chosen by no test"
                        ),
                        is_exercised: false,
                    });
                }
                waiting.push((branch, chosen));
            }
        }
        found
    }

    /// Takes note that a test evaluates these definitions; gives the probes of
    /// their branches, by position.
    pub fn exercise(&mut self, names: &[Arc<str>]) -> BranchProbes {
        let mut probes = Vec::new();
        for (position, branches) in names.iter().filter_map(|name| self.of_definition.get(name)) {
            self.coverage.definitions[*position].is_exercised = true;
            probes.extend(branches.iter().cloned());
        }
        probes
    }
}

impl Coverage {
    /// What no test exercises, in the order of the texts.
    pub fn missing(&self) -> Vec<&Covered> {
        let of_definition = self.definitions.iter().filter(|one| !one.is_exercised);
        // Of what is not evaluated at all no branch need be told.
        let is_evaluated =
            |name: &str| self.definitions.iter().any(|one| &*one.name == name && one.is_exercised);
        let of_branch = self.branches.iter().filter(|one| !one.is_exercised);
        let of_branch = of_branch.filter(|one| is_evaluated(&one.name));
        let mut missing: Vec<&Covered> = of_definition.chain(of_branch).collect();
        missing.sort_by_key(|one| (one.span.source, one.span.start));
        // Nor what is within a branch that is told.
        let mut told: Option<Span> = None;
        missing.retain(|Covered { span, .. }| {
            let is_within =
                told.is_some_and(|told| told.source == span.source && span.end <= told.end);
            told = if is_within { told } else { Some(*span) };
            !is_within
        });
        missing
    }

    /// How many of these are exercised, and how many there are.
    pub fn count(covered: &[Covered]) -> (usize, usize) {
        (covered.iter().filter(|one| one.is_exercised).count(), covered.len())
    }
}
