//! A source that has the derived metrics as well, for callers that know
//! nothing of them: the face that libpcp gives to a context.
//!
//! ```text
//! caller ──► DerivedContext ──► source          names, descriptors, texts, labels
//!                │                ▲
//!                │ fetch          │ operands and the caller's other metrics, in one fetch
//!                └──► Context ────┘
//! ```
//!
//! Definitions are those of a [`SharedRegistry`] and those added to the
//! context alone. Each is bound when it is first touched; what came of it is
//! kept until the definition or the source's metadata changes, and contexts of
//! sources with the same answers share it (`alike`). Who reads only
//! derived metrics and wants their values as they are computed uses
//! [`Context`] by itself.

mod alike;
mod fetch;
mod names;
mod values;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmderive_runtime::model::{MetricDesc, PmStatus, Pmid, TextKind};
use pmderive_runtime::source::{FetchSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) use self::alike::Alike;
use self::alike::Together;
use self::fetch::Plan;
use super::registry::{duplicate, no_room, whole};
use super::shared::{Local, Member};
use super::{Context, Engine, Registered, Registry, anonymous, identifiers};
use super::{Refused, SharedRegistry, Snapshot};
use crate::check::typed::{Desc, TypedExpr};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Dialect;
use crate::source::{SourceId, SourceMap, SourceText};
use crate::syntax::ControlOption;

/// See the module's description. Itself a [`MetadataSource`] and a
/// [`FetchSource`]; may move between threads.
///
/// ```
/// use std::sync::Arc;
///
/// use pmderive::dialect::Dialect;
/// use pmderive::engine::{Backend, DerivedContext, Engine, SharedRegistry};
/// use pmderive_runtime::local::LocalContext;
/// use pmderive_runtime::result::ResultBatch;
/// use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};
///
/// let shared = Arc::new(SharedRegistry::new(Dialect::Fixed));
/// let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Auto));
/// let mut context = DerivedContext::new(engine, Arc::clone(&shared), LocalContext::new());
/// shared.register("my.load", "sum(kernel.all.load) / hinv.ncpu")?;
///
/// let pmids = context.lookup_names(&["my.load", "hinv.ncpu"])?;
/// let list = FetchList::new(pmids.into_iter().collect::<Result<_, _>>()?, Vec::new());
/// let mut batch = ResultBatch::default();
/// context.fetch(&list, &mut batch)?;
/// assert!(batch.parts()[0].sets().all(|set| set.count == Ok(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`MetadataSource`]: pmderive_runtime::source::MetadataSource
pub struct DerivedContext<S> {
    shared: Arc<SharedRegistry>,
    member: Arc<Member>,
    /// Versions of both that `scope` was made of.
    seen: (u64, u64),
    /// The definitions that this context sees.
    scope: Snapshot,
    context: Context<S>,
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
    /// Identifiers that definitions of this context were given.
    given: u32,
    /// Most definitions of this context, -1 for any number.
    limit: i32,
    /// The one used last first.
    plans: Vec<Plan>,
    /// The plan whose program the context has.
    in_force: Option<u64>,
}

/// Definitions that were bound.
type BoundByPmid = FxHashMap<Pmid, Bound>;

/// A definition that was bound, with what came of it.
#[derive(Clone)]
struct Bound {
    definition: Arc<Registered>,
    outcome: Outcome,
}

#[derive(Clone)]
enum Outcome {
    /// It is the expression at a position among those that were bound with it.
    Usable {
        desc: Desc,
        among: Arc<Together>,
        at: usize,
    },
    Unusable(Vec<Diagnostic>),
    /// The source has a metric of that name.
    Hidden(Vec<Diagnostic>),
}

/// Expressions that were bound together, each with the identity that its
/// previous samples are kept under. Some are operands of others, which come
/// after them.
type Typed = Vec<(u64, TypedExpr)>;

/// Text identifiers from here on are those of definitions of contexts.
const FIRST_LOCAL_SOURCE: u32 = 1 << 31;

impl<S: FetchSource> DerivedContext<S> {
    /// A source with the metrics of a registry, which the engine must share
    /// the language with. Definitions registered later are seen as well
    /// (pmNewContext(3)).
    pub fn new(engine: Arc<Engine>, shared: Arc<SharedRegistry>, source: S) -> DerivedContext<S> {
        let member = Arc::new(Member::default());
        shared.join(&member);
        let epoch = source.metadata_epoch();
        let seen = (shared.version(), 0);
        let scope = shared.snapshot();
        member.known.store(scope.registry.given(), Ordering::Release);
        DerivedContext {
            seen,
            // As in libpcp the limit for all is the first limit for each.
            limit: scope.registry.control(ControlOption::GlobalLimit),
            scope,
            shared,
            member,
            context: Context::empty(engine, source),
            bound: Arc::default(),
            untold: Vec::new(),
            gone: FxHashSet::default(),
            epoch,
            lost: false,
            given: 0,
            plans: Vec::new(),
            in_force: None,
        }
    }

    /// The source without derived metrics.
    pub fn source(&mut self) -> &mut S {
        self.context.source()
    }

    /// The definitions of all contexts.
    pub fn shared(&self) -> &Arc<SharedRegistry> {
        &self.shared
    }

    /// Adds a metric that no other context has (`pmAddDerived(3)`). It is
    /// bound at once; for this context it hides a global one of its name.
    ///
    /// # Errors
    /// The source failed. The inner error: the name or the expression is
    /// wrong, in itself or against the source, or there is no room. Either
    /// way nothing is left of the attempt.
    pub fn add_derived(
        &mut self,
        name: &str,
        text: &str,
    ) -> Result<Result<Pmid, Refused>, SourceError> {
        self.refresh();
        let mut diagnostics = Diagnostics::default();
        let id = SourceId(FIRST_LOCAL_SOURCE + self.given);
        let source = (id, SourceText::new(name, text));
        let mut sources = self.scope.sources.clone();
        sources.insert(id, source.1.clone());
        let registry = &self.scope.registry;
        let room = |diagnostics: &mut Diagnostics| {
            let locals = self.member.locals();
            if locals.iter().any(|local| *local.definition.name == *name) {
                let place = whole(id, &sources);
                return Err(duplicate(name, place, "per-context", diagnostics));
            }
            let registered = registry.parse_named(name, id, &sources, diagnostics)?;
            if usize::try_from(self.limit).is_ok_and(|limit| locals.len() >= limit) {
                let message =
                    format!("CONTEXT_LIMIT allows no more than {} definitions", self.limit);
                let help = "raise the limit of the context (pmSetDerivedControl(3))";
                let words = "Too many per-context derived metrics";
                return Err(no_room(&registered, message, help, words, diagnostics));
            }
            match identifiers::of_context(self.given) {
                Some(pmid) => Ok((registered, pmid)),
                None => {
                    let message = "there are no more identifiers for derived metrics".to_owned();
                    let help = "identifiers are not given again; open another context";
                    let words = "per-context PMID space exhausted";
                    Err(no_room(&registered, message, help, words, diagnostics))
                }
            }
        };
        let (registered, pmid) = match room(&mut diagnostics) {
            Ok(room) => room,
            Err(error) => return Ok(Err(Refused { error: Some(error), diagnostics, sources })),
        };
        // Not that of a global definition of the same text.
        let identity = registered.identity.rotate_left(1) ^ 1;
        let definition = Arc::new(Registered { pmid: Some(pmid), identity, ..registered });
        let mut scope = Snapshot { registry: registry.clone(), sources };
        scope.registry.enter(Arc::clone(&definition));
        let before = std::mem::replace(&mut self.scope, scope);
        let bound = self.bind([pmid]);
        let refusal = match &bound {
            Err(_) => Some(Vec::new()),
            Ok(()) => match self.bound.get(&pmid).map(|bound| &bound.outcome) {
                Some(Outcome::Unusable(found)) if !self.is_passed_over(found) => {
                    Some(found.clone())
                }
                _ => None,
            },
        };
        if let Some(found) = refusal {
            Arc::make_mut(&mut self.bound).remove(&pmid);
            self.untold.retain(|untold| *untold != pmid);
            let Snapshot { sources, .. } = std::mem::replace(&mut self.scope, before);
            bound?;
            diagnostics.extend(found);
            return Ok(Err(Refused { error: None, diagnostics, sources }));
        }
        self.given += 1;
        self.member.locals().push(Local { definition, source, texts: Vec::new() });
        Ok(Ok(pmid))
    }

    /// True for mistakes that version 6 does not report: it takes a metric
    /// whose operands are missing, and never has a value for it.
    fn is_passed_over(&self, found: &[Diagnostic]) -> bool {
        self.dialect() == Dialect::Pcp6_0
            && found.iter().all(|diagnostic| diagnostic.code == Code::UnknownMetric)
    }

    /// Gives a metric one of its help texts (`pmAddDerivedText(3)`): a global
    /// one if there is one of that name, else one of this context.
    ///
    /// # Errors
    /// `PM_ERR_NAME` if there is no such metric, `PM_ERR_TEXT` if it has the
    /// text already.
    pub fn add_text(&mut self, name: &str, kind: TextKind, text: &str) -> Result<(), PmStatus> {
        match self.shared.set_text(name, kind, text) {
            Err(PmStatus::NAME) => {}
            outcome => return outcome,
        }
        let mut locals = self.member.locals();
        let local = locals.iter_mut().find(|local| *local.definition.name == *name);
        let local = local.ok_or(PmStatus::NAME)?;
        if local.texts.iter().any(|(known, _)| *known == kind) {
            return Err(PmStatus::TEXT);
        }
        local.texts.push((kind, text.into()));
        self.member.changed();
        Ok(())
    }

    /// Value of an option (`pmGetDerivedControl(3)`).
    pub fn control(&self, option: ControlOption) -> i32 {
        match option {
            ControlOption::ContextLimit => self.limit,
            _ => self.shared.control(option),
        }
    }

    /// Gives an option a value (`pmSetDerivedControl(3)`): the limit of a
    /// context for this one, the others for all.
    ///
    /// # Errors
    /// `PM_ERR_ARG` for a value that it cannot have, `PM_ERR_AGAIN` if the
    /// environment gave it another.
    pub fn set_control(&mut self, option: ControlOption, value: i32) -> Result<(), PmStatus> {
        match option {
            ControlOption::ContextLimit if !option.takes(value) => Err(PmStatus::ARG),
            ControlOption::ContextLimit => {
                self.limit = value;
                Ok(())
            }
            _ => self.shared.set_control(option, value),
        }
    }

    /// Starts again with the global definitions, as `pmReconnectContext(3)`
    /// does in any dialect: those of this context are gone, and the others
    /// are bound anew. The caller has connected the source.
    pub fn rebind(&mut self) {
        self.member.locals().clear();
        self.member.changed();
        self.forget_bindings();
    }

    /// What is wrong with a derived metric in this context, if anything is,
    /// with the texts that the diagnostics point into.
    ///
    /// # Errors
    /// The source failed.
    pub fn mistakes(&mut self, name: &str) -> Result<(Diagnostics, SourceMap), SourceError> {
        self.refresh();
        let pmid = self.scope.registry.get(name).and_then(|one| one.pmid);
        self.bind(pmid)?;
        let mut diagnostics = Diagnostics::default();
        if let Some(Outcome::Unusable(found)) = pmid.and_then(|pmid| self.outcome(pmid)) {
            diagnostics.extend(found.iter().cloned());
        }
        Ok((diagnostics, self.scope.sources.clone()))
    }

    /// What was found wrong with derived metrics since this was asked last, in
    /// the order in which they were first touched, with the texts that the
    /// diagnostics point into. libpcp says so when it happens.
    pub fn take_mistakes(&mut self) -> (Diagnostics, SourceMap) {
        let mut diagnostics = Diagnostics::default();
        for pmid in std::mem::take(&mut self.untold) {
            if let Some(Outcome::Unusable(found) | Outcome::Hidden(found)) = self.outcome(pmid) {
                diagnostics.extend(found.iter().cloned());
            }
        }
        (diagnostics, self.scope.sources.clone())
    }

    fn dialect(&self) -> Dialect {
        self.context.engine.dialect()
    }

    /// Takes note of definitions that came or went, and of a source whose
    /// metadata changed. Costs next to nothing when there is no news.
    fn refresh(&mut self) {
        let now = (self.shared.version(), self.member.version.load(Ordering::Acquire));
        if now != self.seen {
            self.seen = now;
            self.take_scope();
        }
        let epoch = self.context.source.metadata_epoch();
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

    /// Takes the definitions of now; what is still the same stays bound.
    fn take_scope(&mut self) {
        let mut scope = self.shared.snapshot();
        self.member.known.store(scope.registry.given(), Ordering::Release);
        for local in self.member.locals().iter() {
            let (id, text) = &local.source;
            scope.sources.insert(*id, text.clone());
            scope.registry.enter(Arc::clone(&local.definition));
            for (kind, text) in &local.texts {
                if let Some(pmid) = local.definition.pmid {
                    // No text was given before.
                    let _ = scope.registry.set_text_of(pmid, *kind, text);
                }
            }
        }
        let before = std::mem::replace(&mut self.scope, scope);
        let registry = &self.scope.registry;
        let option = |registry: &Registry| registry.control(ControlOption::NoValue);
        // With extensions a definition may mean another through its operands.
        if registry.language().extensions || option(registry) != option(&before.registry) {
            return self.forget_bindings();
        }
        let gone = &mut self.gone;
        // What was missing may be among the definitions that came.
        let tries_again = registry.language().dialect == Dialect::Fixed;
        Arc::make_mut(&mut self.bound).retain(|pmid, bound| {
            let stays = registry.holds(*pmid, &bound.definition);
            if !stays {
                gone.insert(bound.definition.identity);
            }
            stays && !(tries_again && matches!(bound.outcome, Outcome::Unusable(_)))
        });
        let bound = &self.bound;
        self.untold.retain(|pmid| bound.contains_key(pmid));
        self.plans.retain(|plan| {
            plan.derived().all(|(pmid, was_bound)| match was_bound {
                true => bound.contains_key(&pmid),
                false => registry.by_pmid(pmid).is_none(),
            })
        });
    }

    /// Binds those definitions that are not bound yet, all together.
    ///
    /// # Errors
    /// The source failed; then none of them is.
    fn bind(&mut self, pmids: impl IntoIterator<Item = Pmid>) -> Result<(), SourceError> {
        let mut wanted: Vec<Arc<Registered>> = Vec::new();
        let mut seen: FxHashSet<Pmid> = FxHashSet::default();
        for pmid in pmids {
            if !self.bound.contains_key(&pmid)
                && seen.insert(pmid)
                && let Some(definition) = self.scope.registry.by_pmid(pmid)
            {
                wanted.push(Arc::clone(definition));
            }
        }
        let asked: Vec<Pmid> = wanted.iter().filter_map(|definition| definition.pmid).collect();
        wanted.sort_unstable_by_key(|definition| definition.pmid.map(identifiers::order));
        if wanted.is_empty() {
            return Ok(());
        }
        let Context { engine, source, .. } = &mut self.context;
        let registry = &self.scope.registry;
        let (together, diagnostics) = engine.check_together(registry, &wanted, source)?;
        if self.bound.is_empty() {
            // The first question may have made a connection to another peer;
            // all answers are its.
            self.epoch = source.metadata_epoch();
        }
        together.add_to(&mut self.bound, &diagnostics);
        let is_wrong = |pmid: &Pmid| {
            matches!(self.outcome(*pmid), Some(Outcome::Unusable(_) | Outcome::Hidden(_)))
        };
        let wrong: Vec<Pmid> = asked.into_iter().filter(is_wrong).collect();
        self.untold.extend(wrong);
        Ok(())
    }

    /// What came of binding a metric, if it was bound.
    fn outcome(&self, pmid: Pmid) -> Option<&Outcome> {
        self.bound.get(&pmid).map(|bound| &bound.outcome)
    }

    /// Descriptor of a derived metric that was bound (`pmLookupDesc(3)`).
    fn desc(&self, pmid: Pmid) -> Result<MetricDesc, PmStatus> {
        let desc = match self.outcome(pmid) {
            Some(Outcome::Usable { desc, .. }) => *desc,
            Some(Outcome::Unusable(_) | Outcome::Hidden(_)) => return Err(PmStatus::BADDERIVE),
            None if self.is_anonymous(pmid) => anonymous::DESC,
            None => return Err(PmStatus::PMID),
        };
        Ok(desc.of_metric(pmid))
    }

    fn is_anonymous(&self, pmid: Pmid) -> bool {
        self.scope.registry.anonymous().any(|(known, _)| known == pmid)
    }
}
