//! Coverage of the tests of a file: evaluated definitions, and chosen branches of `?:`.
//!
//! Each branch has a probe: an expression that is not 0 where the branch is chosen. Probes are
//! evaluated beside the expected results, in the same session. They do not affect these
//! results.

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

/// Coverage of the tests of a file.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The definitions of the file, in order.
    pub definitions: Vec<CoverageItem>,
    /// The branches in them.
    pub branches: Vec<CoverageItem>,
}

/// A definition or branch, and whether a test exercises it.
#[derive(Clone, Debug)]
pub struct CoverageItem {
    /// The definition.
    pub name: Arc<str>,
    /// Its place.
    pub span: Span,
    /// Description; for a branch it has the condition under which it is chosen.
    pub what: String,
    /// True once a test has exercised it.
    pub is_exercised: bool,
}

/// Branches by position, each with its probe.
pub(super) type BranchProbes = Vec<(usize, Arc<Registered>)>;

/// Coverage while tests run, with the probes.
#[derive(Default)]
pub(super) struct Probes {
    pub coverage: Coverage,
    /// For each definition, its position and its branches with their probes.
    of_definition: HashMap<Arc<str>, (usize, BranchProbes)>,
}

impl Probes {
    /// Makes probes of the usable definitions. Others are never evaluated, and their mistakes
    /// are reported.
    pub fn new(
        registry: &Registry,
        is_usable: impl Fn(&Registered) -> bool,
        sources: &mut SourceMap,
    ) -> Probes {
        let mut probes = Probes::default();
        for one in registry.definitions().iter().filter(|one| is_usable(one)) {
            let position = probes.coverage.definitions.len();
            probes.coverage.definitions.push(CoverageItem {
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
        // The condition under which each node is computed, once known.
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
                    self.coverage.branches.push(CoverageItem {
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

    /// Notes that a test evaluates these definitions. Returns the probes of their branches, by
    /// position.
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
    /// The parts that no test exercises, in the order of the texts.
    pub fn missing(&self) -> Vec<&CoverageItem> {
        let of_definition = self.definitions.iter().filter(|one| !one.is_exercised);
        // Branches of a definition that is never evaluated are not listed.
        let is_evaluated =
            |name: &str| self.definitions.iter().any(|one| &*one.name == name && one.is_exercised);
        let of_branch = self.branches.iter().filter(|one| !one.is_exercised);
        let of_branch = of_branch.filter(|one| is_evaluated(&one.name));
        let mut missing: Vec<&CoverageItem> = of_definition.chain(of_branch).collect();
        missing.sort_by_key(|one| (one.span.source, one.span.start));
        // Nor are branches within a listed one.
        let mut told: Option<Span> = None;
        missing.retain(|CoverageItem { span, .. }| {
            let is_within =
                told.is_some_and(|told| told.source == span.source && span.end <= told.end);
            told = if is_within { told } else { Some(*span) };
            !is_within
        });
        missing
    }

    /// The number of exercised parts, and of all.
    pub fn count(covered: &[CoverageItem]) -> (usize, usize) {
        (covered.iter().filter(|one| one.is_exercised).count(), covered.len())
    }
}
