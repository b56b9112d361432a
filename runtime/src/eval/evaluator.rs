//! One evaluation after the other, for one context.

use std::sync::Arc;

use super::clock::Clock;
use super::decode::{Delivered, Survey, decode_column, raw_count, survey};
use super::general::{General, NodeValue, Surroundings};
use super::history::HistoryStore;
use super::lanes::LaneSet;
use super::layout::{Domain, Layout, OutputLayout, Phase};
use super::results::Evaluation;
use super::selected::Selected;
use super::verdicts::Verdicts;
use super::windows::WindowStore;
use crate::kernel::Arenas;
use crate::kernel::interp::Scratch;
use crate::model::{InDom, PmStatus, Pmid};
use crate::program::{Binding, HistoryId, Program, Reason, Status};
use crate::result::{ResultBatch, ResultPart, ValueSet};
use crate::source::{FetchEvents, FetchList, FetchSource, Freshness, SourceError};

/// Layouts kept: archives alternate between a few kinds of records.
const LAYOUTS_KEPT: usize = 8;

/// Evaluates a program for one context: owns the previous samples and knows
/// the layout in force.
#[derive(Debug)]
pub struct Evaluator {
    program: Arc<Program>,
    binding: Arc<Binding>,
    list: FetchList,
    selected: Selected,
    verdicts: Verdicts,
    /// Most recently used first; the first is in force.
    layouts: Vec<Arc<Layout>>,
    history: HistoryStore,
    windows: WindowStore,
    /// Outputs that need the general path in the layout in force, ascending.
    irregular: Vec<Irregular>,
    always_general: bool,
    delivered: Delivered,
}

/// An output that needs the general path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Irregular {
    output: u32,
    /// True if it begins with columns; as long as no kernel sets a flag.
    has_columns: bool,
}

/// Buffers for evaluating, for any number of contexts one after the other.
#[derive(Debug, Default)]
pub struct Workspace {
    batch: ResultBatch,
    buffers: Buffers,
}

/// All of a workspace but the fetched results, which evaluating only reads.
#[derive(Debug, Default)]
struct Buffers {
    /// Columns of inputs, steps and outputs.
    arena: Vec<u8>,
    /// Bytes of values that are no numbers.
    blobs: Vec<u8>,
    scratch: Scratch,
    general: General,
    /// Outputs to be evaluated generally in this evaluation.
    todo: Vec<Irregular>,
    /// Parallel to the outputs: the node that holds the general path's value.
    overrides: Vec<Option<u32>>,
}

impl Evaluator {
    /// An evaluator without previous samples.
    pub fn new(program: Arc<Program>, binding: impl Into<Arc<Binding>>) -> Evaluator {
        let binding = binding.into();
        let (mut history, mut windows) = (HistoryStore::default(), WindowStore::default());
        history.change_program(None, (&program, &binding));
        windows.change_program(None, (&program, &binding));
        Evaluator::assemble(program, binding, history, windows)
    }

    fn assemble(
        program: Arc<Program>,
        binding: Arc<Binding>,
        history: HistoryStore,
        windows: WindowStore,
    ) -> Evaluator {
        Evaluator {
            list: FetchList::new(binding.pmids.clone(), binding.fetched_domains.clone()),
            binding,
            selected: Selected::default(),
            verdicts: Verdicts::default(),
            layouts: Vec::new(),
            irregular: Vec::new(),
            always_general: false,
            delivered: Delivered::default(),
            history,
            windows,
            program,
        }
    }

    /// Goes on with another program in the same context. Samples of
    /// definitions that both have are kept, and so are those of definitions
    /// that an earlier program had.
    pub fn change_program(&mut self, program: Arc<Program>, binding: impl Into<Arc<Binding>>) {
        let binding = binding.into();
        let is_same = Arc::ptr_eq(&program, &self.program) && *binding == *self.binding;
        let fetches_more = self.list.pmids().len() > binding.pmids.len()
            || self.list.domains().len() > binding.fetched_domains.len();
        // What filters have found out holds until they are bound anew.
        if is_same && !fetches_more && !self.always_general && binding.named_domains.is_empty() {
            return;
        }
        let mut history = std::mem::take(&mut self.history);
        let before = (&*self.program, &*self.binding, self.layouts.first());
        history.change_program(Some(before), (&program, &binding));
        let mut windows = std::mem::take(&mut self.windows);
        windows.change_program(Some((&self.program, &self.binding)), (&program, &binding));
        *self = Evaluator::assemble(program, binding, history, windows);
    }

    /// From now on fetches further metrics, and the instances of further
    /// domains, behind those that the program needs. What is delivered for
    /// them is in [`Evaluation::fetched`], and nothing else is done with it.
    pub fn also_fetch(&mut self, pmids: &[Pmid], domains: &[InDom]) {
        let own = &self.list.pmids()[..self.program.inputs.len()];
        let own_domains = &self.list.domains()[..self.program.fetched_domains];
        self.list = FetchList::new([own, pmids].concat(), [own_domains, domains].concat());
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
        self.forget(Reason::Gap);
    }

    fn forget(&mut self, reason: Reason) {
        self.history.forget(reason);
        self.windows.forget();
        self.find_irregular();
    }

    /// Forgets the samples of definitions that are gone for good and not in the
    /// program, given by their identities
    /// ([`crate::program::HistoryKey::definition`]) in ascending order.
    pub fn forget_definitions(&mut self, definitions: &[u64]) {
        self.history.forget_definitions(definitions);
        self.windows.forget_definitions(definitions);
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
        let goes_back = self.history.goes_back(workspace.batch.timestamp());
        if goes_back && self.program.forget_at_gap {
            self.forget(Reason::Backward);
        }
        if events.gap {
            // Windows are nothing that an older implementation keeps.
            self.windows.forget();
            if self.program.forget_at_gap {
                self.forget_history();
            }
        }
        if !self.decode_as_expected(source, workspace)? {
            self.change_layout(source, workspace)?;
        }
        Ok((self.evaluate(workspace), events))
    }

    /// Decodes into the workspace if everything is as the layout in force
    /// expects it.
    fn decode_as_expected(
        &mut self,
        source: &mut dyn FetchSource,
        workspace: &mut Workspace,
    ) -> Result<bool, SourceError> {
        let Some(layout) = self.layouts.first().filter(|layout| layout.lasting) else {
            return Ok(false);
        };
        for (indom, known) in self.binding.named_domains.iter().zip(&layout.named) {
            let now = source.instance_domain(*indom, Freshness::Cached)?;
            if !same_domain(&now, known) {
                return Ok(false);
            }
        }
        let batch = &workspace.batch;
        let fetched = self.own_domains(batch);
        let same = fetched.iter().zip(&layout.fetched).all(|(now, known)| same_domain(now, known));
        let same = same && fetched.len() == layout.fetched.len();
        if !same {
            return Ok(false);
        }
        let buffers = &mut workspace.buffers;
        let part = match batch.parts() {
            [part] if buffers.arena.len() >= layout.work_size => Some(part),
            _ => None,
        };
        if part.is_some_and(|part| self.delivered.decode(part, layout.id, &mut buffers.arena)) {
            buffers.blobs.clear();
            return Ok(true);
        }
        let is_decoded = decode(layout, &self.program, batch, buffers);
        if let Some(part) = part.filter(|_| is_decoded) {
            let inputs = layout.inputs.iter().zip(&self.program.inputs);
            let inputs = inputs.map(|(input, spec)| {
                (input.status == Status::Values).then_some((spec.value_type, input.offset as usize))
            });
            self.delivered.learn(part, layout.id, inputs);
        }
        Ok(is_decoded)
    }

    /// Finds or makes the layout for what was fetched, puts it in force and decodes.
    fn change_layout(
        &mut self,
        source: &mut dyn FetchSource,
        workspace: &mut Workspace,
    ) -> Result<(), SourceError> {
        let surveys = self.survey(&workspace.batch, source)?;
        let binding = Arc::clone(&self.binding);
        let indoms = &binding.named_domains;
        let mut named = Vec::with_capacity(indoms.len());
        for (position, indom) in indoms.iter().enumerate() {
            named.push(self.named_domain(position, *indom, &surveys, source)?);
        }
        let names = self.selected.names(&self.program, &surveys, indoms, &named, source)?;
        let before = self.layouts.first().cloned();
        let known = self.layouts.iter().position(|layout| {
            let domains = self.own_domains(&workspace.batch);
            layout.lasting && layout.matches(&surveys, &named, &names, domains)
        });
        let layout = match known {
            Some(at) => self.layouts.remove(at),
            None => {
                let fetched = self.own_domains(&workspace.batch).to_vec();
                let samples: Vec<Option<LaneSet>> = (0u32..)
                    .zip(&self.program.histories)
                    .map(|(index, _)| {
                        self.history.resident_lanes(HistoryId(index), self.layouts.first()?)
                    })
                    .collect();
                let layout = Layout::new(
                    &self.program,
                    &mut self.verdicts,
                    &samples,
                    surveys,
                    named,
                    names,
                    fetched,
                );
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
        let Workspace { batch, buffers } = workspace;
        decode(layout, &self.program, batch, buffers);
        Ok(())
    }

    /// The delivered domains that the program has asked for.
    fn own_domains<'b>(&self, batch: &'b ResultBatch) -> &'b [Domain] {
        &batch.domains[..batch.domains.len().min(self.program.fetched_domains)]
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
        let mut surveys: Vec<Survey> = inputs
            .zip(sets)
            .map(|(input, (part, set)): (_, (&ResultPart, ValueSet<'_>))| {
                survey(part, &set, input.value_type)
            })
            .collect();
        if self.program.derived_is_unknown {
            for (survey, pmid) in surveys.iter_mut().zip(self.list.pmids()) {
                if pmid.is_derived() && survey.status == Status::Failed(PmStatus::NOAGENT) {
                    survey.status = Status::Failed(PmStatus::PMID);
                }
            }
        }
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
            let general = matches!(layout.outputs[index as usize], OutputLayout::General(_));
            let usable = output.histories.iter().all(usable);
            if general || self.always_general || !usable {
                let has_columns = general && usable && !self.always_general;
                self.irregular.push(Irregular { output: index, has_columns });
            }
        }
    }

    /// Evaluates what was decoded for the layout in force.
    fn evaluate<'w>(&'w mut self, workspace: &'w mut Workspace) -> Evaluation<'w> {
        let program = Arc::clone(&self.program);
        let layout = Arc::clone(&self.layouts[0]);
        let Workspace { batch, buffers } = workspace;
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
        for (index, output) in program.outputs.iter().enumerate() {
            let generally = buffers.overrides[index].is_some();
            for id in &output.histories {
                let (history, now) = (&program.histories[id.index()], clock.now(*id));
                if !generally || !general.is_known(history.operand) {
                    store.save(*id, layout, history.on_failure, work, now);
                    continue;
                }
                let NodeValue { status, ids, lanes, .. } = general.value(history.operand);
                match status {
                    Status::Values => store.save_lanes(*id, layout, ids, lanes, now),
                    status => store.save_without(*id, layout, *status, history.on_failure),
                }
            }
        }
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

fn same_domain(a: &Domain, b: &Domain) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// Decodes a batch into the arena; false when it is not as the layout expects.
fn decode(layout: &Layout, program: &Program, batch: &ResultBatch, buffers: &mut Buffers) -> bool {
    let Buffers { arena, blobs, .. } = buffers;
    if arena.len() < layout.work_size {
        arena.resize(layout.work_size, 0);
    }
    blobs.clear();
    let sets = batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
    let mut expected = layout.inputs.iter().zip(&program.inputs);
    for (part, set) in sets {
        // What follows the program's inputs is not its affair.
        let Some((input, spec)) = expected.next() else { return true };
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
    fn matches(
        &self,
        surveys: &[Survey],
        named: &[Domain],
        names: &[Domain],
        fetched: &[Domain],
    ) -> bool {
        let input = |(input, survey): (&super::layout::InputLayout, &Survey)| {
            survey.sound
                && input.raw_count == survey.raw_count
                && input.status == survey.status
                && *input.ids == survey.ids[..]
        };
        let same = |(a, b): (&Domain, &Domain)| same_domain(a, b);
        self.inputs.iter().zip(surveys).all(input)
            && self.named.iter().zip(named).all(same)
            && *self.names == *names
            && self.fetched.iter().zip(fetched).all(same)
            && self.fetched.len() == fetched.len()
    }
}
