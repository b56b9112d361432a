//! Definitions over the fleet, in two forms: as written, and as the evaluator computes them. To
//! the evaluator each aggregate across hosts is a metric of a source, named by the aggregate's
//! text. Everything else is an ordinary expression over such metrics.
//!
//! ```text
//! racks.share = sum(shop.rate) by (rack) / sum(rate(shop.requests) / hinv.ncpu)
//!               └───── an aggregate ───┘ │     └── computed on each host ────┘
//!                                        └ the evaluator
//! ```
//!
//! [`super::reading`] makes the second form of the first.

use std::sync::Arc;

use pmderive_runtime::position::Per;
use rustc_hash::{FxHashMap, FxHashSet};

use super::aggregate::{Aggregate, AggregateId, GroupingId};
use super::host_metrics::HostMetrics;
use super::operand::OperandId;
use super::reading::{Operand, Reader, Unchanged};
use crate::bind::{name_in, references};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Language;
use crate::engine::{Registered, Registry, needed, report_cycles};
use crate::fleet::targets::target::Target;
use crate::syntax::ast::{Expr, ExprId, Node, NodeKind, PerNode, Spanned};
use crate::syntax::{nearest, print_expr};
use crate::text::Span;

/// Definitions over the fleet.
#[derive(Debug)]
pub struct FleetDefinitions {
    /// The definitions in the evaluator's form.
    pub(super) registry: Registry,
    /// The definitions to evaluate, followed by expressions without a name.
    pub selection: Box<[Arc<Registered>]>,
    /// The aggregates of all definitions, each once.
    pub aggregates: Per<AggregateId, Aggregate>,
    /// The operands of aggregates, each once.
    pub operands: Per<OperandId, Operand>,
    /// The labels of each different `by`; empty for all hosts together.
    pub groupings: Per<GroupingId, Box<[Box<str>]>>,
    /// Each label of a `by`, at its first place in the texts.
    pub(super) labels: Vec<Spanned<Box<str>>>,
    /// Texts of the definitions whose evaluated form has more than the text.
    pub(super) written: FxHashMap<Arc<str>, String>,
    /// Metrics that tell where members have not changed.
    pub(super) unchanged: Vec<Unchanged>,
}

impl FleetDefinitions {
    /// Reads the definitions of a registry as definitions over a fleet, and expressions to
    /// evaluate without a name. `hosts` tells about the metrics of hosts. Mistakes and cycles
    /// are reported and left out.
    pub fn read(
        registry: &Registry,
        expressions: &[Arc<Registered>],
        hosts: &HostMetrics<'_>,
        diagnostics: &mut Diagnostics,
    ) -> FleetDefinitions {
        let mut reader = Reader::new(registry, hosts, diagnostics);
        let mut read: Vec<(&Registered, Expr)> = Vec::new();
        for one in in_order(registry) {
            read.extend(reader.definition(one).map(|expr| (one, expr)));
        }
        let mut computed: Vec<Arc<Registered>> = Vec::new();
        for one in expressions {
            if let Some(expr) = reader.definition(one) {
                computed.push(Arc::new(Registered { expr: Arc::new(expr), ..(**one).clone() }));
            }
        }
        let mut found = reader.into_found();
        report_cycles(registry, diagnostics);
        let all = registry.definitions().iter().chain(expressions);
        let written = all.map(|one| (&one.name, &*one.expr));
        let read: FxHashMap<&str, Expr> =
            read.into_iter().map(|(one, expr)| (&*one.name, expr)).collect();
        let is_difference =
            |(_, node): (ExprId, &Node)| matches!(node.kind, NodeKind::Temporal { .. });
        let with_aggregates = registry.with_expressions(|one| read.get(&*one.name).cloned());
        let written = written.filter(|(_, expr)| expr.nodes().any(is_difference));
        found.written = written.map(|(name, expr)| (Arc::clone(name), print_expr(expr))).collect();
        found.selection = with_aggregates.definitions().iter().cloned().chain(computed).collect();
        found.registry = with_aggregates;
        found
    }

    /// No definitions.
    pub(super) fn none(language: Language) -> FleetDefinitions {
        FleetDefinitions {
            registry: Registry::new(language),
            selection: Box::default(),
            aggregates: Per::default(),
            operands: Per::default(),
            groupings: Per::default(),
            labels: Vec::new(),
            written: FxHashMap::default(),
            unchanged: Vec::new(),
        }
    }

    /// The registry and the selection as written, but with aggregates as metrics. Differences
    /// over time have values even if members have changed.
    pub fn with_all_differences(&self) -> (Registry, Vec<Arc<Registered>>) {
        let hidden: FxHashSet<&str> = self.unchanged.iter().map(|one| &*one.name).collect();
        let registry = self.registry.with_expressions(|one| Some(without(&one.expr, &hidden)));
        let unnamed = self.selection.iter().filter(|one| !one.is_named);
        let unnamed = unnamed.map(|one| {
            Arc::new(Registered { expr: Arc::new(without(&one.expr, &hidden)), ..(**one).clone() })
        });
        let selection = registry.definitions().iter().cloned().chain(unnamed).collect();
        (registry, selection)
    }

    /// Names of the definitions, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registry.names()
    }

    /// The definition with a name.
    pub fn named(&self, name: &str) -> Option<&Arc<Registered>> {
        self.registry.definition(name)
    }

    /// Name of the definition around a place.
    pub fn around(&self, span: Span) -> Option<&str> {
        let holds = |node: &Node| {
            let Span { source, start, end } = node.span;
            source == span.source && start <= span.start && span.end <= end
        };
        let is_in = |one: &&Arc<Registered>| one.expr.nodes().any(|(_, node)| holds(node));
        self.registry.definitions().iter().find(is_in).map(|one| &*one.name)
    }

    /// The expressions that hosts compute only for aggregates. Hosts with these definitions
    /// must have all metrics in them. With `is_open` a host may have any other metric, too.
    pub fn computed_by<'d>(&'d self, hosts: &Registry, is_open: bool) -> Vec<&'d Registered> {
        let computed = self.operands.iter().filter_map(|operand| operand.computed.as_deref());
        let has_all = |one: &&Registered| {
            is_open
                || references(&one.expr)
                    .all(|reference| !reference.wants_value || hosts.get(reference.name).is_some())
        };
        computed.filter(has_all).collect()
    }

    /// Names of the operands of some definitions, direct or not.
    pub fn operands_of(&self, is_wanted: impl Fn(&Registered) -> bool) -> FxHashSet<&str> {
        let chosen = self.selection.iter().map(|one| &**one).filter(|one| is_wanted(one));
        let chosen: Vec<&Registered> = chosen.collect();
        let needed = needed(&self.registry, &chosen);
        let texts: FxHashSet<&str> =
            needed.iter().flat_map(|one| references(&one.expr)).map(|one| one.name).collect();
        let used = self.aggregates.iter().filter(|one| texts.contains(&*one.text));
        used.map(|one| &*self.operands[one.operand].name).collect()
    }

    /// True if both are the same, so that results go on.
    pub fn is_same(&self, other: &FleetDefinitions) -> bool {
        let same = |a: &Arc<Registered>, b: &Arc<Registered>| {
            a.name == b.name && print_expr(&a.expr) == print_expr(&b.expr)
        };
        let (own, others) = (&self.selection, &other.selection);
        let texts = |one: &FleetDefinitions| -> Vec<Box<str>> {
            one.aggregates.iter().map(|aggregate| aggregate.text.clone()).collect()
        };
        texts(self) == texts(other)
            && own.len() == others.len()
            && own.iter().zip(others).all(|(a, b)| same(a, b))
    }
}

/// An expression without the factors that reading added.
fn without(expr: &Expr, hidden: &FxHashSet<&str>) -> Expr {
    let mut new = Expr::default();
    let mut moved: PerNode<ExprId> = PerNode::default();
    let is_hidden =
        |kind: &NodeKind| matches!(kind, NodeKind::Metric(name) if hidden.contains(&**name));
    for (_, node) in expr.nodes() {
        moved.push(match &node.kind {
            // The operand takes the place of the product.
            kind if is_hidden(kind) => ExprId(0),
            NodeKind::Binary { left, right, .. } if is_hidden(&expr.node(*right).kind) => {
                moved[*left]
            }
            kind => {
                let mut kind = kind.clone();
                kind.move_operands(|operand| moved[operand]);
                new.push(kind, node.span)
            }
        });
    }
    new
}

/// Definitions, each after those that it mentions. In a cycle this is impossible for some.
fn in_order(registry: &Registry) -> Vec<&Registered> {
    let mut ordered = Vec::new();
    let mut known: FxHashSet<&str> = FxHashSet::default();
    let mentions = |one: &Registered| -> Vec<&Registered> {
        let names = one.expr.nodes().filter_map(|(_, node)| name_in(node));
        names.filter_map(|(name, _)| registry.get(name)).collect()
    };
    for one in registry.all() {
        let mut way: Vec<(&Registered, Vec<&Registered>)> = Vec::new();
        if known.insert(&one.name) {
            way.push((one, mentions(one)));
        }
        while let Some((at, rest)) = way.last_mut() {
            match rest.pop() {
                Some(next) if known.insert(&next.name) => way.push((next, mentions(next))),
                Some(_) => {}
                None => {
                    ordered.push(*at);
                    way.pop();
                }
            }
        }
    }
    ordered
}

/// Labels that pmcd gives its host (`pmGetContextLabels(3)`).
const OF_PMCD: [&str; 5] = ["domainname", "groupid", "hostname", "machineid", "userid"];

/// Labels that sinks give to series of hosts. Groups of hosts have such a label only if a
/// target has it.
const OF_SERIES: [&str; 3] = ["instance", "instid", "instname"];

/// Reports labels of a `by` that no target has, if there are targets. Hosts may have such
/// labels themselves, but mostly they are misspelt.
pub fn unknown_labels(
    definitions: &FleetDefinitions,
    targets: &[Arc<Target>],
    diagnostics: &mut Diagnostics,
) {
    let mut known: Vec<&str> =
        targets.iter().flat_map(|target| target.labels.iter().map(|(name, _)| name)).collect();
    known.sort_unstable();
    known.dedup();
    if targets.is_empty() {
        return;
    }
    for label in &definitions.labels {
        let name = &*label.value;
        if OF_SERIES.contains(&name) {
            // A host without it would be in one group with others.
            let has =
                |target: &Arc<Target>| target.labels.get(name).is_some_and(|of| !of.is_empty());
            if !targets.iter().all(has) {
                diagnostics.push(by_instance(label));
            }
            continue;
        }
        if known.contains(&name) || OF_PMCD.contains(&name) {
            continue;
        }
        let message = format!("no target has a label `{name}`");
        let warning = Diagnostic::warning(Code::UnknownLabel, label.span, message);
        let meant = known.iter().copied().filter(|name| !OF_SERIES.contains(name));
        let near = nearest(name, meant.chain(OF_PMCD));
        let otherwise =
            "hosts whose own labels (pmcd's) lack it as well are one group, with an empty value";
        diagnostics.push(warning.meant(label.span, near, otherwise));
    }
}

/// The mistake of a `by` that would split the instances that an aggregate combines.
fn by_instance(label: &Spanned<Box<str>>) -> Diagnostic {
    let message = format!("`{}` is no label of hosts, by which they could be grouped", label.value);
    Diagnostic::error(Code::UnknownLabel, label.span, message)
        .label(label.span, "an aggregate takes hosts and all of their instances together")
        .help(
            "choose instances with `matchinst()` or `[...]`; what is to be one value for each host \
             is a definition of its group",
        )
}
