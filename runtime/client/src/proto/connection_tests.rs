//! Tests the connection with recorded and invented peers.

use std::sync::Arc;

use pmderive_core::model::{InDom, MetricDesc, Pmid};

use super::*;
use crate::pdu::{Desc, Descs, Hello, Instances, PmnsIds, PmnsNames, Resolution, Writer};
use crate::proto::FetchRequest;
use crate::proto::fuzz::{events_of, fuzz_stream};
use crate::proto::{AuthenticationError, Peer};

/// A recorded exchange: for each PDU, whether the client sent it, and its bytes.
fn capture(name: &str) -> Vec<(bool, Vec<u8>)> {
    let path = format!("{}/../tests/data/pdu/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("capture");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let digits = &line[2..];
            let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal");
            (line.starts_with('>'), (0..digits.len()).step_by(2).map(byte).collect())
        })
        .collect()
}

fn hello(features: u16) -> Vec<u8> {
    let mut pdu = Vec::new();
    Hello { refusal: None, version: 2, features: Features(features) }.encode(&mut pdu);
    pdu
}

fn error(status: i32) -> Vec<u8> {
    let mut pdu = Vec::new();
    ErrorPdu { status }.encode(&mut pdu);
    pdu
}

/// A connection after the handshake, with its credentials sent.
fn ready(config: ConnectionConfig) -> Connection {
    let mut connection = Connection::new(config);
    connection.inbox().extend_from_slice(&hello(0x0e44));
    assert_eq!(connection.poll(), Ok(Some(Event::Ready)));
    drain(&mut connection);
    connection
}

fn drain(connection: &mut Connection) -> Vec<u8> {
    let sent = connection.outgoing().to_vec();
    connection.sent(sent.len());
    sent
}

fn fetch(pmids: &[u32], resolution: Resolution) -> Arc<FetchRequest> {
    let pmids: Vec<Pmid> = pmids.iter().copied().map(Pmid).collect();
    Arc::new(FetchRequest::new(&pmids, resolution))
}

fn without_sender(mut pdu: Vec<u8>) -> Vec<u8> {
    pdu[8..12].fill(0);
    pdu
}

#[test]
fn handshakes_are_those_that_were_recorded() {
    let plain = capture("connect-unix");
    let mut connection = Connection::new(ConnectionConfig::default());
    for byte in &plain[0].1 {
        assert_eq!(connection.poll(), Ok(None));
        connection.inbox().push(*byte);
    }
    assert!(connection.request(Request::InstanceDomain(InDom(1))).is_err());
    assert_eq!(connection.poll(), Ok(Some(Event::Ready)));
    assert_eq!(drain(&mut connection), without_sender(plain[1].1.clone()));
    connection.request(Request::LookupDesc(Pmid(0x0740_000a))).expect("ready");
    assert_eq!(drain(&mut connection), without_sender(plain[2].1.clone()));
    connection.inbox().extend_from_slice(&plain[3].1);
    assert_eq!(connection.poll(), Ok(Some(Event::Reply)));
    let Ok(Reply::Desc(desc)) = connection.reply() else { panic!("a descriptor") };
    assert_eq!(desc.pmid, Pmid(0x0740_000a));
    assert_eq!(connection.poll(), Ok(None));
}

#[test]
fn containers_are_named_and_verified_before_anything_else() {
    let recorded = capture("container");
    let config =
        ConnectionConfig { container: Some("mycontainer".into()), ..ConnectionConfig::default() };
    let mut connection = Connection::new(config.clone());
    connection.inbox().extend_from_slice(&recorded[0].1);
    assert_eq!(connection.poll(), Ok(None));
    let sent = drain(&mut connection);
    let expected = [&recorded[1].1, &recorded[2].1].map(|pdu| without_sender(pdu.clone())).concat();
    assert_eq!(sent[..expected.len()], expected);
    assert!(connection.request(Request::Traverse("")).is_err());
    let mut reply = Vec::new();
    PmnsNames::encode_names(&["kernel"], &mut reply);
    let mut refused = Connection::new(config.clone());
    connection.inbox().extend_from_slice(&reply);
    assert_eq!(connection.poll(), Ok(Some(Event::Ready)));

    refused.inbox().extend_from_slice(&[recorded[0].1.clone(), error(-22), reply].concat());
    assert_eq!(refused.poll(), Err(ProtocolError::Rejected(PmStatus(-22))));
    let mut unable = Connection::new(config);
    unable.inbox().extend_from_slice(&hello(0x0e04));
    assert!(matches!(unable.poll(), Err(ProtocolError::Unsupported(_))));
}

#[test]
fn greetings_that_cannot_be_answered() {
    let outcome = |bytes: &[u8], peer| {
        let mut connection =
            Connection::new(ConnectionConfig { peer, ..ConnectionConfig::default() });
        connection.inbox().extend_from_slice(bytes);
        connection.poll()
    };
    let recorded = capture("refused");
    for (pdu, status) in recorded.iter().zip([PmStatus::PERMISSION, PmStatus::CONNLIMIT]) {
        assert_eq!(outcome(&pdu.1, Peer::Remote), Err(ProtocolError::Refused(status)));
    }
    for bytes in [&b"H"[..], b"HTTP/1.1 400 Bad Request\r\n", b"SSH-2.0-x\r\n", &error(0)] {
        let outcome = outcome(bytes, Peer::Remote);
        assert!(matches!(outcome, Err(ProtocolError::NotPmcd { .. })), "{outcome:?}");
    }
    let mut old = hello(0);
    old[16] = 1;
    assert_eq!(outcome(&old, Peer::Remote), Err(ProtocolError::Version { version: 1 }));
    assert_eq!(
        outcome(&hello(0x0e4c), Peer::Remote),
        Err(ProtocolError::Authentication(AuthenticationError::CredentialsRequired))
    );
    assert_eq!(outcome(&hello(0x0ec4), Peer::Remote), Err(ProtocolError::CertificateRequired));
    assert_eq!(outcome(&hello(0x0ec4), Peer::SameHost), Ok(Some(Event::Ready)));
    // Credentials from the system are announced, and verified.
    assert_eq!(outcome(&hello(0x0e4c), Peer::SameHost), Ok(None));
    assert_eq!(outcome(&hello(0x0e44)[..19], Peer::Remote), Ok(None));
}

#[test]
fn a_recorded_change_of_state_comes_before_its_result() {
    let recorded = capture("state-change");
    let request = fetch(&[0x0740_000a, 0x0080_0007], Resolution::Micro);
    let mut connection = ready(ConnectionConfig::default());
    let mut batch = pmderive_core::result::ResultBatch::default();
    let mut changes = Vec::new();
    let mut sent = Vec::new();
    let mut counts = Vec::new();
    let mut fetches = recorded.iter().skip(1).peekable();
    while let Some((true, _)) = fetches.peek() {
        fetches.next();
        connection.request(Request::Fetch(&request)).expect("ready");
        sent.push(drain(&mut connection));
        while let Some((_, pdu)) = fetches.next_if(|(ours, _)| !ours) {
            connection.inbox().extend_from_slice(pdu);
        }
        loop {
            match connection.poll().expect("recorded") {
                Some(Event::Changed(change)) => changes.push((sent.len(), change.0)),
                Some(Event::Reply) => break,
                other => panic!("{other:?}"),
            }
        }
        let Ok(Reply::Result(frame)) = connection.reply() else { panic!("a result") };
        batch.clear();
        let part = batch.add_part();
        connection.take_result(frame, part);
        counts.push(part.sets().map(|set| set.count).collect::<Vec<_>>());
        assert_eq!(connection.poll(), Ok(None));
    }
    assert_eq!(changes, [(2, 4), (3, 3)]);
    assert_eq!(counts.len(), 6);
    assert_eq!(counts[1], [Err(PmStatus(-32)), Ok(1)]);
    assert_eq!(counts[2], [Ok(1), Ok(1)]);
    // The profile is sent with the first fetch only.
    let expected = [&recorded[0].1, &recorded[1].1].map(|pdu| without_sender(pdu.clone())).concat();
    assert_eq!(sent[0], expected);
    assert_eq!(sent[1], without_sender(recorded[1].1.clone()));
}

#[test]
fn a_profile_that_is_not_accepted_ends_the_connection() {
    let recorded = capture("fetch-denied");
    let mut connection = ready(ConnectionConfig::default());
    let request = fetch(&[0x0080_0007], Resolution::Micro);
    connection.request(Request::Fetch(&request)).expect("ready");
    connection.inbox().extend_from_slice(&recorded[6].1);
    assert_eq!(connection.poll(), Err(ProtocolError::ProfileOrFetch(PmStatus::PERMISSION)));
    assert_eq!(connection.poll(), Err(ProtocolError::NotReady));
    assert!(connection.request(Request::Fetch(&request)).is_err());
}

#[test]
fn replies_answer_requests_in_order_whatever_the_pieces() {
    let mut connection = ready(ConnectionConfig::default());
    let request = fetch(&[0x0740_000a], Resolution::Nano);
    let indom = InDom(0x0740_0002);
    connection.request(Request::Fetch(&request)).expect("ready");
    connection.request(Request::InstanceDomain(indom)).expect("ready");
    connection.request(Request::LookupNames(&["no.such"])).expect("ready");
    connection.request(Request::Fetch(&request)).expect("ready");
    assert_eq!(connection.pending(), 4);
    let result = capture("fetch-nano")[2].1.clone();
    let instances = capture("instances")[1].1.clone();
    let stream = [result.clone(), instances, error(-12357), result.clone()].concat();
    let mut events = Vec::new();
    let mut parts = Vec::new();
    for piece in stream.chunks(7) {
        connection.inbox().extend_from_slice(piece);
        while let Some(event) = connection.poll().expect("well formed") {
            events.push(event);
            if event != Event::Reply {
                continue;
            }
            match connection.reply().expect("well formed") {
                Reply::Result(frame) => {
                    let mut part = ResultPart::default();
                    connection.take_result(frame, &mut part);
                    parts.push(part);
                }
                Reply::Instances(instances) => assert_eq!(instances.len(), 9),
                other => panic!("{other:?}"),
            }
        }
    }
    let failed = Event::Failed(PmStatus::NAME);
    assert_eq!(events, [Event::Reply, Event::Reply, failed, Event::Reply]);
    for part in &parts {
        let wire = part.wire().expect("as it came");
        let start = usize::try_from(wire.block_origin).expect("positive");
        assert_eq!(wire.bytes[start..], result[..]);
        assert_eq!(part.sets().map(|set| set.count).collect::<Vec<_>>(), [Ok(1)]);
    }
    assert_eq!(connection.pending(), 0);
    connection.inbox().push(0);
    assert_eq!(connection.poll(), Err(ProtocolError::Unsolicited { bytes: 1 }));
}

#[test]
fn replies_that_do_not_fit_their_requests_break_the_connection() {
    let wrong_type = "a reply of type 0x7005 where PmnsIds is due";
    let mut desc = Vec::new();
    let Ok(pdu) = Desc::decode(&capture("connect-unix")[3].1).map(|desc| desc.desc) else {
        panic!("a descriptor")
    };
    Desc { desc: pdu }.encode(&mut desc);
    let ids = |pmids: &[u32]| {
        let mut out = Vec::new();
        let pmids: Vec<Pmid> = pmids.iter().copied().map(Pmid).collect();
        PmnsIds { status: 0, pmids: pmids.into() }.encode(&mut out);
        out
    };
    let header = |kind: PduType| {
        let mut out = Vec::new();
        Writer::begin(&mut out, kind).finish();
        out
    };
    let names = Request::LookupNames(&["a", "b"]);
    let cases: &[(Request<'_>, Vec<u8>, &str)] = &[
        (names, desc.clone(), wrong_type),
        (names, error(0), "status 0 where a reply is due"),
        (names, error(4), "status 4 where a reply is due"),
        (names, ids(&[1]), "malformed reply: pmns_ids.numids at byte 16: 1 where 2 is due"),
        (
            names,
            ids(&[1, 0x8000_0000]),
            "malformed reply: pmns_ids.pmids at byte 24: 2147483648 where 0 is due",
        ),
        (
            names,
            header(PduType::PmnsIds),
            "malformed reply: pmns_ids.status at byte 12: 4 bytes needed, 0 left",
        ),
        (
            Request::LookupDesc(Pmid(7)),
            vec![0x7f, 0xff, 0xff, 0xff],
            "malformed reply: pdu.len at byte 0: 2147483647 is not between 12 and 67108864",
        ),
        (
            Request::LookupDesc(Pmid(7)),
            vec![0, 0, 0, 11],
            "malformed reply: pdu.len at byte 0: 11 is not between 12 and 67108864",
        ),
    ];
    for (request, reply, message) in cases {
        let mut connection = ready(ConnectionConfig::default());
        connection.request(*request).expect("ready");
        connection.inbox().extend_from_slice(reply);
        let outcome = connection.poll().and_then(|_| connection.reply().map(|_| ()));
        assert_eq!(outcome.expect_err(message).to_string(), *message);
        assert!(!connection.is_ready());
        assert!(connection.poll().is_err());
    }
}

/// Agents may give a descriptor another identifier, and answer with a status in place of names.
#[test]
fn what_an_agent_says_wrongly_of_itself_does_no_harm() {
    let desc = &capture("connect-unix")[3].1;
    let own = Desc::decode(desc).expect("a descriptor").desc;
    let mut descs = Vec::new();
    Descs { descs: vec![Some(own), None] }.encode(&mut descs);
    let mut no_names = Vec::new();
    PmnsNames::encode_list(&[], &mut no_names);
    no_names[20..24].copy_from_slice(&PmStatus::NAME.0.to_be_bytes());
    let other = MetricDesc { pmid: Pmid(7), ..own };
    let cases = [
        (Request::LookupDesc(Pmid(7)), desc, Reply::Desc(other)),
        (Request::LookupDescs(&[Pmid(7), Pmid(8)]), &descs, Reply::Descs(vec![None, None])),
        (Request::Children("a.b"), &no_names, Reply::Failed(PmStatus::NAME)),
        (Request::Traverse("a.b"), &no_names, Reply::Failed(PmStatus::NAME)),
    ];
    for (request, bytes, expected) in cases {
        let mut connection = ready(ConnectionConfig::default());
        connection.request(request).expect("ready");
        connection.inbox().extend_from_slice(bytes);
        assert_eq!(connection.poll(), Ok(Some(Event::Reply)));
        assert_eq!(connection.reply(), Ok(expected));
    }
}

/// pmcd 6.0 does not set the field for domains of its own agent.
#[test]
fn instances_are_of_the_domain_that_was_asked_for() {
    let mut reply = Vec::new();
    Instances::encode_list(InDom(5), &[], &mut reply);
    let mut connection = ready(ConnectionConfig::default());
    connection.request(Request::InstanceDomain(InDom(4))).expect("ready");
    connection.inbox().extend_from_slice(&reply);
    assert_eq!(connection.poll(), Ok(Some(Event::Reply)));
    match connection.reply() {
        Ok(Reply::Instances(instances)) => assert_eq!(instances.indom, InDom(4)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn notices_without_end_are_cut_off() {
    let mut connection = ready(ConnectionConfig::default());
    let request = fetch(&[1], Resolution::Nano);
    connection.request(Request::Fetch(&request)).expect("ready");
    for round in 0.. {
        connection.inbox().extend_from_slice(&error(1));
        match connection.poll() {
            Ok(event) => assert_eq!(event, Some(Event::Changed(StateChange(1)))),
            Err(error) => {
                assert_eq!(error, ProtocolError::TooManyNotices { limit: 16 });
                assert_eq!(round, 16);
                break;
            }
        }
    }
}

#[test]
fn room_grows_with_what_arrived_and_not_with_what_is_announced() {
    let mut connection = ready(ConnectionConfig::default());
    connection.request(Request::Traverse("")).expect("ready");
    connection.inbox().extend_from_slice(&[0x03, 0, 0, 0, 0, 0, 0x70, 0x0e]);
    for _ in 0..10 {
        assert_eq!(connection.poll(), Ok(None));
        let inbox = connection.inbox();
        let room = inbox.capacity() - inbox.len();
        assert!(room > 0 && inbox.capacity() <= 4 * inbox.len() + 2 * GROWTH_BYTES);
        inbox.extend(std::iter::repeat_n(0, room));
    }
}

#[test]
fn damaged_streams_give_the_same_events_in_any_pieces() {
    let mut stream = vec![1, 5, 12, 40, 3, 200, 9, 17];
    stream.extend(hello(0x0e44));
    for (name, at) in [("fetch-nano", 2), ("state-change", 4)] {
        stream.extend(&capture(name)[at].1);
    }
    stream.extend(&capture("state-change")[5].1);
    stream.extend(&capture("names-single")[1].1);
    stream.extend(&capture("connect-unix")[3].1);
    stream.extend(error(-12358));
    stream.extend(&capture("instances")[1].1);
    stream.extend(&capture("traverse")[1].1);
    stream.extend(&capture("children")[3].1);
    stream.extend(&capture("text")[1].1);
    stream.extend(&capture("names-of-pmid")[1].1);
    stream.extend(&capture("labels")[13].1);
    stream.extend(&capture("instances-lookups")[3].1);
    stream.extend(&capture("instances-lookups")[1].1);
    stream.extend(error(0));
    let whole = events_of(&stream[8..], Peer::Remote, &[usize::MAX]);
    // Ready; two results with three sets in all, one of them after a notice; a failure,
    // and eleven more replies.
    assert_eq!(whole.iter().filter(|event| *event == "Reply").count(), 13, "{whole:#?}");
    fuzz_stream(&stream);
    for len in 0..stream.len() {
        fuzz_stream(&stream[..len]);
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..3000 {
        let mut damaged = stream.clone();
        for _ in 0..2 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let bit = usize::try_from(random >> 32).expect("32 bits") % (damaged.len() * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        fuzz_stream(&damaged);
    }
}

#[test]
fn fetching_in_turn_uses_the_same_buffers_again() {
    let mut connection = ready(ConnectionConfig::default());
    let request = fetch(&[0x0740_000a], Resolution::Nano);
    let result = capture("fetch-nano")[2].1.clone();
    let mut batch = pmderive_core::result::ResultBatch::default();
    let mut buffers = Vec::new();
    for _ in 0..10 {
        connection.request(Request::Fetch(&request)).expect("ready");
        drain(&mut connection);
        connection.inbox().extend_from_slice(&result);
        assert_eq!(connection.poll(), Ok(Some(Event::Reply)));
        let Ok(Reply::Result(frame)) = connection.reply() else { panic!("a result") };
        batch.clear();
        connection.take_result(frame, batch.add_part());
        let bytes = &batch.parts()[0].wire().expect("as it came").bytes;
        assert_eq!(*bytes, result);
        buffers.push(bytes.as_ptr());
    }
    buffers.sort_unstable();
    buffers.dedup();
    // One buffer is filled while the other is read.
    assert_eq!(buffers.len(), 2);
}

#[test]
fn an_idle_connection_has_no_buffer() {
    let mut connection = ready(ConnectionConfig::default());
    let request = fetch(&[0x0740_000a], Resolution::Nano);
    let result = capture("fetch-nano")[2].1.clone();
    let (mut batch, mut spare) = (pmderive_core::result::ResultBatch::default(), Spare::default());
    connection.return_buffers(&mut Spare::default());
    let mut buffers = Vec::new();
    for round in 0..10 {
        connection.lend_buffers(&mut spare);
        connection.request(Request::Fetch(&request)).expect("ready");
        // Bytes that are still to be sent stay.
        connection.return_buffers(&mut spare);
        assert_eq!(spare.outbox.capacity(), 0);
        connection.lend_buffers(&mut spare);
        drain(&mut connection);
        let (first, rest) = result.split_at(result.len() / 2);
        for piece in [first, rest] {
            connection.inbox().extend_from_slice(piece);
            // An incomplete reply stays.
            let mut other = Spare::default();
            connection.return_buffers(&mut other);
            assert_eq!(other.inbox.capacity(), 0);
        }
        assert_eq!(connection.poll(), Ok(Some(Event::Reply)), "{round}");
        let Ok(Reply::Result(frame)) = connection.reply() else { panic!("a result") };
        batch.clear();
        connection.take_result(frame, batch.add_part());
        let bytes = &batch.parts()[0].wire().expect("as it came").bytes;
        assert_eq!(*bytes, result);
        connection.return_buffers(&mut spare);
        assert_eq!(connection.inbox.capacity() + connection.outbox.capacity(), 0);
        buffers.push(bytes.as_ptr());
    }
    buffers.sort_unstable();
    buffers.dedup();
    assert!(buffers.len() <= 2, "{}", buffers.len());
}

/// Many questions at once leave no buffers behind. Bytes that are still to be sent or
/// received stay.
#[test]
fn a_connection_that_released_its_buffers_has_none() {
    let mut connection = ready(ConnectionConfig::default());
    let names = ["a.metric"; 100];
    for name in &names {
        connection.request(Request::LookupNames(std::slice::from_ref(name))).expect("ready");
    }
    connection.release_buffers();
    assert_eq!(connection.pending(), names.len());
    assert!(!connection.outgoing().is_empty());
    drain(&mut connection);
    let mut reply = Vec::new();
    PmnsIds { status: 1, pmids: (&[Pmid(7)][..]).into() }.encode(&mut reply);
    for _ in names {
        connection.inbox().extend_from_slice(&reply);
        connection.release_buffers();
        assert_eq!(connection.poll(), Ok(Some(Event::Reply)));
    }
    connection.release_buffers();
    assert_eq!(connection.inbox.capacity() + connection.outbox.capacity(), 0);
    assert_eq!(connection.expected.capacity(), 0);
}
