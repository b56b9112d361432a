//! The general path: evaluates a metric node by node over explicit lists of
//! instances.
//!
//! It applies whenever values decide which instances a result has, when
//! previous samples do not have the instances of the present ones (the first
//! fetches, instances that come and go, counters that fall), and to operations
//! that no kernel has. In the last case it begins with the columns that kernels
//! have computed. The layout applies the same rules to instances alone;
//! `super::layout` must agree.

use super::clock::Clock;
use super::decode::unpack_range;
use super::history::HistoryStore;
use super::lanes::Finder;
use super::layout::{Frame, GeneralPlan, Layout, empty_or, first_failed, first_without};
use super::ranked::ranked;
use super::windows::WindowStore;
use crate::kernel::Scalar;
use crate::kernel::interp::{Lanes, Scratch, read, reduce};
use crate::model::{InstId, PmStatus};
use crate::program::{NodeId, Op, Program, Reason, Status, scalar_of};

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
pub struct Surroundings<'a> {
    /// The program.
    pub program: &'a Program,
    /// The layout in force.
    pub layout: &'a Layout,
    /// The workspace, which holds the inputs as decoded.
    pub frame: &'a Frame,
    /// Bytes of values that are no numbers.
    pub blobs: &'a [u8],
    /// Previous samples.
    pub history: &'a HistoryStore,
    /// Time stamps of the fetch.
    pub clock: &'a Clock<'a>,
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

    /// True for a node that was evaluated since [`General::begin`].
    pub fn is_known(&self, node: NodeId) -> bool {
        self.values[node.index()].generation == self.generation
    }

    /// Evaluates those of the nodes, which ascend, that are not known yet.
    pub fn evaluate(
        &mut self,
        around: &Surroundings<'_>,
        windows: &mut WindowStore,
        nodes: &[NodeId],
    ) {
        for node in nodes {
            if self.is_known(*node) {
                continue;
            }
            let (before, rest) = self.values.split_at_mut(node.index());
            let value = &mut rest[0];
            value.renew(self.generation);
            let mut buffers = Buffers {
                windows,
                scratch: &mut self.scratch,
                left: &mut self.left,
                right: &mut self.right,
                flagged: &mut self.flagged,
            };
            value.status = buffers.node(around, before, *node, value);
            if value.status != Status::Values {
                value.ids.clear();
                value.lanes.clear();
            }
        }
    }

    /// Evaluates what kernels cannot of an output whose columns are right.
    pub fn evaluate_plan(
        &mut self,
        around: &Surroundings<'_>,
        windows: &mut WindowStore,
        plan: &GeneralPlan,
    ) {
        for node in &plan.columns {
            if self.is_known(*node) {
                continue;
            }
            // The plan is for nodes that have columns.
            let Some((section, place, ids)) = around.layout.column(*node) else { continue };
            let value = &mut self.values[node.index()];
            value.renew(self.generation);
            value.status = Status::Values;
            value.ids.extend_from_slice(ids);
            let value_type = around.program.nodes[node.index()].value_type;
            let scalar = scalar_of(value_type).unwrap_or(Scalar::U64);
            let offset = around.frame.placed[section as usize].offset(place);
            let column = &around.frame.arena[offset as usize..];
            let lanes = (0..value.ids.len()).map(|at| read(scalar, column, at * scalar.bytes()));
            value.lanes.extend(lanes);
        }
        self.evaluate(around, windows, &plan.nodes);
    }
}

impl NodeValue {
    fn renew(&mut self, generation: u64) {
        self.generation = generation;
        self.ids.clear();
        self.lanes.clear();
    }
}

struct Buffers<'a> {
    windows: &'a mut WindowStore,
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
    fn node(
        &mut self,
        around: &Surroundings<'_>,
        values: &[NodeValue],
        id: NodeId,
        out: &mut NodeValue,
    ) -> Status {
        let program = around.program;
        let node = &program.nodes[id.index()];
        let value = |id: NodeId| &values[id.index()];
        let is_set = |id: NodeId| program.nodes[id.index()].is_set;
        match &node.op {
            Op::Input(slot) => {
                let (status, ids) = around.layout.input(*slot);
                if status == Status::Values {
                    let width = node.value_type.lane_bytes();
                    // Ranges of bytes travel as 64 bits.
                    let scalar = scalar_of(node.value_type).unwrap_or(Scalar::U64);
                    let offset = around.frame.inputs[slot.index()].offset;
                    let column = &around.frame.arena[offset as usize..];
                    out.ids.extend_from_slice(ids);
                    out.lanes.extend((0..ids.len()).map(|at| read(scalar, column, at * width)));
                }
                status
            }
            Op::Constant(bits) => single(out, *bits),
            Op::ConstantPerInstance { domain, bits } => {
                match &around.layout.fetched[domain.index()] {
                    Err(status) => Status::Failed(*status),
                    Ok(domain) => {
                        out.ids.extend(domain.instances().map(|(id, _)| id));
                        out.lanes.resize(out.ids.len(), *bits);
                        values_or(out, Reason::InstanceMissing)
                    }
                }
            }
            Op::Nothing | Op::NoValue => Status::Empty(Reason::NoValue),
            Op::Map { operands, kernel, constants } => {
                let constants = &program.constants[*constants as usize..];
                self.flagged.clear();
                let (one, two);
                let lanes: &[Lanes<'_>] = match **operands {
                    [operand] => {
                        let a = value(operand);
                        if a.status != Status::Values {
                            return a.status;
                        }
                        out.ids.extend_from_slice(&a.ids);
                        one = [Lanes::Column(&a.lanes)];
                        &one
                    }
                    [left, right] => {
                        let (a, b) = (value(left), value(right));
                        if let Some(status) = first_without(&[a.status, b.status]) {
                            return status;
                        }
                        let sets = [is_set(left), is_set(right)];
                        two = meet([a, b], sets, [self.left, self.right], &mut out.ids);
                        &two
                    }
                    _ => return Status::Failed(PmStatus::BOTCH),
                };
                let count = out.ids.len();
                kernel.run_lanes(
                    self.scratch,
                    lanes,
                    constants,
                    count,
                    &mut out.lanes,
                    self.flagged,
                );
                values_or(out, Reason::InstanceMissing)
            }
            Op::Change { operand, history, baseline, kernel, constants } => {
                let now = value(*operand);
                if now.status != Status::Values {
                    return now.status;
                }
                let time = around.clock.now(*history);
                let (ids, lanes, elapsed) = match around.history.previous(
                    *baseline,
                    *history,
                    (around.layout, around.frame),
                    time,
                ) {
                    Previous::None(reason) => return Status::Empty(reason),
                    Previous::Failed(status) => return Status::Failed(status),
                    Previous::Lanes { ids, lanes, elapsed } => (ids, lanes, elapsed),
                };
                let is_rate = kernel.ir().operands.len() == 3;
                if is_rate && elapsed <= 0.0 && program.forget_at_gap {
                    return Status::Empty(Reason::SameTime);
                }
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
            Op::Chosen { guard, branch } => {
                let statuses = [guard, branch].map(|id| value(*id).status);
                match first_without(&statuses) {
                    Some(status) => status,
                    None => copy(value(*branch), out),
                }
            }
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
                let domain = around.layout.names[domain.index()].as_ref().ok();
                let id = domain.and_then(|domain| domain.lookup(name));
                if let Some(at) = from.ids.iter().position(|have| Some(*have) == id) {
                    out.ids.push(from.ids[at]);
                    out.lanes.push(from.lanes[at]);
                }
                values_or(out, Reason::InstanceMissing)
            }
            Op::Matching { operand, .. } => {
                let from = value(*operand);
                if from.status != Status::Values || !is_set(*operand) {
                    return empty_or(from.status);
                }
                // The layout has looked at all that the operand can have.
                let taken = match around.layout.taken(id) {
                    Some(Ok(taken)) => &taken[..],
                    Some(Err(status)) => return Status::Failed(*status),
                    None => &[],
                };
                let mut finder = Finder::new(taken);
                for (id, bits) in from.ids.iter().zip(&from.lanes) {
                    if finder.find(*id).is_some() {
                        out.ids.push(*id);
                        out.lanes.push(*bits);
                    }
                }
                values_or(out, Reason::InstanceMissing)
            }
            Op::Ranked { operand, k, top } => {
                let from = value(*operand);
                let Some(scalar) = scalar_of(node.value_type) else {
                    return Status::Failed(PmStatus::TYPE);
                };
                ranked(scalar, &from.lanes, *k, *top, self.left, |at| {
                    out.ids.push(from.ids[at]);
                    out.lanes.push(from.lanes[at]);
                });
                match from.status {
                    Status::Values => values_or(out, Reason::InstanceMissing),
                    status => status,
                }
            }
            Op::Window { operand, window: id } => {
                let from = value(*operand);
                if from.status != Status::Values {
                    self.windows.clear(*id);
                    return from.status;
                }
                let window = &program.windows[id.index()];
                let now = around.clock.of(&window.inputs);
                out.ids.extend_from_slice(&from.ids);
                let sample = (&from.ids[..], &from.lanes[..]);
                self.windows.advance(*id, window, sample, now, &mut out.lanes);
                Status::Values
            }
            Op::TextEqual { left, right, negated } => {
                let (a, b) = (value(*left), value(*right));
                if let Some(status) = first_without(&[a.status, b.status]) {
                    return status;
                }
                let sets = [is_set(*left), is_set(*right)];
                let [a, b] = meet([a, b], sets, [self.left, self.right], &mut out.ids);
                let text = |lanes: Lanes<'_>, at: usize| match lanes {
                    Lanes::Single(bits) => around.text(bits),
                    Lanes::Column(bits) => around.text(bits[at]),
                };
                let equal = |at: usize| u64::from((text(a, at) == text(b, at)) != *negated);
                out.lanes.extend((0..out.ids.len()).map(equal));
                values_or(out, Reason::InstanceMissing)
            }
            Op::TextIs { operand, text, negated } => {
                let is =
                    |bits: &u64| u64::from((around.text(*bits) == text.as_bytes()) != *negated);
                verdicts(value(*operand), is, out)
            }
            Op::TextMatch { operand, pattern, negated } => {
                let pattern = &program.patterns[*pattern as usize];
                let mut takes_too_long = false;
                let matches = |bits: &u64| {
                    let is_match = pattern.is_match(around.text(*bits));
                    takes_too_long |= is_match.is_err();
                    u64::from(is_match.unwrap_or(false) != *negated)
                };
                match verdicts(value(*operand), matches, out) {
                    Status::Values if takes_too_long => Status::Failed(PmStatus::BADDERIVE),
                    status => status,
                }
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

impl Surroundings<'_> {
    /// The text that a lane refers to.
    fn text(&self, bits: u64) -> &[u8] {
        self.blobs.get(unpack_range(bits)).unwrap_or_default()
    }
}

/// Lanes of two operands with values: those of single values for all, and of
/// two sets those of the instances that both have. The instances go to `ids`.
fn meet<'a>(
    [a, b]: [&'a NodeValue; 2],
    sets: [bool; 2],
    [left, right]: [&'a mut Vec<u64>; 2],
    ids: &mut Vec<InstId>,
) -> [Lanes<'a>; 2] {
    match sets {
        [false, _] => {
            ids.extend_from_slice(&b.ids);
            [Lanes::Single(a.lanes[0]), Lanes::Column(&b.lanes)]
        }
        [true, false] => {
            ids.extend_from_slice(&a.ids);
            [Lanes::Column(&a.lanes), Lanes::Single(b.lanes[0])]
        }
        [true, true] if a.ids == b.ids => {
            ids.extend_from_slice(&a.ids);
            [Lanes::Column(&a.lanes), Lanes::Column(&b.lanes)]
        }
        [true, true] => {
            left.clear();
            right.clear();
            let mut finder = Finder::new(&b.ids);
            for (id, bits) in a.ids.iter().zip(&a.lanes) {
                if let Some(at) = finder.find(*id) {
                    ids.push(*id);
                    left.push(*bits);
                    right.push(b.lanes[at]);
                }
            }
            [Lanes::Column(left), Lanes::Column(right)]
        }
    }
}

/// One verdict per value.
fn verdicts(from: &NodeValue, verdict: impl FnMut(&u64) -> u64, out: &mut NodeValue) -> Status {
    out.ids.extend_from_slice(&from.ids);
    out.lanes.extend(from.lanes.iter().map(verdict));
    from.status
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
