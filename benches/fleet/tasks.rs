//! Many hosts in one thread. Each has a task, which waits for the next round and
//! then fetches and evaluates. In an ordinary round a few hosts at a time are
//! active, as in a fleet whose fetches are spread over an interval. After all
//! connections were cut, all of them are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use pmderive::engine::Backend;
use pmderive_runtime::context::HostSpec;
use pmderive_runtime::eval::Buffers;
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::SourceError;
use tokio::sync::{Notify, Semaphore, watch};

use super::client::{Client, ClientDefinitions};
use super::meter::thread_time;
use super::oracle;

/// Hosts that are on their way at a time.
const AT_A_TIME: usize = 32;

/// A step that every host does once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// No step yet.
    Begin,
    /// Fetches and evaluates.
    Evaluate,
    /// The same, and reads all values.
    Read,
    /// Twice the same, and asks the oracle about the second time.
    Check,
    /// Fetches, all at once and until it succeeds.
    Return,
    /// Compares the result of [`Round::Return`] with the oracle.
    CheckReturn,
}

/// The parts that tasks share.
struct Shared {
    definitions: ClientDefinitions,
    buffers: RefCell<Buffers>,
    batches: RefCell<Vec<ResultBatch>>,
    places: Semaphore,
    running: Cell<u32>,
    all_done: Notify,
    found: RefCell<RoundResult>,
}

/// The results of a round.
#[derive(Clone, Debug, Default)]
pub struct RoundResult {
    /// Values that were read.
    pub values: usize,
    /// Something that depends on each of them.
    pub sum: u64,
    /// Attempts to connect or fetch that failed for lack of time.
    pub time_outs: u32,
    /// Attempts that failed otherwise.
    pub failures: u32,
    /// Processor time that went into taking notes for the oracle.
    pub own_time: Duration,
    /// The first failure, or difference to the oracle.
    pub problem: Option<String>,
}

/// The hosts under way.
pub struct Fleet {
    shared: Rc<Shared>,
    rounds: watch::Sender<(u64, Round)>,
    hosts: u32,
}

impl Fleet {
    /// A fleet without hosts.
    pub fn new(definitions: &str) -> Fleet {
        let shared = Shared {
            definitions: ClientDefinitions::new(definitions, Backend::Jit),
            buffers: RefCell::default(),
            batches: RefCell::default(),
            places: Semaphore::new(AT_A_TIME),
            running: Cell::new(0),
            all_done: Notify::new(),
            found: RefCell::default(),
        };
        Fleet { shared: Rc::new(shared), rounds: watch::Sender::new((0, Round::Begin)), hosts: 0 }
    }

    /// Connects to further hosts, compiles the definitions for each and
    /// evaluates them once.
    pub async fn bring_up(&mut self, specs: impl IntoIterator<Item = HostSpec>) -> RoundResult {
        for spec in specs {
            let rounds = self.rounds.subscribe();
            self.hosts += 1;
            self.shared.running.set(self.shared.running.get() + 1);
            tokio::task::spawn_local(live(spec, Rc::clone(&self.shared), rounds));
        }
        self.outcome().await
    }

    /// Lets every host do one step.
    pub async fn round(&self, round: Round) -> RoundResult {
        self.shared.running.set(self.hosts);
        self.rounds.send_modify(|(number, now)| {
            *number += 1;
            *now = round;
        });
        self.outcome().await
    }

    async fn outcome(&self) -> RoundResult {
        while self.shared.running.get() > 0 {
            self.shared.all_done.notified().await;
        }
        std::mem::take(&mut *self.shared.found.borrow_mut())
    }
}

/// The life of a host.
async fn live(spec: HostSpec, shared: Rc<Shared>, mut rounds: watch::Receiver<(u64, Round)>) {
    let mut host = {
        let _place = shared.places.acquire().await;
        match Client::open(&spec, &shared.definitions).await {
            Ok(client) => Some(Host { client, returned: None }),
            Err(error) => {
                shared.failed(&error);
                None
            }
        }
    };
    drop(spec);
    let mut round = Round::Read;
    loop {
        if let Some(host) = &mut host {
            let place = match round {
                Round::Return => None,
                _ => shared.places.acquire().await.ok(),
            };
            if let Err(error) = host.take_part(round, &shared).await {
                shared.failed(&error);
            }
            drop(place);
        }
        shared.running.set(shared.running.get().saturating_sub(1));
        if shared.running.get() == 0 {
            shared.all_done.notify_one();
        }
        if rounds.changed().await.is_err() {
            return;
        }
        round = rounds.borrow_and_update().1;
    }
}

struct Host {
    client: Client,
    /// The first fetch after a cut: its bytes, and the digest of its values.
    returned: Option<Box<(ResultBatch, u64)>>,
}

impl Host {
    async fn take_part(&mut self, round: Round, shared: &Shared) -> Result<(), SourceError> {
        match round {
            Round::Begin => Ok(()),
            Round::Evaluate | Round::Read => self.evaluate(round, shared).await,
            Round::Check => self.check(shared).await,
            Round::Return => {
                self.come_back(shared).await;
                Ok(())
            }
            Round::CheckReturn => {
                let Some(returned) = self.returned.take() else {
                    shared.differs("nothing to check");
                    return Ok(());
                };
                let compiled = self.client.compile_alone(&shared.definitions).await?;
                if oracle::expected(&compiled, vec![returned.0]) != returned.1 {
                    shared.differs("the first values after a cut are wrong");
                }
                Ok(())
            }
        }
    }

    async fn evaluate(&mut self, round: Round, shared: &Shared) -> Result<(), SourceError> {
        let mut batch = shared.batch();
        let events = self.client.fetch(&shared.definitions, &mut batch).await?;
        {
            let mut buffers = shared.buffers.borrow_mut();
            let evaluation = self.client.evaluate(&batch, events, &mut buffers);
            if round == Round::Read {
                let (values, sum) = oracle::read(&evaluation);
                let mut found = shared.found.borrow_mut();
                found.values += values;
                found.sum = found.sum.wrapping_add(sum);
            }
        }
        shared.batches.borrow_mut().push(batch);
        Ok(())
    }

    async fn check(&mut self, shared: &Shared) -> Result<(), SourceError> {
        let mut batch = shared.batch();
        let mut batches = Vec::new();
        let mut print = 0;
        for _ in 0..2 {
            let events = self.client.fetch(&shared.definitions, &mut batch).await?;
            batches.push(oracle::copy(&batch));
            let mut buffers = shared.buffers.borrow_mut();
            let evaluation = self.client.evaluate(&batch, events, &mut buffers);
            print = oracle::print(&evaluation);
            let mut found = shared.found.borrow_mut();
            found.values += oracle::read(&evaluation).0;
        }
        shared.batches.borrow_mut().push(batch);
        let compiled = self.client.compile_alone(&shared.definitions).await?;
        if oracle::expected(&compiled, batches) != print {
            shared.differs("the values are not those of the interpreter with fresh plans");
        }
        Ok(())
    }

    async fn come_back(&mut self, shared: &Shared) {
        let mut batch = shared.batch();
        // True if the current connection was cut, and its failure is expected.
        let mut is_known_to_be_cut = false;
        loop {
            match self.client.fetch(&shared.definitions, &mut batch).await {
                Ok(events) => {
                    let (bytes, copying) = timed(|| oracle::copy(&batch));
                    let mut buffers = shared.buffers.borrow_mut();
                    let evaluation = self.client.evaluate(&batch, events, &mut buffers);
                    let (print, printing) = timed(|| oracle::print(&evaluation));
                    shared.found.borrow_mut().own_time += copying + printing;
                    self.returned = Some(Box::new((bytes, print)));
                    break;
                }
                Err(SourceError::TooSoon { seconds, .. }) => {
                    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                }
                Err(SourceError::Io { .. }) if !is_known_to_be_cut => is_known_to_be_cut = true,
                Err(error) => shared.failed(&error),
            }
        }
        shared.batches.borrow_mut().push(batch);
    }
}

/// Does some work, and measures its processor time.
fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let before = thread_time();
    let outcome = work();
    (outcome, thread_time() - before)
}

impl Shared {
    fn batch(&self) -> ResultBatch {
        self.batches.borrow_mut().pop().unwrap_or_default()
    }

    fn failed(&self, error: &SourceError) {
        let mut found = self.found.borrow_mut();
        match error {
            SourceError::Timeout { .. } => found.time_outs += 1,
            _ => found.failures += 1,
        }
        found.problem.get_or_insert_with(|| error.to_string());
    }

    fn differs(&self, what: &str) {
        let mut found = self.found.borrow_mut();
        found.failures += 1;
        found.problem.get_or_insert_with(|| what.to_owned());
    }
}
