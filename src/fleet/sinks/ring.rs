//! A ring: the events that wait for one sink, bounded in bytes. Adding an event never waits for
//! the sink. Without room the oldest events are dropped and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pmderive_runtime::locks::lock;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::held_bytes::HeldBytes;
use super::numbers::SinkNumbers;
use super::outlets::Outlet;
use crate::fleet::frame::Event;

/// The events that wait for one sink. A single task takes them out.
#[derive(Debug)]
pub struct Ring {
    numbers: Arc<SinkNumbers>,
    waiting: Mutex<Queue>,
    /// Signals a new event, or the closing of the ring.
    changed: Notify,
    /// The sink's deadline. Once it is set, the ring accepts no further events.
    deadline: watch::Sender<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Queue {
    limit: usize,
    events: VecDeque<Arc<Event>>,
    /// The bytes of all events.
    held: HeldBytes,
    is_closed: bool,
}

/// Result of taking an event out of a ring.
#[derive(Debug)]
pub enum Popped {
    /// The oldest event.
    Event(Arc<Event>),
    /// There was no event in the given time.
    Nothing,
    /// There is no event and there will be none: the sink must end.
    Closed,
}

impl Ring {
    /// A ring for events of this many bytes, their instances included.
    pub fn new(limit: usize, numbers: Arc<SinkNumbers>) -> Ring {
        let (deadline, _) = watch::channel(None);
        let ring = Ring { numbers, waiting: Mutex::default(), changed: Notify::new(), deadline };
        ring.resize(limit);
        ring
    }

    /// Changes the limit in bytes. Without room, the oldest events are dropped.
    pub fn resize(&self, limit: usize) {
        let mut waiting = self.lock();
        waiting.limit = limit;
        self.numbers.ring_limit.set(limit as u64);
        self.make_room(&mut waiting);
        self.tell(&waiting);
    }

    /// Drops the oldest events until the others have room.
    fn make_room(&self, waiting: &mut Queue) {
        while waiting.held.bytes() > waiting.limit {
            let Some(oldest) = waiting.events.pop_front() else { break };
            waiting.held.remove(&oldest);
            self.numbers.dropped_overflow.add(1);
        }
    }

    /// Takes the oldest event out, and waits at most this long for one.
    pub async fn pop(&self, patience: Duration) -> Popped {
        let until = Instant::now().checked_add(patience);
        loop {
            let deadline = self.deadline();
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Popped::Closed;
            }
            if let Some(event) = self.take() {
                return Popped::Event(event);
            }
            if deadline.is_some() {
                return Popped::Closed;
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Popped::Nothing;
            }
            let patience = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    // A wait of centuries needs no end.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = patience => {}
            }
        }
    }

    fn take(&self) -> Option<Arc<Event>> {
        let mut waiting = self.lock();
        let event = waiting.events.pop_front()?;
        waiting.held.remove(&event);
        self.tell(&waiting);
        Some(event)
    }

    /// Closes the ring. It accepts no further events; the sink can take the others out until the
    /// deadline. A second call changes the deadline.
    pub fn close(&self, deadline: Instant) {
        self.lock().is_closed = true;
        self.deadline.send_replace(Some(deadline));
        self.changed.notify_one();
    }

    /// The sink's deadline, once it must end.
    pub fn deadline(&self) -> Option<Instant> {
        *self.deadline.borrow()
    }

    /// Waits, but not beyond the closing of the ring.
    pub async fn sleep(&self, time: Duration) {
        let mut closing = self.deadline.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(Option::is_some) => {}
            () = sleep(time) => {}
        }
    }

    /// Ready once the deadline of a closed ring has passed.
    pub async fn past_deadline(&self) {
        let mut changes = self.deadline.subscribe();
        loop {
            let deadline = *changes.borrow_and_update();
            let Some(deadline) = deadline else {
                // The ring itself holds the sender.
                let _ = changes.changed().await;
                continue;
            };
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return,
                _ = changes.changed() => {}
            }
        }
    }

    /// Counts the remaining events as dropped, once the sink has ended.
    pub fn abandon(&self) {
        let mut waiting = self.lock();
        self.numbers.dropped_closed.add(waiting.events.len() as u64);
        waiting.events.clear();
        waiting.held = HeldBytes::default();
        self.tell(&waiting);
    }

    fn tell(&self, waiting: &Queue) {
        self.numbers.ring_bytes.set(waiting.held.bytes() as u64);
        self.numbers.ring_events.set(waiting.events.len() as u64);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic leaves the queue consistent.
        lock(&self.waiting)
    }
}

impl Outlet for Ring {
    /// Adds an event without waiting for the sink. Without room, the oldest events are dropped.
    /// The event itself is dropped if it is larger than the ring, or if the ring is closed.
    fn push(&self, event: &Arc<Event>) {
        let mut waiting = self.lock();
        self.numbers.events.add(1);
        if waiting.is_closed {
            self.numbers.dropped_closed.add(1);
            return;
        }
        waiting.held.add(event);
        if waiting.held.bytes() > waiting.limit && event.bytes_with_parts() > waiting.limit {
            waiting.held.remove(event);
            self.numbers.dropped_overflow.add(1);
            return;
        }
        self.make_room(&mut waiting);
        waiting.events.push_back(Arc::clone(event));
        self.tell(&waiting);
        drop(waiting);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sinks::samples;

    const SOON: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(3600);

    fn ring(limit: usize) -> (Ring, Arc<SinkNumbers>) {
        let numbers = Arc::new(SinkNumbers::default());
        (Ring::new(limit, Arc::clone(&numbers)), numbers)
    }

    fn slot(popped: Popped) -> Option<u64> {
        match popped {
            Popped::Event(event) => Some(samples::slot_of(&event)),
            Popped::Nothing | Popped::Closed => None,
        }
    }

    #[tokio::test]
    async fn the_oldest_go_and_are_counted() {
        let events: Vec<_> = (0..5).map(samples::frame_of_slot).collect();
        let one = events[0].bytes_with_parts();
        let (ring, numbers) = ring(3 * one + one / 2);
        events.iter().for_each(|event| ring.push(event));
        assert_eq!((numbers.events.get(), numbers.dropped_overflow.get()), (5, 2));
        assert_eq!((numbers.ring_events.get(), numbers.ring_bytes.get()), (3, 3 * one as u64));
        for expected in [Some(2), Some(3), Some(4), None] {
            assert_eq!(slot(ring.pop(SOON).await), expected);
        }
        assert_eq!(numbers.ring_bytes.get(), 0);
    }

    #[tokio::test]
    async fn a_ring_that_becomes_smaller_keeps_the_newest() {
        let events: Vec<_> = (0..5).map(samples::frame_of_slot).collect();
        let one = events[0].bytes_with_parts();
        let (ring, numbers) = ring(5 * one);
        events.iter().for_each(|event| ring.push(event));
        ring.resize(2 * one);
        assert_eq!((numbers.dropped_overflow.get(), numbers.ring_events.get()), (3, 2));
        assert_eq!(numbers.ring_limit.get(), 2 * one as u64);
        assert_eq!(slot(ring.pop(SOON).await), Some(3));
    }

    #[tokio::test]
    async fn parts_count_as_long_as_an_event_has_them() {
        let all: Vec<_> =
            (0..4).map(|_| samples::named(&["a", "a long name".repeat(9).as_str()])).collect();
        let mut events: Vec<_> = all.iter().map(|one| samples::frame_of(0, one)).collect();
        let (own, whole) = (events[0].bytes(), events[0].bytes_with_parts());
        // The bytes of the event without its instances.
        let apart = whole - all[0].bytes();
        // If each frame has instances of its own, there is room for two.
        let (ring, numbers) = ring(2 * whole + apart);
        events.iter().for_each(|event| ring.push(event));
        assert_eq!((numbers.ring_events.get(), numbers.ring_bytes.get()), (2, 2 * whole as u64));
        while slot(ring.pop(SOON).await).is_some() {}
        assert_eq!(numbers.ring_bytes.get(), 0);
        // If frames share them, they count once.
        events = (1..4).map(|slot| samples::frame_of(slot, &all[0])).collect();
        events.iter().for_each(|event| ring.push(event));
        let bytes = (whole + 2 * apart) as u64;
        assert_eq!((numbers.ring_events.get(), numbers.ring_bytes.get()), (3, bytes));
        assert_eq!(slot(ring.pop(SOON).await), Some(1));
        assert_eq!(numbers.ring_bytes.get(), (whole + apart) as u64);
        while slot(ring.pop(SOON).await).is_some() {}
        // Frames that differ only in values share all parts but these.
        (0..2).for_each(|_| ring.push(&Arc::new(Event::clone(&events[0]))));
        assert!(own < apart);
        assert_eq!(numbers.ring_bytes.get(), (whole + own) as u64);
    }

    #[tokio::test]
    async fn what_is_larger_than_the_ring_goes_alone() {
        let event = samples::frame_of_slot(0);
        let (ring, numbers) = ring(event.bytes_with_parts());
        ring.push(&event);
        ring.push(&samples::frame_of(0, &samples::named(&[""; 100])));
        assert_eq!(numbers.dropped_overflow.get(), 1);
        assert_eq!(slot(ring.pop(SOON).await), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_ring_is_drained_until_its_deadline() {
        let (ring, numbers) = ring(1 << 20);
        (0..3).for_each(|slot| ring.push(&samples::frame_of_slot(slot)));
        ring.close(Instant::now() + LONG);
        ring.push(&samples::frame_of_slot(3));
        assert_eq!(numbers.dropped_closed.get(), 1);
        assert_eq!(slot(ring.pop(SOON).await), Some(0));
        // No one waits for events that will not come.
        let before = Instant::now();
        ring.sleep(LONG).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        ring.close(Instant::now());
        assert!(matches!(ring.pop(SOON).await, Popped::Closed));
        ring.abandon();
        assert_eq!((numbers.dropped_closed.get(), numbers.ring_bytes.get()), (3, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn patience_has_an_end() {
        let (ring, _) = ring(1 << 20);
        let before = Instant::now();
        assert!(matches!(ring.pop(LONG).await, Popped::Nothing));
        assert_eq!(before.elapsed(), LONG);
        ring.sleep(LONG).await;
        assert_eq!(before.elapsed(), LONG * 2);
    }

    #[test]
    fn whoever_waits_gets_what_comes_from_elsewhere() {
        let (ring, _) = ring(1 << 20);
        let pop = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.expect("a runtime").block_on(ring.pop(Duration::MAX))
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slot(pop()));
            ring.push(&samples::frame_of_slot(7));
            assert_eq!(waiting.join().expect("no panic"), Some(7));
            let waiting = scope.spawn(pop);
            ring.close(Instant::now() + LONG);
            assert!(matches!(waiting.join().expect("no panic"), Popped::Closed));
        });
    }

    #[tokio::test]
    async fn futures_see_the_deadline_move() {
        let (ring, _) = ring(1 << 20);
        ring.close(Instant::now() + LONG);
        let waiting = std::pin::pin!(ring.past_deadline());
        let closing = async {
            tokio::task::yield_now().await;
            ring.close(Instant::now());
        };
        tokio::join!(waiting, closing);
    }
}
