//! Names, help texts and labels of a real pmcd as `pminfo(1)` prints them, and
//! of one that knows no labels.

use std::collections::BTreeSet;

use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::model::{InDom, LabelLevel, PmStatus, Pmid};
use pmderive_runtime::model::{StateChange, TextKind, TextSubject};
use pmderive_runtime::pdu::{Features, PduType};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{Child, FetchEvents, FetchList, FetchSource, MetadataSource};
use pmderive_testkit::fake_pmcd::{
    FEATURES, FakeHost, FakePmcd, Fault, Metric, Rule, Script, World,
};

use crate::fakes::encoded_names;
use crate::pminfo::{self, Quirks};
use crate::real_pmcd::RealPmcd;

fn open(spec: &str) -> HostContext {
    let spec = spec.parse().expect("a specification");
    HostContext::open_with(&spec, ConnectOptions::default()).expect("a connection")
}

#[test]
fn labels_and_texts_are_those_that_pminfo_prints() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&format!("unix:{}", pmcd.socket.display()));
    let mut names = Vec::new();
    for prefix in ["sample", "sampledso", "simple", "pmcd", "kernel", "hinv", "disk", "mem"] {
        let below = host.traverse(prefix).expect(prefix);
        let pmids: Vec<&str> = below.iter().map(String::as_str).collect();
        let found = host.lookup_names(&pmids).expect("answers");
        // Some names do not resolve, and some metrics have no descriptor.
        for (name, pmid) in below.iter().zip(found) {
            if let Ok(pmid) = pmid
                && host.lookup_descs(&[pmid]).expect("an answer")[0].is_ok()
            {
                names.push(name.clone());
            }
        }
    }
    // Their instances change while they are looked at; those of the last are
    // the connections there are.
    names.retain(|name| {
        !["dynamic", "mirage", "pmcd.client"].iter().any(|part| name.contains(part))
    });
    let mut arguments = vec!["-lmtT"];
    arguments.extend(names.iter().map(String::as_str));
    let printed = pmcd.tool("pminfo", &arguments);
    let mut quirks = Quirks::new("", false);
    let mut ours = String::new();
    for name in &names {
        ours += &pminfo::described(&mut host, name, &mut quirks);
    }
    for (ours, theirs) in ours.lines().zip(printed.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), printed.len());
    assert!(names.len() > 1000, "{}", names.len());
}

#[test]
fn children_and_names_of_metrics_make_the_same_name_space() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&format!("127.0.0.1:{}", pmcd.port));
    let mut nodes = vec!["sample".to_owned(), "pmcd".to_owned()];
    let mut leaves = BTreeSet::new();
    while let Some(node) = nodes.pop() {
        for Child { name, is_leaf } in host.children(&node).expect("an answer").expect(&node) {
            let name = format!("{node}.{name}");
            if is_leaf {
                leaves.insert(name);
            } else {
                nodes.push(name);
            }
        }
    }
    let mut all = BTreeSet::new();
    for prefix in ["sample", "pmcd"] {
        all.extend(host.traverse(prefix).expect(prefix));
    }
    assert_eq!(leaves, all);
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    let pmids: Vec<Pmid> = host
        .lookup_names(&names)
        .expect("answers")
        .into_iter()
        .map(|p| p.expect("known"))
        .collect();
    let of_each = host.names_of_each(&pmids).expect("answers");
    for (name, found) in names.iter().zip(of_each) {
        // One metric of these stands for another.
        if !name.ends_with(".redirect") {
            assert!(found.expect(name).iter().any(|found| **found == **name), "{name}");
        }
    }
    let bin = host.names_of(Pmid::new(29, 0, 6)).expect("an answer").expect("known");
    let bin: BTreeSet<_> = bin.iter().map(|name| &**name).collect();
    let duplicates = ["two", "three", "four", "five"];
    let mut expected: BTreeSet<_> =
        duplicates.iter().map(|n| format!("sample.dupnames.{n}.bin")).collect();
    expected.insert("sample.bin".to_owned());
    assert!(bin.iter().copied().eq(expected.iter().map(String::as_str)), "{bin:?}");

    let root = host.children("").expect("an answer").expect("the root");
    assert!(root.contains(&Child { name: "sample".into(), is_leaf: false }));
    assert_eq!(host.children("sample.long.one").expect("an answer"), Ok(vec![]));
    assert_eq!(host.children("no.such").expect("an answer"), Err(PmStatus::NAME));
    assert_eq!(host.children("bad\0name").expect("an answer"), Err(PmStatus::NAME));
    assert_eq!(host.names_of(Pmid::new(29, 0, 999)).expect("an answer"), Err(PmStatus::PMID));
}

#[test]
fn what_is_unknown_has_the_status_of_libpcp() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = open(&format!("127.0.0.1:{}", pmcd.port));
    let (metric, indom) = (Pmid::new(400, 1, 1), InDom::new(400, 1));
    let levels = [
        LabelLevel::Domain(400),
        LabelLevel::InDom(indom),
        LabelLevel::Cluster(metric),
        LabelLevel::Item(metric),
        LabelLevel::Instances(indom),
        LabelLevel::InDom(InDom::new(29, 999)),
    ];
    let found = host.labels_of_each(&levels).expect("answers");
    let expected = [
        Err(PmStatus::NOAGENT),
        Err(PmStatus::INDOM),
        Err(PmStatus::PMID),
        Err(PmStatus::PMID),
        Err(PmStatus::INDOM),
        Ok(vec![]),
    ];
    assert_eq!(found, expected);
    let subjects = [
        TextSubject::Metric(Pmid::new(2, 0, 7)),
        TextSubject::Metric(Pmid::new(29, 0, 999)),
        TextSubject::Metric(metric),
        TextSubject::Domain(InDom::new(60, 1)),
    ];
    // The first one has only its one line of text.
    for kind in [TextKind::Help, TextKind::OneLine] {
        let found = host.text_of_each(&subjects, kind).expect("answers");
        assert_eq!(
            found[..3],
            [Ok("PMCD version".into()), Err(PmStatus::TEXT), Err(PmStatus::PMID)]
        );
        assert_eq!(found[3].as_deref(), Ok("set of all disks"));
    }
}

/// A pmcd with labels, and with invalid names.
fn labelled(features: Features) -> FakePmcd {
    let mut world = World::empty();
    world.add(Metric::new("a.b", Script::constant(1u32)).numbered(METRIC));
    for level in [LabelLevel::Cluster(METRIC), LabelLevel::Item(METRIC)] {
        world.set_labels(level, "{\"a\":1}").expect("labels");
    }
    world.set_instances(InDom::new(1, 9), &[(0, "zero")]);
    let host = FakeHost::new(world).with_features(features);
    let names = encoded_names(&["a.b", "", "c..d", "e.f"]);
    host.inject(Rule::new(Fault::Replace(names)).on(PduType::PmnsIds).always());
    FakePmcd::start(host)
}

const METRIC: Pmid = Pmid::new(1, 2, 0);

#[test]
fn what_is_stable_is_asked_for_once() {
    let pmcd = labelled(FEATURES);
    let mut host = HostContext::open_with(&pmcd.spec(), ConnectOptions::default()).expect("open");
    for item in [3, 4] {
        // One cluster, whatever the item.
        let level = LabelLevel::Cluster(Pmid::new(1, 2, item));
        let sets = host.labels(level).expect("an answer").expect("labels");
        assert_eq!(sets[0].json(), "{\"a\":1}");
        let names = host.names_of(METRIC).expect("an answer").expect("names");
        assert_eq!(names, [Box::from("a.b"), Box::from("e.f")]);
        host.labels(LabelLevel::Instances(InDom::new(1, 9))).expect("an answer").expect("labels");
    }
    // Instances come and go without a notice.
    let asked = |kind| pmcd.host().requests(kind);
    assert_eq!((asked(PduType::LabelRequest), asked(PduType::PmnsIds)), (3, 1));
    let epoch = host.metadata_epoch();
    let list = FetchList::new(vec![METRIC], vec![]);
    pmcd.host().change_labels(|world| {
        world.set_labels(LabelLevel::Cluster(METRIC), "{\"a\":2}").expect("labels");
    });
    let events = host.fetch(&list, &mut ResultBatch::default()).expect("values");
    let labels = FetchEvents { changes: StateChange(8), ..FetchEvents::default() };
    assert_eq!((events, host.metadata_epoch()), (labels, epoch));
    host.names_of(METRIC).expect("an answer").expect("names");
    let sets = host.labels(LabelLevel::Cluster(METRIC)).expect("an answer").expect("labels");
    assert_eq!(sets[0].json(), "{\"a\":2}");
    assert_eq!((asked(PduType::LabelRequest), asked(PduType::PmnsIds)), (4, 1));
    // A reply without the requested statuses.
    let plain = Fault::Replace(encoded_names(&["b"]));
    pmcd.host().inject(Rule::new(plain).on(PduType::PmnsChild));
    let error = host.children("a").expect_err("a reply to another question").to_string();
    assert!(error.ends_with("pmns_names.numstatus at byte 16: 0 where 1 is due"), "{error}");
}

#[test]
fn a_pmcd_without_labels_is_not_asked_for_any() {
    let pmcd = labelled(Features(FEATURES.0 & !Features::LABELS.0));
    let mut host = HostContext::open_with(&pmcd.spec(), ConnectOptions::default()).expect("open");
    let found = host.labels(LabelLevel::Context).expect("no answer is needed");
    assert_eq!(found, Err(PmStatus::NOLABELS));
    host.names_of(METRIC).expect("an answer").expect("names");
    let asked = |kind| pmcd.host().requests(kind);
    assert_eq!((asked(PduType::LabelRequest), asked(PduType::PmnsIds)), (0, 1));
}
