//! Labels: merging, filtering, printing.

use pmderive_runtime::context::{HostContext, HostSpec};
use pmderive_runtime::memory::{MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, LabelFlags, LabelLevel, LabelPlace, LabelSet, MetricDesc, PmStatus, Pmid, Semantics,
    Units, ValueType,
};
use pmderive_runtime::source::MetadataSource;

use crate::real_pmcd::RealPmcd;
use crate::{compare, text};

#[test]
fn labels_merge_as_by_libpcp() {
    compare("strings", "merge_labels", |row| {
        let texts = row[0].as_array().unwrap().iter().map(text);
        let theirs = match crate::code(&row[1]) {
            0.. => text(&row[2]).to_owned(),
            status => status.to_string(),
        };
        let ours = match LabelSet::merged_texts(texts) {
            Ok(set) => set.json().to_owned(),
            // For a text that cannot be read, libpcp returns EINVAL.
            Err(_) => "-22".to_owned(),
        };
        (theirs, ours)
    });
}

#[test]
fn labels_that_are_not_wanted_are_left_out() {
    let set = |text, flags| LabelSet::parse(text, LabelFlags(flags)).unwrap();
    let sets = [set(r#"{"a":1,"b":2}"#, 1), set(r#"{"a":3,"c":4}"#, 16 | LabelFlags::OPTIONAL.0)];
    let merged = LabelSet::merged_where(&sets, |label| label.name != "b");
    assert_eq!(merged.json(), r#"{"a":3,"c":4}"#);
    let merged = LabelSet::merged_where(&sets, |label| !label.flags.has(LabelFlags::OPTIONAL));
    assert_eq!(merged.json(), r#"{"a":1,"b":2}"#);
    assert_eq!(LabelSet::merged_where(&sets, |_| false).json(), "");
}

/// The output of libpcp 6.0.3.
#[test]
fn labels_print_as_by_libpcp() {
    let pmid = Pmid(0x0740_007f);
    let set = |flags| {
        let flags = LabelFlags(flags);
        let place = LabelPlace { name: 2, name_len: 1, flags, value: 5, value_len: 1 };
        LabelSet::new(5, "{\"a\":1}", vec![place]).unwrap()
    };
    for (level, flags, expected) in [
        (
            LabelLevel::Context,
            1,
            "Context labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [context]\n",
        ),
        (
            LabelLevel::Domain(29),
            2 | 64,
            "Domain 29 labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [domain,compound]\n",
        ),
        (
            LabelLevel::InDom(InDom(pmid.0)),
            4 | 128,
            "InDom 29.127 labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [indom,optional]\n",
        ),
        (
            LabelLevel::Cluster(pmid),
            8 | 192,
            "Cluster 29.0 labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [cluster,compound,optional]\n",
        ),
        (
            LabelLevel::Item(pmid),
            16,
            "PMID 29.0.127 labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [pmid]\n",
        ),
        (
            LabelLevel::Instances(InDom(pmid.0)),
            32,
            "InDom 29.127[5] labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [instances]\n",
        ),
        (
            LabelLevel::Domain(29),
            3,
            "Domain 29 labels (7 bytes): {\"a\":1}\n        [0] name(2,1) : value(5,1) [?]\n",
        ),
    ] {
        assert_eq!(level.print(&[set(flags)]), format!("    {expected}"));
    }
    let none = LabelLevel::Domain(29).print(&[LabelSet::empty(-1)]);
    assert_eq!(none, "    Domain 29 labels (0 bytes): (null)\n");
}

#[test]
fn labels_of_a_metric_come_level_by_level() {
    let (pmid, indom) = (Pmid::new(5, 6, 7), InDom::new(5, 1));
    let mut metadata = MemoryMetadata::default();
    metadata.add_metric(
        "a",
        MetricDesc {
            pmid,
            value_type: ValueType::U32,
            indom: Some(indom),
            semantics: Semantics::Instant,
            units: Units::NONE,
        },
    );
    let levels = [
        LabelLevel::Context,
        LabelLevel::Domain(5),
        LabelLevel::InDom(indom),
        LabelLevel::Cluster(pmid),
        LabelLevel::Item(pmid),
    ];
    for (level, json) in
        levels.iter().zip(["{\"a\":1,\"b\":1}", "{\"b\":2}", "", "{\"c\":4}", "{\"a\":5}"])
    {
        let set = LabelSet::parse(json, LabelFlags(level.bit())).unwrap();
        let sets = if json.is_empty() { vec![] } else { vec![set] };
        metadata.set_labels(level.of_cluster(), sets);
    }
    let mut source = MemorySource::new("memory", metadata, ());
    let found = source.labels_of_metric(pmid).unwrap().unwrap();
    let found_levels: Vec<_> = found.iter().map(|(level, _)| *level).collect();
    assert_eq!(found_levels, [levels[0], levels[1], levels[3], levels[4]]);
    let merged = LabelSet::merged(found.iter().map(|(_, set)| set));
    assert_eq!(merged.json(), "{\"a\":5,\"b\":2,\"c\":4}");
    assert_eq!(source.labels_of_metric(Pmid::new(5, 6, 8)).unwrap(), Err(PmStatus::PMID));
}

/// The answers of libpcp 6.0.3's pmLookupLabels(3) for the sample agent.
#[test]
fn labels_of_a_real_metric_are_those_of_libpcp() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let spec = format!("unix:{}", pmcd.socket.display());
    let mut host = HostContext::open(&spec.parse::<HostSpec>().unwrap()).unwrap();
    for (metric, expected) in [
        ("sample.bin", &["domain", "cluster"][..]),
        ("sample.colour", &["domain", "indom", "cluster"]),
        ("sample.long.one", &["domain", "cluster"]),
    ] {
        let pmid = host.lookup_names(&[metric]).unwrap()[0].unwrap();
        let found = host.labels_of_metric(pmid).unwrap().unwrap();
        let json: Vec<_> = found.iter().skip(1).map(|(_, set)| set.json()).collect();
        let texts = expected.iter().map(|level| match *level {
            "domain" => r#"{"agent":"sample","role":"testing"}"#,
            "indom" => r#"{"model":"RGB"}"#,
            _ => r#"{"cluster":"zero"}"#,
        });
        assert_eq!(json, texts.collect::<Vec<_>>(), "{metric}");
        let (context, set) = &found[0];
        assert!(*context == LabelLevel::Context && set.json().contains("\"hostname\""), "{metric}");
    }
}
