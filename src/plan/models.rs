//! If the typed trees of definitions differ only in their metrics, the definitions get the same
//! kernels. One of them is fused, and the others get copies of its steps.

use std::ops::Range;

use pmderive_runtime::program::{
    HistoryId, NodeId, Op, Placement, PreviousLanes, Step, StepId, StepOperand,
};

use super::fuse::Fusion;
use crate::dag::Graph;

/// The fused definitions that serve as models, by the number of their typed trees.
#[derive(Default)]
pub struct Models(Vec<Option<Model>>);

/// A definition that was fused.
struct Model {
    /// The nodes of its typed tree.
    typed: Box<[NodeId]>,
    /// The nodes that got columns.
    placed: Box<[NodeId]>,
    steps: Range<usize>,
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
        let Some(number) = number.filter(|_| !typed.iter().any(|id| is_placed(*id, fusion))) else {
            return fusion.place_metric(root, nodes);
        };
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        let model = &mut self.0[number];
        if model.as_ref().and_then(|model| model.copy_to(fusion, typed)).is_none() {
            let first = fusion.steps.len();
            fusion.place_metric(root, nodes);
            let placed = nodes.iter().copied().filter(|id| is_placed(*id, fusion)).collect();
            *model = Some(Model { typed: typed.into(), placed, steps: first..fusion.steps.len() });
        }
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
    /// Does the same for a similar definition that has no placements yet. `None` if this needs
    /// nodes outside of the typed trees.
    fn copy_to(&self, fusion: &mut Fusion<'_>, typed: &[NodeId]) -> Option<()> {
        let Fusion { graph, steps, placements, .. } = fusion;
        let graph = &**graph;
        let node = |id: NodeId| Some(typed[self.typed.iter().position(|own| *own == id)?]);
        let history = |id: HistoryId| {
            let is_of = |own: &NodeId| history_of(*own, graph) == Some(id);
            history_of(typed[self.typed.iter().position(is_of)?], graph)
        };
        let operand = |operand: StepOperand| {
            Some(match operand {
                StepOperand::Column(id) => StepOperand::Column(node(id)?),
                StepOperand::Single(id) => StepOperand::Single(node(id)?),
                StepOperand::First { node: id, of } => {
                    StepOperand::First { node: node(id)?, of: node(of)? }
                }
                StepOperand::Previous { history: id, lanes } => {
                    let lanes = match lanes {
                        PreviousLanes::First(of) => PreviousLanes::First(node(of)?),
                        lanes => lanes,
                    };
                    StepOperand::Previous { history: history(id)?, lanes }
                }
                StepOperand::Elapsed(id) => StepOperand::Elapsed(history(id)?),
            })
        };
        let step = |step: &Step| {
            let mut step = step.clone();
            step.output = node(step.output)?;
            for own in &mut step.operands {
                *own = operand(*own)?;
            }
            Some(step)
        };
        let copies: Option<Vec<Step>> = steps[self.steps.clone()].iter().map(step).collect();
        let moved = steps.len() - self.steps.start;
        let placement = |id: &NodeId| {
            let placement = match placements[id.index()].clone()? {
                Placement::Step(step) => Placement::Step(StepId::at(step.index() + moved)),
                Placement::View(of) => Placement::View(operand(of)?),
                other => other,
            };
            Some((node(*id)?, placement))
        };
        let placed: Option<Vec<_>> = self.placed.iter().map(placement).collect();
        let (copies, placed) = (copies?, placed?);
        steps.extend(copies);
        for (id, placement) in placed {
            placements[id.index()] = Some(placement);
        }
        Some(())
    }
}
