//! A simulated fleet. It executes its schedule, keeps the log, and computes
//! every right answer from a model that never looks at the fake pmcds.

use std::cell::RefCell;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pmderive_client::pdu::PduType;
use pmderive_core::model::{InstId, StateChange, Timestamp, Value};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::log::{Entry, Log, What};
use super::schedule::{HostEvent, ScheduledEvent, Script, schedule};
use super::socket::Socket;
use crate::fake_pmcd::{Clock, FakeHost, Fault, Rule, World};
use crate::fleet::worlds::{hosts, worlds};
use crate::fleet::{BaseMetric, Fate, Plan};
use crate::mix::mix;

/// The start of all fleets, by the clocks of their hosts: one second after 2026
/// began.
const BEGINNING: Timestamp = Timestamp { sec: 1_767_225_601, nsec: 0 };

thread_local! {
    /// The fleet that sockets of this thread connect to.
    static CURRENT: RefCell<Option<Arc<Network>>> = const { RefCell::new(None) };
}

/// Fake pmcds of one thread, under the clock of its tokio runtime.
#[derive(Debug)]
pub struct Fleet {
    network: Arc<Network>,
    driver: AbortHandle,
}

/// The parts that the fleet, its schedule and its sockets share.
#[derive(Debug)]
pub(super) struct Network {
    seed: u64,
    plan: Arc<Plan>,
    began: Instant,
    hosts: Vec<SimHost>,
    worlds: Vec<Arc<World>>,
    log: Mutex<Log>,
}

/// A host, and its present troubles.
#[derive(Debug)]
pub(super) struct SimHost {
    pub pmcd: Arc<FakeHost>,
    /// Nanoseconds by which its clock is ahead at the start.
    offset: u64,
    state: Mutex<Matter>,
}

#[derive(Debug)]
struct Matter {
    /// Occasions that are not over.
    killed: u32,
    refusing: u32,
    stopped: u32,
    absent: u32,
    forgotten: u32,
    /// Delays that were drawn so far.
    delays: u64,
    model: Model,
    answers: Vec<Answer>,
}

/// The facts that the values of a host depend on, besides the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Model {
    class: u32,
    ahead: i64,
}

/// The reply to a fetch, as the model has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The host.
    pub host: u32,
    /// Time since the fleet began.
    pub at: Duration,
    /// The real time, which values depend on.
    pub time: Timestamp,
    /// The time by the host's clock: the stamp of the reply.
    pub stamp: Timestamp,
    /// The class that the host was of.
    pub class: u32,
}

/// The answers of hosts so far. A checker may use it in any thread, also while the
/// fleet runs.
#[derive(Clone, Debug)]
pub struct Answers(Arc<Network>);

impl Answers {
    /// The plan of the fleet.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The latest answer of a host at a time since the fleet began, or before.
    pub fn before(&self, host: u32, at: Duration) -> Option<Answer> {
        let state = self.0.hosts.get(host as usize)?.state();
        let later = state.answers.partition_point(|answer| answer.at <= at);
        state.answers.get(later.checked_sub(1)?).copied()
    }

    /// The log without its first `count` entries.
    pub fn log_behind(&self, count: usize) -> Vec<Entry> {
        self.0.log().0.get(count..).unwrap_or_default().to_vec()
    }
}

/// The right values of a host at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'f> {
    plan: &'f Plan,
    /// The answer at that moment.
    pub answer: Answer,
}

impl Truth<'_> {
    /// Values of a metric of the host's class, with their instances, ascending.
    pub fn values(&self, metric: &BaseMetric) -> Vec<(InstId, Value)> {
        let Answer { host, time, class, .. } = self.answer;
        let value =
            |instance| (instance, self.plan.value_in(class, host, metric.number, instance, time));
        match metric.desc.indom {
            None => vec![value(-1)],
            Some(indom) => {
                self.instances(indom.serial()).iter().map(|(id, _)| value(*id)).collect()
            }
        }
    }

    /// Instances of a domain, ascending.
    pub fn instances(&self, domain: u32) -> Vec<(InstId, Box<str>)> {
        self.plan.instances(self.answer.host, domain, self.answer.time)
    }
}

impl Fleet {
    /// The hosts of a plan, with events by a script from now on. Sockets of
    /// this thread connect to this fleet until it is dropped, or another one is
    /// made.
    ///
    /// # Panics
    /// Outside a task of a tokio runtime with time.
    pub fn new(seed: u64, plan: Plan, script: &Script) -> Fleet {
        let plan = Arc::new(Plan { seed: mix(&[seed, plan.seed]), ..plan });
        let began = Instant::now();
        let worlds = worlds(&plan);
        // Fetches come at whole milliseconds, stamps need not.
        let offset = |host: u32| mix(&[seed, host.into()]) % 1_000_000_000;
        let clock = |host| Clock::Tokio {
            since: began,
            time: BEGINNING + Duration::from_nanos(offset(host)),
        };
        let hosts = hosts(&plan, &worlds, clock).into_iter().zip(0..);
        let hosts = hosts.map(|(pmcd, number)| SimHost {
            pmcd,
            offset: offset(number),
            state: Mutex::new(Matter {
                killed: 0,
                refusing: u32::from(plan.fate(number) == Fate::Refuses),
                stopped: 0,
                absent: u32::from(plan.fate(number) == Fate::HasVanished),
                forgotten: 0,
                delays: 0,
                model: Model { class: plan.class(number), ahead: 0 },
                answers: Vec::new(),
            }),
        });
        let network = Arc::new(Network {
            seed,
            began,
            hosts: hosts.collect(),
            worlds,
            log: Mutex::default(),
            plan,
        });
        let schedule = schedule(seed, &network.plan, script);
        let driver = tokio::spawn(drive(Arc::clone(&network), schedule)).abort_handle();
        CURRENT.with(|current| *current.borrow_mut() = Some(Arc::clone(&network)));
        Fleet { network, driver }
    }

    /// The plan; its seed combines both seeds.
    pub fn plan(&self) -> &Plan {
        &self.network.plan
    }

    /// A host, for changes outside the script.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn host(&self, number: u32) -> &Arc<FakeHost> {
        &self.network.hosts[number as usize].pmcd
    }

    /// Causes an event of a host now.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn happen(&self, host: u32, what: HostEvent) {
        self.network.happen(host, what);
    }

    /// Connects to a host after a delay, as [`Socket`] does by its name.
    ///
    /// # Errors
    /// It refuses, or does not answer in time.
    pub async fn connect(&self, host: u32, timeout: Option<Duration>) -> io::Result<Socket> {
        Socket::connect(Arc::clone(&self.network), host, timeout).await
    }

    /// Time since it began.
    pub fn elapsed(&self) -> Duration {
        self.network.began.elapsed()
    }

    /// The log so far.
    pub fn log(&self) -> Log {
        self.network.log().clone()
    }

    /// The latest answer of a host with this stamp. After its clock was set back,
    /// a stamp may come twice.
    pub fn answer(&self, host: u32, stamp: Timestamp) -> Option<Answer> {
        let state = self.network.hosts.get(host as usize)?.state();
        state.answers.iter().rev().find(|answer| answer.stamp == stamp).copied()
    }

    /// The answers of hosts so far, and later ones.
    pub fn answers_so_far(&self) -> Answers {
        Answers(Arc::clone(&self.network))
    }

    /// All answers of a host so far.
    pub fn answers(&self, host: u32) -> Vec<Answer> {
        let state = self.network.hosts.get(host as usize).map(SimHost::state);
        state.map_or(Vec::new(), |state| state.answers.clone())
    }

    /// The right values of an answer.
    pub fn truth(&self, answer: &Answer) -> Truth<'_> {
        Truth { plan: &self.network.plan, answer: *answer }
    }

    /// The right values of a fetch that is answered now.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn truth_now(&self, host: u32) -> Truth<'_> {
        self.truth(&self.network.answer(host))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.driver.abort();
        let is_ours = |one: &Arc<Network>| Arc::ptr_eq(one, &self.network);
        CURRENT.with(|current| current.borrow_mut().take_if(|one| is_ours(one)));
    }
}

/// Executes the due events.
async fn drive(network: Arc<Network>, schedule: Vec<ScheduledEvent>) {
    for ScheduledEvent { at, host, what } in schedule {
        tokio::time::sleep_until(network.began + at).await;
        network.happen(host, what);
    }
}

impl SimHost {
    fn state(&self) -> MutexGuard<'_, Matter> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while it is off the network.
    pub fn is_absent(&self) -> bool {
        self.state().absent > 0
    }

    /// True while its address is unknown.
    pub fn is_forgotten(&self) -> bool {
        self.state().forgotten > 0
    }

    /// True while it refuses connections.
    pub fn refuses(&self) -> bool {
        let state = self.state();
        state.killed > 0 || state.refusing > 0
    }
}

impl Network {
    /// The fleet of this thread.
    pub fn current() -> Option<Arc<Network>> {
        CURRENT.with(|current| current.borrow().clone())
    }

    pub fn host(&self, number: u32) -> Option<&SimHost> {
        self.hosts.get(number as usize)
    }

    /// The host of a name, or of an address.
    pub fn find(&self, name: &str) -> Option<u32> {
        let by_name = || {
            let number = name.strip_prefix("host")?.parse().ok()?;
            (number < self.plan.hosts && self.plan.name(number) == name).then_some(number)
        };
        by_name().or_else(|| self.plan.host_at(name.parse().ok()?))
    }

    pub fn address(&self, host: u32) -> Ipv4Addr {
        self.plan.address(host)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, host: u32, what: What) {
        let at = self.began.elapsed();
        self.log().0.push(Entry { at, host, what });
    }

    /// Notes that a host has answered a fetch.
    pub fn note_answer(&self, host: u32) {
        let answer = self.answer(host);
        self.note(host, What::Answered { stamp: answer.stamp });
        self.hosts[host as usize].state().answers.push(answer);
    }

    /// The answer that a host would give now.
    fn answer(&self, host: u32) -> Answer {
        let SimHost { offset, ref state, .. } = self.hosts[host as usize];
        let Model { class, ahead } = state.lock().unwrap_or_else(PoisonError::into_inner).model;
        let at = self.began.elapsed();
        let time = BEGINNING + Duration::from_nanos(offset) + at;
        let stamp = Timestamp::new(time.sec, i64::from(time.nsec) + ahead);
        Answer { host, at, time, stamp, class }
    }

    /// The delay of the network for a message between a client and a host.
    pub fn delay(&self, host: u32, most: Duration) -> Duration {
        let mut state = self.hosts[host as usize].state();
        state.delays += 1;
        let drawn = mix(&[self.seed, host.into(), state.delays]);
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(drawn % most.saturating_add(1))
    }

    fn happen(&self, host: u32, what: HostEvent) {
        let SimHost { pmcd, state, .. } = &self.hosts[host as usize];
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            HostEvent::Kill => {
                state.killed += 1;
                pmcd.drop_connections();
            }
            HostEvent::Start { class } => {
                state.killed -= 1;
                state.model.class = class;
                pmcd.replace_world(Arc::clone(&self.worlds[class as usize]));
            }
            HostEvent::Refuse => state.refusing += 1,
            HostEvent::Accept => state.refusing -= 1,
            HostEvent::Stop => {
                state.stopped += 1;
                pmcd.stop();
            }
            HostEvent::GoOn => {
                state.stopped -= 1;
                if state.stopped == 0 {
                    pmcd.go_on();
                }
            }
            HostEvent::Leave => state.absent += 1,
            HostEvent::Return => {
                state.absent -= 1;
                pmcd.drop_connections();
            }
            HostEvent::Reset => pmcd.drop_connections(),
            HostEvent::Forget => state.forgotten += 1,
            HostEvent::Remember => state.forgotten -= 1,
            HostEvent::Cut { after, by_reset: true } => inject(pmcd, Fault::Reset { after }),
            HostEvent::Cut { after, by_reset: false } => inject(pmcd, Fault::Close { after }),
            HostEvent::Drip { every } => inject(pmcd, Fault::Drip { every }),
            HostEvent::Delay { after, by } => inject(pmcd, Fault::Late { after, by }),
            HostEvent::Change { class } => {
                state.model.class = class;
                pmcd.replace_world(Arc::clone(&self.worlds[class as usize]));
            }
            HostEvent::Notice => pmcd.notify(StateChange(16)),
            HostEvent::Jump { ahead } => {
                state.model.ahead = ahead;
                pmcd.set_clock_ahead(ahead);
            }
        }
        drop(state);
        self.note(host, What::Happened(what));
    }
}

fn inject(pmcd: &FakeHost, fault: Fault) {
    pmcd.inject(Rule::new(fault).on(PduType::HighresFetch));
}
