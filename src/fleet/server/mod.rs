//! `serve` as a whole: the plan in force, its fleet, sinks and listener, and the
//! way to the next plan.

mod own;
mod pages;
mod running;
mod stage_two;
mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::config::Config;
use super::engine::Fleet;
use super::plan::{Loaded, Origin, Plan, load};
use super::sinks::http::{Listen, Listener};
use super::sinks::newest::Newest;
use super::sinks::numbers::Numbers as SinkNumbers;
use super::sinks::tls::Identity;
use super::world::Machine;
use crate::engine::{Backend, Engine};
use running::Sinks;
use stage_two::Computing;
use watch::Stamps;

/// A fleet being watched and served.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listener: Option<Listener>,
}

/// What the listener shows, too.
struct Shared {
    origin: Origin,
    engine: Arc<Engine>,
    started: Instant,
    /// The newest frames, if the listener shows any.
    newest: Arc<Newest>,
    scrapes: Arc<SinkNumbers>,
    state: Mutex<State>,
    /// Held by whoever reads files again.
    reloading: Mutex<()>,
    reloads: AtomicU64,
    /// The files were refused when they were read last.
    is_refused: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// What is in force.
struct State {
    config: Config,
    fleet: Option<Fleet>,
    /// What computes across hosts.
    across: Option<Computing>,
    sinks: Sinks,
    stamps: Stamps,
}

/// What became of reading the files again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// They are in force.
    Done {
        /// Hosts that are watched now.
        hosts: usize,
    },
    /// Something is wrong with them, and what was read before is in force: what, for
    /// people to read.
    Refused(String),
}

impl Server {
    /// Says what of a plan can be seen to fail without starting anything.
    ///
    /// # Errors
    /// The listener would be open to others, or a receiver has no address.
    pub fn check(plan: &Plan) -> Result<(), String> {
        if let Some(listen) = listen(plan, None) {
            listen.check().map_err(|error| error.to_string())?;
        }
        running::check(&plan.config.sinks)
    }

    /// Begins with a plan, which is made of `files`.
    ///
    /// # Errors
    /// A sink or the listener cannot be started, in words.
    pub fn start(origin: Origin, plan: Plan, files: Vec<PathBuf>) -> Result<Server, String> {
        let limits = plan.limits();
        let engine = Engine::new(plan.config.language, Backend::Auto).with_kind_limit(limits.kinds);
        let engine = Arc::new(engine);
        let newest = Arc::new(Newest::default());
        let stamps = Stamps::of(files);
        let sinks = Sinks::default().follow(&plan.config.sinks, &newest);
        let sinks = sinks.map_err(|(_, problem)| problem)?;
        let threads = plan.config.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        let outlets = sinks.outlets();
        let across = plan.fleet.as_ref().map(|across| {
            let (engine, targets) = (Arc::clone(&engine), plan.targets.clone());
            Computing::start(engine, across, targets, outlets.clone())
        });
        let across = across.transpose();
        let across = across.map_err(|error| format!("no thread for the fleet: {error}"))?;
        let outlets = outlets.with(across.as_ref().map(Computing::across));
        let fleet = Fleet::start::<Machine>(&engine, threads, limits, &outlets);
        let mut fleet = fleet.map_err(|error| format!("no thread for the fleet: {error}"))?;
        let listen = listen(&plan, sinks.shown());
        fleet.follow(&plan, &outlets);
        let state = State { config: plan.config, fleet: Some(fleet), across, sinks, stamps };
        let shared = Arc::new(Shared {
            origin,
            engine,
            started: Instant::now(),
            newest,
            scrapes: Arc::default(),
            state: Mutex::new(state),
            reloading: Mutex::default(),
            reloads: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        });
        let listener = listen
            .map(|listen| {
                let (newest, scrapes) = (Arc::clone(&shared.newest), Arc::clone(&shared.scrapes));
                Listener::start(listen, newest, scrapes, Arc::clone(&shared) as Arc<_>)
            })
            .transpose();
        match listener {
            Ok(listener) => Ok(Server { shared, listener }),
            Err(error) => {
                Server { shared, listener: None }.stop(Instant::now());
                Err(error.to_string())
            }
        }
    }

    /// Where metrics are served.
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.listener.as_ref().map(Listener::address)
    }

    /// A number for each thread of the fleet, which grows every second unless the
    /// thread is stuck.
    pub fn beats(&self) -> Vec<u64> {
        self.shared.lock().fleet.as_ref().map(Fleet::beats).unwrap_or_default()
    }

    /// True if a file that was read is another one than it was.
    pub fn files_changed(&self) -> bool {
        self.shared.lock().stamps.have_changed()
    }

    /// Reads all files again. What did not change goes on as it was.
    pub fn reload(&self) -> Reload {
        if let Some(listener) = &self.listener
            && let Err(error) = listener.renew()
        {
            return Reload::Refused(error.to_string());
        }
        self.shared.reload()
    }

    /// Opens the files that are written to anew.
    pub fn reopen(&self) {
        self.shared.lock().sinks.reopen();
    }

    /// Ends everything. No series is marked stale; sinks deliver what they have
    /// until the deadline.
    pub fn stop(self, deadline: Instant) {
        let (fleet, across, sinks) = {
            let mut state = self.shared.lock();
            (state.fleet.take(), state.across.take(), std::mem::take(&mut state.sinks))
        };
        if let Some(fleet) = fleet {
            fleet.stop();
        }
        if let Some(across) = across {
            across.stop();
        }
        sinks.stop(deadline);
        if let Some(listener) = self.listener {
            listener.stop(deadline);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reload(&self) -> Reload {
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        self.reloads.fetch_add(1, Ordering::Relaxed);
        let mut loaded = load(&self.origin);
        // Whatever it is, the files are known now, and looked at again when they change.
        self.lock().stamps = Stamps::of(loaded.files.clone());
        let outcome = match loaded.plan.take() {
            None => Err(loaded.report()),
            Some(plan) => self.follow(plan),
        };
        self.is_refused.store(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Ok(hosts) => Reload::Done { hosts },
            Err(report) => Reload::Refused(report),
        }
    }

    fn follow(&self, plan: Plan) -> Result<usize, String> {
        let mut state = self.lock();
        if let Some(what) = fixed(&state.config, &plan.config) {
            return Err(format!("`{what}` has changed, which takes a restart\n"));
        }
        let sinks = std::mem::take(&mut state.sinks);
        match sinks.follow(&plan.config.sinks, &self.newest) {
            Ok(sinks) => state.sinks = sinks,
            Err((sinks, problem)) => {
                state.sinks = sinks;
                return Err(problem);
            }
        }
        let outlets = state.sinks.outlets();
        let outlets = match (&plan.fleet, state.across.take()) {
            (None, across) => {
                if let Some(across) = across {
                    across.stop();
                }
                outlets
            }
            (Some(new), across) => {
                let across = match across {
                    Some(across) => {
                        across.follow(new, plan.targets.clone(), outlets.clone());
                        across
                    }
                    None => {
                        let (engine, targets) = (Arc::clone(&self.engine), plan.targets.clone());
                        Computing::start(engine, new, targets, outlets.clone())
                            .map_err(|error| format!("no thread for the fleet: {error}\n"))?
                    }
                };
                let outlets = outlets.with(Some(across.across()));
                state.across = Some(across);
                outlets
            }
        };
        if let Some(fleet) = &mut state.fleet {
            fleet.follow(&plan, &outlets);
        }
        state.config = plan.config;
        Ok(plan.targets.len())
    }
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

/// How the listener is to be, if there is to be one.
fn listen(plan: &Plan, shown: Option<u32>) -> Option<Listen> {
    let address = plan.listen()?.value;
    let web = &plan.config.web;
    let identity = web.certificate.clone();
    let tls = identity.map(|(certificate, key)| Identity { certificate, key });
    Some(Listen { tls, token_file: web.token_file.clone(), sink: shown, ..Listen::on(address) })
}

impl Loaded {
    /// What is wrong, for people to read.
    pub fn report(&mut self) -> String {
        use crate::diag::render::{Renderer, Style};
        let mut report: String =
            self.problems.iter().map(|problem| format!("error: {problem}\n")).collect();
        self.diagnostics.sort();
        let mut renderer = Renderer::default();
        for diagnostic in self.diagnostics.iter().take(20) {
            report += &renderer.render(diagnostic, &self.sources, Style::Plain);
        }
        report
    }
}
