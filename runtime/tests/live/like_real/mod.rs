//! The fake pmcd answers as a real one does: the same bytes to the same
//! requests, with a copy of the real one's metadata.

mod nonsense;
mod plain;
mod questions;

use std::collections::BTreeMap;

use crate::real_pmcd::RealPmcd;
use nonsense::nonsense;
use plain::{Plain, difference, encoded, raw, report};
use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Timestamp, Value, ValueType};
use pmderive_runtime::pdu::{
    Attr, Credential, Creds, DescIds, DescRequest, Features, Fetch, InstanceRequest, PduType,
    PmnsChild, PmnsIds, PmnsNames, PmnsTraverse, Profile, Resolution, Writer, encode_result,
};
use pmderive_runtime::result::{BlockValue, ResultPart, ResultWriter};
use pmderive_runtime::source::{FetchSource, MetadataSource};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Script, World};
use questions::{NODES, questions};

/// A fake with the contents of the real one.
fn twin_of(real: &RealPmcd) -> (FakePmcd, HostContext) {
    let spec = format!("127.0.0.1:{}", real.port).parse().expect("a specification");
    let mut host = HostContext::open_with(&spec, ConnectOptions::default()).expect("a connection");
    let mut names = Vec::new();
    for node in NODES {
        names.extend(host.traverse(node).expect(node));
    }
    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids: Vec<Pmid> =
        host.lookup_names(&asked).expect("names").into_iter().flatten().collect();
    let descs = host.lookup_descs(&pmids).expect("descriptors");
    let mut values = BTreeMap::new();
    for (set, desc) in host.fetch_values(&pmids).expect("values").sets.iter().zip(descs) {
        let Ok(desc) = desc else { continue };
        let Ok(decoded) = set.decode(desc.value_type) else { continue };
        values.insert(set.pmid, decoded.into_iter().collect::<BTreeMap<i32, Value>>());
    }
    let mut world = World::empty();
    let script = |_: &str, desc: &MetricDesc| {
        let values = values.get(&desc.pmid).cloned().unwrap_or_default();
        Script::function(move |moment| values.get(&moment.instance).cloned())
    };
    world.take_over(&mut host, NODES, script).expect("metadata");
    (FakePmcd::start(FakeHost::new(world)), host)
}

#[test]
fn metadata_and_values_come_as_from_the_pmcd_they_were_taken_from() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let (twin, mut host) = twin_of(&pmcd);
    let requests = questions(&mut host);
    let mut real = Plain::connect(pmcd.port);
    let mut fake = Plain::connect(twin.port());
    let differences: Vec<String> = requests
        .iter()
        .filter_map(|(what, request)| difference(what, request, &mut real, &mut fake))
        .collect();
    report(&differences, requests.len());
    assert!(requests.len() > 5_000, "{}", requests.len());
}

#[test]
fn what_makes_no_sense_is_answered_as_pmcd_answers_it() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let (twin, _) = twin_of(&pmcd);
    let requests = nonsense();
    let differences: Vec<String> = requests
        .iter()
        .filter_map(|(what, request)| {
            let mut real = Plain::connect(pmcd.port);
            let mut fake = Plain::connect(twin.port());
            difference(what, request, &mut real, &mut fake)
        })
        .collect();
    report(&differences, requests.len());
}

#[test]
fn clients_introduce_themselves_as_to_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let (twin, _) = twin_of(&pmcd);
    let creds = |kind, version, flags| {
        encoded(&Creds { credentials: vec![Credential { kind, version, flags: Features(flags) }] })
    };
    let container = |value| encoded(&Attr { key: 15, value });
    let context_labels = raw(0x7012, &[u32::MAX, 1]);
    let list = [
        ("nothing", vec![]),
        ("version 0", creds(1, 0, 0)),
        ("version 1", creds(1, 1, 0)),
        ("version 3", creds(1, 3, 0)),
        ("an unknown credential", creds(9, 2, 0)),
        ("no credentials", raw(0x700c, &[0])),
        ("-1 credentials", raw(0x700c, &[u32::MAX])),
        ("a credential too few", raw(0x700c, &[2, 0x0102_0000])),
        ("a credential too many", raw(0x700c, &[1, 0x0102_0000, 0x0102_0000])),
        ("two credentials", raw(0x700c, &[2, 0x0102_0000, 0x0102_0000])),
        ("LABELS", creds(1, 2, 0x200)),
        ("HIGHRES", creds(1, 2, 0x400)),
        ("DESCS", creds(1, 2, 0x800)),
        ("COMPRESS", creds(1, 2, 0x2)),
        ("SECURE", creds(1, 2, 0x1)),
        ("SECURE and SECURE_ACK", creds(1, 2, 0x11)),
        ("a container", [creds(1, 2, 0x40), container(b"web_1")].concat()),
        ("a container without a name", [creds(1, 2, 0x40), container(b"")].concat()),
        ("a container that never comes", [creds(1, 2, 0x40), context_labels.clone()].concat()),
        ("another attribute", [creds(1, 2, 0x40), encoded(&Attr { key: 5, value: b"x" })].concat()),
        ("a long container", [creds(1, 2, 0x40), container(&[b'x'; 4096])].concat()),
        (
            "labels of a container",
            [creds(1, 2, 0x40), container(b"web_1"), context_labels].concat(),
        ),
    ];
    let mut differences = Vec::new();
    for (what, request) in &list {
        let mut real = Plain::greeted(pmcd.port);
        let mut fake = Plain::greeted(twin.port());
        differences.extend(difference(what, request, &mut real, &mut fake));
    }
    report(&differences, list.len());
}

#[test]
fn stores_are_accepted_and_refused_as_by_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let (twin, mut host) = twin_of(&pmcd);
    let names = [
        "sample.write_me",
        "sample.long.one",
        "sample.longlong.write_me",
        "sample.string.write_me",
    ];
    let pmids: Vec<Pmid> =
        host.lookup_names(&names).expect("names").into_iter().flatten().collect();
    let [write_me, fixed, wide, text] = pmids[..] else { panic!("{pmids:?}") };
    // pmcd does not report whether a metric can be written to.
    twin.host().change(|world| {
        for pmid in [write_me, wide, text] {
            assert!(world.set_writable(pmid, true), "{pmid}");
        }
    });
    type Write<'w> = &'w dyn Fn(&mut ResultWriter<'_>);
    let single: [(&str, Write<'_>); 10] = [
        ("a number", &|w| {
            w.set(write_me);
            w.in_place(-1, 7)
        }),
        ("a wide number", &|w| {
            w.set(wide);
            w.block(-1, BlockValue::I64(1 << 40))
        }),
        ("a text", &|w| {
            w.set(text);
            w.block(-1, BlockValue::Text("abc"))
        }),
        ("a read-only metric", &|w| {
            w.set(fixed);
            w.in_place(-1, 7)
        }),
        ("no values", &|w| w.set(write_me)),
        ("no metrics", &|_| {}),
        ("an unknown agent", &|w| {
            w.set(Pmid::new(400, 0, 1));
            w.in_place(-1, 1)
        }),
        ("an unknown metric", &|w| {
            w.set(Pmid::new(29, 0, 1023));
            w.in_place(-1, 1)
        }),
        ("a good one, then a bad one", &|w| {
            w.set(write_me);
            w.in_place(-1, 8);
            w.set(Pmid::new(400, 0, 1));
            w.in_place(-1, 1);
        }),
        ("a bad one, then a good one", &|w| {
            w.set(Pmid::new(400, 0, 1));
            w.in_place(-1, 1);
            w.set(write_me);
            w.in_place(-1, 9);
        }),
    ];
    let mut real = Plain::connect(pmcd.port);
    let mut fake = Plain::connect(twin.port());
    let mut differences = Vec::new();
    let profile = encoded(&Profile::include_all(0));
    let pmids = vec![write_me, wide, text];
    let fetch = encoded(&Fetch { resolution: Resolution::Nano, context: 0, pmids: pmids.into() });
    differences.extend(difference("a profile", &profile, &mut real, &mut fake));
    for (what, write) in single {
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::default());
        write(&mut writer);
        let mut request = Vec::new();
        encode_result(&part, Resolution::Micro, &mut request);
        differences.extend(difference(what, &request, &mut real, &mut fake));
        differences.extend(difference("what was stored", &fetch, &mut real, &mut fake));
    }
    let mut empty = Vec::new();
    Writer::begin(&mut empty, PduType::Result).finish();
    differences.extend(difference("an empty store", &empty, &mut real, &mut fake));
    report(&differences, 22);
}

#[test]
fn an_agent_that_is_gone_leaves_its_names_behind() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let (twin, mut host) = twin_of(&pmcd);
    let pid = host.lookup_names(&["sample.daemon_pid"]).expect("names")[0].expect("a metric");
    let mut real = Plain::connect(pmcd.port);
    let mut fake = Plain::connect(twin.port());
    // pmcd starts an agent again that dies, but not twice within a minute.
    for _ in 0..2 {
        let found = host.fetch_values(&[pid]).expect("values");
        let value = found.sets[0].decode(ValueType::U32);
        let Ok(&[(_, Value::U32(process))]) = value.as_deref() else { panic!("{value:?}") };
        pmcd.kill_agent(process);
        // Only a question makes pmcd notice.
        while host.fetch_values(&[pid]).expect("values").changes.is_none() {}
    }
    let gone = loop {
        let (replies, _) = real.ask(&encoded(&DescRequest { pmid: pid }));
        if replies[0][7] == 0 {
            break replies;
        }
    };
    assert_eq!(gone[0][12..], (-12386i32).to_be_bytes());
    twin.host().drop_agent(29);
    let pmid = Pmid::new(29, 0, 6);
    let indom = InDom::new(29, 2);
    let mut names = Vec::new();
    PmnsNames::encode_names(&["sample.bin"], &mut names);
    let fetch = Fetch { resolution: Resolution::Nano, context: 0, pmids: vec![pmid].into() };
    // The real one has more events to report.
    for plain in [&mut real, &mut fake] {
        plain.ask(&encoded(&Profile::include_all(0)));
        let (replies, _) = plain.ask(&encoded(&fetch));
        assert_eq!(replies.len(), 2, "a notice and the values");
    }
    let questions = [
        ("identifier", names),
        ("descriptor", encoded(&DescRequest { pmid })),
        ("only one descriptor", encoded(&DescIds { pmids: vec![pmid].into() })),
        ("instances", encoded(&InstanceRequest::all(indom))),
        ("text", raw(0x7008, &[pmid.0, 5])),
        ("text of a domain", raw(0x7008, &[indom.0, 9])),
        ("labels of the agent", raw(0x7012, &[29, 2])),
        ("labels of a domain", raw(0x7012, &[indom.0, 4])),
        ("labels of a cluster", raw(0x7012, &[pmid.0, 8])),
        ("labels of a metric", raw(0x7012, &[pmid.0, 16])),
        ("labels of instances", raw(0x7012, &[indom.0, 32])),
        ("names", encoded(&PmnsIds { status: 0, pmids: vec![pmid].into() })),
        ("children", encoded(&PmnsChild { name: b"sample.long", subtype: 1 })),
        ("metrics below", encoded(&PmnsTraverse { name: b"sample.long" })),
        ("values", encoded(&fetch)),
        ("a store", raw(0x7001, &[0, 0, 1, pmid.0, 1, 0, 100, 5])),
    ];
    let differences: Vec<String> = questions
        .iter()
        .filter_map(|(what, request)| difference(what, request, &mut real, &mut fake))
        .collect();
    report(&differences, questions.len());
}
