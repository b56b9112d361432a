//! `pmderive serve`: watches a fleet until a signal ends it.
//!
//! [`crate::fleet`] does the work. This module handles arguments, signals and the end. SIGTERM
//! and SIGINT end the server. SIGHUP makes it read its files again. SIGUSR1 makes it reopen the
//! files that it writes to.

mod arguments;
mod service;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::fleet::plan::{LoadedPlan, load};
use crate::fleet::server::{Files, Losses, Server, allow_files};
use crate::syntax::counted;

use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::signals::{self, Signals};
use super::stop::Stop;
use super::terminal::Purpose;
pub use arguments::ServeArguments;
use service::Service;

/// Time between checks of files for changes.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(arguments: &ServeArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    let origin = arguments.origin()?;
    if !arguments.check {
        // What makes a server read or open its files again does not end one that begins.
        [SIGHUP, SIGUSR1].into_iter().for_each(signals::outlive);
    }
    let mut loaded = load(&origin);
    tell(&mut loaded, messages);
    let Some(plan) = loaded.plan.take() else { return Ok(ExitStatus::Mistake) };
    if let Err(problem) = Server::check(&plan) {
        messages.error(&problem);
        return Ok(ExitStatus::Mistake);
    }
    if arguments.check {
        for problem in Server::unusable_files(&plan) {
            messages.warning(&problem);
        }
        let exports = plan.groups.iter().flat_map(|group| &*group.exports);
        let exported = exports.filter(|export| export.is_chosen).count();
        let line = format!(
            "{} in {}, {}, {} exported, {}\n",
            counted(plan.targets.len(), "host"),
            counted(plan.groups.len(), "group"),
            counted(plan.groups.iter().map(|group| group.defined).sum::<usize>(), "definition"),
            exported,
            counted(plan.config.sinks.len(), "sink"),
        );
        messages.output(Purpose::Text).print(line)?;
        return Ok(ExitStatus::Good);
    }
    if let Err(problem) = allow_files(plan.targets.len()) {
        messages.error(&problem);
        return Ok(ExitStatus::Mistake);
    }
    // Signals come first, so that they have an effect from the first line of the log on.
    let signals = Signals::watch(&[SIGTERM, SIGINT, SIGHUP, SIGUSR1], &[SIGTERM, SIGINT]);
    let signals = signals.map_err(Stop::Output)?;
    let level = match (messages.are_quiet(), arguments.verbose) {
        (true, _) => tracing::Level::WARN,
        (false, true) => tracing::Level::DEBUG,
        (false, false) => tracing::Level::INFO,
    };
    // Without this, a failed write to the log would panic in the task that writes.
    let log = tracing_subscriber::fmt().log_internal_errors(false);
    let log = log.with_writer(log_stream).with_target(false);
    // A second logger in this process would have no effect.
    let _ = log.with_max_level(level).with_ansi(messages.are_coloured()).try_init();
    let (hosts, groups) = (plan.targets.len(), plan.groups.len());
    let server = match Server::start(origin, plan, loaded.files) {
        Ok(server) => server,
        Err(problem) => {
            messages.error(&problem);
            return Ok(ExitStatus::Mistake);
        }
    };
    tracing::info!(hosts, groups, "watching");
    let (ask, asked) = channel();
    let files = server.files();
    let looking = thread::Builder::new().name("files".to_owned());
    looking.spawn(move || follow(&files, &asked)).map_err(Stop::Output)?;
    let (mut service, mut losses) = (Service::ready(), Losses::default());
    let reason = loop {
        service.alive(&server);
        signals.wait(LOOK);
        losses.tell(&server.sinks(), false);
        losses.tell_missed(server.missed());
        if let Some(warning) = server.take_warning() {
            tracing::warn!("{warning}");
        }
        match signals.take() {
            // The thread lives as long as this loop.
            Some(SIGHUP) => drop(ask.send(())),
            Some(SIGUSR1) => server.reopen(),
            Some(SIGINT) => break "SIGINT came",
            Some(_) => break "SIGTERM came",
            None if server.is_output_closed() => break "the reader of the standard output has gone",
            None => {}
        }
    };
    tracing::info!("ending: {reason}");
    service.stopping();
    let sinks = server.stop(Instant::now() + arguments.drain);
    losses.tell(&sinks, true);
    Ok(ExitStatus::Good)
}

#[allow(clippy::disallowed_methods, reason = "the log escapes what a terminal would obey")]
fn log_stream() -> std::io::Stderr {
    std::io::stderr()
}

/// Reads the files again whenever they have changed, and when asked. It ends once nobody can
/// ask any more.
fn follow(files: &Files, asked: &Receiver<()>) {
    loop {
        match asked.recv_timeout(LOOK) {
            Ok(()) => service::reloading(|| files.reload()),
            Err(RecvTimeoutError::Timeout) if files.have_changed() => files.reload(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn tell(loaded: &mut LoadedPlan, messages: &mut Messages) {
    for problem in &loaded.problems {
        messages.error(problem);
    }
    messages.diagnostics(std::mem::take(&mut loaded.diagnostics), &loaded.sources);
}
