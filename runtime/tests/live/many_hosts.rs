//! Many hosts in one process: one task for each, in one thread.

use std::time::Duration;

use pmderive_runtime::context::{AsyncHostContext, ConnectOptions};
use pmderive_runtime::model::{StateChange, Value, ValueType};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, SourceError};
use pmderive_testkit::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};
use tokio::task::JoinSet;

/// Number of connections. Each needs two files of this process.
const HOSTS: usize = 300;

/// Time for one answer, also where other tests keep the processors busy.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn hundreds_of_hosts_are_fetched_from_at_once() {
    let mut world = World::new();
    let disks = world.add_domain(&["sda", "sdb", "sdc"]);
    let reads = world.add(Metric::new("disk.reads", Script::constant(7u64)).per(disks));
    let host = FakeHost::new(world).named("web1").with_clock(Clock::default());
    let pmcd = FakePmcd::start(host);
    let spec = pmcd.spec();
    let mut tasks = JoinSet::new();
    for number in 0..HOSTS {
        let spec = spec.clone();
        tasks.spawn(async move {
            let timeout = Some(PATIENCE);
            let options = ConnectOptions {
                connect_timeout: timeout,
                request_timeout: timeout,
                ..ConnectOptions::default()
            };
            let mut host: AsyncHostContext = AsyncHostContext::open_with(&spec, options).await?;
            let found = host.lookup_names(&["disk.reads"]).await?;
            let pmids: Vec<_> = found.into_iter().flatten().collect();
            let list = FetchList::new(pmids.clone(), vec![]);
            let mut batch = ResultBatch::default();
            for _ in 0..5 {
                let events = host.fetch(&list, &mut batch).await?;
                assert_eq!((events.gap, events.changes), (false, StateChange(0)));
            }
            let values = host.fetch_values(&pmids).await?.sets[0].decode(ValueType::U64);
            assert_eq!(host.host_name().await?, "web1");
            Ok::<_, SourceError>((number, pmids, values))
        });
    }
    let mut seen = vec![false; HOSTS];
    while let Some(outcome) = tasks.join_next().await {
        let (number, pmids, values) = outcome.expect("no panic").expect("answers");
        seen[number] = true;
        assert_eq!(pmids, [reads]);
        let expected: Vec<_> = (0..3).map(|instance| (instance, Value::U64(7))).collect();
        assert_eq!(values, Ok(expected));
    }
    assert!(seen.into_iter().all(|seen| seen));
    assert_eq!(pmcd.host().connections(), HOSTS as u64);
}
