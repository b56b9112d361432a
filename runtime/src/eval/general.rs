//! The general path: evaluates a metric node by node over explicit lists of
//! instances.
//!
//! It applies whenever values decide which instances a result has, or when
//! previous samples do not have the instances of the present ones: the first
//! fetches, instances that come and go, counters that fall. The layout
//! applies the same rules to instances alone; `super::layout` must agree.

use super::lanes::Finder;
use super::layout::{Domain, InputLayout, empty_or, first_failed, first_without, first_word};
use crate::kernel::Scalar;
use crate::kernel::interp::{Lanes, Scratch, read, reduce};
use crate::model::{InstId, PmStatus};
use crate::program::{HistoryId, Node, NodeId, Op, Output, Program, Reason, Status, scalar_of};

/// A node's outcome: instances and lanes (as bits) are parallel and empty
/// unless the status says that there are values.
#[derive(Clone, Debug)]
pub struct NodeValue {
    /// Evaluation that this is of; others are stale.
    generation: u64,
    /// Outcome.
    pub status: Status,
    /// Instances; -1 for a single value.
    pub ids: Vec<InstId>,
    /// Bits of the values.
    pub lanes: Vec<u64>,
}

/// A previous sample, as the general path sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Previous<'a> {
    /// There is none.
    None(Reason),
    /// The operand had failed.
    Failed(PmStatus),
    /// Its lanes, and the seconds since.
    Lanes {
        /// Instances.
        ids: &'a [InstId],
        /// Bits, parallel to `ids`.
        lanes: PreviousBits<'a>,
        /// Seconds from it to now.
        elapsed: f64,
    },
}

/// Where the bits of a previous sample are.
#[derive(Clone, Debug, PartialEq)]
pub enum PreviousBits<'a> {
    /// Given as they are.
    Bits(&'a [u64]),
    /// In an arena.
    Column(Scalar, &'a [u8]),
}

impl PreviousBits<'_> {
    fn get(&self, at: usize) -> u64 {
        match self {
            PreviousBits::Bits(bits) => bits[at],
            PreviousBits::Column(scalar, bytes) => read(*scalar, bytes, at * scalar.bytes()),
        }
    }
}

/// What the evaluation of a metric reads.
pub struct Surroundings<'a, P> {
    /// The program.
    pub program: &'a Program,
    /// Inputs as decoded.
    pub inputs: &'a [InputLayout],
    /// Workspace arena that holds them.
    pub work: &'a [u8],
    /// Domains that filters look at.
    pub named: &'a [Domain],
    /// Domains that constants are spread over.
    pub fetched: &'a [Domain],
    /// Previous sample of a history.
    pub previous: P,
}

/// Node values and buffers, kept from evaluation to evaluation.
#[derive(Debug, Default)]
pub struct General {
    values: Vec<NodeValue>,
    generation: u64,
    scratch: Scratch,
    left: Vec<u64>,
    right: Vec<u64>,
    flagged: Vec<bool>,
}

impl General {
    /// Begins a new evaluation: nothing is known of any node.
    pub fn begin(&mut self, program: &Program) {
        self.generation += 1;
        let stale = NodeValue {
            generation: 0,
            status: Status::Empty(Reason::NoValue),
            ids: Vec::new(),
            lanes: Vec::new(),
        };
        if self.values.len() < program.nodes.len() {
            self.values.resize(program.nodes.len(), stale);
        }
    }

    /// Value of a node that was evaluated since [`General::begin`].
    pub fn value(&self, node: NodeId) -> &NodeValue {
        &self.values[node.index()]
    }

    /// All node values, by node.
    pub fn values(&self) -> &[NodeValue] {
        &self.values
    }

    /// Evaluates all nodes of a metric that were not evaluated yet.
    pub fn evaluate<'p, P>(&mut self, around: &Surroundings<'_, P>, output: &Output)
    where
        P: Fn(HistoryId) -> Previous<'p>,
    {
        for node in &output.nodes {
            if self.values[node.index()].generation == self.generation {
                continue;
            }
            let (before, rest) = self.values.split_at_mut(node.index());
            let value = &mut rest[0];
            value.generation = self.generation;
            value.ids.clear();
            value.lanes.clear();
            let mut buffers = Buffers {
                scratch: &mut self.scratch,
                left: &mut self.left,
                right: &mut self.right,
                flagged: &mut self.flagged,
            };
            value.status = buffers.node(around, before, &around.program.nodes[node.index()], value);
            if value.status != Status::Values {
                value.ids.clear();
                value.lanes.clear();
            }
        }
    }
}

struct Buffers<'a> {
    scratch: &'a mut Scratch,
    left: &'a mut Vec<u64>,
    right: &'a mut Vec<u64>,
    flagged: &'a mut Vec<bool>,
}

/// `Values` if there are any lanes, else the reason.
fn values_or(value: &NodeValue, reason: Reason) -> Status {
    if value.ids.is_empty() { Status::Empty(reason) } else { Status::Values }
}

impl Buffers<'_> {
    /// Evaluates one node into `out`, whose vectors are empty.
    fn node<'p, P>(
        &mut self,
        around: &Surroundings<'_, P>,
        values: &[NodeValue],
        node: &Node,
        out: &mut NodeValue,
    ) -> Status
    where
        P: Fn(HistoryId) -> Previous<'p>,
    {
        let program = around.program;
        let value = |id: NodeId| &values[id.index()];
        let is_set = |id: NodeId| program.nodes[id.index()].is_set;
        match &node.op {
            Op::Input(slot) => {
                let input = &around.inputs[slot.index()];
                if input.status == Status::Values {
                    let count = if node.is_set { input.ids.len() } else { 1 };
                    let width = node.value_type.lane_bytes();
                    // Ranges of bytes travel as 64 bits.
                    let scalar = scalar_of(node.value_type).unwrap_or(Scalar::U64);
                    let column = &around.work[input.offset as usize..];
                    out.lanes.extend((0..count).map(|at| read(scalar, column, at * width)));
                    if node.is_set {
                        out.ids.extend_from_slice(&input.ids);
                    } else {
                        out.ids.push(-1);
                    }
                }
                input.status
            }
            Op::Constant(bits) => single(out, *bits),
            Op::ConstantPerInstance { domain, bits } => match &around.fetched[domain.index()] {
                Err(status) => Status::Failed(*status),
                Ok(domain) => {
                    out.ids.extend(domain.instances().map(|(id, _)| id));
                    out.lanes.resize(out.ids.len(), *bits);
                    values_or(out, Reason::InstanceMissing)
                }
            },
            Op::Nothing | Op::NoValue => Status::Empty(Reason::NoValue),
            Op::Map { operands, kernel, constants } => {
                let constants = &program.constants[*constants as usize..];
                let kernel = &program.kernels[kernel.index()];
                self.flagged.clear();
                match **operands {
                    [operand] => {
                        let a = value(operand);
                        if a.status != Status::Values {
                            return a.status;
                        }
                        out.ids.extend_from_slice(&a.ids);
                        let lanes = [Lanes::Column(&a.lanes)];
                        let count = out.ids.len();
                        kernel.run_lanes(
                            self.scratch,
                            &lanes,
                            constants,
                            count,
                            &mut out.lanes,
                            self.flagged,
                        );
                    }
                    [left, right] => {
                        let (a, b) = (value(left), value(right));
                        if let Some(status) = first_without(&[a.status, b.status]) {
                            return status;
                        }
                        let lanes = match (is_set(left), is_set(right)) {
                            (false, _) => {
                                out.ids.extend_from_slice(&b.ids);
                                [Lanes::Single(a.lanes[0]), Lanes::Column(&b.lanes)]
                            }
                            (true, false) => {
                                out.ids.extend_from_slice(&a.ids);
                                [Lanes::Column(&a.lanes), Lanes::Single(b.lanes[0])]
                            }
                            (true, true) if a.ids == b.ids => {
                                out.ids.extend_from_slice(&a.ids);
                                [Lanes::Column(&a.lanes), Lanes::Column(&b.lanes)]
                            }
                            (true, true) => {
                                self.left.clear();
                                self.right.clear();
                                let mut finder = Finder::new(&b.ids);
                                for (id, bits) in a.ids.iter().zip(&a.lanes) {
                                    if let Some(at) = finder.find(*id) {
                                        out.ids.push(*id);
                                        self.left.push(*bits);
                                        self.right.push(b.lanes[at]);
                                    }
                                }
                                [Lanes::Column(self.left), Lanes::Column(self.right)]
                            }
                        };
                        let count = out.ids.len();
                        kernel.run_lanes(
                            self.scratch,
                            &lanes,
                            constants,
                            count,
                            &mut out.lanes,
                            self.flagged,
                        );
                    }
                    _ => return Status::Failed(PmStatus::BOTCH),
                }
                values_or(out, Reason::InstanceMissing)
            }
            Op::Change { operand, history, kernel, constants } => {
                let now = value(*operand);
                if now.status != Status::Values {
                    return now.status;
                }
                let (ids, lanes, elapsed) = match (around.previous)(*history) {
                    Previous::None(reason) => return Status::Empty(reason),
                    Previous::Failed(status) => return Status::Failed(status),
                    Previous::Lanes { ids, lanes, elapsed } => (ids, lanes, elapsed),
                };
                self.left.clear();
                self.right.clear();
                let mut finder = Finder::new(ids);
                for (id, bits) in now.ids.iter().zip(&now.lanes) {
                    if let Some(at) = finder.find(*id) {
                        out.ids.push(*id);
                        self.left.push(*bits);
                        self.right.push(lanes.get(at));
                    }
                }
                if out.ids.is_empty() {
                    return Status::Empty(Reason::FirstSample);
                }
                let operands = [
                    Lanes::Column(self.left),
                    Lanes::Column(self.right),
                    Lanes::Single(elapsed.to_bits()),
                ];
                let kernel = &program.kernels[kernel.index()];
                let operands = &operands[..kernel.ir().operands.len()];
                let constants = &program.constants[*constants as usize..];
                self.flagged.clear();
                let count = out.ids.len();
                kernel.run_lanes(
                    self.scratch,
                    operands,
                    constants,
                    count,
                    &mut out.lanes,
                    self.flagged,
                );
                if self.flagged.contains(&true) {
                    let mut keep = self.flagged.iter().map(|flagged| !flagged);
                    out.ids.retain(|_| keep.next().unwrap_or(true));
                    let mut keep = self.flagged.iter().map(|flagged| !flagged);
                    out.lanes.retain(|_| keep.next().unwrap_or(true));
                }
                values_or(out, Reason::CounterFell)
            }
            Op::Choose { guard, yes, no } => self.choose(program, values, [*guard, *yes, *no], out),
            Op::Chosen { guard, branch } => match value(*guard).status {
                Status::Values => copy(value(*branch), out),
                status => status,
            },
            Op::Reduce { op, operand } => {
                let operand_value = value(*operand);
                match operand_value.status {
                    Status::Failed(status) => return Status::Failed(status),
                    Status::Empty(reason) if !op.has_value_of_nothing() => {
                        return Status::Empty(reason);
                    }
                    _ => {}
                }
                let operand_type = program.nodes[operand.index()].value_type;
                let Some(scalar) = scalar_of(operand_type) else {
                    return Status::Failed(PmStatus::TYPE);
                };
                let lanes = &operand_value.lanes;
                single(out, reduce(*op, scalar, self.scratch, lanes.len(), |at| lanes[at]))
            }
            Op::Count(operand) => single(out, value(*operand).ids.len() as u64),
            Op::Named { operand, domain, name } => {
                let from = value(*operand);
                if from.status != Status::Values || !is_set(*operand) {
                    return empty_or(from.status);
                }
                let domain = around.named[domain.index()].as_ref().ok();
                let id = domain.and_then(|domain| domain.lookup(name));
                if let Some(at) = from.ids.iter().position(|have| Some(*have) == id) {
                    out.ids.push(from.ids[at]);
                    out.lanes.push(from.lanes[at]);
                }
                values_or(out, Reason::InstanceMissing)
            }
            Op::Matching { operand, domain, pattern, negated } => {
                let from = value(*operand);
                if from.status != Status::Values || !is_set(*operand) {
                    return empty_or(from.status);
                }
                let pattern = &program.patterns[*pattern as usize];
                let domain = around.named[domain.index()].as_ref().ok();
                for (id, bits) in from.ids.iter().zip(&from.lanes) {
                    let name = domain.and_then(|domain| domain.name(*id));
                    if name.is_some_and(|name| pattern.is_match(first_word(name)) != *negated) {
                        out.ids.push(*id);
                        out.lanes.push(*bits);
                    }
                }
                values_or(out, Reason::InstanceMissing)
            }
            Op::First(operand) => match (value(*operand).status, value(*operand).lanes.first()) {
                (Status::Values, Some(bits)) => single(out, *bits),
                (status, _) => status,
            },
        }
    }

    fn choose(
        &mut self,
        program: &Program,
        values: &[NodeValue],
        [guard, yes, no]: [NodeId; 3],
        out: &mut NodeValue,
    ) -> Status {
        let never = |id: NodeId| matches!(program.nodes[id.index()].op, Op::NoValue);
        let is_set = |id: NodeId| program.nodes[id.index()].is_set && !never(id);
        let value = |id: NodeId| &values[id.index()];
        let statuses = [guard, yes, no].map(|id| match never(id) && id != guard {
            true => Status::Values,
            false => value(id).status,
        });
        if let Some(status) = first_failed(&statuses).or(first_without(&statuses)) {
            return status;
        }
        let Some(guard_scalar) = scalar_of(program.nodes[guard.index()].value_type) else {
            return Status::Failed(PmStatus::TYPE);
        };
        let truth = crate::kernel::ops::unary(crate::kernel::UnaryOp::Truth, guard_scalar);
        let chooser = [guard, yes, no].into_iter().find(|id| is_set(*id));
        let candidates = chooser.map_or(&[-1][..], |id| &value(id).ids);
        let mut finders = [guard, yes, no].map(|id| Finder::new(&value(id).ids));
        let mut reason = Reason::InstanceMissing;
        for id in candidates {
            let mut lane = |which: usize, node: NodeId| {
                let at = if is_set(node) { finders[which].find(*id)? } else { 0 };
                value(node).lanes.get(at).copied()
            };
            let Some(decision) = lane(0, guard) else { continue };
            let (which, branch) = if truth(decision) != 0 { (1, yes) } else { (2, no) };
            if never(branch) {
                reason = Reason::NoValue;
                continue;
            }
            if let Some(bits) = lane(which, branch) {
                out.ids.push(*id);
                out.lanes.push(bits);
            }
        }
        values_or(out, reason)
    }
}

fn single(out: &mut NodeValue, bits: u64) -> Status {
    out.ids.push(-1);
    out.lanes.push(bits);
    Status::Values
}

fn copy(from: &NodeValue, out: &mut NodeValue) -> Status {
    out.ids.extend_from_slice(&from.ids);
    out.lanes.extend_from_slice(&from.lanes);
    from.status
}
