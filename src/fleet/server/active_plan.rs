//! The active plan: its hosts, sinks and aggregates, and the change to the next plan.

use std::marker::PhantomData;
use std::sync::Arc;

use tokio::time::Instant;

use super::fleet_thread::FleetThread;
use super::running_sinks::Sinks;
use crate::engine::{Backend, Engine};
use crate::fleet::config::Config;
use crate::fleet::engine::Fleet;
use crate::fleet::plan::Plan;
use crate::fleet::sinks::newest_frames::NewestFrames;
use crate::fleet::sinks::numbers::SinkNumbers;
use crate::fleet::sinks::outlets::Outlets;
use crate::fleet::world::World;

/// A plan that is being carried out.
pub struct ActivePlan<W: World> {
    pub(super) config: Config,
    pub(super) engine: Arc<Engine>,
    /// The newest frames, for a listener.
    pub newest: Arc<NewestFrames>,
    /// The threads of hosts.
    pub hosts: Fleet,
    /// The thread that computes over the fleet.
    pub(super) fleet: Option<FleetThread>,
    /// The running sinks.
    pub sinks: Sinks,
    world: PhantomData<fn() -> W>,
}

impl<W: World> ActivePlan<W> {
    /// Starts a plan.
    ///
    /// # Errors
    /// A sink or a thread cannot be started; the text says why.
    pub fn start(mut plan: Plan) -> Result<ActivePlan<W>, String> {
        let limits = plan.config.limits;
        let engine = Engine::of_this_machine(plan.config.language, Backend::Auto);
        let engine = engine.with_kind_limit(limits.kinds);
        let engine = Arc::new(W::engine(engine));
        let newest = Arc::new(NewestFrames::default());
        let sinks = Sinks::default();
        let places = sinks.places(&plan.config.sinks);
        plan.place_sinks(&places);
        let sinks = sinks.follow::<W>(&plan.config.sinks, &places, &newest);
        let sinks = sinks.map_err(|(_, problem)| problem)?;
        let threads = plan.config.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        let outlets = sinks.outlets();
        let fleet = plan.fleet.as_ref().map(|planned| {
            let (engine, targets) = (Arc::clone(&engine), plan.targets.clone());
            FleetThread::start::<W>(engine, planned, targets, outlets.clone())
        });
        let fleet = fleet.transpose().map_err(no_thread)?;
        let outlets = outlets.with(fleet.as_ref().map(FleetThread::inlet));
        let hosts = Fleet::start::<W>(&engine, threads, limits, &outlets);
        let mut hosts = hosts.map_err(no_thread)?;
        hosts.follow(&plan, &outlets);
        let (config, world) = (plan.config, PhantomData);
        Ok(ActivePlan { config, engine, newest, hosts, fleet, sinks, world })
    }

    /// Changes to another plan. Unchanged parts go on. Returns the number of hosts.
    ///
    /// # Errors
    /// A changed setting needs a restart, or a sink cannot be started; the text says which. The
    /// old plan stays active.
    pub fn follow(&mut self, mut plan: Plan) -> Result<usize, String> {
        if let Some(what) = fixed(&self.config, &plan.config) {
            return Err(format!("`{what}` has changed, which takes a restart\n"));
        }
        let places = self.sinks.places(&plan.config.sinks);
        plan.place_sinks(&places);
        let started = match (&plan.fleet, &self.fleet) {
            // The fleet gets its sinks once no step can fail any more.
            (Some(new), None) => {
                let (engine, targets) = (Arc::clone(&self.engine), plan.targets.clone());
                let started = FleetThread::start::<W>(engine, new, targets, Outlets::default());
                Some(started.map_err(no_thread)?)
            }
            _ => None,
        };
        let sinks = std::mem::take(&mut self.sinks);
        match sinks.follow::<W>(&plan.config.sinks, &places, &self.newest) {
            Ok(sinks) => self.sinks = sinks,
            Err((sinks, problem)) => {
                self.sinks = sinks;
                return Err(problem);
            }
        }
        let outlets = self.sinks.outlets();
        self.fleet = self.fleet.take().or(started).and_then(|fleet| match &plan.fleet {
            Some(new) => {
                fleet.follow(new, plan.targets.clone(), outlets.clone());
                Some(fleet)
            }
            None => {
                fleet.leave();
                None
            }
        });
        let outlets = outlets.with(self.fleet.as_ref().map(FleetThread::inlet));
        self.hosts.follow(&plan, &outlets);
        self.config = plan.config;
        Ok(plan.targets.len())
    }

    /// Ends everything. No series is marked stale. Sinks deliver their events until the
    /// deadline. Returns the final numbers of each sink, with its name.
    pub fn stop(self, deadline: Instant) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        self.hosts.stop(deadline);
        if let Some(fleet) = self.fleet {
            fleet.stop(deadline);
        }
        self.sinks.stop(deadline)
    }

    /// For each thread, by name, a number that grows every second unless the thread is stuck.
    pub fn beats(&self) -> Vec<(String, u64)> {
        let hosts = self.hosts.beats().into_iter().enumerate();
        let hosts = hosts.map(|(at, beat)| (format!("fleet {at}"), beat));
        let fleet = self.fleet.iter().map(|fleet| ("stage two".to_owned(), fleet.beat()));
        hosts.chain(fleet).chain(self.sinks.beats()).collect()
    }
}

fn no_thread(error: std::io::Error) -> String {
    format!("no thread for the fleet: {error}\n")
}

/// The first changed key that only a restart can change.
fn fixed(before: &Config, after: &Config) -> Option<&'static str> {
    let keys = [
        ("compat", before.language.dialect != after.language.dialect),
        ("extensions", before.language.extensions != after.language.extensions),
        ("threads", before.threads != after.threads),
        ("listen", before.listen != after.listen),
        ("web", before.web != after.web),
        ("kinds", before.limits.kinds != after.limits.kinds),
        ("connects", before.limits.connects != after.limits.connects),
    ];
    keys.into_iter().find(|(_, has_changed)| *has_changed).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::condition::State;
    use crate::fleet::plan::{Origin, load};
    use crate::fleet::targets::target::GroupId;
    use crate::fleet::world::tests::FlawedMachine;

    #[test]
    fn a_plan_that_cannot_start_leaves_all_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        write("hosts.json", "[]");
        write("a.conf", "a.b = hinv.ncpu\n");
        write("fleet.conf", "f.x = sum(a.b)\n");
        let plan = |sink: &str, fleet: &str| {
            let group = "[[group]]\nname = 'g'\ntargets = ['hosts.json']\n\
                         definitions = ['a.conf']\nexport = ['a.*']\n";
            let sink = format!("[[sink]]\nname = '{sink}'\nkind = 'json-lines'\npath = '{sink}'\n");
            write("serve.toml", &format!("{fleet}{group}{sink}"));
            let mut loaded = load(&Origin::File(folder.path().join("serve.toml")));
            let report = loaded.report();
            loaded.plan.expect(&report)
        };
        let mut active = ActivePlan::<FlawedMachine>::start(plan("one", "")).expect("it starts");
        let over_fleet = "[fleet]\ndefinitions = ['fleet.conf']\nexport = ['*']\n";
        let refused = active.follow(plan("two", over_fleet));
        assert!(refused.is_err_and(|problem| problem.starts_with("no thread")));
        let names: Vec<_> = active.sinks.numbers().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["one".into()]);
        active.stop(Instant::now());
    }

    #[test]
    fn hosts_stay_as_they_are_when_a_group_comes_before_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        write("hosts.json", "[{\"targets\": [\"nowhere\"]}]");
        write("more.json", "[]");
        write("a.conf", "a.b = hinv.ncpu\n");
        let group = |name: &str| {
            format!(
                "[[group]]\nname = '{name}'\ntargets = ['{name}.json']\n\
                 definitions = ['a.conf']\nexport = ['a.*']\n"
            )
        };
        let plan = |groups: &[&str]| {
            let groups: String = groups.iter().map(|name| group(name)).collect();
            let sink = "[[sink]]\nkind = 'json-lines'\npath = '/dev/null'\n";
            write("serve.toml", &format!("interval = '1 day'\n{groups}{sink}"));
            let mut loaded = load(&Origin::File(folder.path().join("serve.toml")));
            let report = loaded.report();
            loaded.plan.expect(&report)
        };
        let mut active = ActivePlan::<FlawedMachine>::start(plan(&["hosts"])).expect("it starts");
        let of = |active: &ActivePlan<FlawedMachine>| {
            active.hosts.condition("nowhere:44321").expect("a host")
        };
        // Its slot, if it has come already, does not end today.
        of(&active).update(|latest| latest.state = State::Up);
        active.follow(plan(&["more", "hosts"])).expect("nothing is wrong");
        assert_eq!(of(&active).latest().state, State::Up);
        assert_eq!(of(&active).target().group, GroupId(1));
        active.stop(Instant::now());
    }
}
