//! The graph of all operations of all metrics, with each distinct operation
//! once.
//!
//! Nodes are interned: adding an operation that exists returns its node. The
//! graph computes operations on constants at once, with the kernels that would
//! compute them later. Only one definition shares an operation with a past
//! ([`Op::Change`]). All definitions share the previous samples that it reads.

mod marks;
mod node_index;

use std::sync::Arc;

use pmderive_runtime::kernel::interp::{Lanes, Scratch};
use pmderive_runtime::kernel::{Body, Kernel, KernelIr, KernelRef, Scalar};
use pmderive_runtime::model::{InDom, MetricDesc, Pmid, ValueType};
use pmderive_runtime::pattern::Pattern;
use pmderive_runtime::program::{
    Baseline, BaselineId, DefinitionKey, FetchedDomain, History, HistoryId, HistoryKey, Input,
    InputSlot, NamedDomain, Node, NodeId, OnFailure, Op, PatternId, Window, WindowFunction,
    WindowId, scalar_of,
};
use rustc_hash::FxHashMap;

pub use marks::Marks;
use node_index::{Indexed, NodeIndex};

/// Returns the kernel with a form; the same kernel for equal forms.
pub type KernelSource<'k> = &'k mut dyn FnMut(KernelIr) -> Arc<Kernel>;

/// The kernel of a single node, and its constants. Nodes of one form share it.
pub struct OwnKernel {
    kernel: KernelRef,
    values: Vec<u8>,
    /// Offset of the values in the table, once a node needs them there.
    offset: Option<u32>,
}

/// All operations of all metrics of a program, and the tables that they refer
/// to.
#[derive(Default)]
pub struct Graph {
    /// Operations, with operands before users.
    pub nodes: Vec<Node>,
    /// Instance domain of each node's values, parallel to `nodes`.
    pub indoms: Vec<Option<InDom>>,
    /// Metrics to fetch.
    pub inputs: Vec<Input>,
    /// Descriptors of these metrics, parallel to `inputs`.
    pub descs: Vec<MetricDesc>,
    /// Previous samples.
    pub histories: Vec<History>,
    /// Each definition's uses of the histories.
    pub baselines: Vec<Baseline>,
    /// Moving windows.
    pub windows: Vec<Window>,
    /// Kernels in use.
    pub kernels: Vec<Arc<Kernel>>,
    /// Constants of all kernels, 8 bytes each.
    pub constants: Vec<u8>,
    /// Patterns in use.
    pub patterns: Vec<Pattern>,
    /// Domains over which constants are spread.
    pub fetched_domains: Vec<InDom>,
    /// Domains whose instance names filters read, with the inputs over them.
    pub named_domains: Vec<(InDom, Vec<InputSlot>)>,
    index: NodeIndex,
    input_index: FxHashMap<Pmid, InputSlot>,
    domain_index: FxHashMap<InDom, u32>,
    kernel_index: FxHashMap<KernelIr, KernelRef>,
    constant_index: FxHashMap<Box<[u8]>, u32>,
    pattern_index: FxHashMap<Box<str>, PatternId>,
    history_index: FxHashMap<(NodeId, OnFailure), HistoryId>,
    baseline_index: FxHashMap<(DefinitionKey, HistoryId), BaselineId>,
    window_index: FxHashMap<WindowOf, WindowId>,
    /// The first window of each kind, in any definition.
    like_index: FxHashMap<(NodeId, WindowFunction, u64), WindowId>,
    common: Common,
    key_count: FxHashMap<DefinitionKey, u32>,
    /// The nodes that a walk has visited.
    met: Marks,
}

/// The parts that identify a window: definition, operand, function, and bits of
/// the seconds.
type WindowOf = (DefinitionKey, NodeId, WindowFunction, u64);

/// Finds nodes that compute the same in different definitions.
#[derive(Default)]
struct Common {
    /// For each of the first nodes, the first node that computes the same.
    first: Vec<NodeId>,
    /// Nodes without the parts that belong to a single definition, each with
    /// the first one.
    index: FxHashMap<Node, NodeId>,
    histories: FxHashMap<(NodeId, OnFailure), HistoryId>,
}

impl Graph {
    /// Frees the index of nodes, once no more nodes are added.
    pub fn close(&mut self) {
        self.index = NodeIndex::default();
        self.baseline_index = FxHashMap::default();
        self.key_count = FxHashMap::default();
    }

    /// The node of an operation with values of that type and domain.
    pub fn add(&mut self, op: Op, value_type: ValueType, indom: Option<InDom>) -> NodeId {
        let node = Node { op, value_type, is_set: indom.is_some() };
        let id = match self.index.find_or_add(&node, &self.nodes) {
            Indexed::Known(id) => return id,
            Indexed::New(id) => id,
        };
        self.nodes.push(node);
        self.indoms.push(indom);
        id
    }

    /// The slot of a metric in the fetch.
    pub fn slot(&mut self, desc: &MetricDesc) -> InputSlot {
        let count = InputSlot(self.inputs.len() as u32);
        let slot = *self.input_index.entry(desc.pmid).or_insert(count);
        if slot == count {
            let input = self.input_of(desc);
            self.inputs.push(input);
            self.descs.push(*desc);
        }
        slot
    }

    fn input_of(&mut self, desc: &MetricDesc) -> Input {
        let count = self.domain_index.len() as u32;
        let number = |indom| *self.domain_index.entry(indom).or_insert(count);
        let (value_type, is_set) = (desc.value_type, desc.indom.is_some());
        Input { value_type, is_set, domain: desc.indom.map(number) }
    }

    /// The node with the values of a metric.
    ///
    /// The languages of PCP bind a definition once. If the metric changes, a later definition
    /// has another descriptor of it. The latest one counts: values no longer fit the others.
    pub fn input(&mut self, desc: &MetricDesc) -> NodeId {
        let slot = self.slot(desc);
        let known = self.descs[slot.index()];
        if (known.value_type, known.indom) != (desc.value_type, desc.indom) {
            for node in &mut self.nodes {
                if node.op == Op::Input(slot) {
                    node.op = Op::Nothing;
                }
            }
            self.inputs[slot.index()] = self.input_of(desc);
            self.descs[slot.index()] = *desc;
        }
        self.add(Op::Input(slot), desc.value_type, desc.indom)
    }

    /// A constant. If there is a domain, it has a value for each instance.
    pub fn constant(&mut self, bits: u64, value_type: ValueType, indom: Option<InDom>) -> NodeId {
        let op = match indom {
            None => Op::Constant(bits),
            Some(indom) => {
                let known = self.fetched_domains.iter().position(|have| *have == indom);
                let slot = known.unwrap_or_else(|| {
                    self.fetched_domains.push(indom);
                    self.fetched_domains.len() - 1
                });
                Op::ConstantPerInstance { domain: FetchedDomain(slot as u32), bits }
            }
        };
        self.add(op, value_type, indom)
    }

    fn constant_bits(&self, node: NodeId) -> Option<u64> {
        match self.nodes[node.index()].op {
            Op::Constant(bits) | Op::ConstantPerInstance { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// Turns a constant into a single value if it combines with values over its
    /// own domain. The source is then not asked for the domain's instances.
    pub fn spread_by(&mut self, constant: NodeId, others: &[NodeId]) -> NodeId {
        let Op::ConstantPerInstance { bits, .. } = self.nodes[constant.index()].op else {
            return constant;
        };
        let indom = self.indoms[constant.index()];
        let decides = |other: &NodeId| {
            self.indoms[other.index()] == indom && self.constant_bits(*other).is_none()
        };
        if !others.iter().any(decides) {
            return constant;
        }
        self.add(Op::Constant(bits), self.nodes[constant.index()].value_type, None)
    }

    /// The kernel of a node with a form and these constants.
    pub fn own_kernel(
        &mut self,
        (ir, values): (KernelIr, Vec<u8>),
        kernels: KernelSource<'_>,
    ) -> OwnKernel {
        OwnKernel { kernel: self.kernel(&ir, kernels), values, offset: None }
    }

    /// Offset of the constants of a node's kernel in the table.
    fn offset(&mut self, own: &mut OwnKernel) -> u32 {
        let OwnKernel { values, offset, .. } = own;
        *offset.get_or_insert_with(|| self.constants(values))
    }

    /// A kernel over one or two operands. If all are constants, the graph
    /// computes it at once.
    pub fn map(
        &mut self,
        operands: &[NodeId],
        own: &mut OwnKernel,
        value_type: ValueType,
        indom: Option<InDom>,
    ) -> NodeId {
        let is_constant = |id: &NodeId| self.constant_bits(*id).is_some();
        if operands.iter().all(is_constant) {
            let bits: Vec<u64> = operands.iter().filter_map(|id| self.constant_bits(*id)).collect();
            let OwnKernel { kernel, values: constants, .. } = &*own;
            let lanes: Vec<Lanes<'_>> = bits.iter().map(|bits| Lanes::Single(*bits)).collect();
            let (mut out, mut flagged) = (Vec::new(), Vec::new());
            kernel.run_lanes(&mut Scratch::default(), &lanes, constants, 1, &mut out, &mut flagged);
            if let [bits] = out[..] {
                return self.constant(bits, value_type, indom);
            }
        }
        let (kernel, constants) = (own.kernel.clone(), self.offset(own));
        let (operand, right) = (operands[0], operands.get(1).copied());
        self.add(Op::Map { operand, right, kernel, constants }, value_type, indom)
    }

    /// A kernel over an operand and its previous sample.
    pub fn change(
        &mut self,
        operand: NodeId,
        definition: DefinitionKey,
        on_failure: OnFailure,
        own: &mut OwnKernel,
        value_type: ValueType,
    ) -> NodeId {
        let history = self.history(operand, on_failure);
        let baseline = self.baseline(definition, history);
        let (kernel, constants) = (own.kernel.clone(), self.offset(own));
        let indom = self.indoms[operand.index()];
        self.add(Op::Change { operand, history, baseline, kernel, constants }, value_type, indom)
    }

    /// The history that keeps the previous sample of an operand.
    fn history(&mut self, operand: NodeId, on_failure: OnFailure) -> HistoryId {
        if let Some(known) = self.history_index.get(&(operand, on_failure)) {
            return *known;
        }
        let id = HistoryId(self.histories.len() as u32);
        let inputs = self.inputs_of(operand).into();
        self.histories.push(History { operand, inputs, on_failure });
        self.history_index.insert((operand, on_failure), id);
        id
    }

    /// A definition's use of a history.
    fn baseline(&mut self, definition: DefinitionKey, history: HistoryId) -> BaselineId {
        if let Some(known) = self.baseline_index.get(&(definition, history)) {
            return *known;
        }
        let id = BaselineId(self.baselines.len() as u32);
        let key = self.new_key(definition);
        self.baselines.push(Baseline { history, key });
        self.baseline_index.insert((definition, history), id);
        id
    }

    /// The next key of a definition.
    fn new_key(&mut self, definition: DefinitionKey) -> HistoryKey {
        let count = self.key_count.entry(definition).or_insert(0);
        let ordinal = *count;
        *count += 1;
        HistoryKey { definition, ordinal }
    }

    /// A function over a window of time. The result has the operand's type.
    pub fn window(
        &mut self,
        operand: NodeId,
        definition: DefinitionKey,
        function: WindowFunction,
        seconds: f64,
    ) -> NodeId {
        let of = (definition, operand, function, seconds.to_bits());
        let Node { value_type, .. } = self.nodes[operand.index()];
        let window = match self.window_index.get(&of) {
            Some(window) => *window,
            None => {
                let (key, inputs) = (self.new_key(definition), self.inputs_of(operand).into());
                let scalar = scalar_of(value_type).unwrap_or(Scalar::F64);
                let window = WindowId(self.windows.len() as u32);
                let kind = (self.common(operand), function, seconds.to_bits());
                let like = *self.like_index.entry(kind).or_insert(window);
                self.windows.push(Window { key, like, inputs, function, seconds, scalar });
                self.window_index.insert(of, window);
                window
            }
        };
        let indom = self.indoms[operand.index()];
        self.add(Op::Window { operand, window }, value_type, indom)
    }

    /// The first node that computes the same as this one, perhaps for another
    /// definition.
    fn common(&mut self, node: NodeId) -> NodeId {
        let Graph { nodes, histories, windows, common, .. } = self;
        let Common { first, index, histories: known } = common;
        while first.len() <= node.index() {
            let id = NodeId(first.len() as u32);
            let mut own = nodes[id.index()].clone();
            own.op.operands_mut(|operand| *operand = first[operand.index()]);
            match &mut own.op {
                Op::Change { operand, history, baseline, .. } => {
                    let on_failure = histories[history.index()].on_failure;
                    *history = *known.entry((*operand, on_failure)).or_insert(*history);
                    *baseline = BaselineId(0);
                }
                Op::Window { window, .. } => *window = windows[window.index()].like,
                _ => {}
            }
            first.push(*index.entry(own).or_insert(id));
        }
        first[node.index()]
    }

    /// Slots of the metrics that a node's values come from, from left to right.
    /// The order does not depend on other metrics.
    fn inputs_of(&mut self, node: NodeId) -> Vec<InputSlot> {
        let Graph { nodes, met, .. } = self;
        met.clear(nodes.len());
        let mut slots = Vec::new();
        let mut stack = vec![node];
        while let Some(id) = stack.pop() {
            if !met.insert(id) {
                continue;
            }
            let op = &nodes[id.index()].op;
            if let Op::Input(slot) = op {
                slots.push(*slot);
            }
            let first = stack.len();
            op.operands(|operand| stack.push(operand));
            stack[first..].reverse();
        }
        slots
    }

    /// Adds all nodes that a node needs, itself included, ascending. The walk stops at
    /// nodes for which `is_known` is true.
    pub fn add_reachable(
        &mut self,
        root: NodeId,
        found: &mut Vec<NodeId>,
        mut is_known: impl FnMut(NodeId) -> bool,
    ) {
        let Graph { nodes, met, .. } = self;
        met.clear(nodes.len());
        let first = found.len();
        let mut add = |id: NodeId, found: &mut Vec<NodeId>| {
            if met.insert(id) && !is_known(id) {
                found.push(id);
            }
        };
        add(root, found);
        let mut next = first;
        while let Some(id) = found.get(next).copied() {
            next += 1;
            nodes[id.index()].op.operands(|operand| add(operand, found));
        }
        found[first..].sort_unstable();
    }

    /// The domain of a filter's operand. The filter will read its instance
    /// names.
    pub fn named_domain(&mut self, operand: NodeId) -> NamedDomain {
        let indom = self.indoms[operand.index()];
        // A single value has no instance names. Any domain will do, because no
        // filter reads it.
        let Some(indom) = indom else { return self.named(InDom(0), Vec::new()) };
        let inputs = self.inputs_of(operand);
        let over = |slot: &InputSlot| self.inputs[slot.index()].is_set;
        let inputs = inputs.into_iter().filter(over).collect();
        self.named(indom, inputs)
    }

    fn named(&mut self, indom: InDom, inputs: Vec<InputSlot>) -> NamedDomain {
        let known = self.named_domains.iter().position(|(have, _)| *have == indom);
        let slot = known.unwrap_or_else(|| {
            self.named_domains.push((indom, Vec::new()));
            self.named_domains.len() - 1
        });
        let have = &mut self.named_domains[slot].1;
        have.extend(inputs);
        have.sort_unstable();
        have.dedup();
        NamedDomain(slot as u32)
    }

    /// A pattern that the parser has accepted.
    pub fn pattern(&mut self, text: &str) -> Option<PatternId> {
        if let Some(known) = self.pattern_index.get(text) {
            return Some(*known);
        }
        let pattern = Pattern::new(text).ok()?;
        let id = PatternId(self.patterns.len() as u32);
        self.patterns.push(pattern);
        self.pattern_index.insert(text.into(), id);
        Some(id)
    }

    /// The kernel with a form.
    pub fn kernel(&mut self, ir: &KernelIr, kernels: KernelSource<'_>) -> KernelRef {
        if let Some(kernel) = self.kernel_index.get(ir) {
            return kernel.clone();
        }
        let kernel = kernels(ir.clone());
        self.kernels.push(Arc::clone(&kernel));
        self.kernel_index.insert(ir.clone(), KernelRef(Arc::clone(&kernel)));
        KernelRef(kernel)
    }

    /// Offset of these constants in the table.
    pub fn constants(&mut self, values: &[u8]) -> u32 {
        if values.is_empty() {
            return 0;
        }
        if let Some(offset) = self.constant_index.get(values) {
            return *offset;
        }
        let offset = self.constants.len() as u32;
        self.constants.extend_from_slice(values);
        self.constant_index.insert(values.into(), offset);
        offset
    }

    /// Number of instructions of a node's kernel; zero for a node without one.
    pub fn cost(&self, node: NodeId) -> usize {
        let kernel = match &self.nodes[node.index()].op {
            Op::Map { kernel, .. } | Op::Change { kernel, .. } => kernel,
            Op::Choose { .. } => return 2,
            _ => return 0,
        };
        match &kernel.ir().body {
            Body::Map { insts, .. } => insts.len(),
            Body::Reduce(_) => 1,
        }
    }
}
