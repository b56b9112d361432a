//! Reads an expression over the fleet. It finds the aggregates across hosts, their operands on
//! each host, and the rest for the evaluator.
//!
//! The operand of an aggregate with `by` is computed on each host. So is one without `by` that
//! has bare metrics of hosts and nothing of the fleet in it. A difference over time has no
//! value if the members of a group have changed: `rate(e)` becomes `rate(e) * unchanged`. There
//! `unchanged` is a metric of the fleet that is 1 for groups with the same members.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::aggregate::{Aggregate, AggregateId, Function};
use super::definitions::FleetDefinitions;
use super::evaluate::{counts_of_hosts, of_hosts_counted};
use super::host_metrics::HostMetrics;
use super::operand::OperandId;
use crate::bind::name_in;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::engine::{Registered, Registry};
use crate::syntax::ast::{
    self, BinaryOp, Callee, Expr, ExprId, Literal, Node, NodeKind, PerNode, Spanned, Temporal,
};
use crate::syntax::{nearest_after, print_expr};
use crate::text::Span;

/// Names of labels, as written.
type Written = [Spanned<Box<str>>];

/// An operand: the values of each host that an aggregate combines.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its name in frames: the name of a metric, or the text of an expression.
    pub name: Arc<str>,
    /// The expression, if hosts compute it for aggregates alone.
    pub computed: Option<Arc<Registered>>,
    /// The aggregates that take it, ascending.
    pub aggregates: Vec<AggregateId>,
}

/// A metric that is 1 for groups whose members have not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    /// Its name in expressions.
    pub name: Box<str>,
    /// The aggregates with these members.
    pub aggregates: Box<[AggregateId]>,
}

/// Reads definitions over the fleet, each after those that it mentions.
pub(super) struct Reader<'r> {
    registry: &'r Registry,
    hosts: &'r HostMetrics<'r>,
    diagnostics: &'r mut Diagnostics,
    by_text: FxHashMap<Box<str>, AggregateId>,
    by_name: FxHashMap<Arc<str>, OperandId>,
    /// Names of the metrics about unchanged members.
    unchanged: FxHashSet<Box<str>>,
    found: FleetDefinitions,
    /// The aggregates that each definition needs, direct or not.
    used: FxHashMap<Arc<str>, Vec<AggregateId>>,
    /// The definition being read. Its own name in it means something else.
    current: Arc<str>,
    /// Number of unknown names without a message: the mistakes of their definitions are
    /// reported already.
    untold: usize,
}

/// An expression that contains aggregates across hosts.
struct Parts<'e> {
    expr: &'e Expr,
    /// The first node below each node; the nodes between are below it as well.
    first: PerNode<ExprId>,
    /// Labels and place of each `by`, by the call before it.
    labels: FxHashMap<ExprId, (&'e Written, Span)>,
    /// Operands of aggregates that are computed on each host.
    on_hosts: FxHashMap<ExprId, Operand>,
    /// True for all nodes of such operands.
    is_on_hosts: PerNode<bool>,
}

/// An aggregate in an expression.
struct Call<'e> {
    function: Function,
    operand: Operand,
    span: Span,
    labels: &'e Written,
}

impl<'r> Reader<'r> {
    /// A reader that knows the definitions' names and the metrics of hosts.
    pub fn new(
        registry: &'r Registry,
        hosts: &'r HostMetrics<'r>,
        diagnostics: &'r mut Diagnostics,
    ) -> Reader<'r> {
        Reader {
            registry,
            hosts,
            diagnostics,
            by_text: FxHashMap::default(),
            by_name: FxHashMap::default(),
            unchanged: FxHashSet::default(),
            found: FleetDefinitions::none(registry.language()),
            used: FxHashMap::default(),
            current: Arc::default(),
            untold: 0,
        }
    }

    /// The parts of all definitions.
    pub fn into_found(self) -> FleetDefinitions {
        self.found
    }

    /// The expression over aggregates; `None` if there is a mistake.
    pub fn definition(&mut self, one: &Registered) -> Option<Expr> {
        let (before, mistakes) = (self.diagnostics.len(), self.mistakes());
        self.current = Arc::clone(&one.name);
        let mut used: Vec<AggregateId> = Vec::new();
        if one.is_named && self.hosts.defines(&one.name) {
            let message = format!("`{}` is a metric of the hosts already", one.name);
            self.diagnostics.push(
                Diagnostic::error(Code::FleetOperand, one.name_span, message)
                    .help("give one of them another name"),
            );
        }
        let expr = self.rewritten(&one.expr, &mut used);
        if one.is_named {
            used.sort_unstable();
            used.dedup();
            self.used.insert(Arc::clone(&one.name), used);
            self.diagnostics.name_metric(before, &one.name);
        }
        Some(expr).filter(|_| self.mistakes() == mistakes)
    }

    /// The number of mistakes, reported or not.
    fn mistakes(&self) -> usize {
        self.diagnostics.len() + self.untold
    }

    fn rewritten(&mut self, expr: &Expr, all_used: &mut Vec<AggregateId>) -> Expr {
        let parts = self.parts(expr);
        let mut new = Expr::default();
        let mut moved: PerNode<ExprId> = PerNode::default();
        // Nodes with the aggregates that they need, in the order of the nodes.
        let mut used: Vec<(ExprId, AggregateId)> = Vec::new();
        for (id, node) in expr.nodes() {
            if parts.is_on_hosts[id] {
                // The aggregate takes its place.
                moved.push(ExprId(0));
                continue;
            }
            let span = node.span;
            let (by, whole) = parts.labels.get(&id).copied().unzip();
            let mut aggregate = None;
            let to = match &node.kind {
                NodeKind::Grouped { operand, .. } => moved[*operand],
                kind => {
                    if let Some(call) = self.call(kind, by, &parts) {
                        let at = self.aggregate(call);
                        aggregate = Some(at);
                        used.push((id, at));
                    } else if let Some(labels) = by {
                        self.not_of_hosts(&parts, node, labels);
                    } else {
                        let needed = self.check_names(node);
                        used.extend(needed.iter().map(|at| (id, *at)));
                    }
                    match aggregate {
                        Some(at) => {
                            let text = self.found.aggregates[at].text.clone();
                            new.push(NodeKind::Metric(text.into()), whole.unwrap_or(span))
                        }
                        None => {
                            let mut kind = kind.clone();
                            kind.move_operands(|operand| moved[operand]);
                            new.push(kind, span)
                        }
                    }
                }
            };
            let is_difference = matches!(
                node.kind,
                NodeKind::Temporal { function: Temporal::Delta | Temporal::Rate, .. }
            );
            let unchanged = match is_difference {
                true => {
                    let below = parts.first[id];
                    let start = used.partition_point(|(at, _)| *at < below);
                    self.unchanged(used[start..].iter().map(|(_, aggregate)| *aggregate))
                }
                false => None,
            };
            let to = match unchanged {
                Some(name) => {
                    let right = new.push(NodeKind::Metric(name.into()), span);
                    let op = BinaryOp::Mul;
                    new.push(NodeKind::Binary { op, op_span: span, left: to, right }, span)
                }
                None => to,
            };
            moved.push(to);
        }
        all_used.extend(used.into_iter().map(|(_, aggregate)| aggregate));
        new
    }

    /// Finds the parts that are computed on each host, from the whole to its parts. An
    /// aggregate in the operand of another belongs to that.
    fn parts<'e>(&mut self, expr: &'e Expr) -> Parts<'e> {
        let mut parts = Parts {
            expr,
            first: expr.first_below(),
            labels: FxHashMap::default(),
            on_hosts: FxHashMap::default(),
            is_on_hosts: PerNode::all(expr.len(), false),
        };
        for (_, node) in expr.nodes() {
            if let NodeKind::Grouped { operand, labels } = &node.kind {
                parts.labels.insert(*operand, (labels, node.span));
            }
        }
        for (id, node) in expr.nodes().rev() {
            let NodeKind::Call { callee, operands, .. } = &node.kind else { continue };
            let [operand] = operands[..] else { continue };
            if parts.is_on_hosts[id] || !callee.takes_by() {
                continue;
            }
            let has_by = parts.labels.contains_key(&id);
            let found = match &expr.node(operand).kind {
                NodeKind::Metric(name) => self.host_metric(name, expr.node(operand).span),
                _ if has_by || self.is_of_hosts(&parts, operand) => {
                    Some(self.host_expression(&parts, operand))
                }
                _ => None,
            };
            if let Some(found) = found {
                for at in parts.below(operand) {
                    parts.is_on_hosts[at] = true;
                }
                parts.on_hosts.insert(operand, found);
            }
        }
        parts
    }

    /// True if a name may be a metric of hosts, not of the fleet.
    fn is_host_metric(&self, name: &str) -> bool {
        let may_have = self.hosts.is_open() && !of_hosts_counted(name);
        self.hosts.defines(name) || may_have && self.registry.get(name).is_none()
    }

    /// A metric of hosts as an operand.
    fn host_metric(&self, name: &str, span: Span) -> Option<Operand> {
        if !self.is_host_metric(name) {
            return None;
        }
        let computed = (!self.hosts.defines(name)).then(|| {
            let mut expr = Expr::default();
            expr.push(NodeKind::Metric(name.into()), span);
            Arc::new(Registered::unnamed(expr, span))
        });
        Some(Operand { name: Arc::from(name), computed, aggregates: Vec::new() })
    }

    /// True for an operand of an aggregate without `by` that can only belong to hosts. It has
    /// bare metrics of hosts, and neither aggregates of these nor names of the fleet.
    fn is_of_hosts(&self, parts: &Parts<'_>, operand: ExprId) -> bool {
        let mut bare = false;
        for at in parts.below(operand) {
            let node = parts.expr.node(at);
            match &node.kind {
                NodeKind::Metric(name) if self.is_host_metric(name) => bare = true,
                NodeKind::Grouped { .. } | NodeKind::Aggregate { .. } => return false,
                NodeKind::Call { callee, .. } if callee.takes_by() => return false,
                _ => {}
            }
            let is_of_fleet = |(name, _): (&str, Span)| {
                !self.is_host_metric(name) && self.registry.get(name).is_some()
            };
            if name_in(node).is_some_and(is_of_fleet) {
                return false;
            }
        }
        bare
    }

    /// An expression as an operand; its mistakes are reported.
    fn host_expression(&mut self, parts: &Parts<'_>, operand: ExprId) -> Operand {
        let start = parts.first[operand];
        let span = parts.expr.node(operand).span;
        let before = self.mistakes();
        let mut expr = Expr::default();
        let mut names: Vec<&str> = Vec::new();
        for at in parts.below(operand) {
            let node = parts.expr.node(at);
            if let NodeKind::Grouped { labels, .. } = &node.kind {
                self.grouped_on_hosts(node.span, labels);
            }
            if let Some((name, place)) = name_in(node) {
                let is_question = matches!(node.kind, NodeKind::Defined(_));
                if self.is_host_metric(name) {
                    names.extend((!is_question).then_some(name));
                } else if self.registry.get(name).is_some() {
                    self.of_fleet(name, place);
                } else if !is_question {
                    self.unknown(name, place);
                }
            }
            let mut kind = node.kind.clone();
            kind.move_operands(|operand| ExprId(operand.0 - start.0));
            expr.push(kind, node.span);
        }
        if self.mistakes() == before {
            if names.is_empty() {
                let message = "this is the same on each host";
                self.diagnostics.push(
                    Diagnostic::error(Code::FleetOperand, span, message)
                        .label(span, "no metric of the hosts is in it")
                        .help(
                            "an aggregate takes what hosts have: a metric of theirs, or an \
                               expression with one in it",
                        ),
                );
            } else if !self.hosts.has_together(names.iter().copied()) {
                names.sort_unstable();
                names.dedup();
                let message = "no group of hosts has all of these metrics";
                self.diagnostics.push(
                    Diagnostic::error(Code::FleetOperand, span, message)
                        .label(span, format!("needs {} on one host", names.join(", ")))
                        .help(
                            "the expression is computed on each host, with the definitions of \
                               its group",
                        ),
                );
            }
        }
        let name: Arc<str> = print_expr(&expr).into();
        let computed = Some(Arc::new(Registered::unnamed(expr, span)));
        Operand { name, computed, aggregates: Vec::new() }
    }

    /// The aggregate across hosts at a node, if there is one.
    fn call<'e>(
        &self,
        kind: &NodeKind,
        labels: Option<&'e Written>,
        parts: &Parts<'_>,
    ) -> Option<Call<'e>> {
        let labels = labels.unwrap_or_default();
        let of = |function| match function {
            ast::Aggregate::Avg => Function::Avg,
            ast::Aggregate::Count => Function::Count,
            ast::Aggregate::Max => Function::Extreme { greatest: true },
            ast::Aggregate::Min => Function::Extreme { greatest: false },
            ast::Aggregate::Sum => Function::Sum,
        };
        match kind {
            NodeKind::Aggregate { function, metric } => {
                let operand = self.host_metric(&metric.value, metric.span)?;
                Some(Call { function: of(*function), operand, span: metric.span, labels })
            }
            NodeKind::Call { callee, literal, operands } => {
                let id = operands.first()?;
                let operand = parts.on_hosts.get(id)?.clone();
                let literal = literal.as_ref().map(|literal| &literal.value);
                let function = match (callee, literal, callee.name()) {
                    (Callee::Aggregate(function), ..) => of(*function),
                    (_, Some(Literal::Rank(k)), "topk") => Function::Ranked { k: *k, top: true },
                    (_, Some(Literal::Rank(k)), "bottomk") => {
                        Function::Ranked { k: *k, top: false }
                    }
                    (_, Some(Literal::Fraction(q)), "quantile") => {
                        Function::Quantile(q.value.as_f64())
                    }
                    _ => return None,
                };
                Some(Call { function, operand, span: parts.expr.node(*id).span, labels })
            }
            _ => None,
        }
    }

    /// The position of an aggregate, which may be new.
    fn aggregate(&mut self, call: Call<'_>) -> AggregateId {
        let text = text_of(&call);
        if let Some(at) = self.by_text.get(&text) {
            return *at;
        }
        let FleetDefinitions { aggregates, operands, groupings, labels: known_labels, .. } =
            &mut self.found;
        let known = self.by_name.entry(Arc::clone(&call.operand.name));
        let operand = *known.or_insert_with(|| operands.push(call.operand));
        for label in call.labels {
            if known_labels.iter().all(|known| known.value != label.value) {
                known_labels.push(label.clone());
            }
        }
        let labels: Box<[Box<str>]> = call.labels.iter().map(|one| one.value.clone()).collect();
        let known = groupings.position(|one| *one == labels);
        let grouping = known.unwrap_or_else(|| groupings.push(labels));
        let (function, span) = (call.function, call.span);
        let new = Aggregate { text: text.clone(), function, operand, grouping, span };
        let at = aggregates.push(new);
        operands[operand].aggregates.push(at);
        self.by_text.insert(text, at);
        at
    }

    /// Name of the metric that tells where the members of these aggregates have not changed.
    /// `None` if that does not matter, as in a ranking, whose instances are those of hosts.
    fn unchanged(&mut self, aggregates: impl Iterator<Item = AggregateId>) -> Option<Box<str>> {
        let FleetDefinitions { aggregates: all, unchanged, .. } = &mut self.found;
        let is_group = |at: &AggregateId| !all[*at].function.is_ranked();
        let mut aggregates: Vec<AggregateId> = aggregates.filter(is_group).collect();
        aggregates.sort_unstable();
        aggregates.dedup();
        if aggregates.is_empty() {
            return None;
        }
        let texts: Vec<&str> = aggregates.iter().map(|at| &*all[*at].text).collect();
        let name: Box<str> = format!("unchanged members of {}", texts.join(", ")).into();
        if self.unchanged.insert(name.clone()) {
            unchanged.push(Unchanged { name: name.clone(), aggregates: aggregates.into() });
        }
        Some(name)
    }

    /// Reports unknown names. Returns the aggregates that the definition of a name needs.
    fn check_names(&mut self, node: &Node) -> Vec<AggregateId> {
        let Some((name, span)) = name_in(node) else { return Vec::new() };
        let is_of_hosts = self.is_host_metric(name);
        if let Some(used) = self.used.get(name).filter(|_| !is_of_hosts) {
            return used.clone();
        }
        if is_of_hosts && matches!(node.kind, NodeKind::Metric(_)) {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::FleetOperand,
                    span,
                    format!("`{name}` has values on each host, and is not aggregated"),
                )
                .label(span, "stands for as many values as there are hosts and instances")
                .help(format!(
                    "take an aggregate of it, as in `sum({name}) by (rack)`; what is to be \
                     computed on each host before stands in the aggregate, as in \
                     `sum({name} * 2) by (rack)`"
                )),
            );
        } else if !is_of_hosts && self.registry.get(name).is_none() {
            let is_question = matches!(node.kind, NodeKind::Defined(_));
            if !is_question {
                self.unknown(name, span);
            }
        }
        Vec::new()
    }

    /// Reports an unknown name, unless its definition has a reported mistake.
    fn unknown(&mut self, name: &str, span: Span) {
        let is_of_it = |one: &Diagnostic| one.metric.as_deref() == Some(name);
        if self.diagnostics.iter().any(|one| one.severity == Severity::Error && is_of_it(one)) {
            self.untold += 1;
            return;
        }
        if of_hosts_counted(name) {
            let message = format!("definitions cannot take `{name}`");
            let help = "it is exported beside the values: compute with it in Prometheus, for \
                        example; `count(METRIC) by (LABEL)` counts the hosts that have a metric";
            self.diagnostics.push(
                Diagnostic::error(Code::FleetOperand, span, message)
                    .label(span, "is counted beside aggregates, when they have been computed")
                    .help(help),
            );
            return;
        }
        let message = format!("no definition of a group is called `{name}`");
        let diagnostic = Diagnostic::error(Code::UnknownMetric, span, message);
        let known = self.hosts.names().into_iter().chain(self.registry.names());
        let counted: Vec<&str> = counts_of_hosts().collect();
        let known = known.chain(counted);
        let known = known.filter(|known| **known != *self.current);
        let near = nearest_after(self.diagnostics.len(), name, known);
        let last = name.rsplit('.').next().unwrap_or(name);
        let otherwise = format!(
            "define it for the hosts first, as in `own.{last} = {name}` (`definitions` of their \
             group, or -c), and take `own.{last}` here"
        );
        let diagnostic = diagnostic.meant(span, near, otherwise);
        self.diagnostics.push(diagnostic);
    }

    /// Reports a name of the fleet in an operand that hosts compute.
    fn of_fleet(&mut self, name: &str, span: Span) {
        let message = format!("`{name}` has no hosts to group");
        self.diagnostics.push(
            Diagnostic::error(Code::FleetOperand, span, message)
                .label(span, "defined over the fleet, and this is computed on each host")
                .help(
                    "what stands in an aggregate with `by` is of one host; compute with the \
                     groups outside of it",
                ),
        );
    }

    /// Reports a `by` in an operand that hosts compute.
    fn grouped_on_hosts(&mut self, span: Span, labels: &Written) {
        self.diagnostics.push(
            Diagnostic::error(Code::FleetOperand, of_labels(span, labels), "groups of groups")
                .label(span, "is computed on each host, and a single host has no groups")
                .help("name this aggregate, and compute with its groups without a second `by`"),
        );
    }

    /// Reports a `by` behind something other than an aggregate of hosts' metrics.
    fn not_of_hosts(&mut self, parts: &Parts<'_>, node: &Node, labels: &Written) {
        let named = match &node.kind {
            NodeKind::Call { operands, .. } => operands.first().map(|one| parts.expr.node(*one)),
            _ => Some(node),
        };
        let named = named.and_then(name_in);
        if let Some((name, place)) = named
            && self.registry.get(name).is_none()
        {
            // An operand that is a node of its own was reported before.
            if let NodeKind::Aggregate { .. } = node.kind {
                self.unknown(name, place);
            }
            return;
        }
        let message = match named {
            Some((name, _)) => format!("`{name}` has no hosts to group"),
            None => "only what hosts have can be grouped".to_owned(),
        };
        self.diagnostics.push(
            Diagnostic::error(Code::FleetOperand, of_labels(node.span, labels), message)
                .label(node.span, "defined over the fleet, not on each host")
                .help(
                    "labels are those of hosts: group what hosts have, and compute with the groups",
                ),
        );
    }
}

impl Parts<'_> {
    /// A node and all nodes below it.
    fn below(&self, node: ExprId) -> impl Iterator<Item = ExprId> + use<> {
        (self.first[node].0..=node.0).map(ExprId)
    }
}

/// The place of the labels of a `by`.
fn of_labels(span: Span, labels: &Written) -> Span {
    match labels {
        [first, .., last] => first.span.to(last.span),
        [only] => only.span,
        [] => span,
    }
}

/// The text of an aggregate, as the formatter writes it.
fn text_of(call: &Call<'_>) -> Box<str> {
    let operand = &call.operand.name;
    let mut text = match call.function {
        Function::Count => format!("count({operand})"),
        Function::Sum => format!("sum({operand})"),
        Function::Avg => format!("avg({operand})"),
        Function::Extreme { greatest: true } => format!("max({operand})"),
        Function::Extreme { greatest: false } => format!("min({operand})"),
        Function::Ranked { k, top: true } => format!("topk({k}, {operand})"),
        Function::Ranked { k, top: false } => format!("bottomk({k}, {operand})"),
        Function::Quantile(q) => format!("quantile({q}, {operand})"),
    };
    if !call.labels.is_empty() {
        let labels: Vec<&str> = call.labels.iter().map(|label| &*label.value).collect();
        text.push_str(&format!(" by ({})", labels.join(", ")));
    }
    text.into()
}
