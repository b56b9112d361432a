//! Fuses the operations of a metric into kernels of steps, and determines the
//! sources of nodes' columns.
//!
//! A step's kernel covers a whole tree down to columns that exist anyway:
//! inputs, counts, reductions and operands of histories. Trees that are too
//! large for one kernel are cut. A kernel's form depends only on the metric's
//! own tree, never on other metrics.

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
    graph: &'f mut Graph,
    kernels: KernelSource<'f>,
    /// Sources of columns, parallel to the graph's nodes.
    pub placements: Vec<Option<Placement>>,
    /// Steps, each after the steps that it needs.
    pub steps: Vec<Step>,
    /// What is known of the nodes of the metric at hand.
    metric: Metric,
    /// The kernel at hand, and its registers.
    region: Region,
    registers: Registers,
}

/// Nodes of one metric, by what is known of them. Metrics are placed one after
/// the other, with the same memory.
#[derive(Default)]
struct Metric {
    /// Nodes that get columns, unless no kernel can compute them.
    wanted: Marks,
    /// Nodes that no kernel can compute. Kernels stop at them.
    general: Marks,
    /// The metric's own columns, which its kernels read.
    leaves: Marks,
    /// Instructions of each node with those below it, parallel to the graph's
    /// nodes.
    sizes: Vec<usize>,
}

/// Registers of nodes in one kernel.
#[derive(Default)]
struct Registers {
    /// Nodes whose lanes are read one by one.
    known: Marks,
    /// Their registers, parallel to the graph's nodes.
    lanes: Vec<Reg>,
    /// Of other nodes.
    others: FxHashMap<(NodeId, NodeId), Reg>,
    /// Nodes to add, and whether what they need was added before.
    waiting: Vec<(NodeId, Mode, bool)>,
    /// Those of the operands of the node at hand.
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
    /// Starts with only inputs and counts placed.
    pub fn new(graph: &'f mut Graph, kernels: KernelSource<'f>) -> Fusion<'f> {
        let placement = |op: &Op| match op {
            Op::Input(slot) => Some(Placement::Input(*slot)),
            Op::Count(_) => Some(Placement::Fill),
            _ => None,
        };
        let placements = graph.nodes.iter().map(|node| placement(&node.op)).collect();
        let metric = Metric { sizes: vec![0; graph.nodes.len()], ..Metric::default() };
        let (region, registers) = (Region::default(), Registers::default());
        Fusion { graph, kernels, placements, steps: Vec::new(), metric, region, registers }
    }

    /// Places the columns of a metric: its root, the operands of its histories
    /// and reductions, and nodes at which kernels must stop. `nodes` are all
    /// its nodes, ascending.
    pub fn place_metric(&mut self, root: NodeId, nodes: &[NodeId]) {
        let mut metric = std::mem::take(&mut self.metric);
        self.survey(root, nodes, &mut metric);
        let Metric { wanted, general, leaves, .. } = &mut metric;
        leaves.clear(self.graph.nodes.len());
        for id in nodes {
            let is_leaf = matches!(self.placements[id.index()], Some(Placement::Input(_)))
                || matches!(self.graph.nodes[id.index()].op, Op::Count(_));
            if is_leaf {
                leaves.insert(*id);
            } else if wanted.contains(*id) && !general.contains(*id) {
                self.place(*id, leaves);
                let placement = &self.placements[id.index()];
                if matches!(placement, Some(Placement::Step(_) | Placement::Fill)) {
                    leaves.insert(*id);
                }
            }
        }
        self.metric = metric;
    }

    /// Finds out which nodes of a metric get columns, and which no kernel can
    /// compute.
    fn survey(&self, root: NodeId, nodes: &[NodeId], metric: &mut Metric) {
        let Metric { wanted, general, sizes, .. } = metric;
        wanted.clear(self.graph.nodes.len());
        general.clear(self.graph.nodes.len());
        wanted.insert(root);
        for id in nodes {
            let op = &self.graph.nodes[id.index()].op;
            match op {
                // Kernels do not read the operand of a count or the guard of a
                // chosen branch, but their flags must be seen.
                Op::Change { operand, .. }
                | Op::Count(operand)
                | Op::Chosen { guard: operand, .. } => _ = wanted.insert(*operand),
                Op::Reduce { operand, .. } => {
                    wanted.insert(*operand);
                    wanted.insert(*id);
                }
                _ => {}
            }
            let mut is_general = op.is_general();
            op.operands(|operand| is_general |= general.contains(operand));
            if is_general {
                general.insert(*id);
                op.operands(|operand| _ = wanted.insert(operand));
            }
            let mut size = self.graph.cost(*id);
            op.operands(|operand| size += sizes[operand.index()]);
            if size > MAX_FUSED {
                wanted.insert(*id);
                size = 1;
            }
            sizes[id.index()] = size;
        }
    }

    /// Gives a node its own column, unless it has one.
    fn place(&mut self, id: NodeId, leaves: &Marks) {
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
            _ => match self.view(id, leaves) {
                Some(operand) => Placement::View(operand),
                None => match self.fuse(id, leaves) {
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

    /// How a node picks lanes of a leaf, if it does nothing else.
    fn view(&self, id: NodeId, leaves: &Marks) -> Option<StepOperand> {
        let mut node = id;
        let mut mode = Mode::Lanes;
        loop {
            if node != id && leaves.contains(node) {
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
    fn fuse(&mut self, root: NodeId, leaves: &Marks) -> Option<Placement> {
        let mut region = std::mem::take(&mut self.region);
        region.lanes.clear();
        region.operands.clear();
        let mut regs = std::mem::take(&mut self.registers);
        regs.clear(self.graph.nodes.len());
        let result = self.fuse_with(root, leaves, &mut region, &mut regs);
        self.registers = regs;
        let column = |operand: &StepOperand| matches!(operand, StepOperand::Column(_));
        // Where the only set is a constant spread over instances, the kernel would
        // not know its lanes.
        let knows_lanes =
            !self.graph.nodes[root.index()].is_set || region.operands.iter().any(column);
        let placement = result.filter(|_| knows_lanes).map(|result| {
            let (ir, constants) = region.lanes.finish(result);
            let placement = self.step(root, &ir, &constants, &region.operands);
            region.lanes.reuse(ir, constants);
            placement
        });
        self.region = region;
        placement
    }

    /// Adds a node and what it needs to a kernel; gives the node's register.
    fn fuse_with(
        &self,
        root: NodeId,
        leaves: &Marks,
        region: &mut Region,
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
            if id != root && leaves.contains(id) {
                let reg = region.operand(self.leaf_operand(id, mode), scalar);
                regs.insert(id, mode, reg);
                continue;
            }
            if !ready {
                let stack = &mut regs.waiting;
                stack.push((id, mode, true));
                let below = match &node.op {
                    Op::First(operand) => self.first(*operand, mode),
                    _ => mode,
                };
                match &node.op {
                    // The layout handles the guard.
                    Op::Chosen { branch, .. } => stack.push((*branch, below, false)),
                    Op::Choose { guard, yes, no } => {
                        for branch in [*no, *yes] {
                            if !matches!(self.graph.nodes[branch.index()].op, Op::NoValue) {
                                stack.push((branch, below, false));
                            }
                        }
                        stack.push((*guard, below, false));
                    }
                    op => {
                        let before = stack.len();
                        op.operands(|operand| stack.push((operand, below, false)));
                        stack[before..].reverse();
                    }
                }
                continue;
            }
            let of = |operand: NodeId, mode: Mode| {
                let set = self.graph.nodes[operand.index()].is_set;
                regs.get(operand, if set { mode } else { Mode::Lanes })
            };
            let reg = match &node.op {
                Op::Constant(bits) | Op::ConstantPerInstance { bits, .. } => {
                    region.lanes.constant(scalar, *bits)
                }
                Op::Map { operand, right, kernel, constants } => {
                    args.clear();
                    args.push(of(*operand, mode)?);
                    if let Some(right) = right {
                        args.push(of(*right, mode)?);
                    }
                    let constants = &self.graph.constants[*constants as usize..];
                    region.lanes.inline(kernel, &args, constants)
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
                    args.push(region.operand(previous, lane_scalar(below.value_type)));
                    if kernel.ir().operands.len() > args.len() {
                        args.push(region.operand(StepOperand::Elapsed(*history), Scalar::F64));
                    }
                    let constants = &self.graph.constants[*constants as usize..];
                    region.lanes.inline(kernel, &args, constants)
                }
                Op::Choose { guard, yes, no } => {
                    region.lanes.choose(of(*guard, mode)?, of(*yes, mode), of(*no, mode))
                }
                Op::Chosen { branch, .. } => of(*branch, mode)?,
                Op::Named { operand, .. } | Op::Matching { operand, .. } => of(*operand, mode)?,
                Op::First(operand) => of(*operand, self.first(*operand, mode))?,
                Op::Nothing | Op::NoValue => return None,
                Op::Ranked { .. } | Op::Window { .. } => return None,
                Op::TextEqual { .. } | Op::TextIs { .. } | Op::TextMatch { .. } => return None,
                Op::Input(_) | Op::Count(_) | Op::Reduce { .. } => {
                    region.operand(self.leaf_operand(id, mode), scalar)
                }
            };
            regs.insert(id, mode, reg);
        }
        regs.args = args;
        regs.get(root, Mode::Lanes)
    }
}

/// A kernel while it is built, with the sources of its operands.
#[derive(Default)]
struct Region {
    lanes: LaneBuilder,
    operands: Vec<StepOperand>,
}

impl Region {
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
