//! The live source against peers that misbehave, and against one that is
//! larger and slower to take than any test machine's pmcd.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::fake_pmcd::{FakePmcd, Step, code_of, encoded, greeting};
use pmderive_runtime::context::{ConnectOptions, HostContext, HostSpec};
use pmderive_runtime::model::{InDom, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units};
use pmderive_runtime::model::{Timestamp as Stamp, ValueType};
use pmderive_runtime::pdu::{
    Desc, DescIds, DescRequest, Descs, ErrorPdu, Features, Fetch, InstanceRequest, Instances, Pdu,
    PduType, PmnsIds, PmnsNames, Resolution, encode_result,
};
use pmderive_runtime::result::{ResultBatch, ResultPart, ResultWriter};
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};

const MODERN: Features = Features(0x0e44);

fn options() -> ConnectOptions {
    ConnectOptions { request_timeout: Some(Duration::from_secs(20)), ..ConnectOptions::default() }
}

/// For peers that stall: long enough for the greeting of a busy machine.
fn impatient() -> ConnectOptions {
    ConnectOptions { request_timeout: Some(Duration::from_secs(1)), ..options() }
}

fn open(fake: &FakePmcd) -> Result<HostContext, SourceError> {
    HostContext::open_with(&fake.spec(), options())
}

fn error(status: i32) -> Vec<u8> {
    encoded(&ErrorPdu { status })
}

/// Answers as a pmcd would that has metrics `m.0`, `m.1`, ... up to `count`,
/// each with one instance-free value: its own number.
fn serve(count: u32) -> Step {
    Step::Serve(Box::new(move |pdu| answer(pdu, count, &mut Vec::new())))
}

/// The answer to one request; `log` notes the type of each.
fn answer(pdu: &[u8], count: u32, log: &mut Vec<PduType>) -> Vec<u8> {
    let kind = PduType::from_code(code_of(pdu)).expect("a known type");
    log.push(kind);
    let number = |name: &[u8]| {
        let name = std::str::from_utf8(name).ok()?;
        name.strip_prefix("m.")?.parse().ok().filter(|number| *number < count)
    };
    let desc = |pmid: Pmid| MetricDesc {
        pmid,
        value_type: ValueType::U32,
        indom: None,
        semantics: Semantics::Instant,
        units: Units::NONE,
    };
    match kind {
        PduType::Creds | PduType::Profile => Vec::new(),
        PduType::PmnsNames => {
            let names = PmnsNames::decode(pdu).expect("names");
            let pmids: Vec<Pmid> =
                names.iter().map(|name| number(name.name).map_or(Pmid::NULL, Pmid)).collect();
            match pmids[..] {
                [Pmid::NULL] => error(PmStatus::NONLEAF.0),
                _ => encoded(&PmnsIds { status: 0, pmids: pmids.into() }),
            }
        }
        PduType::DescIds => {
            let pmids = DescIds::decode(pdu).expect("identifiers").pmids;
            let descs = pmids.iter().map(|pmid| (pmid.0 < count).then(|| desc(*pmid))).collect();
            encoded(&Descs { descs })
        }
        PduType::DescRequest => {
            let pmid = DescRequest::decode(pdu).expect("an identifier").pmid;
            if pmid.0 < count {
                encoded(&Desc { desc: desc(pmid) })
            } else {
                error(PmStatus::PMID.0)
            }
        }
        PduType::InstanceRequest => {
            let indom = InstanceRequest::decode(pdu).expect("a domain").indom;
            let mut out = Vec::new();
            Instances::encode_list(indom, &[(1, b"one"), (2, b"two")], &mut out);
            out
        }
        PduType::Fetch | PduType::HighresFetch => {
            let fetch = Fetch::decode(pdu).expect("a fetch");
            let mut part = ResultPart::default();
            let mut writer = ResultWriter::new(&mut part, Stamp::new(1_000, 5_000));
            for pmid in fetch.pmids.iter() {
                writer.set(*pmid);
                writer.in_place(-1, pmid.0);
            }
            writer.finish();
            let mut out = Vec::new();
            encode_result(&part, fetch.resolution, &mut out);
            out
        }
        other => panic!("{other:?} was not expected"),
    }
}

fn values(batch: &ResultBatch) -> Vec<(Pmid, u32)> {
    let sets = batch.parts().iter().flat_map(|part| part.sets());
    sets.flat_map(|set| set.lanes().map(move |lane| (set.pmid, lane.word))).collect()
}

#[test]
fn large_lists_are_split_and_pipelined_without_blocking_each_other() {
    let fake = FakePmcd::start(vec![vec![Step::Send(greeting(MODERN)), serve(200_000)]]);
    let mut host = open(&fake).expect("a connection");
    // Requests and replies are several times what sockets hold.
    let pmids: Vec<Pmid> = (0..200_000).map(Pmid).collect();
    let list = FetchList::new(pmids.clone(), vec![InDom(3), InDom(4)]);
    let mut batch = ResultBatch::default();
    for _ in 0..2 {
        assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
        assert_eq!(batch.parts().len(), 13);
        assert_eq!(batch.timestamp(), Timestamp::new(1_000, 5_000));
        assert_eq!(values(&batch), pmids.iter().map(|pmid| (*pmid, pmid.0)).collect::<Vec<_>>());
        let names: Vec<_> =
            batch.domains.iter().map(|domain| domain.as_ref().expect("instances").len()).collect();
        assert_eq!(names, [2, 2]);
    }
    let first = host.instance_domain(InDom(3), Freshness::Cached).expect("ok").expect("a domain");
    let again = host.instance_domain(InDom(3), Freshness::Current).expect("ok").expect("a domain");
    assert!(Arc::ptr_eq(&first, &again));
    drop(host);
    fake.finish();
}

#[test]
fn names_and_descriptors_are_batched_and_their_failures_explained() {
    for (features, single_descs) in [(MODERN, 2), (Features(0), 30_001)] {
        let asked = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)]);
        let counts = Arc::clone(&asked);
        let script = Step::Serve(Box::new(move |pdu| {
            let mut log = Vec::new();
            let reply = answer(pdu, 29_999, &mut log);
            let kinds = [PduType::PmnsNames, PduType::DescIds, PduType::DescRequest];
            for (kind, count) in kinds.iter().zip(counts.iter()) {
                count.fetch_add(log.iter().filter(|l| *l == kind).count(), Ordering::Relaxed);
            }
            reply
        }));
        let fake = FakePmcd::start(vec![vec![Step::Send(greeting(features)), script]]);
        let mut host = open(&fake).expect("a connection");
        let mut names: Vec<String> = (0..30_000).map(|number| format!("m.{number}")).collect();
        names.push("m".to_owned());
        names.push(String::new());
        names.push("n\0".to_owned());
        names.push("x".repeat(70_000));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = host.lookup_names(&names).expect("answers");
        assert_eq!(found[..29_999], (0..29_999).map(|n| Ok(Pmid(n))).collect::<Vec<_>>());
        assert_eq!(found[29_999..30_001], [Err(PmStatus::NONLEAF); 2]);
        assert_eq!(found[30_001..], [Err(PmStatus::NAME); 3]);
        // Thirty thousand names of about twelve bytes take six requests of 64 KiB.
        let count = |at: usize| asked[at].load(Ordering::Relaxed);
        assert_eq!(count(0), 6 + 2);

        let pmids: Vec<Pmid> = (0..30_001).map(Pmid).collect();
        let descs = host.lookup_descs(&pmids).expect("answers");
        assert!(descs[..29_999].iter().zip(&pmids).all(|(d, p)| d.is_ok_and(|d| d.pmid == *p)));
        assert_eq!(descs[29_999..], [Err(PmStatus::PMID); 2]);
        // The last chunk has a single metric.
        let chunks = if features == MODERN { 151 } else { 0 };
        assert_eq!((count(1), count(2)), (chunks, single_descs));

        // What was learnt is not asked for again.
        assert_eq!(host.lookup_names(&names[..100]).expect("known").len(), 100);
        assert_eq!(host.lookup_descs(&pmids[..100]).expect("known").len(), 100);
        assert_eq!((count(0), count(2)), (8, single_descs));
        drop(host);
        fake.finish();
    }
}

#[test]
fn an_old_pmcd_is_fetched_from_with_microseconds() {
    let fake = FakePmcd::start(vec![vec![Step::Send(greeting(Features(0))), serve(10)]]);
    let mut host = open(&fake).expect("a connection");
    let mut batch = ResultBatch::default();
    host.fetch(&FetchList::new(vec![Pmid(7)], vec![]), &mut batch).expect("values");
    assert_eq!(values(&batch), [(Pmid(7), 7)]);
    assert_eq!(batch.timestamp(), Timestamp::new(1_000, 5_000));
    drop(host);
    fake.finish();
}

/// A connection that answers `rounds` fetches and then resets.
fn short_lived(rounds: usize) -> Vec<Step> {
    let mut script = vec![
        Step::Send(greeting(MODERN)),
        Step::Expect(PduType::Creds),
        Step::Expect(PduType::Profile),
    ];
    for _ in 0..rounds {
        script.push(Step::Expect(PduType::HighresFetch));
        let request =
            Fetch { resolution: Resolution::Nano, context: 0, pmids: vec![Pmid(1)].into() };
        script.push(Step::Send(answer(&encoded(&request), 2, &mut Vec::new())));
    }
    script.push(Step::Reset);
    script
}

#[test]
fn a_lost_connection_fails_one_fetch_and_the_next_one_reports_the_gap() {
    let fake = FakePmcd::start(vec![short_lived(2), short_lived(1)]);
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    let mut host = open(&fake).expect("a connection");
    let epoch = host.metadata_epoch();
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    let lost = host.fetch(&list, &mut batch).expect_err("reset");
    assert!(matches!(lost, SourceError::Io { .. }) && lost.is_transient(), "{lost}");
    assert!(!host.is_connected());
    assert_eq!(host.metadata_epoch(), epoch);
    let events = host.fetch(&list, &mut batch).expect("values");
    assert_eq!(events, FetchEvents { gap: true, metadata_changed: true });
    assert_eq!(values(&batch), [(Pmid(1), 1)]);
    assert!(host.metadata_epoch() > epoch);
    // The second connection resets as well, and no one listens any more.
    assert!(host.fetch(&list, &mut batch).is_err());
    fake.finish();
    let refused = host.fetch(&list, &mut batch).expect_err("no one there");
    assert!(matches!(refused, SourceError::Connect { .. }), "{refused}");
    assert_eq!(refused.status(), PmStatus(-111));
    assert!(matches!(host.reconnect(), Err(SourceError::Connect { .. })));
}

#[test]
fn notices_of_changes_make_bindings_stale_and_restarts_make_gaps() {
    let reply = |notices: &[i32]| {
        let request =
            Fetch { resolution: Resolution::Nano, context: 0, pmids: vec![Pmid(1)].into() };
        let result = answer(&encoded(&request), 2, &mut Vec::new());
        let notices = notices.iter().flat_map(|bits| error(*bits));
        Step::Send(notices.chain(result).collect())
    };
    let script = vec![
        Step::Send(greeting(MODERN)),
        Step::Expect(PduType::Creds),
        Step::Expect(PduType::PmnsNames),
        Step::Send(encoded(&PmnsIds { status: 1, pmids: vec![Pmid(1)].into() })),
        Step::Expect(PduType::Profile),
        Step::Expect(PduType::HighresFetch),
        reply(&[4]),
        Step::Expect(PduType::HighresFetch),
        reply(&[1, 2]),
        Step::Expect(PduType::HighresFetch),
        reply(&[8]),
        Step::Expect(PduType::PmnsNames),
        Step::Send(encoded(&PmnsIds { status: 1, pmids: vec![Pmid(2)].into() })),
        Step::Stall,
    ];
    let fake = FakePmcd::start(vec![script]);
    let mut host = open(&fake).expect("a connection");
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    assert_eq!(host.lookup_names(&["a.b"]).expect("asked"), [Ok(Pmid(1))]);
    assert_eq!(host.lookup_names(&["a.b"]).expect("known"), [Ok(Pmid(1))]);
    let epoch = host.metadata_epoch();
    let events = host.fetch(&list, &mut batch).expect("values");
    assert_eq!(events, FetchEvents { gap: false, metadata_changed: true });
    assert_eq!(host.metadata_epoch(), epoch + 1);
    let events = host.fetch(&list, &mut batch).expect("values");
    assert_eq!(events, FetchEvents { gap: true, metadata_changed: true });
    assert_eq!(host.metadata_epoch(), epoch + 2);
    // Changed labels concern nothing that is remembered.
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    assert_eq!(host.metadata_epoch(), epoch + 2);
    assert_eq!(host.lookup_names(&["a.b"]).expect("asked again"), [Ok(Pmid(2))]);
    drop(host);
    fake.finish();
}

#[test]
fn a_fetch_that_fails_as_a_whole_leaves_the_connection_usable() {
    let script = vec![
        Step::Send(greeting(MODERN)),
        Step::Expect(PduType::Creds),
        Step::Expect(PduType::Profile),
        Step::Expect(PduType::HighresFetch),
        Step::Send({
            let pmids = vec![Pmid(1)].into();
            let request = Fetch { resolution: Resolution::Nano, context: 0, pmids };
            answer(&encoded(&request), 2, &mut Vec::new())
        }),
        Step::Expect(PduType::HighresFetch),
        Step::Send(error(PmStatus::TOOBIG.0)),
        serve(2),
    ];
    let fake = FakePmcd::start(vec![script]);
    let mut host = open(&fake).expect("a connection");
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    host.fetch(&list, &mut batch).expect("values");
    let failed = host.fetch(&list, &mut batch).expect_err("too big");
    assert_eq!(failed.status(), PmStatus::TOOBIG);
    assert!(host.is_connected());
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    drop(host);
    fake.finish();
}

#[test]
fn peers_that_are_no_pmcd_or_refuse_are_told_apart() {
    let refusal = |code: i32| {
        let mut hello = greeting(Features(0));
        hello[12..16].copy_from_slice(&code.to_be_bytes());
        vec![Step::Send(hello)]
    };
    let outcome = |script, options: ConnectOptions| {
        let fake = FakePmcd::start(vec![script]);
        let error = HostContext::open_with(&fake.spec(), options).expect_err("no connection");
        let port = fake.port.to_string();
        fake.finish();
        (error.status(), error.to_string().replace(&port, "PORT"))
    };
    assert_eq!(outcome(refusal(-1042), options()), (PmStatus::PERMISSION,
        "127.0.0.1:PORT: pmcd rejected the connection: No permission to perform requested operation".into()));
    assert_eq!(outcome(refusal(-1043), options()).0, PmStatus::CONNLIMIT);
    assert_eq!(outcome(vec![Step::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())], options()),
        (PmStatus::IPC, "127.0.0.1:PORT: the peer is not a pmcd: instead of a greeting it sent \"HTTP/1.1 400 Bad Request\\r\\n\\r\\n\"".into()));
    assert_eq!(outcome(vec![], options()), (PmStatus::IPC,
        "127.0.0.1:PORT: the peer closed the connection without a greeting: access may be denied, or it is not a pmcd".into()));
    assert_eq!(
        outcome(vec![Step::Stall], impatient()),
        (
            PmStatus::TIMEOUT,
            "127.0.0.1:PORT: connected, but is it a pmcd?: no answer within 1 seconds".into()
        )
    );
    let half = greeting(MODERN)[..10].to_vec();
    assert_eq!(outcome(vec![Step::Send(half), Step::Stall], impatient()).0, PmStatus::TIMEOUT);
}

#[test]
fn replies_cut_stalled_or_garbled_fail_the_fetch_and_nothing_else() {
    let request = Fetch { resolution: Resolution::Nano, context: 0, pmids: vec![Pmid(1)].into() };
    let good = answer(&encoded(&request), 2, &mut Vec::new());
    let script = |reply: Vec<u8>, end: Step| {
        vec![
            Step::Send(greeting(MODERN)),
            Step::Expect(PduType::Creds),
            Step::Expect(PduType::Profile),
            Step::Expect(PduType::HighresFetch),
            Step::Send(reply),
            end,
        ]
    };
    let mut scripts = Vec::new();
    for cut in 0..good.len() {
        // The script ends and the connection with it.
        scripts.push(script(good[..cut].to_vec(), Step::Send(vec![])));
    }
    let mut other_metric = good.clone();
    other_metric[35] = 2;
    scripts.push(script(other_metric, Step::Stall));
    scripts.push(script(good.clone(), serve(2)));
    let fake = FakePmcd::start(scripts);
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    let mut host = open(&fake).expect("a connection");
    for cut in 0..good.len() {
        let error = host.fetch(&list, &mut batch).expect_err("a reply cut short");
        let message = error.to_string();
        assert!(matches!(error, SourceError::Io { .. }), "{message}");
        assert!(
            cut == 0 || message.ends_with(&format!("after {cut} bytes of a reply")),
            "{message}"
        );
    }
    let error = host.fetch(&list, &mut batch).expect_err("another metric");
    assert!(
        error.to_string().ends_with("malformed reply: result.pmid at byte 32: 2 where 1 is due")
    );
    assert!(host.fetch(&list, &mut batch).expect("values").gap);
    drop(host);
    fake.finish();

    let fake = FakePmcd::start(vec![script(good[..20].to_vec(), Step::Stall)]);
    let mut host = HostContext::open_with(&fake.spec(), impatient()).expect("a connection");
    let stalled = host.fetch(&list, &mut batch).expect_err("a stalled reply");
    assert!(matches!(stalled, SourceError::Timeout { .. }), "{stalled}");
    assert!(!host.is_connected());
    drop(host);
    fake.finish();
}

#[test]
fn what_cannot_be_connected_to_says_why() {
    let outcome = |spec: &str, options: ConnectOptions| {
        let spec: HostSpec = spec.parse().expect("a specification");
        HostContext::open_with(&spec, options).expect_err("no connection").to_string()
    };
    let nowhere = ConnectOptions { socket: "/nowhere/socket".into(), ports: vec![1], ..options() };
    let socket = "cannot connect to /nowhere/socket: No such file or directory (os error 2); \
        is pmcd running? `--local` gives metrics of this machine without PCP";
    assert_eq!(outcome("local:", nowhere.clone()), socket);
    assert_eq!(outcome("unix:/nowhere/socket", options()), socket);
    assert_eq!(
        outcome("127.0.0.1:1", options()),
        "cannot connect to 127.0.0.1:1: Connection \
        refused (os error 111); is pmcd running there, on that port, and open to the network?"
    );
    // Too long a name for any resolver to ask for.
    let unknown = outcome(&"x".repeat(300), options());
    assert!(unknown.ends_with("; is the name of the host right?"), "{unknown}");
    let long = format!("unix:/{}", "x".repeat(200));
    assert!(outcome(&long, options()).contains("File name too long"));
    for (spec, reason) in [
        ("pcps://web1", "TLS is not supported yet"),
        ("web1@proxy", "proxies are not supported yet"),
        ("web1?user=me", "the attribute `user` is not supported yet"),
        ("local:?container=a%20b", "`a b` is not the name of a container"),
        ("local:?container=", "`` is not the name of a container"),
    ] {
        assert!(outcome(spec, nowhere.clone()).contains(reason), "{spec}");
    }
    // Without TLS there is no way around the socket either.
    let secure = ConnectOptions { secure: true, ..nowhere };
    assert_eq!(outcome("local:", secure.clone()), socket);
    assert!(outcome("web1", secure).contains("PCP_SECURE_SOCKETS"));
}

#[test]
fn local_falls_back_to_the_network_as_libpcp_does() {
    let fake = FakePmcd::start(vec![vec![Step::Send(greeting(MODERN)), serve(3)]]);
    let socket = "/nowhere/socket".into();
    let options = ConnectOptions { socket, ports: vec![1, fake.port], ..options() };
    let mut host = HostContext::open_with(&HostSpec::local(), options).expect("a connection");
    assert_eq!(
        host.lookup_names(&["m.2", "m.3"]).expect("answers"),
        [Ok(Pmid(2)), Err(PmStatus::NONLEAF)]
    );
    drop(host);
    fake.finish();
}
