//! `serve` as a whole: the plan in force, its fleet, sinks and listener, and the
//! way to the next plan.

mod active_plan;
mod losses;
mod open_files;
mod own_metrics;
mod pages;
mod process;
mod running_sinks;
mod stage_two;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use pmderive_runtime::locks::lock;

use super::plan::{Loaded, Origin, Plan, load};
use super::sinks::http::{Changing, Listen, Listener};
use super::sinks::numbers::SinkNumbers;
use super::world::Machine;
use crate::stamps::Stamps;
pub use active_plan::InForce;
pub use losses::Losses;
pub use open_files::allow_files;

/// What came of reading all files again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reread {
    /// Hosts that are watched now.
    pub hosts: usize,
    /// Those of them that were not watched before.
    pub added: usize,
    /// Hosts that are watched no longer.
    pub removed: usize,
}

/// A fleet being watched and served.
pub struct Server {
    shared: Arc<Shared>,
    listener: Option<Listener>,
}

/// What the listener shows, too.
struct Shared {
    origin: Origin,
    started: Instant,
    state: Mutex<State>,
    /// What changes of the listener, once there is one.
    listener: OnceLock<Changing>,
    /// Held by whoever reads files again.
    reloading: Mutex<()>,
    reloads: AtomicU64,
    /// The files were refused when they were read last.
    is_refused: AtomicBool,
}

/// What changes with a reload.
struct State {
    /// Nothing once it has ended.
    in_force: Option<InForce<Machine>>,
    stamps: Stamps,
}

/// Most mistakes and warnings that a report shows.
const MAX_REPORTED: usize = 20;

impl Server {
    /// Says what of a plan can be seen to fail without starting anything.
    ///
    /// # Errors
    /// The listener would be open to others.
    pub fn check(plan: &Plan) -> Result<(), String> {
        listen(plan).map_or(Ok(()), |listen| listen.check())
    }

    /// Says which certificates, keys, tokens and passwords cannot be used, each in words.
    /// They may be on another machine than where a plan is checked.
    pub fn unusable_files(plan: &Plan) -> Vec<String> {
        let listener = listen(plan).and_then(|listen| listen.check_files().err());
        let listener = listener.map(|error| format!("the listener would not start here: {error}"));
        let groups = plan.config.groups.iter().zip(&plan.groups);
        let of_groups = groups
            .flat_map(|(group, all)| running_sinks::unusable_of_group(group, &all.options.tls));
        let of_sinks = running_sinks::unusable_files(&plan.config.sinks);
        listener.into_iter().chain(of_groups).chain(of_sinks).collect()
    }

    /// Begins with a plan, which is made of files that were like this.
    ///
    /// # Errors
    /// A sink or the listener cannot be started, in words.
    pub fn start(origin: Origin, plan: Plan, stamps: Stamps) -> Result<Server, String> {
        let listen = listen(&plan);
        let in_force = InForce::start(plan)?;
        let listen = listen.map(|listen| Listen { sink: in_force.shown(), ..listen });
        let newest = Arc::clone(in_force.newest());
        let shared = Arc::new(Shared {
            origin,
            started: Instant::now(),
            state: Mutex::new(State { in_force: Some(in_force), stamps }),
            listener: OnceLock::new(),
            reloading: Mutex::default(),
            reloads: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        });
        let listener = listen
            .map(|listen| Listener::start(listen, newest, Arc::clone(&shared) as Arc<_>))
            .transpose();
        match listener {
            Ok(listener) => {
                if let Some(listener) = &listener {
                    // It is set once, here.
                    let _ = shared.listener.set(listener.changing().clone());
                }
                Ok(Server { shared, listener })
            }
            Err(error) => {
                Server { shared, listener: None }.stop(Instant::now());
                Err(error)
            }
        }
    }

    /// For each thread, by name, a number that grows every second unless the thread is
    /// stuck.
    pub fn beats(&self) -> Vec<(String, u64)> {
        let mut beats = self.shared.of(InForce::beats);
        let listener = self.listener.as_ref();
        beats.extend(listener.map(|one| ("listener".to_owned(), one.beat())));
        beats
    }

    /// What the engine has to say, such as why it ignores a file or compiles nothing; it
    /// says so once.
    pub fn take_warning(&self) -> Option<String> {
        self.shared.of(|all| all.engine.take_warning())
    }

    /// Slots of hosts that never began.
    pub fn missed(&self) -> u64 {
        self.shared.of(|all| all.numbers().missed.get())
    }

    /// What sinks have counted, each with its name.
    pub fn sinks(&self) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        self.shared.of(InForce::of_sinks)
    }

    /// True if a file that was read is another one than it was.
    pub fn files_changed(&self) -> bool {
        self.shared.lock().stamps.have_changed()
    }

    /// Reads all files again. What did not change goes on as it was.
    ///
    /// # Errors
    /// Something is wrong with the files, and what was read before stays in force: what, for
    /// people to read. The log says so, too.
    pub fn reload(&self) -> Result<Reread, String> {
        self.shared.reload()
    }

    /// Opens the files that are written to anew.
    pub fn reopen(&self) {
        self.shared.of(|all| all.sinks.reopen());
    }

    /// True if all that it had to do was to write to a standard output that nobody reads
    /// any more.
    pub fn is_output_closed(&self) -> bool {
        self.listener.is_none() && self.shared.of(|all| all.sinks.are_closed())
    }

    /// Ends everything. No series is marked stale; sinks deliver what they have
    /// until the deadline. Gives what they have counted, each with its name.
    pub fn stop(self, deadline: Instant) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        let in_force = self.shared.lock().in_force.take();
        let sinks = in_force.map(|in_force| in_force.stop(deadline.into()));
        if let Some(listener) = self.listener {
            listener.stop(deadline);
        }
        sinks.unwrap_or_default()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Reads a part of the running plan; gives nothing after the end of the server.
    fn of<T: Default>(&self, read: impl FnOnce(&InForce<Machine>) -> T) -> T {
        self.lock().in_force.as_ref().map(read).unwrap_or_default()
    }

    fn reload(&self) -> Result<Reread, String> {
        let _one_at_a_time = lock(&self.reloading);
        self.reloads.fetch_add(1, Ordering::Relaxed);
        let mut loaded = load(&self.origin);
        // Whatever it is, the files are known now, and looked at again when they change.
        self.lock().stamps = std::mem::take(&mut loaded.files);
        let outcome = match loaded.plan.take() {
            None => Err(loaded.report()),
            Some(plan) => self.follow(plan),
        };
        if outcome.is_ok() && !loaded.diagnostics.is_empty() {
            tracing::warn!("what was read has warnings\n{}", loaded.report().trim_end());
        }
        self.is_refused.store(outcome.is_err(), Ordering::Relaxed);
        outcome.inspect_err(|report| {
            tracing::error!(
                "refused; the configuration before stays in use\n{}",
                report.trim_end()
            );
        })
    }

    /// Goes over to a plan, with the files of the listener; to nothing of it if anything
    /// is wrong.
    fn follow(&self, plan: Plan) -> Result<Reread, String> {
        let listener = self.listener.get();
        let files = listener.map(Changing::read).transpose();
        let files = files.map_err(|error| format!("error: {error}\n"))?;
        allow_files(plan.targets.len()).map_err(|problem| format!("error: {problem}\n"))?;
        let mut state = self.lock();
        let Some(in_force) = &mut state.in_force else { return Err("it is ending\n".to_owned()) };
        let conditions = in_force.fleet.conditions();
        let known: HashSet<&str> = conditions.iter().map(|one| &*one.target().name).collect();
        let added = plan.targets.iter().filter(|one| !known.contains(&*one.name)).count();
        let hosts = in_force.follow(plan)?;
        let removed = (known.len() + added).saturating_sub(hosts);
        if let (Some(listener), Some(files)) = (listener, files) {
            listener.renew(files);
            listener.show(in_force.shown());
        }
        Ok(Reread { hosts, added, removed })
    }
}

/// How the listener is to be, if there is to be one.
fn listen(plan: &Plan) -> Option<Listen> {
    let address = plan.config.listen?;
    let web = &plan.config.web;
    let (tls, token_file) = (web.identity.clone(), web.token_file.clone());
    Some(Listen { tls, token_file, ..Listen::on(address) })
}

impl Loaded {
    /// What is wrong, for people to read.
    pub fn report(&mut self) -> String {
        use crate::diag::render::{Renderer, Style};
        let mut report: String =
            self.problems.iter().map(|problem| format!("error: {problem}\n")).collect();
        let more = self.diagnostics.len().saturating_sub(MAX_REPORTED);
        self.diagnostics.sort();
        self.diagnostics.keep_worst(MAX_REPORTED);
        let mut renderer = Renderer::default();
        for diagnostic in self.diagnostics.iter() {
            report += &renderer.render(diagnostic, &self.sources, Style::Plain);
        }
        if more > 0 {
            report += &format!("and {more} more, which --check shows\n");
        }
        report
    }
}
