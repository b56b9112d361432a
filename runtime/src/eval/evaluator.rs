//! One evaluation after the other, for one context.

use std::sync::Arc;

use super::decode::{Survey, decode_column, raw_count, survey};
use super::general::{General, NodeValue, Previous, Surroundings};
use super::history::HistoryStore;
use super::lanes::LaneSet;
use super::layout::{Domain, Layout, OutputLayout};
use super::results::Evaluation;
use crate::kernel::Arenas;
use crate::kernel::interp::Scratch;
use crate::model::{InDom, Pmid, Timestamp, ValueType};
use crate::program::{HistoryId, Program, Reason, Status};
use crate::result::{ResultBatch, ResultPart, ValueSet};
use crate::source::{FetchEvents, FetchList, FetchSource, Freshness, SourceError};

/// What a program's inputs and domains are in one context.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Metrics, parallel to the program's inputs.
    pub pmids: Vec<Pmid>,
    /// Domains delivered with every fetch.
    pub fetched_domains: Vec<InDom>,
    /// Domains that filters look at.
    pub named_domains: Vec<InDom>,
}

/// Layouts kept: archives alternate between a few kinds of records.
const LAYOUTS_KEPT: usize = 8;

/// Evaluates a program for one context: owns the previous samples and knows
/// the layout in force.
#[derive(Debug)]
pub struct Evaluator {
    program: Arc<Program>,
    list: FetchList,
    named: Vec<InDom>,
    types: Vec<ValueType>,
    /// Most recently used first; the first is in force.
    layouts: Vec<Arc<Layout>>,
    history: HistoryStore,
    /// Outputs that need the general path in the layout in force, ascending.
    irregular: Vec<u32>,
    always_general: bool,
}

/// Buffers for evaluating, for any number of contexts one after the other.
#[derive(Debug, Default)]
pub struct Workspace {
    batch: ResultBatch,
    arena: Vec<u8>,
    blobs: Vec<u8>,
    scratch: Scratch,
    general: General,
    /// Outputs to be evaluated generally in this evaluation.
    todo: Vec<u32>,
    /// Parallel to the outputs: the node that holds the general path's value.
    overrides: Vec<Option<u32>>,
}

impl Evaluator {
    /// An evaluator without previous samples.
    pub fn new(program: Arc<Program>, binding: Binding) -> Evaluator {
        let mut history = HistoryStore::default();
        history.change_program(None, &program);
        Evaluator::assemble(program, binding, history)
    }

    fn assemble(program: Arc<Program>, binding: Binding, history: HistoryStore) -> Evaluator {
        let types = program.outputs.iter().map(|o| program.nodes[o.root.index()].value_type);
        Evaluator {
            list: FetchList::new(binding.pmids, binding.fetched_domains),
            named: binding.named_domains,
            types: types.collect(),
            layouts: Vec::new(),
            irregular: Vec::new(),
            always_general: false,
            history,
            program,
        }
    }

    /// Goes on with another program in the same context. Samples of
    /// definitions that both have are kept, and so are those of definitions
    /// that an earlier program had.
    pub fn change_program(&mut self, program: Arc<Program>, binding: Binding) {
        let mut history = std::mem::take(&mut self.history);
        history.change_program(Some((&self.program, self.layouts.first())), &program);
        *self = Evaluator::assemble(program, binding, history);
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// From now on evaluates everything node by node: slower, and the oracle
    /// for kernels and layouts in tests.
    pub fn use_general_path(&mut self) {
        self.always_general = true;
        self.find_irregular();
    }

    /// Forgets all previous samples, as after a gap.
    pub fn forget_history(&mut self) {
        self.history.forget(Reason::Gap);
        self.find_irregular();
    }

    /// Fetches from the source and evaluates.
    ///
    /// # Errors
    /// Those of the fetch; nothing was evaluated and no previous sample changed.
    pub fn fetch<'w>(
        &'w mut self,
        source: &mut dyn FetchSource,
        workspace: &'w mut Workspace,
    ) -> Result<(Evaluation<'w>, FetchEvents), SourceError> {
        workspace.batch.clear();
        let events = source.fetch(&self.list, &mut workspace.batch)?;
        if events.gap && self.program.forget_at_gap {
            self.forget_history();
        }
        if !self.decode_as_expected(source, workspace)? {
            self.change_layout(source, workspace)?;
        }
        Ok((self.evaluate(workspace), events))
    }

    /// Decodes into the workspace if everything is as the layout in force
    /// expects it.
    fn decode_as_expected(
        &self,
        source: &mut dyn FetchSource,
        workspace: &mut Workspace,
    ) -> Result<bool, SourceError> {
        let Some(layout) = self.layouts.first().filter(|layout| layout.lasting) else {
            return Ok(false);
        };
        for (indom, known) in self.named.iter().zip(&layout.named) {
            let now = source.instance_domain(*indom, Freshness::Cached)?;
            if !same_domain(&now, known) {
                return Ok(false);
            }
        }
        let batch = &workspace.batch;
        let same =
            batch.domains.iter().zip(&layout.fetched).all(|(now, known)| same_domain(now, known));
        let same = same && batch.domains.len() == layout.fetched.len();
        Ok(same && decode(layout, &self.program, batch, &mut workspace.arena, &mut workspace.blobs))
    }

    /// Finds or makes the layout for what was fetched, puts it in force and decodes.
    fn change_layout(
        &mut self,
        source: &mut dyn FetchSource,
        workspace: &mut Workspace,
    ) -> Result<(), SourceError> {
        let surveys = self.survey(&workspace.batch, source)?;
        let mut named = Vec::with_capacity(self.named.len());
        for (position, indom) in self.named.iter().enumerate() {
            named.push(self.named_domain(position, *indom, &surveys, source)?);
        }
        let before = self.layouts.first().cloned();
        let known = self.layouts.iter().position(|layout| {
            layout.lasting && layout.matches(&surveys, &named, &workspace.batch.domains)
        });
        let layout = match known {
            Some(at) => self.layouts.remove(at),
            None => {
                let fetched = workspace.batch.domains.clone();
                let samples: Vec<Option<LaneSet>> = (0u32..)
                    .zip(&self.program.histories)
                    .map(|(index, _)| {
                        self.history.resident_lanes(HistoryId(index), self.layouts.first()?)
                    })
                    .collect();
                let layout = Layout::new(&self.program, &samples, surveys, named, fetched);
                let malformed = |error: super::layout::TooLarge| SourceError::Malformed {
                    target: source.name(),
                    message: error.to_string(),
                };
                Arc::new(layout.map_err(malformed)?)
            }
        };
        self.history.change_layout(before.as_ref(), &layout);
        self.layouts.retain(|layout| layout.lasting);
        self.layouts.truncate(LAYOUTS_KEPT - 1);
        self.layouts.insert(0, layout);
        self.find_irregular();
        let layout = &self.layouts[0];
        let Workspace { batch, arena, blobs, .. } = workspace;
        decode(layout, &self.program, batch, arena, blobs);
        Ok(())
    }

    /// A filter's domain, asked for again when an instance is not in it.
    fn named_domain(
        &self,
        position: usize,
        indom: InDom,
        surveys: &[Survey],
        source: &mut dyn FetchSource,
    ) -> Result<Domain, SourceError> {
        let domain = source.instance_domain(indom, Freshness::Cached)?;
        let lacks = |survey: &Survey| match &domain {
            Ok(domain) => survey.ids.iter().any(|id| domain.name(*id).is_none()),
            Err(_) => true,
        };
        let used = &self.program.named_domains[position];
        if used.iter().any(|slot| lacks(&surveys[slot.index()])) {
            return source.instance_domain(indom, Freshness::Current);
        }
        Ok(domain)
    }

    fn survey(
        &self,
        batch: &ResultBatch,
        source: &dyn FetchSource,
    ) -> Result<Vec<Survey>, SourceError> {
        let sets = batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
        let inputs = self.program.inputs.iter();
        let surveys: Vec<Survey> = inputs
            .zip(sets)
            .map(|(input, (part, set)): (_, (&ResultPart, ValueSet<'_>))| {
                survey(part, &set, input.value_type)
            })
            .collect();
        if surveys.len() != self.program.inputs.len() {
            let (want, got) = (self.program.inputs.len(), surveys.len());
            let message = format!("a fetch of {want} metrics was answered with {got} value sets");
            return Err(SourceError::Malformed { target: source.name(), message });
        }
        Ok(surveys)
    }

    fn find_irregular(&mut self) {
        self.irregular.clear();
        let Some(layout) = self.layouts.first() else { return };
        for (index, output) in (0u32..).zip(&self.program.outputs) {
            let usable = |history: &HistoryId| {
                layout.histories[history.index()].is_err() || self.history.is_resident(*history)
            };
            let general = layout.outputs[index as usize] == OutputLayout::General;
            if general || self.always_general || !output.histories.iter().all(usable) {
                self.irregular.push(index);
            }
        }
    }

    fn evaluate<'w>(&'w mut self, workspace: &'w mut Workspace) -> Evaluation<'w> {
        let program = &*self.program;
        let layout = Arc::clone(&self.layouts[0]);
        let batch = &workspace.batch;
        let timestamp = batch.timestamp();
        // Slots of a split fetch have the stamp of their part.
        let single_part = batch.parts().len() <= 1;
        let now = |history: HistoryId| match program.histories[history.index()].clock {
            Some(slot) if !single_part => stamp_of(batch, slot.index()),
            _ => timestamp,
        };
        let work = &mut workspace.arena;
        for fill in &layout.fills {
            let bytes = fill.bits.to_ne_bytes();
            let lane =
                if fill.width == 4 { &(fill.bits as u32).to_ne_bytes()[..] } else { &bytes[..] };
            let column = &mut work[fill.offset as usize..][..(fill.lanes * fill.width) as usize];
            column.chunks_exact_mut(lane.len()).for_each(|out| out.copy_from_slice(lane));
        }
        for (index, offset) in (0u32..).zip(&layout.elapsed) {
            let history = HistoryId(index);
            let elapsed =
                self.history.stamp(history).map_or(0.0, |s| now(history).seconds_since(s));
            work[*offset as usize..][..8].copy_from_slice(&elapsed.to_ne_bytes());
        }

        // All that the evaluation before has set.
        for index in workspace.todo.drain(..) {
            workspace.overrides[index as usize] = None;
        }
        workspace.overrides.resize(program.outputs.len(), None);
        workspace.todo.extend_from_slice(&self.irregular);
        for phase in &layout.phases {
            for copy in &phase.copies {
                let (from, to, bytes) = (copy.from as usize, copy.to as usize, copy.bytes as usize);
                let source = from..from + bytes;
                if copy.in_history {
                    self.history.arena_mut().copy_within(source, to);
                } else {
                    work.copy_within(source, to);
                }
            }
            for call in &phase.calls {
                let kernel = &program.kernels[call.kernel.index()];
                let history = self.history.arena();
                let mut arenas = Arenas { work, history, constants: &program.constants };
                let scratch = &mut workspace.scratch;
                let segments = call.rows.segments();
                if kernel.run(scratch, &mut arenas, &call.rows, 0, segments) == 0 {
                    continue;
                }
                // Somewhere a flag was set: find out for which metrics.
                for (segment, outputs) in call.dependents.iter().enumerate() {
                    if kernel.run(scratch, &mut arenas, &call.rows, segment, 1) != 0 {
                        workspace.todo.extend_from_slice(outputs);
                    }
                }
            }
        }

        if !workspace.todo.is_empty() {
            workspace.general.begin(program);
            let around = Surroundings {
                program,
                inputs: &layout.inputs,
                work,
                named: &layout.named,
                fetched: &layout.fetched,
                previous: |history| -> Previous<'_> {
                    self.history.previous(history, &layout, now(history))
                },
            };
            for index in &workspace.todo {
                let output = &program.outputs[*index as usize];
                workspace.general.evaluate(&around, output);
                workspace.overrides[*index as usize] = Some(output.root.0);
            }
        }
        let (general, store) = (&workspace.general, &mut self.history);
        let mut changed = false;
        if workspace.todo.is_empty() {
            for (index, history) in (0u32..).zip(&program.histories) {
                let id = HistoryId(index);
                store.save(id, &layout, history.on_failure, work, now(id));
            }
        } else {
            for (index, output) in program.outputs.iter().enumerate() {
                let generally = workspace.overrides[index].is_some();
                for id in &output.histories {
                    let history = &program.histories[id.index()];
                    let rule = history.on_failure;
                    if !generally {
                        store.save(*id, &layout, rule, work, now(*id));
                        continue;
                    }
                    let NodeValue { status, ids, lanes, .. } = general.value(history.operand);
                    match status {
                        Status::Values => store.save_lanes(*id, &layout, ids, lanes, now(*id)),
                        status => store.save_without(*id, &layout, *status, rule),
                    }
                }
                changed |= generally && layout.outputs[index] != OutputLayout::General;
            }
        }
        if changed {
            self.find_irregular();
        }
        Evaluation {
            timestamp,
            outputs: &self.layouts[0].outputs,
            types: &self.types,
            general: &workspace.overrides,
            nodes: workspace.general.values(),
            work: &workspace.arena,
            blobs: &workspace.blobs,
        }
    }
}

fn same_domain(a: &Domain, b: &Domain) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// Time stamp of the part that a slot is in.
fn stamp_of(batch: &ResultBatch, slot: usize) -> Timestamp {
    let mut before = 0;
    for part in batch.parts() {
        before += part.set_count;
        if slot < before {
            return part.timestamp;
        }
    }
    batch.timestamp()
}

/// Decodes a batch into the arena; false when it is not as the layout expects.
fn decode(
    layout: &Layout,
    program: &Program,
    batch: &ResultBatch,
    arena: &mut Vec<u8>,
    blobs: &mut Vec<u8>,
) -> bool {
    if arena.len() < layout.work_size {
        arena.resize(layout.work_size, 0);
    }
    blobs.clear();
    let sets = batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
    let mut expected = layout.inputs.iter().zip(&program.inputs);
    for (part, set) in sets {
        let Some((input, spec)) = expected.next() else { return false };
        if raw_count(&set) != input.raw_count {
            return false;
        }
        if input.status != Status::Values {
            continue;
        }
        let width = spec.value_type.lane_bytes();
        let column = &mut arena[input.offset as usize..][..input.ids.len() * width];
        if !decode_column(part, &set, spec.value_type, &input.ids, column, blobs) {
            return false;
        }
    }
    expected.next().is_none()
}

impl Layout {
    /// True when the layout was made for just this constellation.
    fn matches(&self, surveys: &[Survey], named: &[Domain], fetched: &[Domain]) -> bool {
        let input = |(input, survey): (&super::layout::InputLayout, &Survey)| {
            survey.sound
                && input.raw_count == survey.raw_count
                && input.status == survey.status
                && *input.ids == survey.ids[..]
        };
        let same = |(a, b): (&Domain, &Domain)| same_domain(a, b);
        self.inputs.iter().zip(surveys).all(input)
            && self.named.iter().zip(named).all(same)
            && self.fetched.iter().zip(fetched).all(same)
            && self.fetched.len() == fetched.len()
    }
}
