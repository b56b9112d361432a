//! `eval --targets`: samples of all hosts in a file of targets, and of definitions over them.
//!
//! ```text
//! targets ──► Hosts ── frames ──► Aggregates ──► Sheet ──► renderer
//! ```

mod hosts;
mod selected;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive_runtime::time::TimeZone;

use super::arguments::EvalArguments;
use super::printer::{Printer, purpose};
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::samples::run::Sink as _;
use crate::cli::samples::time::DEFAULT_INTERVAL;
use crate::cli::stop::Stop;
use crate::engine::{Compiled, Engine};
use crate::fleet::aggregates::Aggregates;
use crate::fleet::config::Limits;
use crate::fleet::frame::sheet::Sheet;
use crate::fleet::frame::{Event, Frame};
use crate::fleet::server::allow_files;
use crate::fleet::sinks::sink_set::SinkSet;
use crate::fleet::slot::{Nanos, Slot};
use crate::fleet::world::{Machine, World};
use crate::text::Span;
use hosts::Hosts;
use selected::HostsSelection;

/// Runs the command.
pub fn run(arguments: &EvalArguments, messages: &mut Messages) -> Result<ExitStatus, Stop> {
    refuse_others(arguments)?;
    let what = &arguments.what;
    messages.set_words(what.diag);
    let (selected, mut outcome) = HostsSelection::read(arguments, messages)?;
    if selected.rows.is_empty() {
        return Ok(outcome);
    }
    allow_files(selected.targets.len()).map_err(Stop::Usage)?;
    let interval = what.time.interval.unwrap_or(DEFAULT_INTERVAL);
    let deadline = arguments.deadline.unwrap_or(DEFAULT_DEADLINE);
    let samples = what.samples.unwrap_or(1);
    let backend = what.backend.for_evaluations(Some(samples));
    // No option raises the limit of instances, so there is none.
    let limits = Limits { instances: usize::MAX, ..Limits::default() };
    let engine =
        Engine::of_this_machine(selected.language(), backend).with_kind_limit(limits.kinds);
    let engine = Arc::new(engine);
    let across = Arc::clone(&selected.across);
    let mut aggregates = Aggregates::new(Arc::clone(&engine), across, &|_| SinkSet::NONE);
    aggregates.evaluation.slowed = Machine::slowed;
    aggregates.collector.set_targets(&selected.targets);
    let group = selected.group(interval, deadline).map_err(Stop::Usage)?;
    let mut hosts = Hosts::new(&engine, &selected.targets, &group, limits)?;
    let output = messages.output(purpose(arguments.format));
    let zone = what.time.zone.timezone.as_deref().map(zone).transpose()?;
    what.time.zone.warn_of_unknown(messages);
    let mut printer = Printer::begin(arguments, samples > 1, zone, output)?;
    let mut run = HostsRun {
        sheet: Sheet::new(selected.rows.clone()),
        selected: &selected,
        printed: PrintedMessages::default(),
        messages,
        answered: false,
    };
    run.printed.note(selected.of_rows(&selected.found));
    let mut left = samples;
    // Differences need earlier samples.
    let mut primes: Option<u64> = None;
    let begun = Instant::now();
    let mut is_late_told = false;
    for number in 0.. {
        let (slot, at) = (Slot(number), Machine::now());
        let frames = run.sample(slot, &mut hosts, &mut aggregates)?;
        let of_fleet = aggregates.finish(slot, at);
        outcome = outcome.max(run.tell(&hosts, &mut aggregates));
        run.messages.warnings_of(&engine);
        let primes = *primes.get_or_insert_with(|| {
            u64::from(hosts.need_two_samples()) + u64::from(aggregates.evaluation.needs_two_slots())
        });
        if number >= primes {
            let taken = run.show(at, &frames, &of_fleet, &mut printer);
            outcome = outcome.max(taken.map_err(|stop| stop.after(outcome))?);
            left -= 1;
        }
        if left == 0 {
            break;
        }
        let next = interval.saturating_mul(u32::try_from(number + 1).unwrap_or(u32::MAX));
        let next = begun + next;
        if next < Instant::now() && !std::mem::replace(&mut is_late_told, true) {
            run.messages.warning(
                &"hosts answer more slowly than samples are due, so samples come late; --deadline \
                  bounds how long one waits for a host",
            );
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(if run.answered { outcome } else { outcome.max(ExitStatus::SourceFailed) })
}

/// Time for a host to answer, without `--deadline`.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// Refuses options that choose another source, or a part of one.
fn refuse_others(arguments: &EvalArguments) -> Result<(), Stop> {
    let what = &arguments.what;
    let wrong = |text: &str| Err(Stop::Usage(text.to_owned()));
    if arguments.fleet.targets.is_empty() {
        return wrong("which hosts? --fleet goes with --targets FILE");
    }
    if what.source.is_given() {
        return wrong("--targets names the hosts: -h, -a and -L cannot be given beside it");
    }
    if arguments.reverse || what.follow.is_given() || !what.time.window.is_empty() {
        return wrong(
            "-S, -T, -A, -O, --follow and --reverse cannot be used with --targets; -s and -t say how many samples there are, and when",
        );
    }
    if what.time.zone.hostzone {
        return wrong("hosts have several zones: give one with -Z");
    }
    Ok(())
}

fn zone(text: &str) -> Result<TimeZone, Stop> {
    TimeZone::parse_strict(text).map_err(|error| Stop::Usage(error.to_string()))
}

/// The messages that were printed already.
#[derive(Default)]
struct PrintedMessages {
    /// Map from each failing host to its reason.
    failing: std::collections::BTreeMap<Box<str>, Arc<str>>,
    /// Programs by address whose diagnostics are printed completely. The map holds them, so no
    /// other program gets the address.
    compiled: HashMap<usize, Arc<Compiled>>,
    mistakes: HashSet<(String, Span)>,
    /// Map from each row to its diagnostics on the first host that has any.
    of_rows: HashMap<Box<str>, String>,
}

impl PrintedMessages {
    /// Keeps the mistakes of rows that had none so far.
    fn note(&mut self, mistakes: impl Iterator<Item = (Box<str>, String)>) {
        for (row, mistake) in mistakes {
            self.of_rows.entry(row).or_insert(mistake);
        }
    }
}

/// A run of samples over all hosts.
struct HostsRun<'r> {
    sheet: Sheet,
    selected: &'r HostsSelection,
    printed: PrintedMessages,
    messages: &'r mut Messages,
    /// True once some host has answered.
    answered: bool,
}

impl HostsRun<'_> {
    /// Fetches all hosts and returns their frames, by name.
    fn sample(
        &mut self,
        slot: Slot,
        hosts: &mut Hosts,
        aggregates: &mut Aggregates,
    ) -> Result<Vec<Frame>, Stop> {
        let sampled = hosts.sample(slot);
        for frame in &sampled.frames {
            self.printed.failing.remove(&frame.target.name);
            aggregates.collector.frame(frame);
            self.answered = true;
        }
        for (target, words) in sampled.failed {
            aggregates.collector.failed(&target, slot);
            let before = self.printed.failing.insert(target.name.clone(), Arc::clone(&words));
            if before.is_none_or(|before| before != words) {
                match words.starts_with(&*target.name) {
                    true => self.messages.error(&words),
                    false => self.messages.error(&format_args!("{}: {words}", target.name)),
                }
            }
        }
        Ok(sampled.frames)
    }

    /// Prints the diagnostics of definitions on hosts and over the fleet, each once.
    fn tell(&mut self, hosts: &Hosts, aggregates: &mut Aggregates) -> ExitStatus {
        let mut outcome = match self.printed.failing.is_empty() {
            true => ExitStatus::Good,
            false => ExitStatus::Failed,
        };
        // A program that no host and no engine holds does not come back.
        self.printed.compiled.retain(|_, compiled| Arc::strong_count(compiled) > 1);
        for (host, compiled) in hosts.compiled() {
            let address = Arc::as_ptr(compiled).addr();
            if self.printed.compiled.insert(address, Arc::clone(compiled)).is_none() {
                self.of_hosts(host, compiled);
            }
            let is_whole = compiled.metrics.iter().all(|metric| metric.desc.is_ok());
            outcome = outcome.max(if is_whole { ExitStatus::Good } else { ExitStatus::Failed });
        }
        let of_fleet = aggregates.evaluation.diagnostics().clone();
        self.printed.note(self.selected.of_rows(&of_fleet));
        if of_fleet.errors() > 0 {
            outcome = ExitStatus::Failed;
        }
        self.messages.diagnostics(of_fleet, &self.selected.definitions.sources);
        for warning in aggregates.take_warnings() {
            self.messages.warning(&warning);
        }
        outcome
    }

    /// Prints the diagnostics of one host's program.
    fn of_hosts(&mut self, host: &str, compiled: &Compiled) {
        let found = compiled.diagnostics().clone();
        let mut found = self.selected.definitions.hidden_by_mistake(found);
        self.printed.note(self.selected.of_rows(&found));
        let mistakes = &mut self.printed.mistakes;
        found.retain(|one| mistakes.insert((one.message.clone(), one.span)));
        if !found.is_empty() {
            self.messages.line(&format_args!("on {host} and hosts like it:"));
            self.messages.diagnostics(found, &self.selected.definitions.sources);
        }
    }

    /// Prints a sample.
    fn show(
        &mut self,
        at: Nanos,
        frames: &[Frame],
        of_fleet: &[Event],
        printer: &mut Printer,
    ) -> Result<ExitStatus, Stop> {
        let fleet = of_fleet.iter().find_map(Event::frame);
        let of_rows = &self.printed.of_rows;
        let mistake = |row: &str| of_rows.get(row).cloned();
        let mut outcome = ExitStatus::Good;
        self.sheet.show(at.into(), frames, fleet, mistake, |shown| {
            use crate::engine::Finding;
            for (_, finding) in shown.findings() {
                if let Finding::Failed(_) | Finding::Unusable(..) = finding {
                    outcome = ExitStatus::Failed;
                }
            }
            printer.sample(shown)
        })?;
        Ok(outcome)
    }
}
