//! Calls on a real pmcd besides lookups and fetches: stores, profiles, single
//! instances, names of hosts and zones; and the asynchronous context beside
//! the blocking one.

use std::future::Future;

use crate::real_pmcd::RealPmcd;
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostContext, HostSpec};
use pmderive_runtime::model::{
    InDom, InstId, InstanceProfile, LabelLevel, PmStatus, Pmid, RawValue, TextKind, TextSubject,
    Value,
};
use pmderive_runtime::result::{InstanceValue, MetricValues, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource, Question};

fn spec(pmcd: &RealPmcd) -> HostSpec {
    format!("unix:{}", pmcd.socket.display()).parse().expect("a specification")
}

fn open(pmcd: &RealPmcd) -> HostContext {
    HostContext::open_with(&spec(pmcd), ConnectOptions::default()).expect("a connection")
}

fn lookup(host: &mut HostContext, name: &str) -> Pmid {
    host.lookup_names(&[name]).expect("an answer")[0].expect(name)
}

fn values(pmid: Pmid, value: RawValue) -> MetricValues {
    MetricValues { pmid, outcome: Ok(vec![InstanceValue { instance: -1, value }]) }
}

/// A value of every type goes to an agent and comes back, also to PCP's tools.
#[test]
fn values_of_every_type_are_stored() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&pmcd);
    let table = [
        ("sample.long.write_me", Value::I32(-5), "-5"),
        ("sample.ulong.write_me", Value::U32(4_000_000_000), "4000000000"),
        ("sample.longlong.write_me", Value::I64(-1 << 40), "-1099511627776"),
        ("sample.ulonglong.write_me", Value::U64(u64::MAX), "18446744073709551615"),
        ("sample.float.write_me", Value::F32(0.5), "0.5"),
        ("sample.double.write_me", Value::F64(-2.25), "-2.25"),
        ("sample.string.write_me", Value::Text("some words".into()), "\"some words\""),
    ];
    for (name, value, printed) in &table {
        let pmid = lookup(&mut host, name);
        let stored = host.store(&[values(pmid, RawValue::encode(value))]).expect("an answer");
        assert_eq!(stored, Ok(()), "{name}");
        let read = host.fetch_values(&[pmid]).expect("values").sets[0].decode(value.value_type());
        assert_eq!(read, Ok(vec![(-1, value.clone())]), "{name}");
        assert_eq!(pmcd.tool("pmprobe", &["-v", name]), format!("{name} 1 {printed}\n"));
    }
    // PCP's tool refuses to store these; the agent accepts them.
    let aggregate = lookup(&mut host, "sample.aggregate.write_me");
    let bytes = Value::Aggregate(Box::new([0, 1, 2, 255, 7]));
    let stored = host.store(&[values(aggregate, RawValue::encode(&bytes))]).expect("an answer");
    assert_eq!(stored, Ok(()));
    let read = host.fetch_values(&[aggregate]).expect("values").sets[0].decode(bytes.value_type());
    assert_eq!(read, Ok(vec![(-1, bytes)]));
}

#[test]
fn stores_that_cannot_be_say_why() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&pmcd);
    let [long, one, string] = ["sample.long.write_me", "sample.long.one", "sample.string.write_me"]
        .map(|name| lookup(&mut host, name));
    let stranger = Pmid::new(400, 0, 1);
    let number = |word| RawValue::InPlace(word);
    let text = |text: &str| RawValue::encode(&Value::Text(text.into()));
    let none = |outcome| vec![MetricValues { pmid: long, outcome }];
    let mixed = [number(1), text("1")].map(|value| InstanceValue { instance: -1, value }).to_vec();
    let long_text = "x".repeat(70_000);
    for (request, expected) in [
        (vec![values(one, number(42))], PmStatus::PERMISSION),
        (vec![values(stranger, number(42))], PmStatus::NOAGENT),
        (vec![values(long, text("13"))], PmStatus::BADSTORE),
        (none(Ok(vec![])), PmStatus::BADSTORE),
        (none(Err(PmStatus::AGAIN)), PmStatus::BADSTORE),
        (none(Ok(mixed)), PmStatus::BADSTORE),
        (vec![], PmStatus::TOOSMALL),
        (vec![values(string, text(&long_text))], PmStatus::TOOBIG),
    ] {
        let stored = host.store(&request).expect("an answer");
        assert_eq!(stored, Err(expected), "{:?}", &request.first().map(|set| set.pmid));
    }
    // There is one status for all; correct values are stored nevertheless.
    let both = [values(long, number(77)), values(stranger, number(1))];
    assert_eq!(host.store(&both).expect("an answer"), Err(PmStatus::NOAGENT));
    let read = host.fetch_values(&[long]).expect("values");
    assert_eq!(read.sets, [values(long, number(77))]);
}

/// Agents decide about the meaning of a name.
#[test]
fn agents_are_asked_for_single_instances() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&pmcd);
    let (bins, load) = (InDom::new(29, 2), InDom::new(60, 2));
    for (indom, name, expected) in [
        (bins, "bin-300", Ok(300)),
        (bins, "bin-300 x", Ok(300)),
        (bins, "bin-", Err(PmStatus::INST)),
        (load, "15 minute", Ok(15)),
        (load, "1", Ok(1)),
        (load, "1 m", Err(PmStatus::INST)),
        (load, "", Err(PmStatus::INST)),
        (load, "5 minute\0", Err(PmStatus::INST)),
        (InDom::new(400, 1), "x", Err(PmStatus::INDOM)),
    ] {
        assert_eq!(host.lookup_instance(indom, name).expect("an answer"), expected, "{name}");
    }
    for (indom, instance, expected) in [
        (bins, 300, Ok("bin-300")),
        (load, 5, Ok("5 minute")),
        (bins, 301, Err(PmStatus::INST)),
        (bins, -1, Err(PmStatus::INST)),
        (InDom::new(400, 1), 1, Err(PmStatus::INDOM)),
    ] {
        let found = host.instance_name(indom, instance).expect("an answer");
        assert_eq!(found.as_deref(), expected.as_ref().copied(), "{instance}");
    }
}

#[test]
fn the_host_tells_its_name_and_zone() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&pmcd);
    let text = |name| {
        let printed = pmcd.tool("pmprobe", &["-v", name]);
        printed.split('"').nth(1).map(str::to_owned)
    };
    assert_eq!(Some(host.host_name().expect("an answer")), text("pmcd.hostname"));
    assert_eq!(host.time_zone().expect("an answer"), text("pmcd.zoneinfo"));
}

/// The steps of pmAddProfile(3) and pmDelProfile(3), one after the other, each
/// with the instances that are delivered after it.
#[test]
fn profiles_choose_instances() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&pmcd);
    let bin = lookup(&mut host, "sample.bin");
    let one = lookup(&mut host, "sample.long.one");
    let bins = InDom::new(29, 2);
    let all: Vec<InstId> = (1..=9).map(|number| number * 100).collect();
    let without = |gone: &[InstId]| all.iter().copied().filter(|i| !gone.contains(i)).collect();
    let mut profile = InstanceProfile::default();
    let mut step = |change: &dyn Fn(&mut InstanceProfile), expected: Vec<InstId>| {
        change(&mut profile);
        host.set_profile(&profile).expect("a small profile");
        let result = host.fetch_values(&[bin, one]).expect("values");
        let instances = |set: &MetricValues| -> Vec<InstId> {
            set.outcome.as_ref().expect("values").iter().map(|value| value.instance).collect()
        };
        assert_eq!(instances(&result.sets[0]), expected);
        assert_eq!(instances(&result.sets[1]), [-1], "singular metrics are not concerned");
    };
    step(&|_| {}, all.clone());
    step(&|p| p.include(bins, &[100]), vec![100]);
    step(&|p| p.include(bins, &[200, 300]), vec![100, 200, 300]);
    step(&|p| p.exclude(bins, &[100]), vec![200, 300]);
    step(&|p| p.include(bins, &[12_345]), vec![200, 300]);
    step(&|p| p.include_all(bins), all.clone());
    step(&|p| p.exclude(bins, &[200, 300]), without(&[200, 300]));
    step(&|p| p.include(bins, &[200]), without(&[300]));
    step(&|p| p.exclude_all(bins), vec![]);
    step(&|p| p.include(bins, &[100]), vec![100]);
    step(&InstanceProfile::include_everything, all.clone());
    step(&|p| p.exclude(bins, &[100]), without(&[100]));
    step(&InstanceProfile::exclude_everything, vec![]);
    step(&|p| p.include(bins, &[100]), vec![100]);
    // Questions about instance domains are not concerned.
    let domain = host.instance_domain(bins, Freshness::Current).expect("an answer");
    assert_eq!(domain.expect("a domain").len(), 9);
    let mut twin = host.duplicate().expect("a connection");
    let result = twin.fetch_values(&[bin]).expect("values");
    assert_eq!(result.sets[0].outcome.as_ref().map(Vec::len), Ok(1), "the profile is replicated");
}

/// Some metric of many names, to compare the answers of two contexts.
const NAMES: [&str; 6] = [
    "sample.bin",
    "sample.string.hullo",
    "sample.double.million",
    "sample.aggregate.hullo",
    "sample.missing",
    "pmcd.version",
];

#[tokio::test]
async fn the_asynchronous_context_answers_the_same() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut blocking = open(&pmcd);
    let specs = [spec(&pmcd), format!("localhost:{}", pmcd.port).parse().expect("a host")];
    for spec in specs {
        let mut host = AsyncHostContext::open(&spec).await.expect("a connection");
        let found = blocking.lookup_names(&NAMES).expect("answers");
        assert_eq!(host.lookup_names(&NAMES).await.expect("answers"), found);
        let pmids: Vec<Pmid> = found.into_iter().flatten().collect();
        let descs = host.lookup_descs(&pmids).await.expect("answers");
        assert_eq!(descs, blocking.lookup_descs(&pmids).expect("answers"));
        let result = host.fetch_values(&pmids).await.expect("values");
        assert_eq!(result.sets, blocking.fetch_values(&pmids).expect("values").sets);
        assert_eq!(result.sets.len(), 5);
        let bins = InDom::new(29, 2);
        assert_eq!(
            host.instance_domain(bins, Freshness::Current).await.expect("an answer"),
            blocking.instance_domain(bins, Freshness::Current).expect("an answer")
        );
        assert_eq!(
            host.traverse("sample").await.expect("names"),
            blocking.traverse("sample").expect("names")
        );
        assert_eq!(
            host.one(Question::Children("sample")).await.expect("names"),
            blocking.children("sample").expect("names")
        );
        assert_eq!(
            host.one(Question::NamesOf(pmids[0])).await.expect("names"),
            blocking.names_of(pmids[0]).expect("names")
        );
        let text = (TextSubject::Metric(pmids[0]), TextKind::Help);
        assert_eq!(
            host.one(Question::Text(text.0, text.1)).await.expect("a text"),
            blocking.text(text.0, text.1).expect("a text")
        );
        let level = LabelLevel::Domain(29);
        assert_eq!(
            host.one(Question::Labels(level)).await.expect("labels"),
            blocking.labels(level).expect("labels")
        );
        let instance = host.one::<InstId>(Question::Instance(bins, "bin-300")).await;
        assert_eq!(instance.expect("one"), Ok(300));
        let name = host.one::<Box<str>>(Question::InstanceName(bins, 300)).await;
        assert_eq!(name.expect("one"), Ok("bin-300".into()));
        assert_eq!(host.host_name().await.expect("a name"), blocking.host_name().expect("a name"));
        assert_eq!(host.time_zone().await.expect("a zone"), blocking.time_zone().expect("a zone"));
        let long = host.lookup_names(&["sample.long.write_me"]).await.expect("answers")[0];
        let wanted = [values(long.expect("known"), RawValue::InPlace(5))];
        assert_eq!(host.store(&wanted).await.expect("an answer"), Ok(()));
        host.reconnect().await.expect("a connection");
        let mut batch = ResultBatch::default();
        let events = host.fetch(&FetchList::new(pmids.clone(), vec![bins]), &mut batch).await;
        assert!(events.expect("values").gap);
        assert!(batch.domains[0].is_ok());
    }
}

/// A spawned future must be able to move between threads.
#[test]
fn calls_can_be_spawned() {
    fn check(_: impl Future + Send) {}
    let uses = |host: &mut AsyncHostContext, list: &FetchList, batch: &mut ResultBatch| {
        check(host.fetch(list, batch));
        check(host.fetch_values(&[]));
        check(host.store(&[]));
        check(host.reconnect());
        check(host.duplicate());
        check(host.lookup_names(&["a"]));
        check(host.lookup_descs(&[]));
        check(host.instance_domain(InDom(1), Freshness::Cached));
        check(host.traverse("a"));
        check(host.one::<InstId>(Question::Instance(InDom(1), "a")));
        check(host.each::<Box<str>>([Question::InstanceName(InDom(1), 1)]));
        check(host.host_name());
        check(host.time_zone());
    };
    let _ = uses;
    let options = ConnectOptions::default();
    let spec = HostSpec::local();
    check(AsyncHostContext::open_with(&spec, options));
}
