//! Computes the value of one node from the values of its operands, over
//! explicit lists of instances.
//!
//! [`super::super::instances`] has the rules for the node's instances.

use super::{NodeValue, Previous, Surroundings, texts};
use crate::eval::instances::{Instances, MISSING, Operand, named, of_domain, takes_away};
use crate::eval::lanes::Finder;
use crate::eval::ranked::ranked;
use crate::eval::windows::WindowStore;
use crate::kernel::interp::{Lanes, Scratch, read, reduce};
use crate::kernel::{Kernel, Scalar};
use crate::model::{InstId, PmStatus, ValueType};
use crate::program::{FetchedDomain, InputSlot, NodeId, Op, Program, Reason, Status, scalar_of};

/// The values of the nodes before the current one.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub program: &'a Program,
    pub values: &'a [NodeValue],
}

impl<'a> Operands<'a> {
    fn value(self, id: NodeId) -> &'a NodeValue {
        &self.values[id.index()]
    }

    fn is_set(self, id: NodeId) -> bool {
        self.program.nodes[id.index()].is_set
    }

    /// Writes the lanes of two operands for their common instances, and these
    /// instances to `ids`.
    fn meet<'b: 'a>(
        self,
        operands: [NodeId; 2],
        instances: Instances<'_>,
        [left, right]: [&'b mut Vec<u64>; 2],
        ids: &mut Vec<InstId>,
    ) -> [Lanes<'a>; 2] {
        let [a, b] = operands.map(|id| self.value(id));
        if let Instances::Common(..) = instances
            && a.ids != b.ids
        {
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
            return [Lanes::Column(left), Lanes::Column(right)];
        }
        if let Instances::Of(set) | Instances::Common(set, _) = instances {
            ids.extend_from_slice(&self.value(set).ids);
        }
        operands.map(|id| match (self.is_set(id), self.value(id)) {
            (true, value) => Lanes::Column(&value.lanes),
            (false, value) => Lanes::Single(value.lanes[0]),
        })
    }

    /// Writes for each instance the value of the branch that the guard chooses.
    fn choose(
        self,
        [guard, yes, no]: [NodeId; 3],
        instances: Instances<'_>,
        out: &mut NodeValue,
    ) -> Status {
        let Some(guard_scalar) = scalar_of(self.program.nodes[guard.index()].value_type) else {
            return Status::Failed(PmStatus::TYPE);
        };
        let truth = crate::kernel::ops::unary(crate::kernel::UnaryOp::Truth, guard_scalar);
        let candidates = match instances {
            Instances::Of(set) => &self.value(set).ids,
            _ => &[-1][..],
        };
        let mut finders = [guard, yes, no].map(|id| Finder::new(&self.value(id).ids));
        let mut without = MISSING;
        for id in candidates {
            let mut lane = |which: usize, node: NodeId| {
                let at = if self.is_set(node) { finders[which].find(*id)? } else { 0 };
                self.value(node).lanes.get(at).copied()
            };
            let Some(decision) = lane(0, guard) else { continue };
            let (which, branch) = if truth(decision) != 0 { (1, yes) } else { (2, no) };
            if takes_away(self.program, branch) {
                without = Status::Empty(Reason::NoValue);
                continue;
            }
            if let Some(bits) = lane(which, branch) {
                out.ids.push(*id);
                out.lanes.push(bits);
            }
        }
        values_or(out, without)
    }
}

/// The buffers of an evaluation, apart from the node's value.
pub(super) struct Buffers<'a> {
    pub windows: &'a mut WindowStore,
    pub scratch: &'a mut Scratch,
    pub left: &'a mut Vec<u64>,
    pub right: &'a mut Vec<u64>,
    pub flagged: &'a mut Vec<bool>,
}

/// `Values` if there are any lanes, otherwise `without`.
fn values_or(value: &NodeValue, without: Status) -> Status {
    if value.ids.is_empty() { without } else { Status::Values }
}

impl Buffers<'_> {
    /// Evaluates one node into `out`, whose vectors are empty.
    pub fn node(
        &mut self,
        around: &Surroundings<'_>,
        operands: Operands<'_>,
        id: NodeId,
        out: &mut NodeValue,
    ) -> Status {
        let program = around.program;
        let node = &program.nodes[id.index()];
        let value = |id: NodeId| operands.value(id);
        let known = |id| Operand { status: value(id).status, is_set: operands.is_set(id) };
        let instances = match Instances::of(program, &node.op, known) {
            Ok(instances) => instances,
            Err(status) => {
                match (&node.op, status) {
                    // A record of other metrics is no sample of this one.
                    (Op::Window { window, .. }, Status::Empty(Reason::OperandEmpty)) => {
                        self.windows.pass_over(*window);
                    }
                    (Op::Window { window, .. }, _) => self.windows.clear(*window),
                    (Op::Change { history, baseline, .. }, Status::Empty(_)) => {
                        let repeated = around.history.failure(*baseline, *history);
                        return repeated.map_or(status, Status::Failed);
                    }
                    _ => {}
                }
                return status;
            }
        };
        match &node.op {
            Op::Input(slot) => input(around, *slot, node.value_type, out),
            Op::Constant(bits) => single(out, *bits),
            Op::ConstantPerInstance { domain, bits } => per_instance(around, *domain, *bits, out),
            // These nodes have no instances.
            Op::Nothing | Op::NoValue => Status::Failed(PmStatus::BOTCH),
            Op::Map { operand, right, kernel, constants } => {
                let constants = &program.constants[*constants as usize..];
                self.map(operands, (*operand, *right), instances, kernel, constants, out)
            }
            Op::Change { operand, history, baseline, kernel, constants } => {
                let time = around.clock.now(*history);
                let frame = (around.layout, around.frame);
                let previous = around.history.previous(*baseline, *history, frame, time);
                let constants = &program.constants[*constants as usize..];
                self.change(program, value(*operand), previous, kernel, constants, out)
            }
            Op::Choose { guard, yes, no } => operands.choose([*guard, *yes, *no], instances, out),
            Op::Chosen { branch, .. } => copy(value(*branch), out),
            Op::Reduce { op, operand } => {
                let operand_type = program.nodes[operand.index()].value_type;
                let Some(scalar) = scalar_of(operand_type) else {
                    return Status::Failed(PmStatus::TYPE);
                };
                let lanes = &value(*operand).lanes;
                single(out, reduce(*op, scalar, self.scratch, lanes.len(), |at| lanes[at]))
            }
            Op::Count(operand) => single(out, value(*operand).ids.len() as u64),
            Op::Named { operand, domain, name } => {
                let from = value(*operand);
                let id = named(&around.layout.names, *domain, name);
                if let Some(at) = from.ids.iter().position(|have| Some(*have) == id) {
                    out.take(from, at);
                }
                values_or(out, MISSING)
            }
            Op::Matching { operand, .. } => matching(around, value(*operand), id, out),
            Op::Ranked { operand, k, top } => {
                let from = value(*operand);
                let Some(scalar) = scalar_of(node.value_type) else {
                    return Status::Failed(PmStatus::TYPE);
                };
                ranked(scalar, &from.lanes, *k, *top, self.left, |at| out.take(from, at));
                values_or(out, MISSING)
            }
            Op::Window { operand, window: id } => {
                let from = value(*operand);
                let window = &program.windows[id.index()];
                let now = around.clock.of(&window.inputs);
                out.ids.extend_from_slice(&from.ids);
                let sample = (&from.ids[..], &from.lanes[..]);
                self.windows.advance(*id, window, sample, now, &mut out.lanes);
                Status::Values
            }
            Op::TextEqual { left, right, negated } => {
                let buffers = [&mut *self.left, &mut *self.right];
                let [a, b] = operands.meet([*left, *right], instances, buffers, &mut out.ids);
                texts::equal(around, [a, b], *negated, out);
                values_or(out, MISSING)
            }
            Op::TextIs { operand, text, negated } => {
                texts::is(around, value(*operand), text, *negated, out)
            }
            Op::TextMatch { operand, pattern, negated } => {
                let pattern = &program.patterns[pattern.index()];
                texts::matches(around, value(*operand), pattern, *negated, out)
            }
            Op::First(operand) => match value(*operand).lanes.first() {
                Some(bits) => single(out, *bits),
                None => Status::Failed(PmStatus::BOTCH),
            },
        }
    }

    /// Computes a kernel over one operand or two, for the instances that both
    /// have.
    fn map(
        &mut self,
        operands: Operands<'_>,
        ids: (NodeId, Option<NodeId>),
        instances: Instances<'_>,
        kernel: &Kernel,
        constants: &[u8],
        out: &mut NodeValue,
    ) -> Status {
        match ids {
            (operand, None) => {
                let operand = operands.value(operand);
                out.ids.extend_from_slice(&operand.ids);
                let lanes = [Lanes::Column(&operand.lanes)];
                run(kernel, self.scratch, &lanes, constants, self.flagged, out);
            }
            (left, Some(right)) => {
                let buffers = [&mut *self.left, &mut *self.right];
                let lanes = operands.meet([left, right], instances, buffers, &mut out.ids);
                run(kernel, self.scratch, &lanes, constants, self.flagged, out);
            }
        }
        values_or(out, MISSING)
    }

    /// Computes a kernel over an operand and its previous sample, for the
    /// instances that both have.
    fn change(
        &mut self,
        program: &Program,
        now: &NodeValue,
        previous: Previous<'_>,
        kernel: &Kernel,
        constants: &[u8],
        out: &mut NodeValue,
    ) -> Status {
        let (ids, lanes, elapsed) = match previous {
            Previous::None(reason) => return Status::Empty(reason),
            Previous::Failed(status) => return Status::Failed(status),
            Previous::Lanes { ids, lanes, elapsed } => (ids, lanes, elapsed),
        };
        let operands = kernel.ir().operands.len();
        let is_rate = operands == 3;
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
        let lanes =
            [Lanes::Column(self.left), Lanes::Column(self.right), Lanes::Single(elapsed.to_bits())];
        run(kernel, self.scratch, &lanes[..operands], constants, self.flagged, out);
        if self.flagged.contains(&true) {
            let mut keep = self.flagged.iter().map(|flagged| !flagged);
            out.ids.retain(|_| keep.next().unwrap_or(true));
            let mut keep = self.flagged.iter().map(|flagged| !flagged);
            out.lanes.retain(|_| keep.next().unwrap_or(true));
        }
        values_or(out, Status::Empty(Reason::CounterFell))
    }
}

/// Runs a kernel for the instances of `out`, and writes its lanes there.
fn run(
    kernel: &Kernel,
    scratch: &mut Scratch,
    operands: &[Lanes<'_>],
    constants: &[u8],
    flagged: &mut Vec<bool>,
    out: &mut NodeValue,
) {
    flagged.clear();
    kernel.run_lanes(scratch, operands, constants, out.ids.len(), &mut out.lanes, flagged);
}

/// Writes the values that were fetched.
fn input(
    around: &Surroundings<'_>,
    slot: InputSlot,
    value_type: ValueType,
    out: &mut NodeValue,
) -> Status {
    let (status, ids) = around.layout.input(slot);
    if status == Status::Values {
        let width = value_type.lane_bytes();
        // A range of bytes takes 64 bits.
        let scalar = scalar_of(value_type).unwrap_or(Scalar::U64);
        let offset = around.frame.inputs[slot.index()].offset;
        let column = &around.frame.arena[offset as usize..];
        out.ids.extend_from_slice(ids);
        out.lanes.extend((0..ids.len()).map(|at| read(scalar, column, at * width)));
    }
    status
}

/// Writes the same value for each instance of a domain.
fn per_instance(
    around: &Surroundings<'_>,
    domain: FetchedDomain,
    bits: u64,
    out: &mut NodeValue,
) -> Status {
    match of_domain(&around.layout.fetched, domain) {
        Err(status) => status,
        Ok(ids) => {
            out.ids.extend(ids);
            out.lanes.resize(out.ids.len(), bits);
            values_or(out, MISSING)
        }
    }
}

/// Writes the values of the instances that a node's filter chooses.
fn matching(
    around: &Surroundings<'_>,
    from: &NodeValue,
    id: NodeId,
    out: &mut NodeValue,
) -> Status {
    // The layout has applied the filter to all instances that the operand can
    // have.
    let taken = match around.layout.taken(id) {
        Some(Ok(taken)) => &taken[..],
        Some(Err(status)) => return Status::Failed(*status),
        None => &[],
    };
    let mut finder = Finder::new(taken);
    for (at, id) in from.ids.iter().enumerate() {
        if finder.find(*id).is_some() {
            out.take(from, at);
        }
    }
    values_or(out, MISSING)
}

impl NodeValue {
    /// Adds one instance of another node with its value.
    fn take(&mut self, from: &NodeValue, at: usize) {
        self.ids.push(from.ids[at]);
        self.lanes.push(from.lanes[at]);
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
