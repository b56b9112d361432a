//! A fleet behind sockets: each host follows its plan, value by value, and the
//! ill ones are ill in the right way.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use pmderive_client::context::{ConnectOptions, HostContext, HostSpec};
use pmderive_core::model::{InstId, Value};
use pmderive_core::source::{FetchSource, Freshness, MetadataSource, SourceError, distinct};
use pmderive_testkit::fleet::{BaseMetric, FakeFleet, Fate, Plan, Shares};

fn spec(fleet: &FakeFleet, host: u32) -> HostSpec {
    format!("pcp://{}", fleet.address(host)).parse().expect("an address is a specification")
}

fn open(fleet: &FakeFleet, host: u32) -> Result<HostContext, SourceError> {
    HostContext::open_with(&spec(fleet, host), ConnectOptions::default())
}

/// The right values of a fetch of all metrics.
fn expected(plan: &Plan, host: u32, metric: &BaseMetric, at: Stamp) -> Vec<(InstId, Value)> {
    let value = |id| (id, plan.value(host, metric.number, id, at));
    match metric.desc.indom {
        None => vec![value(-1)],
        Some(indom) => {
            let instances = plan.instances(host, indom.serial(), at);
            instances.into_iter().map(|(id, _)| value(id)).collect()
        }
    }
}

type Stamp = pmderive_core::model::Timestamp;

#[test]
fn every_value_of_every_host_is_the_plans() {
    let shares = Shares { churning: 0.5, ..Shares::NONE };
    let plan = Plan { hosts: 24, classes: 5, shares, ..Plan::default() };
    let fleet = FakeFleet::start(plan.clone(), 0).expect("a port");
    for host in 0..plan.hosts {
        let mut context = open(&fleet, host).expect("a connection");
        assert_eq!(context.host_name().expect("a name"), plan.name(host));
        let metrics: Vec<BaseMetric> = plan.metrics(plan.class(host)).collect();
        let names: Vec<&str> = metrics.iter().map(|metric| &*metric.name).collect();
        let pmids = context.lookup_names(&names).expect("an answer");
        let pmids: Vec<_> = pmids.into_iter().collect::<Result<_, _>>().expect("all names");
        assert_eq!(distinct(&pmids), pmids);
        let descs = context.lookup_descs(&pmids).expect("an answer");
        for _ in 0..2 {
            let result = context.fetch_values(&pmids).expect("values");
            for ((set, metric), desc) in result.sets.iter().zip(&metrics).zip(&descs) {
                assert_eq!(*desc, Ok(metric.desc), "{}", metric.name);
                let values = set.decode(metric.desc.value_type).expect("values");
                assert_eq!(values, expected(&plan, host, metric, result.timestamp));
            }
        }
        for domain in 1..plan.domains {
            let asked = context.instance_domain(plan.indom(domain), Freshness::Current);
            let found = asked.expect("an answer").expect("a domain");
            let found: Vec<_> = found.instances().map(|(id, name)| (id, name.into())).collect();
            assert_eq!(found, plan.instances(host, domain, Stamp::default()));
        }
    }
}

#[test]
fn ill_hosts_are_ill_in_their_way() {
    let share = 0.2;
    let shares =
        Shares { churning: 0.0, dripping: share, silent: share, refusing: share, vanished: share };
    let plan = Plan { hosts: 40, shares, ..Plan::default() };
    let fleet = FakeFleet::start(plan.clone(), 0).expect("a port");
    let first = |fate| (0..plan.hosts).find(|host| plan.fate(*host) == fate).expect("one of 40");
    let open = |fate, milliseconds| {
        let limit = Some(Duration::from_millis(milliseconds));
        let options = ConnectOptions { request_timeout: limit, ..ConnectOptions::default() };
        HostContext::open_with(&spec(&fleet, first(fate)), options)
    };
    // These failures need only a short time-out.
    let refused = open(Fate::Refuses, 100).expect_err("no connection").to_string();
    assert!(refused.contains("refused"), "{refused}");
    let silent = open(Fate::IsSilent, 100).expect_err("no greeting");
    assert!(matches!(silent, SourceError::Timeout { .. }), "{silent:?}");
    let address = fleet.address(first(Fate::HasVanished)).into();
    let vanished = TcpStream::connect_timeout(&address, Duration::from_millis(100));
    assert_eq!(vanished.expect_err("no answer").kind(), ErrorKind::TimedOut);
    let mut dripping = open(Fate::Drips, 2_000).expect("a greeting at once");
    let metric = plan.metric(plan.class(first(Fate::Drips)), 0);
    let late = dripping.fetch_values(&[metric.desc.pmid]).expect_err("some bytes");
    assert!(matches!(late, SourceError::Timeout { .. }), "{late:?}");
}

#[test]
fn connections_are_cut_all_at_once_and_come_back() {
    let fleet = FakeFleet::start(Plan { hosts: 30, ..Plan::default() }, 0).expect("a port");
    let gauge = |host| fleet.plan().metric(fleet.plan().class(host), 1).desc.pmid;
    let contexts = (0..30).map(|host| (host, open(&fleet, host).expect("a connection")));
    let mut contexts: Vec<(u32, HostContext)> = contexts.collect();
    for (host, context) in &mut contexts {
        assert!(context.fetch_values(&[gauge(*host)]).is_ok());
    }
    fleet.cut_all();
    for (host, context) in &mut contexts {
        assert!(context.fetch_values(&[gauge(*host)]).is_err());
        assert!(context.fetch_values(&[gauge(*host)]).is_ok());
    }
}

/// The port has no host at other addresses.
#[test]
fn addresses_without_a_host_are_closed() {
    let fleet = FakeFleet::start(Plan { hosts: 3, ..Plan::default() }, 0).expect("a port");
    let mut beyond = fleet.address(2);
    beyond.set_ip([127, 1, 0, 3].into());
    let mut stream = TcpStream::connect(beyond).expect("the port is open");
    // It may be closed before or after the first byte from here.
    let _ = stream.write(&[0]);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn targets_have_the_form_of_file_sd() {
    let fleet = FakeFleet::start(Plan { hosts: 42, ..Plan::default() }, 0).expect("a port");
    let port = fleet.address(0).port();
    let targets = fleet.targets();
    let lines: Vec<&str> = targets.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[43]), (44, "[", "]"));
    let line = |address: &str, labels: &str, end: &str| {
        format!(r#"{{"targets":["{address}:{port}"],"labels":{labels}}}{end}"#)
    };
    let first = r#"{"rack":"r000","dc":"dc0","host":"host00000"}"#;
    let last = r#"{"rack":"r001","dc":"dc1","host":"host00041"}"#;
    assert_eq!(lines[1], line("127.1.0.0", first, ","));
    assert_eq!(lines[42], line("127.1.0.41", last, ""));
}

#[test]
fn the_program_serves_writes_files_and_cuts() {
    let folder = tempfile::tempdir().expect("a folder");
    let [targets, definitions] = ["hosts.json", "fleet.conf"].map(|name| folder.path().join(name));
    let mut program = Command::new(env!("CARGO_BIN_EXE_fake-fleet"))
        .args(["--hosts", "3", "--instances", "2-4", "--count", "7", "--until-eof", "yes"])
        .args(["--targets".as_ref(), targets.as_os_str()])
        .args(["--definitions".as_ref(), definitions.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut lines = BufReader::new(program.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let first = line();
    let address = first.strip_prefix("3 hosts, the first one at ").expect("where it is");
    let targets = std::fs::read_to_string(targets).expect("a file");
    assert!(targets.contains(&format!("[\"{address}\"]")), "{targets}");
    let definitions = std::fs::read_to_string(definitions).expect("a file");
    assert_eq!(definitions.lines().count(), 7);

    let spec = format!("pcp://{address}").parse().expect("an address is a specification");
    let context = HostContext::open_with(&spec, ConnectOptions::default());
    let mut context = context.expect("a connection");
    let pmid = Plan::default().metric(0, 0).desc.pmid;
    assert!(context.fetch_values(&[pmid]).is_ok());
    let id = rustix::process::Pid::from_child(&program);
    rustix::process::kill_process(id, rustix::process::Signal::USR1).expect("it runs");
    assert_eq!(line(), "all connections are cut");
    assert!(context.fetch_values(&[pmid]).is_err());
    assert!(context.fetch_values(&[pmid]).is_ok());
    drop(program.stdin.take());
    assert!(program.wait().expect("its end").success());
}
