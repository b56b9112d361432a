//! The engine's own metrics, in Prometheus' form.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;

use super::fleet_thread::FleetThread;
use super::{ActivePlan, Shared, process};
use crate::engine::Kind as HostKind;
use crate::fleet::condition::{Condition, State as HostState};
use crate::fleet::counting::{BOUNDS, Histogram, Number};
use crate::fleet::frame::Instances;
use crate::fleet::labels::Labels;
use crate::fleet::numbers::{FleetNumbers, HostNumbers, Reason};
use crate::fleet::sinks::names::{HostLabels, SeriesLabels};
use crate::fleet::sinks::numbers as of_sinks;
use crate::fleet::sinks::text::{Kind, Writer};
use crate::fleet::world::Machine;

/// Name, help, and the number to read.
type Row<N, T> = (&'static str, &'static str, fn(&N) -> &T);

/// Counters of hosts.
const COUNTERS: &[Row<HostNumbers, Number>] = &[
    (
        "pmderive_slots_started_total",
        "Slots of hosts that were begun, pauses after failures included.",
        |n| &n.started,
    ),
    ("pmderive_slots_answered_total", "Slots that were answered in time.", |n| &n.answered),
    ("pmderive_connects_total", "Connections that came about.", |n| &n.connects),
    ("pmderive_reconnects_total", "Connections to hosts that had been connected before.", |n| {
        &n.reconnects
    }),
    ("pmderive_binds_total", "Times that definitions were bound to a host.", |n| &n.binds),
    (
        "pmderive_too_many_instances_total",
        "Metrics of frames that were left out, as they had too many instances.",
        |n| &n.too_many_instances,
    ),
];

/// Counters of what is computed over the fleet.
const FLEET: &[Row<FleetNumbers, Number>] = &[
    ("pmderive_fleet_slots_total", "Slots computed across hosts.", |n| &n.slots),
    (
        "pmderive_fleet_frames_late_total",
        "Frames that came after their slot and its grace, or whose slot was skipped.",
        |n| &n.late,
    ),
    (
        "pmderive_fleet_frames_unexpected_total",
        "Frames of hosts that are no targets any more.",
        |n| &n.unexpected,
    ),
    ("pmderive_fleet_frames_dropped_total", "Frames for which there was no room.", |n| &n.overflow),
    ("pmderive_fleet_refused_total", "Aggregates of too many or too large values.", |n| &n.refused),
];

/// Histograms of hosts.
const TIMES: &[Row<HostNumbers, Histogram>] = &[
    ("pmderive_slot_lateness_seconds", "How late slots began.", |n| &n.lateness),
    ("pmderive_fetch_seconds", "Time from a request to its reply.", |n| &n.fetch),
    ("pmderive_evaluate_seconds", "Time to evaluate a reply.", |n| &n.evaluate),
    (
        "pmderive_clock_skew_seconds",
        "How far hosts' clocks were from this one when they answered, ahead or behind.",
        |n| &n.skew,
    ),
];

/// Writes all metrics.
pub fn write(shared: &Shared, active: &ActivePlan<Machine>, writer: &mut Writer<'_>) {
    let uptime = shared.started.elapsed().as_secs_f64();
    gauge(writer, "pmderive_uptime_seconds", "How long the process has run.", uptime);
    let about = ("pmderive_build_info", Kind::Gauge, "The version that runs.");
    each(writer, about, "version", [(env!("CARGO_PKG_VERSION"), 1)]);
    let is_good = !shared.is_refused.load(Ordering::Relaxed);
    let help = "1 if the files that were read last are in force, 0 if they were refused.";
    gauge(writer, "pmderive_config_is_good", help, f64::from(u8::from(is_good)));
    let reloads = shared.reloads.load(Ordering::Relaxed);
    counter(writer, "pmderive_reloads_total", "Times that the files were read again.", reloads);
    // They are read once for all, as there may be very many.
    let conditions = active.hosts.conditions();
    hosts(writer, &conditions);
    numbers(writer, active.hosts.numbers());
    if let Some(numbers) = active.fleet.as_ref().map(FleetThread::numbers) {
        for (name, help, number) in FLEET {
            counter(writer, name, help, number(numbers).get());
        }
    }
    kinds(writer, active, &conditions);
    memory(writer, active, &conditions);
    let sinks = active.sinks.numbers();
    let sinks: Vec<_> = sinks.iter().map(|(name, numbers)| (&**name, &**numbers)).collect();
    of_sinks::write(writer, &sinks);
}

fn hosts(writer: &mut Writer<'_>, conditions: &[Arc<Condition>]) {
    let states: Vec<HostState> = conditions.iter().map(|one| one.latest().state).collect();
    let help = "Hosts by their latest slot: up, missed, new before the first, or why the latest \
                attempt failed.";
    let count = |state: HostState| {
        (state.word(), states.iter().filter(|one| **one == state).count() as u64)
    };
    let failing = Reason::ALL.into_iter().map(|(reason, _)| HostState::Failing(reason));
    let all = [HostState::New, HostState::Up, HostState::Missed].into_iter().chain(failing);
    each(writer, ("pmderive_hosts", Kind::Gauge, help), "state", all.map(count));
}

fn numbers(writer: &mut Writer<'_>, numbers: &HostNumbers) {
    for (name, help, number) in COUNTERS {
        counter(writer, name, help, number(numbers).get());
    }
    let help = "Slots that were never begun: the process was late for them, or the clock or an \
                earlier slot skipped them.";
    let late = numbers.missed_late.get();
    let missed = [("late", late), ("skipped", numbers.missed.get().saturating_sub(late))];
    each(writer, ("pmderive_slots_missed_total", Kind::Counter, help), "reason", missed);
    let help = "Slots that were not answered rightly before their deadline.";
    let failed = Reason::ALL.map(|(reason, word)| (word, numbers.failed[reason as usize].get()));
    each(writer, ("pmderive_slots_failed_total", Kind::Counter, help), "reason", failed);
    for (name, help, histogram) in TIMES {
        let (counts, sum) = histogram(numbers).counts();
        writer.family(name, Kind::Histogram, Some(help));
        writer.histogram(name, &[], &BOUNDS, &counts, sum);
    }
}

/// Kinds, and metrics, that have a series of their own: the largest ones.
const MOST_KINDS: usize = 20;

/// The kinds of these hosts. The kind of the fleet itself is left out.
pub fn kinds_of(active: &ActivePlan<Machine>, conditions: &[Arc<Condition>]) -> Vec<HostKind> {
    let of_hosts: FxHashSet<u64> =
        conditions.iter().filter_map(|condition| condition.latest().kind).collect();
    let mut kinds = active.engine.kinds();
    kinds.retain(|kind| of_hosts.contains(&kind.number));
    kinds
}

/// Writes the kinds of hosts, the hosts of the largest ones, and the metrics that split them.
fn kinds(writer: &mut Writer<'_>, active: &ActivePlan<Machine>, conditions: &[Arc<Condition>]) {
    let kinds = kinds_of(active, conditions);
    let name = "pmderive_kinds";
    gauge(writer, name, "Kinds of hosts that programs are there for.", kinds.len() as f64);
    let mut hosts: BTreeMap<u64, u64> = BTreeMap::new();
    for condition in conditions {
        if let Some(kind) = condition.latest().kind {
            *hosts.entry(kind).or_default() += 1;
        }
    }
    let named = hosts.into_iter().map(|(kind, hosts)| (kind.to_string(), hosts));
    let help = "Hosts of the largest kinds; those of all others together are `others`.";
    let hosts = largest(named.collect(), &"others".to_owned());
    each(writer, ("pmderive_kind_hosts", Kind::Gauge, help), "kind", hosts);
    let name = "pmderive_kinds_split";
    let help = Some(
        "Kinds of hosts that differ from most, by the first metric that differs and by what differs. \
         All other metrics together are `others`.",
    );
    writer.family(name, Kind::Gauge, help);
    let mut splits: BTreeMap<(Box<str>, &str), u64> = BTreeMap::new();
    for (metric, split) in kinds.into_iter().filter_map(|kind| kind.differs?.first) {
        *splits.entry((metric, split.word())).or_default() += 1;
    }
    for ((metric, by), kinds) in largest(splits.into_iter().collect(), &("others".into(), "any")) {
        writer.integer(name, &[("metric", &metric), ("by", by)], kinds);
    }
}

/// The largest numbers, and the sum of all others under the name `others`.
fn largest<K: Clone>(mut all: Vec<(K, u64)>, others: &K) -> Vec<(K, u64)> {
    all.sort_by_key(|(_, number)| Reverse(*number));
    let rest = all.split_off(MOST_KINDS.min(all.len()));
    if !rest.is_empty() {
        all.push((others.clone(), rest.iter().map(|(_, number)| number).sum()));
    }
    all
}

/// Writes the counted bytes of each part, and the system's counts of the process.
fn memory(writer: &mut Writer<'_>, active: &ActivePlan<Machine>, conditions: &[Arc<Condition>]) {
    let programs = active.engine.program_bytes();
    let sinks = active.sinks.numbers();
    let waiting: u64 = sinks.iter().map(|(_, numbers)| numbers.ring_bytes.get()).sum();
    let newest = active.newest.bytes() as u64;
    let hosts: usize = conditions.iter().map(|condition| condition.latest().bytes).sum();
    let encoded: u64 = sinks.iter().map(|(_, numbers)| numbers.label_bytes.get()).sum();
    let help = "Bytes of memory by part of the program, such as previous samples of hosts, rings of \
                sinks and newest frames for /metrics.";
    let parts = [
        ("programs", programs.tables as u64),
        ("layouts", programs.layouts as u64),
        ("targets", targets(conditions)),
        ("hosts", hosts as u64),
        ("across", active.fleet.as_ref().map_or(0, FleetThread::bytes)),
        ("newest", newest),
        // The bytes of the scraped sink are those of the newest frames.
        ("rings", waiting.saturating_sub(newest)),
        ("labels", encoded),
    ];
    each(writer, ("pmderive_memory_bytes", Kind::Gauge, help), "part", parts);
    process::write(writer);
}

/// Bytes of the targets; shared labels count once.
fn targets(conditions: &[Arc<Condition>]) -> u64 {
    let mut seen = FxHashSet::default();
    let of_target = |condition: &Arc<Condition>| {
        let target = condition.target();
        let labels = if seen.insert(target.labels.address()) { target.labels.bytes() } else { 0 };
        size_of_val(&**target) + size_of::<Condition>() + target.name.len() + labels
    };
    conditions.iter().map(of_target).sum::<usize>() as u64
}

/// Writes the condition of one host, with the labels of its target.
pub fn write_target(condition: &Condition, writer: &mut Writer<'_>) {
    let latest = condition.latest();
    let host = HostLabels::new(condition.target(), &Labels::default());
    let none = Instances::default();
    let series = SeriesLabels::new(&host.names, &none, 0);
    let labels: Vec<(&str, &str)> = series.of_host(&host).collect();
    let is_up = f64::from(u8::from(latest.state == HostState::Up));
    let mut write = |name: &str, help: &str, value: f64| {
        writer.family(name, Kind::Gauge, Some(help));
        writer.sample(name, &labels, value);
    };
    write("pmderive_target_up", "1 if the host answered in its newest slot.", is_up);
    if is_up > 0.0 {
        let help = "How far the host's clock is ahead of this one; negative behind.";
        write("pmderive_target_clock_skew_seconds", help, latest.skew);
    }
    let help = "How late the newest slot of the host began.";
    write("pmderive_target_lateness_seconds", help, latest.lateness.as_secs_f64());
    let help = "How long the newest slot of the host took.";
    write("pmderive_target_slot_seconds", help, latest.took.as_secs_f64());
}

pub(super) fn gauge(writer: &mut Writer<'_>, name: &str, help: &str, value: f64) {
    writer.family(name, Kind::Gauge, Some(help));
    writer.sample(name, &[], value);
}

/// Writes a family: a whole number for each value of a label.
fn each<V: AsRef<str>>(
    writer: &mut Writer<'_>,
    (name, kind, help): (&str, Kind, &str),
    label: &str,
    rows: impl IntoIterator<Item = (V, u64)>,
) {
    writer.family(name, kind, Some(help));
    for (value, number) in rows {
        writer.integer(name, &[(label, value.as_ref())], number);
    }
}

fn counter(writer: &mut Writer<'_>, name: &str, help: &str, value: u64) {
    writer.family(name, Kind::Counter, Some(help));
    writer.integer(name, &[], value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_have_series_of_their_own() {
        let few = vec![("a", 1), ("b", 3)];
        assert_eq!(largest(few, &"others"), [("b", 3), ("a", 1)]);
        let many: Vec<_> = (0..100).map(|at| (at.to_string(), at)).collect();
        let found = largest(many, &"others".to_owned());
        assert_eq!(found.len(), MOST_KINDS + 1);
        assert_eq!((&*found[0].0, found[0].1), ("99", 99));
        assert_eq!(found[MOST_KINDS], ("others".to_owned(), 3160));
    }
}
