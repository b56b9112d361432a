//! The live source against a real pmcd, compared with the output of PCP's own tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::real_pmcd::RealPmcd;
use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::model::{InDom, MetricDesc, PmStatus, Pmid, RawValueRef, Value, ValueType};
use pmderive_runtime::model::{TextKind, TextSubject};
use pmderive_runtime::result::{ResultBatch, ValueSet};
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};

/// Bits of pmcd's notices, see pmFetch(3).
const AGENT_ADDED: i32 = 1;
const AGENT_DROPPED: i32 = 4;

fn contexts(pmcd: &RealPmcd) -> Vec<HostContext> {
    let specs = [
        format!("unix:{}", pmcd.socket.display()),
        format!("local:{}", pmcd.socket.display()),
        format!("pcp://localhost:{}", pmcd.port),
        format!("127.0.0.1:{}", pmcd.port),
        format!("[::1]:{}", pmcd.port),
    ];
    // Without IPv6, the last one is impossible.
    let usable = if std::net::TcpListener::bind("[::1]:0").is_ok() { 5 } else { 4 };
    let open = |spec: &String| {
        let spec = spec.parse().expect("a specification");
        HostContext::open_with(&spec, ConnectOptions::default()).expect("a connection")
    };
    specs[..usable].iter().map(open).collect()
}

#[test]
fn a_container_can_be_named() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let spec = format!("unix:{}?container=web_1.a-b", pmcd.socket.display());
    let spec = spec.parse().expect("a specification");
    let mut host = HostContext::open_with(&spec, ConnectOptions::default()).expect("accepted");
    assert_eq!(host.lookup_names(&["pmcd.version"]).expect("an answer"), [Ok(Pmid::new(2, 0, 7))]);
    let mut batch = ResultBatch::default();
    let list = FetchList::new(vec![Pmid::new(2, 0, 7)], vec![]);
    host.fetch(&list, &mut batch).expect("values");
    assert_eq!(batch.parts()[0].sets().map(|set| set.count).collect::<Vec<_>>(), [Ok(1)]);
}

/// The compared part of `pminfo -dm`'s output for one metric.
fn described(name: &str, desc: &Result<MetricDesc, PmStatus>) -> Vec<String> {
    let desc = match desc {
        Ok(desc) => desc,
        Err(status) => return vec![name.to_owned(), format!("Error: {status}")],
    };
    let kind = desc.value_type.description().unwrap_or("Not Supported");
    // A metric that is not supported has no semantics.
    let semantics = match desc.value_type {
        ValueType::NoSupport => "??? (0)",
        _ => desc.semantics.name(),
    };
    let indom = desc.indom.map_or("PM_INDOM_NULL".to_owned(), |indom| indom.to_string());
    vec![
        name.to_owned(),
        desc.pmid.to_string(),
        kind.to_owned(),
        format!("{indom} 0x{:x}", InDom::to_wire(desc.indom)),
        semantics.to_owned(),
    ]
}

/// The same fields out of the text of `pminfo -dm`, by name.
fn described_by_pminfo(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for block in text.split("\n\n") {
        let mut lines = block.trim_start_matches('\n').lines();
        let Some(first) = lines.next() else { continue };
        let Some((name, pmid)) = first.split_once(" PMID: ") else { continue };
        let mut fields = vec![name.to_owned()];
        // Identifiers are followed by their number.
        fields.push(pmid.split(' ').next().unwrap_or_default().to_owned());
        for line in lines {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("Data Type: ") {
                let (kind, indom) = rest.split_once("InDom: ").unwrap_or((rest, ""));
                fields.push(kind.trim().to_owned());
                fields.push(indom.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("Semantics: ") {
                fields.push(rest.split("Units:").next().unwrap_or_default().trim().to_owned());
            }
        }
        found.insert(name.to_owned(), fields);
    }
    found
}

#[test]
fn the_sample_metrics_are_those_that_pminfo_describes() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let listed = pmcd.tool("pminfo", &["sample", "sampledso", "kernel.all"]);
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    let text = pmcd.tool("pminfo", &["-dm", "sample", "sampledso", "kernel.all"]);
    let theirs = described_by_pminfo(&text);
    for mut host in contexts(&pmcd) {
        let mut names = Vec::new();
        for prefix in ["sample", "sampledso", "kernel.all"] {
            names.extend(host.traverse(prefix).expect(prefix));
        }
        names.sort_unstable();
        assert_eq!(names, listed);
        assert!(names.len() > 400, "{} metrics", names.len());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let pmids = host.lookup_names(&names).expect("answers");
        let known: Vec<Pmid> = pmids.iter().filter_map(|pmid| pmid.ok()).collect();
        let descs = host.lookup_descs(&known).expect("answers");
        let resolved = names.iter().zip(&pmids).filter(|(_, pmid)| pmid.is_ok());
        let mut compared = 0;
        for ((name, _), desc) in resolved.zip(&descs) {
            if let (Ok(_), Some(theirs)) = (desc, theirs.get(*name)) {
                assert_eq!(described(name, desc), *theirs);
                compared += 1;
            }
        }
        assert!(compared > 380, "{compared} compared");
        let whole = host.traverse("").expect("the whole name space");
        assert!(whole.len() > 2000 && whole.iter().any(|name| name == "sample.bin"));
    }
}

/// One value as `pmprobe -v` prints it. Floating point and values with a
/// notation of their own are left out.
fn printed(desc: &MetricDesc, value: Option<RawValueRef<'_>>) -> Option<String> {
    Some(match value?.decode(desc.value_type).ok()? {
        Value::I32(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::Text(text) => format!("\"{text}\""),
        _ => return None,
    })
}

#[test]
fn the_sample_values_are_those_that_pmprobe_prints() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let names = [
        "sample.bin",
        "sample.long.one",
        "sample.long.ten",
        "sample.long.hundred",
        "sample.long.million",
        "sample.ulong.million",
        "sample.longlong.million",
        "sample.longlong.one",
        "sample.ulonglong.one",
        "sample.ulonglong.million",
        "sample.longlong.bin",
        "sample.long.bin",
        "sample.string.hullo",
        "sample.string.null",
        "sample.control",
        "sample.noinst",
        "sample.bad.unknown",
        "sample.bad.novalues",
        "sample.bad.nosupport",
        "sample.needprofile",
        "sample.error_code",
        "sampledso.bin",
        "sampledso.dupnames.two.bin",
        "pmcd.numagents",
        "pmcd.version",
    ];
    for mut host in contexts(&pmcd) {
        let resolved = host.lookup_names(&names).expect("answers");
        let found: Vec<(&str, Pmid)> =
            names.iter().zip(&resolved).filter_map(|(n, p)| Some((*n, (*p).ok()?))).collect();
        assert!(found.len() >= names.len() - 2, "{resolved:?}");
        let pmids: Vec<Pmid> = found.iter().map(|(_, pmid)| *pmid).collect();
        let descs = host.lookup_descs(&pmids).expect("answers");
        let mut batch = ResultBatch::default();
        let list = FetchList::new(pmids, vec![]);
        assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
        assert!(batch.timestamp().sec > 1_600_000_000);
        let part = &batch.parts()[0];
        let sets: Vec<ValueSet<'_>> = part.sets().collect();
        let mut compared = 0;
        for (((name, _), set), desc) in found.iter().zip(&sets).zip(&descs) {
            let theirs = pmcd.tool("pmprobe", &["-v", name]);
            let desc = match desc {
                Ok(desc) if set.count.is_ok() => desc,
                _ => {
                    let status = set.count.err().or(desc.err()).expect("a failure");
                    assert!(
                        theirs.starts_with(&format!("{name} {}", status.0)),
                        "{theirs}{status:?}"
                    );
                    continue;
                }
            };
            let mut fields = vec![(*name).to_owned(), set.len().to_string()];
            for (_, value) in set.values() {
                let Some(value) = printed(desc, value) else { break };
                fields.push(value);
            }
            if fields.len() == set.len() + 2 {
                assert_eq!(fields.join(" "), theirs.trim_end(), "{name}");
                compared += 1;
            }
        }
        assert!(compared >= 15, "{compared} compared");
    }
}

#[test]
fn failures_carry_the_codes_of_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    for mut host in contexts(&pmcd) {
        let names = host.lookup_names(&[
            "sample.long.one",
            "no.such",
            "sample.long",
            "",
            "sample.long.one",
        ]);
        let one = Ok(Pmid::new(29, 0, 10));
        assert_eq!(
            names.expect("answers"),
            [one, Err(PmStatus::NAME), Err(PmStatus::NONLEAF), Err(PmStatus::NAME), one]
        );
        assert_eq!(
            host.lookup_names(&["sample.long"]).expect("an answer"),
            [Err(PmStatus::NONLEAF)]
        );
        let descs = host.lookup_descs(&[Pmid::new(29, 5, 77), Pmid::new(29, 0, 10), Pmid::NULL]);
        let descs: Vec<_> =
            descs.expect("answers").iter().map(|d| d.map(|d| d.value_type)).collect();
        assert_eq!(descs, [Err(PmStatus::PMID), Ok(ValueType::I32), Err(PmStatus::PMID)]);
        let unknown = host.instance_domain(InDom::new(29, 999), Freshness::Cached);
        assert_eq!(unknown.expect("an answer"), Err(PmStatus::INDOM));
        let nowhere = host.traverse("no.such").expect_err("unknown");
        assert!(matches!(nowhere, SourceError::Status { status: PmStatus::NAME, .. }), "{nowhere}");
        let text = host
            .text(TextSubject::Metric(Pmid::new(2, 0, 7)), TextKind::OneLine)
            .expect("an answer");
        assert_eq!(text.as_deref(), Ok("PMCD version"));
        let text = host
            .text(TextSubject::Metric(Pmid::new(400, 0, 7)), TextKind::OneLine)
            .expect("an answer");
        assert!(text.is_err());
        let mut batch = ResultBatch::default();
        let list = FetchList::new(vec![Pmid::new(400, 0, 1), Pmid::new(29, 0, 10)], vec![]);
        host.fetch(&list, &mut batch).expect("values");
        let counts: Vec<_> = batch.parts()[0].sets().map(|set| set.count).collect();
        assert_eq!(counts, [Err(PmStatus::NOAGENT), Ok(1)]);
    }
}

#[test]
fn instance_domains_come_with_the_fetch_and_keep_their_identity() {
    let Some(pmcd) = RealPmcd::start() else { return };
    for mut host in contexts(&pmcd) {
        let (bin, colour, unknown) = (InDom::new(29, 2), InDom::new(29, 1), InDom::new(29, 999));
        let list = FetchList::new(vec![Pmid::new(29, 0, 6)], vec![bin, unknown, colour]);
        let mut batch = ResultBatch::default();
        host.fetch(&list, &mut batch).expect("values");
        let [Ok(bins), Err(PmStatus::INDOM), Ok(colours)] = &batch.domains[..] else {
            panic!("{:?}", batch.domains)
        };
        let names: Vec<_> = bins.instances().map(|(id, name)| format!("{id} {name}")).collect();
        assert_eq!(names[0], "100 bin-100");
        assert_eq!(names.len(), 9);
        assert_eq!(colours.len(), 3);
        let bins = Arc::clone(bins);
        let cached = host.instance_domain(bin, Freshness::Cached).expect("ok").expect("known");
        let current = host.instance_domain(bin, Freshness::Current).expect("ok").expect("known");
        assert!(Arc::ptr_eq(&bins, &cached) && Arc::ptr_eq(&bins, &current));
        host.fetch(&list, &mut batch).expect("values");
        assert!(batch.domains[0].as_ref().is_ok_and(|again| Arc::ptr_eq(again, &bins)));
    }
}

#[test]
fn a_fetch_beyond_the_limit_of_requests_is_split() {
    let Some(pmcd) = RealPmcd::start() else { return };
    for mut host in contexts(&pmcd) {
        let count = 40_000;
        let list = FetchList::new(vec![Pmid::new(30, 0, 10); count], vec![]);
        let mut batch = ResultBatch::default();
        host.fetch(&list, &mut batch).expect("values");
        assert_eq!(batch.parts().len(), 3);
        let ones = batch.sets().filter(|set| set.value(0) == Some(RawValueRef::InPlace(1))).count();
        assert_eq!(ones, count);
    }
}

/// Process of an agent of this pmcd, which starts agents through another one.
fn agent_pid(pmcd: &RealPmcd, program: &str) -> u32 {
    let processes: BTreeMap<u32, (u32, String)> = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (name, rest) = stat.split_once(") ")?;
            let parent = rest.split(' ').nth(1)?.parse().ok()?;
            Some((pid, (parent, name.to_owned())))
        })
        .collect();
    let descends = |pid: &u32| {
        let parents = std::iter::successors(Some(*pid), |pid| Some(processes.get(pid)?.0));
        parents.take(4).any(|pid| pid == pmcd.pid)
    };
    let agents = processes.iter().filter(|(_, (_, name))| name.ends_with(program));
    agents.map(|(pid, _)| *pid).find(descends).expect("an agent of this pmcd")
}

#[test]
fn a_dead_agent_is_noticed_and_a_dead_pmcd_loses_the_connection() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let mut host = contexts(&pmcd).swap_remove(0);
    let list = FetchList::new(vec![Pmid::new(29, 0, 10), Pmid::new(2, 0, 7)], vec![]);
    let mut batch = ResultBatch::default();
    let counts =
        |batch: &ResultBatch| -> Vec<_> { batch.parts()[0].sets().map(|set| set.count).collect() };
    assert_eq!(host.fetch(&list, &mut batch).expect("values"), FetchEvents::default());
    assert_eq!(counts(&batch), [Ok(1), Ok(1)]);
    let epoch = host.metadata_epoch();
    pmcd.kill_agent(agent_pid(&pmcd, "pmdasample"));
    // The fetch that meets the dead agent reports it or finds out by failing.
    let mut events = FetchEvents::default();
    while events.changes.0 & AGENT_DROPPED == 0 {
        events = host.fetch(&list, &mut batch).expect("values");
        assert_eq!(counts(&batch)[1], Ok(1));
    }
    assert!(events.metadata_changed && host.metadata_epoch() > epoch);
    // pmcd starts it again with one of the next fetches.
    while !events.changes.agent_restarted() {
        events = host.fetch(&list, &mut batch).expect("values");
    }
    assert!(events.changes.0 & AGENT_ADDED != 0 && events.gap);
    assert_eq!(counts(&batch), [Ok(1), Ok(1)]);

    let (port, socket) = (pmcd.port, pmcd.socket.clone());
    drop(pmcd);
    let lost = host.fetch(&list, &mut batch).expect_err("pmcd is gone");
    assert!(matches!(lost, SourceError::Io { .. }), "{lost}");
    let refused = host.fetch(&list, &mut batch).expect_err("pmcd is gone");
    let message = refused.to_string();
    assert!(matches!(refused, SourceError::Connect { .. }), "{port}: {message}");
    assert!(message.contains(&socket.display().to_string()), "{message}");
}
