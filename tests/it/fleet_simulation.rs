//! The whole fleet engine in virtual time, over fake pmcds to which things happen by a
//! seed, with a receiver and a disk that fail, and plans that change: every emitted
//! value and every mark of an end against models that know what each host answered. A
//! seed gives the same run again.
//!
//! ```text
//!           fake pmcds ──► engine ──► lines of JSON ──► hosts, across: the models
//! seed ──►  names, plans              remote write ───► samples: as the lines say
//!                                     /metrics ───────► scrapes: as the lines say
//!           receiver, disk
//! ```
//!
//! `PMDERIVE_SIMULATE=100-199 PMDERIVE_SIMULATE_SECONDS=3600 PMDERIVE_SIMULATE_HOSTS=200
//! cargo test --release --test it fleet_simulation::whatever -- --nocapture` runs those
//! seeds, an hour of 200 hosts each.

mod across;
mod definitions;
mod history;
mod hosts;
mod lines;
mod samples;
mod scrapes;
mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pmderive::internal::fleet::plan::{Origin, Plan, load};
use pmderive::internal::fleet::server::InForce;
use pmderive::internal::fleet::sinks::newest::Newest;
use pmderive_testkit::fleet;
use pmderive_testkit::mix::mix;
use pmderive_testkit::sim::{self, Disk, Receiver, Script};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use definitions::Definitions;
use history::{History, Told};
use scrapes::Scrape;
use world::{Parts, Simulated};

const INTERVAL: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(8);
/// How long hosts are waited for after a slot.
const GRACE: Duration = DEADLINE;
/// How long sinks may deliver at the end.
const DRAIN: Duration = Duration::from_secs(600);

/// Derived metrics.
const METRICS: u32 = 50;

/// What a run is like.
#[derive(Clone)]
struct Case {
    seed: u64,
    hosts: u32,
    length: Duration,
    script: Script,
    /// How often the receiver is ill, the disk is full, and the plan changes: in an hour.
    ill: f64,
    full: f64,
    reloads: f64,
    /// The share of hosts that never answer, and threads that hosts live in.
    vanished: f64,
    threads: usize,
    /// Bytes that may wait for each sink.
    buffer: usize,
    /// When the machine's clock is set forward, or back, and by how many seconds.
    clock_is_set: Option<(Duration, i64)>,
}

impl Case {
    /// Nothing goes wrong.
    fn calm(seed: u64, hosts: u32, seconds: u64) -> Case {
        let length = Duration::from_secs(seconds);
        let script = Script::calm(length);
        Case {
            seed,
            hosts,
            length,
            script,
            ill: 0.0,
            full: 0.0,
            reloads: 0.0,
            vanished: 0.0,
            threads: 2,
            buffer: 256 << 20,
            clock_is_set: None,
        }
    }

    /// Everything goes wrong so many times an hour, with each host by itself.
    fn rough(seed: u64, hosts: u32, seconds: u64, times: f64) -> Case {
        let calm = Case::calm(seed, hosts, seconds);
        let script = Script {
            kills: times,
            refusals: times,
            stops: times,
            absences: times,
            resets: times,
            cuts: times,
            drips: times,
            delays: times,
            changes: times,
            notices: times,
            jumps: times,
            oblivions: times,
            length: calm.length,
        };
        Case { script, ill: 12.0, full: 6.0, reloads: 6.0, ..calm }
    }
}

/// What a run came to.
struct Run {
    lines: String,
    hosts: sim::Fleet,
    history: History,
    receiver: Receiver,
    scrapes: Vec<Scrape>,
    numbers: Numbers,
    refusals: u64,
}

/// What the engine has counted.
#[derive(Debug, PartialEq, Eq)]
struct Numbers {
    started: u64,
    answered: u64,
    failed: u64,
    missed: u64,
    /// Events dropped, by sink.
    dropped: Vec<u64>,
    /// Samples dropped, for they were refused.
    refused: u64,
}

fn name(host: u32) -> String {
    format!("host{host:05}")
}

/// The labels of a host, by the file of targets.
fn labels(host: u32) -> BTreeMap<&'static str, String> {
    [("rack", format!("r{}", host / 8)), ("dc", format!("dc{}", host % 2))].into()
}

fn config(Case { threads, buffer, .. }: &Case) -> String {
    format!(
        "
        interval = {}
        deadline = {}
        threads = {threads}
        [[group]]
        name = 'sim'
        targets = ['hosts.json']
        definitions = ['sim.conf']
        export = ['fleet.derived.*']
        [fleet]
        definitions = ['racks.conf']
        [[sink]]
        kind = 'json-lines'
        path = 'lines'
        buffer = {buffer}
        [[sink]]
        kind = 'remote-write'
        url = 'http://receiver/api/v1/write'
        max-age = 7200
        buffer = {buffer}
        export = ['fleet.derived.m*[035]', 'racks.*', 'fleet.hosts.*']
        [[sink]]
        kind = 'prometheus'
        export = ['fleet.derived.m*[035]', 'racks.*', 'fleet.hosts.*']
        ",
        INTERVAL.as_secs(),
        DEADLINE.as_secs(),
    )
}

/// Writes the files that a plan is made of.
fn write_files(folder: &Path, case: &Case, fake: &fleet::Plan, told: &Told) {
    let entry =
        |host: &u32| serde_json::json!({ "targets": [name(*host)], "labels": labels(*host) });
    let targets: Vec<_> = told.hosts.iter().map(entry).collect();
    let text: Vec<String> = (0..)
        .zip(&told.constants)
        .map(|(index, constant)| fleet::definition(fake, index, *constant) + "\n")
        .collect();
    for (name, text) in [
        ("hosts.json", serde_json::Value::from(targets).to_string()),
        ("sim.conf", text.concat()),
        ("racks.conf", across::DEFINITIONS.to_owned()),
        ("serve.toml", config(case)),
    ] {
        std::fs::write(folder.join(name), text).expect("written");
    }
}

fn load_plan(folder: &Path) -> Result<Plan, String> {
    let mut loaded = load(&Origin::File(folder.join("serve.toml")));
    loaded.plan.take().ok_or_else(|| loaded.report())
}

/// Runs a case in a thread of its own, which has nothing left of runs before.
fn run(case: &Case) -> Run {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
            LocalSet::new().block_on(&runtime, simulate(case))
        });
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

async fn simulate(case: &Case) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = fleet::Plan {
        hosts: case.hosts,
        classes: 3,
        singles: 10,
        domains: 2,
        per_domain: 5,
        instances: 1..=3,
        shares: fleet::Shares { churning: 0.1, vanished: case.vanished, ..fleet::Shares::NONE },
        churn_seconds: 25,
        ..fleet::Plan::default()
    };
    let parts = Parts {
        receiver: Rc::new(RefCell::new(Receiver::new(case.seed, case.length, case.ill))),
        disk: Disk::new(case.seed, case.length, case.full),
    };
    Simulated::begin(case.seed, parts.clone());
    let sim = sim::Fleet::new(case.seed, fake, &case.script);
    let first = Told {
        at: Duration::ZERO,
        hosts: (0..case.hosts).collect(),
        constants: (0..METRICS).collect(),
    };
    write_files(folder.path(), case, sim.plan(), &first);
    let plan = load_plan(folder.path()).unwrap_or_else(|report| panic!("{report}"));
    let mut in_force = InForce::<Simulated>::start(plan).expect("it starts");
    if let Some((at, by)) = case.clock_is_set {
        tokio::task::spawn_local(async move {
            sleep(at).await;
            Simulated::set_clock(by);
        });
    }
    let scrapes = Rc::<RefCell<Vec<Scrape>>>::default();
    let sink = in_force.shown().expect("there is a listener's sink");
    let scraping = tokio::task::spawn_local(scrape_now_and_then(
        case.clone(),
        Arc::clone(in_force.newest()),
        sink,
        Rc::clone(&scrapes),
    ));
    let mut told = vec![first];
    let count = (case.reloads * case.length.as_secs_f64() / 3600.0).ceil() as u32;
    for at in 1..=count {
        let pause = case.length / (count + 1);
        sleep(pause.saturating_sub(Duration::from_secs(2))).await;
        let next = next_plan(case, at, told.last().expect("the first"));
        write_files(folder.path(), case, sim.plan(), &next);
        if mix(&[case.seed, at.into(), 4]).is_multiple_of(4) {
            // A mistake: everything stays as it is.
            std::fs::write(folder.path().join("sim.conf"), "fleet.derived.m0 = 1 +\n")
                .expect("written");
        }
        Simulated::pause(500).await;
        let Ok(plan) = load_plan(folder.path()) else { continue };
        Simulated::pause(500).await;
        // Which plan holds for a slot that begins at this very moment would be open.
        let is_due =
            |host| history::is_near(&format!("{}:44321", name(host)), Simulated::elapsed());
        while (0..case.hosts).any(is_due) {
            sleep(Duration::from_millis(1)).await;
        }
        in_force.follow(plan).expect("nothing that takes a restart");
        told.push(Told { at: Simulated::elapsed(), ..next });
    }
    sleep(case.length.saturating_sub(Simulated::elapsed())).await;
    let end = Simulated::elapsed();
    scraping.abort();
    let (numbers, of_sinks) = (in_force.numbers().clone(), in_force.of_sinks());
    in_force.stop(Instant::now() + DRAIN);
    sleep(DRAIN).await;
    let lines = String::from_utf8(parts.disk.take()).expect("UTF-8");
    let refusals = parts.disk.failures();
    let Parts { receiver, .. } = parts;
    let empty = Receiver::new(0, Duration::ZERO, 0.0);
    let receiver = receiver.replace(empty);
    let dropped = |numbers: &pmderive::internal::fleet::sinks::numbers::Numbers| {
        numbers.dropped_overflow.get() + numbers.dropped_closed.get()
    };
    let history = History::new(&sim.log(), case.hosts, told, end);
    Run {
        lines,
        history,
        receiver,
        refusals,
        scrapes: scrapes.take(),
        numbers: Numbers {
            started: numbers.started.get(),
            answered: numbers.answered.get(),
            failed: numbers.failed.iter().map(|count| count.get()).sum(),
            missed: numbers.missed.get(),
            dropped: of_sinks.iter().map(|(_, numbers)| dropped(numbers)).collect(),
            refused: of_sinks[1].1.dropped_refused.get(),
        },
        hosts: sim,
    }
}

/// Looks at some hosts, and at the fleet itself, at moments by the seed.
async fn scrape_now_and_then(
    case: Case,
    newest: Arc<Newest>,
    sink: u32,
    scrapes: Rc<RefCell<Vec<Scrape>>>,
) {
    for time in 0u64.. {
        let draw = |what: u64| mix(&[case.seed, time, what, 19]);
        sleep(Duration::from_millis(draw(0) % 20_000)).await;
        let hosts =
            (1..6).map(|at| format!("{}:44321", name((draw(at) % u64::from(case.hosts)) as u32)));
        for target in hosts.chain(["fleet".to_owned()]) {
            scrapes.borrow_mut().push(Scrape::of(&newest, sink, target, Simulated::elapsed()));
        }
    }
}

/// The next plan: some hosts go or come, and some definitions are others.
fn next_plan(case: &Case, at: u32, before: &Told) -> Told {
    let draw = |what: u64, of: u32| mix(&[case.seed, at.into(), what, of.into()]);
    let stays = |host: &u32| draw(5, *host) % 8 > 0;
    let hosts: BTreeSet<u32> = (0..case.hosts).filter(stays).collect();
    let constant = |(index, constant): (u32, &u32)| match draw(6, index) % 8 {
        0 => constant + 1000,
        _ => *constant,
    };
    let constants = (0..).zip(&before.constants).map(constant).collect();
    Told { at: Duration::ZERO, hosts, constants }
}

/// What checking a run came to.
#[derive(Debug)]
struct Checked {
    frames: u64,
    marks: u64,
    values: u64,
    slots: u64,
    of_fleet: u64,
    samples: samples::Found,
    /// Series that were scraped.
    scraped: u64,
}

/// Checks all that a run has emitted.
fn check(run: &Run) -> Checked {
    let definitions = Definitions::new(run.hosts.plan(), METRICS);
    let mut hosts = hosts::Checker {
        fleet: &run.hosts,
        history: &run.history,
        definitions: &definitions,
        hosts: BTreeMap::new(),
        frames: 0,
        marks: 0,
        values: 0,
    };
    let mut across = across::Checker::new(&run.history);
    let mut expected = samples::Expected::default();
    let mut shown = scrapes::Expected::default();
    for text in run.lines.lines() {
        let line: lines::Line<'_> =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        match line.number() {
            Some(host) => {
                hosts.line(host, &line);
                across.note(host, &line);
            }
            None => across.line(&line),
        }
        expected.note(&line);
        shown.note(&line);
    }
    hosts.finish(|host| format!("{}:44321", name(host)));
    let numbers = &run.numbers;
    assert_eq!(hosts.frames, numbers.answered);
    // The last slots are under way when all ends.
    let under_way = numbers.started - numbers.answered - numbers.failed;
    assert!(
        under_way <= run.history.told.iter().map(|told| told.hosts.len() as u64).max().unwrap_or(0)
    );
    assert_eq!(numbers.missed, 0);
    let samples = expected.compare(&run.receiver);
    Checked {
        frames: hosts.frames,
        marks: hosts.marks,
        values: hosts.values,
        slots: across.slots,
        of_fleet: across.values,
        samples,
        scraped: shown.compare(&run.scrapes),
    }
}

#[test]
fn a_calm_fleet_answers_every_slot() {
    let run = run(&Case::calm(1, 20, 300));
    assert_eq!(run.numbers.failed, 0);
    let checked = check(&run);
    assert!(checked.frames >= 20 * 29 && checked.slots >= 28, "{checked:?}");
    assert!(checked.values > 20 * 29 * u64::from(METRICS), "{checked:?}");
    assert_eq!((checked.samples.refused, checked.samples.missing), (0, 0));
    assert_eq!(run.numbers.dropped, [0, 0, 0]);
    assert!(checked.scraped > 100, "{checked:?}");
}

/// Hundreds of hosts from which nothing comes, from the first slot on and in one thread:
/// the others do not wait for them.
#[test]
fn hosts_that_do_not_answer_delay_no_other() {
    let run = run(&Case { vanished: 0.5, threads: 1, ..Case::calm(11, 600, 60) });
    check(&run);
    let (mut slowest, mut frames) = (Duration::ZERO, 0);
    for text in run.lines.lines() {
        let line: lines::Line<'_> = serde_json::from_str(text).expect("JSON");
        if line.number().is_some() && line.metrics.is_some() {
            slowest = slowest.max(line.at() - history::due(line.target, line.slot));
            frames += 1;
        }
    }
    assert!(frames > 1200, "{frames}");
    // Their definitions are compiled within 1.5 seconds, and each reply takes 20 ms.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert!(run.numbers.failed > 300, "{:?}", run.numbers);
}

/// Seeds that once found a mistake, with a number of hosts and of seconds: a mark that
/// a series ends in the millisecond of its last sample; a rate over the time in which a
/// metric was another one.
const FOUND: [(u64, u32, u64); 2] = [(4012, 10, 600), (2, 30, 3600)];

#[test]
fn whatever_happens_all_that_is_emitted_is_that_of_the_models() {
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text.parse::<u64>().expect("a number"),
        Err(_) => otherwise,
    };
    let is_asked = std::env::var("PMDERIVE_SIMULATE").ok();
    let seconds = number("PMDERIVE_SIMULATE_SECONDS", 600);
    let hosts = number("PMDERIVE_SIMULATE_HOSTS", 30) as u32;
    let cases: Vec<(u64, u32, u64)> = match &is_asked {
        Some(seeds) => {
            let (first, last) = seeds.split_once('-').expect("FIRST-LAST");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            (number(first)..=number(last)).map(|seed| (seed, hosts, seconds)).collect()
        }
        None => (1..=20).map(|seed| (seed, hosts, seconds)).chain(FOUND).collect(),
    };
    let mut wrong = Vec::new();
    for (seed, hosts, seconds) in cases {
        // Six times an hour each, so that ten minutes have one of each kind.
        let case = Case::rough(seed, hosts, seconds, 6.0);
        let right = || {
            let run = run(&case);
            assert!(run.numbers.failed > 0, "nothing happened");
            let checked = check(&run);
            assert_eq!(run.numbers.dropped, [0, 0, 0]);
            let samples = &checked.samples;
            // What was refused may have been taken before, with another answer.
            assert!(samples.missing == 0 && samples.refused <= run.numbers.refused, "{checked:?}");
            let [values, marks] = [checked.values, checked.marks];
            let numbers = [values, marks, checked.slots, checked.of_fleet, checked.scraped];
            assert!(numbers.iter().all(|number| *number > 20), "{checked:?}");
            if is_asked.is_some() {
                println!("seed {seed}: {checked:?}, the disk was full {} times", run.refusals);
            }
        };
        // What is wrong has been said.
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(right)).is_err() {
            wrong.push(seed);
        }
    }
    assert_eq!(wrong, [] as [u64; 0], "these seeds are wrong, see above");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let all = || {
        let run = run(&Case::rough(7, 10, 300, 1.0));
        (run.lines, run.receiver.stored, run.hosts.log().to_string(), run.numbers, run.scrapes)
    };
    assert!(all() == all());
}

#[test]
fn slots_that_are_missed_end_all_series_once_and_no_rate_spans_them() {
    let clock_is_set = Some((Duration::from_secs(55), 35));
    let run = run(&Case { clock_is_set, ..Case::calm(1, 5, 120) });
    assert_eq!(run.numbers.failed, 0);
    assert!((3 * 5..=4 * 5).contains(&run.numbers.missed), "{:?}", run.numbers);
    let definitions = Definitions::new(run.hosts.plan(), METRICS);
    let differences: BTreeSet<String> = (0..definitions.count())
        .filter(|index| definitions.is_difference(*index))
        .map(|index| format!("fleet.derived.m{index}"))
        .collect();
    for host in 0..5 {
        // Marks, and frames by whether they have all of the differences, or none.
        let mut found = Vec::new();
        for text in run.lines.lines() {
            let line: lines::Line<'_> = serde_json::from_str(text).expect("JSON");
            if line.number() != Some(host) {
                continue;
            }
            found.push(match (&line.metrics, line.reason.as_deref()) {
                (Some(metrics), _) => {
                    match differences.iter().filter(|name| metrics.contains_key(&***name)).count() {
                        0 => "values",
                        count if count == differences.len() => "differences",
                        count => panic!("{count} differences: {text}"),
                    }
                }
                // Of a host whose instances come and go.
                (None, Some("without values")) => continue,
                (None, reason) => {
                    assert_eq!(reason, Some("the slot was never begun"), "{text}");
                    "mark"
                }
            });
        }
        found.dedup();
        assert_eq!(
            found,
            ["values", "differences", "mark", "values", "differences"],
            "host {host}"
        );
    }
}

/// Nobody does a slot again, and nothing stands still until the time has come again.
#[test]
fn no_slot_comes_twice_when_the_clock_is_set_back() {
    for back in [1, 12, 35, 7200] {
        let clock_is_set = Some((Duration::from_secs(55), -back));
        let run = run(&Case { clock_is_set, ..Case::calm(1, 5, 300) });
        assert_eq!((run.numbers.failed, run.numbers.missed), (0, 0), "{back}");
        let mut slots: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for text in run.lines.lines() {
            let line: lines::Line<'_> = serde_json::from_str(text).expect("JSON");
            match (&line.metrics, line.reason.as_deref()) {
                (Some(_), _) => slots.entry(line.target.to_owned()).or_default().push(line.slot),
                // Of a host whose instances come and go.
                (None, reason) => assert_eq!(reason, Some("without values"), "{back}: {text}"),
            }
        }
        assert_eq!(slots.len(), 6, "{back}: hosts and the fleet");
        // From 55 seconds on the clock takes twice as long, until all is made up for.
        let lost = back.min(245 / 2) as u64;
        let expected = (300 - lost) / INTERVAL.as_secs();
        for (target, slots) in slots {
            let is_each_there = slots.windows(2).all(|two| two[1] == two[0] + 1);
            assert!(is_each_there, "{back}, {target}: {slots:?}");
            let count = slots.len() as u64;
            assert!((expected - 3..=expected + 1).contains(&count), "{back}, {target}: {count}");
        }
    }
}

#[test]
fn what_a_ring_has_no_room_for_is_counted_and_the_rest_is_there() {
    // Nobody is there for minutes, and there is room for a part of that.
    let case = Case { buffer: 300_000, ill: 20.0, ..Case::calm(5, 20, 900) };
    let run = run(&case);
    let checked = check(&run);
    assert!(run.numbers.dropped[0] == 0 && run.numbers.dropped[1] > 0, "{:?}", run.numbers);
    assert!(checked.samples.refused <= run.numbers.refused, "{checked:?}");
    // An event that was dropped has at least one sample.
    assert!(checked.samples.missing >= run.numbers.dropped[1], "{checked:?}");
}
