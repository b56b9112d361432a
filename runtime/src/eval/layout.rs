//! Layouts: everything about an evaluation that does not depend on values.
//!
//! A layout is made when a fetch delivers metrics, failures or instances in a
//! constellation not seen before. It says where each column lies, which lanes
//! each node has, which segments the kernels run over and what is copied
//! where. While the constellation stays the same, evaluating is following it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::decode::Survey;
use super::lanes::{Finder, LaneSet, Run, align, has_repeats, intersection};
use crate::kernel::{Body, LANE_GROUP, ReduceOp, Rows, Scalar};
use crate::model::{InstId, InstanceDomain, PmStatus};
use crate::program::{
    KernelSlot, Node, NodeId, Op, Placement, PreviousLanes, Program, Reason, Status, StepOperand,
    scalar_of,
};

/// Instance domain as delivered.
pub type Domain = Result<Arc<InstanceDomain>, PmStatus>;

/// See the module's description. Offsets are in bytes into the workspace
/// arena unless said otherwise.
#[derive(Debug)]
pub struct Layout {
    /// Parallel to the program's inputs.
    pub inputs: Box<[InputLayout]>,
    /// Parallel to the program's outputs.
    pub outputs: Box<[OutputLayout]>,
    /// Parallel to the program's histories; the operand's status where it has
    /// no column now.
    pub histories: Box<[Result<HistoryLayout, Status>]>,
    /// Offset of the elapsed seconds of each history.
    pub elapsed: Box<[u32]>,
    /// Values to write before anything is computed.
    pub fills: Box<[Fill]>,
    /// What to do, in order.
    pub phases: Box<[Phase]>,
    /// Bytes of the workspace arena.
    pub work_size: usize,
    /// Bytes of the history arena.
    pub history_size: usize,
    /// Instance domains that filters looked at.
    pub named: Box<[Domain]>,
    /// Instance domains that constants are spread over.
    pub fetched: Box<[Domain]>,
    /// False for a layout that serves one fetch: a value could not be decoded,
    /// so that the same counts may mean another layout next time, or a
    /// previous sample has other lanes than its operand has now.
    pub lasting: bool,
}

/// An input in a layout.
#[derive(Debug)]
pub struct InputLayout {
    /// Count word of the value set.
    pub raw_count: i32,
    /// Whether there are values.
    pub status: Status,
    /// Instances as delivered.
    pub ids: Arc<[InstId]>,
    /// Offset of the column.
    pub offset: u32,
}

/// An output in a layout.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputLayout {
    /// A column at `offset`.
    Column {
        /// Where it lies.
        offset: u32,
        /// Its lanes.
        lanes: LaneSet,
    },
    /// No values, whatever the numbers are.
    Without(Status),
    /// Only the general path can tell.
    General,
}

/// A history whose operand has a column.
#[derive(Clone, Debug)]
pub struct HistoryLayout {
    /// Lanes of the operand.
    pub lanes: LaneSet,
    /// Offset of the operand's column.
    pub from: u32,
    /// Offset in the history arena.
    pub to: u32,
    /// Bytes of the lanes.
    pub bytes: u32,
    /// Type of the lanes.
    pub scalar: Scalar,
    /// Lanes and offset of the previous sample, if it has other lanes than
    /// the operand.
    pub other: Option<(LaneSet, u32)>,
}

impl HistoryLayout {
    /// Lanes of the previous sample and its offset in the history arena, until
    /// the operand's column takes its place.
    pub fn previous(&self) -> (&LaneSet, u32) {
        match &self.other {
            Some((lanes, offset)) => (lanes, *offset),
            None => (&self.lanes, self.to),
        }
    }
}

/// The same bits in consecutive lanes.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// First lane.
    pub offset: u32,
    /// Number of lanes.
    pub lanes: u32,
    /// Bytes of a lane.
    pub width: u32,
    /// Bits of a lane.
    pub bits: u64,
}

/// Copies, then kernel calls that are independent of each other.
#[derive(Debug, Default)]
pub struct Phase {
    /// Copies that align operands of the calls.
    pub copies: Vec<Copy>,
    /// The calls.
    pub calls: Vec<Call>,
}

/// Bytes to copy within an arena.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// True for the history arena, whose end has room for aligned copies; else
    /// the workspace arena.
    pub in_history: bool,
    /// Source offset.
    pub from: u32,
    /// Destination offset.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u32,
}

/// One kernel over the segments of all its uses in a phase.
#[derive(Debug)]
pub struct Call {
    /// The kernel.
    pub kernel: KernelSlot,
    /// Its segments.
    pub rows: Rows,
    /// For kernels with flags, the outputs that depend on each segment; else empty.
    pub dependents: Vec<Box<[u32]>>,
}

/// The constellation does not fit into 32-bit offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the values of one fetch take more than 4 GiB")]
pub struct TooLarge;

/// Lanes of a node in the regular case.
#[derive(Clone, Debug)]
struct NodeLayout {
    status: Status,
    lanes: LaneSet,
    /// False when instances or failures of this node depend on values.
    regular: bool,
    offset: Option<u32>,
}

/// Two lists of instances, by address.
type Lists = (*const InstId, *const InstId);

struct Builder<'p> {
    program: &'p Program,
    /// Lanes of previous samples, by history.
    samples: &'p [Option<LaneSet>],
    nodes: Vec<NodeLayout>,
    sets: HashMap<Arc<[InstId]>, ()>,
    /// The list that was interned last: inputs over one domain mostly follow each other.
    latest: Arc<[InstId]>,
    /// Intersections found so far.
    intersections: HashMap<Lists, LaneSet>,
    /// Runs found so far.
    runs: HashMap<Lists, Rc<[Run]>>,
    work: usize,
    history: usize,
    phases: Vec<Phase>,
    /// Aligned copies made so far, by source offset, arena and wanted lanes.
    aligned: HashMap<(u32, bool, *const InstId), u32>,
}

impl Layout {
    /// Makes the layout of a program for what a fetch delivered. `samples` is
    /// parallel to the histories and tells the lanes of those previous samples
    /// that lie in the arena; `surveys` is parallel to the inputs, `named` and
    /// `fetched` to the program's domains.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn new(
        program: &Program,
        samples: &[Option<LaneSet>],
        surveys: Vec<Survey>,
        named: Vec<Domain>,
        fetched: Vec<Domain>,
    ) -> Result<Layout, TooLarge> {
        let mut builder = Builder {
            program,
            samples,
            nodes: Vec::with_capacity(program.nodes.len()),
            sets: HashMap::new(),
            latest: Arc::new([]),
            intersections: HashMap::new(),
            runs: HashMap::new(),
            work: 0,
            history: 0,
            phases: Vec::new(),
            aligned: HashMap::new(),
        };
        let lasting = surveys.iter().all(|survey| survey.sound);
        let elapsed: Result<Box<[u32]>, TooLarge> =
            program.histories.iter().map(|_| builder.alloc(1, 8)).collect();
        let inputs = builder.inputs(surveys)?;
        for node in &program.nodes {
            let layout = builder.analyse(node, &inputs, &named, &fetched);
            builder.nodes.push(layout);
        }
        let fills = builder.fills()?;
        let histories = builder.place_and_schedule(&inputs)?;
        let passing = histories.iter().flatten().any(|history| history.other.is_some());
        let outputs = builder.outputs();
        Ok(Layout {
            inputs,
            outputs,
            histories,
            elapsed: elapsed?,
            fills,
            phases: builder.phases.into(),
            work_size: builder.work + COLUMN_SLACK,
            history_size: builder.history + COLUMN_SLACK,
            named: named.into(),
            fetched: fetched.into(),
            lasting: lasting && !passing,
        })
    }
}

/// Kernels may read whole groups of lanes beyond a column's end.
const COLUMN_SLACK: usize = LANE_GROUP * 8;

impl Builder<'_> {
    /// Room for lanes that kernels read only.
    fn alloc(&mut self, lanes: usize, width: usize) -> Result<u32, TooLarge> {
        let lanes = if lanes == 1 { 1 } else { lanes.next_multiple_of(LANE_GROUP) };
        self.alloc_whole(lanes, width)
    }

    /// Room for just so many lanes.
    fn alloc_whole(&mut self, lanes: usize, width: usize) -> Result<u32, TooLarge> {
        let offset = u32::try_from(self.work).map_err(|_| TooLarge)?;
        self.work += (lanes * width).next_multiple_of(8);
        Ok(offset)
    }

    fn alloc_history(&mut self, lanes: usize, width: usize) -> Result<u32, TooLarge> {
        let offset = u32::try_from(self.history).map_err(|_| TooLarge)?;
        self.history += (lanes.next_multiple_of(LANE_GROUP) * width).next_multiple_of(8);
        Ok(offset)
    }

    /// The one copy of a list of instances in this layout, so that equal lists
    /// mostly compare by address.
    fn intern(&mut self, ids: Vec<InstId>) -> Arc<[InstId]> {
        if *self.latest == ids[..] {
            return Arc::clone(&self.latest);
        }
        let ids: Arc<[InstId]> = match self.sets.get_key_value(ids.as_slice()) {
            Some((known, ())) => Arc::clone(known),
            None => {
                let ids: Arc<[InstId]> = ids.into();
                self.sets.insert(Arc::clone(&ids), ());
                ids
            }
        };
        self.latest = Arc::clone(&ids);
        ids
    }

    /// The instances of `a` that `b` has as well.
    fn intersection(&mut self, a: &LaneSet, b: &LaneSet) -> LaneSet {
        let key = (a.ids().as_ptr(), b.ids().as_ptr());
        if let Some(known) = self.intersections.get(&key) {
            return known.clone();
        }
        let ids = LaneSet::Set(self.intern(intersection(a.ids(), b.ids())));
        self.intersections.insert(key, ids.clone());
        ids
    }

    fn inputs(&mut self, surveys: Vec<Survey>) -> Result<Box<[InputLayout]>, TooLarge> {
        let program = self.program;
        let inputs = program.inputs.iter().zip(surveys).map(|(input, survey)| {
            let offset = self.alloc(survey.ids.len(), input.value_type.lane_bytes())?;
            let Survey { status, raw_count, ids, .. } = survey;
            Ok(InputLayout { raw_count, status, ids: self.intern(ids), offset })
        });
        inputs.collect()
    }

    fn node(&self, id: NodeId) -> &NodeLayout {
        &self.nodes[id.index()]
    }

    /// Lanes of a node from those of its operands; the same rules as
    /// [`super::general`] applies to values.
    fn analyse(
        &mut self,
        node: &Node,
        inputs: &[InputLayout],
        named: &[Domain],
        fetched: &[Domain],
    ) -> NodeLayout {
        let mut regular = true;
        node.op.operands(|operand| regular &= self.node(operand).regular);
        let without = |status| NodeLayout { status, lanes: LaneSet::Single, regular, offset: None };
        let with = |lanes: LaneSet| match lanes.is_empty() {
            true => without(Status::Empty(Reason::InstanceMissing)),
            false => NodeLayout { status: Status::Values, lanes, regular, offset: None },
        };
        match &node.op {
            Op::Input(slot) => {
                let input = &inputs[slot.index()];
                match (input.status, node.is_set) {
                    (Status::Values, true) => {
                        // Lanes are found by instance here, so what names an
                        // instance twice is left to the general path.
                        let regular = !has_repeats(&input.ids);
                        NodeLayout { regular, ..with(LaneSet::Set(Arc::clone(&input.ids))) }
                    }
                    (Status::Values, false) => with(LaneSet::Single),
                    (status, _) => without(status),
                }
            }
            Op::Constant(_) => with(LaneSet::Single),
            Op::ConstantPerInstance { domain, .. } => match &fetched[domain.index()] {
                Err(status) => without(Status::Failed(*status)),
                Ok(domain) => {
                    let ids: Vec<InstId> = domain.instances().map(|(id, _)| id).collect();
                    let regular = !has_repeats(&ids);
                    NodeLayout { regular, ..with(LaneSet::Set(self.intern(ids))) }
                }
            },
            Op::Nothing | Op::NoValue => without(Status::Empty(Reason::NoValue)),
            Op::Map { operands, .. } => match **operands {
                [operand] => NodeLayout { offset: None, ..self.node(operand).clone() },
                [left, right] => {
                    let (a, b) = (self.node(left), self.node(right));
                    if let Some(status) = first_without(&[a.status, b.status]) {
                        return without(status);
                    }
                    let (a, b) = (a.lanes.clone(), b.lanes.clone());
                    match (&a, &b) {
                        (LaneSet::Single, _) => with(b),
                        (_, LaneSet::Single) => with(a),
                        _ if a == b => with(a),
                        _ => with(self.intersection(&a, &b)),
                    }
                }
                _ => without(Status::Failed(PmStatus::BOTCH)),
            },
            Op::Change { operand, history, .. } => {
                let regular = regular && self.is_placed(*operand);
                let now = NodeLayout { offset: None, regular, ..self.node(*operand).clone() };
                match &self.samples[history.index()] {
                    Some(before) if now.status == Status::Values && *before != now.lanes => {
                        let lanes = self.intersection(&now.lanes, before);
                        match lanes.is_empty() {
                            true => without(Status::Empty(Reason::FirstSample)),
                            false => NodeLayout { lanes, ..now },
                        }
                    }
                    _ => now,
                }
            }
            Op::Choose { guard, yes, no } => {
                let never = |id: &NodeId| matches!(self.program.nodes[id.index()].op, Op::NoValue);
                let branches = [(yes, never(yes)), (no, never(no))];
                let statuses = [guard, yes, no].map(|id| match never(id) && id != guard {
                    true => Status::Values,
                    false => self.node(*id).status,
                });
                if let Some(status) = first_failed(&statuses).or(first_without(&statuses)) {
                    return without(status);
                }
                let sets = |id: &NodeId| matches!(self.node(*id).lanes, LaneSet::Set(_));
                let chooser = std::iter::once(guard)
                    .chain(branches.iter().filter(|(_, never)| !never).map(|(id, _)| *id))
                    .find(|id| sets(id));
                let lanes = chooser.map_or(LaneSet::Single, |id| self.node(*id).lanes.clone());
                for (branch, never) in branches {
                    let have = &self.node(*branch).lanes;
                    let lacks = *have != lanes && align(have.ids(), lanes.ids()).is_none();
                    if !never && sets(branch) && lacks {
                        regular = false;
                    }
                }
                NodeLayout { status: Status::Values, lanes, regular, offset: None }
            }
            Op::Chosen { guard, branch } => match self.node(*guard).status {
                Status::Values => {
                    NodeLayout { regular, offset: None, ..self.node(*branch).clone() }
                }
                status => without(status),
            },
            Op::Reduce { op, operand } => match (self.node(*operand).status, op) {
                (Status::Failed(status), _) => without(Status::Failed(status)),
                (Status::Values, _) => {
                    let regular = regular && self.is_placed(*operand);
                    NodeLayout { regular, ..with(LaneSet::Single) }
                }
                (Status::Empty(reason), ReduceOp::Max | ReduceOp::Min) => {
                    without(Status::Empty(reason))
                }
                // Zero of no lanes: rare, and there is no column to reduce.
                (Status::Empty(_), _) => NodeLayout { regular: false, ..with(LaneSet::Single) },
            },
            Op::Count(_) => with(LaneSet::Single),
            Op::Named { operand, domain, name } => {
                let operand = self.node(*operand);
                let (Status::Values, LaneSet::Set(ids)) = (operand.status, &operand.lanes) else {
                    return without(empty_or(operand.status));
                };
                let id = named[domain.index()].as_ref().ok().and_then(|domain| domain.lookup(name));
                let ids = ids.iter().copied().filter(|have| Some(*have) == id).collect();
                with(LaneSet::Set(self.intern(ids)))
            }
            Op::Matching { operand, domain, pattern, negated } => {
                let operand = self.node(*operand);
                let (Status::Values, LaneSet::Set(ids)) = (operand.status, &operand.lanes) else {
                    return without(empty_or(operand.status));
                };
                let pattern = &self.program.patterns[*pattern as usize];
                let domain = named[domain.index()].as_ref().ok();
                let taken = |id: &InstId| {
                    let name = domain.and_then(|domain| domain.name(*id));
                    name.is_some_and(|name| pattern.is_match(first_word(name)) != *negated)
                };
                let ids = ids.iter().copied().filter(taken).collect();
                with(LaneSet::Set(self.intern(ids)))
            }
            Op::First(operand) => match self.node(*operand).status {
                Status::Values => with(LaneSet::Single),
                status => without(status),
            },
        }
    }

    fn is_placed(&self, id: NodeId) -> bool {
        self.program.placements[id.index()].is_some()
    }

    fn is_column(&self, id: NodeId) -> bool {
        let node = self.node(id);
        node.regular && node.status == Status::Values
    }

    fn fills(&mut self) -> Result<Box<[Fill]>, TooLarge> {
        let mut fills = Vec::new();
        for (index, node) in self.program.nodes.iter().enumerate() {
            let id = NodeId(index as u32);
            if self.program.placements[index] != Some(Placement::Fill) || !self.is_column(id) {
                continue;
            }
            let bits = match &node.op {
                Op::Constant(bits) | Op::ConstantPerInstance { bits, .. } => *bits,
                Op::Count(operand) => match self.node(*operand).status {
                    Status::Values => self.node(*operand).lanes.len() as u64,
                    _ => 0,
                },
                _ => continue,
            };
            let lanes = self.node(id).lanes.len();
            let width = node.value_type.lane_bytes();
            let offset = self.alloc(lanes, width)?;
            self.nodes[index].offset = Some(offset);
            fills.push(Fill { offset, lanes: lanes as u32, width: width as u32, bits });
        }
        Ok(fills.into())
    }

    /// Places all columns and plans copies and calls, phase by phase.
    fn place_and_schedule(
        &mut self,
        inputs: &[InputLayout],
    ) -> Result<Box<[Result<HistoryLayout, Status>]>, TooLarge> {
        let program = self.program;
        for (index, placement) in program.placements.iter().enumerate() {
            if let Some(Placement::Input(slot)) = placement {
                self.nodes[index].offset = Some(inputs[slot.index()].offset);
            }
        }
        for step in &program.steps {
            if self.is_column(step.output) {
                let lanes = self.node(step.output).lanes.len();
                let width = program.nodes[step.output.index()].value_type.lane_bytes();
                // Kernels write whole groups, even for a single instance.
                let single = program.kernels[step.kernel.index()].ir().is_single();
                let lanes = if single { 1 } else { lanes.next_multiple_of(LANE_GROUP) };
                self.nodes[step.output.index()].offset = Some(self.alloc_whole(lanes, width)?);
            }
        }
        // Views of inputs and fills may be operands of any step; views of
        // steps belong behind the step. Both resolve in node order.
        let levels = program.steps.iter().map(|step| step.level as usize + 1).max().unwrap_or(0);
        self.phases.resize_with(levels + 1, Phase::default);
        let mut histories = self.histories()?;
        let mut calls: Vec<HashMap<KernelSlot, usize>> = vec![HashMap::new(); levels];
        let dependents = self.dependents();
        // By level, so that the first step that needs a copy is in the
        // earliest phase that does.
        let mut order: Vec<usize> = (0..program.steps.len()).collect();
        order.sort_by_key(|step| program.steps[*step].level);
        for index in order {
            let step = &program.steps[index];
            if !self.is_column(step.output) {
                continue;
            }
            let level = step.level as usize;
            let lanes = self.node(step.output).lanes.clone();
            let ir = program.kernels[step.kernel.index()].ir();
            // A reduction runs over its operand's lanes, not its output's.
            let lanes = match (&ir.body, step.operands.first()) {
                (Body::Reduce(_), Some(StepOperand::Column(node))) => {
                    self.node(*node).lanes.clone()
                }
                _ => lanes,
            };
            let mut offsets = Vec::with_capacity(step.operands.len());
            for operand in &step.operands {
                offsets.push(self.locate(operand, &lanes, level, &histories)?);
            }
            let call = match calls[level].get(&step.kernel) {
                Some(call) => *call,
                None => {
                    let call =
                        Call { kernel: step.kernel, rows: Rows::new(ir), dependents: vec![] };
                    self.phases[level].calls.push(call);
                    calls[level].insert(step.kernel, self.phases[level].calls.len() - 1);
                    self.phases[level].calls.len() - 1
                }
            };
            let output = self.node(step.output).offset.unwrap_or_default();
            let call = &mut self.phases[level].calls[call];
            call.rows.push(ir, lanes.len() as u32, &offsets, output, step.constants);
            if let Some(outputs) = dependents.get(&(index as u32)) {
                call.dependents.push(outputs.clone());
            }
        }
        for (index, placement) in program.placements.iter().enumerate() {
            let id = NodeId(index as u32);
            if let (Some(Placement::View(of)), true) = (placement, self.is_column(id)) {
                let lanes = self.node(id).lanes.clone();
                let offset = self.locate(of, &lanes, levels, &histories)?;
                self.nodes[index].offset = Some(offset);
            }
        }
        for (history, layout) in program.histories.iter().zip(&mut histories) {
            if let Ok(layout) = layout {
                layout.from = self.node(history.operand).offset.unwrap_or_default();
            }
        }
        Ok(histories)
    }

    /// Outputs that depend on each step whose kernel has flags.
    fn dependents(&self) -> HashMap<u32, Box<[u32]>> {
        let program = self.program;
        let mut dependents: HashMap<u32, Vec<u32>> = HashMap::new();
        for (index, step) in (0u32..).zip(&program.steps) {
            let body = &program.kernels[step.kernel.index()].ir().body;
            if matches!(body, Body::Map { flags, .. } if !flags.is_empty()) {
                dependents.insert(index, Vec::new());
            }
        }
        if dependents.is_empty() {
            return HashMap::new();
        }
        for (index, output) in (0u32..).zip(&program.outputs) {
            for node in &output.nodes {
                if let Some(Placement::Step(step)) = program.placements[node.index()]
                    && let Some(outputs) = dependents.get_mut(&step)
                {
                    outputs.push(index);
                }
            }
        }
        dependents.into_iter().map(|(step, outputs)| (step, outputs.into())).collect()
    }

    /// Gives every history whose operand has a column its place.
    fn histories(&mut self) -> Result<Box<[Result<HistoryLayout, Status>]>, TooLarge> {
        let program = self.program;
        let layouts = program.histories.iter().zip(self.samples).map(|(history, before)| {
            let node = self.node(history.operand);
            let (status, lanes) = (node.status, node.lanes.clone());
            if !self.is_column(history.operand) || !self.is_placed(history.operand) {
                return Ok(Err(status));
            }
            let value_type = program.nodes[history.operand.index()].value_type;
            let Some(scalar) = scalar_of(value_type) else {
                return Ok(Err(Status::Failed(PmStatus::TYPE)));
            };
            let to = self.alloc_history(lanes.len(), scalar.bytes())?;
            let other = match before {
                Some(before) if *before != lanes => {
                    Some((before.clone(), self.alloc_history(before.len(), scalar.bytes())?))
                }
                _ => None,
            };
            // Not larger than the operand's column, whose offset fits.
            let bytes = (lanes.len() * scalar.bytes()) as u32;
            Ok(Ok(HistoryLayout { lanes, from: 0, to, bytes, scalar, other }))
        });
        layouts.collect()
    }

    /// Offset of a step's operand for the step's lanes, planning a copy into
    /// `phase` where they are not in one piece.
    fn locate(
        &mut self,
        operand: &StepOperand,
        wanted: &LaneSet,
        phase: usize,
        histories: &[Result<HistoryLayout, Status>],
    ) -> Result<u32, TooLarge> {
        // Operands of a regular step are regular and have values, hence places.
        let place = |builder: &Self, node: NodeId| {
            let layout = builder.node(node);
            let width = builder.program.nodes[node.index()].value_type.lane_bytes();
            (layout.offset.unwrap_or_default(), layout.lanes.clone(), width)
        };
        let first = |builder: &Self, lanes: &LaneSet, of: NodeId| {
            let id = builder.node(of).lanes.ids().first().copied();
            id.and_then(|id| Finder::new(lanes.ids()).find(id)).unwrap_or(0)
        };
        match *operand {
            StepOperand::Elapsed(history) => Ok((history.index() * 8) as u32),
            StepOperand::Single(node) => Ok(place(self, node).0),
            StepOperand::First { node, of } => {
                let (offset, lanes, width) = place(self, node);
                Ok(offset + (first(self, &lanes, of) * width) as u32)
            }
            StepOperand::Column(node) => {
                let (offset, lanes, width) = place(self, node);
                self.aligned(offset, false, &lanes, width, wanted, phase)
            }
            StepOperand::Previous { history, lanes: choice } => {
                let Ok(layout) = &histories[history.index()] else { return Ok(0) };
                let (lanes, offset) = layout.previous();
                let (lanes, width) = (lanes.clone(), layout.scalar.bytes());
                match choice {
                    PreviousLanes::Single => Ok(offset),
                    PreviousLanes::First(of) => {
                        Ok(offset + (first(self, &lanes, of) * width) as u32)
                    }
                    PreviousLanes::Column => {
                        self.aligned(offset, true, &lanes, width, wanted, phase)
                    }
                }
            }
        }
    }

    fn aligned(
        &mut self,
        offset: u32,
        in_history: bool,
        lanes: &LaneSet,
        width: usize,
        wanted: &LaneSet,
        phase: usize,
    ) -> Result<u32, TooLarge> {
        if lanes == wanted {
            return Ok(offset);
        }
        let runs = self.runs.entry((lanes.ids().as_ptr(), wanted.ids().as_ptr()));
        let runs =
            runs.or_insert_with(|| align(lanes.ids(), wanted.ids()).unwrap_or_default().into());
        let runs = Rc::clone(runs);
        if let [run] = runs[..] {
            return Ok(offset + run.from * width as u32);
        }
        let key = (offset, in_history, wanted.ids().as_ptr());
        if let Some(copy) = self.aligned.get(&key) {
            return Ok(*copy);
        }
        let to = match in_history {
            true => self.alloc_history(wanted.len(), width)?,
            false => self.alloc(wanted.len(), width)?,
        };
        let width = width as u32;
        self.phases[phase].copies.extend(runs.iter().map(|run| Copy {
            in_history,
            from: offset + run.from * width,
            to: to + run.to * width,
            bytes: run.len * width,
        }));
        self.aligned.insert(key, to);
        Ok(to)
    }

    fn outputs(&self) -> Box<[OutputLayout]> {
        let outputs = self.program.outputs.iter().map(|output| {
            let node = self.node(output.root);
            match (node.regular, node.status, node.offset) {
                (false, ..) => OutputLayout::General,
                (true, Status::Values, Some(offset)) => {
                    OutputLayout::Column { offset, lanes: node.lanes.clone() }
                }
                (true, Status::Values, None) => OutputLayout::General,
                (true, status, _) => OutputLayout::Without(status),
            }
        });
        outputs.collect()
    }
}

/// The first status that is not `Values`, in the order in which operands count.
pub fn first_without(statuses: &[Status]) -> Option<Status> {
    first_failed(statuses)
        .or_else(|| statuses.iter().copied().find(|status| matches!(status, Status::Empty(_))))
}

/// The first failure.
pub fn first_failed(statuses: &[Status]) -> Option<Status> {
    statuses.iter().copied().find(|status| matches!(status, Status::Failed(_)))
}

/// The status of a filter over an operand that is no set with values.
pub fn empty_or(status: Status) -> Status {
    match status {
        Status::Values => Status::Empty(Reason::InstanceMissing),
        other => other,
    }
}

/// The part of an external instance name that patterns see.
pub fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}
