//! Thousands of connections of one process, clients and fake pmcds alike.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostContext, HostSpec};
use pmderive_runtime::model::{Pmid, Value, ValueType};
use pmderive_runtime::source::{FetchSource, MetadataSource};
use pmderive_testkit::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};

/// Number of connections. Each needs a file at both ends.
const CONNECTIONS: u64 = 5_000;

/// Raises this process's limit of files, and returns the number of possible
/// connections.
fn possible_connections() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { limit };
    let files = limit.current.unwrap_or(u64::MAX);
    CONNECTIONS.min(files.saturating_sub(500) / 2)
}

fn world() -> (Arc<World>, [Pmid; 3]) {
    let mut world = World::new();
    let disks = world.add_domain(&["sda", "sdb", "sdc"]);
    let pmids = [
        world.add(Metric::new("disk.dev.read", Script::counter(50.0).varied(0.5)).per(disks)),
        world.add(Metric::new("kernel.all.load", Script::Random { low: 0.0, high: 8.0 })),
        world.add(Metric::new("hinv.ncpu", Script::constant(4u32))),
    ];
    (Arc::new(world), pmids)
}

#[test]
fn five_thousand_connections_are_served_and_fetched_from() {
    const HOSTS: u64 = 50;
    let connections = possible_connections();
    assert!(connections >= 200, "{connections} connections are too few for a fleet");
    let (world, pmids) = world();
    let pmcd = FakePmcd::start(FakeHost::new(Arc::clone(&world)));
    let hosts: Vec<(HostSpec, Arc<FakeHost>)> = (0..HOSTS)
        .map(|number| {
            let host = FakeHost::new(Arc::clone(&world)).named(format!("host{number}"));
            let host = Arc::new(host.seeded(number).with_clock(Clock::System));
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let address = pmcd.listen_tcp(&host, address).expect("a port");
            (format!("pcp://{address}").parse().expect("a specification"), host)
        })
        .collect();
    // This test measures no time, because a machine may be slow.
    let options = ConnectOptions {
        connect_timeout: None,
        request_timeout: None,
        ..ConnectOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut clients = Vec::new();
        for number in 0..connections {
            let (spec, host) = &hosts[usize::try_from(number % HOSTS).expect("few")];
            let client = AsyncHostContext::open_with(spec, options.clone()).await;
            clients.push((client.expect("a connection"), Arc::clone(host)));
        }
        // All connections at once, three times.
        for _ in 0..3 {
            let fetches = clients.into_iter().map(|(mut client, host)| {
                tokio::spawn(async move {
                    let result = client.fetch_values(&pmids).await.expect("values");
                    assert_eq!(result.sets.len(), 3);
                    let disks = result.sets[0].decode(ValueType::U64).expect("counters");
                    assert_eq!(disks.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2]);
                    let load = result.sets[1].decode(ValueType::F64).expect("a load");
                    assert!(matches!(load[..], [(-1, Value::F64(load))] if load < 8.0));
                    assert_eq!(client.host_name().await.expect("a name"), *host.name());
                    (client, host)
                })
            });
            let fetches: Vec<_> = fetches.collect();
            clients = Vec::new();
            for fetch in fetches {
                clients.push(fetch.await.expect("no panic"));
            }
        }
    });
    let made: u64 = hosts.iter().map(|(_, host)| host.connections()).sum();
    assert_eq!(made, connections);
}

#[test]
fn one_listener_serves_the_host_of_the_address() {
    let (world, pmids) = world();
    let pmcd = FakePmcd::start(FakeHost::new(Arc::clone(&world)));
    let hosts: Vec<Arc<FakeHost>> = (0..3)
        .map(|number| {
            let host = FakeHost::new(Arc::clone(&world)).named(format!("host{number}"));
            Arc::new(host.seeded(number))
        })
        .collect();
    let of_address = move |address: Ipv4Addr| match address.octets() {
        [127, 1, 0, number] => hosts.get(usize::from(number)).cloned(),
        _ => None,
    };
    let port = pmcd.listen_for_many(0, of_address).expect("a port");
    let open = |address: &str| {
        let spec = format!("pcp://{address}:{port}").parse().expect("a specification");
        HostContext::open_with(&spec, ConnectOptions::default())
    };
    for number in [2, 0, 1] {
        let mut context = open(&format!("127.1.0.{number}")).expect("a connection");
        assert_eq!(context.host_name().expect("a name"), format!("host{number}"));
        assert_eq!(context.fetch_values(&pmids).expect("values").sets.len(), 3);
    }
    assert!(open("127.1.0.3").is_err());
}

#[test]
fn one_process_listens_on_sockets_of_all_kinds() {
    let (world, pmids) = world();
    let pmcd = FakePmcd::start(FakeHost::new(world).named("web1"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pmcd.socket");
    pmcd.listen_unix(pmcd.host(), &path).expect("a socket");
    assert!(pmcd.listen_unix(pmcd.host(), &path).is_err(), "it is there already");
    let mut specs = vec![pmcd.spec(), format!("unix:{}", path.display()).parse().expect("a path")];
    // Not every machine has version 6 of IP.
    if let Ok(address) = pmcd.listen_tcp(pmcd.host(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))) {
        specs.push(format!("pcp://{address}").parse().expect("a specification"));
    }
    for spec in &specs {
        let context = HostContext::open_with(spec, ConnectOptions::default());
        let mut context = context.expect("a connection");
        assert_eq!(context.host_name().expect("a name"), "web1");
        assert_eq!(context.fetch_values(&pmids).expect("values").sets.len(), 3);
        // All connections are reset, including idle ones.
        pmcd.host().drop_connections();
        assert!(context.fetch_values(&pmids).is_err());
        assert_eq!(context.fetch_values(&pmids).expect("values").sets.len(), 3);
    }
    drop(pmcd);
    let gone = HostContext::open_with(&specs[0], ConnectOptions::default());
    assert!(gone.is_err(), "the port is free again");
}
