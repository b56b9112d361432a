//! One host of a fake pmcd: its name, its clock, the current state of its
//! world, and its events.
//!
//! Connections ([`super::Session`]) share it and read it whenever they answer.
//! Tests change it at any time. `answers` and `fetch` read and write PDUs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pmderive_client::pdu::{Features, PduType};
use pmderive_core::model::{
    InDom, InstId, InstanceDomain, PmStatus, Pmid, StateChange, Timestamp, Value,
};
use tokio::sync::Notify;

use super::fault::{Fault, Rule, Utterance, strike};
use super::world::World;

/// The features of a pmcd 6.0.3 without TLS and without authentication.
pub const FEATURES: Features =
    Features::CONTAINER.with(Features::LABELS).with(Features::HIGHRES).with(Features::DESCS);

/// The clock of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The system's clock.
    System,
    /// The clock of tokio, which tests may stop and set forward.
    Tokio {
        /// Some moment of that clock.
        since: tokio::time::Instant,
        /// The host's time at that moment.
        time: Timestamp,
    },
    /// A clock that only fetches advance: each is `step` later than the one
    /// before.
    Steps {
        /// Time of the first fetch.
        first: Timestamp,
        /// The time from fetch to fetch.
        step: Duration,
    },
}

impl Default for Clock {
    /// A fetch a second, from one second after 2026 began.
    fn default() -> Clock {
        Clock::Steps { first: Timestamp::new(1_767_225_601, 0), step: Duration::from_secs(1) }
    }
}

/// A host with a fake pmcd.
#[derive(Debug)]
pub struct FakeHost {
    seed: u64,
    clock: Clock,
    state: Mutex<HostState>,
    /// Wakes connections that wait for their client.
    changed: Notify,
}

/// The state that changes while connections are open.
#[derive(Debug)]
pub(super) struct HostState {
    pub world: Arc<World>,
    pub features: Features,
    pub name: Box<str>,
    pub stored: HashMap<(Pmid, InstId), Value>,
    /// Agents that were there and are not running.
    pub down: BTreeSet<u32>,
    /// All notices so far.
    notices: Vec<StateChange>,
    started: Timestamp,
    /// Agents that were started later than the host.
    agents_started: BTreeMap<u32, Timestamp>,
    fetches: u64,
    /// After how many fetches the clock is set back, and how far.
    set_back: Option<(u64, Duration)>,
    /// Nanoseconds by which the clock is ahead of the real time.
    ahead: i64,
    /// True while pmcd does nothing at all.
    is_stopped: bool,
    rules: Vec<Rule>,
    connections: u64,
    /// Counts the occasions on which all connections were dropped.
    drops: u64,
    /// Counts the occasions on which all stalled connections went on.
    resumptions: u64,
    /// Number of requests answered, by type.
    requests: HashMap<PduType, u64>,
}

impl FakeHost {
    /// A host named `localhost` with a [`Clock`] that ticks with fetches.
    pub fn new(world: impl Into<Arc<World>>) -> FakeHost {
        let clock = Clock::default();
        FakeHost {
            seed: 0,
            clock,
            state: Mutex::new(HostState {
                world: world.into(),
                features: FEATURES,
                name: "localhost".into(),
                stored: HashMap::new(),
                down: BTreeSet::new(),
                notices: Vec::new(),
                started: clock.at(0),
                agents_started: BTreeMap::new(),
                fetches: 0,
                set_back: None,
                ahead: 0,
                is_stopped: false,
                rules: Vec::new(),
                connections: 0,
                drops: 0,
                resumptions: 0,
                requests: HashMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// The same host with this name: the value of `pmcd.hostname`, and a label.
    #[must_use]
    pub fn named(self, name: impl Into<Box<str>>) -> FakeHost {
        self.lock().name = name.into();
        self
    }

    /// The same host with a number that distinguishes it from other hosts of
    /// its world.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> FakeHost {
        self.seed = seed;
        self
    }

    /// The same host with another clock; its counters begin now.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> FakeHost {
        self.clock = clock;
        self.lock().started = clock.at(0);
        self
    }

    /// The same host with a clock that is set back after a number of fetches.
    /// Counters ignore that.
    #[must_use]
    pub fn with_clock_set_back(self, fetches: u64, by: Duration) -> FakeHost {
        self.lock().set_back = Some((fetches, by));
        self
    }

    /// The same host with other features in its greeting, such as an old
    /// pmcd's.
    #[must_use]
    pub fn with_features(self, features: Features) -> FakeHost {
        self.lock().features = features;
        self
    }

    /// Name of the host.
    pub fn name(&self) -> Box<str> {
        self.lock().name.clone()
    }

    /// The number that distinguishes it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The host's current world.
    pub fn world(&self) -> Arc<World> {
        Arc::clone(&self.lock().world)
    }

    /// Number of answered requests of a type, including those answered with an
    /// ERROR and those without an answer.
    pub fn requests(&self, kind: PduType) -> u64 {
        self.lock().requests.get(&kind).copied().unwrap_or(0)
    }

    /// Number of connections that were made so far.
    pub fn connections(&self) -> u64 {
        self.lock().connections
    }

    /// The value that clients stored for an instance of a metric.
    pub fn stored(&self, pmid: Pmid, instance: InstId) -> Option<Value> {
        self.lock().stored.get(&(pmid, instance)).cloned()
    }

    /// Changes instances, scripts and everything else that pmcd sends no notice
    /// of.
    pub fn change(&self, change: impl FnOnce(&mut World)) {
        self.change_with(StateChange::default(), change);
    }

    /// Changes names, and sends notice (`PMCD_NAMES_CHANGE`).
    pub fn change_names(&self, change: impl FnOnce(&mut World)) {
        self.change_with(StateChange(16), change);
    }

    /// Changes labels, and sends notice (`PMCD_LABEL_CHANGE`).
    pub fn change_labels(&self, change: impl FnOnce(&mut World)) {
        self.change_with(StateChange(8), change);
    }

    fn change_with(&self, notice: StateChange, change: impl FnOnce(&mut World)) {
        let mut state = self.lock();
        change(Arc::make_mut(&mut state.world));
        state.notify(notice);
    }

    /// Sends a notice, true or not.
    pub fn notify(&self, notice: StateChange) {
        self.lock().notify(notice);
    }

    /// Renames the host, and sends notice (`PMCD_HOSTNAME_CHANGE`).
    pub fn rename(&self, name: impl Into<Box<str>>) {
        let mut state = self.lock();
        state.name = name.into();
        state.notify(StateChange(32));
    }

    /// Starts an agent for new metrics (`PMCD_ADD_AGENT`).
    pub fn add_agent(&self, domain: u32, change: impl FnOnce(&mut World)) {
        self.start_agent(domain, StateChange(1), change);
    }

    /// Ends an agent (`PMCD_DROP_AGENT`): the names of its metrics stay, all
    /// else is `PM_ERR_NOAGENT`.
    pub fn drop_agent(&self, domain: u32) {
        let mut state = self.lock();
        state.down.insert(domain);
        state.notify(StateChange(4));
    }

    /// Restarts an agent, after ending it if necessary (`PMCD_ADD_AGENT` and
    /// `PMCD_RESTART_AGENT`, in the order of pmcd 6). Its counters begin at the
    /// next moment, and its descriptors may change.
    pub fn restart_agent(&self, domain: u32, change: impl FnOnce(&mut World)) {
        self.start_agent(domain, StateChange(3), change);
    }

    fn start_agent(&self, domain: u32, notice: StateChange, change: impl FnOnce(&mut World)) {
        let mut state = self.lock();
        state.down.remove(&domain);
        let now = self.clock.at(state.fetches);
        state.agents_started.insert(domain, now);
        change(Arc::make_mut(&mut state.world));
        state.notify(notice);
    }

    /// Restarts pmcd: all connections are lost, counters start again, stored values are gone, and
    /// everything may be different.
    pub fn restart(&self, change: impl FnOnce(&mut World)) {
        let mut state = self.lock();
        state.started = self.clock.at(state.fetches);
        state.agents_started.clear();
        state.down.clear();
        state.stored.clear();
        change(Arc::make_mut(&mut state.world));
        state.drops += 1;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Sets the host's clock ahead of the real time, or behind it if negative. Counters follow the
    /// real time.
    pub fn set_clock_ahead(&self, nanoseconds: i64) {
        self.lock().ahead = nanoseconds;
    }

    /// Stops pmcd, as SIGSTOP does. New clients get no greeting, and requests wait until
    /// [`FakeHost::go_on`].
    pub fn stop(&self) {
        self.lock().is_stopped = true;
    }

    /// Resumes a stopped pmcd.
    pub fn go_on(&self) {
        self.lock().is_stopped = false;
        self.changed.notify_waiters();
    }

    /// Replaces the host's world, and sends notice (`PMCD_NAMES_CHANGE`).
    pub fn replace_world(&self, world: Arc<World>) {
        let mut state = self.lock();
        state.world = world;
        state.notify(StateChange(16));
    }

    /// Number of fetches that were answered.
    pub fn fetches(&self) -> u64 {
        self.lock().fetches
    }

    /// Number of rules that are left.
    pub(crate) fn rules(&self) -> usize {
        self.lock().rules.len()
    }

    /// Resets all connections.
    pub fn drop_connections(&self) {
        self.lock().drops += 1;
        self.changed.notify_waiters();
    }

    /// Sets the features in the greeting of new connections.
    pub fn set_features(&self, features: Features) {
        self.lock().features = features;
    }

    /// Commits a fault when the rule says so. If several rules apply, the first
    /// one given strikes.
    pub fn inject(&self, rule: Rule) {
        self.lock().rules.push(rule);
    }

    /// Forgets all rules.
    pub fn behave(&self) {
        self.lock().rules.clear();
    }

    /// Resumes all connections that a [`Fault::Stall`] holds up.
    pub fn resume_all(&self) {
        self.lock().resumptions += 1;
        self.changed.notify_waiters();
    }

    /// Resolves at the next occasion on which connections may have to do
    /// something on their own.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Ignores poisoning: a panic under the lock came from a test's own
    /// function.
    pub(super) fn lock(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Instances of a domain now.
    pub(super) fn instances(
        &self,
        state: &HostState,
        indom: InDom,
    ) -> Result<Arc<InstanceDomain>, PmStatus> {
        state.world.instances(indom, self.seed, self.clock.at(state.fetches))
    }

    /// The time of a fetch that is answered now.
    pub(super) fn begin_fetch(&self, state: &mut HostState) -> FetchTime {
        let time = self.clock.at(state.fetches);
        let set_back = state.set_back.filter(|(fetches, _)| state.fetches >= *fetches);
        let stamp = set_back.map_or(time, |(_, by)| time - by);
        let stamp = Timestamp::new(stamp.sec, i64::from(stamp.nsec).saturating_add(state.ahead));
        state.fetches += 1;
        FetchTime { time, stamp, fetch: state.fetches }
    }
}

/// The time at which a fetch is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchTime {
    pub time: Timestamp,
    /// The time as the host's clock has it.
    pub stamp: Timestamp,
    pub fetch: u64,
}

impl HostState {
    fn notify(&mut self, notice: StateChange) {
        if !notice.is_none() {
            self.notices.push(notice);
        }
    }

    /// Number of a connection that is being made.
    pub(super) fn connect(&mut self) -> u64 {
        self.connections += 1;
        self.connections - 1
    }

    pub(super) fn drops(&self) -> u64 {
        self.drops
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    pub(super) fn resumptions(&self) -> u64 {
        self.resumptions
    }

    pub(super) fn count(&mut self, kind: PduType) {
        *self.requests.entry(kind).or_default() += 1;
    }

    /// The fault of the next message of a connection, if any.
    pub(super) fn strike(&mut self, connection: u64, utterance: Utterance) -> Option<Fault> {
        if self.rules.is_empty() { None } else { strike(&mut self.rules, connection, utterance) }
    }

    /// Number of notices so far.
    pub(super) fn notices(&self) -> usize {
        self.notices.len()
    }

    /// All notices after the first `seen`, combined.
    pub(super) fn notices_since(&self, seen: usize) -> StateChange {
        let new = self.notices.get(seen..).unwrap_or_default();
        new.iter().fold(StateChange::default(), |all, notice| all.with(*notice))
    }

    /// Seconds since a metric's agent was started.
    pub(super) fn age(&self, pmid: Pmid, now: Timestamp) -> f64 {
        let agent = self.agents_started.get(&pmid.domain());
        now.seconds_since(agent.copied().unwrap_or(self.started).max(self.started))
    }

    /// `Err` with the status of a domain that has an agent which is not
    /// running; `Ok` with whether there is one.
    pub(super) fn agent(&self, domain: u32) -> Result<bool, PmStatus> {
        match self.down.contains(&domain) {
            true => Err(PmStatus::NOAGENT),
            false => Ok(self.world.has_agent(domain)),
        }
    }
}

impl Clock {
    /// The time after a number of fetches.
    fn at(self, fetches: u64) -> Timestamp {
        let (first, step) = match self {
            Clock::System => return Timestamp::now(),
            Clock::Tokio { since, time } => return time + since.elapsed(),
            Clock::Steps { first, step } => (first, step),
        };
        let nanoseconds = step.as_nanos().saturating_mul(fetches.into());
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX);
        // The remainder is below 10^9.
        first + Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32)
    }
}
