//! What is in force: the fleet, sinks and aggregates of a plan, and the way to those
//! of the next one. Where plans come from is not known here.

use std::marker::PhantomData;
use std::sync::Arc;

use tokio::time::Instant;

use super::running_sinks::Sinks;
use super::stage_two::Computing;
use crate::engine::{Backend, Engine};
use crate::fleet::config::Config;
use crate::fleet::engine::Fleet;
use crate::fleet::numbers::HostNumbers;
use crate::fleet::outlets::Outlets;
use crate::fleet::plan::Plan;
use crate::fleet::sink_set::SinkPlace;
use crate::fleet::sinks::newest_frames::Newest;
use crate::fleet::sinks::numbers::SinkNumbers;
use crate::fleet::world::World;

/// A plan that is being carried out.
pub struct InForce<W: World> {
    pub(super) config: Config,
    pub(super) engine: Arc<Engine>,
    newest: Arc<Newest>,
    pub(super) fleet: Fleet,
    /// What computes across hosts.
    pub(super) across: Option<Computing>,
    pub(super) sinks: Sinks,
    world: PhantomData<fn() -> W>,
}

impl<W: World> InForce<W> {
    /// Begins with a plan.
    ///
    /// # Errors
    /// A sink cannot be started, or there is no thread; in words.
    pub fn start(mut plan: Plan) -> Result<InForce<W>, String> {
        let limits = plan.config.limits;
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
        let places = self.sinks.places(&plan.config.sinks);
        plan.place_sinks(&places);
        let started = match (&plan.fleet, &self.across) {
            // It gets its sinks once nothing can be refused any more.
            (Some(new), None) => {
                let (engine, targets) = (Arc::clone(&self.engine), plan.targets.clone());
                let started = Computing::start::<W>(engine, new, targets, Outlets::default());
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
        self.across = self.across.take().or(started).and_then(|across| match &plan.fleet {
            Some(new) => {
                across.follow(new, plan.targets.clone(), outlets.clone());
                Some(across)
            }
            None => {
                across.leave();
                None
            }
        });
        let outlets = outlets.with(self.across.as_ref().map(Computing::across));
        self.fleet.follow(&plan, &outlets);
        self.config = plan.config;
        Ok(plan.targets.len())
    }

    /// Ends everything. No series is marked stale; sinks deliver what they have
    /// until the deadline. Gives what they have counted, each with its name.
    pub fn stop(self, deadline: Instant) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        self.fleet.stop(deadline);
        if let Some(across) = self.across {
            across.stop(deadline);
        }
        self.sinks.stop(deadline)
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

    /// The numbers of each sink, with its name.
    pub fn of_sinks(&self) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        self.sinks.numbers()
    }

    /// For each thread, by name, a number that grows every second unless it is stuck.
    pub fn beats(&self) -> Vec<(String, u64)> {
        let fleet = self.fleet.beats().into_iter().enumerate();
        let fleet = fleet.map(|(at, beat)| (format!("fleet {at}"), beat));
        let across = self.across.iter().map(|across| ("stage two".to_owned(), across.beat()));
        fleet.chain(across).chain(self.sinks.beats()).collect()
    }
}

fn no_thread(error: std::io::Error) -> String {
    format!("no thread for the fleet: {error}\n")
}

/// The first key that cannot change while the process runs, and has.
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
    use crate::fleet::target::GroupId;
    use crate::fleet::world::Flawed;

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
        let mut in_force = InForce::<Flawed>::start(plan("one", "")).expect("it starts");
        let across = "[fleet]\ndefinitions = ['fleet.conf']\nexport = ['*']\n";
        let refused = in_force.follow(plan("two", across));
        assert!(refused.is_err_and(|problem| problem.starts_with("no thread")));
        let names: Vec<_> = in_force.of_sinks().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["one".into()]);
        in_force.stop(Instant::now());
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
        let mut in_force = InForce::<Flawed>::start(plan(&["hosts"])).expect("it starts");
        let of =
            |in_force: &InForce<Flawed>| in_force.fleet.condition("nowhere:44321").expect("a host");
        // Its slot, if it has come already, does not end today.
        of(&in_force).update(|latest| latest.state = State::Up);
        in_force.follow(plan(&["more", "hosts"])).expect("nothing is wrong");
        assert_eq!(of(&in_force).latest().state, State::Up);
        assert_eq!(of(&in_force).target().group, GroupId(1));
        in_force.stop(Instant::now());
    }
}
