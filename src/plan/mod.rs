//! Planning: from typed expressions to a program.
//!
//! `lower` turns expressions into nodes of a shared graph, `fuse` turns trees
//! of nodes into kernels, and this module assembles the program. `jit` decides
//! how kernels become native code.

mod forms;
mod fuse;
mod lane;
mod lower;
mod models;

use std::borrow::Cow;
use std::sync::Arc;

use pmderive_runtime::kernel::{Kernel, KernelIr};
use pmderive_runtime::model::{InDom, MetricDesc};
use pmderive_runtime::program::{
    BaselineId, Binding, DefinitionKey, FetchedDomain, HistoryId, InputSlot, Lists, Needs, NodeId,
    Op, Output, OutputId, Pool, Program,
};

use crate::check::typed::{TypedExpr, TypedId, TypedKind};
use crate::dag::Graph;
use crate::dialect::Dialect;
use lower::Lowering;
use models::Models;

/// A definition to plan: the identity under which its previous samples are kept,
/// and the expression that it computes.
pub type Planned<'p> = (DefinitionKey, Cow<'p, TypedExpr>);

/// The metrics and domains that a program's positions stand for, in the source
/// that its definitions were checked against.
#[derive(Clone, Debug)]
pub struct Operands {
    /// Metrics, parallel to the program's inputs.
    pub metrics: Vec<MetricDesc>,
    /// Domains that are delivered with every fetch.
    pub fetched_domains: Vec<InDom>,
    /// Domains whose instance names filters read.
    pub named_domains: Vec<InDom>,
}

impl Operands {
    /// The program's binding to that source.
    pub fn binding(&self) -> Binding {
        let Operands { metrics, fetched_domains, named_domains } = self;
        Binding::new(metrics, fetched_domains.clone(), named_domains.clone())
    }
}

/// Makes the program of definitions. `definitions` passes them to a function one by one.
/// Each may be an operand of later ones. The outputs are parallel to the definitions.
/// The program shares equal parts with other programs of `pool`. An expression is freed
/// as soon as it is in the graph.
pub fn plan(
    definitions: impl FnOnce(&mut dyn FnMut(Planned<'_>)),
    dialect: Dialect,
    kernels: &mut dyn FnMut(KernelIr) -> Arc<Kernel>,
    pool: &Pool,
) -> (Program, Operands) {
    let mut graph = Graph::default();
    let mut roots: Vec<NodeId> = Vec::new();
    let mut bearers: Vec<Option<InputSlot>> = Vec::new();
    // Numbers and nodes of the trees that others are like.
    let (mut numbers, mut typed) = (Vec::new(), Lists::<NodeId>::default());
    let mut lowering = Lowering::new(dialect, &mut graph, kernels);
    definitions(&mut |one| {
        let nodes = lowering.lower(&one, &roots);
        roots.push(*nodes.last().expect("a checked expression has a root"));
        let of_tree = if one.1.number.is_some() { nodes } else { &[] };
        numbers.push(one.1.number);
        typed.push_with(|all| all.extend_from_slice(of_tree));
        bearers.push(instance_of(&one.1, lowering.graph()));
    });
    graph.close();
    let (nodes, bases) = own_nodes(&mut graph, &roots);
    let fetched_domains = keep_fetched_domains(&mut graph, &nodes);

    let mut fusion = fuse::Fusion::new(&mut graph, kernels);
    let mut models = Models::default();
    let trees = numbers.into_iter().zip(typed.iter());
    for (tree, (root, nodes)) in trees.zip(roots.iter().zip(nodes.iter())) {
        models.place(&mut fusion, tree, (*root, nodes));
    }
    let fuse::Fusion { placements, steps, .. } = fusion;

    let outputs = roots.iter().zip(bearers).map(|(root, instance_of)| {
        let value_type = graph.nodes[root.index()].value_type;
        Output { root: *root, value_type, instance_of }
    });
    let outputs: Vec<Output> = outputs.collect();
    let (histories, baselines) = samples(&graph, &nodes);
    let users = users_of(&bases);
    let needs = Needs { nodes, histories, baselines, bases, users };
    let (named_domains, inputs_over): (_, Vec<_>) = graph.named_domains.into_iter().unzip();
    let operands = Operands { metrics: graph.descs, fetched_domains, named_domains };
    let program = Program {
        inputs: graph.inputs.into(),
        nodes: pool.nodes.table(graph.nodes),
        histories: graph.histories.into(),
        baselines: pool.baselines.list(graph.baselines),
        windows: graph.windows.into(),
        outputs: pool.outputs.list(outputs),
        needs: pool.needs.intern(needs),
        kernels: graph.kernels.into(),
        steps: pool.steps.table(steps),
        placements: pool.placements.table(placements),
        constants: pool.constants.list(graph.constants),
        patterns: graph.patterns.into(),
        fetched_domains: operands.fetched_domains.len(),
        named_domains: inputs_over.into(),
        forget_at_gap: dialect == Dialect::Fixed,
        verdicts_stay: dialect != Dialect::Fixed,
        counts_failed: dialect != Dialect::Fixed,
        derived_is_unknown: dialect.is_version_7(),
    };
    (program, operands)
}

/// For each root, its own nodes and its bases. Its own nodes are those that it needs, without
/// those of its bases. A base is an earlier output that has operands.
fn own_nodes(graph: &mut Graph, roots: &[NodeId]) -> (Lists<NodeId>, Lists<OutputId>) {
    let (mut own, mut bases) = (Lists::default(), Lists::default());
    let mut outputs: Vec<Option<OutputId>> = vec![None; graph.nodes.len()];
    for (output, root) in (0..).map(OutputId).zip(roots) {
        own.push_with(|nodes| {
            bases.push_with(|bases: &mut Vec<OutputId>| {
                graph.add_reachable(*root, nodes, |id| {
                    let base = outputs[id.index()];
                    bases.extend(base);
                    base.is_some()
                });
            });
        });
        let mut has_operands = false;
        graph.nodes[root.index()].op.operands(|_| has_operands = true);
        if has_operands {
            outputs[root.index()].get_or_insert(output);
        }
    }
    (own.shrunk(), bases.shrunk())
}

/// For each output, the outputs that it is a base of.
fn users_of(bases: &Lists<OutputId>) -> Lists<OutputId> {
    let outputs = (0..).map(OutputId).zip(bases.iter());
    let pairs = outputs.flat_map(|(output, bases)| bases.iter().map(move |base| (*base, output)));
    let mut pairs: Vec<(OutputId, OutputId)> = pairs.collect();
    pairs.sort_unstable();
    let mut pairs = pairs.into_iter().peekable();
    let mut users = Lists::default();
    for (base, _) in (0..).map(OutputId).zip(bases.iter()) {
        let mut user = || pairs.next_if(|(of, _)| *of == base).map(|(_, user)| user);
        users.push_with(|all| all.extend(std::iter::from_fn(&mut user)));
    }
    users.shrunk()
}

/// The histories and baselines of each definition's nodes.
fn samples(graph: &Graph, nodes: &Lists<NodeId>) -> (Lists<HistoryId>, Lists<BaselineId>) {
    let (mut histories, mut baselines) = (Lists::default(), Lists::default());
    for nodes in nodes.iter() {
        let changes = nodes.iter().filter_map(|id| match &graph.nodes[id.index()].op {
            Op::Change { history, baseline, .. } => Some((*history, *baseline)),
            _ => None,
        });
        let (of_one, uses): (Vec<HistoryId>, Vec<BaselineId>) = changes.unzip();
        histories.push_with(|all| all.extend(ascending(of_one)));
        baselines.push_with(|all| all.extend(ascending(uses)));
    }
    (histories.shrunk(), baselines.shrunk())
}

/// Each once, ascending.
fn ascending<T: Ord>(mut some: Vec<T>) -> Vec<T> {
    some.sort_unstable();
    some.dedup();
    some
}

/// For each node of the definitions' expressions, its node in the program that
/// [`plan`] makes for the same definitions.
pub fn nodes_of(
    definitions: &[Planned<'_>],
    dialect: Dialect,
    kernels: &mut dyn FnMut(KernelIr) -> Arc<Kernel>,
) -> Vec<Vec<NodeId>> {
    let mut graph = Graph::default();
    let mut roots: Vec<NodeId> = Vec::with_capacity(definitions.len());
    let mut lowering = Lowering::new(dialect, &mut graph, kernels);
    let nodes = definitions.iter().map(|one| {
        let nodes = lowering.lower(one, &roots).to_vec();
        roots.extend(nodes.last().copied());
        nodes
    });
    nodes.collect()
}

/// The metric that gives a single value its instance number, if any.
fn instance_of(expr: &TypedExpr, graph: &mut Graph) -> Option<InputSlot> {
    let mut node = expr.nodes.last().filter(|root| root.desc.indom.is_none())?;
    loop {
        let of: &TypedId = match &node.kind {
            TypedKind::Metric(pmid) => return Some(graph.slot(&node.desc.of_metric(*pmid))),
            TypedKind::Negate(operand)
            | TypedKind::Not(operand)
            | TypedKind::Same(operand)
            | TypedKind::Delta { operand, .. }
            | TypedKind::Rate { operand, .. }
            | TypedKind::Rescale { operand, .. } => operand,
            TypedKind::Binary { right, .. } => right,
            TypedKind::Choose { yes, no, .. } => match expr.node(*yes).kind {
                TypedKind::NoValue => no,
                _ => yes,
            },
            TypedKind::Chosen { branch, .. } => branch,
            _ => return None,
        };
        node = expr.node(*of);
    }
}

/// Drops domains that no metric needs, and renumbers the others. Each domain
/// costs a request.
fn keep_fetched_domains(graph: &mut Graph, trees: &Lists<NodeId>) -> Vec<InDom> {
    let mut kept: Vec<Option<u32>> = vec![None; graph.fetched_domains.len()];
    let mut domains = Vec::new();
    let mut used = vec![false; graph.nodes.len()];
    trees.iter().flatten().for_each(|id| used[id.index()] = true);
    for (node, used) in graph.nodes.iter_mut().zip(used) {
        if let Op::ConstantPerInstance { domain, .. } = &mut node.op {
            if !used {
                node.op = Op::Nothing;
                continue;
            }
            let slot = *kept[domain.index()].get_or_insert_with(|| {
                domains.push(graph.fetched_domains[domain.index()]);
                domains.len() as u32 - 1
            });
            *domain = FetchedDomain(slot);
        }
    }
    domains
}
