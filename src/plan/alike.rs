//! Definitions whose typed trees differ in their metrics only get the same kernels. One of
//! them is fused, and the others get copies of its steps.

use std::cell::Cell;

use pmderive_runtime::program::{
    HistoryId, NodeId, Op, Placement, PreviousLanes, Step, StepId, StepOperand,
};

use super::fuse::Fusion;
use crate::dag::Graph;

/// The definitions that others are like, by the number of their typed trees.
#[derive(Default)]
pub struct Models(Vec<Option<Model>>);

/// What fusing a definition has added. A node is told by its position in the typed tree, a
/// history by that of its change, and steps are counted from the definition's first one.
struct Model {
    steps: Vec<Step>,
    placements: Vec<(NodeId, Placement)>,
}

impl Models {
    /// Places the columns of a metric as [`Fusion::place_metric`] does. `number` is that of its
    /// typed tree, if it has one, and `typed` has the tree's nodes then.
    pub fn place(
        &mut self,
        fusion: &mut Fusion<'_>,
        (number, typed): (Option<u32>, &[NodeId]),
        (root, nodes): (NodeId, &[NodeId]),
    ) {
        // Columns that other definitions have made may be used.
        let Some(number) = number.filter(|_| typed.iter().all(|id| !is_placed(*id, fusion))) else {
            return fusion.place_metric(root, nodes);
        };
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        if let Some(model) = &self.0[number] {
            return model.copy_to(fusion, typed);
        }
        let first = fusion.steps.len();
        fusion.place_metric(root, nodes);
        self.0[number] = Model::of(fusion, first, typed, nodes);
    }
}

/// True for a node that fusing has given a column.
fn is_placed(id: NodeId, fusion: &Fusion<'_>) -> bool {
    match fusion.placements[id.index()] {
        None | Some(Placement::Input(_)) => false,
        Some(_) => !matches!(fusion.graph.nodes[id.index()].op, Op::Count(_)),
    }
}

/// The history of a node.
fn history_of(id: NodeId, graph: &Graph) -> Option<HistoryId> {
    match graph.nodes[id.index()].op {
        Op::Change { history, .. } => Some(history),
        _ => None,
    }
}

impl Model {
    /// What was added for a definition, from its first step on. `None` if that has to do with
    /// nodes that are not in the typed tree.
    fn of(fusion: &Fusion<'_>, first: usize, typed: &[NodeId], nodes: &[NodeId]) -> Option<Model> {
        let is_missing = Cell::new(false);
        let found = |at: Option<usize>| {
            is_missing.set(is_missing.get() || at.is_none());
            at.unwrap_or(0)
        };
        let node = |id: NodeId| NodeId::at(found(typed.iter().position(|have| *have == id)));
        let history = |id: HistoryId| {
            let is_of = |node: &NodeId| history_of(*node, fusion.graph) == Some(id);
            HistoryId::at(found(typed.iter().position(is_of)))
        };
        let renaming = Renaming { node, history };
        let step_of = |id: StepId| StepId::at(id.index() - first);
        let steps = fusion.steps[first..].iter().map(|step| renaming.step(step)).collect();
        let placed = nodes.iter().filter(|id| is_placed(**id, fusion));
        let placements = placed.filter_map(|id| {
            let placement = fusion.placements[id.index()].as_ref()?;
            Some(((renaming.node)(*id), renaming.placement(placement, step_of)))
        });
        let placements = placements.collect();
        (!is_missing.get()).then_some(Model { steps, placements })
    }

    /// Adds the same for a definition like it, of which nothing is placed.
    fn copy_to(&self, fusion: &mut Fusion<'_>, typed: &[NodeId]) {
        let Fusion { graph, steps, placements, .. } = fusion;
        let (first, graph) = (steps.len(), &**graph);
        let node = |at: NodeId| typed[at.index()];
        let history = |at| history_of(typed[HistoryId::index(at)], graph).unwrap_or_default();
        let renaming = Renaming { node, history };
        steps.extend(self.steps.iter().map(|step| renaming.step(step)));
        for (at, placement) in &self.placements {
            let placement = renaming.placement(placement, |id| StepId::at(id.index() + first));
            placements[typed[at.index()].index()] = Some(placement);
        }
    }
}

/// Other nodes and histories for those of steps.
struct Renaming<N, H> {
    node: N,
    history: H,
}

impl<N: Fn(NodeId) -> NodeId, H: Fn(HistoryId) -> HistoryId> Renaming<N, H> {
    fn operand(&self, operand: StepOperand) -> StepOperand {
        match operand {
            StepOperand::Column(node) => StepOperand::Column((self.node)(node)),
            StepOperand::Single(node) => StepOperand::Single((self.node)(node)),
            StepOperand::First { node, of } => {
                StepOperand::First { node: (self.node)(node), of: (self.node)(of) }
            }
            StepOperand::Previous { history, lanes } => StepOperand::Previous {
                history: (self.history)(history),
                lanes: match lanes {
                    PreviousLanes::First(of) => PreviousLanes::First((self.node)(of)),
                    lanes => lanes,
                },
            },
            StepOperand::Elapsed(history) => StepOperand::Elapsed((self.history)(history)),
        }
    }

    fn step(&self, step: &Step) -> Step {
        let Step { kernel, operands, constants, output, level } = step;
        Step {
            kernel: kernel.clone(),
            operands: operands.iter().map(|operand| self.operand(*operand)).collect(),
            constants: *constants,
            output: (self.node)(*output),
            level: *level,
        }
    }

    fn placement(&self, placement: &Placement, step_of: impl Fn(StepId) -> StepId) -> Placement {
        match placement {
            Placement::Step(id) => Placement::Step(step_of(*id)),
            Placement::View(operand) => Placement::View(self.operand(*operand)),
            other => other.clone(),
        }
    }
}
