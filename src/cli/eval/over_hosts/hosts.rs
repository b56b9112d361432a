//! The hosts of `eval --targets`. All are fetched at once, up to a limit.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use pmderive_runtime::locks::lock;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use crate::cli::stop::Stop;
use crate::engine::{Compiled, Engine};
use crate::fleet::config::Limits;
use crate::fleet::frame::{Event, Frame};
use crate::fleet::host::{PolledHost, Shared};
use crate::fleet::numbers::HostNumbers;
use crate::fleet::plan::PlannedGroup;
use crate::fleet::sinks::outlets::{Outlet, Outlets};
use crate::fleet::sinks::sink_set::SinkPlace;
use crate::fleet::slot::Slot;
use crate::fleet::targets::target::Target;
use crate::fleet::world::Machine;

/// Number of hosts that are fetched at once. The deadline of a host starts with its own turn.
const MOST_AT_ONCE: usize = 512;

/// Hosts with their connections.
pub struct Hosts {
    runtime: Runtime,
    local: LocalSet,
    shared: Rc<Shared>,
    caught: Arc<Caught>,
    all: Vec<(Arc<Target>, Option<PolledHost<Machine>>)>,
}

/// Result of fetching all hosts.
pub struct FetchedHosts {
    /// Frames of the hosts that answered, by name.
    pub frames: Vec<Frame>,
    /// The other hosts, by name, each with its reason.
    pub failed: Vec<(Arc<Target>, Arc<str>)>,
}

/// An outlet that keeps events.
#[derive(Default)]
struct Caught(Mutex<Vec<Arc<Event>>>);

impl Outlet for Caught {
    fn push(&self, event: &Arc<Event>) {
        lock(&self.0).push(Arc::clone(event));
    }
}

impl Hosts {
    /// Hosts of a group, none of them connected.
    pub fn new(
        engine: &Arc<Engine>,
        targets: &[Arc<Target>],
        group: &Arc<PlannedGroup>,
        limits: Limits,
    ) -> Result<Hosts, Stop> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Stop::Output)?;
        let caught = Arc::<Caught>::default();
        let outlets = Outlets::new(vec![(SinkPlace(0), Arc::clone(&caught) as Arc<dyn Outlet>)]);
        let limits = Limits { connects: MOST_AT_ONCE, ..limits };
        let shared =
            Shared::new(Arc::clone(engine), Arc::new(HostNumbers::default()), limits, outlets);
        let mut targets = targets.to_vec();
        targets.sort_by(|a, b| a.name.cmp(&b.name));
        let host = |target: Arc<Target>| {
            let polled = PolledHost::new(Arc::clone(&target), Arc::clone(group));
            (target, Some(polled))
        };
        let all = targets.into_iter().map(host).collect();
        Ok(Hosts { runtime, local: LocalSet::new(), shared: Rc::new(shared), caught, all })
    }

    /// Fetches all hosts.
    pub fn sample(&mut self, slot: Slot) -> FetchedHosts {
        let Hosts { runtime, local, shared, caught, all } = self;
        let mut failed = local.block_on(runtime, async {
            let turns = Rc::new(Semaphore::new(MOST_AT_ONCE));
            let mut fetching = JoinSet::new();
            for (at, (_, host)) in all.iter_mut().enumerate() {
                let Some(mut host) = host.take() else { continue };
                let (shared, turns) = (Rc::clone(shared), Rc::clone(&turns));
                fetching.spawn_local(async move {
                    // The semaphore is never closed.
                    let _turn = turns.acquire().await;
                    let outcome = host.sample(slot, &shared).await;
                    (at, host, outcome)
                });
            }
            let mut failed = Vec::new();
            while let Some(fetched) = fetching.join_next().await {
                // A task that panicked has printed its message already.
                let Ok((at, host, outcome)) = fetched else { continue };
                all[at].1 = Some(host);
                failed.extend(outcome.err().map(|words| (at, words)));
            }
            failed
        });
        failed.sort_by_key(|(at, _)| *at);
        let failed = failed.into_iter().map(|(at, words)| (Arc::clone(&all[at].0), words));
        let failed = failed.collect();
        let events = std::mem::take(&mut *lock(&caught.0));
        let frame = |event: Arc<Event>| match Arc::unwrap_or_clone(event) {
            Event::Frame(frame) if frame.slot == slot => Some(frame),
            _ => None,
        };
        let mut frames: Vec<Frame> = events.into_iter().filter_map(frame).collect();
        frames.sort_by(|a, b| a.target.name.cmp(&b.target.name));
        FetchedHosts { frames, failed }
    }

    /// The program of each host that has answered.
    pub fn compiled(&self) -> impl Iterator<Item = (&str, &Arc<Compiled>)> {
        self.all
            .iter()
            .filter_map(|(target, host)| Some((&*target.name, host.as_ref()?.compiled()?)))
    }

    /// True if some metric has no value in a first sample because it needs two.
    pub fn need_two_samples(&self) -> bool {
        self.compiled().any(|(_, compiled)| !compiled.program.histories.is_empty())
    }
}
