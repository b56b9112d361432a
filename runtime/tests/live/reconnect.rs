//! A context whose peer goes away: the times of its attempts, and its messages over the new
//! connection.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::fakes::{impatient, numbers_host, values};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, Pmid};
use pmderive_runtime::pdu::PduType;
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, SourceError};
use pmderive_runtime::transport::ready;
use pmderive_testkit::fake_pmcd::{Direct, FakeHost, FakePmcd, Fault, Metric, Rule, Script};

/// A host in memory that clients reach as `memory`.
fn attached() -> Arc<FakeHost> {
    let host = Arc::new(numbers_host(10));
    Direct::attach("memory", &host);
    host
}

fn open() -> AsyncHostContext<Direct> {
    let options = ConnectOptions { request_timeout: None, ..ConnectOptions::default() };
    let spec = "pcp://memory".parse().expect("a specification");
    ready(AsyncHostContext::open_over(&spec, options)).expect("a peer")
}

fn fetch(host: &mut AsyncHostContext<Direct>) -> Result<bool, SourceError> {
    let mut batch = ResultBatch::default();
    let list = FetchList::new(vec![Pmid(3)], Vec::new());
    let events = ready(host.fetch(&list, &mut batch))?;
    assert_eq!(values(&batch), [(Pmid(3), 3)]);
    Ok(events.gap)
}

fn pass(seconds: f64) {
    Direct::advance(Duration::from_secs_f64(seconds));
}

/// A first connection that is made late interrupts nothing.
#[test]
fn only_another_connection_is_a_gap() {
    let peer = attached();
    let spec = "pcp://memory".parse().expect("a specification");
    let mut host = AsyncHostContext::unconnected_over(spec, ConnectOptions::default());
    assert!(!fetch(&mut host).expect("values"));
    peer.inject(Rule::new(Fault::Close { after: 0 }));
    fetch(&mut host).expect_err("closed");
    assert!(fetch(&mut host).expect("values"));
}

/// The first attempt is made at once, the next ones after 5, 10, 20, 40, 80
/// and 80 seconds; in between calls fail without trying.
#[test]
fn attempts_wait_longer_each_time() {
    let peer = attached();
    let mut host = open();
    assert!(!fetch(&mut host).expect("values"));
    peer.inject(Rule::new(Fault::Replace(vec![0; 12])));
    let broken = fetch(&mut host).expect_err("the end");
    assert!(matches!(broken, SourceError::Malformed { .. }), "{broken}");
    assert_eq!(Direct::attempts(), 1);
    Direct::detach("memory");
    let mut made = 1;
    for delay in [5.0, 10.0, 20.0, 40.0, 80.0, 80.0] {
        let refused = fetch(&mut host).expect_err("no one there");
        assert!(matches!(refused, SourceError::Connect { .. }), "{refused}");
        made += 1;
        pass(delay - 0.001);
        for error in [fetch(&mut host).map(drop), ready(host.reconnect())] {
            let error = error.expect_err("the time has not come");
            assert!(matches!(error, SourceError::TooSoon { .. }), "{error}");
            assert_eq!(error.status(), PmStatus(-110));
        }
        assert_eq!(Direct::attempts(), made);
        // An automatic attempt waits up to a quarter longer.
        pass(delay / 4.0 + 0.001);
    }
    // A success ends the waiting; the next failure starts with the first pause.
    Direct::attach("memory", &peer);
    assert!(fetch(&mut host).expect("values"), "a gap");
    peer.drop_connections();
    Direct::detach("memory");
    assert!(fetch(&mut host).is_err());
    assert!(matches!(fetch(&mut host), Err(SourceError::Connect { .. })));
    pass(4.0);
    assert!(matches!(fetch(&mut host), Err(SourceError::TooSoon { .. })));
    // An explicit attempt need not wait for the quarter.
    pass(1.0);
    Direct::attach("memory", &peer);
    ready(host.reconnect()).expect("a connection");
    assert!(fetch(&mut host).expect("values"), "a gap");
    assert_eq!(Direct::attempts(), made + 3);
}

/// The client sends the profile with the first fetch, with the first one after
/// a change, and again over every new connection.
#[test]
fn the_profile_outlives_the_connection() {
    let peer = attached();
    let indom = InDom(7);
    let many = Pmid::new(0, 9, 9);
    peer.change(|world| {
        world.set_instances(indom, &[(1, "one"), (2, "two"), (3, "three")]);
        world.add(Metric::new("many", Script::constant(1u32)).numbered(many).per(indom));
    });
    let mut host = open();
    let told = || peer.requests(PduType::Profile);
    let instances = |host: &mut AsyncHostContext<Direct>| {
        let result = ready(host.fetch_values(&[many])).expect("values");
        let values = result.sets[0].outcome.as_ref().expect("values");
        values.iter().map(|value| value.instance).collect::<Vec<_>>()
    };
    assert_eq!((instances(&mut host), told()), (vec![1, 2, 3], 1));
    let mut profile = InstanceProfile::default();
    profile.exclude_everything();
    profile.include(indom, &[2, 1]);
    host.set_profile(&profile).expect("a small profile");
    assert_eq!(told(), 1, "not before it is needed");
    assert_eq!((instances(&mut host), told()), (vec![1, 2], 2));
    host.set_profile(&profile).expect("the same");
    assert_eq!((instances(&mut host), told()), (vec![1, 2], 2));
    peer.drop_connections();
    assert!(fetch(&mut host).is_err(), "the end of the first");
    assert!(fetch(&mut host).expect("values"), "a gap");
    assert_eq!((instances(&mut host), told()), (vec![1, 2], 3));
    // A duplicate has it as well.
    let mut twin = ready(host.duplicate()).expect("a connection");
    assert_eq!(twin.profile(), &profile);
    assert_eq!((instances(&mut twin), told()), (vec![1, 2], 4));
    // A profile that pmcd would not accept is refused, and the other holds.
    let mut large = InstanceProfile::default();
    large.include(indom, &(0..20_000).collect::<Vec<_>>());
    let refused = host.set_profile(&large).expect_err("80,000 bytes");
    assert_eq!(refused.status(), PmStatus::TOOBIG);
    assert_eq!(host.profile(), &profile);
}

/// The error may concern either request, and more may follow. The client gives
/// up the connection, and the next call makes another.
#[test]
fn an_error_after_a_profile_ends_the_connection() {
    let peer = attached();
    for kind in [PduType::Profile, PduType::HighresFetch] {
        peer.inject(Rule::new(Fault::Status(PmStatus::PERMISSION)).on(kind));
    }
    let mut host = open();
    let refused = fetch(&mut host).expect_err("no permission");
    assert_eq!(refused.status(), PmStatus::PERMISSION);
    assert!(!host.is_connected());
    assert!(fetch(&mut host).expect("values"), "a gap");
}

/// Giving up a call costs that context its connection, and does not affect other contexts.
#[tokio::test]
async fn a_call_that_is_given_up_takes_its_connection_along() {
    let peers = [0, 1].map(|_| FakePmcd::start(numbers_host(10)));
    let mut hosts: Vec<AsyncHostContext> = Vec::new();
    for peer in &peers {
        hosts.push(AsyncHostContext::open(&peer.spec()).await.expect("a connection"));
    }
    peers[0].host().inject(Rule::new(Fault::Stall { after: 0 }));
    let list = FetchList::new(vec![Pmid(3)], Vec::new());
    let mut batch = ResultBatch::default();
    assert!(!hosts[1].fetch(&list, &mut batch).await.expect("values").gap);
    {
        let mut nobody = Context::from_waker(Waker::noop());
        let fetch = std::pin::pin!(hosts[0].fetch(&list, &mut batch));
        assert!(fetch.poll(&mut nobody).is_pending(), "there will be no reply");
    }
    assert!(!hosts[0].is_connected());
    peers[0].host().behave();
    for (host, gap) in hosts.iter_mut().zip([true, false]) {
        assert_eq!(host.fetch(&list, &mut batch).await.expect("values").gap, gap);
        assert_eq!(values(&batch), [(Pmid(3), 3)]);
    }
}

/// A reply that does not come runs into the time-out, which is of no meaning
/// to other contexts.
#[tokio::test]
async fn time_outs_are_those_of_each_context() {
    let peer = FakePmcd::start(numbers_host(10));
    peer.host().inject(Rule::new(Fault::Stall { after: 0 }));
    let opened = AsyncHostContext::open_with(&peer.spec(), impatient()).await;
    let mut host = opened.expect("a connection");
    let late = host.lookup_names(&["m.1"]).await.expect_err("there will be no reply");
    assert!(matches!(late, SourceError::Timeout { .. }), "{late}");
    assert_eq!(late.status(), PmStatus::TIMEOUT);
    assert!(!host.is_connected());
}
