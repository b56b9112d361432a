//! Simulated fleets: a seed gives the same run again, all values are those of
//! the model whatever happens, and every kind of event happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pmderive_client::context::{AsyncHostContext, ConnectOptions, HostSpec};
use pmderive_client::transport::Transport;
use pmderive_core::model::{PmStatus, Pmid, ValueType};
use pmderive_core::result::MetricValues;
use pmderive_core::source::SourceError;
use pmderive_testkit::fleet::{BaseMetric, Plan, Shares};
use pmderive_testkit::sim::{Fleet, HostEvent, Log, Script, Socket, What};
use tokio::task::JoinSet;

const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(3);

/// Runs something in virtual time.
fn simulate<R>(run: impl AsyncFnOnce() -> R) -> R {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(run())
}

fn options() -> Arc<ConnectOptions> {
    Arc::new(ConnectOptions {
        connect_timeout: Some(TIMEOUT),
        request_timeout: Some(TIMEOUT),
        reconnect_delays: Vec::new(),
        ..ConnectOptions::default()
    })
}

fn spec(name: &str) -> HostSpec {
    format!("pcp://{name}").parse().expect("a name is a specification")
}

fn small(hosts: u32) -> Plan {
    let shares = Shares { churning: 0.3, ..Shares::NONE };
    let churn = Plan { churn_seconds: 60, passing: 3, shares, ..Plan::default() };
    Plan { hosts, classes: 3, singles: 10, domains: 2, instances: 0..=9, ..churn }
}

/// A client's view of a host.
#[derive(Debug, Default, PartialEq, Eq)]
struct ClientView {
    right: usize,
    /// Metrics of a class that the host had left.
    gone: usize,
    failures: usize,
}

/// A client of one host, which fetches in an interval and checks all values.
async fn watch(fleet: Arc<Fleet>, host: u32, rounds: u32) -> ClientView {
    let mut seen = ClientView::default();
    let mut context: Option<AsyncHostContext<Socket>> = None;
    let mut known: (u64, Vec<Pmid>) = (0, Vec::new());
    for _ in 0..rounds {
        tokio::time::sleep(INTERVAL).await;
        if context.is_none() {
            let spec = spec(&fleet.plan().name(host));
            context = AsyncHostContext::open_over(&spec, options()).await.ok();
            known.0 = 0;
        }
        let Some(open) = &mut context else {
            seen.failures += 1;
            continue;
        };
        if let Err(error) = look(open, &mut known, &fleet, host, &mut seen).await {
            assert!(!matches!(error, SourceError::Malformed { .. }), "{error}");
            seen.failures += 1;
        }
    }
    seen
}

async fn look(
    context: &mut AsyncHostContext<Socket>,
    known: &mut (u64, Vec<Pmid>),
    fleet: &Fleet,
    host: u32,
    seen: &mut ClientView,
) -> Result<(), SourceError> {
    if known.0 != context.metadata_epoch() {
        let names: Vec<String> = fleet.plan().metrics(0).map(|metric| metric.name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = context.lookup_names(&names).await?;
        known.1 = found.into_iter().collect::<Result<_, _>>().expect("all classes have them");
        known.0 = context.metadata_epoch();
    }
    let result = context.fetch_values(&known.1).await?;
    let answer = fleet.answer(host, result.timestamp).expect("an answer with this stamp");
    assert!(fleet.elapsed() - answer.at <= TIMEOUT * 2, "{answer:?}");
    let truth = fleet.truth(&answer);
    for (set, number) in result.sets.iter().zip(0..) {
        let class = set.pmid.cluster();
        let metric: BaseMetric = fleet.plan().metric(class, number);
        if class == answer.class {
            assert_eq!(decoded(set, metric.desc.value_type), Ok(truth.values(&metric)));
            seen.right += 1;
        } else {
            assert_eq!(decoded(set, metric.desc.value_type), Err(PmStatus::PMID));
            seen.gone += 1;
        }
    }
    Ok(())
}

type Values = Vec<(pmderive_core::model::InstId, pmderive_core::model::Value)>;

fn decoded(set: &MetricValues, value_type: ValueType) -> Result<Values, PmStatus> {
    set.decode(value_type)
}

fn run(seed: u64, hosts: u32, rounds: u32, script: &Script) -> (Log, Vec<ClientView>) {
    simulate(async || {
        let fleet = Arc::new(Fleet::new(seed, small(hosts), script));
        let mut clients = JoinSet::new();
        for host in 0..hosts {
            let client = watch(Arc::clone(&fleet), host, rounds);
            clients.spawn(async move { (host, client.await) });
        }
        let mut seen = clients.join_all().await;
        seen.sort_by_key(|(host, _)| *host);
        (fleet.log(), seen.into_iter().map(|(_, seen)| seen).collect())
    })
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let script = Script::rough(Duration::from_secs(3600));
    let [(log, seen), again] = [(); 2].map(|()| run(1, 20, 360, &script));
    assert_eq!(log.to_string(), again.0.to_string());
    assert_eq!(seen, again.1);
    assert_ne!(run(2, 20, 360, &script).0, log);
}

#[test]
fn all_values_are_the_models_whatever_happens() {
    let script = Script::rough(Duration::from_secs(3600));
    let mut happened = BTreeSet::new();
    for seed in 0..5 {
        let (log, seen) = run(seed, 20, 360, &script);
        for seen in seen {
            // 20 metrics in 360 rounds, without the failures.
            assert!(seen.right > 20 * 180 && seen.failures > 0, "{seen:?}");
        }
        // Numbers are left out.
        let kind = |text: String| text.replace(|c: char| c.is_ascii_digit() || c == '-', "");
        happened.extend(log.0.iter().map(|entry| kind(format!("{:?}", entry.what))));
    }
    let all = [
        "Kill",
        "Start",
        "Refuse",
        "Accept",
        "Stop",
        "GoOn",
        "Leave",
        "Return",
        "Reset",
        "by_reset: true",
        "by_reset: false",
        "Drip",
        "Delay",
        "Change",
        "Notice",
        "Jump",
        "Forget",
        "Remember",
        "Connected",
        "Refused",
        "GivenUp",
        "Answered",
        "Struck",
    ];
    for one in all {
        assert!(happened.iter().any(|what| what.contains(one)), "{one}: {happened:?}");
    }
}

#[test]
fn nothing_goes_wrong_in_a_calm_fleet() {
    let (log, seen) = run(3, 10, 60, &Script::calm(Duration::MAX));
    for seen in seen {
        assert_eq!(seen, ClientView { right: 20 * 60, gone: 0, failures: 0 });
    }
    let answers = log.0.iter().filter(|entry| matches!(entry.what, What::Answered { .. }));
    assert_eq!(answers.count(), 600);
}

/// Connects and fetches; returns the outcome with the time that it needed.
async fn one_fetch(fleet: &Fleet) -> Result<Duration, (String, Duration)> {
    let begin = fleet.elapsed();
    let attempt = async {
        let spec = spec(&fleet.plan().address(0).to_string());
        let mut context = AsyncHostContext::<Socket>::open_over(&spec, options()).await?;
        context.fetch_values(&[fleet.plan().metric(0, 0).desc.pmid]).await
    };
    match attempt.await {
        Ok(_) => Ok(fleet.elapsed() - begin),
        Err(error) => Err((error.to_string(), fleet.elapsed() - begin)),
    }
}

#[test]
fn each_trouble_is_seen_as_what_it_is() {
    simulate(async || {
        let fleet = Fleet::new(1, small(1), &Script::calm(Duration::ZERO));
        let soon = Duration::from_millis(100);
        assert!(one_fetch(&fleet).await.expect("values") <= soon);

        let trouble = |what| {
            fleet.happen(0, what);
            one_fetch(&fleet)
        };
        let (error, after) = trouble(HostEvent::Refuse).await.expect_err("refused");
        assert!(error.contains("refused") && after <= soon, "{error} {after:?}");
        assert!(trouble(HostEvent::Accept).await.is_ok());
        let (error, after) = trouble(HostEvent::Kill).await.expect_err("refused");
        assert!(error.contains("refused") && after <= soon, "{error} {after:?}");
        assert!(trouble(HostEvent::Start { class: 0 }).await.is_ok());
        // The connection succeeds, but no greeting comes.
        let (_, after) = trouble(HostEvent::Stop).await.expect_err("late");
        assert!((TIMEOUT..TIMEOUT + soon).contains(&after), "{after:?}");
        assert!(fleet.log().to_string().ends_with("takes a connection\n"));
        assert!(trouble(HostEvent::GoOn).await.is_ok());
        // There is no connection.
        let (_, after) = trouble(HostEvent::Leave).await.expect_err("late");
        assert_eq!(after, TIMEOUT);
        assert!(fleet.log().to_string().ends_with("is given up by a client\n"));
        assert!(trouble(HostEvent::Return).await.is_ok());
        for by_reset in [true, false] {
            let cut = HostEvent::Cut { after: 7, by_reset };
            let (error, after) = trouble(cut).await.expect_err("a part of a reply");
            assert!(after <= soon, "{error} {after:?}");
            assert!(fleet.log().to_string().ends_with("the reply is spoilt\n"));
        }
        let drip = |milliseconds| HostEvent::Drip { every: Duration::from_millis(milliseconds) };
        let after = trouble(drip(1)).await.expect("in time");
        assert!((soon / 2..soon * 2).contains(&after), "{after:?}");
        let (_, after) = trouble(drip(500)).await.expect_err("late");
        assert!((TIMEOUT..TIMEOUT + soon).contains(&after), "{after:?}");
        let by = Duration::from_secs(1);
        let after = trouble(HostEvent::Delay { after: 9, by }).await.expect("in time");
        assert!((by..by + soon).contains(&after), "{after:?}");
    });
}

/// A client that waits until pmcd resumes, or until the host returns, is
/// served.
#[test]
fn what_waits_goes_on() {
    for (begin, end) in [(HostEvent::Stop, HostEvent::GoOn), (HostEvent::Leave, HostEvent::Return)]
    {
        simulate(async || {
            let fleet = Fleet::new(1, small(1), &Script::calm(Duration::ZERO));
            fleet.happen(0, begin);
            let fleet = Arc::new(fleet);
            let later = Arc::clone(&fleet);
            tokio::spawn(async move {
                tokio::time::sleep(TIMEOUT / 2).await;
                later.happen(0, end);
            });
            let after = one_fetch(&fleet).await.expect("values");
            assert!((TIMEOUT / 2..TIMEOUT).contains(&after), "{after:?}");
        });
    }
}

#[test]
fn clocks_jump_and_values_do_not() {
    simulate(async || {
        let fleet = Fleet::new(1, small(1), &Script::calm(Duration::ZERO));
        let name = fleet.plan().name(0);
        let mut context = AsyncHostContext::<Socket>::open_over(&spec(&name), options())
            .await
            .expect("a connection");
        let counter = fleet.plan().metric(0, 0);
        let mut before = None;
        for ahead in [0, 3_600_000_000_000, -7_200_000_000_001] {
            fleet.happen(0, HostEvent::Jump { ahead });
            let truth = fleet.truth_now(0);
            let result = context.fetch_values(&[counter.desc.pmid]).await.expect("values");
            assert_eq!(result.timestamp, truth.answer.stamp);
            let values = decoded(&result.sets[0], counter.desc.value_type);
            assert_eq!(values, Ok(truth.values(&counter)));
            let apart = before.map(|before| result.timestamp.seconds_since(before));
            assert!(apart.is_none_or(|apart: f64| apart.abs() > 3_599.0));
            before = Some(result.timestamp);
        }
    });
}

/// A name without a host, and a thread without a fleet.
#[test]
fn elsewhere_is_nobody() {
    simulate(async || {
        let connect = |name| Socket::connect_tcp(name, &[44321], None);
        assert!(connect("host00000").await.is_err());
        let fleet = Fleet::new(1, small(1), &Script::calm(Duration::ZERO));
        assert!(connect("host00000").await.is_ok());
        assert!(fleet.connect(0, None).await.is_ok());
        for name in ["host0", "host00001", "127.1.0.1", "127.0.0.1", "web1"] {
            assert!(connect(name).await.is_err(), "{name}");
        }
        drop(fleet);
        assert!(connect("host00000").await.is_err());
    });
}
