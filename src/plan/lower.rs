//! Turns a typed expression into nodes of the graph.

use pmderive_runtime::kernel::{Access, KernelIr, ReduceOp, Reg, Scalar};
use pmderive_runtime::model::ValueType;
use pmderive_runtime::program::{NodeId, OnFailure, Op, WindowFunction};

use super::lane::{LaneBuilder, lane_scalar};
use crate::check::typed::{TypedExpr, TypedId, TypedKind, TypedNode};
use crate::dag::{Graph, KernelSource};
use crate::dialect::Dialect;
use crate::syntax::ast::Aggregate;

/// Adds an expression to the graph and returns its root. `definition` is the
/// identity of its previous samples. `earlier` has the roots of the definitions
/// planned before, which may be operands.
pub fn lower(
    expr: &TypedExpr,
    definition: u64,
    dialect: Dialect,
    earlier: &[NodeId],
    graph: &mut Graph,
    kernels: KernelSource<'_>,
) -> NodeId {
    let nodes = lower_nodes(expr, definition, dialect, earlier, graph, kernels);
    *nodes.last().expect("a checked expression has a root")
}

/// Like [`lower`]; returns the graph's node for each node of the expression.
pub fn lower_nodes(
    expr: &TypedExpr,
    definition: u64,
    dialect: Dialect,
    earlier: &[NodeId],
    graph: &mut Graph,
    kernels: KernelSource<'_>,
) -> Vec<NodeId> {
    let mut lowering =
        Lowering { expr, definition, dialect, earlier, graph, kernels, done: Vec::new() };
    for mentioned in &expr.mentioned {
        lowering.graph.slot(mentioned);
    }
    for node in &expr.nodes {
        let id = lowering.node(node);
        lowering.done.push(id);
    }
    lowering.done
}

/// A kernel while it is built, with a lane and its previous value.
struct Change {
    lanes: LaneBuilder,
    regs: (Reg, Reg),
}

struct Lowering<'l> {
    expr: &'l TypedExpr,
    definition: u64,
    dialect: Dialect,
    /// Roots of the definitions before this one.
    earlier: &'l [NodeId],
    graph: &'l mut Graph,
    kernels: KernelSource<'l>,
    /// Graph nodes of the typed nodes so far.
    done: Vec<NodeId>,
}

impl Lowering<'_> {
    fn of(&self, id: TypedId) -> NodeId {
        self.done[id.0 as usize]
    }

    fn type_of(&self, id: TypedId) -> ValueType {
        self.expr.node(id).desc.value_type
    }

    /// Builds a kernel over lanes of the operands' types.
    fn kernel(
        &self,
        operands: &[TypedId],
        body: impl FnOnce(&mut LaneBuilder, &[Reg]) -> Reg,
    ) -> (KernelIr, Vec<u8>) {
        let mut lanes = LaneBuilder::default();
        let regs: Vec<Reg> = operands
            .iter()
            .map(|id| lanes.operand(lane_scalar(self.type_of(*id)), Access::Column, false))
            .collect();
        let result = body(&mut lanes, &regs);
        lanes.finish(result)
    }

    fn map(
        &mut self,
        node: &TypedNode,
        operands: &[NodeId],
        kernel: (KernelIr, Vec<u8>),
    ) -> NodeId {
        let desc = &node.desc;
        self.graph.map(operands, kernel, desc.value_type, desc.indom, self.kernels)
    }

    /// Like [`Lowering::map`], for operands that meet in their common
    /// instances.
    fn map_met(
        &mut self,
        node: &TypedNode,
        operands: &[TypedId],
        kernel: (KernelIr, Vec<u8>),
    ) -> NodeId {
        let operands: Vec<NodeId> = operands.iter().map(|id| self.of(*id)).collect();
        // A constant does not affect other constants, so all operands can be
        // passed.
        let spread: Vec<NodeId> =
            operands.iter().map(|id| self.graph.spread_by(*id, &operands)).collect();
        self.map(node, &spread, kernel)
    }

    fn node(&mut self, node: &TypedNode) -> NodeId {
        let desc = &node.desc;
        let to = lane_scalar(desc.value_type);
        match &node.kind {
            TypedKind::Metric(metric) => self.graph.input(metric),
            TypedKind::Derived(definition) => self.earlier[*definition],
            TypedKind::Constant(bits) => self.graph.constant(*bits, desc.value_type, desc.indom),
            TypedKind::NoValue | TypedKind::Nothing => {
                self.graph.add(Op::Nothing, desc.value_type, desc.indom)
            }
            TypedKind::Same(operand) => self.of(*operand),
            TypedKind::Negate(operand) => {
                let kernel = self.kernel(&[*operand], |lanes, regs| lanes.negate(regs[0], to));
                self.map(node, &[self.of(*operand)], kernel)
            }
            TypedKind::Not(operand) => {
                let kernel = self.kernel(&[*operand], |lanes, regs| lanes.not(regs[0], to));
                self.map(node, &[self.of(*operand)], kernel)
            }
            TypedKind::Rescale { operand, conversion } => {
                if conversion.is_identity() {
                    return self.of(*operand);
                }
                let kernel =
                    self.kernel(&[*operand], |lanes, regs| lanes.rescale(regs[0], conversion));
                self.map(node, &[self.of(*operand)], kernel)
            }
            TypedKind::Binary { op, left, right, common, left_scale, right_scale } => {
                let common = lane_scalar(*common);
                let kernel = self.kernel(&[*left, *right], |lanes, regs| {
                    lanes.operator(*op, common, (regs[0], *left_scale), (regs[1], *right_scale))
                });
                self.map_met(node, &[*left, *right], kernel)
            }
            TypedKind::Lanes { rule, operands, within } => {
                let within = lane_scalar(*within);
                let kernel = self.kernel(operands, |lanes, regs| {
                    let regs: Vec<Reg> =
                        regs.iter().map(|reg| lanes.convert(*reg, within)).collect();
                    let value = (rule.write)(lanes, &regs);
                    lanes.convert(value, to)
                });
                self.map_met(node, operands, kernel)
            }
            TypedKind::Choose { guard, yes, no } => {
                let guard = self.of(*guard);
                let [yes, no] = [*yes, *no].map(|id| match self.expr.node(id).kind {
                    TypedKind::NoValue => {
                        let desc = &self.expr.node(id).desc;
                        self.graph.add(Op::NoValue, desc.value_type, desc.indom)
                    }
                    _ => self.of(id),
                });
                let single_yes = self.graph.spread_by(yes, &[guard, no]);
                let single_no = self.graph.spread_by(no, &[guard, yes]);
                let op = Op::Choose { guard, yes: single_yes, no: single_no };
                self.graph.add(op, desc.value_type, desc.indom)
            }
            TypedKind::Chosen { guard, branch } => {
                let (guard, branch) = (self.of(*guard), self.of(*branch));
                if matches!(self.graph.nodes[guard.index()].op, Op::Constant(_)) {
                    // A constant always has a value.
                    return branch;
                }
                self.graph.add(Op::Chosen { guard, branch }, desc.value_type, desc.indom)
            }
            TypedKind::Aggregate { function, operand } => {
                let operand = self.of(*operand);
                let op = match (function, self.dialect) {
                    (Aggregate::Count, _) => Op::Count(operand),
                    (Aggregate::Sum, _) => Op::Reduce { op: ReduceOp::Sum, operand },
                    (Aggregate::Max, _) => Op::Reduce { op: ReduceOp::Max, operand },
                    (Aggregate::Min, _) => Op::Reduce { op: ReduceOp::Min, operand },
                    (Aggregate::Avg, Dialect::Fixed) => {
                        Op::Reduce { op: ReduceOp::AvgDouble, operand }
                    }
                    (Aggregate::Avg, _) => Op::Reduce { op: ReduceOp::AvgSingle, operand },
                };
                self.graph.add(op, desc.value_type, None)
            }
            TypedKind::Statistic { op, operand } => {
                let operand = self.of(*operand);
                self.graph.add(Op::Reduce { op: *op, operand }, desc.value_type, None)
            }
            TypedKind::Ranked { k, top, operand } => {
                let op = Op::Ranked { operand: self.of(*operand), k: *k, top: *top };
                self.graph.add(op, desc.value_type, desc.indom)
            }
            TypedKind::Window { function, operand, seconds } => {
                self.window(node, *function, *operand, f64::from_bits(*seconds))
            }
            // The text is part of the comparison that uses it.
            TypedKind::Text(_) => self.graph.add(Op::Nothing, desc.value_type, desc.indom),
            TypedKind::TextEqual { left, right, negated } => {
                self.text_equal(node, [*left, *right], *negated)
            }
            TypedKind::TextMatch { operand, pattern, negated } => {
                let op = match self.graph.pattern(pattern) {
                    Some(pattern) => {
                        let operand = self.of(*operand);
                        Op::TextMatch { operand, pattern, negated: *negated }
                    }
                    // The parser has compiled every pattern once, so this does
                    // not happen.
                    None => Op::Nothing,
                };
                self.graph.add(op, desc.value_type, desc.indom)
            }
            TypedKind::Delta(operand) => {
                let mut change = self.change_lanes(*operand);
                let (now, before) = change.regs;
                let result = change.lanes.delta(now, before);
                self.change(*operand, change.lanes.finish(result), desc.value_type)
            }
            TypedKind::Rate { operand, decrease, time_factor } => {
                let mut change = self.change_lanes(*operand);
                let (now, before) = change.regs;
                let elapsed = change.lanes.operand(Scalar::F64, Access::Single, false);
                let regs = [now, before, elapsed];
                let result = change.lanes.rate(regs, *decrease, *time_factor);
                self.change(*operand, change.lanes.finish(result), desc.value_type)
            }
            TypedKind::Scalar(operand) => {
                let operand = self.of(*operand);
                if self.graph.indoms[operand.index()].is_none() {
                    return operand;
                }
                self.graph.add(Op::First(operand), desc.value_type, None)
            }
            TypedKind::Named { operand, name } => {
                let operand = self.of(*operand);
                let domain = self.graph.named_domain(operand);
                let op = Op::Named { operand, domain, name: name.clone() };
                self.graph.add(op, desc.value_type, desc.indom)
            }
            TypedKind::Matching { operand, pattern, negated } => {
                let operand = self.of(*operand);
                let domain = self.graph.named_domain(operand);
                // The parser has compiled every pattern once, so this does not
                // fail.
                let Some(pattern) = self.graph.pattern(pattern) else {
                    return self.graph.add(Op::Nothing, desc.value_type, desc.indom);
                };
                let op = Op::Matching { operand, domain, pattern, negated: *negated };
                self.graph.add(op, desc.value_type, desc.indom)
            }
        }
    }

    /// A function over a window. Averages have double precision, other
    /// functions the operand's type.
    fn window(
        &mut self,
        node: &TypedNode,
        function: WindowFunction,
        operand: TypedId,
        seconds: f64,
    ) -> NodeId {
        let within = match function {
            WindowFunction::Avg | WindowFunction::Ewma => ValueType::F64,
            WindowFunction::Max | WindowFunction::Min => self.type_of(operand),
        };
        let of = self.of(operand);
        let of = self.convert(of, within);
        // Neither NaN nor negative, whatever the text had.
        let window = self.graph.window(of, self.definition, function, seconds.max(0.0));
        self.convert(window, node.desc.value_type)
    }

    /// Converts a node's values to another type.
    fn convert(&mut self, node: NodeId, to: ValueType) -> NodeId {
        let from = self.graph.nodes[node.index()].value_type;
        if from == to {
            return node;
        }
        let mut lanes = LaneBuilder::default();
        let value = lanes.operand(lane_scalar(from), Access::Column, false);
        let value = lanes.convert(value, lane_scalar(to));
        let indom = self.graph.indoms[node.index()];
        self.graph.map(&[node], lanes.finish(value), to, indom, self.kernels)
    }

    fn text_equal(&mut self, node: &TypedNode, operands: [TypedId; 2], negated: bool) -> NodeId {
        let desc = &node.desc;
        let literal = |id: TypedId| match &self.expr.node(id).kind {
            TypedKind::Text(text) => Some(text),
            _ => None,
        };
        let op = match operands.map(literal) {
            [Some(left), Some(right)] => {
                let bits = u64::from((left == right) != negated);
                return self.graph.constant(bits, desc.value_type, desc.indom);
            }
            [Some(text), None] => {
                Op::TextIs { operand: self.of(operands[1]), text: text.clone(), negated }
            }
            [None, Some(text)] => {
                Op::TextIs { operand: self.of(operands[0]), text: text.clone(), negated }
            }
            [None, None] => {
                let [left, right] = operands.map(|id| self.of(id));
                Op::TextEqual { left, right, negated }
            }
        };
        self.graph.add(op, desc.value_type, desc.indom)
    }

    /// Begins a kernel over a lane and its previous value.
    fn change_lanes(&self, operand: TypedId) -> Change {
        let scalar = lane_scalar(self.type_of(operand));
        let mut lanes = LaneBuilder::default();
        let now = lanes.operand(scalar, Access::Column, false);
        let before = lanes.operand(scalar, Access::Column, true);
        Change { lanes, regs: (now, before) }
    }

    fn change(
        &mut self,
        operand: TypedId,
        kernel: (KernelIr, Vec<u8>),
        value_type: ValueType,
    ) -> NodeId {
        let bare = matches!(self.expr.node(operand).kind, TypedKind::Metric(_));
        let on_failure = match self.dialect {
            Dialect::Fixed => OnFailure::Forget,
            _ if bare => OnFailure::Repeat,
            _ => OnFailure::Keep,
        };
        let operand = self.of(operand);
        self.graph.change(operand, self.definition, on_failure, kernel, value_type, self.kernels)
    }
}
