//! `serve` as a whole: the active plan with its fleet, sinks and listener, and the change to
//! the next plan.

mod active_plan;
mod fleet_thread;
mod losses;
mod open_files;
mod own_metrics;
mod pages;
mod process;
mod running_sinks;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError, mpsc};
use std::time::{Duration, Instant};

use pmderive_runtime::locks::lock;

use super::plan::{LoadedPlan, Origin, Plan, load};
use super::sinks::http::{Listen, Listener, ListenerSettings};
use super::sinks::numbers::SinkNumbers;
use super::world::Machine;
use crate::stamps::Stamps;
pub use active_plan::ActivePlan;
pub use losses::Losses;
pub use open_files::allow_files;

/// Result of reading all files again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reread {
    /// Hosts that are watched now.
    pub hosts: usize,
    /// Watched hosts that are new.
    pub added: usize,
    /// Hosts that are no longer watched.
    pub removed: usize,
}

/// A fleet being watched and served.
pub struct Server {
    shared: Arc<Shared>,
    listener: Option<Listener>,
}

/// The files behind a server. A look at them can hang, as on a network, while the server goes
/// on and can end.
pub struct Files(Arc<Shared>);

impl Files {
    /// True if a file has changed since it was read.
    pub fn have_changed(&self) -> bool {
        let stamps = Arc::clone(&self.0.lock().stamps);
        stamps.have_changed()
    }

    /// Reads all files again. Unchanged parts go on. If the files have mistakes, the old plan stays
    /// active. The log reports it.
    pub fn reload(&self) {
        let _ = self.0.reload();
    }
}

/// State that the listener shows as well.
struct Shared {
    origin: Origin,
    started: Instant,
    state: Mutex<State>,
    /// Settings of the listener, once there is one.
    listener: OnceLock<ListenerSettings>,
    /// Held during a reload.
    reloading: Mutex<()>,
    /// True while a reload waits for the one before it.
    is_waiting: AtomicBool,
    /// The number of readings of the files that hang.
    hanging: Arc<AtomicUsize>,
    reloads: AtomicU64,
    /// True if the files were refused when they were last read.
    is_refused: AtomicBool,
}

/// State that a reload changes.
struct State {
    /// The active plan; `None` after the end.
    active: Option<ActivePlan<Machine>>,
    stamps: Arc<Stamps>,
    /// The warnings about the files that were logged last.
    warnings: String,
}

/// How long a reload waits for the one before it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a reload waits for its files.
const READING: Duration = Duration::from_secs(20);

/// Most readings of the files that may hang. Each keeps a thread.
const MAX_HANGING: usize = 4;

/// Most mistakes and warnings that a report shows.
const MAX_REPORTED: usize = 20;

impl Server {
    /// Checks the parts of a plan that can be checked without starting anything.
    ///
    /// # Errors
    /// The listener would be open to others.
    pub fn check(plan: &Plan) -> Result<(), String> {
        listen(plan).map_or(Ok(()), |listen| listen.check())
    }

    /// Lists certificates, keys, tokens and passwords that cannot be used, each in words. A
    /// plan may be checked on another machine than the one with these files.
    pub fn unusable_files(plan: &Plan) -> Vec<String> {
        let listener = listen(plan).and_then(|listen| listen.check_files().err());
        let listener = listener.map(|error| format!("the listener would not start here: {error}"));
        let groups = plan.config.groups.iter().zip(&plan.groups);
        let of_groups = groups
            .flat_map(|(group, all)| running_sinks::unusable_of_group(group, &all.options.tls));
        let of_sinks = running_sinks::unusable_files(&plan.config.sinks);
        listener.into_iter().chain(of_groups).chain(of_sinks).collect()
    }

    /// Starts a plan. `stamps` are those of its files.
    ///
    /// # Errors
    /// A sink or the listener cannot be started; the text says why.
    pub fn start(origin: Origin, plan: Plan, stamps: Stamps) -> Result<Server, String> {
        let listen = listen(&plan);
        let active = ActivePlan::start(plan)?;
        let listen = listen.map(|listen| Listen { sink: active.sinks.shown(), ..listen });
        let newest = Arc::clone(&active.newest);
        let shared = Arc::new(Shared {
            origin,
            started: Instant::now(),
            state: Mutex::new(State {
                active: Some(active),
                stamps: Arc::new(stamps),
                warnings: String::new(),
            }),
            listener: OnceLock::new(),
            reloading: Mutex::default(),
            is_waiting: AtomicBool::new(false),
            hanging: Arc::default(),
            reloads: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        });
        let listener = listen
            .map(|listen| Listener::start(listen, newest, Arc::clone(&shared) as Arc<_>))
            .transpose();
        match listener {
            Ok(listener) => {
                if let Some(listener) = &listener {
                    // This is the only call that sets it.
                    let _ = shared.listener.set(listener.settings().clone());
                }
                Ok(Server { shared, listener })
            }
            Err(error) => {
                Server { shared, listener: None }.stop(Instant::now());
                Err(error)
            }
        }
    }

    /// For each thread, by name, a number that grows every second unless the thread is stuck.
    pub fn beats(&self) -> Vec<(String, u64)> {
        let mut beats = self.shared.read_plan(ActivePlan::beats);
        let listener = self.listener.as_ref();
        beats.extend(listener.map(|one| ("listener".to_owned(), one.beat())));
        beats
    }

    /// Takes a warning of the engine, such as why it ignores a file or compiles nothing.
    pub fn take_warning(&self) -> Option<String> {
        self.shared.read_plan(|all| all.engine.take_warning())
    }

    /// Slots of hosts that never began.
    pub fn missed(&self) -> u64 {
        self.shared.read_plan(|all| all.hosts.numbers().missed.get())
    }

    /// The numbers of each sink, with its name.
    pub fn sinks(&self) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        self.shared.read_plan(|all| all.sinks.numbers())
    }

    /// The files of the server.
    pub fn files(&self) -> Files {
        Files(Arc::clone(&self.shared))
    }

    /// Opens the files of sinks again.
    pub fn reopen(&self) {
        self.shared.read_plan(|all| all.sinks.reopen());
    }

    /// True if the only sink writes to a standard output that has no reader any more.
    pub fn is_output_closed(&self) -> bool {
        self.listener.is_none() && self.shared.read_plan(|all| all.sinks.are_closed())
    }

    /// Ends everything. No series is marked stale. Sinks deliver their events until the
    /// deadline. Returns the final numbers of each sink, with its name.
    pub fn stop(self, deadline: Instant) -> Vec<(Box<str>, Arc<SinkNumbers>)> {
        let active = self.shared.lock().active.take();
        let sinks = active.map(|active| active.stop(deadline.into()));
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

    /// Reads a part of the active plan. After the end of the server it returns the default.
    fn read_plan<T: Default>(&self, read: impl FnOnce(&ActivePlan<Machine>) -> T) -> T {
        self.lock().active.as_ref().map(read).unwrap_or_default()
    }

    /// The right to read the files. `None` if another reader does not finish, or if somebody waits
    /// for it already: the threads that wait here have other work.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let at_once = || match self.reloading.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(fallen)) => Some(fallen.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let mut turn = at_once();
        if turn.is_some() || self.is_waiting.swap(true, Ordering::Relaxed) {
            return turn;
        }
        let end = Instant::now() + PATIENCE;
        while turn.is_none() && Instant::now() < end {
            std::thread::sleep(PATIENCE / 500);
            turn = at_once();
        }
        self.is_waiting.store(false, Ordering::Relaxed);
        turn
    }

    /// Reads the files in a thread of their own, which is left alone if one of them hangs, as on a
    /// network.
    ///
    /// # Errors
    /// They cannot be read now; the text says why.
    fn load(&self) -> Result<LoadedPlan, String> {
        if self.hanging.load(Ordering::Relaxed) >= MAX_HANGING {
            return Err(
                "error: files hang while they are read, so they are not read again\n".into()
            );
        }
        let (origin, hanging) = (self.origin.clone(), Arc::clone(&self.hanging));
        let (sender, receiver) = mpsc::sync_channel(0);
        let read = move || {
            if sender.send(load(&origin)).is_err() {
                hanging.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("reading".to_owned()).spawn(read);
        thread.map_err(|error| format!("error: the files cannot be read: {error}\n"))?;
        receiver.recv_timeout(READING).map_err(|_| {
            self.hanging.fetch_add(1, Ordering::Relaxed);
            let seconds = READING.as_secs();
            format!("error: the files were not read in {seconds} seconds; one may hang\n")
        })
    }

    fn reload(&self) -> Result<Reread, String> {
        let Some(_one_at_a_time) = self.turn() else {
            return Err("error: the files are being read already, and one may hang\n".to_owned());
        };
        self.reloads.fetch_add(1, Ordering::Relaxed);
        let mut loaded = match self.load() {
            Ok(loaded) => loaded,
            Err(report) => return self.refused(report),
        };
        // Good or bad, the files are known now. They are read again after the next change.
        self.lock().stamps = Arc::new(std::mem::take(&mut loaded.files));
        let outcome = match loaded.plan.take() {
            None => Err(loaded.report()),
            Some(plan) => self.follow(plan),
        };
        if let Ok(Reread { hosts, added, removed }) = outcome {
            tracing::info!(hosts, added, removed, "read again");
            let report = loaded.report();
            let before = std::mem::replace(&mut self.lock().warnings, report.clone());
            if report == before && !report.is_empty() {
                tracing::warn!("there are the same warnings about the files as before");
            } else if !report.is_empty() {
                tracing::warn!("there are warnings about the files\n{}", report.trim_end());
            }
        }
        self.is_refused.store(false, Ordering::Relaxed);
        outcome.or_else(|report| self.refused(report))
    }

    /// Notes and logs that a reload was refused.
    fn refused(&self, report: String) -> Result<Reread, String> {
        self.is_refused.store(true, Ordering::Relaxed);
        tracing::error!("refused; the configuration before stays in use\n{}", report.trim_end());
        Err(report)
    }

    /// Changes to a plan and the files of the listener. On a mistake nothing changes.
    fn follow(&self, plan: Plan) -> Result<Reread, String> {
        let listener = self.listener.get();
        let files = listener.map(ListenerSettings::read).transpose();
        let files = files.map_err(|error| format!("error: {error}\n"))?;
        allow_files(plan.targets.len()).map_err(|problem| format!("error: {problem}\n"))?;
        let mut state = self.lock();
        let Some(active) = &mut state.active else { return Err("it is ending\n".to_owned()) };
        let conditions = active.hosts.conditions();
        let known: HashSet<&str> = conditions.iter().map(|one| &*one.target().name).collect();
        let added = plan.targets.iter().filter(|one| !known.contains(&*one.name)).count();
        let hosts = active.follow(plan)?;
        let removed = (known.len() + added).saturating_sub(hosts);
        if let (Some(listener), Some(files)) = (listener, files) {
            listener.renew(files);
            listener.show(active.sinks.shown());
        }
        Ok(Reread { hosts, added, removed })
    }
}

/// The settings of the listener, if the plan has one.
fn listen(plan: &Plan) -> Option<Listen> {
    let address = plan.config.listen?;
    let web = &plan.config.web;
    let (tls, token_file) = (web.identity.clone(), web.token_file.clone());
    Some(Listen { tls, token_file, ..Listen::on(address) })
}

impl LoadedPlan {
    /// All mistakes, for people to read.
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
