//! The engine's own metrics, in Prometheus' form.

use std::sync::atomic::Ordering;

use super::{Shared, State};
use crate::fleet::condition::State as HostState;
use crate::fleet::counting::{BOUNDS, Histogram};
use crate::fleet::numbers::{Numbers, Reason};
use crate::fleet::sinks::numbers as of_sinks;
use crate::fleet::sinks::text::{Family, Kind, Writer};

/// Name, help, and what of the numbers it is.
type Row<N> = (&'static str, &'static str, fn(&Numbers) -> N);

/// One of the histograms.
type OfNumbers = fn(&Numbers) -> &Histogram;

/// Numbers of hosts that only grow.
const COUNTERS: &[Row<u64>] = &[
    ("pmderive_slots_started_total", "Slots in which a host was fetched.", |n| n.started.get()),
    ("pmderive_slots_answered_total", "Slots that were answered in time.", |n| n.answered.get()),
    ("pmderive_slots_missed_total", "Slots that were never begun.", |n| n.missed.get()),
    ("pmderive_connects_total", "Connections that came about.", |n| n.connects.get()),
    ("pmderive_binds_total", "Times that definitions were bound to a host.", |n| n.binds.get()),
    (
        "pmderive_too_many_instances_total",
        "Metrics of frames that were left out, as they had too many instances.",
        |n| n.too_many_instances.get(),
    ),
];

/// Times of hosts.
const TIMES: &[(&str, &str, OfNumbers)] = &[
    ("pmderive_slot_lateness_seconds", "How late slots began.", |n| &n.lateness),
    ("pmderive_fetch_seconds", "Time from a request to its reply.", |n| &n.fetch),
    ("pmderive_evaluate_seconds", "Time to evaluate a reply.", |n| &n.evaluate),
];

/// Writes all of them.
pub fn write(shared: &Shared, state: &State, writer: &mut Writer<'_>) {
    gauge(
        writer,
        "pmderive_uptime_seconds",
        "How long the process has run.",
        shared.started.elapsed().as_secs_f64(),
    );
    let is_good = !shared.is_refused.load(Ordering::Relaxed);
    gauge(
        writer,
        "pmderive_config_is_good",
        "1 if the files that were read last are in force, 0 if they were refused.",
        f64::from(u8::from(is_good)),
    );
    counter(
        writer,
        "pmderive_reloads_total",
        "Times that the files were read again.",
        shared.reloads.load(Ordering::Relaxed),
    );
    if let Some(fleet) = &state.fleet {
        hosts(writer, fleet);
        numbers(writer, fleet.numbers());
    }
    if let Some(across) = &state.across {
        let numbers = across.numbers();
        let rows = [
            ("pmderive_fleet_slots_total", "Slots computed across hosts.", &numbers.slots),
            (
                "pmderive_fleet_frames_late_total",
                "Frames that came after their slot and its grace.",
                &numbers.late,
            ),
            (
                "pmderive_fleet_frames_unexpected_total",
                "Frames of hosts that are no targets any more.",
                &numbers.unexpected,
            ),
            (
                "pmderive_fleet_frames_dropped_total",
                "Frames for which there was no room.",
                &numbers.overflow,
            ),
            (
                "pmderive_fleet_refused_total",
                "Aggregates of too many or too large values.",
                &numbers.refused,
            ),
        ];
        for (name, help, number) in rows {
            counter(writer, name, help, number.get());
        }
    }
    let kinds = shared.engine.kinds();
    gauge(
        writer,
        "pmderive_kinds",
        "Kinds of hosts that programs are there for.",
        kinds.len() as f64,
    );
    memory(writer, state);
    let sinks = state.sinks.numbers();
    let sinks: Vec<_> = sinks.iter().map(|(name, numbers)| (&**name, &**numbers)).collect();
    of_sinks::write(writer, &sinks);
}

fn hosts(writer: &mut Writer<'_>, fleet: &crate::fleet::engine::Fleet) {
    let (mut new, mut up, mut failing) = (0_u64, 0_u64, [0_u64; Reason::ALL.len()]);
    for condition in fleet.conditions() {
        match condition.latest().state {
            HostState::New => new += 1,
            HostState::Up => up += 1,
            HostState::Failing(reason) => failing[reason as usize] += 1,
        }
    }
    let name = "pmderive_hosts";
    let help = Some("Hosts by their latest slot: up, new before the first, or why it failed.");
    writer.family(&Family { name, kind: Kind::Gauge, help });
    writer.integer(name, &[("state", "new")], new);
    writer.integer(name, &[("state", "up")], up);
    for reason in Reason::ALL {
        writer.integer(name, &[("state", reason.word())], failing[reason as usize]);
    }
}

fn numbers(writer: &mut Writer<'_>, numbers: &Numbers) {
    for (name, help, number) in COUNTERS {
        counter(writer, name, help, number(numbers));
    }
    let name = "pmderive_slots_failed_total";
    let help = Some("Slots that were not answered rightly before their deadline.");
    writer.family(&Family { name, kind: Kind::Counter, help });
    for reason in Reason::ALL {
        let count = numbers.failed[reason as usize].get();
        writer.integer(name, &[("reason", reason.word())], count);
    }
    for (name, help, histogram) in TIMES {
        let (counts, sum) = histogram(numbers).counts();
        writer.family(&Family { name, kind: Kind::Histogram, help: Some(help) });
        writer.histogram(name, &[], &BOUNDS, &counts, sum);
    }
}

/// Resident memory of the process, as the system counts it.
fn memory(writer: &mut Writer<'_>, _state: &State) {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    if let Some(pages) = pages {
        let bytes = pages * rustix::param::page_size() as u64;
        gauge(
            writer,
            "process_resident_memory_bytes",
            "Resident memory of the process.",
            bytes as f64,
        );
    }
}

fn gauge(writer: &mut Writer<'_>, name: &str, help: &str, value: f64) {
    writer.family(&Family { name, kind: Kind::Gauge, help: Some(help) });
    writer.sample(name, &[], value);
}

fn counter(writer: &mut Writer<'_>, name: &str, help: &str, value: u64) {
    writer.family(&Family { name, kind: Kind::Counter, help: Some(help) });
    writer.integer(name, &[], value);
}
