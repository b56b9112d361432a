//! The general path: evaluates a metric node by node over explicit lists of
//! instances.
//!
//! It applies whenever values decide which instances a result has, when
//! previous samples do not have the instances of the present ones (the first
//! fetches, instances that come and go, counters that fall), and to operations
//! that no kernel has. In the last case it begins with the columns that kernels
//! have computed. Which instances a node can have is for [`super::instances`] to
//! say.

mod operation;

use super::clock::Clock;
use super::history::HistoryStore;
use super::layout::{Frame, GeneralPlan, Layout};
use super::windows::WindowStore;
use crate::kernel::Scalar;
use crate::kernel::interp::{Scratch, read};
use crate::model::{InstId, PmStatus};
use crate::program::{NodeId, Program, Reason, Status, scalar_of};
use operation::{Buffers, Operands};

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
