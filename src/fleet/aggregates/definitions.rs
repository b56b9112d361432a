//! Definitions over the fleet, as they are written, and as the evaluator computes
//! them: each aggregate across hosts stands for a metric of a source, whose name is
//! the aggregate's text, and everything else is an ordinary expression over these.
//!
//! ```text
//! racks.share = sum(shop.rate) by (rack) / sum(rate(shop.requests) / hinv.ncpu)
//!               └───── an aggregate ───┘ │     └── computed on each host ────┘
//!                                        └ the evaluator
//! ```
//!
//! How texts become this is in [`super::reading`].

use std::sync::Arc;

use pmderive_runtime::position::Per;
use rustc_hash::{FxHashMap, FxHashSet};

use super::aggregate::{Aggregate, AggregateId, GroupingId, OperandId};
use super::reading::{Found, Reader};
use crate::bind::{name_in, references};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registered, Registry, needed, report_cycles};
use crate::fleet::target::Target;
use crate::syntax::ast::{Expr, ExprId, Node, NodeKind, Spanned};
use crate::syntax::{nearest, print_expr};

/// Definitions over the fleet.
#[derive(Debug)]
pub struct Definitions {
    /// What the evaluator computes.
    pub(super) registry: Registry,
    /// Definitions, and after them expressions without a name.
    pub(super) selection: Box<[Arc<Registered>]>,
    pub(super) aggregates: Per<AggregateId, Aggregate>,
    pub(super) operands: Per<OperandId, Operand>,
    pub(super) groupings: Per<GroupingId, Box<[Box<str>]>>,
    labels: Box<[Spanned<Box<str>>]>,
    /// How definitions are written of which more is computed than that.
    pub(super) written: FxHashMap<Arc<str>, String>,
    pub(super) unchanged: Box<[Unchanged]>,
}

/// What an aggregate takes of each host.
#[derive(Clone, Debug)]
pub struct Operand {
    /// What it is called in frames: the name of a metric, or the text of an expression.
    pub name: Arc<str>,
    /// The expression, if hosts compute it for aggregates alone.
    pub computed: Option<Arc<Registered>>,
}

/// A metric that says where no members have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    /// Its name in expressions.
    pub name: Box<str>,
    /// The aggregates whose members these are.
    pub aggregates: Box<[AggregateId]>,
}

/// The metrics of hosts that definitions over the fleet may name.
#[derive(Clone, Debug, Default)]
pub struct HostMetrics<'n> {
    /// For each group of hosts, what is defined there.
    groups: Vec<FxHashSet<&'n str>>,
    /// Hosts may have others.
    is_open: bool,
}

impl<'n> HostMetrics<'n> {
    /// Those of these names, which all hosts have.
    pub fn of(names: impl IntoIterator<Item = &'n str>) -> HostMetrics<'n> {
        HostMetrics { groups: vec![names.into_iter().collect()], is_open: false }
    }

    /// Those that the definitions of each group have.
    pub fn of_groups(groups: impl IntoIterator<Item = &'n Registry>) -> HostMetrics<'n> {
        let groups = groups.into_iter().map(|registry| registry.names().collect()).collect();
        HostMetrics { groups, is_open: false }
    }

    /// Allows any other name that is not defined over the fleet: whether hosts have such
    /// a metric is found out when they are asked.
    #[must_use]
    pub fn and_others(self) -> HostMetrics<'n> {
        HostMetrics { is_open: true, ..self }
    }

    /// True for the name of a definition of hosts.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.groups.iter().any(|names| names.contains(name))
    }

    /// True if names that are not known may be metrics of hosts.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// True if the hosts of some group have all of these names.
    pub(super) fn has_together<'o>(&self, names: impl Iterator<Item = &'o str> + Clone) -> bool {
        self.is_open
            || self.groups.iter().any(|known| names.clone().all(|name| known.contains(name)))
    }

    /// All that are defined, by name.
    pub(super) fn names(&self) -> Vec<&'n str> {
        let mut names: Vec<&str> = self.groups.iter().flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Definitions {
    /// Reads the definitions of a registry as definitions over a fleet, of whose
    /// metrics `exported` gives the names. What cannot be one is reported and left
    /// out.
    pub fn new<'n>(
        registry: &Registry,
        exported: impl IntoIterator<Item = &'n str>,
        diagnostics: &mut Diagnostics,
    ) -> Definitions {
        Definitions::read(registry, &[], &HostMetrics::of(exported), diagnostics)
    }

    /// Reads definitions, and expressions without a name that are evaluated, too, with all
    /// that may be known of hosts' metrics. What texts alone tell of mistakes is reported.
    pub fn read(
        registry: &Registry,
        expressions: &[Arc<Registered>],
        hosts: &HostMetrics<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Definitions {
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
        let Found { aggregates, operands, groupings, labels, unchanged } = reader.into_found();
        report_cycles(registry, diagnostics);
        let all = registry.definitions().iter().chain(expressions);
        let written = all.map(|one| (&one.name, &*one.expr));
        let expressions = computed;
        let read: FxHashMap<&str, Expr> =
            read.into_iter().map(|(one, expr)| (&*one.name, expr)).collect();
        let is_difference =
            |(_, node): (ExprId, &Node)| matches!(node.kind, NodeKind::Temporal { .. });
        let with_aggregates = registry.with_expressions(|one| read.get(&*one.name).cloned());
        let written = written.filter(|(_, expr)| expr.nodes().any(is_difference));
        let written = written.map(|(name, expr)| (Arc::clone(name), print_expr(expr))).collect();
        let registry = with_aggregates;
        let selection = registry.definitions().iter().cloned().chain(expressions).collect();
        Definitions {
            registry,
            selection,
            aggregates,
            operands,
            groupings,
            labels: labels.into(),
            written,
            unchanged: unchanged.into(),
        }
    }

    /// The aggregates of all definitions, each once.
    pub fn aggregates(&self) -> &Per<AggregateId, Aggregate> {
        &self.aggregates
    }

    /// What aggregates take of hosts, each once.
    pub fn operands(&self) -> &Per<OperandId, Operand> {
        &self.operands
    }

    /// The labels of each different `by`; none for all hosts together.
    pub fn groupings(&self) -> &Per<GroupingId, Box<[Box<str>]>> {
        &self.groupings
    }

    /// Each label that a `by` names, where that is written first.
    pub fn labels(&self) -> &[Spanned<Box<str>>] {
        &self.labels
    }

    /// Names of the definitions, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registry.names()
    }

    /// The definition of a name.
    pub fn named(&self, name: &str) -> Option<&Arc<Registered>> {
        self.registry.definition(name)
    }

    /// What is evaluated: definitions, and after them expressions without a name.
    pub fn selection(&self) -> &[Arc<Registered>] {
        &self.selection
    }

    /// What hosts compute for aggregates alone, as far as hosts with these definitions
    /// have all metrics that are in it; with `is_open` whatever else it mentions is
    /// asked of the host.
    pub fn computed_by<'d>(&'d self, hosts: &Registry, is_open: bool) -> Vec<&'d Registered> {
        let computed = self.operands.iter().filter_map(|operand| operand.computed.as_deref());
        let has_all = |one: &&Registered| {
            is_open
                || references(&one.expr)
                    .all(|reference| !reference.wants_value || hosts.get(reference.name).is_some())
        };
        computed.filter(has_all).collect()
    }

    /// Names of what some of the definitions take of hosts, directly or not.
    pub fn operands_of(&self, is_wanted: impl Fn(&Registered) -> bool) -> FxHashSet<&str> {
        let chosen = self.selection.iter().map(|one| &**one).filter(|one| is_wanted(one));
        let chosen: Vec<&Registered> = chosen.collect();
        let needed = needed(&self.registry, &chosen);
        let texts: FxHashSet<&str> =
            needed.iter().flat_map(|one| references(&one.expr)).map(|one| one.name).collect();
        let used = self.aggregates.iter().filter(|one| texts.contains(&*one.text));
        used.map(|one| &*self.operands[one.operand].name).collect()
    }

    /// How a definition is computed: its expression over aggregates, which are
    /// spelled as they are written.
    pub fn computed(&self, name: &str) -> Option<String> {
        self.registry.get(name).map(|one| print_expr(&one.expr))
    }

    /// True if they are the same as others, so that results go on with these.
    pub fn is_same(&self, other: &Definitions) -> bool {
        let same = |a: &Arc<Registered>, b: &Arc<Registered>| {
            a.name == b.name && print_expr(&a.expr) == print_expr(&b.expr)
        };
        let (own, others) = (&self.selection, &other.selection);
        let texts = |one: &Definitions| -> Vec<Box<str>> {
            one.aggregates.iter().map(|aggregate| aggregate.text.clone()).collect()
        };
        texts(self) == texts(other)
            && own.len() == others.len()
            && own.iter().zip(others).all(|(a, b)| same(a, b))
    }
}

/// Definitions by their names, those that others mention first. Of a cycle some come before what they mention.
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

/// Labels that pmcd gives its host by itself (`pmGetContextLabels(3)`).
const OF_PMCD: [&str; 5] = ["domainname", "groupid", "hostname", "machineid", "userid"];

/// Warns of labels of a `by` that no target has, unless there are no targets: hosts
/// may have them themselves, but mostly they are misspelled.
pub fn unknown_labels(
    definitions: &Definitions,
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
    for label in definitions.labels() {
        let name = &*label.value;
        if known.contains(&name) || OF_PMCD.contains(&name) {
            continue;
        }
        let message = format!("no target has a label `{name}`");
        let warning = Diagnostic::warning(Code::UnknownLabel, label.span, message);
        let near = nearest(name, known.iter().copied().chain(OF_PMCD));
        diagnostics.push(match near {
            Some(near) => warning.help(format!("did you mean `{near}`?")).guess(label.span, near),
            None => warning.help(
                "hosts whose own labels (pmcd's) lack it as well are one group, with an empty \
                 value",
            ),
        });
    }
}
