//! The life of a host. Its task waits for its moment in each slot, connects, binds, fetches,
//! evaluates, and offers the result to sinks.
//!
//! ```text
//!             ┌───────────────────── orders: group, target, leave
//!             ▼
//! wait ──► connect ──► bind ──► fetch ──► evaluate ──► columns ──► names ──► frame
//!   ▲     (if broken)  (if metadata or        │            │ of instances not seen before
//!   └──────────────────  definitions changed) └────────────┴─► failed: all its series are stale
//! ```
//!
//! All hosts of a thread share the state in [`Shared`]. No step needs more than some
//! microseconds, except waits for the host.

mod columns;
mod failure;
mod life;
mod names;
mod polled_host;
mod turns;
mod view;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pmderive_runtime::context::AsyncHostContext;
use pmderive_runtime::eval::{Buffers, Evaluator};
use pmderive_runtime::model::{LabelLevel, LabelSet, PmStatus};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchEvents, Question, SourceError};
use pmderive_runtime::transport::within;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::condition::Condition;
use super::config::Limits;
use super::frame::columns::{Columns, Heads};
use super::frame::series::Series;
use super::frame::{Event, Frame, StaleReason};
use super::labels::Labels;
use super::log::Limiter;
use super::numbers::HostNumbers;
use super::plan::{Export, PlannedGroup};
use super::sinks::outlets::Outlets;
use super::slot::{Nanos, Slot};
use super::targets::target::Target;
use super::world::World;
use crate::engine::{Compiled, Engine, Retry, Selection};
use crate::escape;
use columns::{FoundColumns, FoundHeads, InstanceLimit};
use failure::Failure;
pub use life::live;
pub use polled_host::PolledHost;
use turns::Turns;
use view::{View, Views};

/// Time for which lines about hosts are left out before a line tells their number.
const SUMMARY: Duration = Duration::from_secs(10);

/// State that the hosts of a thread share.
pub struct Shared {
    /// The engine that compiles definitions.
    pub engine: Arc<Engine>,
    /// The counts of all hosts.
    pub numbers: Arc<HostNumbers>,
    /// Limits of hosts.
    limits: Cell<Limits>,
    /// The sinks.
    pub outlets: RefCell<Outlets>,
    turns: Turns,
    views: RefCell<Views>,
    /// Limiter for lines about single hosts.
    log: Rc<Limiter>,
    batches: RefCell<Vec<ResultBatch>>,
    buffers: RefCell<Vec<Buffers>>,
}

impl Shared {
    /// State for the hosts of a thread.
    pub fn new(
        engine: Arc<Engine>,
        numbers: Arc<HostNumbers>,
        limits: Limits,
        outlets: Outlets,
    ) -> Shared {
        Shared {
            engine,
            numbers,
            limits: Cell::new(limits),
            outlets: RefCell::new(outlets),
            turns: Turns::new(limits.connects),
            views: RefCell::default(),
            log: Rc::default(),
            batches: RefCell::default(),
            buffers: RefCell::default(),
        }
    }

    /// Changes the limits. Batches remember results that the former limits allowed.
    pub fn set_limits(&self, limits: Limits) {
        if self.limits.replace(limits) != limits {
            self.batches.borrow_mut().clear();
        }
    }

    /// Keeps a batch for other hosts, unless the limits have changed since it was taken.
    fn keep_batch(&self, batch: ResultBatch, limits: Limits) {
        if self.limits.get() == limits {
            self.batches.borrow_mut().push(batch);
        }
    }

    /// Logs a line about a host, unless there are too many. A later line tells how many were
    /// left out.
    fn tell(&self, line: impl FnOnce()) {
        match self.log.pass() {
            Ok(()) => line(),
            Err(1) => {
                let log = Rc::clone(&self.log);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(SUMMARY).await;
                    let left_out = log.take_left_out();
                    tracing::warn!(
                        "and {left_out} more lines about hosts; `/-/targets` shows all of them"
                    );
                });
            }
            Err(_) => {}
        }
    }
}

/// The orders of a host, and a way to change them.
#[derive(Debug)]
pub struct Desk {
    orders: RefCell<Option<Orders>>,
    changed: Notify,
}

/// The orders of a host.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The host, with its present labels.
    pub target: Arc<Target>,
    /// Its group.
    pub group: Arc<PlannedGroup>,
    /// The condition that it writes.
    pub condition: Arc<Condition>,
}

impl Desk {
    /// A desk with the first orders.
    pub fn new(orders: Orders) -> Desk {
        Desk { orders: RefCell::new(Some(orders)), changed: Notify::new() }
    }

    /// Replaces the orders; without any the host leaves.
    pub fn change(&self, orders: Option<Orders>) {
        *self.orders.borrow_mut() = orders;
        self.changed.notify_one();
    }

    /// The host's present target.
    pub fn target(&self) -> Option<Arc<Target>> {
        Some(Arc::clone(&self.orders.borrow().as_ref()?.target))
    }
}

/// One turn of a host: its slot, and what the host reads there.
#[derive(Clone, Copy)]
struct Turn<'t> {
    slot: Slot,
    orders: &'t Orders,
    shared: &'t Shared,
}

/// A host.
struct Host<W: World> {
    context: AsyncHostContext<W::Transport>,
    bound: Option<Bound>,
    /// The series that sinks know of the host.
    series: Series,
    /// True if the latest slot failed or was missed: the next values come after a gap.
    is_behind_gap: bool,
    /// Number of gaps so far.
    gaps: u32,
    /// True if the latest slot failed.
    has_failed: bool,
    /// True while the slot waits for the address of the host.
    is_resolving: bool,
}

/// First and longest time from one look for metrics that a host lacks to the next.
const WAITS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// Definitions bound to a host.
struct Bound {
    evaluator: Evaluator,
    compiled: Arc<Compiled>,
    /// The definitions and exports of the group that the host was bound for.
    selection: Arc<Selection>,
    exports: Arc<[Export]>,
    /// Epoch of the metadata that they were bound to.
    epoch: u64,
    /// The next look for metrics that the host lacks.
    retry: Option<Retry<Instant>>,
    /// True if the instances of the latest frame have the names of that metadata.
    has_names: bool,
    /// The outputs that sinks want.
    view: Arc<View>,
    host_labels: Labels,
}

/// Result of an answered slot.
struct HostAnswer {
    skew: f64,
    kind: u64,
    series: usize,
    bytes: usize,
}

/// A context for the host, without a connection.
fn unconnected<W: World>(orders: &Orders) -> AsyncHostContext<W::Transport> {
    let (spec, options) = (orders.target.spec.clone(), Arc::clone(&orders.group.options));
    AsyncHostContext::unconnected_over(spec, options).with_chance(orders.target.hash)
}

impl<W: World> Host<W> {
    fn new(orders: &Orders) -> Host<W> {
        Host {
            context: unconnected::<W>(orders),
            bound: None,
            series: Series::default(),
            gaps: 0,
            is_behind_gap: false,
            has_failed: false,
            is_resolving: false,
        }
    }

    /// Changes to other orders than those of the turn. Unchanged state goes on.
    fn follow(&mut self, new: &Orders, at: Nanos, turn: Turn<'_>) {
        let old = turn.orders;
        if new.target.spec != old.target.spec || !new.group.connects_as(&old.group) {
            self.context = unconnected::<W>(new);
            self.has_failed = false;
            // A host at another address has other metadata, and other previous samples.
            self.bound = None;
        }
        if new.target.labels != old.target.labels {
            // Series with the old labels end.
            self.end(StaleReason::TargetRemoved, at, turn);
        }
    }

    /// Ends all series.
    fn end(&mut self, why: StaleReason, at: Nanos, turn: Turn<'_>) {
        if let Some((event, sinks)) = self.series.end(&turn.orders.target, turn.slot, at, why) {
            turn.shared.outlets.borrow().offer(event, sinks);
        }
    }

    fn failed(&mut self, failure: &Failure, at: Nanos, turn: Turn<'_>) {
        (self.is_behind_gap, self.has_failed) = (true, true);
        self.end(StaleReason::Failed(Arc::clone(&failure.words)), at, turn);
    }

    /// Does all the work of a slot, in the time until the deadline.
    async fn slot_within(&mut self, left: Duration, turn: Turn<'_>) -> Result<HostAnswer, Failure> {
        // The future is large, and most hosts are idle most of the time.
        let work = Box::pin(self.slot(turn));
        let (host, deadline) = (&*turn.orders.target.name, turn.orders.group.deadline);
        within(left, work).await.unwrap_or_else(|| match std::mem::take(&mut self.is_resolving) {
            true => Err(Failure::nameless(host, deadline)),
            false => Err(Failure::late(host, deadline)),
        })
    }

    /// Does all the work of a slot.
    async fn slot(&mut self, turn: Turn<'_>) -> Result<HostAnswer, Failure> {
        let was_connected = self.context.is_connected();
        let limits = turn.shared.limits.get();
        self.context.set_max_values(limits.instances);
        let mut batch = turn.shared.batches.borrow_mut().pop().unwrap_or_default();
        let mut fetched = self.fetch(turn, &mut batch).await;
        if was_connected
            && !self.context.is_connected()
            && matches!(fetched, Err(SourceError::Io { .. }))
        {
            // The connection broke unnoticed. A new one shows whether the host is there.
            fetched = self.fetch(turn, &mut batch).await;
        }
        let events = fetched?;
        let at = self.series.begin_at(W::now());
        let answer = self.evaluate(at, turn, events, &batch).await;
        self.has_failed &= answer.is_err();
        turn.shared.keep_batch(batch, limits);
        answer
    }

    /// Fetches the operands of the definitions, on a new connection if there is none. It binds
    /// the definitions first if they or the metadata have changed.
    async fn fetch(
        &mut self,
        turn: Turn<'_>,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let Turn { orders, shared, .. } = turn;
        if !self.context.is_connected() {
            if self.context.may_connect()
                && let Some(name) = self.context.spec().name_on_network()
            {
                // A host that waits for its name does not keep others from connecting.
                self.is_resolving = true;
                W::resolve(name).await;
                self.is_resolving = false;
            }
            let connected = Box::pin(self.context.connect());
            shared.turns.take(self.has_failed, connected).await?;
            shared.numbers.connects.add(1);
            shared.numbers.reconnects.add(u64::from(self.bound.is_some()));
        }
        // A host that announces changes with every reply is asked three times at most.
        for _ in 0..3 {
            if !self.is_bound(&orders.group) {
                Box::pin(self.bind(turn)).await?;
            }
            let Some(bound) = &mut self.bound else { break };
            let compiled = Arc::clone(&bound.compiled);
            batch.clear();
            let before = Instant::now();
            let events = self.context.fetch(bound.evaluator.requests(), batch).await?;
            shared.numbers.fetch.observe(before.elapsed());
            self.is_behind_gap |= events.gap;
            if !self.is_bound(&orders.group) {
                // A reply with an announcement of changes may belong to other metrics.
                Box::pin(self.bind(turn)).await?;
                let is_same = |bound: &Bound| Arc::ptr_eq(&bound.compiled, &compiled);
                if !self.bound.as_ref().is_some_and(is_same) {
                    continue;
                }
            }
            let gap = std::mem::take(&mut self.is_behind_gap);
            self.gaps = self.gaps.wrapping_add(u32::from(gap));
            return Ok(FetchEvents { gap, ..events });
        }
        let target = self.context.spec().to_string();
        Err(SourceError::Status { target, status: PmStatus::AGAIN })
    }

    /// True if the bound definitions are those of a group, with the present metadata.
    fn is_bound(&self, group: &PlannedGroup) -> bool {
        self.bound.as_ref().is_some_and(|bound| {
            bound.epoch == self.context.metadata_epoch()
                && !bound.retry.is_some_and(|retry| retry.is_due(Instant::now()))
                // The next plan keeps the lists that are equal, so addresses tell.
                && Arc::ptr_eq(&bound.selection, &group.selection)
                && Arc::ptr_eq(&bound.exports, &group.exports)
        })
    }

    async fn bind(&mut self, turn: Turn<'_>) -> Result<(), SourceError> {
        let Turn { orders, shared, .. } = turn;
        let selection = &orders.group.selection;
        let epoch = self.context.metadata_epoch();
        let bound = shared.engine.bind_host(selection, &mut self.context).await;
        let compiled = bound.inspect_err(|error| {
            if matches!(error, SourceError::TooManyKinds { .. }) {
                // The host leaves its former kind.
                self.bound = None;
            }
        })?;
        shared.numbers.binds.add(1);
        let is_whole = compiled.metrics.iter().all(|metric| metric.desc.is_ok());
        let before = self.bound.as_ref().filter(|bound| bound.epoch == epoch);
        let before = before.and_then(|bound| bound.retry);
        let retry = (!is_whole).then(|| Retry::after(before, Instant::now(), WAITS));
        let (view, is_new) = shared.views.borrow_mut().of(&compiled, &orders.group, &orders.target);
        let labels = self.context.one(Question::Labels(LabelLevel::Context)).await?;
        let labels: Vec<LabelSet> = labels.unwrap_or_default();
        let host_labels = names::labels_of(labels.first());
        let evaluator = match self.bound.take() {
            Some(mut bound) => {
                compiled.put_into(&mut bound.evaluator);
                // No rate spans the time in which its definition was absent.
                bound.evaluator.forget_absent();
                bound.evaluator
            }
            None => compiled.evaluator(),
        };
        // The host has left its former kind (`take` above).
        if is_new && let Some(differs) = shared.engine.difference(&compiled) {
            let (group, host) = (&*orders.group.name, &*orders.target.name);
            let kind = compiled.kind();
            let words = escape::line_of(&differs.words);
            shared.tell(|| tracing::info!(group, host, kind, "unlike most: {words}"));
        }
        let has_names = false;
        self.bound = Some(Bound {
            evaluator,
            compiled,
            selection: Arc::clone(selection),
            exports: Arc::clone(&orders.group.exports),
            epoch,
            retry,
            has_names,
            view,
            host_labels,
        });
        Ok(())
    }

    /// Evaluates the reply, and offers the frame to sinks.
    async fn evaluate(
        &mut self,
        at: Nanos,
        turn: Turn<'_>,
        events: FetchEvents,
        batch: &ResultBatch,
    ) -> Result<HostAnswer, Failure> {
        let Turn { slot, orders, shared } = turn;
        let Host { context, bound, series, .. } = self;
        let Some(bound) = bound else {
            return Err(Failure::late(&orders.target.name, Duration::ZERO));
        };
        let mut buffers = shared.buffers.borrow_mut().pop().unwrap_or_default();
        let before = Instant::now();
        let evaluator = &mut bound.evaluator;
        let evaluation = context.evaluate_fetched(events, evaluator, batch, &mut buffers).await?;
        let stamp = evaluation.timestamp();
        let limit = InstanceLimit {
            most: shared.limits.get().instances,
            has_refused: batch.refused_sets() > 0,
        };
        let known = series.heads(&bound.view.schema).filter(|_| bound.has_names);
        let FoundColumns { lanes, heads, too_many } =
            columns::find(&evaluation, &bound.view, known, limit);
        shared.numbers.evaluate.observe(before.elapsed());
        shared.numbers.too_many_instances.add(too_many);
        shared.buffers.borrow_mut().push(buffers);
        shared.engine.evaluated(&bound.evaluator);
        let heads = match heads {
            FoundHeads::Same(heads) => heads,
            FoundHeads::Other { mut heads, unnamed, domains } => {
                if !unnamed.is_empty() {
                    Box::pin(names::name(&mut heads, unnamed, &domains, context)).await?;
                }
                Heads::new(heads)
            }
        };
        bound.has_names = true;
        let ours = at.0 as f64 / 1e9;
        let skew = stamp.sec as f64 + f64::from(stamp.nsec) / 1e9 - ours;
        // A value that is no duration counts in the bucket without bound.
        let apart = Duration::try_from_secs_f64(skew.abs()).unwrap_or(Duration::MAX);
        shared.numbers.skew.observe(apart);
        let frame = Frame {
            target: Arc::clone(&orders.target),
            host_labels: bound.host_labels.clone(),
            slot,
            at,
            stamp,
            gaps: self.gaps,
            schema: Arc::clone(&bound.view.schema),
            columns: Columns::new(heads, lanes),
        };
        if too_many > 0 {
            tell_too_many(&frame, limit.most, &orders.group);
        }
        let count = frame.columns.heads().series_count();
        let (outlets, sinks) = (shared.outlets.borrow(), bound.view.sinks);
        for (event, sinks) in series.go_on(&frame, sinks) {
            outlets.offer(event, sinks);
        }
        if !sinks.is_empty() {
            outlets.offer(Event::Frame(frame), sinks);
        }
        let bytes = size_of::<Host<W>>() + bound.evaluator.bytes();
        Ok(HostAnswer { skew, kind: bound.view.kind, series: count, bytes })
    }
}

/// Reports metrics with too many instances, once for the hosts of a group.
fn tell_too_many(frame: &Frame, limit: usize, group: &PlannedGroup) {
    let statuses = frame.columns.heads().iter().map(|(status, _)| status);
    for (metric, status) in frame.schema.metrics.iter().zip(statuses) {
        if status == columns::TOO_MANY && group.told.is_new(&metric.name) {
            let (group, host, metric) = (&*group.name, &*frame.target.name, &*metric.name);
            tracing::warn!(
                group,
                host,
                metric,
                "it or a metric that it reads has more than {limit} instances, so it is neither \
                 exported nor in aggregates; \
                 `instances` of `[limits]` allows more"
            );
        }
    }
}
