//! One evaluation after the other, for one context.
//!
//! ```text
//!   requests() ──► fetched by whoever has the connection ──► evaluate() ──► Step::Done
//!                                                     Step::Needs ──► answered by the same
//! ```
//!
//! [`pending`] is the steps, [`settle`] gets from a batch to columns, and
//! [`compute`] from columns to values. Nothing here does input or output.

mod compute;
mod pending;
mod settle;

use std::sync::Arc;

use super::decode::Copied;
use super::general::General;
use super::history::{HistoryStore, kept_in};
use super::layout::{Frame, Layout, OutputPlan, POISON, SectionId, Sections};
use super::selected::Selected;
use super::shared_layouts::{InCommon, SharedLayouts};
use super::verdicts::Verdicts;
use super::windows::WindowStore;
use crate::kernel::interp::Scratch;
use crate::model::{InDom, Pmid};
use crate::program::{Binding, HistoryId, NodeId, OutputId, Program, Reason};
use crate::result::ResultBatch;
use crate::source::FetchList;
use pending::Answers;
pub use pending::{Asked, Inconsistent, OtherNames, Pending, Step};
use settle::SetPlace;

/// Evaluates a program for one context: owns the previous samples and knows
/// the layout in force.
#[derive(Debug)]
pub struct Evaluator {
    program: Arc<Program>,
    binding: Arc<Binding>,
    list: FetchList,
    selected: Selected,
    verdicts: Verdicts,
    /// The layout in force.
    layout: Option<Layout>,
    /// Stamp of the frame that the layout was laid out in last.
    stamp: Option<u64>,
    /// Plans of all evaluators of the program.
    shared: Arc<dyn InCommon>,
    history: HistoryStore,
    windows: WindowStore,
    /// Outputs that need the general path in the layout in force, ascending.
    irregular: Vec<Irregular>,
    always_general: bool,
    copied: Copied,
    /// Of the program in use.
    evaluations: u64,
}

/// An output that needs the general path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Irregular {
    output: OutputId,
    /// True if it begins with columns; as long as no kernel sets a flag.
    has_columns: bool,
}

/// What fetching and evaluating needs besides the evaluator, for any number of
/// contexts one after the other.
#[derive(Debug, Default)]
pub struct Workspace {
    /// What was fetched last.
    pub batch: ResultBatch,
    /// What it is evaluated in.
    pub buffers: Buffers,
}

/// Buffers for evaluating, for any number of contexts one after the other.
/// Apart from the batches, so that those whose fetches are under way at the
/// same time can share them.
#[derive(Debug, Default)]
pub struct Buffers {
    answers: Answers,
    /// Columns of inputs, steps and outputs, for each program; the one used
    /// last comes last.
    frames: Vec<Frame>,
    /// Previous samples as they lay before.
    former: Vec<u8>,
    /// Sections in which something is not as expected.
    dirty: Vec<SectionId>,
    /// Parallel to the sections: whether they are among those.
    is_dirty: Vec<bool>,
    /// Where the value sets of the program's inputs are in the batch.
    sets: Vec<SetPlace>,
    /// Bytes of values that are no numbers.
    blobs: Vec<u8>,
    scratch: Scratch,
    general: General,
    /// Outputs to be evaluated generally in this evaluation.
    todo: Vec<Irregular>,
    /// Parallel to the outputs: the node that holds the general path's value.
    overrides: Vec<Option<NodeId>>,
}

/// Frames kept for programs that are evaluated in turn.
const FRAMES_KEPT: usize = 32;

impl Buffers {
    /// Overwrites all columns, so that tests see whether an evaluation reads
    /// anything that it has not written. Not between the steps of one.
    #[doc(hidden)]
    pub fn poison(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.arena.fill(POISON));
    }

    /// The frame of a program, which is the last one from now on.
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

    /// Overwrites what lies between previous samples and is none, as
    /// [`Buffers::poison`] does with columns.
    #[doc(hidden)]
    pub fn poison(&mut self) {
        if let Some(layout) = &self.layout {
            self.history.poison(layout);
        }
    }

    /// The evaluator, which shares what others of the program have in common.
    pub fn sharing(self, shared: Arc<dyn InCommon>) -> Evaluator {
        Evaluator { shared, ..self }
    }

    fn assemble(
        program: Arc<Program>,
        binding: Arc<Binding>,
        shared: Arc<dyn InCommon>,
        history: HistoryStore,
        windows: WindowStore,
    ) -> Evaluator {
        Evaluator {
            list: FetchList::new(binding.pmids.clone(), binding.fetched_domains.clone()),
            binding,
            selected: Selected::default(),
            verdicts: Verdicts::default(),
            layout: None,
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

    /// Goes on with another program in the same context. Samples of
    /// definitions that both have are kept, and so are those of definitions
    /// that an earlier program had. `shared` is what evaluators of the program
    /// have in common.
    pub fn change_program(
        &mut self,
        program: Arc<Program>,
        binding: impl Into<Arc<Binding>>,
        shared: Arc<dyn InCommon>,
    ) {
        let binding = binding.into();
        let is_same = Arc::ptr_eq(&program, &self.program) && *binding == *self.binding;
        let fetches_more = self.list.pmids().len() > binding.pmids.len()
            || self.list.domains().len() > binding.fetched_domains.len();
        // What filters have found out holds until they are bound anew.
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

    /// From now on fetches further metrics, and the instances of further
    /// domains, behind those that the program needs. What is delivered for
    /// them is in [`super::Evaluation::fetched`], and nothing else is done with it.
    pub fn also_fetch(&mut self, pmids: &[Pmid], domains: &[InDom]) {
        let own = &self.list.pmids()[..self.program.inputs.len()];
        let own_domains = &self.list.domains()[..self.program.fetched_domains];
        self.list = FetchList::new([own, pmids].concat(), [own_domains, domains].concat());
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What has to be fetched for each evaluation.
    pub fn requests(&self) -> &FetchList {
        &self.list
    }

    /// Domains that filters look at; [`Pending::asked`] is about them.
    pub fn named_domains(&self) -> &[InDom] {
        &self.binding.named_domains
    }

    /// How often the program was evaluated here since it is in use.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
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

    /// Forgets what windows of time remember, as after a gap in every dialect.
    pub fn forget_windows(&mut self) {
        self.windows.forget();
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

    fn find_irregular(&mut self) {
        let mut irregular = std::mem::take(&mut self.irregular);
        irregular.clear();
        let outputs = 0..self.program.outputs.len() as u32;
        irregular.extend(outputs.map(OutputId).filter_map(|output| self.irregular_output(output)));
        self.irregular = irregular;
    }

    /// The same where something has changed in some sections only.
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
        irregular.extend(outputs.iter().filter_map(|output| self.irregular_output(*output)));
        irregular.sort_unstable();
        self.irregular = irregular;
    }

    /// Gives back what outputs needed that are regular now: mostly all of them,
    /// which had no previous samples at first.
    fn shrink_irregular(&mut self) {
        if self.irregular.capacity() > 2 * self.irregular.len() {
            self.irregular.shrink_to(self.irregular.len());
        }
    }

    /// An output, if it needs the general path.
    fn irregular_output(&self, output: OutputId) -> Option<Irregular> {
        let layout = self.layout.as_ref()?;
        let needs = &self.program.needs;
        let has_place = |history: &HistoryId| {
            self.history.is_resident(*history) || kept_in(layout, *history).is_none()
        };
        let is_usable = needs.histories.get(output.index()).iter().all(has_place)
            && !needs
                .baselines
                .get(output.index())
                .iter()
                .any(|baseline| self.history.is_apart(*baseline));
        let plan = layout.output(output);
        let is_general = matches!(plan, Some(OutputPlan::General(_)));
        if !is_general && !self.always_general && is_usable {
            return None;
        }
        let begins_with_columns = matches!(plan, Some(OutputPlan::General(Some(_))));
        let has_columns = begins_with_columns && is_usable && !self.always_general;
        Some(Irregular { output, has_columns })
    }
}
