//! Metrics of the process as the system counts them, with Prometheus' names.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::own_metrics::gauge;
use crate::fleet::sinks::text::{Kind, Writer};

/// Writes the values of `/proc` (proc(5)). Unreadable ones are left out.
pub fn write(writer: &mut Writer<'_>) {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/statm");
    if let Some(pages) = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()) {
        let bytes = pages * page_size() as u64;
        let help = "Resident memory of the process.";
        gauge(writer, "process_resident_memory_bytes", help, bytes as f64);
    }
    if let Some(times) = Times::read(&read("/proc/self/stat")) {
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        let name = "process_cpu_seconds_total";
        let help = Some("Time of processors that the process has taken.");
        writer.family(name, Kind::Counter, help);
        writer.sample(name, &[], seconds(times.taken));
        if let Some(boot) = boot_time(&read("/proc/stat")) {
            let help = "When the process began, in seconds since 1970.";
            let start = boot as f64 + seconds(times.start);
            gauge(writer, "process_start_time_seconds", help, start);
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        // One of the open files is this folder itself.
        let open = open.count().saturating_sub(1);
        gauge(writer, "process_open_fds", "Open files of the process.", open as f64);
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        gauge(writer, "process_max_fds", "Files that the process may open.", most as f64);
    }
}

/// Times of a process, in ticks of the clock.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    /// Processor time, in the program and in the system.
    taken: u64,
    /// Time from the start of the machine to that of the process.
    start: u64,
}

impl Times {
    /// Parses the text of `/proc/PID/stat`.
    fn read(text: &str) -> Option<Times> {
        // The name of the program, in parentheses, may have blanks.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // Fields are numbered from 1; the first behind the name is the third.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Times { taken: number(14)? + number(15)?, start: number(22)? })
    }
}

/// Start of the machine, in seconds since 1970, from the text of `/proc/stat`.
fn boot_time(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_behind_the_name() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let text = format!("7 (a) b (c) {}", fields.join(" "));
        assert_eq!(Times::read(&text), Some(Times { taken: 29, start: 22 }));
        for damaged in ["", "7 (a)", "7 (a) S 1 2"] {
            assert_eq!(Times::read(damaged), None);
        }
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000));
    }
}
