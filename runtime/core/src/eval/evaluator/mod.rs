//! Evaluates a program again and again for one context.
//!
//! ```text
//!   requests() ──► the caller fetches ──► evaluate() ──► Step::Done
//!                                             └──► Step::Needs ──► the caller asks
//! ```
//!
//! [`pending`] has the steps, [`settle`] goes from a batch to columns, and
//! [`compute`] from columns to values. [`returning`] keeps layouts that
//! alternate. The caller does all input and output.

mod compute;
mod pending;
mod returning;
mod settle;

use std::sync::Arc;

use super::decode::Copied;
use super::general::General;
use super::history::{HistoryStore, kept_in};
use super::layout::{Frame, Layout, OutputPlan, POISON, SectionId, Sections};
use super::selected::SelectedNames;
use super::shared_layouts::{SharedLayouts, SharedParts};
use super::verdicts::Verdicts;
use super::windows::WindowStore;
use crate::kernel::interp::Scratch;
use crate::model::{InDom, Pmid};
use crate::program::{
    BaselineId, Binding, DefinitionKey, HistoryId, NodeId, OutputId, Program, Reason,
};
use crate::result::{ResultBatch, SetPlace};
use crate::source::FetchList;
use pending::Answers;
pub use pending::{Asked, Inconsistent, OtherNames, Pending, Step};
use returning::Returning;

/// Evaluates a program for one context. It owns the previous samples and knows
/// the layout in force.
///
/// [`Evaluator::evaluate`] does no input or output; over a source that blocks,
/// [`Evaluator::fetch`] does both.
///
/// ```
/// use std::sync::Arc;
///
/// use pmderive_core::eval::{Evaluator, Workspace};
/// use pmderive_core::memory::{Feed, MemoryMetadata, MemorySource};
/// use pmderive_core::model::*;
/// use pmderive_core::program::{Binding, Input, Program};
/// use pmderive_core::result::{ResultBatch, ResultWriter};
/// use pmderive_core::source::*;
///
/// struct Seven;
///
/// impl Feed for Seven {
///     fn fetch(
///         &mut self,
///         list: &FetchList,
///         _: &mut MemoryMetadata,
///         batch: &mut ResultBatch,
///     ) -> Result<FetchEvents, SourceError> {
///         let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(60, 0));
///         for pmid in list.pmids() {
///             writer.set(*pmid);
///             writer.in_place(-1, 7u32);
///         }
///         Ok(FetchEvents::default())
///     }
/// }
///
/// let pmid = Pmid::new(400, 0, 0);
/// let (value_type, semantics) = (ValueType::U32, Semantics::Instant);
/// let desc = MetricDesc { pmid, value_type, indom: None, semantics, units: Units::NONE };
/// let mut metadata = MemoryMetadata::default();
/// metadata.add_metric("seven", desc);
/// let mut source = MemorySource::new("an example", metadata, Seven);
///
/// // A compiler makes programs; this one only fetches.
/// let input = Input { value_type, is_set: false, domain: None };
/// let program = Program { inputs: [input].into(), ..Program::default() };
/// let binding = Binding::new(&[desc], Vec::new(), Vec::new());
/// let mut evaluator = Evaluator::new(Arc::new(program), binding);
/// assert_eq!(evaluator.requests().pmids(), [pmid]);
/// let mut workspace = Workspace::default();
/// let (evaluation, _) = evaluator.fetch(&mut source, &mut workspace)?;
/// assert_eq!(evaluation.timestamp(), Timestamp::new(60, 0));
/// # Ok::<(), SourceError>(())
/// ```
#[derive(Debug)]
pub struct Evaluator {
    program: Arc<Program>,
    binding: Arc<Binding>,
    list: FetchList,
    selected: SelectedNames,
    verdicts: Verdicts,
    /// The current layout.
    layout: Option<Layout>,
    /// Layouts that may come again.
    returning: Returning,
    /// Stamp of the frame when the layout was last laid out in it.
    stamp: Option<u64>,
    /// Plans that all evaluators of the program share.
    shared: Arc<dyn SharedParts>,
    history: HistoryStore,
    windows: WindowStore,
    /// Outputs that need the general path in the current layout, ascending.
    irregular: Vec<Irregular>,
    always_general: bool,
    copied: Copied,
    /// Number of evaluations of the program in use.
    evaluations: u64,
}

/// An output that needs the general path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Irregular {
    output: OutputId,
    /// True if the evaluation can start from columns. It cannot if a kernel
    /// sets a flag.
    has_columns: bool,
}

/// The buffers of fetching and evaluating. They may serve any number of
/// contexts, one after the other.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The last fetch.
    pub batch: ResultBatch,
    /// Buffers for its evaluation.
    pub buffers: Buffers,
}

/// Buffers for evaluation. They may serve any number of contexts, one after the
/// other. Batches are not part of them, so contexts whose fetches run at the
/// same time can share buffers.
#[derive(Debug, Default)]
pub struct Buffers {
    answers: Answers,
    /// Columns of inputs, steps and outputs for each program. The frame used
    /// last comes last.
    frames: Vec<Frame>,
    /// Buffer for previous samples in their former places.
    former: Vec<u8>,
    /// Sections that are not as the layout expects.
    dirty: Vec<SectionId>,
    /// Parallel to the sections: whether the section is in `dirty`.
    is_dirty: Vec<bool>,
    /// Place of each input's value set in the batch.
    sets: Vec<SetPlace>,
    /// Bytes of values that are not numbers.
    blobs: Vec<u8>,
    scratch: Scratch,
    general: General,
    /// Outputs that take the general path in this evaluation.
    todo: Vec<Irregular>,
    /// Parallel to the outputs: the node with the general path's value, if any.
    overrides: Vec<Option<NodeId>>,
}

/// Number of frames to keep for programs that alternate.
const FRAMES_KEPT: usize = 32;

impl Buffers {
    /// Overwrites all columns, and tests then notice an evaluation that reads a
    /// value it has not written. Do not call it between the steps of an
    /// evaluation.
    #[doc(hidden)]
    pub fn poison(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.arena.fill(POISON));
    }

    /// The frame of a program. It becomes the last one.
    fn frame(&mut self, program: &Arc<Program>, sections: &Arc<Sections>) -> &mut Frame {
        let known = self.frames.iter().rposition(|frame| frame.is_of(program, sections));
        if known.is_none_or(|at| at + 1 < self.frames.len()) {
            let new = || Frame::new(program, Arc::clone(sections));
            let mut frame = known.map_or_else(new, |at| self.frames.remove(at));
            frame.take_arena(self.frames.last_mut());
            self.frames.retain(Frame::is_in_use);
            let surplus = (self.frames.len() + 1).saturating_sub(FRAMES_KEPT);
            self.frames.drain(..surplus);
            self.frames.push(frame);
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }
}

impl Evaluator {
    /// An evaluator without previous samples.
    pub fn new(program: Arc<Program>, binding: impl Into<Arc<Binding>>) -> Evaluator {
        let binding = binding.into();
        let (mut history, mut windows) = (HistoryStore::default(), WindowStore::default());
        history.change_program(None, (&program, &binding));
        windows.change_program(None, (&program, &binding));
        let own = Arc::new(SharedLayouts::default());
        Evaluator::assemble(program, binding, own, history, windows)
    }

    /// Bytes of memory besides the program and layouts, which others may share.
    /// Most of them are previous samples.
    pub fn bytes(&self) -> usize {
        let kept = self.history.bytes() + self.windows.bytes() + self.returning.bytes();
        size_of::<Evaluator>() + kept
    }

    /// Overwrites the gaps between previous samples, as [`Buffers::poison`]
    /// does with columns.
    #[doc(hidden)]
    pub fn poison(&mut self) {
        if let Some(layout) = &self.layout {
            self.history.poison(layout);
        }
    }

    /// Makes the evaluator share layouts with other evaluators of the program.
    pub fn sharing(self, shared: Arc<dyn SharedParts>) -> Evaluator {
        Evaluator { shared, ..self }
    }

    fn assemble(
        program: Arc<Program>,
        binding: Arc<Binding>,
        shared: Arc<dyn SharedParts>,
        history: HistoryStore,
        windows: WindowStore,
    ) -> Evaluator {
        Evaluator {
            list: FetchList::new(binding.pmids.clone(), binding.fetched_domains.clone()),
            binding,
            selected: SelectedNames::default(),
            verdicts: Verdicts::default(),
            layout: None,
            returning: Returning::default(),
            stamp: None,
            shared,
            irregular: Vec::new(),
            always_general: false,
            copied: Copied::default(),
            evaluations: 0,
            history,
            windows,
            program,
        }
    }

    /// Changes to another program in the same context. Samples stay for
    /// definitions that both programs have, and for definitions of earlier
    /// programs. `shared` holds the layouts that evaluators of the new program
    /// share.
    pub fn change_program(
        &mut self,
        program: Arc<Program>,
        binding: impl Into<Arc<Binding>>,
        shared: Arc<dyn SharedParts>,
    ) {
        let binding = binding.into();
        let is_same = Arc::ptr_eq(&program, &self.program) && *binding == *self.binding;
        let fetches_more = self.list.pmids().len() > binding.pmids.len()
            || self.list.domains().len() > binding.fetched_domains.len();
        // The verdicts of filters hold until they are bound again.
        if is_same && !fetches_more && !self.always_general && binding.named_domains.is_empty() {
            self.evaluations = 0;
            self.shared = shared;
            return;
        }
        let mut history = std::mem::take(&mut self.history);
        let before = (&*self.program, &*self.binding, self.layout.as_ref());
        history.change_program(Some(before), (&program, &binding));
        let mut windows = std::mem::take(&mut self.windows);
        windows.change_program(Some((&self.program, &self.binding)), (&program, &binding));
        *self = Evaluator::assemble(program, binding, shared, history, windows);
    }

    /// Makes fetches include further metrics, and the instances of further
    /// domains, after those of the program. Their values are in
    /// [`super::Evaluation::fetched`]; the evaluator does not use them.
    pub fn also_fetch(&mut self, pmids: &[Pmid], domains: &[InDom]) {
        let own = &self.list.pmids()[..self.program.inputs.len()];
        let own_domains = &self.list.domains()[..self.program.fetched_domains];
        self.list = FetchList::new([own, pmids].concat(), [own_domains, domains].concat());
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The metrics to fetch for each evaluation.
    pub fn requests(&self) -> &FetchList {
        &self.list
    }

    /// Domains whose instance names filters read. [`Pending::asked`] asks about
    /// them.
    pub fn named_domains(&self) -> &[InDom] {
        &self.binding.named_domains
    }

    /// Number of evaluations since the program is in use.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// Makes every evaluation go node by node. This is slower; tests compare
    /// kernels and layouts with it.
    pub fn use_general_path(&mut self) {
        self.always_general = true;
        self.find_irregular();
    }

    /// Forgets all previous samples, as at a gap.
    pub fn forget_history(&mut self) {
        self.forget(Reason::Gap);
    }

    /// Forgets the samples in windows of time. Every dialect does this at a
    /// gap.
    pub fn forget_windows(&mut self) {
        self.windows.forget();
    }

    fn forget(&mut self, reason: Reason) {
        self.history.forget(reason);
        self.windows.forget();
        self.find_irregular();
    }

    /// Forgets the samples of definitions that are gone for good and not in the
    /// program. `definitions` has their keys in ascending order.
    pub fn forget_definitions(&mut self, definitions: &[DefinitionKey]) {
        self.history.forget_definitions(definitions);
        self.windows.forget_definitions(definitions);
    }

    /// Forgets the samples of definitions that are not in the program. Should they come
    /// back, they begin with their first sample.
    pub fn forget_absent(&mut self) {
        self.history.forget_parked();
        self.windows.forget_parked();
    }

    fn find_irregular(&mut self) {
        let mut irregular = std::mem::take(&mut self.irregular);
        irregular.clear();
        let outputs = (0..self.program.outputs.len() as u32).map(OutputId);
        let known = &mut Vec::new();
        irregular.extend(outputs.filter_map(|output| self.irregular_output(output, known)));
        self.irregular = irregular;
    }

    /// Like [`Evaluator::find_irregular`], when only some sections have
    /// changed.
    fn find_irregular_in(&mut self, sections: &[SectionId]) {
        let Some(layout) = &self.layout else { return };
        if sections.len() * 2 > layout.sections.all.len() {
            return self.find_irregular();
        }
        let of = |section: &SectionId| &layout.sections[*section].touching;
        let mut outputs: Vec<OutputId> = sections.iter().flat_map(of).copied().collect();
        outputs.sort_unstable();
        outputs.dedup();
        let mut irregular = std::mem::take(&mut self.irregular);
        irregular.retain(|one| outputs.binary_search(&one.output).is_err());
        let known = &mut Vec::new();
        irregular.extend(outputs.iter().filter_map(|one| self.irregular_output(*one, known)));
        irregular.sort_unstable();
        self.irregular = irregular;
    }

    /// Frees the memory of outputs that have become regular. Usually these are
    /// all outputs: at first they had no previous samples.
    fn shrink_irregular(&mut self) {
        if self.irregular.capacity() > 2 * self.irregular.len() {
            self.irregular.shrink_to(self.irregular.len());
        }
    }

    /// The output as irregular, if it needs the general path. `known` is as in
    /// [`Evaluator::is_usable`].
    fn irregular_output(
        &self,
        output: OutputId,
        known: &mut Vec<Option<bool>>,
    ) -> Option<Irregular> {
        let layout = self.layout.as_ref()?;
        let is_usable = match self.program.needs.bases.get(output.index()) {
            [] => self.has_usable_samples(output, layout),
            _ => self.is_usable(output, layout, known),
        };
        let plan = layout.output(output);
        let is_general = matches!(plan, Some(OutputPlan::General(_)));
        if !is_general && !self.always_general && is_usable {
            return None;
        }
        let begins_with_columns = matches!(plan, Some(OutputPlan::General(Some(_))));
        let has_columns = begins_with_columns && is_usable && !self.always_general;
        Some(Irregular { output, has_columns })
    }

    /// True if the columns of an output's previous samples can be used, except those of its
    /// bases.
    fn has_usable_samples(&self, output: OutputId, layout: &Layout) -> bool {
        let needs = &self.program.needs;
        let has_place = |history: &HistoryId| {
            self.history.is_resident(*history) || kept_in(layout, *history).is_none()
        };
        let is_own = |baseline: &BaselineId| {
            let history = self.program.baselines[baseline.index()].history;
            self.history.is_apart(*baseline) || self.history.failure(*baseline, history).is_some()
        };
        needs.histories.get(output.index()).iter().all(has_place)
            && !needs.baselines.get(output.index()).iter().any(is_own)
    }

    /// The same with those of its bases. `known` keeps the results for outputs.
    fn is_usable(&self, output: OutputId, layout: &Layout, known: &mut Vec<Option<bool>>) -> bool {
        let needs = &self.program.needs;
        known.resize(self.program.outputs.len(), None);
        let mut open = vec![output];
        while let Some(one) = open.last().copied() {
            let before = open.len();
            let bases = needs.bases.get(one.index());
            if known[one.index()].is_none() {
                open.extend(bases.iter().filter(|base| known[base.index()].is_none()));
            }
            if open.len() == before {
                let is_usable = |base: &OutputId| known[base.index()] == Some(true);
                let found = self.has_usable_samples(one, layout) && bases.iter().all(is_usable);
                known[one.index()].get_or_insert(found);
                open.pop();
            }
        }
        known[output.index()] == Some(true)
    }
}
