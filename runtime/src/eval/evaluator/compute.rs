//! From decoded columns to values: kernels, the general path where they do not
//! reach, and the samples that the next evaluation will need.

use std::sync::Arc;

use super::{Buffers, Evaluator, Irregular};
use crate::eval::clock::Clock;
use crate::eval::general::{NodeValue, Surroundings};
use crate::eval::layout::{Layout, OutputLayout, Phase};
use crate::eval::results::Evaluation;
use crate::kernel::Arenas;
use crate::program::{HistoryId, OnFailure, Program, Status};
use crate::result::ResultBatch;

impl Evaluator {
    /// Evaluates what was decoded for the layout in force.
    pub(super) fn compute<'w>(
        &'w mut self,
        batch: &'w ResultBatch,
        buffers: &'w mut Buffers,
    ) -> Evaluation<'w> {
        self.evaluations += 1;
        let program = Arc::clone(&self.program);
        let layout = Arc::clone(&self.layouts[0]);
        let clock = Clock::new(&program, batch);
        buffers.begin(&program, &self.irregular);
        let no_time_passed = self.write_fills(&layout, &clock, &mut buffers.arena);
        if no_time_passed && program.forget_at_gap {
            // Kernels would divide by nothing.
            buffers.todo.extend(differences(&program));
        }
        for phase in &layout.phases {
            self.run_phase(&program, phase, buffers);
        }
        self.evaluate_generally(&program, &layout, &clock, buffers);
        self.save_samples(&program, &layout, &clock, buffers);
        Evaluation {
            timestamp: clock.timestamp,
            outputs: &self.layouts[0].outputs,
            inputs: &self.layouts[0].inputs,
            program: &self.program.outputs,
            fetched: batch,
            layout: buffers.todo.is_empty().then_some(layout.id),
            general: &buffers.overrides,
            nodes: buffers.general.values(),
            work: &buffers.arena,
            blobs: &buffers.blobs,
        }
    }

    /// Writes what the fetch does not deliver: constants, counts, elapsed times.
    /// True if there is a previous sample since which no time has passed.
    fn write_fills(&self, layout: &Layout, clock: &Clock<'_>, work: &mut [u8]) -> bool {
        for fill in &layout.fills {
            let bytes = fill.bits.to_ne_bytes();
            let narrow = (fill.bits as u32).to_ne_bytes();
            let lane = if fill.width == 4 { &narrow[..] } else { &bytes[..] };
            let column = &mut work[fill.offset as usize..][..(fill.lanes * fill.width) as usize];
            column.chunks_exact_mut(lane.len()).for_each(|out| out.copy_from_slice(lane));
        }
        let mut no_time_passed = false;
        for (index, offset) in (0u32..).zip(&layout.elapsed) {
            let history = HistoryId(index);
            let elapsed =
                self.history.stamp(history).map(|stamp| clock.now(history).interval_since(stamp));
            no_time_passed |= elapsed.is_some_and(|elapsed| elapsed <= 0.0);
            let elapsed = elapsed.unwrap_or_default();
            work[*offset as usize..][..8].copy_from_slice(&elapsed.to_ne_bytes());
        }
        no_time_passed
    }

    /// Aligns operands and runs kernels. Outputs in whose kernels a flag was
    /// set are added to those to be evaluated generally.
    fn run_phase(&mut self, program: &Program, phase: &Phase, buffers: &mut Buffers) {
        let Buffers { arena: work, scratch, todo, .. } = buffers;
        for copy in &phase.copies {
            let (from, to, bytes) = (copy.from as usize, copy.to as usize, copy.bytes as usize);
            let arena = if copy.in_history { self.history.arena_mut() } else { &mut work[..] };
            arena.copy_within(from..from + bytes, to);
        }
        for call in &phase.calls {
            let kernel = &program.kernels[call.kernel.index()];
            let history = self.history.arena();
            let mut arenas = Arenas { work, history, constants: &program.constants };
            if kernel.run(scratch, &mut arenas, &call.rows, 0, call.rows.segments()) == 0 {
                continue;
            }
            // Somewhere a flag was set: find out for which metrics.
            for (segment, outputs) in call.dependents.iter().enumerate() {
                if kernel.run(scratch, &mut arenas, &call.rows, segment, 1) != 0 {
                    let flagged = |output: &u32| Irregular { output: *output, has_columns: false };
                    todo.extend(outputs.iter().map(flagged));
                }
            }
        }
    }

    /// Evaluates node by node what kernels cannot.
    fn evaluate_generally(
        &mut self,
        program: &Program,
        layout: &Layout,
        clock: &Clock<'_>,
        buffers: &mut Buffers,
    ) {
        if buffers.todo.is_empty() {
            return;
        }
        let Buffers { arena, blobs, general, todo, overrides, .. } = buffers;
        // Of an output that is there twice, for a flag, the columns are not right.
        todo.sort_unstable();
        todo.dedup_by_key(|one| one.output);
        general.begin(program);
        let history = &self.history;
        let around = Surroundings { program, layout, work: arena, blobs, history, clock };
        for one in todo {
            let index = one.output as usize;
            let output = &program.outputs[index];
            match &layout.outputs[index] {
                OutputLayout::General(plan) if one.has_columns => {
                    general.evaluate_plan(&around, &mut self.windows, plan);
                }
                _ => general.evaluate(&around, &mut self.windows, &output.nodes),
            }
            overrides[index] = Some(output.root.0);
        }
    }

    /// Keeps the operands of differences for the next evaluation.
    fn save_samples(
        &mut self,
        program: &Program,
        layout: &Layout,
        clock: &Clock<'_>,
        buffers: &Buffers,
    ) {
        let (work, general) = (&buffers.arena, &buffers.general);
        let store = &mut self.history;
        if buffers.todo.is_empty() {
            for (index, history) in (0u32..).zip(&program.histories) {
                let id = HistoryId(index);
                store.save(id, layout, history.on_failure, work, clock.now(id));
            }
            return;
        }
        for (index, history) in (0u32..).zip(&program.histories) {
            let id = HistoryId(index);
            let now = clock.now(id);
            // What was evaluated generally may not have a column that is right.
            if !general.is_known(history.operand) {
                store.save(id, layout, history.on_failure, work, now);
                continue;
            }
            let NodeValue { status, ids, lanes, .. } = general.value(history.operand);
            match status {
                Status::Values => store.save_lanes(id, layout, ids, lanes, now),
                status => store.save_without(id, layout, *status, history.on_failure),
            }
        }
        store.share_again(program, |id| {
            let history = &program.histories[id.index()];
            let failed = match general.is_known(history.operand) {
                true => matches!(general.value(history.operand).status, Status::Failed(_)),
                false => matches!(layout.histories[id.index()], Err(Status::Failed(_))),
            };
            failed && history.on_failure == OnFailure::Keep
        });
        // What was evaluated without columns may have them now.
        if buffers.todo.iter().any(|one| !one.has_columns) {
            self.find_irregular();
        }
    }
}
impl Buffers {
    /// Forgets what the evaluation before has set.
    fn begin(&mut self, program: &Program, irregular: &[Irregular]) {
        for one in self.todo.drain(..) {
            self.overrides[one.output as usize] = None;
        }
        self.overrides.resize(program.outputs.len(), None);
        self.todo.extend_from_slice(irregular);
    }
}
/// The outputs with differences, to be evaluated without columns.
fn differences(program: &Program) -> impl Iterator<Item = Irregular> {
    let outputs = (0u32..).zip(&program.outputs);
    let of_differences = outputs.filter(|(_, output)| !output.histories.is_empty());
    of_differences.map(|(output, _)| Irregular { output, has_columns: false })
}
