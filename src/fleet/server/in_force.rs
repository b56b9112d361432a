//! What is in force: the fleet, sinks and aggregates of a plan, and the way to those
//! of the next one. Where plans come from is not known here.

use std::marker::PhantomData;
use std::sync::Arc;

use tokio::time::Instant;

use super::running::Sinks;
use super::stage_two::{self, Computing};
use crate::engine::{Backend, Engine};
use crate::fleet::condition::Condition;
use crate::fleet::config::Config;
use crate::fleet::engine::Fleet;
use crate::fleet::numbers::HostNumbers;
use crate::fleet::plan::Plan;
use crate::fleet::sink_set::SinkPlace;
use crate::fleet::sinks::newest::Newest;
use crate::fleet::sinks::numbers::SinkNumbers;
use crate::fleet::world::World;

/// A plan that is being carried out.
pub struct InForce<W: World> {
    config: Config,
    engine: Arc<Engine>,
    newest: Arc<Newest>,
    fleet: Fleet,
    /// What computes across hosts.
    across: Option<Computing>,
    sinks: Sinks,
    world: PhantomData<fn() -> W>,
}

impl<W: World> InForce<W> {
    /// Begins with a plan.
    ///
    /// # Errors
    /// A sink cannot be started, or there is no thread; in words.
    pub fn start(mut plan: Plan) -> Result<InForce<W>, String> {
        let limits = plan.limits();
        let engine = Engine::of_this_machine(plan.config.language, Backend::Auto);
        let engine = engine.with_kind_limit(limits.kinds);
        let engine = Arc::new(W::engine(engine));
        let newest = Arc::new(Newest::default());
        let sinks = Sinks::default();
        let places = sinks.places(&plan.config.sinks);
        plan.place_sinks(&places);
        let sinks = sinks.follow::<W>(&plan.config.sinks, &places, &newest);
        let sinks = sinks.map_err(|(_, problem)| problem)?;
        let threads = plan.config.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        let outlets = sinks.outlets();
        let across = plan.fleet.as_ref().map(|across| {
            let (engine, targets) = (Arc::clone(&engine), plan.targets.clone());
            Computing::start::<W>(engine, across, targets, outlets.clone())
        });
        let across = across.transpose().map_err(no_thread)?;
        let outlets = outlets.with(across.as_ref().map(Computing::across));
        let fleet = Fleet::start::<W>(&engine, threads, limits, &outlets);
        let mut fleet = fleet.map_err(no_thread)?;
        fleet.follow(&plan, &outlets);
        let (config, world) = (plan.config, PhantomData);
        Ok(InForce { config, engine, newest, fleet, across, sinks, world })
    }

    /// Goes over to another plan. What did not change goes on as it was. Gives the
    /// number of hosts.
    ///
    /// # Errors
    /// Something cannot change while all goes on, or a sink cannot be started; in
    /// words. The plan of before stays.
    pub fn follow(&mut self, mut plan: Plan) -> Result<usize, String> {
        if let Some(what) = fixed(&self.config, &plan.config) {
            return Err(format!("`{what}` has changed, which takes a restart\n"));
        }
        let sinks = std::mem::take(&mut self.sinks);
        let places = sinks.places(&plan.config.sinks);
        plan.place_sinks(&places);
        match sinks.follow::<W>(&plan.config.sinks, &places, &self.newest) {
            Ok(sinks) => self.sinks = sinks,
            Err((sinks, problem)) => {
                self.sinks = sinks;
                return Err(problem);
            }
        }
        let outlets = self.sinks.outlets();
        match (&plan.fleet, &self.across) {
            (None, _) => {
                if let Some(across) = self.across.take() {
                    across.leave();
                }
            }
            (Some(new), Some(across)) => {
                across.follow(new, plan.targets.clone(), outlets.clone());
            }
            (Some(new), None) => {
                let (engine, targets) = (Arc::clone(&self.engine), plan.targets.clone());
                let across = Computing::start::<W>(engine, new, targets, outlets.clone());
                self.across = Some(across.map_err(no_thread)?);
            }
        }
        let outlets = outlets.with(self.across.as_ref().map(Computing::across));
        self.fleet.follow(&plan, &outlets);
        self.config = plan.config;
        Ok(plan.targets.len())
    }

    /// Ends everything. No series is marked stale; sinks deliver what they have
    /// until the deadline.
    pub fn stop(self, deadline: Instant) {
        self.fleet.stop(deadline);
        if let Some(across) = self.across {
            across.stop(deadline);
        }
        self.sinks.stop(deadline);
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What compiles definitions.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The newest frames, for a listener.
    pub fn newest(&self) -> &Arc<Newest> {
        &self.newest
    }

    /// Place of the sink whose metrics a listener shows.
    pub fn shown(&self) -> Option<SinkPlace> {
        self.sinks.shown()
    }

    /// What hosts have counted.
    pub fn numbers(&self) -> &Arc<HostNumbers> {
        self.fleet.numbers()
    }

    /// Bytes of what computes across hosts, and of what waits for it.
    pub fn across_bytes(&self) -> u64 {
        self.across.as_ref().map_or(0, Computing::bytes)
    }

    /// What was counted by what computes across hosts.
    pub fn across(&self) -> Option<&stage_two::Numbers> {
        self.across.as_ref().map(Computing::numbers)
    }

    /// The numbers of each sink, with its name.
    pub fn of_sinks(&self) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        self.sinks.numbers()
    }

    /// How the hosts are, by name.
    pub fn conditions(&self) -> Vec<Arc<Condition>> {
        self.fleet.conditions()
    }

    /// How a host is, by its name.
    pub fn condition(&self, name: &str) -> Option<Arc<Condition>> {
        self.fleet.condition(name)
    }

    /// What the engine has to say; it says so once.
    pub fn take_warning(&self) -> Option<String> {
        self.engine.take_warning()
    }

    /// For each thread, by name, a number that grows every second unless it is stuck.
    pub fn beats(&self) -> Vec<(String, u64)> {
        let fleet = self.fleet.beats().into_iter().enumerate();
        let fleet = fleet.map(|(at, beat)| (format!("fleet {at}"), beat));
        let across = self.across.iter().map(|across| ("stage two".to_owned(), across.beat()));
        fleet.chain(across).chain(self.sinks.beats()).collect()
    }

    /// True if there is no sink left that gives anything to anybody.
    pub fn is_output_closed(&self) -> bool {
        self.sinks.are_closed()
    }

    /// Opens the files that are written to anew.
    pub fn reopen(&self) {
        self.sinks.reopen();
    }
}

impl<W: World> std::fmt::Debug for InForce<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InForce").field("config", &self.config).finish_non_exhaustive()
    }
}

fn no_thread(error: std::io::Error) -> String {
    format!("no thread for the fleet: {error}\n")
}

/// The first key that cannot change while the process runs, and has.
fn fixed(before: &Config, after: &Config) -> Option<&'static str> {
    let address = |config: &Config| config.listen.as_ref().map(|listen| listen.value);
    let keys = [
        ("compat", before.language.dialect != after.language.dialect),
        ("extensions", before.language.extensions != after.language.extensions),
        ("threads", before.threads != after.threads),
        ("listen", address(before) != address(after)),
        ("web", before.web != after.web),
        ("kinds", before.limits.kinds != after.limits.kinds),
        ("connects", before.limits.connects != after.limits.connects),
    ];
    keys.into_iter().find(|(_, has_changed)| *has_changed).map(|(key, _)| key)
}
