//! The thread that computes across hosts (stage two). It gets the results of every host in a
//! slot. It passes the values of the fleet to sinks once the slot and its grace time are over.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive_runtime::locks::lock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::escape;
use crate::fleet::aggregates::{Aggregates, MAX_GRACE};
use crate::fleet::counting::Number;
use crate::fleet::frame::{Event, StaleReason};
use crate::fleet::log::ToldMistakes;
use crate::fleet::plan::StageTwo;
use crate::fleet::sinks::held_bytes::HeldBytes;
use crate::fleet::sinks::outlets::{Across, Outlet, Outlets};
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::targets::target::Target;
use crate::fleet::world::{Job, World};

/// Bytes of messages that wait at most. A slot of the largest fleet fits in. Beyond that,
/// frames are dropped and counted.
const MOST_WAITING: usize = 256 << 20;

/// A handle of the thread that computes across hosts.
#[derive(Debug)]
pub struct StageTwoThread {
    inlet: Arc<Inlet>,
    job: Job,
}

/// The inlet of the thread, for hosts and the server.
#[derive(Debug)]
pub struct Inlet {
    sender: UnboundedSender<Message>,
    /// The bounded bytes of waiting frames.
    waiting: Arc<Mutex<HeldBytes>>,
    numbers: Arc<Numbers>,
}

/// Counts of stage two.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Slots that were computed.
    pub slots: Number,
    /// Frames that came after their slot's grace time, or whose slot was skipped.
    pub late: Number,
    /// Frames of hosts that are no longer targets.
    pub unexpected: Number,
    /// Frames for which there was no room.
    pub overflow: Number,
    /// Aggregates without a value: too many values for a quantile, or a sum that overflowed.
    pub refused: Number,
    /// Bytes of hosts' values that are kept for slots.
    pub kept_bytes: Number,
}

#[derive(Debug)]
enum Message {
    Event(Arc<Event>),
    Failed(Arc<Target>, Slot),
    Missed(Arc<Target>, Slot),
    Follow(Box<StageTwo>, Vec<Arc<Target>>, Outlets),
    /// There are no definitions any more.
    Leave,
    End,
}

impl StageTwoThread {
    /// Starts the thread with definitions over the fleet and its hosts.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start<W: World>(
        engine: Arc<Engine>,
        plan: &StageTwo,
        targets: Vec<Arc<Target>>,
        outlets: Outlets,
    ) -> std::io::Result<StageTwoThread> {
        let (sender, receiver) = unbounded_channel();
        let (numbers, waiting) = (Arc::<Numbers>::default(), Arc::<Mutex<HeldBytes>>::default());
        let inlet = Inlet { sender, waiting: Arc::clone(&waiting), numbers: Arc::clone(&numbers) };
        let plan = plan.clone();
        let work =
            move || Work::<W>::new(engine, plan, &targets, outlets, numbers).run(receiver, waiting);
        let job = W::spawn("stage-two", work)?;
        Ok(StageTwoThread { inlet: Arc::new(inlet), job })
    }

    /// The inlet for hosts.
    pub fn across(&self) -> Arc<dyn Across> {
        Arc::clone(&self.inlet) as Arc<dyn Across>
    }

    /// A number that grows every second unless the thread is stuck.
    pub fn beat(&self) -> u64 {
        self.job.beat()
    }

    /// Bytes of its waiting messages, and of its state.
    pub fn bytes(&self) -> u64 {
        lock(&self.inlet.waiting).bytes() as u64 + self.numbers().kept_bytes.get()
    }

    /// The counts.
    pub fn numbers(&self) -> &Numbers {
        &self.inlet.numbers
    }

    /// Changes to other definitions, hosts and sinks.
    pub fn follow(&self, plan: &StageTwo, targets: Vec<Arc<Target>>, outlets: Outlets) {
        // A thread that is gone needs no plan.
        let _ = self.inlet.sender.send(Message::Follow(Box::new(plan.clone()), targets, outlets));
    }

    /// Ends the thread, as there are no definitions across hosts any more. All its series end.
    pub fn leave(self) {
        // A thread that is gone has no series.
        let _ = self.inlet.sender.send(Message::Leave);
    }

    /// Ends the thread, and waits for it until the deadline. No series is marked stale.
    pub fn stop(self, deadline: Instant) {
        let _ = self.inlet.sender.send(Message::End);
        self.job.join(deadline);
    }
}

impl Inlet {
    fn tell(&self, message: Message) {
        if !has_room_for(&self.waiting, &message) {
            self.numbers.overflow.add(1);
            return;
        }
        // A thread that is gone needs no messages.
        let _ = self.sender.send(message);
    }
}

/// Counts a message as waiting. Returns false if there is no room for it.
fn has_room_for(waiting: &Mutex<HeldBytes>, message: &Message) -> bool {
    let mut held = lock(waiting);
    held.add_bytes(size_of::<Message>());
    if let Message::Event(event) = message {
        held.add(event);
    }
    let is_full = held.bytes() > MOST_WAITING;
    drop(held);
    if is_full {
        came_out(waiting, message);
    }
    !is_full
}

/// Counts a message as no longer waiting. Messages of the server are not counted.
fn came_out(waiting: &Mutex<HeldBytes>, message: &Message) {
    let mut held = lock(waiting);
    match message {
        Message::Event(event) => held.remove(event),
        Message::Failed(..) | Message::Missed(..) => {}
        Message::Follow(..) | Message::Leave | Message::End => return,
    }
    held.remove_bytes(size_of::<Message>());
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

/// The work of the thread.
struct Work<W: World> {
    plan: StageTwo,
    aggregates: Aggregates,
    outlets: Outlets,
    numbers: Arc<Numbers>,
    /// The slot that ends next.
    next: Slot,
    told: ToldMistakes,
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
        let mut aggregates = aggregates(engine, &plan, targets);
        aggregates.evaluation.slowed = W::slowed;
        let next = first_slot(&plan, W::now());
        let world = PhantomData;
        Work { plan, aggregates, outlets, numbers, next, told: ToldMistakes::default(), world }
    }

    async fn run(
        mut self,
        mut messages: UnboundedReceiver<Message>,
        waiting: Arc<Mutex<HeldBytes>>,
    ) {
        loop {
            // Messages that are here by now came in time, however long this thread was held up.
            for _ in 0..messages.len() {
                let Ok(message) = messages.try_recv() else { break };
                came_out(&waiting, &message);
                if self.obey(message).is_break() {
                    return;
                }
            }
            let now = W::now();
            let due = self.aggregates.due(self.next);
            if due <= now {
                self.finish(now);
                continue;
            }
            // The clock may be set meanwhile. The loop notices that within a second.
            let patience = due.since(now).min(Duration::from_secs(1));
            let Ok(message) = tokio::time::timeout(patience, messages.recv()).await else {
                continue;
            };
            let Some(message) = message else { return };
            came_out(&waiting, &message);
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
        for event in self.aggregates.finish(self.next) {
            self.offer(event);
        }
        self.numbers.slots.add(1);
        // After a pause of the whole machine only slots that may be in their grace time count.
        let newest = slot_of(&self.plan, now).0;
        self.next = Slot((self.next.0 + 1).max(newest.saturating_sub(MAX_GRACE.into())));
        self.numbers.kept_bytes.set(self.aggregates.collector.bytes() as u64);
        let (dropped, refused) =
            (self.aggregates.collector.dropped(), self.aggregates.evaluation.refused());
        self.numbers.late.set(dropped.late);
        self.numbers.unexpected.set(dropped.unexpected);
        self.numbers.refused.set(refused.overflows + refused.too_many_values);
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

    fn follow(&mut self, plan: StageTwo, targets: &[Arc<Target>], outlets: Outlets) {
        if self.plan.is_same(&plan) {
            self.aggregates.collector.set_targets(targets);
        } else {
            let definitions = Arc::clone(&plan.definitions);
            let sinks_of = |name: &str| plan.sinks_of(name);
            self.aggregates.follow(definitions, plan.schedule, &sinks_of, targets);
            self.aggregates.collector.set_operands(plan.operands.clone());
            if plan.schedule.interval != self.plan.schedule.interval {
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

fn aggregates(engine: Arc<Engine>, plan: &StageTwo, targets: &[Arc<Target>]) -> Aggregates {
    let definitions = Arc::clone(&plan.definitions);
    let sinks_of = |name: &str| plan.sinks_of(name);
    let mut aggregates = Aggregates::new(engine, definitions, plan.schedule, &sinks_of);
    aggregates.collector.set_operands(plan.operands.clone());
    aggregates.collector.set_targets(targets);
    aggregates
}

/// The first complete slot from a time on. In the present slot some hosts were due before the
/// start.
fn first_slot(plan: &StageTwo, time: Nanos) -> Slot {
    Slot(slot_of(plan, time).0 + 1)
}

/// The slot of a time.
fn slot_of(plan: &StageTwo, time: Nanos) -> Slot {
    crate::fleet::slot::Due::new(plan.schedule.interval, 0).slot_of(time)
}
