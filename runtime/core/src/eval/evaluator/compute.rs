//! Turns decoded columns into values: runs the kernels and, where they cannot
//! be used, the general path. Then keeps the samples for the next evaluation.

use std::sync::Arc;

use super::{Buffers, Evaluator, Irregular};
use crate::eval::clock::Clock;
use crate::eval::general::{General, NodeValue, Surroundings};
use crate::eval::history::HistoryStore;
use crate::eval::layout::{Copy, Frame, Layout, OutputPlan, SectionId};
use crate::eval::results::Evaluation;
use crate::kernel::Arenas;
use crate::kernel::interp::Scratch;
use crate::program::{HistoryId, NodeId, OnFailure, OutputId, Program, Status};
use crate::result::ResultBatch;

impl Evaluator {
    /// Evaluates the decoded values of the current layout.
    pub(super) fn compute<'w>(
        &'w mut self,
        layout: Layout,
        batch: &'w ResultBatch,
        buffers: &'w mut Buffers,
    ) -> Evaluation<'w> {
        self.evaluations += 1;
        let program = Arc::clone(&self.program);
        let clock = Clock::new(&program, batch);
        buffers.begin(&program, &self.irregular);
        let Buffers { frames, scratch, todo, general, overrides, blobs, .. } = buffers;
        let irregular = todo.len();
        let last = frames.len() - 1;
        let frame = &mut frames[last];
        let no_time_passed = self.write_single_values(&clock, frame);
        if no_time_passed && program.forget_at_gap {
            // Kernels would divide by zero.
            todo.extend(differences(&program));
        }
        run_kernels(&program, frame, &mut self.history, scratch, todo);
        add_users(&program, todo, irregular, overrides);
        if !todo.is_empty() {
            // An output that is there twice was added because of a flag. Its
            // columns are wrong, so the entry without columns stays.
            todo.sort_unstable();
            todo.dedup_by_key(|one| one.output);
            general.begin(&program);
            self.windows.begin();
            let history = &self.history;
            let clock = &clock;
            let around =
                Surroundings { program: &program, layout: &layout, frame, blobs, history, clock };
            for one in todo.iter() {
                let index = one.output.index();
                let output = &program.outputs[index];
                match layout.output(one.output) {
                    Some(OutputPlan::General(Some(plan))) if one.has_columns => {
                        general.evaluate_plan(&around, &mut self.windows, plan);
                    }
                    _ => general.evaluate_whole(&around, &mut self.windows, one.output),
                }
                overrides[index] = Some(output.root);
            }
        }
        save_samples(&program, (&layout, frame), &clock, &mut self.history, (todo, general));
        let was_without_columns = todo.iter().any(|one| !one.has_columns);
        self.layout = Some(layout);
        // Outputs that were evaluated without columns may have them now.
        if was_without_columns {
            self.find_irregular();
        } else {
            // If each fetch goes back in time, all outputs are irregular again
            // and again.
            self.shrink_irregular();
        }
        let (timestamp, layout) = (clock.timestamp, self.layout.as_ref());
        let buffers: &'w Buffers = buffers;
        Evaluation {
            timestamp,
            layout: layout.expect("it was put back just now"),
            frame: &buffers.frames[last],
            program: &self.program.outputs,
            fetched: batch,
            general: &buffers.overrides,
            nodes: buffers.general.values(),
            blobs: &buffers.blobs,
        }
    }

    /// Writes the single values that the fetch does not deliver: constants,
    /// counts, elapsed times, previous single values. Returns true if no time
    /// has passed since a previous sample.
    fn write_single_values(&self, clock: &Clock<'_>, frame: &mut Frame) -> bool {
        let Frame { sections, arena, placed, .. } = frame;
        for fill in placed.iter().flat_map(|placed| &placed.fills) {
            let bytes = fill.bits.to_ne_bytes();
            let narrow = (fill.bits as u32).to_ne_bytes();
            let lane = if fill.width == 4 { &narrow[..] } else { &bytes[..] };
            let column = &mut arena[fill.offset as usize..][..(fill.lanes * fill.width) as usize];
            column.chunks_exact_mut(lane.len()).for_each(|out| out.copy_from_slice(lane));
        }
        let previous = sections[SectionId::SINGLES].histories.len() * 8;
        if let Some(block) = self.history.block(SectionId::SINGLES).get(..previous) {
            arena[sections.previous as usize..][..previous].copy_from_slice(block);
        }
        let mut no_time_passed = false;
        for history in (0..self.program.histories.len() as u32).map(HistoryId) {
            let elapsed =
                self.history.stamp(history).map(|stamp| clock.now(history).interval_since(stamp));
            no_time_passed |= elapsed.is_some_and(|elapsed| elapsed <= 0.0);
            let elapsed = elapsed.unwrap_or_default();
            arena[sections.elapsed(history) as usize..][..8]
                .copy_from_slice(&elapsed.to_ne_bytes());
        }
        no_time_passed
    }
}

/// Aligns operands and runs kernels, phase by phase. Adds to `todo` the outputs
/// whose kernels set a flag.
fn run_kernels(
    program: &Program,
    frame: &mut Frame,
    history: &mut HistoryStore,
    scratch: &mut Scratch,
    todo: &mut Vec<Irregular>,
) {
    let Frame { sections, arena, placed, .. } = frame;
    let constants = &*program.constants;
    for level in 0..=sections.levels {
        for (section, placed) in (0..).map(SectionId).zip(&*placed) {
            for copy in placed.copies_of(level) {
                copy_lanes(copy, arena, history.block_mut(section));
            }
        }
        for (section, placed) in (0..).map(SectionId).zip(&*placed) {
            for (call, placed) in placed.calls_of(level) {
                let kernel = &call.kernel;
                let history = history.block(section);
                let mut arenas = Arenas { work: arena, history, constants };
                let rows = &placed.rows;
                if kernel.run(scratch, &mut arenas, rows, 0, rows.segments()) == 0 {
                    continue;
                }
                // A flag was set somewhere: find the metrics.
                for segment in 0..rows.segments() {
                    if kernel.run(scratch, &mut arenas, rows, segment, 1) != 0 {
                        let row = &call.rows[placed.row_of(segment)];
                        let outputs = sections.dependents.get(row.step.index()).iter();
                        todo.extend(
                            outputs.map(|output| Irregular { output: *output, has_columns: false }),
                        );
                    }
                }
            }
        }
    }
}

fn copy_lanes(copy: &Copy, arena: &mut [u8], block: &mut [u8]) {
    let (from, to, bytes) = (copy.from as usize, copy.to as usize, copy.bytes as usize);
    match (copy.from_kept, copy.to_kept) {
        (true, true) => block.copy_within(from..from + bytes, to),
        (true, false) => arena[to..to + bytes].copy_from_slice(&block[from..from + bytes]),
        _ => arena.copy_within(from..from + bytes, to),
    }
}

/// Keeps the operands of differences for the next evaluation. An operand that
/// was evaluated by the general path may have a wrong column.
fn save_samples(
    program: &Program,
    (layout, frame): (&Layout, &Frame),
    clock: &Clock<'_>,
    store: &mut HistoryStore,
    (todo, general): (&[Irregular], &General),
) {
    if todo.is_empty() {
        let lists = layout.sections.all.iter().zip(&frame.placed);
        for (section, (own, placed)) in (0..).map(SectionId).zip(lists) {
            store.save_columns((section, placed), &frame.arena, |history| clock.now(history));
            let Some(plan) = placed.plan() else { continue };
            if placed.saves.len() == plan.histories.len() {
                continue;
            }
            for (history, kept) in own.histories.iter().zip(&plan.histories) {
                if let Err(status) = kept {
                    let rule = program.histories[history.index()].on_failure;
                    store.save_without(*history, (layout, frame), *status, rule);
                }
            }
        }
        return;
    }
    for (index, history) in (0u32..).zip(&program.histories) {
        let id = HistoryId(index);
        let rule = history.on_failure;
        if !general.is_known(history.operand) {
            match layout.kept(id) {
                Some(Err(status)) => store.save_without(id, (layout, frame), *status, rule),
                _ => store.save_column(id, frame, clock.now(id)),
            }
            continue;
        }
        let NodeValue { status, ids, lanes, .. } = general.value(history.operand);
        match status {
            Status::Values => store.save_lanes(id, (layout, frame), ids, lanes, clock.now(id)),
            status => store.save_without(id, (layout, frame), *status, rule),
        }
    }
    store.share_again(program, |id| {
        let history = &program.histories[id.index()];
        let failed = match general.is_known(history.operand) {
            true => matches!(general.value(history.operand).status, Status::Failed(_)),
            false => matches!(layout.kept(id), Some(Err(Status::Failed(_)))),
        };
        failed && history.on_failure == OnFailure::Keep
    });
}

impl Buffers {
    /// Clears the state of the previous evaluation.
    fn begin(&mut self, program: &Program, irregular: &[Irregular]) {
        for one in self.todo.drain(..) {
            self.overrides[one.output.index()] = None;
        }
        self.overrides.resize(program.outputs.len(), None);
        self.todo.extend_from_slice(irregular);
    }
}

/// The outputs with differences of their own, to evaluate without columns.
fn differences(program: &Program) -> impl Iterator<Item = Irregular> {
    let outputs = (0..).map(OutputId).zip(program.needs.histories.iter());
    let of_differences = outputs.filter(|(_, histories)| !histories.is_empty());
    of_differences.map(|(output, _)| Irregular { output, has_columns: false })
}

/// Adds the outputs that need those from `first` on whole.
fn add_users(
    program: &Program,
    todo: &mut Vec<Irregular>,
    mut first: usize,
    overrides: &mut [Option<NodeId>],
) {
    while let Some(Irregular { output, .. }) = todo.get(first).copied() {
        first += 1;
        for output in program.needs.users.get(output.index()) {
            let root = program.outputs[output.index()].root;
            if overrides[output.index()].replace(root).is_none() {
                todo.push(Irregular { output: *output, has_columns: false });
            }
        }
    }
}
