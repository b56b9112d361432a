//! The general path: evaluates a metric node by node, over explicit lists of
//! instances.
//!
//! It applies in three cases: values decide which instances a result has;
//! previous samples do not have the present instances (the first fetches,
//! instances that come and go, counters that fall); or an operation has no
//! kernel. In the last case it starts from the columns that kernels computed.
//! [`super::instances`] has the rules for the instances of a node.

mod operation;
mod texts;

use super::clock::Clock;
use super::history::HistoryStore;
use super::layout::{Frame, GeneralPlan, Layout};
use super::windows::WindowStore;
use crate::kernel::Scalar;
use crate::kernel::interp::{Scratch, read};
use crate::model::{InstId, PmStatus};
use crate::program::{NodeId, OutputId, Program, Reason, Status, scalar_of};
use operation::{Buffers, Operands};

/// The outcome of a node. Instances and lanes (as bits) are parallel, and empty
/// unless the status is "values".
#[derive(Clone, Debug)]
pub struct NodeValue {
    /// Number of the evaluation that computed this. Values of earlier
    /// evaluations are stale.
    generation: u64,
    /// Outcome.
    pub status: Status,
    /// Instances; -1 for a single value.
    pub ids: Vec<InstId>,
    /// Bits of the values.
    pub lanes: Vec<u64>,
}

/// A previous sample, in the form for the general path.
#[derive(Clone, Debug, PartialEq)]
pub enum Previous<'a> {
    /// There is no sample.
    None(Reason),
    /// The operand had failed at the previous evaluation.
    Failed(PmStatus),
    /// The sample's lanes, and the seconds since.
    Lanes {
        /// Instances.
        ids: &'a [InstId],
        /// Bits, parallel to `ids`.
        lanes: PreviousBits<'a>,
        /// Seconds since the sample.
        elapsed: f64,
    },
}

/// The place of a previous sample's bits.
#[derive(Clone, Debug, PartialEq)]
pub enum PreviousBits<'a> {
    /// In a list.
    Bits(&'a [u64]),
    /// In an arena, as lanes of this scalar.
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

/// The input of a metric's evaluation.
pub struct Surroundings<'a> {
    /// The program.
    pub program: &'a Program,
    /// The current layout.
    pub layout: &'a Layout,
    /// The frame with the decoded inputs.
    pub frame: &'a Frame,
    /// Bytes of values that are not numbers.
    pub blobs: &'a [u8],
    /// Previous samples.
    pub history: &'a HistoryStore,
    /// Time stamps of the fetch.
    pub clock: &'a Clock<'a>,
}

/// Node values and buffers that are reused from evaluation to evaluation.
#[derive(Debug, Default)]
pub struct General {
    values: Vec<NodeValue>,
    generation: u64,
    /// For each output, the evaluation that last computed all that it needs.
    whole: Vec<u64>,
    /// Outputs to evaluate whole.
    waiting: Vec<OutputId>,
    scratch: Scratch,
    left: Vec<u64>,
    right: Vec<u64>,
    flagged: Vec<bool>,
}

impl General {
    /// Begins a new evaluation: all node values become stale.
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
        if self.whole.len() < program.outputs.len() {
            self.whole.resize(program.outputs.len(), 0);
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

    /// Evaluates all nodes that an output needs and that have no value yet.
    pub fn evaluate_whole(
        &mut self,
        around: &Surroundings<'_>,
        windows: &mut WindowStore,
        output: OutputId,
    ) {
        if self.whole[output.index()] == self.generation {
            return;
        }
        let needs = &around.program.needs;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.clear();
        waiting.push(output);
        let mut next = 0;
        while let Some(output) = waiting.get(next).copied() {
            next += 1;
            for base in needs.bases.get(output.index()) {
                let evaluated = &mut self.whole[base.index()];
                if std::mem::replace(evaluated, self.generation) != self.generation {
                    waiting.push(*base);
                }
            }
        }
        self.whole[output.index()] = self.generation;
        // Bases come before their users.
        waiting.sort_unstable();
        for output in &waiting {
            self.evaluate(around, windows, needs.nodes.get(output.index()));
        }
        self.waiting = waiting;
    }

    /// Evaluates the nodes that have no value yet. `nodes` are in ascending
    /// order.
    fn evaluate(&mut self, around: &Surroundings<'_>, windows: &mut WindowStore, nodes: &[NodeId]) {
        for node in nodes {
            if self.is_known(*node) {
                continue;
            }
            let (before, rest) = self.values.split_at_mut(node.index());
            let operands = Operands { program: around.program, values: before };
            let value = &mut rest[0];
            value.renew(self.generation);
            let mut buffers = Buffers {
                windows,
                scratch: &mut self.scratch,
                left: &mut self.left,
                right: &mut self.right,
                flagged: &mut self.flagged,
            };
            value.status = buffers.node(around, operands, *node, value);
            if value.status != Status::Values {
                value.ids.clear();
                value.lanes.clear();
            }
        }
    }

    /// Evaluates the operations without kernels of an output whose columns are
    /// right.
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
            // The plan has only nodes with columns here.
            let Some((section, place, ids)) = around.layout.column(*node) else { continue };
            let value = &mut self.values[node.index()];
            value.renew(self.generation);
            value.status = Status::Values;
            value.ids.extend_from_slice(ids);
            let value_type = around.program.nodes[node.index()].value_type;
            let scalar = scalar_of(value_type).unwrap_or(Scalar::U64);
            let offset = around.frame.placed[section.index()].offset(place);
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
