//! Where columns lie, and which copies and kernel calls make them, phase by
//! phase.
//!
//! Takes the instances of all nodes; gives offsets, segment rows and copies.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Builder, Call, Copy, HistoryLayout, InputLayout, Phase, TooLarge};
use crate::eval::lanes::{Finder, LaneSet, align};
use crate::kernel::{Body, LANE_GROUP, Rows};
use crate::model::PmStatus;
use crate::program::{
    KernelSlot, NodeId, Op, Placement, PreviousLanes, Status, StepOperand, scalar_of,
};

impl Builder<'_> {
    /// Places all columns and plans copies and calls, phase by phase.
    pub(super) fn place_and_schedule(
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
            let lanes = match program.nodes[step.output.index()].op {
                Op::Reduce { operand, .. } => self.node(operand).lanes.clone(),
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
}
