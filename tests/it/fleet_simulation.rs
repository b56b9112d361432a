//! The fleet engine in virtual time, over fake pmcds to which things happen by a
//! seed: every frame and every stale mark against a model that knows what each host
//! answered. A seed gives the same run again.
//!
//! `PMDERIVE_SIMULATE=100-199 PMDERIVE_SIMULATE_SECONDS=3600 cargo test --release
//! --test it fleet_simulation` runs those seeds, an hour of each.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive::engine::{Backend, Engine};
use pmderive::fleet::engine::Fleet;
use pmderive::fleet::frame::{Event, Frame, Instances, Schema, Stale, StaleReason};
use pmderive::fleet::outlets::{Outlet, Outlets};
use pmderive::fleet::plan::{Origin, Plan, load};
use pmderive::fleet::slot::{Due, Nanos, Slot, hash_of};
use pmderive::fleet::world::World;
use pmderive_runtime::eval::Value;
use pmderive_runtime::model;
use pmderive_runtime::program::Status;
use pmderive_testkit::fleet;
use pmderive_testkit::sim::{self, Script, Socket, What};
use tokio::task::LocalSet;
use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_secs(10);

/// When the engine's clock begins: 2026.
const BEGINNING: u64 = 1_767_225_600_000_000_000;

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A machine whose clock is tokio's, and whose network is the simulated fleet.
struct Simulated;

impl World for Simulated {
    type Transport = Socket;

    fn now() -> Nanos {
        let began = BEGAN.get().unwrap_or_else(Instant::now);
        Nanos(BEGINNING + u64::try_from(began.elapsed().as_nanos()).expect("some hours"))
    }
}

/// A sink that keeps everything.
#[derive(Default)]
struct Kept(Mutex<Vec<Arc<Event>>>);

impl Outlet for Kept {
    fn push(&self, event: Arc<Event>) {
        self.0.lock().expect("no panic").push(event);
    }
}

/// Definitions whose values are known from what hosts answered.
const DEFINITIONS: &str = "
sim.gauge = fleet.g0
sim.each = fleet.d0.g0
sim.sum = sum(fleet.d1.g0)
sim.delta = delta(fleet.c1)
sim.rates = rate(fleet.d0.c0)
sim.never = no.such.metric
";

/// Everything happens to each host so many times an hour.
fn script(length: Duration, times: f64) -> Script {
    Script {
        length,
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
    }
}

/// What a run came to.
struct Run {
    events: Vec<Arc<Event>>,
    hosts: sim::Fleet,
    log: sim::Log,
    started: u64,
    answered: u64,
    failed: u64,
    missed: u64,
}

fn run(seed: u64, hosts: u32, seconds: u64, script: &Script) -> Run {
    run_and(seed, hosts, seconds, script, |_| None)
}

/// A run that goes over to another plan after half of its time.
fn run_and(
    seed: u64,
    hosts: u32,
    seconds: u64,
    script: &Script,
    next: impl FnOnce(&fleet::Plan) -> Option<(Plan, tempfile::TempDir)>,
) -> Run {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        BEGAN.set(Some(Instant::now()));
        let fake = fleet::Plan {
            hosts,
            classes: 3,
            singles: 10,
            domains: 2,
            per_domain: 5,
            ..fleet::Plan::default()
        };
        let sim = sim::Fleet::new(seed, fake, script);
        let (plan, _directory) = plan(sim.plan(), hosts, DEFINITIONS);
        let engine = Engine::new(plan.config.language, Backend::Interp).without_threads();
        let kept = Arc::new(Kept::default());
        let outlets = Outlets::new(vec![Arc::clone(&kept) as Arc<dyn Outlet>]);
        let limits = plan.limits();
        let (mut fleet, work) =
            Fleet::in_this_thread::<Simulated>(&Arc::new(engine), limits, &outlets);
        let work = tokio::task::spawn_local(work);
        fleet.follow(&plan, &outlets);
        tokio::time::sleep(Duration::from_secs(seconds / 2)).await;
        if let Some((plan, _directory)) = next(sim.plan()) {
            fleet.follow(&plan, &outlets);
        }
        tokio::time::sleep(Duration::from_secs(seconds - seconds / 2)).await;
        let numbers = Arc::clone(fleet.numbers());
        fleet.stop();
        work.await.expect("no panic");
        let events = std::mem::take(&mut *kept.0.lock().expect("no panic"));
        Run {
            events,
            log: sim.log(),
            hosts: sim,
            started: numbers.started.get(),
            answered: numbers.answered.get(),
            failed: numbers.failed.iter().map(|count| count.get()).sum(),
            missed: numbers.missed.get(),
        }
    })
}

/// The plan for the first hosts, read from files as `serve` reads it.
fn plan(fake: &fleet::Plan, hosts: u32, definitions: &str) -> (Plan, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a folder");
    let names: Vec<String> = (0..hosts).map(|host| fake.name(host)).collect();
    let targets = serde_json::json!([{ "targets": names, "labels": { "rack": "a" } }]);
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    write("hosts.json", &targets.to_string());
    write("sim.conf", definitions);
    let config = "
        interval = 10
        [[group]]
        name = 'sim'
        targets = ['hosts.json']
        definitions = ['sim.conf']
        export = ['sim.*']
        [[sink]]
        kind = 'json-lines'
    ";
    let mut loaded = load(&Origin::File(write("serve.toml", config)));
    let report = loaded.report();
    (loaded.plan.unwrap_or_else(|| panic!("{report}")), directory)
}

/// A series of a host.
type Series = (Arc<str>, i32, Option<Arc<str>>);

fn series(schema: &Schema, metric: usize, instances: &Instances) -> Vec<Series> {
    let name = &schema.metrics[metric].name;
    let lanes = 0..instances.ids.len();
    lanes
        .map(|lane| (Arc::clone(name), instances.ids[lane], instances.names.get(lane).cloned()))
        .collect()
}

/// What is known of a host while its events are gone through.
#[derive(Default)]
struct Model {
    live: BTreeSet<Series>,
    /// The latest frame, unless a slot has failed since.
    before: Option<Arc<Event>>,
    latest: Option<Slot>,
}

/// Checks every event of a run. Gives how many values were compared.
fn check(run: &Run) -> usize {
    let mut models: BTreeMap<u32, Model> = BTreeMap::new();
    let (mut frames, mut failures, mut values) = (0, 0, 0);
    for event in &run.events {
        let name = &event.target().name;
        let host = name.strip_prefix("host").and_then(|rest| rest.split(':').next()?.parse().ok());
        let host: u32 = host.expect("the name of a host");
        let model = models.entry(host).or_default();
        match &**event {
            Event::Frame(frame) => {
                frames += 1;
                values += check_frame(run, host, model, frame);
                model.before = Some(Arc::clone(event));
            }
            Event::Stale(stale) => {
                failures += u64::from(matches!(stale.reason, StaleReason::Failed(_)));
                check_stale(host, model, stale);
            }
        }
    }
    assert_eq!(frames, run.answered);
    assert!(failures <= run.failed);
    // The last slots may be under way when all ends.
    assert!(run.started - run.answered - run.failed <= models.len() as u64);
    assert_eq!(run.missed, 0);
    values
}

fn check_stale(host: u32, model: &mut Model, stale: &Stale) {
    for (metric, instances) in &stale.series {
        for one in series(&stale.schema, *metric, instances) {
            assert!(model.live.remove(&one), "host {host}: {one:?} ended twice");
        }
    }
    if let StaleReason::Failed(_) = stale.reason {
        assert!(model.live.is_empty(), "host {host}: {:?} outlive a failure", model.live);
        model.before = None;
    }
}

fn check_frame(run: &Run, host: u32, model: &mut Model, frame: &Frame) -> usize {
    let due = Due::new(INTERVAL, hash_of(&frame.target.name)).at(frame.slot);
    assert!(frame.at >= due && frame.at.since(due) < INTERVAL * 4 / 5, "host {host}");
    assert!(model.latest.is_none_or(|latest| latest < frame.slot), "host {host}");
    model.latest = Some(frame.slot);

    let mut now = BTreeSet::new();
    for (metric, column) in frame.columns.iter().enumerate() {
        now.extend(series(&frame.schema, metric, &column.instances));
        assert_eq!(column.status == Status::Values, !column.instances.ids.is_empty());
    }
    let ended: Vec<_> = model.live.difference(&now).collect();
    assert!(ended.is_empty(), "host {host}: {ended:?} are not there, and were not said to end");
    model.live = now;

    let answer = run.hosts.answer(host, frame.stamp).expect("the host has answered that");
    let truth = run.hosts.truth(&answer);
    let base = |name: &str| {
        let metrics = run.hosts.plan().metrics(answer.class);
        metrics.into_iter().find(|metric| metric.name == name).expect("a metric of the fleet")
    };
    let mut compared = 0;
    let column = |name: &str| {
        let at = frame.schema.metrics.iter().position(|metric| &*metric.name == name)?;
        Some((&frame.schema.metrics[at], &frame.columns[at]))
    };
    for (derived, metric) in [("sim.gauge", "fleet.g0"), ("sim.each", "fleet.d0.g0")] {
        let (exported, column) = column(derived).expect("it is exported");
        let found: Vec<(i32, f64)> = (0..column.instances.ids.len())
            .map(|lane| {
                let value = number(column.value(exported.value_type, lane));
                (column.instances.ids[lane], value)
            })
            .collect();
        let expected: Vec<(i32, f64)> = truth
            .values(&base(metric))
            .into_iter()
            .map(|(instance, value)| (instance, number_of(&value)))
            .collect();
        assert_eq!(found, expected, "host {host}: {derived} at {}", frame.stamp);
        compared += found.len();
    }
    let (exported, sum) = column("sim.sum").expect("it is exported");
    let expected: f64 =
        truth.values(&base("fleet.d1.g0")).iter().map(|(_, value)| number_of(value)).sum();
    assert_eq!(number(sum.value(exported.value_type, 0)), expected, "host {host}");
    compared += 1 + check_delta(run, host, model, frame, &truth);
    assert!(column("sim.never").is_none());
    compared
}

/// A difference is there if and only if the frame before is of the same connection,
/// and it is the one to that frame.
fn check_delta(
    run: &Run,
    host: u32,
    model: &Model,
    frame: &Frame,
    truth: &sim::Truth<'_>,
) -> usize {
    let at = frame.schema.metrics.iter().position(|metric| &*metric.name == "sim.delta");
    let at = at.expect("it is exported");
    let delta = &frame.columns[at];
    let before = model.before.as_deref().and_then(|event| match event {
        Event::Frame(before) => Some(before),
        Event::Stale(_) => None,
    });
    let before = before.and_then(|before| run.hosts.answer(host, before.stamp));
    let now = truth.answer;
    let Some(before) = before else {
        assert_ne!(delta.status, Status::Values, "host {host}: a difference to nothing");
        return 0;
    };
    // What happened between the two answers may have ended the connection.
    let mut between = run
        .log
        .0
        .iter()
        .filter(|entry| entry.host == host && entry.at >= before.at && entry.at <= now.at);
    let is_quiet = between.all(|entry| matches!(entry.what, What::Answered { .. }));
    if is_quiet {
        assert_eq!(delta.status, Status::Values, "host {host}: no difference at {}", frame.stamp);
    }
    if delta.status != Status::Values {
        return 0;
    }
    assert_eq!(before.class, now.class, "host {host}: a difference of two metrics");
    let metrics = run.hosts.plan().metrics(now.class);
    let counter = metrics.into_iter().find(|metric| metric.name == "fleet.c1");
    let counter = counter.expect("a metric of the fleet");
    let value = |answer: &sim::Answer| match run.hosts.truth(answer).values(&counter)[..] {
        [(_, model::Value::U32(value))] => i128::from(value),
        [(_, model::Value::U64(value))] => i128::from(value),
        ref other => panic!("{other:?}"),
    };
    let expected = value(&now) - value(&before);
    let found = number(delta.value(frame.schema.metrics[at].value_type, 0));
    assert_eq!(found, expected as f64, "host {host} at {}", frame.stamp);
    1
}

fn number(value: Value<'_>) -> f64 {
    match value {
        Value::I32(value) => value.into(),
        Value::U32(value) => value.into(),
        Value::I64(value) => value as f64,
        Value::U64(value) => value as f64,
        Value::F32(value) => value.into(),
        Value::F64(value) => value,
        Value::Text(_) | Value::Bytes(_) => panic!("no number"),
    }
}

fn number_of(value: &model::Value) -> f64 {
    match value {
        model::Value::I32(value) => (*value).into(),
        model::Value::U32(value) => (*value).into(),
        model::Value::I64(value) => *value as f64,
        model::Value::U64(value) => *value as f64,
        model::Value::F32(value) => (*value).into(),
        model::Value::F64(value) => *value,
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn a_calm_fleet_answers_every_slot() {
    let run = run(1, 20, 300, &Script::calm(Duration::from_secs(300)));
    assert_eq!((run.failed, run.missed), (0, 0));
    assert!(run.answered >= 20 * 29);
    assert!(check(&run) > 20 * 29 * 5);
}

#[test]
fn whatever_happens_values_and_marks_are_those_of_the_model() {
    let (seeds, seconds) = match std::env::var("PMDERIVE_SIMULATE") {
        Ok(seeds) => {
            let (first, last) = seeds.split_once('-').expect("FIRST-LAST");
            let seconds = std::env::var("PMDERIVE_SIMULATE_SECONDS").unwrap_or("3600".into());
            let number = |text: &str| text.parse::<u64>().expect("a number");
            (number(first)..=number(last), number(&seconds))
        }
        Err(_) => (1..=4, 600),
    };
    for seed in seeds {
        // Six times an hour each, so that ten minutes have one of each kind.
        let script = script(Duration::from_secs(seconds), 6.0);
        let run = run(seed, 30, seconds, &script);
        assert!(run.failed > 0, "seed {seed}: nothing happened");
        let values = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&run)));
        let values = values.unwrap_or_else(|_| panic!("seed {seed} is wrong, see above"));
        assert!(values > 1000, "seed {seed}");
    }
}

#[test]
fn another_plan_keeps_what_did_not_change() {
    let changed = DEFINITIONS.replace("rate(fleet.d0.c0)", "2 * rate(fleet.d0.c0)");
    let next = |fake: &fleet::Plan| Some(plan(fake, 9, &changed));
    let run = run_and(3, 10, 300, &Script::calm(Duration::from_secs(300)), next);
    // Differences go on: the model wants one in every slot but the first.
    check(&run);
    let of_last = |event: &&Arc<Event>| event.target().name.starts_with("host00009");
    let last: Vec<&Arc<Event>> = run.events.iter().filter(of_last).collect();
    let (end, before) = last.split_last().expect("it had frames");
    assert!(matches!(&***end, Event::Stale(stale) if stale.reason == StaleReason::TargetRemoved));
    assert!((14..=15).contains(&before.len()));
    let others = run.events.iter().filter(|event| !of_last(event));
    let (frames, marks): (Vec<_>, Vec<_>) =
        others.partition(|event| matches!(***event, Event::Frame(_)));
    assert!(frames.len() >= 9 * 29);
    // What changed has no rate at first; nothing else ends.
    assert!(!marks.is_empty());
    for mark in marks {
        let Event::Stale(Stale { schema, series, .. }) = &**mark else { continue };
        let mut names = series.iter().map(|(metric, _)| &*schema.metrics[*metric].name);
        assert!(names.all(|name| name == "sim.rates"));
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let lines = || {
        let run = run(7, 10, 300, &Script::rough(Duration::from_secs(300)));
        let events: Vec<String> = run.events.iter().map(|event| format!("{event:?}")).collect();
        (events, run.log.to_string())
    };
    assert_eq!(lines(), lines());
}
