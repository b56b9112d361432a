//! The inlet of the thread that computes over the fleet: messages of hosts, within a number of
//! bytes, and orders of the server.

use std::sync::{Arc, Mutex};

use pmderive_runtime::locks::lock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::held_bytes::HeldBytes;
use super::outlets::Outlets;
use crate::fleet::frame::Event;
use crate::fleet::numbers::FleetNumbers;
use crate::fleet::plan::FleetPlan;
use crate::fleet::slot::Slot;
use crate::fleet::targets::target::Target;

/// Bytes of messages that wait at most. A slot of the largest fleet fits in. Beyond that,
/// frames are dropped and counted.
const MOST_WAITING: usize = 256 << 20;

/// The inlet of the thread, for hosts and the server.
#[derive(Debug)]
pub struct Inlet {
    sender: UnboundedSender<Message>,
    /// The bounded bytes of waiting messages of hosts.
    waiting: Arc<Mutex<HeldBytes>>,
    numbers: Arc<FleetNumbers>,
}

/// The waiting messages, for the thread.
#[derive(Debug)]
pub struct Messages {
    receiver: UnboundedReceiver<Message>,
    waiting: Arc<Mutex<HeldBytes>>,
}

/// A message for the thread.
#[derive(Debug)]
pub enum Message {
    /// An event of a host.
    Event(Arc<Event>),
    /// A host gave no correct answer before the deadline of a slot.
    Failed(Arc<Target>, Slot),
    /// A slot of a host was never begun.
    Missed(Arc<Target>, Slot),
    /// There are other definitions, hosts and sinks.
    Follow(Box<FleetPlan>, Vec<Arc<Target>>, Outlets),
    /// There are no definitions any more.
    Leave,
    /// The thread must end.
    End,
}

impl Inlet {
    /// An inlet, and its messages.
    pub fn new(numbers: Arc<FleetNumbers>) -> (Inlet, Messages) {
        let (sender, receiver) = unbounded_channel();
        let waiting = Arc::<Mutex<HeldBytes>>::default();
        let messages = Messages { receiver, waiting: Arc::clone(&waiting) };
        (Inlet { sender, waiting, numbers }, messages)
    }

    /// The counts of the thread.
    pub fn numbers(&self) -> &FleetNumbers {
        &self.numbers
    }

    /// Bytes of waiting messages.
    pub fn bytes(&self) -> usize {
        lock(&self.waiting).bytes()
    }

    /// Passes on a message of the server, for which there is always room.
    pub fn order(&self, message: Message) {
        // A thread that is gone needs no messages.
        let _ = self.sender.send(message);
    }

    /// Passes on a message of a host, if there is room for it.
    pub fn tell(&self, message: Message) {
        let mut held = lock(&self.waiting);
        held.add_bytes(size_of::<Message>());
        if let Message::Event(event) = &message {
            held.add(event);
        }
        let is_full = held.bytes() > MOST_WAITING;
        drop(held);
        if is_full {
            came_out(&self.waiting, &message);
            self.numbers.overflow.add(1);
        } else {
            self.order(message);
        }
    }
}

impl Messages {
    /// The number of waiting messages.
    pub fn count(&self) -> usize {
        self.receiver.len()
    }

    /// Takes the oldest message out, if there is one.
    pub fn take(&mut self) -> Option<Message> {
        let message = self.receiver.try_recv().ok()?;
        came_out(&self.waiting, &message);
        Some(message)
    }

    /// Waits for the next message. `None` if the inlet is gone.
    pub async fn next(&mut self) -> Option<Message> {
        let message = self.receiver.recv().await?;
        came_out(&self.waiting, &message);
        Some(message)
    }
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
