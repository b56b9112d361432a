//! Figures of a fleet of live hosts: memory, bringing up, steady fetches,
//! instances that come and go, notices, and all connections cut. Processor time
//! is that of the client's process, threads for native code included.

use std::error::Error;
use std::time::{Duration, Instant};

use super::definitions::{VALUES, text};
use super::hosts::{FleetEvent, Hosts};
use super::meter::{kernel_socket_memory, processor_time, raise_limit_of_files, resident};
use super::plan::Plan;
use super::rows::Row;
use super::tasks::{Fleet, Round, RoundResult};
use super::{Sizes, counting};

/// Fetches before memory is looked at.
const FETCHES: u32 = 10;

/// Runs some work on the thread of all hosts.
pub fn on_one_thread<R>(
    work: impl Future<Output = Result<R, Box<dyn Error>>>,
) -> Result<R, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

/// A fleet, and what was found out while it came up.
struct Up {
    hosts: Hosts,
    fleet: Fleet,
    rows: Vec<Row>,
}

fn fine(what: &str, found: RoundResult) -> Result<RoundResult, Box<dyn Error>> {
    match found.problem {
        Some(problem) => Err(format!(
            "{what}: {problem} ({found:?})",
            found = RoundResult { problem: None, ..found }
        )
        .into()),
        None => Ok(found),
    }
}

/// Brings few hosts up and then all; memory is the slope between.
async fn bring_up(name: &str, plan: Plan, sizes: Sizes) -> Result<Up, Box<dyn Error>> {
    raise_limit_of_files();
    let hosts = Hosts::start(plan)?;
    let mut fleet = Fleet::new(&text());
    let mut points = Vec::new();
    for range in [0..sizes.few, sizes.few..plan.hosts] {
        let count = f64::from(range.len() as u32);
        let before = processor_time();
        fine("bringing up", fleet.bring_up(range.map(|host| hosts.spec(host))).await)?;
        let time = processor_time() - before;
        for _ in 1..FETCHES {
            let found = fine("fetching", fleet.round(Round::Read).await)?;
            std::hint::black_box(found.sum);
        }
        let sockets = kernel_socket_memory();
        points.push((resident(), counting::held_bytes() as i64, sockets, time, count));
    }
    let [(resident0, held0, sockets0, ..), (resident1, held1, sockets1, time, count)] = points[..]
    else {
        return Err("two points make a slope".into());
    };
    let slope = |before: i64, after: i64| (after - before) as f64 / count / 1024.0;
    let key = |what: &str| format!("{name}-{what}");
    let between = format!("between {} and {} hosts", sizes.few, plan.hosts);
    let rows = vec![
        Row::new(
            &key("memory"),
            &format!("memory per further host, {between}"),
            slope(resident0, resident1),
            "KB",
        ),
        Row::new(&key("heap"), "live heap of the same", slope(held0, held1), "KB"),
        Row::new(
            &key("sockets"),
            "kernel memory for buffers of sockets, both ends, apart",
            slope(sockets0, sockets1),
            "KB",
        ),
        Row::new(
            &key("resident"),
            &format!("resident with {} hosts", sizes.few),
            resident0 as f64 / 1024.0,
            "KB",
        ),
        Row::new(
            &key("bring-up"),
            "bring-up with first fetch, processor time, class known",
            milliseconds(time) / count,
            "ms",
        ),
    ];
    Ok(Up { hosts, fleet, rows })
}

/// Runs of steady fetches. At least one of them must not allocate.
const ATTEMPTS: u32 = 10;

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Memory and bringing up alone, and whether the values are right.
pub fn memory(name: &str, plan: Plan, sizes: Sizes) -> Result<Vec<Row>, Box<dyn Error>> {
    on_one_thread(async {
        let up = bring_up(name, plan, sizes).await?;
        fine("checking", up.fleet.round(Round::Check).await)?;
        Ok(up.rows)
    })
}

/// Everything, of hosts that are all alike.
pub fn all(name: &str, plan: Plan, sizes: Sizes) -> Result<Vec<Row>, Box<dyn Error>> {
    on_one_thread(async {
        let Up { mut hosts, fleet, mut rows } = bring_up(name, plan, sizes).await?;
        let checked = fine("checking", fleet.round(Round::Check).await)?;
        // Differences have no values in the first sample only.
        if checked.values != 2 * VALUES * plan.hosts as usize {
            return Err(format!("{} values instead of {VALUES} a host", checked.values).into());
        }
        let count = f64::from(plan.hosts);
        let mut row = |key: &str, what: &str, value: f64, unit: &str| {
            rows.push(Row::new(&format!("{name}-{key}"), what, value, unit));
        };
        let timed = async |round: Round, times: u32| {
            let before = processor_time();
            for _ in 0..times {
                fine("fetching", fleet.round(round).await)?;
            }
            let time = processor_time() - before;
            Ok::<f64, Box<dyn Error>>(milliseconds(time) / f64::from(times) / count)
        };

        timed(Round::Evaluate, 2).await?;
        // Chance decides how many hosts are active at once. Each has a batch,
        // whose buffers grow in its first two fetches.
        let (mut steady, mut made) = (0.0, u64::MAX);
        for _ in 0..ATTEMPTS {
            let before = counting::allocations_so_far();
            steady = timed(Round::Evaluate, sizes.rounds).await?;
            made = made.min(counting::allocations_so_far() - before);
            if made == 0 {
                break;
            }
        }
        row("steady", "steady fetch + evaluate, processor time", steady * 1e3, "us");
        let allocations = made as f64 / f64::from(sizes.rounds) / count;
        row("steady-allocations", "allocations in a steady fetch", allocations, "");
        let read = timed(Round::Read, sizes.rounds).await?;
        row("steady-read", "the same, all values read", read * 1e3, "us");
        fine("checking", fleet.round(Round::Check).await)?;

        let mut after = [0.0; 2];
        for happening in [FleetEvent::Join, FleetEvent::Leave] {
            hosts.befall(happening)?;
            for time in &mut after {
                *time += timed(Round::Evaluate, 1).await? / 2.0;
            }
            fine("checking after churn", fleet.round(Round::Check).await)?;
        }
        row("churn", "fetch after one instance came or went", after[0], "ms");
        row("churn-next", "the fetch after that", after[1], "ms");

        hosts.befall(FleetEvent::Notice)?;
        let notice = timed(Round::Evaluate, 2).await?;
        row("notice", "notice of changed names, and two fetches", notice * 2.0, "ms");
        fine("checking after a notice", fleet.round(Round::Check).await)?;

        hosts.befall(FleetEvent::Cut)?;
        let (begin, before) = (Instant::now(), processor_time());
        let cut = fleet.round(Round::Return).await;
        let (all, each) = (begin.elapsed(), processor_time() - before - cut.own_time);
        row("cut", "all connections cut: time until all are back", all.as_secs_f64(), "s");
        row("cut-each", "the same, processor time each", milliseconds(each) / count, "ms");
        row("cut-time-outs", "the same, false time-outs", cut.time_outs.into(), "");
        row("cut-failures", "the same, attempts that failed otherwise", cut.failures.into(), "");
        if let Some(problem) = cut.problem {
            eprintln!("fleet: the first attempt that failed after the cut: {problem}");
        }
        fine("checking the first values", fleet.round(Round::CheckReturn).await)?;
        fine("checking", fleet.round(Round::Check).await)?;
        Ok(rows)
    })
}
