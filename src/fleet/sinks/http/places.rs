//! Limits the number of connections. When all places are taken, the next connection gets the
//! place of the one that was still for the longest time. So clients that keep connections open,
//! or do not read, do not keep others out.
//!
//! Answers that anybody may get are no movement: otherwise a client without the token could keep
//! all places. If all connections have moved, the oldest of those between requests gives way, or
//! else the oldest of those that read slowly.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pmderive_runtime::locks::lock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A connection that moved within this time keeps its place.
const STILL: Duration = Duration::from_millis(250);

/// The places of all connections.
pub struct Places {
    free: Arc<Semaphore>,
    began: Instant,
    taken: Mutex<Vec<Weak<Shared>>>,
}

/// The place of one connection, until it is dropped.
pub struct Place {
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

/// State that a connection shares with its place.
struct Shared {
    began: Instant,
    /// Milliseconds from `began` to the last movement.
    moved: AtomicU64,
    /// True while its request is answered: the client is then not the cause of stillness.
    is_answered: AtomicBool,
    /// True if written bytes are movement.
    counts: AtomicBool,
    /// Answers of which bytes are unsent.
    unsent: AtomicUsize,
    is_asked: AtomicBool,
    asked: Notify,
}

impl Places {
    /// Places for this many connections, all free.
    pub fn new(most: usize) -> Places {
        let (free, taken) = (Arc::new(Semaphore::new(most)), Mutex::default());
        Places { free, began: Instant::now(), taken }
    }

    /// Waits for a free place. The future may be dropped, and the call repeated.
    pub async fn take(&self) -> Place {
        let mut has_waited = false;
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                break permit;
            }
            self.ask_one(has_waited);
            has_waited = true;
            let next = Arc::clone(&self.free).acquire_owned();
            // The semaphore is never closed, so waiting is all that can happen.
            if let Ok(Ok(permit)) = tokio::time::timeout(STILL, next).await {
                break permit;
            }
        };
        let shared = Arc::new(Shared {
            began: self.began,
            moved: AtomicU64::new(0),
            is_answered: AtomicBool::new(false),
            counts: AtomicBool::new(true),
            unsent: AtomicUsize::new(0),
            is_asked: AtomicBool::new(false),
            asked: Notify::new(),
        });
        shared.moves();
        let mut taken = lock(&self.taken);
        taken.retain(|one| one.strong_count() > 0);
        taken.push(Arc::downgrade(&shared));
        Place { shared, _permit: permit }
    }

    /// Asks the connection that was still for the longest time to give way, unless one that was
    /// asked is still there. If all have moved and it `must`, it asks the oldest of those between
    /// requests, or else the oldest of those that read slowly.
    fn ask_one(&self, must: bool) {
        self.ask(|all| {
            // Places are in the order in which they were taken.
            let oldest = || all.iter().find(|one| !one.has_unsent()).or(all.first());
            stillest(all.iter()).or_else(|| oldest().filter(|_| must))
        });
    }

    /// Asks the one that is still for the longest time among the connections whose clients do not
    /// read their answers.
    pub fn ask_slowest(&self) {
        self.ask(|all| stillest(all.iter().filter(|one| one.has_unsent())));
    }

    /// Asks the chosen one of the connections whose requests are not being answered.
    fn ask(&self, choose: impl FnOnce(&[Arc<Shared>]) -> Option<&Arc<Shared>>) {
        let taken = lock(&self.taken);
        let mut all: Vec<Arc<Shared>> = taken.iter().filter_map(Weak::upgrade).collect();
        if all.iter().any(|one| one.is_asked.load(Ordering::Relaxed)) {
            return;
        }
        all.retain(|one| !one.is_answered.load(Ordering::Relaxed));
        if let Some(one) = choose(&all) {
            one.is_asked.store(true, Ordering::Relaxed);
            one.asked.notify_one();
        }
    }
}

/// The one that is still for the longest time, unless all have moved.
fn stillest<'s>(all: impl Iterator<Item = &'s Arc<Shared>>) -> Option<&'s Arc<Shared>> {
    all.max_by_key(|one| one.stillness()).filter(|one| one.stillness() >= STILL)
}

impl Place {
    /// Ready once the connection must give way.
    pub async fn is_wanted(&self) {
        self.shared.asked.notified().await;
    }

    /// Notes that a handshake is over. From now on only bytes of answers are movement.
    pub fn has_shaken_hands(&self) {
        self.shared.counts.store(false, Ordering::Relaxed);
    }

    /// Notes that a request is being answered.
    pub fn begins_answer(&self) {
        self.shared.is_answered.store(true, Ordering::Relaxed);
    }

    /// Notes that an answer is there, and whether it `counts` as movement. Its bytes are unsent
    /// until the result is dropped.
    pub fn has_answer(&self, counts: bool) -> Unsent {
        self.shared.unsent.fetch_add(1, Ordering::Relaxed);
        self.shared.counts.store(counts, Ordering::Relaxed);
        self.shared.moves();
        self.shared.is_answered.store(false, Ordering::Relaxed);
        Unsent(Arc::clone(&self.shared))
    }

    /// A stream whose written bytes count as movement of this connection.
    pub fn watched<S>(&self, stream: S) -> WatchedStream<S> {
        WatchedStream { stream, shared: Arc::clone(&self.shared) }
    }
}

/// An answer of which bytes are unsent, until it is dropped.
pub struct Unsent(Arc<Shared>);

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.unsent.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn moves(&self) {
        if !self.counts.load(Ordering::Relaxed) {
            return;
        }
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(since, Ordering::Relaxed);
    }

    fn has_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) > 0
    }

    fn stillness(&self) -> Duration {
        self.began
            .elapsed()
            .saturating_sub(Duration::from_millis(self.moved.load(Ordering::Relaxed)))
    }
}

/// A stream that notes when bytes are written.
pub struct WatchedStream<S> {
    stream: S,
    shared: Arc<Shared>,
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Incoming bytes of an incomplete request are no movement. Otherwise a client that
        // sends a byte now and then would keep others out.
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.shared.moves();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, parts));
        self.shared.moves();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, timeout};

    /// True if the connection was asked to give way.
    async fn is_asked(place: &Place) -> bool {
        timeout(Duration::from_millis(1), place.is_wanted()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_stillest_gives_its_place_to_the_next() {
        let places = Places::new(3);
        let (answered, second, third) =
            (places.take().await, places.take().await, places.take().await);
        answered.begins_answer();
        advance(STILL).await;
        drop(third.has_answer(true));
        // The second has been still, the third has not, and the first is being answered.
        let next = timeout(Duration::from_millis(10), places.take()).await;
        assert!(next.is_err(), "nobody has gone yet");
        assert!(is_asked(&second).await && !is_asked(&third).await && !is_asked(&answered).await);
        // One is asked to give way for each that waits, however long it needs to go.
        advance(STILL * 4).await;
        assert!(timeout(STILL, places.take()).await.is_err());
        assert!(!is_asked(&third).await);
        drop(second);
        let next = timeout(Duration::from_millis(1), places.take()).await.expect("a place");
        assert!(!is_asked(&next).await);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_move_keep_their_places() {
        let places = Places::new(2);
        let (idle, place) = (places.take().await, places.take().await);
        let _unsent = place.has_answer(true);
        for _ in 0..8 {
            advance(STILL / 2).await;
            place.shared.moves();
            idle.shared.moves();
            assert!(timeout(Duration::from_millis(1), places.take()).await.is_err());
        }
        assert!(!is_asked(&place).await && !is_asked(&idle).await);
        // One between requests must go even if it moves, then one that reads slowly.
        take_while_moving(&places, &[&idle, &place]).await;
        assert!(is_asked(&idle).await && !is_asked(&place).await);
        drop(idle);
        let next = places.take().await;
        let _unsent = next.has_answer(true);
        take_while_moving(&places, &[&place, &next]).await;
        assert!(is_asked(&place).await && !is_asked(&next).await);
    }

    /// Waits for a place while connections move.
    async fn take_while_moving(places: &Places, moving: &[&Place]) {
        let moves = async {
            loop {
                tokio::time::sleep(STILL / 4).await;
                moving.iter().for_each(|place| place.shared.moves());
            }
        };
        tokio::select! {
            () = moves => {}
            next = timeout(STILL * 2, places.take()) => assert!(next.is_err()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_for_anybody_are_no_movement() {
        let places = Places::new(2);
        let (known, stranger) = (places.take().await, places.take().await);
        for _ in 0..2 {
            advance(STILL / 2).await;
            for (place, counts) in [(&known, true), (&stranger, false)] {
                place.begins_answer();
                drop(place.has_answer(counts));
                place.shared.moves();
            }
        }
        assert!(timeout(Duration::from_millis(1), places.take()).await.is_err());
        assert!(is_asked(&stranger).await && !is_asked(&known).await);
    }
}
