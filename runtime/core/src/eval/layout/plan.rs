//! What to do in a section of a certain shape: which columns there are, which
//! kernels run over them, what is copied, kept and filled in.
//!
//! A plan holds no instances and no counts, so that it serves all hosts. Its
//! columns have places: a column lies `unit` bytes for each lane behind the
//! beginning of its set's columns. [`super::frame`] makes offsets of that.

use std::collections::{BTreeSet, HashMap};

use super::sections::Sections;
use super::shape::{NodeShape, SetId, Shape};
use crate::kernel::{Body, Scalar};
use crate::model::PmStatus;
use crate::program::{
    KernelSlot, NodeId, Op, Placement, PreviousLanes, Program, Status, Step, StepOperand, scalar_of,
};

/// What to do in a section of a certain shape, whoever's it is.
#[derive(Debug)]
pub struct Plan {
    /// Position of the section.
    pub section: u32,
    /// What it is for.
    pub shape: Shape,
    /// Bytes for each lane of the workspace's columns, by set.
    pub work: Box<[u32]>,
    /// The same of the block of previous samples.
    pub kept: Box<[u32]>,
    /// Sets whose columns in that block hold the samples of other sets until the
    /// operands' own take their place.
    pub displaced: Box<[(SetId, SetId)]>,
    /// Columns of inputs, parallel to the section's inputs.
    pub inputs: Box<[Place]>,
    /// Columns of nodes, parallel to the section's nodes; `None` of those without.
    pub columns: Box<[Option<Place>]>,
    /// Kernel calls, by level.
    pub calls: Box<[Call]>,
    /// Columns of one set that are wanted as another's, by level.
    pub aligned: Box<[Aligned]>,
    /// First lanes that become single values, by level.
    pub firsts: Box<[FirstLane]>,
    /// Lanes to write before anything is computed.
    pub fills: Box<[Fill]>,
    /// Parallel to the section's histories; the operand's status where it has
    /// no column now.
    pub histories: Box<[Result<Kept, Status>]>,
    /// Parallel to the section's outputs.
    pub outputs: Box<[OutputPlan]>,
}

/// Where a column lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The lane of a single value: its offset.
    Fixed(u32),
    /// Among the workspace's columns of a set.
    Lanes {
        /// The set.
        set: SetId,
        /// Bytes for each lane in front of it.
        unit: u32,
    },
    /// Among the previous samples of a set.
    Kept {
        /// The set.
        set: SetId,
        /// Bytes for each lane in front of it; of a single value its offset.
        unit: u32,
    },
    /// What has become of a column in other lanes: a position in [`Plan::aligned`].
    Aligned(u32),
}

impl Place {
    /// The position of a column in other lanes.
    pub fn aligned(self) -> Option<u32> {
        match self {
            Place::Aligned(at) => Some(at),
            _ => None,
        }
    }
}

/// A column in the lanes of another set.
#[derive(Clone, Copy, Debug)]
pub struct Aligned {
    /// The phase before which it is needed.
    pub level: u32,
    /// The column.
    pub from: Place,
    /// Its set.
    pub have: SetId,
    /// Where it goes if its lanes are not there in one piece.
    pub to: Place,
    /// The set wanted.
    pub want: SetId,
    /// Bytes of a lane.
    pub width: u32,
    /// False if only kernels read it that go lane by lane: they can do so where
    /// the lanes are, piece by piece.
    pub in_one_piece: bool,
}

/// The lane of a column that belongs to the first instance of a set.
#[derive(Clone, Copy, Debug)]
pub struct FirstLane {
    /// The phase before which it is needed.
    pub level: u32,
    /// The column.
    pub from: Place,
    /// Its set.
    pub have: SetId,
    /// The set whose first instance is meant.
    pub of: SetId,
    /// Offset that it is copied to.
    pub to: u32,
    /// Bytes of a lane.
    pub width: u32,
}

/// The same bits in all lanes of a column.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// The column.
    pub to: Place,
    /// Its set.
    pub set: SetId,
    /// Bytes of a lane.
    pub width: u32,
    /// What is written.
    pub bits: FillBits,
}

/// What a fill writes.
#[derive(Clone, Copy, Debug)]
pub enum FillBits {
    /// Bits of a lane.
    Constant(u64),
    /// The number of instances.
    CountOf(SetId),
}

/// One kernel over its uses in a phase.
#[derive(Debug)]
pub struct Call {
    /// The phase.
    pub level: u32,
    /// The kernel.
    pub kernel: KernelSlot,
    /// Its uses.
    pub rows: Box<[Row]>,
    /// Operands of all of them, as many for each as the kernel has.
    operands: Box<[Place]>,
}

impl Call {
    /// Operands of the use at a position, parallel to the kernel's.
    pub fn operands_of(&self, row: usize) -> &[Place] {
        let each = self.operands.len() / self.rows.len();
        &self.operands[row * each..][..each]
    }
}

/// One use of a kernel.
#[derive(Debug)]
pub struct Row {
    /// Position of the step.
    pub step: u32,
    /// Its lanes.
    pub lanes: SetId,
    /// Its column.
    pub output: Place,
    /// Offset of its constants.
    pub constants: u32,
}

/// How the operand of a history becomes its sample.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Lanes of the operand.
    pub set: SetId,
    /// The operand's column.
    pub from: Place,
    /// Where it is kept, in place of the previous sample.
    pub to: Place,
    /// Type of the lanes.
    pub scalar: Scalar,
    /// Lanes of the previous sample, if they are others than the operand's.
    pub other: Option<SetId>,
}

impl Kept {
    /// Lanes of the previous sample, until the operand's column takes its
    /// place.
    pub fn previous(&self) -> SetId {
        self.other.unwrap_or(self.set)
    }
}

/// How an output comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputPlan {
    /// A column.
    Column {
        /// Where it lies.
        place: Place,
        /// Its lanes.
        set: SetId,
    },
    /// No values, whatever the numbers are.
    Without(Status),
    /// Only the general path can tell; how it begins, unless it begins with
    /// what was fetched.
    General(Option<Box<GeneralPlan>>),
}

/// How the general path evaluates an output if the columns are right: previous
/// samples are where kernels find them, and no kernel has set a flag.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralPlan {
    /// Nodes whose columns it begins with.
    pub columns: Box<[NodeId]>,
    /// Nodes above the columns, ascending.
    pub nodes: Box<[NodeId]>,
}

impl Plan {
    /// The plan of a section of that shape.
    pub fn new(program: &Program, sections: &Sections, section: u32, shape: Shape) -> Plan {
        let sets = shape.sets;
        let nodes = sections.all[section as usize].nodes.len();
        let builder = Builder {
            program,
            sections,
            section,
            shape,
            work: vec![0; sets],
            kept: vec![0; sets],
            columns: vec![None; nodes],
            aligned: Vec::new(),
            aligned_of: HashMap::new(),
        };
        builder.build()
    }
}

/// A plan in the making.
struct Builder<'p> {
    program: &'p Program,
    sections: &'p Sections,
    section: u32,
    shape: Shape,
    work: Vec<u32>,
    kept: Vec<u32>,
    columns: Vec<Option<Place>>,
    aligned: Vec<Aligned>,
    aligned_of: HashMap<(Place, SetId), u32>,
}

impl Builder<'_> {
    fn build(mut self) -> Plan {
        let (program, sections) = (self.program, self.sections);
        let section = &sections.all[self.section as usize];
        let inputs: Box<[Place]> = section
            .inputs
            .iter()
            .zip(self.shape.inputs.clone())
            .map(|(slot, input)| {
                let width = program.inputs[slot.index()].value_type.lane_bytes() as u32;
                match (self.section, input.status) {
                    (0, _) => Place::Fixed(sections.fixed_input(*slot)),
                    (_, Status::Values) => self.column(input.set, width),
                    _ => Place::Fixed(0),
                }
            })
            .collect();
        let fills = self.fills();
        for (at, id) in section.nodes.iter().enumerate() {
            if !self.shape.nodes[at].is_column() {
                continue;
            }
            let place = match &program.placements[id.index()] {
                Some(Placement::Input(slot)) => inputs[sections.inputs[slot.index()].at as usize],
                Some(Placement::Step(_)) => self.new_column(*id),
                _ => continue,
            };
            self.columns[at] = Some(place);
        }
        let mut histories = self.histories();
        let calls = self.calls(&histories);
        for (at, id) in section.nodes.iter().enumerate() {
            if let Some(Placement::View(of)) = &program.placements[id.index()]
                && self.shape.nodes[at].is_column()
            {
                let set = self.shape.nodes[at].set;
                self.columns[at] = Some(self.locate(of, set, sections.levels, &histories));
            }
        }
        for (history, kept) in section.histories.iter().zip(&mut histories) {
            if let Ok(kept) = kept {
                let operand = program.histories[history.index()].operand;
                kept.from = self.place(operand);
            }
        }
        let kept = histories.iter().flatten();
        let displaced: BTreeSet<(SetId, SetId)> =
            kept.filter_map(|kept| Some((kept.set, kept.other?))).collect();
        let firsts = self.firsts(&histories);
        let outputs = section.outputs.iter().map(|output| self.output(*output)).collect();
        self.find_pieces(&calls, &histories, &firsts);
        debug_assert!(self.aligned.is_sorted_by_key(|one| one.level), "steps are planned by level");
        Plan {
            section: self.section,
            shape: self.shape,
            work: self.work.into(),
            kept: self.kept.into(),
            displaced: displaced.into_iter().collect(),
            inputs,
            columns: self.columns.into(),
            calls,
            aligned: self.aligned.into(),
            firsts,
            fills,
            histories: histories.into(),
            outputs,
        }
    }

    /// A further column of the workspace.
    fn column(&mut self, set: SetId, width: u32) -> Place {
        let Some(bytes) = self.work.get_mut(set.index()) else { return Place::Fixed(0) };
        let unit = *bytes;
        *bytes += width;
        Place::Lanes { set, unit }
    }

    /// A further column of previous samples.
    fn kept(&mut self, set: SetId, width: u32) -> Place {
        let Some(bytes) = self.kept.get_mut(set.index()) else { return Place::Fixed(0) };
        let unit = *bytes;
        *bytes += width;
        Place::Kept { set, unit }
    }

    /// A column of its own for a node of this section or a single value.
    fn new_column(&mut self, id: NodeId) -> Place {
        let shape = self.node(id);
        match shape.set {
            SetId::SINGLE => Place::Fixed(self.sections.fixed(id)),
            set => self.column(set, self.width(id)),
        }
    }

    fn width(&self, id: NodeId) -> u32 {
        self.program.nodes[id.index()].value_type.lane_bytes() as u32
    }

    /// Shape of a node of this section, or of one that it imports, whose set
    /// is another section's.
    fn node(&self, id: NodeId) -> NodeShape {
        let home = self.sections.nodes[id.index()];
        if home.section == self.section {
            return self.shape.nodes[home.at as usize];
        }
        let imports = &self.sections.all[self.section as usize].imports;
        match imports.binary_search(&id) {
            Ok(at) => {
                let (status, regular) = self.shape.imports[at];
                NodeShape { status, set: SetId::SINGLE, regular }
            }
            // Single values that a fused kernel reads without being an operand
            // of a node here: there, as all of the kernel is regular.
            Err(_) => NodeShape { status: Status::Values, set: SetId::SINGLE, regular: true },
        }
    }

    /// Where the column of a node is that has one.
    fn place(&self, id: NodeId) -> Place {
        let home = self.sections.nodes[id.index()];
        match home.section == self.section {
            true => self.columns[home.at as usize].unwrap_or(Place::Fixed(0)),
            false => Place::Fixed(self.sections.fixed(id)),
        }
    }

    /// Constants and counts that have columns. A count is a single value of a
    /// section, whichever its own is.
    fn fills(&mut self) -> Box<[Fill]> {
        let (program, sections) = (self.program, self.sections);
        let section = &sections.all[self.section as usize];
        let mut fills = Vec::new();
        for (at, id) in section.nodes.iter().enumerate() {
            let node = &program.nodes[id.index()];
            let is_fill = program.placements[id.index()] == Some(Placement::Fill);
            if !is_fill || !self.shape.nodes[at].is_column() {
                continue;
            }
            let to = self.new_column(*id);
            self.columns[at] = Some(to);
            if let Op::Constant(bits) | Op::ConstantPerInstance { bits, .. } = node.op {
                let (set, width) = (self.shape.nodes[at].set, self.width(*id));
                fills.push(Fill { to, set, width, bits: FillBits::Constant(bits) });
            }
        }
        for id in &section.counts {
            let Op::Count(operand) = program.nodes[id.index()].op else { continue };
            if program.placements[id.index()] != Some(Placement::Fill) {
                continue;
            }
            let operand = self.node(operand);
            let bits = match (operand.status, operand.set) {
                (Status::Values, SetId::SINGLE) => FillBits::Constant(1),
                (Status::Values, set) => FillBits::CountOf(set),
                _ => FillBits::Constant(0),
            };
            let to = Place::Fixed(sections.fixed(*id));
            fills.push(Fill { to, set: SetId::SINGLE, width: self.width(*id), bits });
        }
        fills.into()
    }

    /// Gives every history whose operand has a column its place.
    fn histories(&mut self) -> Vec<Result<Kept, Status>> {
        let program = self.program;
        let section = &self.sections.all[self.section as usize];
        let histories = section.histories.iter().enumerate().map(|(at, history)| {
            let operand = program.histories[history.index()].operand;
            let shape = self.node(operand);
            if !shape.is_column() || program.placements[operand.index()].is_none() {
                return Err(shape.status);
            }
            let value_type = program.nodes[operand.index()].value_type;
            let Some(scalar) = scalar_of(value_type) else {
                return Err(Status::Failed(PmStatus::TYPE));
            };
            let width = scalar.bytes() as u32;
            let to = match shape.set {
                SetId::SINGLE => Place::Kept { set: SetId::SINGLE, unit: at as u32 * 8 },
                set => self.kept(set, width),
            };
            let other = self.shape.before[at];
            Ok(Kept { set: shape.set, from: Place::Fixed(0), to, scalar, other })
        });
        histories.collect()
    }

    fn calls(&mut self, histories: &[Result<Kept, Status>]) -> Box<[Call]> {
        let program = self.program;
        let mut calls: Vec<(u32, KernelSlot, Vec<Row>, Vec<Place>)> = Vec::new();
        let mut call_of: HashMap<(u32, KernelSlot), usize> = HashMap::new();
        for index in &self.sections.all[self.section as usize].steps {
            let step: &Step = &program.steps[*index as usize];
            if !self.node_of_step(step).is_column() {
                continue;
            }
            // A reduction runs over its operand's lanes, not its output's.
            let lanes = match program.nodes[step.output.index()].op {
                Op::Reduce { operand, .. } => self.node(operand).set,
                _ => self.node(step.output).set,
            };
            let at = *call_of.entry((step.level, step.kernel)).or_insert_with(|| {
                calls.push((step.level, step.kernel, Vec::new(), Vec::new()));
                calls.len() - 1
            });
            let (.., rows, operands) = &mut calls[at];
            let own = step.operands.iter();
            operands.extend(own.map(|one| self.locate(one, lanes, step.level, histories)));
            let output = self.place(step.output);
            rows.push(Row { step: *index, lanes, output, constants: step.constants });
        }
        let call = |(level, kernel, rows, operands): (u32, KernelSlot, Vec<Row>, Vec<Place>)| {
            Call { level, kernel, rows: rows.into(), operands: operands.into() }
        };
        calls.into_iter().map(call).collect()
    }

    /// Shape of what a step computes. What reduces a column of this section is
    /// a single value, which is not imported: it is there if its operand is.
    fn node_of_step(&self, step: &Step) -> NodeShape {
        match self.program.nodes[step.output.index()].op {
            Op::Reduce { operand, .. } => {
                let operand_shape = self.node(operand);
                let is_placed = self.program.placements[operand.index()].is_some();
                NodeShape { regular: operand_shape.regular && is_placed, ..operand_shape }
            }
            _ => self.node(step.output),
        }
    }

    /// Where a step's operand is for the step's lanes, planning a copy before
    /// `level` where they are others than its own.
    fn locate(
        &mut self,
        operand: &StepOperand,
        wanted: SetId,
        level: u32,
        histories: &[Result<Kept, Status>],
    ) -> Place {
        // Operands of a regular step are regular and have values, hence places.
        match *operand {
            StepOperand::Elapsed(history) => Place::Fixed(self.sections.elapsed(history)),
            StepOperand::Single(node) => self.place(node),
            StepOperand::First { .. }
            | StepOperand::Previous { lanes: PreviousLanes::First(_), .. } => {
                Place::Fixed(self.sections.fixed_first(operand))
            }
            StepOperand::Column(node) => {
                let (place, have, width) =
                    (self.place(node), self.node(node).set, self.width(node));
                self.aligned(place, have, width, wanted, level)
            }
            StepOperand::Previous { history, lanes: PreviousLanes::Single } => {
                Place::Fixed(self.sections.fixed_previous(history))
            }
            StepOperand::Previous { history, lanes: PreviousLanes::Column } => {
                let at = self.sections.histories[history.index()].at as usize;
                let Ok(kept) = &histories[at] else { return Place::Fixed(0) };
                let width = kept.scalar.bytes() as u32;
                self.aligned(kept.to, kept.previous(), width, wanted, level)
            }
        }
    }

    fn aligned(&mut self, from: Place, have: SetId, width: u32, want: SetId, level: u32) -> Place {
        if have == want {
            return from;
        }
        if let Some(known) = self.aligned_of.get(&(from, want)) {
            return Place::Aligned(*known);
        }
        let to = match from {
            Place::Kept { .. } => self.kept(want, width),
            _ => self.column(want, width),
        };
        let at = self.aligned.len() as u32;
        self.aligned.push(Aligned { level, from, have, to, want, width, in_one_piece: false });
        self.aligned_of.insert((from, want), at);
        Place::Aligned(at)
    }

    /// Finds out which columns in other lanes have to lie in one piece.
    fn find_pieces(
        &mut self,
        calls: &[Call],
        histories: &[Result<Kept, Status>],
        firsts: &[FirstLane],
    ) {
        let is_reduction = |call: &&Call| {
            let ir = self.program.kernels[call.kernel.index()].ir();
            !matches!(ir.body, Body::Map { .. }) || ir.is_single()
        };
        let reductions = calls.iter().filter(is_reduction);
        let operands = reductions.flat_map(|call| &call.operands).copied();
        let columns = self.columns.iter().flatten().copied();
        let sources = self.aligned.iter().map(|one| one.from);
        let saved = histories.iter().flatten().map(|kept| kept.from);
        let firsts = firsts.iter().map(|first| first.from);
        let whole = operands.chain(columns).chain(sources).chain(saved).chain(firsts);
        let whole: Vec<u32> = whole.filter_map(Place::aligned).collect();
        for at in whole {
            self.aligned[at as usize].in_one_piece = true;
        }
    }

    /// First lanes of this section's columns that others need.
    fn firsts(&self, histories: &[Result<Kept, Status>]) -> Box<[FirstLane]> {
        let section = &self.sections.all[self.section as usize];
        let lane = |first: &super::sections::First| {
            let (from, have, of, width) = match first.operand {
                StepOperand::First { node, of } => {
                    let shape = self.node(node);
                    if !shape.is_column() {
                        return None;
                    }
                    (self.place(node), shape.set, of, self.width(node))
                }
                StepOperand::Previous { history, lanes: PreviousLanes::First(of) } => {
                    let at = self.sections.histories[history.index()].at as usize;
                    let kept = histories[at].as_ref().ok()?;
                    (kept.to, kept.previous(), of, kept.scalar.bytes() as u32)
                }
                _ => return None,
            };
            let of = self.node(of);
            if of.status != Status::Values {
                return None;
            }
            let to = first.offset;
            Some(FirstLane { level: first.level, from, have, of: of.set, to, width })
        };
        let mut firsts: Vec<FirstLane> = section.firsts.iter().filter_map(lane).collect();
        firsts.sort_by_key(|first| first.level);
        firsts.into()
    }

    fn output(&self, output: u32) -> OutputPlan {
        let root = self.program.outputs[output as usize].root;
        let home = self.sections.nodes[root.index()];
        let node = self.shape.nodes[home.at as usize];
        match (node.regular, node.status, self.columns[home.at as usize]) {
            (false, ..) | (true, Status::Values, None) => {
                OutputPlan::General(self.general_plan(root))
            }
            (true, Status::Values, Some(place)) => OutputPlan::Column { place, set: node.set },
            (true, status, _) => OutputPlan::Without(status),
        }
    }

    /// Walks from a root down to columns. What another section has no column
    /// for is not known here.
    fn general_plan(&self, root: NodeId) -> Option<Box<GeneralPlan>> {
        let (mut columns, mut nodes) = (Vec::new(), BTreeSet::new());
        let mut seen = BTreeSet::from([root]);
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            let home = self.sections.nodes[id.index()];
            let is_placed = match home.section == self.section {
                true => self.columns[home.at as usize].is_some(),
                false => self.program.placements[id.index()].is_some(),
            };
            if self.node(id).is_column() && is_placed {
                columns.push(id);
                continue;
            }
            if home.section != self.section {
                return None;
            }
            nodes.insert(id);
            self.program.nodes[id.index()].op.operands(|operand| {
                if seen.insert(operand) {
                    stack.push(operand);
                }
            });
        }
        let nodes = nodes.into_iter().collect();
        Some(Box::new(GeneralPlan { columns: columns.into(), nodes }))
    }
}
