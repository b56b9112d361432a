//! The kernel calls of a plan: the steps that run together, the places of their
//! operands, and the columns that must be copied to the lanes of other sets.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::plan::{Aligned, Call, FirstLane, Place, Row, SavedOperand};
use super::planning::Builder;
use super::shape::{NodeShape, SetId};
use crate::kernel::{Body, KernelRef};
use crate::program::{Op, PreviousLanes, Status, Step, StepOperand};

impl Builder<'_> {
    pub(super) fn calls(&mut self, histories: &[Result<SavedOperand, Status>]) -> Box<[Arc<Call>]> {
        let program = self.program;
        let mut calls: Vec<(u32, KernelRef, Vec<Row>, Vec<Place>)> = Vec::new();
        let mut call_of: FxHashMap<(u32, &KernelRef), usize> = FxHashMap::default();
        for id in &self.sections[self.section].steps {
            let step: &Step = &program.steps[id.index()];
            if !self.node_of_step(step).is_column() {
                continue;
            }
            // A reduction runs over its operand's lanes, not over its output's.
            let lanes = match program.nodes[step.output.index()].op {
                Op::Reduce { operand, .. } => self.node(operand).set,
                _ => self.node(step.output).set,
            };
            let at = *call_of.entry((step.level, &step.kernel)).or_insert_with(|| {
                calls.push((step.level, step.kernel.clone(), Vec::new(), Vec::new()));
                calls.len() - 1
            });
            let (.., rows, operands) = &mut calls[at];
            let own = step.operands.iter();
            operands.extend(own.map(|one| self.locate(one, lanes, step.level, histories)));
            let output = self.place(step.output);
            rows.push(Row { step: *id, lanes, output, constants: step.constants });
        }
        let call = |(level, kernel, rows, operands): (u32, KernelRef, Vec<Row>, Vec<Place>)| {
            let (rows, operands) = (rows.into(), operands.into());
            self.pool.calls.intern(Call { level, kernel, rows, operands })
        };
        calls.into_iter().map(call).collect()
    }

    /// The shape of a step's output. A reduction of a column of this section is
    /// a single value that is not imported: it has a value if its operand has.
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

    /// The place of a step's operand for the step's lanes. If the operand has
    /// other lanes, a copy before `level` is planned.
    pub(super) fn locate(
        &mut self,
        operand: &StepOperand,
        wanted: SetId,
        level: u32,
        histories: &[Result<SavedOperand, Status>],
    ) -> Place {
        // Operands of a regular step are regular and have values, so they have
        // places.
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

    /// Determines which columns in other lanes must lie in one piece.
    pub(super) fn find_pieces(
        &mut self,
        calls: &[Arc<Call>],
        histories: &[Result<SavedOperand, Status>],
        firsts: &[FirstLane],
    ) {
        let is_reduction = |call: &&Arc<Call>| {
            let ir = call.kernel.ir();
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

    /// The first lanes of this section's columns that other sections need.
    pub(super) fn firsts(&self, histories: &[Result<SavedOperand, Status>]) -> Box<[FirstLane]> {
        let section = &self.sections[self.section];
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
}
