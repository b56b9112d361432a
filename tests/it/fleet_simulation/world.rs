//! The machine of a simulation: tokio's clock, the simulated fleet, one receiver, one
//! disk, and chance by the seed. Everything runs in one thread, as tasks.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Bytes;
use pmderive::engine::Engine;
use pmderive::internal::fleet::sinks::client::{Client, Credentials, Url};
use pmderive::internal::fleet::sinks::delivery::{NoResponse, Response};
use pmderive::internal::fleet::slot::Nanos;
use pmderive::internal::fleet::world::clock::Clock;
use pmderive::internal::fleet::world::socket::NamedSocket;
use pmderive::internal::fleet::world::{Job, World};
use pmderive_testkit::mix::mix;
use pmderive_testkit::sim::{Disk, Receiver, ReceiverAnswer, Socket};
use tokio::time::Instant;

/// When the engine's clock begins: 2026.
pub const BEGINNING: u64 = 1_767_225_600_000_000_000;

/// Longest time that compiling takes.
const MOST_COMPILING: u64 = 1_500;

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The seed, and how many numbers were drawn.
    static CHANCE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// By how many nanoseconds the machine's clock was set forward.
    static AHEAD: Cell<i64> = const { Cell::new(0) };
    static SET: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static CLOCK: RefCell<Clock> = const { RefCell::new(Clock::new()) };
    static PARTS: RefCell<Option<Parts>> = const { RefCell::new(None) };
}

/// What the engine talks to, beside hosts.
#[derive(Clone)]
pub struct Parts {
    pub receiver: Rc<RefCell<Receiver>>,
    /// The one at `http://other/`.
    pub other: Rc<RefCell<Receiver>>,
    pub disk: Disk,
}

/// The machine of the simulation that runs in this thread.
pub struct Simulated;

impl Simulated {
    /// Begins now.
    pub fn begin(seed: u64, parts: Parts) {
        BEGAN.set(Some(Instant::now()));
        CHANCE.set((seed, 0));
        PARTS.set(Some(parts));
    }

    /// Time since the beginning.
    pub fn elapsed() -> Duration {
        BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Somebody sets the machine's clock forward by so many milliseconds, or back. The
    /// engine has read it just before, so that it is known what its own clock shows.
    pub fn set_clock(milliseconds: i64) {
        Simulated::now();
        AHEAD.set(AHEAD.get() + milliseconds * 1_000_000);
        SET.set(Simulated::elapsed());
    }

    /// When somebody set the machine's clock last, since the beginning.
    pub fn was_set() -> Duration {
        SET.get()
    }

    /// A number by chance.
    pub fn draw() -> u64 {
        let (seed, drawn) = CHANCE.get();
        CHANCE.set((seed, drawn + 1));
        mix(&[seed, drawn])
    }

    /// Waits for a time by chance.
    pub async fn pause(most_milliseconds: u64) {
        let time = Duration::from_millis(Simulated::draw() % (most_milliseconds + 1));
        tokio::time::sleep(time).await;
    }
}

impl World for Simulated {
    type Transport = NamedSocket<Socket>;

    type Client = Sender;

    fn now() -> Nanos {
        let elapsed = Simulated::elapsed();
        let real = Nanos(BEGINNING).after(elapsed).0;
        let machine = Nanos(real.saturating_add_signed(AHEAD.get()));
        CLOCK.with_borrow_mut(|clock| clock.read(machine, elapsed))
    }

    fn chance() -> f64 {
        (Simulated::draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    async fn resolve(host: &str) {
        NamedSocket::<Socket>::resolve(host).await;
    }

    fn engine(engine: Engine) -> Engine {
        engine.with_jobs_run_by(|job| {
            tokio::task::spawn_local(async {
                Simulated::pause(MOST_COMPILING).await;
                job();
            });
        })
    }

    fn spawn<W: Future<Output = ()> + 'static>(
        _: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Job> {
        tokio::task::spawn_local(async { work().await });
        Ok(Job::default())
    }

    fn open(_: Option<&Path>) -> io::Result<Box<dyn io::Write + Send>> {
        let disk = PARTS.with_borrow(|parts| parts.as_ref().map(|parts| parts.disk.clone()));
        Ok(Box::new(disk.ok_or(io::ErrorKind::NotFound)?))
    }
}

/// Sends to a receiver of the thread.
pub struct Sender {
    is_other: bool,
}

impl Client for Sender {
    fn new(url: Url, _: Credentials, _: Option<&Path>) -> Result<Sender, String> {
        Ok(Sender { is_other: url.text().starts_with("http://other/") })
    }

    async fn send(&mut self, body: Bytes) -> Result<Response, NoResponse> {
        let parts = PARTS.with_borrow(Clone::clone);
        let parts = parts.expect("a simulation runs");
        let receiver = if self.is_other { parts.other } else { parts.receiver };
        let (delay, mood) = receiver.borrow_mut().begin();
        tokio::time::sleep(delay).await;
        let said = receiver.borrow_mut().take(&body, mood);
        match said {
            Some(ReceiverAnswer::Status { status, retry_after }) => {
                Ok(Response { status, retry_after, said: String::new() })
            }
            Some(ReceiverAnswer::Broken(words)) => Err(NoResponse::Broken(words.to_owned())),
            None => pending().await,
        }
    }

    fn disconnect(&mut self) {}
}
