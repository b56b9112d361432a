//! Layouts: everything about an evaluation that does not depend on values.
//!
//! A layout is made when a fetch delivers metrics, failures or instances in a
//! constellation not seen before. It says where each column lies, which lanes
//! each node has, which segments the kernels run over and what is copied
//! where. While the constellation stays the same, evaluating is following it.

mod instances;
mod schedule;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::decode::Survey;
use super::lanes::{LaneSet, Run, intersection};
use super::verdicts::Verdicts;
use crate::kernel::{LANE_GROUP, Rows, Scalar};

use crate::model::{InstId, InstanceDomain, PmStatus};
use crate::program::{KernelSlot, NodeId, Op, Placement, Program, Status};
use crate::result::LayoutId;
pub use instances::{empty_or, first_failed, first_without};

/// Instance domain as delivered.
pub type Domain = Result<Arc<InstanceDomain>, PmStatus>;

/// See the module's description. Offsets are in bytes into the workspace
/// arena unless said otherwise.
#[derive(Debug)]
pub struct Layout {
    /// For those who keep what they found out about it.
    pub id: LayoutId,
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
    /// The same with the instances that selectors found before and that are
    /// in no domain now.
    pub names: Box<[Domain]>,
    /// Instance domains that constants are spread over.
    pub fetched: Box<[Domain]>,
    /// The instances that filters by pattern take, of those that their operands
    /// can have. A pattern may take too long to find that out.
    pub taken: HashMap<NodeId, Result<Arc<[InstId]>, PmStatus>>,
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
    General(GeneralPlan),
}

/// How the general path evaluates an output if the columns are right: previous
/// samples are where kernels find them, and no kernel has set a flag.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralPlan {
    /// Where it begins.
    pub columns: Box<[NodeColumn]>,
    /// Nodes above the columns, ascending.
    pub nodes: Box<[NodeId]>,
}

/// The column of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeColumn {
    /// The node.
    pub node: NodeId,
    /// Where the column lies.
    pub offset: u32,
    /// Its lanes.
    pub lanes: LaneSet,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A layout in the making.
struct Builder<'p> {
    program: &'p Program,
    verdicts: &'p mut Verdicts,
    /// Lanes of previous samples, by history.
    samples: &'p [Option<LaneSet>],
    /// Parallel to the program's nodes, as far as they are analysed.
    nodes: Vec<NodeLayout>,
    /// Every list of instances so far, once.
    sets: HashSet<Arc<[InstId]>>,
    /// The list that was interned last: inputs over one domain mostly follow each other.
    latest: Arc<[InstId]>,
    /// Intersections found so far.
    intersections: HashMap<Lists, LaneSet>,
    /// Runs found so far.
    runs: HashMap<Lists, Rc<[Run]>>,
    /// Bytes of the arenas given away.
    work: usize,
    history: usize,
    phases: Vec<Phase>,
    /// What filters by pattern take.
    taken: HashMap<NodeId, Result<Arc<[InstId]>, PmStatus>>,
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
        verdicts: &mut Verdicts,
        samples: &[Option<LaneSet>],
        surveys: Vec<Survey>,
        named: Vec<Domain>,
        names: Vec<Domain>,
        fetched: Vec<Domain>,
    ) -> Result<Layout, TooLarge> {
        let mut builder = Builder {
            program,
            verdicts,
            samples,
            nodes: Vec::with_capacity(program.nodes.len()),
            sets: HashSet::new(),
            latest: Arc::new([]),
            intersections: HashMap::new(),
            runs: HashMap::new(),
            work: 0,
            history: 0,
            phases: Vec::new(),
            taken: HashMap::new(),
            aligned: HashMap::new(),
        };
        let lasting = surveys.iter().all(|survey| survey.sound);
        let elapsed: Result<Box<[u32]>, TooLarge> =
            program.histories.iter().map(|_| builder.alloc(1, 8)).collect();
        let inputs = builder.inputs(surveys)?;
        for node in &program.nodes {
            let layout = builder.analyse(node, &inputs, &names, &fetched);
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
            names: names.into(),
            fetched: fetched.into(),
            taken: builder.taken,
            id: LayoutId::fresh(),
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
        let ids: Arc<[InstId]> = match self.sets.get(ids.as_slice()) {
            Some(known) => Arc::clone(known),
            None => {
                let ids: Arc<[InstId]> = ids.into();
                self.sets.insert(Arc::clone(&ids));
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

    fn outputs(&self) -> Box<[OutputLayout]> {
        let outputs = self.program.outputs.iter().map(|output| {
            let node = self.node(output.root);
            match (node.regular, node.status, node.offset) {
                (false, ..) => OutputLayout::General(self.general_plan(output.root)),
                (true, Status::Values, Some(offset)) => {
                    OutputLayout::Column { offset, lanes: node.lanes.clone() }
                }
                (true, Status::Values, None) => {
                    OutputLayout::General(self.general_plan(output.root))
                }
                (true, status, _) => OutputLayout::Without(status),
            }
        });
        outputs.collect()
    }

    /// Walks from a root down to columns.
    fn general_plan(&self, root: NodeId) -> GeneralPlan {
        let (mut columns, mut nodes) = (Vec::new(), BTreeSet::new());
        let mut seen = BTreeSet::from([root]);
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            let node = self.node(id);
            if let (true, Some(offset)) = (self.is_column(id), node.offset) {
                columns.push(NodeColumn { node: id, offset, lanes: node.lanes.clone() });
                continue;
            }
            nodes.insert(id);
            self.program.nodes[id.index()].op.operands(|operand| {
                if seen.insert(operand) {
                    stack.push(operand);
                }
            });
        }
        GeneralPlan { columns: columns.into(), nodes: nodes.into_iter().collect() }
    }
}
