//! Turns a typed expression into nodes of the graph.

use pmderive_runtime::kernel::{Access, ReduceOp, Reg, Scalar};
use pmderive_runtime::model::ValueType;
use pmderive_runtime::program::{DefinitionKey, NodeId, OnFailure, Op, PatternId, WindowFunction};

use super::Planned;
use super::forms::{Form, Forms};
use crate::check::typed::{Scale, TypedExpr, TypedId, TypedKind, TypedNode};
use crate::dag::{Graph, KernelSource};
use crate::dialect::Dialect;
use crate::lanes::{LaneBuilder, LaneRule, lane_scalar};
use crate::syntax::ast::Aggregate;

/// Adds definitions to a graph, one after the other.
pub struct Lowering<'l> {
    dialect: Dialect,
    graph: &'l mut Graph,
    kernels: KernelSource<'l>,
    forms: Forms,
    /// The graph's nodes of the last added definition.
    done: Vec<NodeId>,
}

impl<'l> Lowering<'l> {
    /// A lowering without definitions.
    pub fn new(dialect: Dialect, graph: &'l mut Graph, kernels: KernelSource<'l>) -> Lowering<'l> {
        Lowering { dialect, graph, kernels, forms: Forms::default(), done: Vec::new() }
    }

    /// The graph so far.
    pub fn graph(&mut self) -> &mut Graph {
        self.graph
    }

    /// Adds a definition, and returns the graph's node for each node of its
    /// expression. The last one is the root. `earlier` has the roots of the
    /// definitions planned before, which may be operands.
    pub fn lower(&mut self, one: &Planned<'_>, earlier: &[NodeId]) -> &[NodeId] {
        let (definition, expr) = (one.0, &*one.1);
        for mentioned in &expr.mentioned {
            self.graph.slot(mentioned);
        }
        let Lowering { dialect, graph, kernels, forms, done } = self;
        done.clear();
        let mut one = OneLowering {
            expr,
            definition,
            earlier,
            done,
            dialect: *dialect,
            graph,
            kernels: &mut **kernels,
            forms,
        };
        for node in &expr.nodes {
            let id = one.node(node);
            one.done.push(id);
        }
        done
    }
}

/// One definition that is being added.
struct OneLowering<'o> {
    expr: &'o TypedExpr,
    /// The key of its previous samples.
    definition: DefinitionKey,
    /// Roots of the definitions before this one.
    earlier: &'o [NodeId],
    /// Graph nodes of the typed nodes so far.
    done: &'o mut Vec<NodeId>,
    dialect: Dialect,
    graph: &'o mut Graph,
    kernels: KernelSource<'o>,
    forms: &'o mut Forms,
}

impl OneLowering<'_> {
    fn of(&self, id: TypedId) -> NodeId {
        self.done[id.0 as usize]
    }

    fn type_of(&self, id: TypedId) -> ValueType {
        self.expr.node(id).desc.value_type
    }

    /// The type of a node's lanes.
    fn scalar_of(&self, id: TypedId) -> Scalar {
        lane_scalar(self.type_of(id))
    }

    /// The node of a form that has operands.
    fn map(&mut self, node: &TypedNode, operands: &[NodeId], form: Form) -> NodeId {
        let desc = &node.desc;
        let own = self.forms.kernel(form, self.graph, self.kernels);
        self.graph.map(operands, own, desc.value_type, desc.indom)
    }

    /// The node of an operation.
    fn add(&mut self, node: &TypedNode, op: Op) -> NodeId {
        self.graph.add(op, node.desc.value_type, node.desc.indom)
    }

    /// Restricts operands to their common instances.
    fn meet(&mut self, operands: &mut [NodeId]) {
        // A constant does not affect other constants, so all operands can be
        // passed.
        for at in 0..operands.len() {
            operands[at] = self.graph.spread_by(operands[at], operands);
        }
    }

    /// A function that writes its instructions itself.
    fn function(
        &mut self,
        node: &TypedNode,
        rule: &'static LaneRule,
        operands: &[TypedId],
        within: Scalar,
    ) -> NodeId {
        let desc = &node.desc;
        let mut lanes = LaneBuilder::default();
        let regs: Vec<Reg> = operands
            .iter()
            .map(|id| lanes.operand(self.scalar_of(*id), Access::Column, false))
            .collect();
        let regs: Vec<Reg> = regs.iter().map(|reg| lanes.convert(*reg, within)).collect();
        let value = (rule.write)(&mut lanes, &regs);
        let value = lanes.convert(value, lane_scalar(desc.value_type));
        let mut operands: Vec<NodeId> = operands.iter().map(|id| self.of(*id)).collect();
        self.meet(&mut operands);
        let mut own = self.graph.own_kernel(lanes.finish(value), self.kernels);
        self.graph.map(&operands, &mut own, desc.value_type, desc.indom)
    }

    /// The node of a typed node, whose operands have theirs.
    fn node(&mut self, node: &TypedNode) -> NodeId {
        let desc = &node.desc;
        let to = lane_scalar(desc.value_type);
        match &node.kind {
            TypedKind::Metric(pmid) => self.graph.input(&desc.of_metric(*pmid)),
            TypedKind::Derived(definition) => self.earlier[definition.index()],
            TypedKind::Constant(bits) => self.graph.constant(*bits, desc.value_type, desc.indom),
            // A text is part of the comparison that uses it.
            TypedKind::NoValue | TypedKind::Nothing | TypedKind::Text(_) => {
                self.add(node, Op::Nothing)
            }
            TypedKind::Same(operand) => self.of(*operand),
            TypedKind::Negate(operand) => {
                let form = Form::Negate { from: self.scalar_of(*operand), to };
                self.map(node, &[self.of(*operand)], form)
            }
            TypedKind::Not(operand) => {
                let form = Form::Not { from: self.scalar_of(*operand), to };
                self.map(node, &[self.of(*operand)], form)
            }
            TypedKind::Rescale { operand, conversion, precision } => {
                if conversion.is_identity() {
                    return self.of(*operand);
                }
                let form = Form::rescale(self.scalar_of(*operand), conversion, *precision);
                self.map(node, &[self.of(*operand)], form)
            }
            TypedKind::Binary { op, left, right, common, scales } => {
                let operands = [*left, *right];
                let from = operands.map(|id| self.scalar_of(id));
                let scales = scales.as_deref().copied().unwrap_or([Scale::ONE; 2]);
                let form = Form::operator(*op, lane_scalar(*common), from, scales);
                let mut operands = operands.map(|id| self.of(id));
                self.meet(&mut operands);
                self.map(node, &operands, form)
            }
            TypedKind::Lanes { rule, operands, within } => {
                self.function(node, rule, operands, lane_scalar(*within))
            }
            TypedKind::Choose { guard, yes, no } => self.choose(node, *guard, [*yes, *no]),
            TypedKind::Chosen { guard, branch } => {
                self.chosen(node, self.of(*guard), self.of(*branch))
            }
            TypedKind::Aggregate { function, operand } => {
                self.aggregate(node, *function, self.of(*operand))
            }
            TypedKind::Statistic { op, operand } => {
                self.add(node, Op::Reduce { op: *op, operand: self.of(*operand) })
            }
            TypedKind::Ranked { k, top, operand } => {
                self.add(node, Op::Ranked { operand: self.of(*operand), k: *k, top: *top })
            }
            TypedKind::Window { function, operand, seconds } => {
                self.window(node, *function, *operand, f64::from_bits(*seconds))
            }
            TypedKind::TextEqual { left, right, negated } => {
                self.text_equal(node, [*left, *right], *negated)
            }
            TypedKind::TextMatch { operand, pattern, negated } => {
                let (operand, negated) = (self.of(*operand), *negated);
                self.with_pattern(node, pattern, |pattern| Op::TextMatch {
                    operand,
                    pattern,
                    negated,
                })
            }
            TypedKind::Delta { operand, precision } => {
                let form = Form::Delta { from: self.scalar_of(*operand), precision: *precision };
                self.change(*operand, form, desc.value_type)
            }
            TypedKind::Rate { operand, decrease, time_factor } => {
                let (from, time_factor) = (self.scalar_of(*operand), time_factor.map(f64::to_bits));
                let form = Form::Rate { from, decrease: *decrease, time_factor };
                self.change(*operand, form, desc.value_type)
            }
            TypedKind::Scalar(operand) => {
                let operand = self.of(*operand);
                if self.graph.indoms[operand.index()].is_none() {
                    return operand;
                }
                self.add(node, Op::First(operand))
            }
            TypedKind::Named { operand, name } => {
                let operand = self.of(*operand);
                let domain = self.graph.named_domain(operand);
                self.add(node, Op::Named { operand, domain, name: name.clone() })
            }
            TypedKind::Matching { operand, pattern, negated } => {
                let (operand, negated) = (self.of(*operand), *negated);
                let domain = self.graph.named_domain(operand);
                self.with_pattern(node, pattern, |pattern| Op::Matching {
                    operand,
                    domain,
                    pattern,
                    negated,
                })
            }
        }
    }

    /// A choice between branches by a guard's values.
    fn choose(&mut self, node: &TypedNode, guard: TypedId, branches: [TypedId; 2]) -> NodeId {
        let guard = self.of(guard);
        let expr = self.expr;
        let is_never = |id: &TypedId| matches!(expr.node(*id).kind, TypedKind::NoValue);
        if branches.iter().all(is_never) {
            // Two metrics that the source lacks, where such a metric is `novalue()`.
            let branch = self.add(node, Op::Nothing);
            return self.add(node, Op::Chosen { guard, branch });
        }
        let [yes, no] = branches.map(|id| match expr.node(id) {
            branch if matches!(branch.kind, TypedKind::NoValue) => self.add(branch, Op::NoValue),
            _ => self.of(id),
        });
        let single_yes = self.graph.spread_by(yes, &[guard, no]);
        let single_no = self.graph.spread_by(no, &[guard, yes]);
        self.add(node, Op::Choose { guard, yes: single_yes, no: single_no })
    }

    /// A branch that is chosen before evaluation.
    fn chosen(&mut self, node: &TypedNode, guard: NodeId, branch: NodeId) -> NodeId {
        if matches!(self.graph.nodes[guard.index()].op, Op::Constant(_)) {
            // A constant always has a value.
            return branch;
        }
        self.add(node, Op::Chosen { guard, branch })
    }

    /// An aggregate over the instances of a metric.
    fn aggregate(&mut self, node: &TypedNode, function: Aggregate, operand: NodeId) -> NodeId {
        let value_type = self.graph.nodes[operand.index()].value_type;
        let of_single = value_type == ValueType::F32;
        let is_float = of_single || value_type == ValueType::F64;
        let is_fixed = self.dialect == Dialect::Fixed;
        let op = match function {
            Aggregate::Count => return self.add(node, Op::Count(operand)),
            Aggregate::Sum if is_fixed && of_single => ReduceOp::SumDouble,
            Aggregate::Sum => ReduceOp::Sum,
            Aggregate::Max if is_fixed && is_float => ReduceOp::Greatest,
            Aggregate::Max => ReduceOp::Max,
            Aggregate::Min if is_fixed && is_float => ReduceOp::Least,
            Aggregate::Min => ReduceOp::Min,
            Aggregate::Avg if is_fixed => ReduceOp::AvgDouble,
            Aggregate::Avg => ReduceOp::AvgSingle,
        };
        self.add(node, Op::Reduce { op, operand })
    }

    /// The node of an operation with a pattern.
    fn with_pattern(
        &mut self,
        node: &TypedNode,
        pattern: &str,
        op: impl FnOnce(PatternId) -> Op,
    ) -> NodeId {
        // The parser has compiled every pattern once, so there is one.
        let op = self.graph.pattern(pattern).map_or(Op::Nothing, op);
        self.add(node, op)
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
        let form = Form::Convert { from: lane_scalar(from), to: lane_scalar(to) };
        let indom = self.graph.indoms[node.index()];
        let own = self.forms.kernel(form, self.graph, self.kernels);
        self.graph.map(&[node], own, to, indom)
    }

    /// A comparison of texts; one of literals is a constant.
    fn text_equal(&mut self, node: &TypedNode, operands: [TypedId; 2], negated: bool) -> NodeId {
        let literal = |id: TypedId| match &self.expr.node(id).kind {
            TypedKind::Text(text) => Some(text),
            _ => None,
        };
        let op = match operands.map(literal) {
            [Some(left), Some(right)] => {
                let bits = u64::from((left == right) != negated);
                return self.graph.constant(bits, node.desc.value_type, node.desc.indom);
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
        self.add(node, op)
    }

    /// The node of a form over an operand and its previous sample.
    fn change(&mut self, operand: TypedId, form: Form, value_type: ValueType) -> NodeId {
        let bare = matches!(self.expr.node(operand).kind, TypedKind::Metric(_));
        let on_failure = match self.dialect {
            Dialect::Fixed => OnFailure::Forget,
            _ if bare => OnFailure::Repeat,
            _ => OnFailure::Keep,
        };
        let operand = self.of(operand);
        let own = self.forms.kernel(form, self.graph, self.kernels);
        self.graph.change(operand, self.definition, on_failure, own, value_type)
    }
}
