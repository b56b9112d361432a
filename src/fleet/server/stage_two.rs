//! Computes across hosts: a thread that hears what every host did in a slot, and
//! hands the values of the fleet to sinks once the slot and its grace are over.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::Engine;
use crate::fleet::aggregates::Aggregates;
use crate::fleet::counting::Number;
use crate::fleet::frame::{Event, StaleReason};
use crate::fleet::outlets::{Across, Outlet, Outlets};
use crate::fleet::plan::StageTwo;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::target::Target;
use crate::fleet::world::{Job, World};

/// Messages that wait at most. Beyond that frames are dropped, and counted: a slot of
/// the largest fleet fits in.
const MOST_WAITING: usize = 200_000;

/// What computes across hosts.
#[derive(Debug)]
pub struct Computing {
    inlet: Arc<Inlet>,
    job: Job,
}

/// What hosts and the server talk to.
#[derive(Debug)]
pub struct Inlet {
    sender: UnboundedSender<Message>,
    /// Messages of hosts that wait.
    waiting: Arc<AtomicUsize>,
    numbers: Arc<Numbers>,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Slots that were computed.
    pub slots: Number,
    /// Frames that came after their slot's grace.
    pub late: Number,
    /// Frames of hosts that are no targets any more.
    pub unexpected: Number,
    /// Frames for which there was no room.
    pub overflow: Number,
    /// Aggregates without a value, as there were too many values or a sum was too large.
    pub refused: Number,
}

#[derive(Debug)]
enum Message {
    Event(Arc<Event>),
    Failed(Arc<Target>, Slot),
    Missed(Arc<Target>, Slot),
    Follow(Box<StageTwo>, Vec<Arc<Target>>, Outlets),
    End,
}

impl Computing {
    /// Begins with definitions over the fleet and its hosts.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start<W: World>(
        engine: Arc<Engine>,
        plan: &StageTwo,
        targets: Vec<Arc<Target>>,
        outlets: Outlets,
    ) -> std::io::Result<Computing> {
        let (sender, receiver) = unbounded_channel();
        let (numbers, waiting) = (Arc::<Numbers>::default(), Arc::<AtomicUsize>::default());
        let inlet = Inlet { sender, waiting: Arc::clone(&waiting), numbers: Arc::clone(&numbers) };
        let plan = plan.clone();
        let work =
            move || Work::<W>::new(engine, plan, &targets, outlets, numbers).run(receiver, waiting);
        let job = W::spawn("stage-two", work)?;
        Ok(Computing { inlet: Arc::new(inlet), job })
    }

    /// Where hosts tell what they did.
    pub fn across(&self) -> Arc<dyn Across> {
        Arc::clone(&self.inlet) as Arc<dyn Across>
    }

    /// What was counted.
    pub fn numbers(&self) -> &Numbers {
        &self.inlet.numbers
    }

    /// Goes over to other definitions, hosts and sinks.
    pub fn follow(&self, plan: &StageTwo, targets: Vec<Arc<Target>>, outlets: Outlets) {
        // A thread that is gone has nothing to follow.
        let _ = self.inlet.sender.send(Message::Follow(Box::new(plan.clone()), targets, outlets));
    }

    /// Ends it. No series is marked stale.
    pub fn stop(self) {
        let _ = self.inlet.sender.send(Message::End);
        self.job.join();
    }
}

impl Inlet {
    fn tell(&self, message: Message) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.numbers.overflow.add(1);
            return;
        }
        // A thread that is gone has nothing to hear.
        let _ = self.sender.send(message);
    }
}

impl Outlet for Inlet {
    fn push(&self, event: Arc<Event>) {
        self.tell(Message::Event(event));
    }
}

impl Across for Inlet {
    fn failed(&self, target: &Arc<Target>, slot: Slot) {
        self.tell(Message::Failed(Arc::clone(target), slot));
    }

    fn missed(&self, target: &Arc<Target>, slot: Slot) {
        self.tell(Message::Missed(Arc::clone(target), slot));
    }
}

/// What computes.
struct Work<W: World> {
    engine: Arc<Engine>,
    plan: StageTwo,
    aggregates: Aggregates,
    outlets: Outlets,
    numbers: Arc<Numbers>,
    /// The slot that ends next.
    next: Slot,
    /// How many diagnostics were told.
    told: usize,
    world: PhantomData<fn() -> W>,
}

impl<W: World> Work<W> {
    fn new(
        engine: Arc<Engine>,
        plan: StageTwo,
        targets: &[Arc<Target>],
        outlets: Outlets,
        numbers: Arc<Numbers>,
    ) -> Work<W> {
        let aggregates = aggregates(&engine, &plan, targets);
        let next = slot_of(&plan, W::now());
        let world = PhantomData;
        Work { engine, plan, aggregates, outlets, numbers, next, told: 0, world }
    }

    async fn run(mut self, mut messages: UnboundedReceiver<Message>, waiting: Arc<AtomicUsize>) {
        loop {
            let now = W::now();
            let due = self.aggregates.due(self.next);
            if due <= now {
                self.finish(now);
                continue;
            }
            // The clock may be set meanwhile, which is noticed within a second.
            let patience = due.since(now).min(Duration::from_secs(1));
            let Ok(message) = tokio::time::timeout(patience, messages.recv()).await else {
                let now = slot_of(&self.plan, W::now());
                if now.0 + 1 < self.next.0 {
                    self.aggregates.set_clock_back();
                    self.next = now;
                }
                continue;
            };
            if matches!(
                message,
                Some(Message::Event(_) | Message::Failed(..) | Message::Missed(..))
            ) {
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
            match message {
                Some(Message::Event(event)) => {
                    if let Event::Frame(frame) = &*event {
                        self.aggregates.frame(frame);
                    }
                }
                Some(Message::Failed(target, slot)) => self.aggregates.failed(&target, slot),
                Some(Message::Missed(target, slot)) => self.aggregates.missed(&target, slot),
                Some(Message::Follow(plan, targets, outlets)) => {
                    self.follow(*plan, &targets, outlets);
                }
                Some(Message::End) | None => return,
            }
        }
    }

    fn finish(&mut self, now: Nanos) {
        for event in self.aggregates.finish(self.next) {
            self.offer(event);
        }
        self.numbers.slots.add(1);
        // After a pause of the whole machine only the latest slots count.
        let newest = slot_of(&self.plan, now).0;
        self.next = Slot((self.next.0 + 1).max(newest.saturating_sub(2)));
        let (dropped, refused) = (self.aggregates.dropped(), self.aggregates.refused());
        self.numbers.late.raise_to(dropped.late);
        self.numbers.unexpected.raise_to(dropped.unexpected);
        self.numbers.refused.raise_to(refused.overflows + refused.too_many_values);
        for warning in self.aggregates.take_warnings() {
            tracing::warn!("{warning}");
        }
        let found = self.aggregates.diagnostics();
        for diagnostic in found.iter().skip(self.told) {
            let metric = diagnostic.metric.as_deref().unwrap_or("?");
            tracing::warn!(metric, code = %diagnostic.code, "{}", diagnostic.message);
        }
        self.told = found.len();
    }

    fn follow(&mut self, plan: StageTwo, targets: &[Arc<Target>], outlets: Outlets) {
        if self.plan.is_same(&plan) {
            self.aggregates.set_targets(targets);
        } else {
            let now = W::now();
            if let Some(event) = self.aggregates.end(self.next, now, StaleReason::DefinitionChanged)
            {
                self.offer(event);
            }
            self.aggregates = aggregates(&self.engine, &plan, targets);
            self.next = slot_of(&plan, now);
            self.told = 0;
            self.plan = plan;
        }
        self.outlets = outlets;
    }

    fn offer(&self, event: Event) {
        let metrics = event.schema().metrics.iter();
        let sinks = metrics.fold(0, |sinks, metric| sinks | metric.sinks);
        self.outlets.offer(event, sinks);
    }
}

fn aggregates(engine: &Arc<Engine>, plan: &StageTwo, targets: &[Arc<Target>]) -> Aggregates {
    let definitions = Arc::clone(&plan.definitions);
    let sinks_of = |name: &str| plan.sinks_of(name);
    let mut aggregates = Aggregates::new(Arc::clone(engine), definitions, plan.schedule, &sinks_of);
    aggregates.set_targets(targets);
    aggregates
}

/// The slot that a time is in.
fn slot_of(plan: &StageTwo, time: Nanos) -> Slot {
    crate::fleet::slot::Due::new(plan.schedule.interval, 0).slot_of(time)
}
