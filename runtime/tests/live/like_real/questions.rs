//! Every kind of request about all metadata of a pmcd.

use std::collections::BTreeSet;

use super::plain::{encoded, raw};
use pmderive_runtime::context::HostContext;
use pmderive_runtime::model::{InDom, Pmid, Selection};
use pmderive_runtime::pdu::{
    DescIds, DescRequest, Fetch, InstanceRequest, PmnsChild, PmnsIds, PmnsNames, PmnsTraverse,
    Profile, ProfileEntry, Resolution,
};
use pmderive_runtime::source::{Freshness, MetadataSource};

/// Nodes whose metadata stays the same while a test runs.
pub const NODES: &[&str] =
    &["pmcd", "sample", "sampledso", "hinv", "kernel.all", "mem.util", "disk"];

/// Metrics whose values stay the same unless a client stores others.
pub const STEADY: &[&str] = &[
    "sample.bin",
    "sample.long",
    "sample.longlong",
    "sample.float",
    "sample.double",
    "sample.string",
    "sample.aggregate",
    "sample.ulong",
    "sample.ulonglong.one",
    "sample.ulonglong.million",
    "pmcd.version",
];

/// Domains of `sample.mirage` and `sampledso.mirage`.
const MIRAGES: [InDom; 2] = [InDom::new(29, 3), InDom::new(30, 3)];

/// Every kind of request about everything below [`NODES`].
pub fn questions(host: &mut HostContext) -> Vec<(String, Vec<u8>)> {
    let mut requests = Vec::new();
    let mut nodes = BTreeSet::new();
    let mut names = Vec::new();
    for node in NODES {
        let below = host.traverse(node).expect(node);
        for name in &below {
            let dots = name.match_indices('.').map(|(at, _)| &name[..at]);
            nodes.extend(dots.filter(|inner| inner.len() >= node.len()).map(str::to_owned));
        }
        names.extend(below);
    }
    let mut ask = |what: String, request: Vec<u8>| requests.push((what, request));
    let names_of = |names: &[&str]| {
        let mut request = Vec::new();
        PmnsNames::encode_names(names, &mut request);
        request
    };
    for name in &names {
        ask(format!("identifier of {name}"), names_of(&[name]));
    }
    for node in &nodes {
        let bytes = node.as_bytes();
        // pmcd itself has no nodes that an agent adds to the name space.
        if !node.contains(".secret") && !node.contains(".ghosts") {
            ask(format!("identifier of {node}"), names_of(&[node]));
        }
        ask(format!("metrics below {node}"), encoded(&PmnsTraverse { name: bytes }));
        for subtype in [0, 1] {
            let request = encoded(&PmnsChild { name: bytes, subtype });
            ask(format!("children of {node} ({subtype})"), request);
        }
    }
    for name in ["sample.bin", "sample.nothing", "nothing", "sample.", ".", "samp"] {
        let bytes = name.as_bytes();
        ask(format!("identifier of {name}"), names_of(&[name]));
        ask(format!("metrics below {name}"), encoded(&PmnsTraverse { name: bytes }));
        ask(format!("children of {name}"), encoded(&PmnsChild { name: bytes, subtype: 1 }));
    }
    ask("some names".into(), names_of(&["sample.bin", "sample", "nothing", "", "sample.long.one"]));
    ask("no known names".into(), names_of(&["sample", "nothing"]));

    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = host.lookup_names(&asked).expect("names");
    let is_dynamic = |name: &str| name.contains(".secret") || name.contains(".ghosts");
    let dynamic = asked.iter().zip(&found).filter(|(name, _)| is_dynamic(name));
    let dynamic: BTreeSet<Pmid> = dynamic.filter_map(|(_, pmid)| pmid.ok()).collect();
    let known: BTreeSet<Pmid> = found.into_iter().flatten().collect();
    let mut pmids: Vec<Pmid> = known.into_iter().collect();
    pmids.extend([Pmid::new(29, 5, 77), Pmid::new(400, 0, 1), Pmid::NULL, Pmid::new(511, 29, 0)]);
    for pmid in &pmids {
        ask(format!("descriptor of {pmid}"), encoded(&DescRequest { pmid: *pmid }));
        if !dynamic.contains(pmid) {
            let request = encoded(&PmnsIds { status: 0, pmids: vec![*pmid].into() });
            ask(format!("names of {pmid}"), request);
        }
        for kind in [5, 6] {
            ask(format!("text {kind} of {pmid}"), raw(0x7008, &[pmid.0, kind]));
        }
        for level in [8, 16] {
            ask(format!("labels {level} of {pmid}"), raw(0x7012, &[pmid.0, level]));
        }
    }
    for some in pmids.chunks(100) {
        ask(format!("descriptors from {}", some[0]), encoded(&DescIds { pmids: some.into() }));
    }
    for pmid in &pmids[pmids.len() - 4..] {
        ask(format!("only {pmid}"), encoded(&DescIds { pmids: vec![*pmid].into() }));
    }
    for domain in [2, 29, 30, 60, 400, 511] {
        ask(format!("labels of agent {domain}"), raw(0x7012, &[domain, 2]));
    }

    let descs = host.lookup_descs(&pmids).expect("descriptors");
    let domains: BTreeSet<InDom> = descs.iter().flatten().filter_map(|desc| desc.indom).collect();
    for indom in domains {
        // Their instances are the clients of this pmcd, and those of `mirage`,
        // which come and go by the clock.
        if indom.domain() == 2 || MIRAGES.contains(&indom) {
            continue;
        }
        ask(format!("instances of {indom}"), encoded(&InstanceRequest::all(indom)));
        for kind in [9, 10] {
            ask(format!("text {kind} of {indom}"), raw(0x7008, &[indom.0, kind]));
        }
        for level in [4, 32] {
            ask(format!("labels {level} of {indom}"), raw(0x7012, &[indom.0, level]));
        }
        let domain = host.instance_domain(indom, Freshness::Current).expect("an answer");
        let Ok(domain) = domain else { continue };
        for (instance, name) in domain.instances().take(20) {
            let by_id = InstanceRequest { indom, instance, name: b"" };
            ask(format!("instance {instance} of {indom}"), encoded(&by_id));
            for name in [name, name.split(' ').next().unwrap_or_default()] {
                let by_name = InstanceRequest { indom, instance: -1, name: name.as_bytes() };
                ask(format!("instance {name} of {indom}"), encoded(&by_name));
            }
        }
        for (instance, name) in [(-77, &b""[..]), (-1, b"nothing of that name"), (0, b"both")] {
            let unknown = InstanceRequest { indom, instance, name };
            ask(format!("instance {instance} {name:?} of {indom}"), encoded(&unknown));
        }
    }
    for indom in [InDom::new(29, 4_000), InDom::new(400, 1)] {
        ask(format!("instances of {indom}"), encoded(&InstanceRequest::all(indom)));
        for kind in [9, 10] {
            ask(format!("text {kind} of {indom}"), raw(0x7008, &[indom.0, kind]));
        }
        for level in [4, 32] {
            ask(format!("labels {level} of {indom}"), raw(0x7012, &[indom.0, level]));
        }
    }

    let mut steady = Vec::new();
    for node in STEADY {
        steady.extend(host.traverse(node).expect(node));
    }
    // Counters among them.
    steady.retain(|name| !name.contains("_ctr"));
    assert!(steady.len() > 40, "{}", steady.len());
    let steady: Vec<&str> = steady.iter().map(String::as_str).collect();
    let steady: Vec<Pmid> =
        host.lookup_names(&steady).expect("names").into_iter().flatten().collect();
    let bins = InDom::new(29, 2);
    let listed = |state| ProfileEntry { indom: bins.0, state, instances: vec![100, 300, -5] };
    let profiles = [
        Profile::include_all(0),
        Profile { context: 0, state: Selection::Exclude, entries: vec![] },
        Profile {
            context: 0,
            state: Selection::Exclude,
            entries: vec![listed(Selection::Exclude)],
        },
        Profile {
            context: 0,
            state: Selection::Include,
            entries: vec![listed(Selection::Include)],
        },
    ];
    for profile in profiles {
        ask(format!("{profile:?}"), encoded(&profile));
        for resolution in [Resolution::Micro, Resolution::Nano] {
            let mut list = steady.clone();
            list.extend([Pmid::new(29, 0, 1023), Pmid::new(400, 0, 1), Pmid::NULL, steady[0]]);
            let fetch = Fetch { resolution, context: 0, pmids: list.into() };
            ask(format!("values with {profile:?}"), encoded(&fetch));
        }
    }
    requests
}
