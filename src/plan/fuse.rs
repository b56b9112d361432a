//! Fuses the operations of a metric into kernels of steps, and determines the
//! sources of nodes' columns.
//!
//! A step's kernel covers a whole tree, down to columns that exist anyway:
//! inputs, counts, reductions and operands of histories. Trees that are too
//! large for one kernel are cut. A kernel's form depends only on the metric's
//! own tree, never on other metrics.

use std::collections::BinaryHeap;

use pmderive_runtime::kernel::{Access, Body, KernelIr, Operand, Reg, Scalar};
use pmderive_runtime::program::{NodeId, Op, Placement, PreviousLanes, Step, StepId, StepOperand};
use rustc_hash::FxHashMap;

use crate::dag::{Graph, KernelSource, Marks};
use crate::lanes::{LaneBuilder, lane_scalar};

/// Largest number of instructions that are fused before a tree is cut.
const MAX_FUSED: usize = 256;

/// The way in which a kernel reads lanes of set-valued nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    /// Lane by lane.
    Lanes,
    /// Only the lane of the first instance of a node.
    First(NodeId),
}

/// The steps and placements so far.
pub struct Fusion<'f> {
    /// The metrics' nodes.
    pub graph: &'f mut Graph,
    kernels: KernelSource<'f>,
    /// Sources of columns, parallel to the graph's nodes.
    pub placements: Vec<Option<Placement>>,
    /// Steps, each after the steps that it needs.
    pub steps: Vec<Step>,
    /// Parallel to the graph's nodes.
    facts: Vec<NodeFacts>,
    /// Nodes, other than inputs, that should have columns, with the nodes that read
    /// them.
    wanted_by: FxHashMap<NodeId, Vec<NodeId>>,
    /// The current metric.
    reachable: ReachableNodes,
    /// Nodes that may get columns with the current metric.
    wanted: Vec<NodeId>,
    /// The current kernel, and its registers.
    draft: DraftKernel,
    registers: Registers,
}

/// The facts that decide about a node's column, in any metric.
#[derive(Clone, Copy, Default)]
struct NodeFacts {
    /// No kernel can compute it. Kernels stop at it.
    is_general: bool,
    /// It gets a column wherever it is needed.
    is_apart: bool,
    /// Number of instructions of the node and the nodes below it.
    size: usize,
}

/// The current metric: its nodes, found from the root downwards as far as asked.
#[derive(Default)]
struct ReachableNodes {
    met: Marks,
    /// Nodes whose operands are not visited yet.
    open: BinaryHeap<NodeId>,
}

impl ReachableNodes {
    fn begin(&mut self, root: NodeId, nodes: usize) {
        self.met.clear(nodes);
        self.met.insert(root);
        self.open.clear();
        self.open.push(root);
    }

    /// True if the metric needs the node.
    fn needs(&mut self, id: NodeId, graph: &Graph) -> bool {
        // Operands stand before their users.
        while let Some(next) = self.open.peek().copied().filter(|next| *next > id) {
            self.open.pop();
            graph.nodes[next.index()].op.operands(|operand| {
                if self.met.insert(operand) {
                    self.open.push(operand);
                }
            });
        }
        self.met.contains(id)
    }
}

/// Registers of nodes in one kernel.
#[derive(Default)]
struct Registers {
    /// Nodes that the kernel reads lane by lane.
    known: Marks,
    /// Their registers, parallel to the graph's nodes.
    lanes: Vec<Reg>,
    /// Registers of other nodes.
    others: FxHashMap<(NodeId, NodeId), Reg>,
    /// Nodes to add, each with true if its operands were added before.
    waiting: Vec<(NodeId, Mode, bool)>,
    /// Registers of the operands of the current node.
    args: Vec<Reg>,
}

impl Registers {
    fn clear(&mut self, nodes: usize) {
        self.known.clear(nodes);
        self.lanes.resize(nodes, Reg(0));
        self.others.clear();
        self.waiting.clear();
    }

    fn get(&self, node: NodeId, mode: Mode) -> Option<Reg> {
        match mode {
            Mode::Lanes => self.known.contains(node).then(|| self.lanes[node.index()]),
            Mode::First(of) => self.others.get(&(node, of)).copied(),
        }
    }

    fn insert(&mut self, node: NodeId, mode: Mode, reg: Reg) {
        match mode {
            Mode::Lanes => {
                self.known.insert(node);
                self.lanes[node.index()] = reg;
            }
            Mode::First(of) => _ = self.others.insert((node, of), reg),
        }
    }
}

impl<'f> Fusion<'f> {
    /// A fusion in which only inputs and counts have places.
    pub fn new(graph: &'f mut Graph, kernels: KernelSource<'f>) -> Fusion<'f> {
        let placement = |op: &Op| match op {
            Op::Input(slot) => Some(Placement::Input(*slot)),
            Op::Count(_) => Some(Placement::Fill),
            _ => None,
        };
        let placements = graph.nodes.iter().map(|node| placement(&node.op)).collect();
        let mut fusion = Fusion {
            graph,
            kernels,
            placements,
            steps: Vec::new(),
            facts: Vec::new(),
            wanted_by: FxHashMap::default(),
            reachable: ReachableNodes::default(),
            wanted: Vec::new(),
            draft: DraftKernel::default(),
            registers: Registers::default(),
        };
        fusion.survey();
        fusion
    }

    /// Determines the nodes that no kernel can compute, and those besides roots that get
    /// columns.
    fn survey(&mut self) {
        let Fusion { graph, placements, facts, wanted_by, .. } = self;
        for (id, node) in (0..).map(NodeId).zip(&graph.nodes) {
            let mut is_general = node.op.is_general();
            let mut size = graph.cost(id);
            node.op.operands(|operand| {
                is_general |= facts[operand.index()].is_general;
                size += facts[operand.index()].size;
            });
            let is_cut = size > MAX_FUSED;
            let is_apart = is_cut || matches!(node.op, Op::Reduce { .. });
            facts.push(NodeFacts { is_general, is_apart, size: if is_cut { 1 } else { size } });
            wanted_operands(&node.op, is_general, |operand| {
                if !matches!(placements[operand.index()], Some(Placement::Input(_))) {
                    wanted_by.entry(operand).or_default().push(id);
                }
            });
        }
    }

    /// Places the columns of a metric: its root, the operands of its histories and
    /// reductions, and nodes at which kernels must stop. `nodes` are its nodes
    /// except those of metrics that are already placed.
    pub fn place_metric(&mut self, root: NodeId, nodes: &[NodeId]) {
        let mut reachable = std::mem::take(&mut self.reachable);
        let mut wanted = std::mem::take(&mut self.wanted);
        reachable.begin(root, self.graph.nodes.len());
        wanted.clear();
        wanted.push(root);
        for id in nodes {
            let NodeFacts { is_general, is_apart, .. } = self.facts[id.index()];
            wanted.extend(is_apart.then_some(*id));
            let op = &self.graph.nodes[id.index()].op;
            wanted_operands(op, is_general, |operand| wanted.push(operand));
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|id| !self.facts[id.index()].is_general);
        wanted.iter().for_each(|id| self.place(*id, &mut reachable));
        (self.reachable, self.wanted) = (reachable, wanted);
    }

    /// True for a column that the metric's kernels read.
    fn is_leaf(&self, id: NodeId, reachable: &mut ReachableNodes) -> bool {
        match self.placements[id.index()] {
            Some(Placement::Input(_)) => return true,
            Some(Placement::Step(_) | Placement::Fill) => {}
            _ => return false,
        }
        let NodeFacts { is_general, is_apart, .. } = self.facts[id.index()];
        let mut wanted_by = self.wanted_by.get(&id).into_iter().flatten();
        matches!(self.graph.nodes[id.index()].op, Op::Count(_))
            || !is_general && (is_apart || wanted_by.any(|user| reachable.needs(*user, self.graph)))
    }

    /// Gives a node its own column, unless it has one.
    fn place(&mut self, id: NodeId, reachable: &mut ReachableNodes) {
        if self.placements[id.index()].is_some() {
            return;
        }
        let placement = match self.graph.nodes[id.index()].op {
            Op::Constant(_) | Op::ConstantPerInstance { .. } => Placement::Fill,
            Op::Nothing | Op::NoValue => return,
            Op::Reduce { op, operand } => {
                let scalar = lane_scalar(self.graph.nodes[operand.index()].value_type);
                let ir = KernelIr {
                    operands: [Operand { scalar, access: Access::Column, previous: false }].into(),
                    constants: Vec::new(),
                    body: Body::Reduce(op),
                };
                // A view of a view reads the original column.
                let operand = match self.placements[operand.index()] {
                    Some(Placement::View(of)) => of,
                    _ => StepOperand::Column(operand),
                };
                self.step(id, &ir, &[], &[operand])
            }
            _ => match self.view(id, reachable) {
                Some(operand) => Placement::View(operand),
                None => match self.fuse(id, reachable) {
                    Some(placement) => placement,
                    None => return,
                },
            },
        };
        self.placements[id.index()] = Some(placement);
    }

    fn step(
        &mut self,
        output: NodeId,
        ir: &KernelIr,
        constants: &[u8],
        operands: &[StepOperand],
    ) -> Placement {
        let below = operands.iter().filter_map(|operand| {
            let node = match operand {
                StepOperand::Column(node) | StepOperand::Single(node) => node,
                StepOperand::First { node, .. } => node,
                StepOperand::Previous { .. } | StepOperand::Elapsed(_) => return None,
            };
            match self.placements[node.index()] {
                Some(Placement::Step(step)) => Some(self.steps[step.index()].level + 1),
                _ => None,
            }
        });
        let level = below.max().unwrap_or(0);
        let kernel = self.graph.kernel(ir, self.kernels);
        let constants = self.graph.constants(constants);
        self.steps.push(Step { kernel, operands: operands.into(), constants, output, level });
        Placement::Step(StepId(self.steps.len() as u32 - 1))
    }

    /// The way in which a node picks lanes of a leaf, if it does nothing else.
    fn view(&self, id: NodeId, reachable: &mut ReachableNodes) -> Option<StepOperand> {
        let mut node = id;
        let mut mode = Mode::Lanes;
        loop {
            if node != id && self.is_leaf(node, reachable) {
                return Some(self.leaf_operand(node, mode));
            }
            node = match &self.graph.nodes[node.index()].op {
                Op::Named { operand, .. } | Op::Matching { operand, .. } => *operand,
                Op::Chosen { branch, .. } => *branch,
                Op::First(operand) => {
                    mode = self.first(*operand, mode);
                    *operand
                }
                _ => return None,
            };
        }
    }

    /// The mode below `scalar(operand)`.
    fn first(&self, operand: NodeId, mode: Mode) -> Mode {
        if self.graph.nodes[operand.index()].is_set { Mode::First(operand) } else { mode }
    }

    fn leaf_operand(&self, node: NodeId, mode: Mode) -> StepOperand {
        match (self.graph.nodes[node.index()].is_set, mode) {
            (false, _) => StepOperand::Single(node),
            (true, Mode::Lanes) => StepOperand::Column(node),
            (true, Mode::First(of)) => StepOperand::First { node, of },
        }
    }

    /// The step that computes a node from leaves. `None` if no kernel can; then
    /// the general path computes the node.
    fn fuse(&mut self, root: NodeId, reachable: &mut ReachableNodes) -> Option<Placement> {
        let mut draft = std::mem::take(&mut self.draft);
        draft.lanes.clear();
        draft.operands.clear();
        let mut regs = std::mem::take(&mut self.registers);
        regs.clear(self.graph.nodes.len());
        let result = self.fuse_with(root, reachable, &mut draft, &mut regs);
        self.registers = regs;
        let column = |operand: &StepOperand| matches!(operand, StepOperand::Column(_));
        // If the only set is a constant spread over instances, the kernel cannot
        // tell its lanes.
        let knows_lanes =
            !self.graph.nodes[root.index()].is_set || draft.operands.iter().any(column);
        let placement = result.filter(|_| knows_lanes).map(|result| {
            let (ir, constants) = draft.lanes.finish(result);
            let placement = self.step(root, &ir, &constants, &draft.operands);
            draft.lanes.reuse(ir, constants);
            placement
        });
        self.draft = draft;
        placement
    }

    /// Adds a node and its operands to a kernel, and returns the node's
    /// register.
    fn fuse_with(
        &self,
        root: NodeId,
        reachable: &mut ReachableNodes,
        draft: &mut DraftKernel,
        regs: &mut Registers,
    ) -> Option<Reg> {
        // Depth first with an explicit stack, because trees may be of any
        // depth.
        regs.waiting.push((root, Mode::Lanes, false));
        let mut args = std::mem::take(&mut regs.args);
        while let Some((id, mode, ready)) = regs.waiting.pop() {
            let node = &self.graph.nodes[id.index()];
            let mode = if node.is_set { mode } else { Mode::Lanes };
            if regs.get(id, mode).is_some() {
                continue;
            }
            let scalar = lane_scalar(node.value_type);
            if id != root && self.is_leaf(id, reachable) {
                let reg = draft.operand(self.leaf_operand(id, mode), scalar);
                regs.insert(id, mode, reg);
                continue;
            }
            if !ready {
                regs.waiting.push((id, mode, true));
                self.wait_for_operands(&node.op, mode, &mut regs.waiting);
                continue;
            }
            let of = |operand: NodeId, mode: Mode| {
                let set = self.graph.nodes[operand.index()].is_set;
                regs.get(operand, if set { mode } else { Mode::Lanes })
            };
            let reg = match &node.op {
                Op::Constant(bits) | Op::ConstantPerInstance { bits, .. } => {
                    draft.lanes.constant(scalar, *bits)
                }
                Op::Map { operand, right, kernel, constants } => {
                    args.clear();
                    args.push(of(*operand, mode)?);
                    if let Some(right) = right {
                        args.push(of(*right, mode)?);
                    }
                    let constants = &self.graph.constants[*constants as usize..];
                    draft.lanes.inline(kernel, &args, constants)
                }
                Op::Change { operand, history, kernel, constants, .. } => {
                    args.clear();
                    args.push(of(*operand, mode)?);
                    let below = &self.graph.nodes[operand.index()];
                    let lanes = match (below.is_set, mode) {
                        (false, _) => PreviousLanes::Single,
                        (true, Mode::Lanes) => PreviousLanes::Column,
                        (true, Mode::First(of)) => PreviousLanes::First(of),
                    };
                    let previous = StepOperand::Previous { history: *history, lanes };
                    args.push(draft.operand(previous, lane_scalar(below.value_type)));
                    if kernel.ir().operands.len() > args.len() {
                        args.push(draft.operand(StepOperand::Elapsed(*history), Scalar::F64));
                    }
                    let constants = &self.graph.constants[*constants as usize..];
                    draft.lanes.inline(kernel, &args, constants)
                }
                Op::Choose { guard, yes, no } => {
                    draft.lanes.choose(of(*guard, mode)?, of(*yes, mode), of(*no, mode))
                }
                Op::Chosen { branch, .. } => of(*branch, mode)?,
                Op::Named { operand, .. } | Op::Matching { operand, .. } => of(*operand, mode)?,
                Op::First(operand) => of(*operand, self.first(*operand, mode))?,
                Op::Nothing | Op::NoValue => return None,
                Op::Ranked { .. } | Op::Window { .. } => return None,
                Op::TextEqual { .. } | Op::TextIs { .. } | Op::TextMatch { .. } => return None,
                Op::Input(_) | Op::Count(_) | Op::Reduce { .. } => {
                    draft.operand(self.leaf_operand(id, mode), scalar)
                }
            };
            regs.insert(id, mode, reg);
        }
        regs.args = args;
        regs.get(root, Mode::Lanes)
    }

    /// Pushes the operands of an operation, the first one last, so that it comes first.
    fn wait_for_operands(&self, op: &Op, mode: Mode, stack: &mut Vec<(NodeId, Mode, bool)>) {
        match op {
            Op::First(operand) => stack.push((*operand, self.first(*operand, mode), false)),
            // The layout handles the guard.
            Op::Chosen { branch, .. } => stack.push((*branch, mode, false)),
            Op::Choose { guard, yes, no } => {
                for branch in [*no, *yes] {
                    if !matches!(self.graph.nodes[branch.index()].op, Op::NoValue) {
                        stack.push((branch, mode, false));
                    }
                }
                stack.push((*guard, mode, false));
            }
            op => {
                let before = stack.len();
                op.operands(|operand| stack.push((operand, mode, false)));
                stack[before..].reverse();
            }
        }
    }
}

/// The operands of an operation that need columns.
fn wanted_operands(op: &Op, is_general: bool, mut visit: impl FnMut(NodeId)) {
    match op {
        // Kernels do not read the operand of a count or the guard of a chosen
        // branch, but the flags of both count.
        Op::Change { operand, .. }
        | Op::Count(operand)
        | Op::Chosen { guard: operand, .. }
        | Op::Reduce { operand, .. } => visit(*operand),
        _ => {}
    }
    if is_general {
        op.operands(visit);
    }
}

/// A kernel during construction, with the sources of its operands.
#[derive(Default)]
struct DraftKernel {
    lanes: LaneBuilder,
    operands: Vec<StepOperand>,
}

impl DraftKernel {
    fn operand(&mut self, operand: StepOperand, scalar: Scalar) -> Reg {
        let (access, previous) = match operand {
            StepOperand::Column(_) => (Access::Column, false),
            StepOperand::Previous { lanes: PreviousLanes::Column, .. } => (Access::Column, true),
            // Single values of previous samples are copied to the other single
            // values.
            _ => (Access::Single, false),
        };
        self.operands.push(operand);
        self.lanes.operand(scalar, access, previous)
    }
}
