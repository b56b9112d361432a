//! How many fetches one thread of fake pmcds answers, over how many connections.
//!
//! ```text
//! cargo run --release -p pmderive-runtime --example fleet -- CONNECTIONS METRICS ROUNDS
//! ```
//!
//! All connections fetch all metrics in each round, without a pause; clients
//! and servers have a thread each.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use pmderive_runtime::context::{AsyncHostContext, ConnectOptions};
use pmderive_runtime::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};
use pmderive_runtime::model::Pmid;
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::FetchList;
use pmderive_runtime::transport::AsyncSocket;

/// Hosts that the connections are shared among.
const HOSTS: u64 = 100;

/// Size of this process in memory, in kilobytes.
fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let [connections, metrics, rounds] = arguments[..] else {
        return Err("three numbers are due: connections, metrics, rounds".into());
    };
    let mut world = World::new();
    let pmids: Vec<Pmid> = (0..metrics)
        .map(|number| {
            let script = Script::counter(100.0).varied(0.5);
            world.add(Metric::new(format!("fleet.m{number}"), script))
        })
        .collect();
    let world = Arc::new(world);
    let pmcd = FakePmcd::try_start(FakeHost::new(Arc::clone(&world)))?;
    let mut specs = Vec::new();
    for number in 0..HOSTS {
        let host = FakeHost::new(Arc::clone(&world)).named(format!("host{number}"));
        let host = Arc::new(host.seeded(number).with_clock(Clock::System));
        let address = pmcd.listen_tcp(&host, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        specs.push(format!("pcp://{address}").parse()?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let before = resident_kilobytes();
        let start = Instant::now();
        let mut clients = Vec::new();
        for number in (0..HOSTS).cycle().take(usize::try_from(connections)?) {
            let options = ConnectOptions { request_timeout: None, ..ConnectOptions::default() };
            let spec = &specs[usize::try_from(number)?];
            clients.push(AsyncHostContext::<AsyncSocket>::open_with(spec, options).await?);
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{connections} connections in {seconds:.2} s");
        let list = Arc::new(FetchList::new(pmids, Vec::new()));
        let start = Instant::now();
        let tasks: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                let list = Arc::clone(&list);
                tokio::spawn(async move {
                    let mut batch = ResultBatch::default();
                    for _ in 0..rounds {
                        client.fetch(&list, &mut batch).await?;
                    }
                    Ok::<_, pmderive_runtime::source::SourceError>(client)
                })
            })
            .collect();
        let mut clients = Vec::new();
        for task in tasks {
            clients.push(task.await??);
        }
        let seconds = start.elapsed().as_secs_f64();
        let fetches = connections * rounds;
        let memory = (resident_kilobytes() - before.min(resident_kilobytes())) / connections.max(1);
        println!(
            "{fetches} fetches of {metrics} metrics in {seconds:.2} s: {:.0} fetches/s, \
             {:.2} million values/s, {memory} KB for a connection's two ends",
            fetches as f64 / seconds,
            (fetches * metrics) as f64 / seconds / 1e6,
        );
        Ok(())
    })
}
