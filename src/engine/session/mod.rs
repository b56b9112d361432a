//! A source together with its derived metrics, for one user: names,
//! descriptors, texts, labels and values of both.
//!
//! ```text
//!  FetchSource::fetch(list) ──► ResultBatch   as pmFetch(3) gives it
//!  read(list)               ──► Readings      the same, where it lies
//!  choose(definitions), sample() ──► Sample   expressions in an order, as they are computed
//!                │
//!             Session ──► Evaluator           what is in force: a list's program or the chosen one
//!                │
//!                └──────► source              operands and the list's other metrics, in one fetch
//! ```
//!
//! Definitions are those of a [`SharedRegistry`] and those added to the
//! session alone ([`definitions`]). Each is bound when it is first touched
//! ([`binding`]); sessions of sources with the same answers share what came of
//! that ([`alike`]). What a list of metrics needs is in [`lists`], what is
//! computed for a choice of definitions in [`choice`].

mod alike;
mod binding;
mod choice;
mod definitions;
mod lists;
mod names;
mod readings;
mod sample;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmderive_runtime::eval::{Evaluation, Evaluator, Workspace};
use pmderive_runtime::model::Pmid;
use pmderive_runtime::program::Binding;
use pmderive_runtime::source::{FetchEvents, FetchSource, SourceError};
use rustc_hash::FxHashSet;

pub(super) use self::alike::Alike;
use self::binding::BoundByPmid;
use self::choice::Choice;
use self::lists::Plan;
pub use self::readings::{Reading, Readings};
pub use self::sample::Sample;
use super::shared::Member;
use super::{Engine, SharedRegistry, Snapshot};
use crate::dialect::Dialect;
use crate::syntax::ControlOption;

/// A source with the derived metrics of a registry: what a context is to a
/// caller of the PMAPI (`pmNewContext(3)`), for sources of any kind. May move
/// between threads; several sessions fetch and evaluate in parallel.
///
/// It is a [`MetadataSource`] and a [`FetchSource`] itself, so whoever knows
/// nothing of derived metrics finds them among the source's own:
///
/// ```
/// use std::sync::Arc;
///
/// use pmderive::dialect::Dialect;
/// use pmderive::engine::{Backend, Engine, Reading, Session, SharedRegistry, Space};
/// use pmderive_runtime::local::LocalContext;
/// use pmderive_runtime::result::ResultBatch;
/// use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};
///
/// let shared = Arc::new(SharedRegistry::new(Dialect::Fixed));
/// let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Auto));
/// let mut session = Session::new(engine, Arc::clone(&shared), LocalContext::new());
/// shared.register("my.load", "sum(kernel.all.load) / hinv.ncpu")?;
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
/// # use std::sync::Arc;
/// # use pmderive::dialect::Dialect;
/// # use pmderive::engine::{Backend, Engine, Session, SharedRegistry, Space};
/// # use pmderive::diag::Diagnostics;
/// # use pmderive::text::SourceMap;
/// # use pmderive_runtime::local::LocalContext;
/// # let shared = Arc::new(SharedRegistry::new(Dialect::Fixed));
/// # let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Auto));
/// # let mut session = Session::new(engine, Arc::clone(&shared), LocalContext::new());
/// let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
/// let text = sources.add("<expression>", "hinv.ncpu * 100");
/// let percent = shared.snapshot().registry.parse(text, &sources, &mut diagnostics)?;
/// session.choose(&[&percent], &mut diagnostics)?;
/// let mut space = Space::default();
/// let sample = session.sample(&mut space)?;
/// let output = sample.metrics[0].output.expect("there are no mistakes");
/// assert_eq!(sample.values.get(output).len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`MetadataSource`]: pmderive_runtime::source::MetadataSource
pub struct Session<S> {
    engine: Arc<Engine>,
    source: S,
    shared: Arc<SharedRegistry>,
    member: Arc<Member>,
    /// Versions of both that `scope` was made of.
    seen: (u64, u64),
    /// The definitions that this session sees.
    scope: Snapshot,
    bound: Arc<BoundByPmid>,
    /// Those of `bound` whose mistakes nobody has taken yet, in the order in
    /// which they were asked for.
    untold: Vec<Pmid>,
    /// Identities of definitions that went while they were bound.
    gone: FxHashSet<u64>,
    /// The source's metadata that definitions were bound to.
    epoch: u64,
    /// The source failed, so that it may be another one now.
    lost: bool,
    /// Identifiers that definitions of this session were given.
    given: u32,
    /// Most definitions of this session, -1 for any number.
    limit: i32,
    /// What lists need; the one used last first.
    plans: Vec<Plan>,
    choice: Choice,
    running: Running,
}

/// The evaluator, and what it computes at the moment.
struct Running {
    evaluator: Evaluator,
    in_force: InForce,
    /// How often that was evaluated.
    evaluations: u64,
}

/// What the evaluator computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InForce {
    /// Nothing that is still wanted.
    Nothing,
    Choice,
    /// What lists need, by its identity.
    Needs(u64),
}

/// What is needed while a session fetches and what it gave is read: one for
/// any number of sessions, one after the other.
#[derive(Debug, Default)]
pub struct Space {
    workspace: Workspace,
    /// Where each fetched value set is: part and place, by slot.
    places: Vec<(usize, usize)>,
}

/// Text identifiers from here on are those of definitions of sessions.
const FIRST_LOCAL_SOURCE: u32 = 1 << 31;

impl<S: FetchSource> Session<S> {
    /// A source with the metrics of a registry, which the engine must share
    /// the language with. Definitions registered later are seen as well
    /// (pmNewContext(3)).
    pub fn new(engine: Arc<Engine>, shared: Arc<SharedRegistry>, source: S) -> Session<S> {
        let member = Arc::new(Member::default());
        shared.join(&member);
        let epoch = source.metadata_epoch();
        let seen = (shared.version(), 0);
        let scope = shared.snapshot();
        member.known.store(scope.registry.given(), Ordering::Release);
        Session {
            engine,
            source,
            seen,
            // As in libpcp the limit for all is the first limit for each.
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
            running: Running {
                evaluator: Evaluator::new(Arc::default(), Arc::<Binding>::default()),
                in_force: InForce::Nothing,
                evaluations: 0,
            },
        }
    }

    /// The source without derived metrics.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// The definitions of all sessions.
    pub fn shared(&self) -> &Arc<SharedRegistry> {
        &self.shared
    }

    /// Overwrites what an evaluation must never read; see
    /// [`Buffers::poison`](pmderive_runtime::eval::Buffers::poison).
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn poison(&mut self, space: &mut Space) {
        space.workspace.buffers.poison();
        self.running.evaluator.poison();
    }

    fn dialect(&self) -> Dialect {
        self.engine.dialect()
    }

    /// Takes note of definitions that came or went, and of a source whose
    /// metadata changed. Costs next to nothing when there is no news.
    fn refresh(&mut self) {
        let now = (self.shared.version(), self.member.version.load(Ordering::Acquire));
        if now != self.seen {
            self.seen = now;
            self.take_scope();
        }
        let epoch = self.source.metadata_epoch();
        // Version 7.2 and below bind once and for all.
        if self.dialect() == Dialect::Fixed && (epoch != self.epoch || self.lost) {
            self.epoch = epoch;
            self.lost = false;
            self.forget_bindings();
        }
    }

    fn forget_bindings(&mut self) {
        self.bound = Arc::default();
        self.untold.clear();
        self.plans.clear();
    }

    /// Evaluates something else from now on. Needs are those of the first plan.
    fn put_in_force(&mut self, next: InForce) {
        let Running { evaluator, in_force, evaluations } = &mut self.running;
        match std::mem::replace(in_force, next) {
            InForce::Nothing => {}
            InForce::Choice => self.choice.evaluations = *evaluations,
            InForce::Needs(id) => {
                if let Some(former) = self.plans.iter_mut().find(|plan| plan.id() == id) {
                    former.evaluations = *evaluations;
                }
            }
        }
        *evaluations = match (next, self.plans.first()) {
            (InForce::Choice, _) => self.choice.put_into(evaluator),
            (InForce::Needs(_), Some(plan)) => plan.put_into(evaluator),
            (InForce::Needs(_), None) | (InForce::Nothing, _) => 0,
        };
        if !self.gone.is_empty() {
            for bound in self.bound.values() {
                // What was replaced by the same text is still there.
                self.gone.remove(&bound.definition.identity);
            }
            let mut gone: Vec<u64> = self.gone.drain().collect();
            gone.sort_unstable();
            evaluator.forget_definitions(&gone);
        }
    }
}

impl Running {
    /// Fetches and evaluates what is in force.
    fn fetch<'s>(
        &'s mut self,
        engine: &Engine,
        source: &mut impl FetchSource,
        workspace: &'s mut Workspace,
    ) -> Result<(Evaluation<'s>, FetchEvents), SourceError> {
        self.evaluations += 1;
        engine.compiler.evaluated(self.evaluator.program(), self.evaluations, &engine.threads);
        self.evaluator.fetch(source, workspace)
    }
}
