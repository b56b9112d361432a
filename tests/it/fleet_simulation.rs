//! The whole fleet engine in virtual time. A seed decides what happens to its fake pmcds. A
//! receiver and a disk fail, the clock is set, and plans change hosts, definitions of both
//! stages and sinks. Every emitted value and every mark of an end is compared with models that
//! know the answers of each host. A seed gives the same run again.
//!
//! ```text
//!           fake pmcds ──► engine ──► lines of JSON ──► hosts, across: the models
//! seed ──►  names, plans              remote write ───► samples: as the lines say
//!                                     (two receivers)
//!           receiver, disk            /metrics ───────► scrapes: as the lines say
//!           clock
//! ```
//!
//! `benches/fleet/simulate 100-199` runs those seeds, an hour of 200 hosts each, and needs the
//! profile `simulation`. It sets `PMDERIVE_SIMULATE=100-100 PMDERIVE_SIMULATE_SECONDS=3600
//! PMDERIVE_SIMULATE_HOSTS=200` for this test program. `PMDERIVE_SIMULATE_KEEP=FOLDER` writes
//! the engine's output and all events into that folder.

mod across;
mod checking;
mod clock;
mod definitions;
mod history;
mod hosts;
mod lines;
mod samples;
mod scrapes;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pmderive::internal::fleet::plan::{Origin, Plan, load};
use pmderive::internal::fleet::server::ActivePlan;
use pmderive::internal::fleet::sinks::newest_frames::NewestFrames;
use pmderive::internal::fleet::sinks::numbers::SinkNumbers;
use pmderive::internal::fleet::sinks::sink_set::SinkPlace;
use pmderive::internal::fleet::world::World as _;
use pmderive_testkit::fleet;
use pmderive_testkit::mix::mix;
use pmderive_testkit::sim::{self, Answers, Disk, Receiver, Script};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use across::Choice;
use checking::{Checked, Checking, Part};
use clock::Clock;
use definitions::Definitions;
use history::Told;
use scrapes::Scrape;
use world::{BEGINNING, Parts, Simulated};

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
    /// When the machine's clock is set forward, or back, and by how many milliseconds.
    clock_is_set: Vec<(Duration, i64)>,
    /// Hosts have a metric whose units depend on their class, and plans change what is
    /// computed across hosts, and sinks.
    is_varied: bool,
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
            clock_is_set: Vec::new(),
            is_varied: false,
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

    /// The same, and what happens to the engine itself: so many times an hour somebody
    /// sets its clock, by some milliseconds to some minutes, and reloads change all that
    /// they can.
    fn rougher(seed: u64, hosts: u32, seconds: u64, times: f64) -> Case {
        let rough = Case::rough(seed, hosts, seconds, times);
        let count = (times * seconds as f64 / 3600.0).ceil() as u64;
        let set = |number: u64| {
            let draw = |what: u64| mix(&[seed, number, what, 20]);
            let at = Duration::from_millis(draw(0) % (seconds * 1000));
            let most = [1_500, 15_000, 150_000][(draw(1) % 3) as usize];
            let by = 1 + (draw(2) % most).cast_signed();
            (at, if draw(3).is_multiple_of(2) { by } else { -by })
        };
        let mut clock_is_set: Vec<(Duration, i64)> = (0..count).map(set).collect();
        clock_is_set.sort_unstable();
        Case { clock_is_set, is_varied: true, reloads: 12.0, ..rough }
    }
}

/// What a run came to.
struct Run {
    /// None, if they were checked while it ran.
    lines: String,
    hosts: sim::Fleet,
    told: Vec<Told>,
    clock_is_set: Vec<(Duration, i64)>,
    /// When it ended, since the beginning.
    end: Duration,
    receiver: Receiver,
    other: Receiver,
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

fn config(Case { threads, buffer, .. }: &Case, told: &Told) -> String {
    let more = if told.is_wide { "[035]" } else { "[03]" };
    let other = told.other.map(|number| {
        format!(
            "
            [[sink]]
            name = 'other{number}'
            kind = 'remote-write'
            url = 'http://other/api/v1/write'
            max-age = 7200
            buffer = {buffer}
            export = ['fleet.derived.m*[17]', 'racks.*']
            "
        )
    });
    let other = other.unwrap_or_default();
    format!(
        "
        listen = '127.0.0.1:0'
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
        export = ['fleet.derived.m*{more}', 'racks.*', 'fleet.hosts.*']
        [[sink]]
        kind = 'prometheus'
        export = ['fleet.derived.m*[035]', 'racks.*', 'fleet.hosts.*']
        {other}
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
    let mut text: Vec<String> = (0..)
        .zip(&told.constants)
        .map(|(index, constant)| fleet::definition(fake, index, *constant) + "\n")
        .collect();
    if case.is_varied {
        text.push(fleet::mixed_definition() + "\n");
    }
    for (name, text) in [
        ("hosts.json", serde_json::Value::from(targets).to_string()),
        ("sim.conf", text.concat()),
        ("racks.conf", told.across.text()),
        ("serve.toml", config(case, told)),
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
        let running = scope.spawn(|| simulate(case, None));
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The same, and checks all that the run emits while it runs. The run keeps no lines.
fn run_and_check(case: &Case) -> (Run, Checked) {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| simulate(case, Some(sender)));
        let mut checking: Option<Checking> = None;
        for (answers, part) in receiver {
            let new = || Checking::new(answers, Clock::new(&case.clock_is_set));
            checking.get_or_insert_with(new).part(part);
        }
        let run = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let checked = checking.expect("there is a last part").finish(&run);
        (run, checked)
    })
}

/// Where parts of a run go to be checked, and who knows what hosts have answered.
type ToChecking = mpsc::Sender<(Answers, Part)>;

/// Sends parts of a run to be checked.
struct Telling {
    to: ToChecking,
    answers: Answers,
    disk: Disk,
    told: Rc<RefCell<Vec<Told>>>,
    /// How much of `told`, and of the log, was sent.
    sent: [usize; 2],
    /// All lines, if they are to be kept.
    kept: Option<Vec<u8>>,
}

impl Telling {
    /// Sends what there is since the last time.
    fn tell(&mut self, until: Duration) {
        let [told, log] = self.sent;
        let told = self.told.borrow()[told..].to_vec();
        let log = self.answers.log_behind(log);
        self.sent = [self.sent[0] + told.len(), self.sent[1] + log.len()];
        let lines = self.disk.take();
        self.kept.iter_mut().for_each(|kept| kept.extend(&lines));
        let part = Part { lines, told, log, until };
        // Nobody listens any more if something is wrong already.
        let _ = self.to.send((self.answers.clone(), part));
    }
}

fn simulate(case: &Case, to: Option<ToChecking>) -> Run {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    LocalSet::new().block_on(&runtime, simulate_with(case, to))
}

async fn simulate_with(case: &Case, to: Option<ToChecking>) -> Run {
    let kept_in = std::env::var_os("PMDERIVE_SIMULATE_KEEP");
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
        mixed: u32::from(case.is_varied),
        ..fleet::Plan::default()
    };
    let receiver = |ill| Rc::new(RefCell::new(Receiver::new(case.seed, case.length, ill)));
    let parts = Parts {
        receiver: receiver(case.ill),
        // A sink that goes has little time to deliver what waits.
        other: receiver(0.0),
        disk: Disk::new(case.seed, case.length, case.full),
    };
    Simulated::begin(case.seed, parts.clone());
    let sim = sim::Fleet::new(case.seed, fake, &case.script);
    let first = Told {
        at: Duration::ZERO,
        lines: 0..0,
        hosts: (0..case.hosts).collect(),
        constants: (0..METRICS).collect(),
        across: Choice::first(case.is_varied),
        is_wide: true,
        other: None,
    };
    write_files(folder.path(), case, sim.plan(), &first);
    let plan = load_plan(folder.path()).unwrap_or_else(|report| panic!("{report}"));
    let mut active = ActivePlan::<Simulated>::start(plan).expect("it starts");
    let clock_is_set = case.clock_is_set.clone();
    tokio::task::spawn_local(async move {
        for (at, by) in clock_is_set {
            sleep(at.saturating_sub(Simulated::elapsed())).await;
            Simulated::set_clock(by);
        }
    });
    let scrapes = Rc::<RefCell<Vec<Scrape>>>::default();
    let sink = active.sinks.shown().expect("there is a listener's sink");
    let scraping = tokio::task::spawn_local(scrape_now_and_then(
        case.clone(),
        Arc::clone(&active.newest),
        sink,
        Rc::clone(&scrapes),
    ));
    let told = Rc::new(RefCell::new(vec![first]));
    let telling = to.map(|to| {
        let (answers, disk) = (sim.answers_so_far(), parts.disk.clone());
        let kept = kept_in.is_some().then(Vec::new);
        let told = Rc::clone(&told);
        Rc::new(RefCell::new(Telling { to, answers, disk, told, sent: [0; 2], kept }))
    });
    let telling_now_and_then = telling.clone().map(|telling| {
        tokio::task::spawn_local(async move {
            loop {
                sleep(checking::PART).await;
                telling.borrow_mut().tell(Simulated::elapsed());
            }
        })
    });
    let count = (case.reloads * case.length.as_secs_f64() / 3600.0).ceil() as u32;
    for at in 1..=count {
        let pause = case.length / (count + 1);
        sleep(pause.saturating_sub(Duration::from_secs(2))).await;
        let next = next_plan(case, at, told.borrow().last().expect("the first"));
        write_files(folder.path(), case, sim.plan(), &next);
        if mix(&[case.seed, at.into(), 4]).is_multiple_of(4) {
            // A mistake: everything stays as it is.
            std::fs::write(folder.path().join("sim.conf"), "fleet.derived.m0 = 1 +\n")
                .expect("written");
        }
        Simulated::pause(500).await;
        let Ok(plan) = load_plan(folder.path()) else { continue };
        Simulated::pause(500).await;
        // Which plan holds for a slot that begins at this very moment would be open, and
        // so it is for hosts that overslept because the clock was set.
        let set = Simulated::was_set();
        if !set.is_zero() {
            sleep((set + clock::AWAKE).saturating_sub(Simulated::elapsed())).await;
        }
        let clock = || Duration::from_nanos(Simulated::now().0 - BEGINNING);
        let is_due = |host| history::is_near(&format!("{}:44321", name(host)), clock());
        while (0..case.hosts).any(is_due) {
            sleep(Duration::from_millis(1)).await;
        }
        let (at, before) = (Simulated::elapsed(), lines(&active));
        active.follow(plan).expect("nothing that takes a restart");
        if case.is_varied {
            sleep(Duration::from_millis(1)).await;
        }
        let lines = before..lines(&active);
        told.borrow_mut().push(Told { at, lines, ..next });
    }
    sleep(case.length.saturating_sub(Simulated::elapsed())).await;
    let end = Simulated::elapsed();
    scraping.abort();
    telling_now_and_then.iter().for_each(|task| task.abort());
    let of_sinks = active.sinks.numbers();
    let numbers = active.hosts.numbers();
    let mut numbers = Numbers {
        started: numbers.started.get(),
        answered: numbers.answered.get(),
        failed: numbers.failed.iter().map(|count| count.get()).sum(),
        missed: numbers.missed.get(),
        dropped: Vec::new(),
        refused: 0,
    };
    let count = |of: fn(&SinkNumbers) -> u64| -> Vec<u64> {
        of_sinks.iter().map(|(_, numbers)| of(numbers)).collect()
    };
    let before = count(|numbers| numbers.events.get());
    active.stop(Instant::now() + DRAIN);
    sleep(DRAIN).await;
    let lines = match &telling {
        None => parts.disk.take(),
        Some(telling) => {
            let mut telling = telling.borrow_mut();
            telling.tell(end);
            telling.kept.take().unwrap_or_default()
        }
    };
    let lines = String::from_utf8(lines).expect("UTF-8");
    let told = told.take();
    let refusals = parts.disk.failures();
    let [receiver, other] = [&parts.receiver, &parts.other].map(|receiver| {
        let empty = Receiver::new(0, Duration::ZERO, 0.0);
        receiver.replace(empty)
    });
    // Tasks cannot be waited for as threads are, and hosts say something in the moment in
    // which all ends.
    let after = count(|numbers| numbers.events.get());
    let last = after.iter().zip(before).map(|(after, before)| after - before);
    let closed = count(|numbers| numbers.dropped_closed.get());
    let closed = closed.iter().zip(last).map(|(closed, last)| closed.saturating_sub(last));
    let overflow = count(|numbers| numbers.dropped_overflow.get());
    numbers.dropped = overflow.iter().zip(closed).map(|(one, other)| one + other).collect();
    numbers.refused = of_sinks[1].1.dropped_refused.get();
    if let Some(folder) = kept_in {
        let folder = Path::new(&folder);
        std::fs::write(folder.join("lines"), &lines).expect("written");
        std::fs::write(folder.join("log"), sim.log().to_string()).expect("written");
        let plans: String = told.iter().map(|told| format!("{told:?}\n")).collect();
        std::fs::write(folder.join("plans"), plans).expect("written");
        std::fs::write(folder.join("clock"), format!("{:?}\n", case.clock_is_set))
            .expect("written");
    }
    let (clock_is_set, scrapes) = (case.clock_is_set.clone(), scrapes.take());
    Run { lines, told, clock_is_set, end, receiver, other, refusals, scrapes, numbers, hosts: sim }
}

/// How many lines of JSON there are.
fn lines(active: &ActivePlan<Simulated>) -> u64 {
    active.sinks.numbers()[0].1.events.get()
}

/// Looks at some hosts, and at the fleet itself, at moments by the seed.
async fn scrape_now_and_then(
    case: Case,
    newest: Arc<NewestFrames>,
    sink: SinkPlace,
    scrapes: Rc<RefCell<Vec<Scrape>>>,
) {
    for time in 0u64.. {
        let draw = |what: u64| mix(&[case.seed, time, what, 19]);
        sleep(Duration::from_millis(draw(0) % 20_000)).await;
        let hosts =
            (1..3).map(|at| format!("{}:44321", name((draw(at) % u64::from(case.hosts)) as u32)));
        for target in hosts.chain(["fleet".to_owned()]) {
            scrapes.borrow_mut().push(Scrape::of(&newest, sink, target, Simulated::elapsed()));
        }
    }
}

/// The next plan: some hosts go or come, and some definitions are others. In a varied run
/// so are some across hosts, and sinks.
fn next_plan(case: &Case, at: u32, before: &Told) -> Told {
    let draw = |what: u64, of: u32| mix(&[case.seed, at.into(), what, of.into()]);
    let stays = |host: &u32| draw(5, *host) % 8 > 0;
    let hosts: BTreeSet<u32> = (0..case.hosts).filter(stays).collect();
    let constant = |(index, constant): (u32, &u32)| match draw(6, index) % 8 {
        0 => constant + 1000,
        _ => *constant,
    };
    let constants = (0..).zip(&before.constants).map(constant).collect();
    let next = Told { hosts, constants, ..before.clone() };
    if !case.is_varied {
        return next;
    }
    let other = match draw(9, 0) % 4 {
        0 => None,
        // Now and then another one in the place of the former.
        number => Some(number % 2),
    };
    let across = before.across.next(draw(7, 0), true);
    Told { across, is_wide: draw(8, 0) % 2 == 0, other, ..next }
}

/// Checks a run that is over.
fn check(run: &Run) -> Checked {
    let clock = Clock::new(&run.clock_is_set);
    let mut checking = Checking::new(run.hosts.answers_so_far(), clock);
    let (lines, told) = (run.lines.clone().into_bytes(), run.told.clone());
    checking.part(Part { lines, told, log: run.hosts.log().0, until: run.end });
    checking.finish(run)
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
            slowest = slowest.max(line.clock() - history::due(line.target, line.slot));
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
/// metric was another one. In these runs nobody sets the clock, and reloads change neither
/// what is computed across hosts nor sinks ([`Case::rough`]).
const FOUND: [(u64, u32, u64); 2] = [(4012, 10, 600), (2, 30, 3600)];

/// The same of runs in which they do ([`Case::rougher`]): a rate over the time in which
/// its definition was away; values of a slot that went when hosts told of later slots,
/// which they had overslept.
const FOUND_SINCE: [(u64, u32, u64); 2] = [(106, 30, 600), (8, 30, 600)];

#[test]
fn whatever_happens_all_that_is_emitted_is_that_of_the_models() {
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text.parse::<u64>().expect("a number"),
        Err(_) => otherwise,
    };
    let is_asked = std::env::var("PMDERIVE_SIMULATE").ok();
    let seconds = number("PMDERIVE_SIMULATE_SECONDS", 600);
    let hosts = number("PMDERIVE_SIMULATE_HOSTS", 30) as u32;
    // Six times an hour each, so that ten minutes have one of each kind.
    let rougher = |seed: u64| (seed, Case::rougher(seed, hosts, seconds, 6.0));
    let cases: Vec<(u64, Case)> = match &is_asked {
        Some(seeds) => {
            let (first, last) = seeds.split_once('-').expect("FIRST-LAST");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            (number(first)..=number(last)).map(rougher).collect()
        }
        None => {
            let found =
                FOUND.map(|(seed, hosts, seconds)| (seed, Case::rough(seed, hosts, seconds, 6.0)));
            let since = FOUND_SINCE
                .map(|(seed, hosts, seconds)| (seed, Case::rougher(seed, hosts, seconds, 6.0)));
            (1..=20).map(rougher).chain(found).chain(since).collect()
        }
    };
    let mut wrong = Vec::new();
    // Not every run has a second receiver.
    let of_other = Cell::new(0);
    let mixed = Cell::new([0, 0]);
    for (seed, case) in cases {
        let right = || {
            let (run, checked) = run_and_check(&case);
            assert!(run.numbers.failed > 0, "nothing happened");
            assert!(run.numbers.dropped.iter().all(|count| *count == 0), "{:?}", run.numbers);
            let samples = &checked.samples;
            // What was refused may have been taken before, with another answer.
            assert!(samples.missing == 0 && samples.refused <= run.numbers.refused, "{checked:?}");
            let [values, marks] = [checked.values, checked.marks];
            let numbers = [values, marks, checked.slots, checked.of_fleet, checked.scraped];
            assert!(numbers.iter().all(|number| *number > 20), "{checked:?}");
            // Which of both there are depends on who decides about the units.
            let is_mixed = checked.converted.iter().any(|number| *number > 20);
            assert!(is_mixed || !case.is_varied, "{checked:?}");
            let [converted, left_out] = mixed.get();
            let more = checked.converted;
            mixed.set([converted + more[0], left_out + more[1]]);
            of_other.set(of_other.get() + checked.other.stored);
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
    assert!(of_other.get() > 1000 || is_asked.is_some(), "{of_other:?}");
    let is_mixed = mixed.get().iter().all(|number| *number > 1000);
    assert!(is_mixed || is_asked.is_some(), "{mixed:?}");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let all = || {
        let run = run(&Case::rougher(7, 10, 300, 1.0));
        (run.lines, run.receiver.stored, run.hosts.log().to_string(), run.numbers, run.scrapes)
    };
    assert!(all() == all());
}

#[test]
fn slots_that_are_missed_end_all_series_once_and_no_rate_spans_them() {
    let clock_is_set = vec![(Duration::from_secs(55), 35_000)];
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
                    match differences.iter().filter(|name| metrics.get(name).is_some()).count() {
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
        let clock_is_set = vec![(Duration::from_secs(55), -1000 * back)];
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
