//! Definitions over the fleet, as they are written, and as the evaluator computes
//! them: each aggregate across hosts stands for a metric of a source, whose name is
//! the aggregate's text, and everything else is an ordinary expression over these.
//!
//! ```text
//! racks.share = sum(shop.rate) by (rack) / sum(shop.rate)
//!               └───────── aggregates, from frames ─────┘   the quotient: evaluator
//! ```
//!
//! A difference over time is taken away where the members of a group have changed:
//! `rate(e)` becomes `rate(e) * unchanged`, where `unchanged` is a metric of the
//! same source that has a value of 1 for the groups of which that is not so.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::aggregate::{Aggregate, Function};
use crate::bind::name_in;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registered, Registry};
use crate::syntax::ast::{
    self, BinaryOp, Callee, Expr, ExprId, Literal, NodeKind, NumberValue, Spanned, Temporal,
};
use crate::syntax::{nearest, print_expr};
use crate::text::Span;

/// Definitions over the fleet.
#[derive(Debug)]
pub struct Definitions {
    /// What the evaluator computes.
    pub(super) registry: Registry,
    pub(super) aggregates: Box<[Aggregate]>,
    pub(super) operands: Box<[Arc<str>]>,
    pub(super) groupings: Box<[Box<[Box<str>]>]>,
    pub(super) unchanged: Box<[Unchanged]>,
}

/// A metric that says where no members have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    /// Its name in expressions.
    pub name: Box<str>,
    /// Positions of the aggregates whose members these are.
    pub aggregates: Box<[usize]>,
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
        let exported: FxHashSet<&str> = exported.into_iter().collect();
        let mut reader = Reader {
            registry,
            exported: &exported,
            diagnostics,
            aggregates: Vec::new(),
            by_text: FxHashMap::default(),
            operands: Vec::new(),
            groupings: Vec::new(),
            unchanged: Vec::new(),
            used: FxHashMap::default(),
        };
        let mut read: FxHashMap<Arc<str>, Expr> = FxHashMap::default();
        for one in in_order(registry) {
            let first = reader.diagnostics.len();
            let expr = reader.definition(one);
            reader.diagnostics.name_metric(first, &one.name);
            if let Some(expr) = expr {
                read.insert(Arc::clone(&one.name), expr);
            }
        }
        let Reader { aggregates, operands, groupings, unchanged, .. } = reader;
        Definitions {
            registry: registry.with_expressions(|one| read.get(&one.name).cloned()),
            aggregates: aggregates.into(),
            operands: operands.into(),
            groupings: groupings.into(),
            unchanged: unchanged.into(),
        }
    }

    /// The aggregates of all definitions, each once.
    pub fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates
    }

    /// Names of the exported metrics that aggregates take.
    pub fn operands(&self) -> &[Arc<str>] {
        &self.operands
    }

    /// The labels of each different `by`; none for all hosts together.
    pub fn groupings(&self) -> &[Box<[Box<str>]>] {
        &self.groupings
    }

    /// Names of the definitions, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registry.names()
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
        let (own, others) = (self.registry.definitions(), other.registry.definitions());
        let texts = |one: &Definitions| -> Vec<Box<str>> {
            one.aggregates.iter().map(|aggregate| aggregate.text.clone()).collect()
        };
        texts(self) == texts(other)
            && own.len() == others.len()
            && own.iter().zip(others).all(|(a, b)| same(a, b))
    }
}

/// Definitions by their names, those that others mention first. Of a cycle, which
/// the engine reports, some come before what they mention.
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

struct Reader<'r> {
    registry: &'r Registry,
    exported: &'r FxHashSet<&'r str>,
    diagnostics: &'r mut Diagnostics,
    aggregates: Vec<Aggregate>,
    by_text: FxHashMap<Box<str>, usize>,
    operands: Vec<Arc<str>>,
    groupings: Vec<Box<[Box<str>]>>,
    unchanged: Vec<Unchanged>,
    /// For each definition the aggregates that it needs, directly or not.
    used: FxHashMap<Arc<str>, Vec<usize>>,
}

/// An aggregate as it stands in an expression.
struct Call<'e> {
    function: Function,
    operand: &'e Spanned<Box<str>>,
    labels: &'e [Spanned<Box<str>>],
}

impl<'r> Reader<'r> {
    /// The expression over aggregates; none where something is wrong.
    fn definition(&mut self, one: &'r Registered) -> Option<Expr> {
        let before = self.diagnostics.len();
        let mut used: Vec<usize> = Vec::new();
        if self.exported.contains(&*one.name) {
            let message = format!("`{}` is a metric of the hosts already", one.name);
            self.diagnostics.push(
                Diagnostic::error(Code::FleetOperand, one.name_span, message)
                    .help("give one of them another name"),
            );
        }
        let expr = self.rewritten(&one.expr, &mut used);
        used.sort_unstable();
        used.dedup();
        self.used.insert(Arc::clone(&one.name), used);
        Some(expr).filter(|_| self.diagnostics.len() == before)
    }

    fn rewritten(&mut self, expr: &Expr, all_used: &mut Vec<usize>) -> Expr {
        let mut labels: FxHashMap<ExprId, &[Spanned<Box<str>>]> = FxHashMap::default();
        // Names that stand as the argument of an aggregate of a fleet.
        let mut taken: FxHashMap<ExprId, Spanned<Box<str>>> = FxHashMap::default();
        for (_, node) in expr.nodes() {
            match &node.kind {
                NodeKind::Grouped { operand, labels: names } => {
                    labels.insert(*operand, names);
                }
                NodeKind::Call { callee: Callee::Function(function), operands, .. }
                    if function.takes_by =>
                {
                    if let [operand] = operands[..]
                        && let NodeKind::Metric(name) = &expr.node(operand).kind
                        && self.exported.contains(&**name)
                    {
                        let span = expr.node(operand).span;
                        taken.insert(operand, Spanned { value: name.clone(), span });
                    }
                }
                _ => {}
            }
        }
        let mut new = Expr::default();
        let mut moved: Vec<ExprId> = Vec::with_capacity(expr.len());
        // For each node the first one below it: what is below it comes between.
        let mut first: Vec<usize> = Vec::with_capacity(expr.len());
        // Nodes with the aggregates that they need, in their order.
        let mut used: Vec<(usize, usize)> = Vec::new();
        for (id, node) in expr.nodes() {
            let mut below = id.0 as usize;
            expr.operands(id, |operand| below = below.min(first[operand.0 as usize]));
            first.push(below);
            let span = node.span;
            let by = labels.get(&id).copied();
            let mut aggregate = None;
            let to = match &node.kind {
                NodeKind::Metric(_) if taken.contains_key(&id) => ExprId(0),
                NodeKind::Grouped { operand, .. } => moved[operand.0 as usize],
                kind => {
                    if let Some(call) = self.call(kind, by, &taken) {
                        let at = self.aggregate(&call);
                        aggregate = Some(at);
                        used.push((id.0 as usize, at));
                    } else if let Some(labels) = by {
                        self.not_of_hosts(kind, span, labels);
                    } else {
                        let needed = self.check_names(node);
                        used.extend(needed.iter().map(|at| (id.0 as usize, *at)));
                    }
                    match aggregate {
                        Some(at) => {
                            let text = self.aggregates[at].text.clone();
                            new.push(NodeKind::Metric(text), span)
                        }
                        None => {
                            let mut kind = kind.clone();
                            kind.move_operands(|operand| moved[operand.0 as usize]);
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
                    let start = used.partition_point(|(at, _)| *at < below);
                    self.unchanged(used[start..].iter().map(|(_, aggregate)| *aggregate))
                }
                false => None,
            };
            let to = match unchanged {
                Some(name) => {
                    let right = new.push(NodeKind::Metric(name), span);
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

    /// The aggregate across hosts that a node is, if it is one.
    fn call<'e>(
        &self,
        kind: &'e NodeKind,
        labels: Option<&'e [Spanned<Box<str>>]>,
        taken: &'e FxHashMap<ExprId, Spanned<Box<str>>>,
    ) -> Option<Call<'e>> {
        let labels = labels.unwrap_or_default();
        match kind {
            NodeKind::Aggregate { function, metric } => {
                let function = match function {
                    ast::Aggregate::Avg => Function::Avg,
                    ast::Aggregate::Count => Function::Count,
                    ast::Aggregate::Max => Function::Extreme { greatest: true },
                    ast::Aggregate::Min => Function::Extreme { greatest: false },
                    ast::Aggregate::Sum => Function::Sum,
                };
                let call = Call { function, operand: metric, labels };
                Some(call).filter(|_| self.exported.contains(&*metric.value))
            }
            NodeKind::Call { callee: Callee::Function(callee), literal, operands } => {
                let operand = taken.get(operands.first()?)?;
                let function = match (&literal.as_ref()?.value, callee.name) {
                    (Literal::Rank(k), "topk") => Function::Ranked { k: *k, top: true },
                    (Literal::Rank(k), "bottomk") => Function::Ranked { k: *k, top: false },
                    (Literal::Fraction(q), "quantile") => Function::Quantile(match q.value {
                        NumberValue::Integer(value) => f64::from(value),
                        NumberValue::Double(value) => value,
                    }),
                    _ => return None,
                };
                Some(Call { function, operand, labels })
            }
            _ => None,
        }
    }

    /// Position of an aggregate, which is new if its text is.
    fn aggregate(&mut self, call: &Call<'_>) -> usize {
        let text = text_of(call);
        if let Some(at) = self.by_text.get(&text) {
            return *at;
        }
        let operand = &call.operand.value;
        let known = self.operands.iter().position(|one| **one == **operand);
        let operand = known.unwrap_or_else(|| {
            self.operands.push(Arc::from(&**operand));
            self.operands.len() - 1
        });
        let labels: Box<[Box<str>]> = call.labels.iter().map(|one| one.value.clone()).collect();
        let known = self.groupings.iter().position(|one| *one == labels);
        let grouping = known.unwrap_or_else(|| {
            self.groupings.push(labels);
            self.groupings.len() - 1
        });
        self.by_text.insert(text.clone(), self.aggregates.len());
        let (function, span) = (call.function, call.operand.span);
        self.aggregates.push(Aggregate { text, function, operand, grouping, span });
        self.aggregates.len() - 1
    }

    /// Name of the metric that says where the members of these have not changed;
    /// none where that does not matter: instances of a ranking are those of hosts.
    fn unchanged(&mut self, aggregates: impl Iterator<Item = usize>) -> Option<Box<str>> {
        let is_group = |at: &usize| !self.aggregates[*at].function.is_ranked();
        let mut aggregates: Vec<usize> = aggregates.filter(is_group).collect();
        aggregates.sort_unstable();
        aggregates.dedup();
        if aggregates.is_empty() {
            return None;
        }
        let known = self.unchanged.iter().find(|one| *one.aggregates == *aggregates);
        if let Some(one) = known {
            return Some(one.name.clone());
        }
        let texts: Vec<&str> = aggregates.iter().map(|at| &*self.aggregates[*at].text).collect();
        let name: Box<str> = format!("unchanged members of {}", texts.join(", ")).into();
        let aggregates = aggregates.into();
        self.unchanged.push(Unchanged { name: name.clone(), aggregates });
        Some(name)
    }

    /// Reports names that mean nothing here; gives the aggregates that a
    /// definition of that name needs.
    fn check_names(&mut self, node: &ast::Node) -> Vec<usize> {
        let Some((name, span)) = name_in(node) else { return Vec::new() };
        if let Some(used) = self.used.get(name).filter(|_| !self.exported.contains(name)) {
            return used.clone();
        }
        let is_value = matches!(node.kind, NodeKind::Metric(_));
        if is_value && self.exported.contains(name) {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::FleetOperand,
                    span,
                    format!("`{name}` has values on each host, and is not aggregated"),
                )
                .label(span, "stands for as many values as there are hosts and instances")
                .help(format!(
                    "take an aggregate of it, as in `sum({name}) by (rack)`; what is computed \
                     on each host before is a definition of the hosts, which is exported"
                )),
            );
        } else if !self.exported.contains(name) && self.registry.get(name).is_none() {
            let is_question = matches!(node.kind, NodeKind::Defined(_));
            if !is_question {
                self.unknown(name, span);
            }
        }
        Vec::new()
    }

    fn unknown(&mut self, name: &str, span: Span) {
        let message = format!("no host exports a metric `{name}`");
        let diagnostic = Diagnostic::error(Code::UnknownMetric, span, message);
        let mut known: Vec<&str> = self.exported.iter().copied().collect();
        known.sort_unstable();
        self.diagnostics.push(
            match nearest(name, known.into_iter().chain(self.registry.names())) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")).fix(span, near),
                None => diagnostic.help("`export` in the configuration says what hosts export"),
            },
        );
    }

    /// Reports a `by` behind something that is no aggregate of an exported metric.
    fn not_of_hosts(&mut self, kind: &NodeKind, span: Span, labels: &[Spanned<Box<str>>]) {
        let at = match labels {
            [first, .., last] => first.span.to(last.span),
            [only] => only.span,
            [] => span,
        };
        if let NodeKind::Aggregate { metric, .. } = kind
            && self.registry.get(&metric.value).is_none()
        {
            return self.unknown(&metric.value, metric.span);
        }
        let (message, label) = match kind {
            NodeKind::Aggregate { metric, .. } => (
                format!("`{}` has no hosts to group", metric.value),
                "defined over the fleet, not on each host",
            ),
            _ => (
                "only what hosts export can be grouped".to_owned(),
                "an expression, and not the name of an exported metric",
            ),
        };
        self.diagnostics.push(
            Diagnostic::error(Code::FleetOperand, at, message).label(span, label).help(
                "labels are those of hosts: group what hosts export, by its name, and compute \
                 with the groups",
            ),
        );
    }
}

/// The text of an aggregate, spelled as the formatter does.
fn text_of(call: &Call<'_>) -> Box<str> {
    let operand = &call.operand.value;
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
