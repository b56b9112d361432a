//! The live source against peers that misbehave, and against one that is larger
//! and slower than any test machine's pmcd.

use std::sync::Arc;

use crate::fakes::{impatient, numbers, numbers_host, open, options, values};
use pmderive_runtime::context::{ConnectOptions, Encryption, HostContext, HostSpec};
use pmderive_runtime::model::{InDom, PmStatus, Pmid, StateChange, Timestamp};
use pmderive_runtime::pdu::{ErrorPdu, Features, Hello, Pdu, PduType};
use pmderive_runtime::proto::Secret;
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};
use pmderive_testkit::fake_pmcd::{
    FEATURES, FakeHost, FakePmcd, Fault, Garble, Metric, Rule, Script,
};

#[test]
fn large_lists_are_split_and_pipelined_without_blocking_each_other() {
    let pmcd = FakePmcd::start(numbers_host(200_000));
    let mut host = open(&pmcd);
    // Requests and replies are several times as long as the buffers of sockets.
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
}

/// One agent that does not answer about its name fails a request with names of many agents.
#[test]
fn a_name_that_fails_its_request_harms_no_other() {
    let pmcd = FakePmcd::start(numbers_host(3));
    pmcd.host().inject(Rule::new(Fault::Status(PmStatus::AGAIN)).on(PduType::PmnsNames).times(1));
    let mut host = open(&pmcd);
    let found = host.lookup_names(&["m.0", "m.7", "m.2"]).expect("answers");
    assert_eq!(found, [Ok(Pmid(0)), Err(PmStatus::NAME), Ok(Pmid(2))]);
}

#[test]
fn names_and_descriptors_are_batched_and_their_failures_explained() {
    for (features, single_descs) in [(FEATURES, 1), (Features(0), 30_001)] {
        let pmcd = FakePmcd::start(numbers_host(29_999).with_features(features));
        let mut host = open(&pmcd);
        let mut names: Vec<String> = (0..30_000).map(|number| format!("m.{number}")).collect();
        names.push("m".to_owned());
        names.push(String::new());
        names.push("n\0".to_owned());
        names.push("x".repeat(70_000));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = host.lookup_names(&names).expect("answers");
        assert_eq!(found[..29_999], (0..29_999).map(|n| Ok(Pmid(n))).collect::<Vec<_>>());
        assert_eq!(found[29_999..30_001], [Err(PmStatus::NAME), Err(PmStatus::NONLEAF)]);
        assert_eq!(found[30_001..], [Err(PmStatus::NAME); 3]);
        // Thirty thousand names of about twelve bytes need six requests of 64 KiB.
        let count = |kind| pmcd.host().requests(kind);
        assert_eq!(count(PduType::PmnsNames), 6 + 2);

        let pmids: Vec<Pmid> = (0..30_001).map(Pmid).collect();
        let descs = host.lookup_descs(&pmids).expect("answers");
        assert!(descs[..29_999].iter().zip(&pmids).all(|(d, p)| d.is_ok_and(|d| d.pmid == *p)));
        assert_eq!(descs[29_999..], [Err(PmStatus::PMID); 2]);
        // The last chunk has a single metric, whose failure comes with its reason.
        let chunks = if features == FEATURES { 151 } else { 0 };
        assert_eq!((count(PduType::DescIds), count(PduType::DescRequest)), (chunks, single_descs));

        // The client does not ask again for known facts.
        assert_eq!(host.lookup_names(&names[..100]).expect("known").len(), 100);
        assert_eq!(host.lookup_descs(&pmids[..100]).expect("known").len(), 100);
        assert_eq!((count(PduType::PmnsNames), count(PduType::DescRequest)), (8, single_descs));
    }
}

#[test]
fn an_old_pmcd_is_fetched_from_with_microseconds() {
    let pmcd = FakePmcd::start(numbers_host(10).with_features(Features(0)));
    let mut host = open(&pmcd);
    let mut batch = ResultBatch::default();
    host.fetch(&FetchList::new(vec![Pmid(7)], vec![]), &mut batch).expect("values");
    assert_eq!(values(&batch), [(Pmid(7), 7)]);
    assert_eq!(batch.timestamp(), Timestamp::new(1_000, 5_000));
    assert_eq!(pmcd.host().requests(PduType::HighresFetch), 0);
}

#[test]
fn a_lost_connection_fails_one_fetch_and_the_next_one_reports_the_gap() {
    let pmcd = FakePmcd::start(numbers_host(2));
    let reset = || Rule::new(Fault::Reset { after: 0 }).on(PduType::HighresFetch);
    pmcd.host().inject(reset().on_connection(0).after(2));
    pmcd.host().inject(reset().on_connection(1).after(1));
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    let mut host = open(&pmcd);
    let epoch = host.metadata_epoch();
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    let lost = host.fetch(&list, &mut batch).expect_err("reset");
    assert!(matches!(lost, SourceError::Io { .. }) && lost.is_transient(), "{lost}");
    assert!(!host.is_connected());
    assert_eq!(host.metadata_epoch(), epoch);
    let events = host.fetch(&list, &mut batch).expect("values");
    assert_eq!(events, FetchEvents { gap: true, metadata_changed: true, changes: StateChange(0) });
    assert_eq!(values(&batch), [(Pmid(1), 1)]);
    assert!(host.metadata_epoch() > epoch);
    // The second connection resets as well, and no one listens any more.
    assert!(host.fetch(&list, &mut batch).is_err());
    drop(pmcd);
    let refused = host.fetch(&list, &mut batch).expect_err("no one there");
    assert!(matches!(refused, SourceError::Connect { .. }), "{refused}");
    assert_eq!(refused.status(), PmStatus(-111));
    // After a failure, explicit attempts have to wait, and so have all calls.
    let early = host.reconnect().expect_err("the time has not come");
    assert!(matches!(early, SourceError::TooSoon { .. }), "{early}");
    assert_eq!(early.status(), PmStatus(-110));
    let text = early.to_string();
    assert!(text.starts_with(&refused.to_string()), "{text}");
    assert!(text.contains(" (the next attempt is due in "), "{text}");
    let early = host.fetch(&list, &mut batch).expect_err("the time has not come");
    assert!(matches!(early, SourceError::TooSoon { .. }), "{early}");
}

#[test]
fn notices_of_changes_make_bindings_stale_and_restarts_make_gaps() {
    let mut world = numbers(3);
    world.add_name("a.b", Pmid(1));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let mut host = open(&pmcd);
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    assert_eq!(host.lookup_names(&["a.b"]).expect("asked"), [Ok(Pmid(1))]);
    assert_eq!(host.lookup_names(&["a.b"]).expect("known"), [Ok(Pmid(1))]);
    let epoch = host.metadata_epoch();
    pmcd.host().drop_agent(0);
    let events = host.fetch(&list, &mut batch).expect("a status");
    assert_eq!(events, FetchEvents { gap: false, metadata_changed: true, changes: StateChange(4) });
    let sets = batch.parts().iter().flat_map(|part| part.sets());
    assert_eq!(sets.map(|set| set.count).collect::<Vec<_>>(), [Err(PmStatus::NOAGENT)]);
    assert_eq!(host.metadata_epoch(), epoch + 1);
    pmcd.host().restart_agent(0, |world| world.add_name("a.b", Pmid(2)));
    let events = host.fetch(&list, &mut batch).expect("values");
    assert_eq!(events, FetchEvents { gap: true, metadata_changed: true, changes: StateChange(3) });
    assert_eq!(values(&batch), [(Pmid(1), 1)]);
    assert_eq!(host.metadata_epoch(), epoch + 2);
    // Several notices before one result, which no pmcd sends, count as one.
    let notices = Fault::Notices(vec![1, 2]);
    pmcd.host().inject(Rule::new(notices).on(PduType::HighresFetch));
    let events = host.fetch(&list, &mut batch).expect("values");
    assert_eq!(events, FetchEvents { gap: true, metadata_changed: true, changes: StateChange(3) });
    assert_eq!(host.metadata_epoch(), epoch + 3);
    // Changed labels concern no names; the other bit has no known meaning.
    pmcd.host().notify(StateChange(8 | 64));
    let labels = FetchEvents { changes: StateChange(8), ..FetchEvents::default() };
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), labels);
    assert_eq!(host.metadata_epoch(), epoch + 3);
    assert_eq!(host.lookup_names(&["a.b"]).expect("asked again"), [Ok(Pmid(2))]);
    assert_eq!(pmcd.host().requests(PduType::PmnsNames), 2);
}

#[test]
fn what_is_new_or_gone_is_known_after_the_next_fetch() {
    let pmcd = FakePmcd::start(FakeHost::new(numbers(3)));
    let mut host = open(&pmcd);
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    host.fetch(&list, &mut batch).expect("values");
    let names = ["m.1", "later.one"];
    let before = host.lookup_names(&names).expect("answers");
    assert_eq!(before, [Ok(Pmid(1)), Err(PmStatus::NAME)]);
    let later = Pmid::new(77, 0, 1);
    pmcd.host().add_agent(77, |world| {
        world.add(Metric::new("later.one", Script::constant(1u32)).numbered(later));
    });
    assert_eq!(host.fetch(&list, &mut batch).expect("values").changes, StateChange(1));
    assert_eq!(host.lookup_names(&names).expect("answers"), [Ok(Pmid(1)), Ok(later)]);
    pmcd.host().change_names(|world| assert!(world.remove("m.1")));
    assert_eq!(host.fetch(&list, &mut batch).expect("a status").changes, StateChange(16));
    let after = host.lookup_names(&names).expect("answers");
    assert_eq!(after, [Err(PmStatus::NAME), Ok(later)]);
    let sets = batch.parts().iter().flat_map(|part| part.sets());
    assert_eq!(sets.map(|set| set.count).collect::<Vec<_>>(), [Err(PmStatus::PMID)]);
    // A restart breaks the connection and resets the counters.
    pmcd.host().restart(|world| {
        let count = Script::Counter { start: 5, per_second: 1.0 };
        world.add(Metric::new("m.1", count).numbered(Pmid(1)));
    });
    assert!(host.fetch(&list, &mut batch).is_err());
    assert!(host.fetch(&list, &mut batch).expect("values").gap);
    let result = host.fetch_values(&[Pmid(1)]).expect("values");
    let values = result.sets[0].decode(pmderive_runtime::model::ValueType::U64).expect("a count");
    assert_eq!(values, [(-1, pmderive_runtime::model::Value::U64(6))]);
}

#[test]
fn a_fetch_that_fails_as_a_whole_leaves_the_connection_usable() {
    let pmcd = FakePmcd::start(numbers_host(2));
    let too_big = Fault::Status(PmStatus::TOOBIG);
    pmcd.host().inject(Rule::new(too_big).on(PduType::HighresFetch).after(1));
    let mut host = open(&pmcd);
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    host.fetch(&list, &mut batch).expect("values");
    let failed = host.fetch(&list, &mut batch).expect_err("too big");
    assert_eq!(failed.status(), PmStatus::TOOBIG);
    assert!(host.is_connected());
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
}

#[test]
fn peers_that_are_no_pmcd_or_refuse_are_told_apart() {
    let outcome = |fault, options: ConnectOptions| {
        let pmcd = FakePmcd::start(numbers_host(1));
        pmcd.host().inject(Rule::new(fault).on_greeting());
        let error = HostContext::open_with(&pmcd.spec(), options).expect_err("no connection");
        (error.status(), error.to_string().replace(&format!(":{}:", pmcd.port()), ":PORT:"))
    };
    let refusal = |status| outcome(Fault::Status(status), options());
    assert_eq!(refusal(PmStatus::PERMISSION), (PmStatus::PERMISSION,
        "127.0.0.1:PORT: pmcd refused the connection: No permission to perform requested operation; \
         the [access] rules in pmcd.conf there do not let this host or user in".into()));
    assert_eq!(refusal(PmStatus::CONNLIMIT).0, PmStatus::CONNLIMIT);
    assert_eq!(outcome(Fault::Replace(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), options()),
        (PmStatus::IPC, "127.0.0.1:PORT: the peer is not a pmcd: instead of a greeting it sent \"HTTP/1.1 400 Bad Request\\r\\n\\r\\n\"; \
         is the port right? pmcd's is 44321 unless told otherwise".into()));
    assert_eq!(outcome(Fault::Close { after: 0 }, options()), (PmStatus::IPC,
        "127.0.0.1:PORT: the peer closed the connection without a greeting: access may be denied, or it is not a pmcd".into()));
    assert_eq!(
        outcome(Fault::Stall { after: 0 }, impatient()),
        (
            PmStatus::TIMEOUT,
            "127.0.0.1:PORT: connected, but is it a pmcd?: no answer within 1 second".into()
        )
    );
    assert_eq!(outcome(Fault::Stall { after: 10 }, impatient()).0, PmStatus::TIMEOUT);
}

/// The same over sockets as, for every kind of reply, in memory.
#[test]
fn tls_and_authentication_take_no_longer_than_one_reply_may() {
    let features = Features::SECURE.with(Features::SECURE_ACK).with(Features::AUTH);
    let mut greeting = Vec::new();
    Hello { refusal: None, version: 2, features }.encode(&mut greeting);
    let allowed = || {
        let mut bytes = Vec::new();
        ErrorPdu { status: 0 }.encode(&mut bytes);
        bytes
    };
    let half_a_record = vec![22, 3, 3, 0, 90, 2];
    for (demand, said) in [
        ("secure", vec![]),
        ("secure", vec![allowed()]),
        ("secure", vec![allowed(), half_a_record]),
        ("user=me&pass=x", vec![]),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let greeting = greeting.clone();
        let stalling = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(&greeting).expect("sent");
            for words in said {
                // Credentials first, then the beginning of TLS.
                assert!(stream.read(&mut [0; 1000]).expect("an answer") > 0);
                stream.write_all(&words).expect("sent");
            }
            // Until the client has had enough.
            stream.read_to_end(&mut Vec::new())
        });
        let spec = format!("127.0.0.1:{port}?{demand}").parse().expect("a specification");
        let error = HostContext::open_with(&spec, impatient()).expect_err("stalled");
        assert_eq!(error.status(), PmStatus::TIMEOUT, "{error}");
        stalling.join().expect("no panic").ok();
    }
}

#[test]
fn replies_cut_stalled_or_garbled_fail_the_fetch_and_nothing_else() {
    const REPLY_BYTES: usize = 52;
    let pmcd = FakePmcd::start(numbers_host(2));
    let strike = |fault| pmcd.host().inject(Rule::new(fault).on(PduType::HighresFetch));
    let list = FetchList::new(vec![Pmid(1)], vec![]);
    let mut batch = ResultBatch::default();
    let mut host = open(&pmcd);
    for after in 0..REPLY_BYTES {
        strike(Fault::Close { after });
        let error = host.fetch(&list, &mut batch).expect_err("a reply cut short");
        let message = error.to_string();
        assert!(matches!(error, SourceError::Io { .. }), "{message}");
        let wording = format!("after {after} bytes of a reply");
        assert!(after == 0 || message.ends_with(&wording), "{message}");
    }
    strike(Fault::Garble(Garble::Word { at: 32, value: 2 }));
    let error = host.fetch(&list, &mut batch).expect_err("another metric");
    assert!(
        error.to_string().ends_with("malformed reply: result.pmid at byte 32: 2 where 1 is due")
    );
    assert!(host.fetch(&list, &mut batch).expect("values").gap);
    let mut host = HostContext::open_with(&pmcd.spec(), impatient()).expect("a connection");
    strike(Fault::Stall { after: 20 });
    let stalled = host.fetch(&list, &mut batch).expect_err("a stalled reply");
    assert!(matches!(stalled, SourceError::Timeout { .. }), "{stalled}");
    assert!(!host.is_connected());
}

#[test]
fn what_cannot_be_connected_to_says_why() {
    let outcome = |spec: &str, options: ConnectOptions| {
        let spec: HostSpec = spec.parse().expect("a specification");
        HostContext::open_with(&spec, options).expect_err("no connection").to_string()
    };
    let nowhere = ConnectOptions { socket: "/nowhere/socket".into(), ports: vec![1], ..options() };
    let help = "is pmcd running?";
    let both = format!(
        "cannot connect to /nowhere/socket or localhost:1: Connection refused (os error 111); {help}"
    );
    assert_eq!(outcome("local:", nowhere.clone()), both);
    assert_eq!(
        outcome("unix:/nowhere/socket", options()),
        format!(
            "cannot connect to /nowhere/socket: No such file or directory (os error 2); {help}"
        )
    );
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
        ("local:?container=a%20b", "`a b` is not the name of a container"),
        ("web1?compress", "no pmcd compresses its replies; leave the attribute `compress` out"),
        ("web1?pass=secret", "web1?pass=***: a user is to be authenticated: add `user=NAME`"),
        (
            "web1?user=me",
            "web1?user=me: the password of `me` is missing: add `passfile=FILE`, or set \
             PMDERIVE_PASSWORD",
        ),
        (
            "web1?user=me&pass=x&passfile=/y",
            "web1?user=me&pass=***&passfile=/y: `pass=` or `passfile=`: one is enough",
        ),
        (
            "web1?user=me&passfile=/nowhere/password",
            "the password in /nowhere/password cannot be read: No such file or directory",
        ),
        (
            "web1?user=me&pass=x&method=gssapi",
            "web1?user=me&pass=***&method=gssapi: the method `gssapi` is not known: \
             SCRAM-SHA-256, PLAIN and LOGIN are",
        ),
        ("[::1]@127.0.0.1:1", "`::1` has no IPv4 address, and pmproxy takes no other"),
        (
            "127.0.0.1@127.0.0.1:1",
            "cannot connect to 127.0.0.1:1 through the proxy 127.0.0.1:1: Connection refused \
             (os error 111); is pmproxy running there, on that port?",
        ),
    ] {
        let text = outcome(spec, nowhere.clone());
        assert!(text.contains(reason), "{spec}: {text}");
    }
    // The password of the environment is for users without one.
    let known = ConnectOptions { password: Some(Secret::new("secret")), ..nowhere.clone() };
    let text = outcome("127.0.0.1:1?user=me", known.clone());
    assert!(text.starts_with("cannot connect to 127.0.0.1:1: "), "{text}");
    let text = outcome("127.0.0.1:1?pass=x", known);
    assert!(text.contains("add `user=NAME`"), "{text}");
    // TLS does not prevent the use of the socket.
    let secure = ConnectOptions { encryption: Encryption::Required, ..nowhere };
    assert_eq!(outcome("local:", secure), both);
}

#[test]
fn local_falls_back_to_the_network_as_libpcp_does() {
    let pmcd = FakePmcd::start(numbers_host(3));
    let socket = "/nowhere/socket".into();
    let options = ConnectOptions { socket, ports: vec![1, pmcd.port()], ..options() };
    let mut host = HostContext::open_with(&HostSpec::local(), options).expect("a connection");
    assert_eq!(
        host.lookup_names(&["m.2", "m.3"]).expect("answers"),
        [Ok(Pmid(2)), Err(PmStatus::NAME)]
    );
}
