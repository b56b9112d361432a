//! A source together with its derived metrics, for one user: names,
//! descriptors, texts, labels and values of both.
//!
//! ```text
//!  FetchSource::fetch(list) ──► ResultBatch   as pmFetch(3) gives it
//!  read(list)               ──► Readings      the same, without a copy
//!  choose(definitions), sample() ──► Sample   chosen expressions, in their order
//!                │
//!             Session ──► Evaluator           runs a list's program or the chosen one
//!                │
//!                └──────► source              operands and the list's other metrics, in one fetch
//! ```
//!
//! The definitions are those of a [`Definitions`] and those added to the
//! session alone ([`definitions`]). Each is bound when it is first used
//! ([`binding`]). Sessions of sources with the same answers share the result
//! ([`shared_parts`]). [`lists`] determines what a list of metrics needs, and
//! [`choice`] computes chosen definitions.

mod binding;
mod choice;
mod definitions;
mod lists;
mod names;
mod readings;
mod sample;
mod shared_parts;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmderive_runtime::eval::{Evaluation, Evaluator, Workspace};
use pmderive_runtime::model::{InDom, Pmid};
use pmderive_runtime::program::{Binding, DefinitionKey};
use pmderive_runtime::result::{ResultBatch, SetPlace};
use pmderive_runtime::source::{FetchEvents, FetchSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use self::binding::BoundByPmid;
use self::choice::Choice;
use self::lists::Plan;
pub use self::lists::Reads;
pub use self::readings::{Reading, Readings};
use self::sample::NamedInstances;
pub use self::sample::Sample;
pub(super) use self::shared_parts::SessionParts;
use super::definitions::Member;
use super::{Definitions, Engine, Snapshot};
use crate::dialect::{Dialect, Language};
use crate::syntax::ControlOption;

/// A source with the derived metrics of a registry. It corresponds to a context
/// of the PMAPI (`pmNewContext(3)`), for sources of any kind. It may move
/// between threads, and several sessions fetch and evaluate in parallel.
///
/// It is itself a [`MetadataSource`] and a [`FetchSource`]. A caller that knows
/// nothing of derived metrics finds them among the source's own. So does a
/// [`FetchGroup`](pmderive_runtime::fetch_group::FetchGroup), the easy way to read values.
///
/// ```
/// use pmderive::runtime::local::LocalContext;
/// use pmderive::runtime::result::ResultBatch;
/// use pmderive::runtime::source::{FetchList, FetchSource, MetadataSource};
/// use pmderive::{Definitions, Engine, Reading, Session, Space};
///
/// let mut session = Session::new(Engine::default(), Definitions::default(), LocalContext::new())?;
/// session.definitions().register("my.load", "sum(kernel.all.load) / hinv.ncpu")?;
///
/// let pmids = session.lookup_names(&["my.load", "hinv.ncpu"])?;
/// let list = FetchList::new(pmids.into_iter().collect::<Result<_, _>>()?, Vec::new());
/// let mut batch = ResultBatch::default();
/// session.fetch(&list, &mut batch)?;
/// assert!(batch.parts()[0].sets().all(|set| set.count == Ok(1)));
///
/// // The same without a copy: computed values and delivered ones where they lie.
/// let mut space = Space::default();
/// let readings = session.read(&list, &mut space)?;
/// assert!(matches!(readings.get(0), Reading::Computed(values) if values.len() == 1));
/// assert!(matches!(readings.get(1), Reading::Delivered(set) if set.count == Ok(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Definitions and expressions without a name are chosen and sampled:
///
/// ```
/// # use pmderive::runtime::local::LocalContext;
/// # use pmderive::{Definitions, Diagnostics, Engine, Session, Space};
/// # let mut session = Session::new(Engine::default(), Definitions::default(), LocalContext::new())?;
/// // A text beside those of the definitions, so that diagnostics can point into all.
/// let mut snapshot = session.definitions().snapshot();
/// let mut diagnostics = Diagnostics::default();
/// let text = snapshot.sources.add("<expression>", "hinv.ncpu * 100");
/// let percent = snapshot.registry.parse(text, &snapshot.sources, &mut diagnostics)?;
/// session.choose(&[&percent], &mut diagnostics)?;
/// let mut space = Space::default();
/// let sample = session.sample(&mut space)?;
/// let output = sample.metrics[0].output.expect("there are no mistakes");
/// assert_eq!(sample.values.get(output).len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If the source is a session too, its derived metrics can be operands, but this
/// session does not find them by name: both count their identifiers from the same
/// beginning.
///
/// [`MetadataSource`]: pmderive_runtime::source::MetadataSource
pub struct Session<S> {
    engine: Arc<Engine>,
    source: S,
    shared: Arc<Definitions>,
    member: Arc<Member>,
    /// Versions of `shared` and `member` from which `scope` was made.
    seen: (u64, u64),
    /// The definitions that this session sees.
    scope: Snapshot,
    bound: Arc<BoundByPmid>,
    /// Metrics in `bound` whose mistakes no caller has read yet, in the order
    /// of first use.
    untold: Vec<Pmid>,
    /// Identities of definitions that were removed while they were bound.
    gone: FxHashSet<DefinitionKey>,
    /// Epoch of the source's metadata to which definitions were bound.
    epoch: u64,
    /// True if the source failed, so that it may now be another one.
    lost: bool,
    /// Number of identifiers that this session's definitions were given.
    given: u32,
    /// Largest number of this session's own definitions; -1 for no limit.
    limit: i32,
    /// Plans of lists, with the one used last first.
    plans: Vec<Plan>,
    choice: Choice,
    /// For each domain the instances of samples that have names.
    named: FxHashMap<InDom, NamedInstances>,
    running: EvaluatorTask,
}

impl<S> fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("limit", &self.limit)
            .field("given", &self.given)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// The evaluator, and its current task.
struct EvaluatorTask {
    evaluator: Evaluator,
    in_force: Task,
    /// Number of evaluations of the current task.
    evaluations: u64,
    /// Events of fetches that were not evaluated, for the next evaluation.
    before: FetchEvents,
}

/// The current task of the evaluator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// No task that is still needed.
    Nothing,
    Choice,
    /// The needs of a list, by identity.
    Needs(u64),
}

/// The buffers of fetching and reading. They may serve any number of sessions,
/// one after the other.
#[derive(Debug, Default)]
pub struct Space {
    workspace: Workspace,
    /// Place of each fetched value set, by slot.
    places: Vec<SetPlace>,
}

/// An engine and definitions of different languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the engine is for definitions in another language: it has {engine}, the definitions have \
     {definitions}"
)]
pub struct LanguageMismatch {
    /// The engine's language.
    pub engine: Language,
    /// The language of the definitions.
    pub definitions: Language,
}

/// Most fetches in place of one whose reply announces changes of metadata.
const MOST_REPEATED: usize = 2;

/// First text identifier for definitions of sessions.
const FIRST_LOCAL_SOURCE: u32 = 1 << 31;

impl<S: FetchSource> Session<S> {
    /// A source with derived metrics (pmNewContext(3)). The session also sees definitions that
    /// are registered later. Sessions with the same [`Arc`]s share compiled parts.
    ///
    /// # Errors
    /// Engine and definitions have different languages: values would be of two dialects.
    pub fn new(
        engine: impl Into<Arc<Engine>>,
        definitions: impl Into<Arc<Definitions>>,
        source: S,
    ) -> Result<Session<S>, LanguageMismatch> {
        let (engine, shared) = (engine.into(), definitions.into());
        let (engines, definitions) = (engine.language(), shared.language());
        if engines != definitions {
            return Err(LanguageMismatch { engine: engines, definitions });
        }
        let member = Arc::new(Member::default());
        shared.join(&member);
        let epoch = source.metadata_epoch();
        let seen = (shared.version(), 0);
        let scope = shared.snapshot();
        member.known.store(scope.registry.given(), Ordering::Release);
        Ok(Session {
            engine,
            source,
            seen,
            // As in libpcp, the global limit is the first limit of each
            // session.
            limit: scope.registry.control(ControlOption::GlobalLimit),
            scope,
            shared,
            member,
            bound: Arc::default(),
            untold: Vec::new(),
            gone: FxHashSet::default(),
            epoch,
            lost: false,
            given: 0,
            plans: Vec::new(),
            choice: Choice::default(),
            named: FxHashMap::default(),
            running: EvaluatorTask {
                evaluator: Evaluator::new(Arc::default(), Arc::<Binding>::default()),
                in_force: Task::Nothing,
                evaluations: 0,
                before: FetchEvents::default(),
            },
        })
    }

    /// The source without derived metrics.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// Ends the session and returns its source (`pmDestroyContext(3)` without
    /// closing the source).
    pub fn into_source(self) -> S {
        self.source
    }

    /// The definitions of all sessions.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.shared
    }

    /// Overwrites memory that an evaluation must never read; see
    /// [`Buffers::poison`](pmderive_runtime::eval::Buffers::poison).
    #[cfg(any(test, feature = "fuzz"))]
    #[doc(hidden)]
    pub fn poison(&mut self, space: &mut Space) {
        space.workspace.buffers.poison();
        self.running.evaluator.poison();
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.engine.dialect()
    }

    /// Reacts to changed definitions and to changed metadata of the source.
    /// Costs almost nothing if nothing has changed.
    fn refresh(&mut self) {
        let now = (self.shared.version(), self.member.version.load(Ordering::Acquire));
        if now != self.seen {
            self.seen = now;
            self.take_scope();
        }
        let epoch = self.source.metadata_epoch();
        // PCP up to version 7.2 binds only once.
        if self.dialect() == Dialect::Fixed && (epoch != self.epoch || self.lost) {
            self.epoch = epoch;
            self.lost = false;
            self.forget_bindings();
        }
    }

    /// True if a reply announces changes that the metadata of an epoch lack. Its values may already
    /// be of other metrics. PCP up to version 7.2 binds only once.
    fn is_announced(&self, events: FetchEvents, epoch: u64) -> bool {
        self.dialect() == Dialect::Fixed
            && events.changes.concerns_metadata()
            && self.source.metadata_epoch() != epoch
    }

    /// Forgets the previous samples of all definitions, as at a gap: the next evaluation has no
    /// rates and differences.
    pub fn forget_history(&mut self) {
        self.running.evaluator.forget_history();
    }

    /// Forgets the previous samples of definitions that the last fetch or sample did not compute.
    pub fn forget_absent(&mut self) {
        self.running.evaluator.forget_absent();
    }

    fn forget_bindings(&mut self) {
        self.bound = Arc::default();
        self.untold.clear();
        self.plans.clear();
    }

    /// Changes the task of the evaluator. `Needs` are those of the first plan.
    fn put_in_force(&mut self, next: Task) {
        let EvaluatorTask { evaluator, in_force, evaluations, .. } = &mut self.running;
        match std::mem::replace(in_force, next) {
            Task::Nothing => {}
            Task::Choice => self.choice.evaluations = *evaluations,
            Task::Needs(id) => {
                if let Some(former) = self.plans.iter_mut().find(|plan| plan.id() == id) {
                    former.evaluations = *evaluations;
                }
            }
        }
        *evaluations = match (next, self.plans.first()) {
            (Task::Choice, _) => self.choice.put_into(evaluator),
            (Task::Needs(_), Some(plan)) => plan.put_into(evaluator),
            (Task::Needs(_), None) | (Task::Nothing, _) => 0,
        };
        if !self.gone.is_empty() {
            for bound in self.bound.values() {
                // A definition that was replaced by the same text still exists.
                self.gone.remove(&bound.definition.key);
            }
            let mut gone: Vec<DefinitionKey> = self.gone.drain().collect();
            gone.sort_unstable();
            evaluator.forget_definitions(&gone);
        }
    }
}

impl EvaluatorTask {
    /// Fetches for the current task.
    fn fetch(
        &mut self,
        source: &mut impl FetchSource,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        source.fetch(self.evaluator.requests(), batch)
    }

    /// Evaluates the values that were fetched for the current task.
    fn evaluate<'s>(
        &'s mut self,
        events: FetchEvents,
        engine: &Engine,
        source: &mut impl FetchSource,
        workspace: &'s mut Workspace,
    ) -> Result<(Evaluation<'s>, FetchEvents), SourceError> {
        self.evaluations += 1;
        engine.compiler.evaluated(self.evaluator.program(), self.evaluations, &engine.threads);
        let events = std::mem::take(&mut self.before).with(events);
        Ok((self.evaluator.evaluate_fetched(events, source, workspace)?, events))
    }
}
