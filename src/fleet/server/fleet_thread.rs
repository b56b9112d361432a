//! The thread that computes over the fleet. It gets the results of every host in a
//! slot. It passes the values of the fleet to sinks once the slot and its grace time are over.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::Engine;
use crate::escape;
use crate::fleet::aggregates::{Aggregates, MAX_GRACE};
use crate::fleet::frame::{Event, StaleReason};
use crate::fleet::log::ToldMistakes;
use crate::fleet::numbers::FleetNumbers;
use crate::fleet::plan::FleetPlan;
use crate::fleet::sinks::inlet::{Inlet, Message, Messages};
use crate::fleet::sinks::outlets::Outlets;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::targets::target::Target;
use crate::fleet::world::{Job, World};

/// A handle of the thread that computes over the fleet.
#[derive(Debug)]
pub struct FleetThread {
    inlet: Arc<Inlet>,
    job: Job,
}

impl FleetThread {
    /// Starts the thread with definitions over the fleet and its hosts.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start<W: World>(
        engine: Arc<Engine>,
        plan: &FleetPlan,
        targets: Vec<Arc<Target>>,
        outlets: Outlets,
    ) -> std::io::Result<FleetThread> {
        let numbers = Arc::<FleetNumbers>::default();
        let (inlet, messages) = Inlet::new(Arc::clone(&numbers));
        let plan = plan.clone();
        let work = move || Work::<W>::new(engine, plan, &targets, outlets, numbers).run(messages);
        let job = W::spawn("stage-two", work)?;
        Ok(FleetThread { inlet: Arc::new(inlet), job })
    }

    /// The inlet for hosts.
    pub fn inlet(&self) -> Arc<Inlet> {
        Arc::clone(&self.inlet)
    }

    /// A number that grows every second unless the thread is stuck.
    pub fn beat(&self) -> u64 {
        self.job.beat()
    }

    /// Bytes of its waiting messages, and of its state.
    pub fn bytes(&self) -> u64 {
        self.inlet.bytes() as u64 + self.numbers().kept_bytes.get()
    }

    /// The counts.
    pub fn numbers(&self) -> &FleetNumbers {
        self.inlet.numbers()
    }

    /// Changes to other definitions, hosts and sinks.
    pub fn follow(&self, plan: &FleetPlan, targets: Vec<Arc<Target>>, outlets: Outlets) {
        self.inlet.order(Message::Follow(Box::new(plan.clone()), targets, outlets));
    }

    /// Ends the thread, as there are no definitions over the fleet any more. All its series end.
    pub fn leave(self) {
        self.inlet.order(Message::Leave);
    }

    /// Ends the thread, and waits for it until the deadline. No series is marked stale.
    pub fn stop(self, deadline: Instant) {
        self.inlet.order(Message::End);
        self.job.join(deadline);
    }
}

/// The work of the thread.
struct Work<W: World> {
    plan: FleetPlan,
    aggregates: Aggregates,
    outlets: Outlets,
    numbers: Arc<FleetNumbers>,
    /// The slot that ends next.
    next: Slot,
    told: ToldMistakes,
    world: PhantomData<fn() -> W>,
}

impl<W: World> Work<W> {
    fn new(
        engine: Arc<Engine>,
        plan: FleetPlan,
        targets: &[Arc<Target>],
        outlets: Outlets,
        numbers: Arc<FleetNumbers>,
    ) -> Work<W> {
        let mut aggregates = aggregates(engine, &plan, targets);
        aggregates.evaluation.slowed = W::slowed;
        aggregates.evaluation.numbers = Arc::clone(&numbers);
        aggregates.collector.numbers = Arc::clone(&numbers);
        let next = first_slot(&plan, W::now());
        let world = PhantomData;
        Work { plan, aggregates, outlets, numbers, next, told: ToldMistakes::default(), world }
    }

    async fn run(mut self, mut messages: Messages) {
        loop {
            // Messages that are here by now came in time, however long this thread was held up.
            for _ in 0..messages.count() {
                let Some(message) = messages.take() else { break };
                if self.obey(message).is_break() {
                    return;
                }
            }
            let now = W::now();
            let due = self.plan.schedule.due(self.next);
            if due <= now {
                self.finish(now);
                continue;
            }
            // The clock may be set meanwhile. The loop notices that within a second.
            let patience = due.since(now).min(Duration::from_secs(1));
            let Ok(message) = tokio::time::timeout(patience, messages.next()).await else {
                continue;
            };
            let Some(message) = message else { return };
            if self.obey(message).is_break() {
                return;
            }
        }
    }

    /// Obeys a message; breaks if the thread must end.
    fn obey(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Event(event) => {
                if let Some(frame) = event.frame() {
                    self.aggregates.collector.frame(frame);
                }
            }
            Message::Failed(target, slot) => self.aggregates.collector.failed(&target, slot),
            Message::Missed(target, slot) => self.aggregates.collector.missed(&target, slot),
            Message::Follow(plan, targets, outlets) => self.follow(*plan, &targets, outlets),
            Message::Leave => {
                self.leave();
                return ControlFlow::Break(());
            }
            Message::End => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn finish(&mut self, now: Nanos) {
        let at = self.next.end(self.plan.schedule.interval);
        for event in self.aggregates.finish(self.next, at) {
            self.offer(event);
        }
        self.numbers.slots.add(1);
        // After a pause of the whole machine only slots that may be in their grace time count.
        let newest = self.plan.schedule.slot_of(now).0;
        self.next = Slot((self.next.0 + 1).max(newest.saturating_sub(MAX_GRACE.into())));
        self.numbers.kept_bytes.set(self.aggregates.collector.bytes() as u64);
        for warning in self.aggregates.take_warnings() {
            tracing::warn!("{}", escape::line_of(&warning));
        }
        let found = self.aggregates.evaluation.diagnostics().iter();
        for diagnostic in found.filter(|one| self.told.is_news(one)) {
            let definitions = &self.plan.definitions;
            let around = || definitions.around(diagnostic.span);
            let metric = diagnostic.metric.as_deref().or_else(around);
            let (place, code) = (self.plan.texts.place(diagnostic.span), diagnostic.code);
            let message = escape::line_of(&diagnostic.message);
            tracing::warn!(place, metric, %code, "{message}");
        }
    }

    fn follow(&mut self, plan: FleetPlan, targets: &[Arc<Target>], outlets: Outlets) {
        if self.plan.is_same(&plan) {
            self.aggregates.collector.set_targets(targets);
        } else {
            let definitions = Arc::clone(&plan.definitions);
            let sinks_of = |name: &str| plan.sinks_of(name);
            let has_other_slots = plan.schedule.interval != self.plan.schedule.interval;
            self.aggregates.follow(definitions, has_other_slots, &sinks_of, targets);
            self.aggregates.collector.set_operands(plan.operands.clone());
            if has_other_slots {
                self.next = first_slot(&plan, W::now());
            }
            self.told = ToldMistakes::default();
            self.plan = plan;
        }
        self.outlets = outlets;
    }

    fn leave(&mut self) {
        let ended =
            self.aggregates.evaluation.end(self.next, W::now(), StaleReason::DefinitionChanged);
        if let Some(event) = ended {
            self.offer(event);
        }
    }

    fn offer(&self, event: Event) {
        let sinks = event.schema().sinks();
        self.outlets.offer(event, sinks);
    }
}

fn aggregates(engine: Arc<Engine>, plan: &FleetPlan, targets: &[Arc<Target>]) -> Aggregates {
    let definitions = Arc::clone(&plan.definitions);
    let sinks_of = |name: &str| plan.sinks_of(name);
    let mut aggregates = Aggregates::new(engine, definitions, &sinks_of);
    aggregates.collector.set_operands(plan.operands.clone());
    aggregates.collector.set_targets(targets);
    aggregates
}

/// The first complete slot from a time on. In the present slot some hosts were due before the
/// start.
fn first_slot(plan: &FleetPlan, time: Nanos) -> Slot {
    Slot(plan.schedule.slot_of(time).0 + 1)
}
