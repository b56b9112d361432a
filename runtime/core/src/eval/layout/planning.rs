//! Makes the plan of a section from its shape: gives columns their places, and
//! determines the fills, the kept samples and the plans of outputs.
//! [`super::calls`] plans the kernels.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::plan::{Aligned, Fill, FillBits, GeneralPlan, OutputPlan, Place, Plan, SavedOperand};
use super::pool::Pool;
use super::sections::{SectionId, Sections};
use super::shape::{NodeShape, SetId, Shape};
use crate::model::PmStatus;
use crate::program::{NodeId, Op, OutputId, Placement, Program, Status, scalar_of};

impl Plan {
    /// The plan of a section with that shape. It shares equal parts with other
    /// plans of `pool`.
    pub fn new(
        (program, sections): (&Program, &Sections),
        section: SectionId,
        shape: Arc<Shape>,
        pool: &Pool,
    ) -> Plan {
        let sets = shape.sets;
        let nodes = sections[section].nodes.len();
        let builder = Builder {
            program,
            sections,
            section,
            shape,
            pool,
            work: vec![0; sets],
            kept: vec![0; sets],
            columns: vec![None; nodes],
            aligned: Vec::new(),
            aligned_of: FxHashMap::default(),
        };
        builder.build()
    }
}

/// A plan while it is made.
pub(super) struct Builder<'p> {
    pub(super) program: &'p Program,
    pub(super) sections: &'p Sections,
    pub(super) section: SectionId,
    shape: Arc<Shape>,
    pub(super) pool: &'p Pool,
    work: Vec<u32>,
    kept: Vec<u32>,
    pub(super) columns: Vec<Option<Place>>,
    pub(super) aligned: Vec<Aligned>,
    /// Positions in `aligned`, by column and wanted set.
    pub(super) aligned_of: FxHashMap<(Place, SetId), u32>,
}

impl Builder<'_> {
    fn build(mut self) -> Plan {
        let (program, sections) = (self.program, self.sections);
        let section = &sections[self.section];
        let inputs: Box<[Place]> = section
            .inputs
            .iter()
            .zip(Arc::clone(&self.shape).inputs.iter())
            .map(|(slot, input)| {
                let width = program.inputs[slot.index()].value_type.lane_bytes() as u32;
                match (self.section, input.status) {
                    (SectionId::SINGLES, _) => Place::Fixed(sections.fixed_input(*slot)),
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
        let outputs = section.outputs.iter().map(|output| self.output(*output));
        let outputs: Vec<OutputPlan> = outputs.collect();
        self.find_pieces(&calls, &histories, &firsts);
        debug_assert!(self.aligned.is_sorted_by_key(|one| one.level), "steps are planned by level");
        Plan {
            section: self.section,
            shape: self.shape,
            work: self.work.into(),
            kept: self.kept.into(),
            displaced: displaced.into_iter().collect(),
            inputs: self.pool.places.list(inputs),
            columns: self.pool.columns.list(self.columns),
            calls,
            aligned: self.aligned.into(),
            firsts,
            fills,
            histories: histories.into(),
            outputs: self.pool.outputs.list(outputs),
        }
    }

    /// Adds a column to the workspace.
    pub(super) fn column(&mut self, set: SetId, width: u32) -> Place {
        let Some(bytes) = self.work.get_mut(set.index()) else { return Place::Fixed(0) };
        let unit = *bytes;
        *bytes += width;
        Place::Lanes { set, unit }
    }

    /// Adds a column of previous samples.
    pub(super) fn kept(&mut self, set: SetId, width: u32) -> Place {
        let Some(bytes) = self.kept.get_mut(set.index()) else { return Place::Fixed(0) };
        let unit = *bytes;
        *bytes += width;
        Place::Kept { set, unit }
    }

    /// A new column for a node of this section, or the place of a single value.
    fn new_column(&mut self, id: NodeId) -> Place {
        let shape = self.node(id);
        match shape.set {
            SetId::SINGLE => Place::Fixed(self.sections.fixed(id)),
            set => self.column(set, self.width(id)),
        }
    }

    pub(super) fn width(&self, id: NodeId) -> u32 {
        self.program.nodes[id.index()].value_type.lane_bytes() as u32
    }

    /// The shape of a node of this section, or of an imported node. An imported
    /// node's set belongs to another section.
    pub(super) fn node(&self, id: NodeId) -> NodeShape {
        let home = self.sections.nodes[id.index()];
        if home.section == self.section {
            return self.shape.nodes[home.at as usize];
        }
        let imports = &self.sections[self.section].imports;
        match imports.binary_search(&id) {
            Ok(at) => {
                let (status, regular) = self.shape.imports[at];
                NodeShape { status, set: SetId::SINGLE, regular }
            }
            // A single value that a fused kernel reads without being the
            // operand of a node here. It has a value, because the whole kernel
            // is regular.
            Err(_) => NodeShape { status: Status::Values, set: SetId::SINGLE, regular: true },
        }
    }

    /// The place of a node's column. The node must have one.
    pub(super) fn place(&self, id: NodeId) -> Place {
        let home = self.sections.nodes[id.index()];
        match home.section == self.section {
            true => self.columns[home.at as usize].unwrap_or(Place::Fixed(0)),
            false => Place::Fixed(self.sections.fixed(id)),
        }
    }

    /// The fills for constants and counts that have columns. A count is a
    /// single value, but it belongs to the section of its operand.
    fn fills(&mut self) -> Box<[Fill]> {
        let (program, sections) = (self.program, self.sections);
        let section = &sections[self.section];
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

    /// Assigns a place to every history whose operand has a column.
    fn histories(&mut self) -> Vec<Result<SavedOperand, Status>> {
        let program = self.program;
        let section = &self.sections[self.section];
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
            Ok(SavedOperand { set: shape.set, from: Place::Fixed(0), to, scalar, other })
        });
        histories.collect()
    }

    fn output(&self, output: OutputId) -> OutputPlan {
        let root = self.program.outputs[output.index()].root;
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

    /// Walks from a root down to the nodes with columns. It cannot see whether
    /// a node of another section has a column.
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
