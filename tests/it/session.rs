//! Derived metrics, used like any other metric of a context, over a source in memory.

mod asking;
mod reading;

use std::path::Path;
use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Definitions, Engine, Registry, Session};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::local::LocalContext;
use pmderive_runtime::model::{
    InDom, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, RawValueRef, Semantics,
    TextKind, TextSubject, ValueType,
};
use pmderive_runtime::result::{FetchResult, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource, Mode};

use crate::table;
use table::*;

#[test]
fn names_lead_both_ways() {
    let mut context = context(&shared(Dialect::Fixed, SOME));
    let names =
        ["event.flags", "event.missed", "d.sum", "d.twice", "d.lost", "t.set.more", "d.rate", "e"];
    let expected =
        ["511.0.1", "511.0.2", "511.0.3", "511.0.4", "511.0.5", "511.0.6", "511.0.8", "511.0.9"];
    for _ in 0..2 {
        for (name, expected) in names.iter().zip(expected) {
            let pmid = pmid(&mut context, name);
            assert_eq!(pmid.to_string(), expected, "{name}");
            assert_eq!(name_of(&mut context, pmid).as_deref(), Ok(*name));
        }
        // Once more when all of them are bound.
        context.traverse("").expect("memory does not fail");
    }
    assert_eq!(pmid(&mut context, "t.one"), Pmid::new(7, 0, 0), "the source's own counts");
    assert_eq!(lookup(&mut context, "d"), Err(PmStatus::NAME));
    assert_eq!(lookup(&mut context, "d.none"), Err(PmStatus::NAME));
    assert_eq!(name_of(&mut context, Pmid::new(511, 0, 7)), Err(PmStatus::PMID), "hidden");
    assert_eq!(name_of(&mut context, Pmid::new(511, 9, 9)), Err(PmStatus::PMID));
}

#[test]
fn the_name_space_is_that_of_both() {
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0] {
        let mut context = context(&shared(dialect, SOME));
        // Version 6 does not look whether a metric can be used before it lists it.
        let is_listed = dialect == Dialect::Pcp6_0;
        let d: &[&str] =
            if is_listed { &["sum", "twice", "lost", "rate"] } else { &["sum", "twice", "rate"] };
        let lost = if is_listed { Ok(vec![]) } else { Err(PmStatus::NAME) };
        assert_eq!(children(&mut context, "d").expect("a node"), d);
        assert_eq!(children(&mut context, "d.lost"), lost);

        let traversed = context.traverse("").expect("memory does not fail");
        let of_source = ["t.one", "t.set", "t.counter", "t.text", "t.other"];
        // In version 6 the anonymous ones come when the context does.
        let derived: &[&str] = match dialect {
            Dialect::Pcp6_0 => {
                &["d.sum", "d.twice", "t.set.more", "d.rate", "e", "event.flags", "event.missed"]
            }
            _ => &["event.flags", "event.missed", "d.sum", "d.twice", "t.set.more", "d.rate", "e"],
        };
        assert_eq!(traversed, [&of_source[..], derived].concat());
        let below = context.traverse("t.set").expect("memory does not fail");
        assert_eq!(below, ["t.set", "t.set.more"]);
        assert_eq!(context.traverse("d.rate").expect("memory does not fail"), ["d.rate"]);
        assert!(context.traverse("d.ra").is_err(), "no boundary of components");

        // Now it is known.
        assert_eq!(children(&mut context, "d").expect("a node"), ["sum", "twice", "rate"]);
        assert_eq!(children(&mut context, "d.lost"), Err(PmStatus::NAME));
        let root: &[&str] = match dialect {
            Dialect::Pcp6_0 => &["t.", "d.", "e", "event."],
            _ => &["t.", "event.", "d.", "e"],
        };
        assert_eq!(children(&mut context, "").expect("a node"), root);
        let t = children(&mut context, "t").expect("a node");
        assert_eq!(t, ["one", "set", "counter", "text", "other"], "what was a leaf stays one");
        assert_eq!(children(&mut context, "t.set"), Ok(vec!["more".to_owned()]));
        assert_eq!(children(&mut context, "d.rate"), Ok(vec![]));
        assert_eq!(children(&mut context, "none"), Err(PmStatus::NAME));
    }
}

#[test]
fn descriptors_have_the_operands_domain() {
    let mut context = context(&shared(Dialect::Fixed, SOME));
    let names = ["t.set", "d.twice", "d.lost", "event.flags", "d.rate", "e"];
    let mut pmids: Vec<Pmid> = names.iter().map(|name| pmid(&mut context, name)).collect();
    pmids.extend([Pmid::new(7, 0, 99), Pmid::new(511, 0, 7), Pmid::new(511, 0, 99)]);
    let descs = context.lookup_descs(&pmids).expect("memory does not fail");
    let fields = |desc: MetricDesc| (desc.pmid, desc.value_type, desc.indom, desc.semantics);
    let found: Vec<_> = descs.into_iter().map(|desc| desc.map(fields)).collect();
    let domain = Some(DOMAIN);
    let expected = [
        Ok((pmids[0], ValueType::U32, domain, Semantics::Instant)),
        Ok((pmids[1], ValueType::U32, domain, Semantics::Instant)),
        Err(PmStatus::BADDERIVE),
        Ok((pmids[3], ValueType::U32, None, Semantics::Discrete)),
        Ok((pmids[4], ValueType::F64, domain, Semantics::Instant)),
        Ok((pmids[5], ValueType::String, None, Semantics::Discrete)),
        Err(PmStatus::PMID),
        Err(PmStatus::BADDERIVE),
        Err(PmStatus::PMID),
    ];
    assert_eq!(found, expected);
    // Before a second sample, before any fetch at all.
    let instances = context.instance_domain(DOMAIN, Freshness::Cached);
    let instances = instances.expect("memory does not fail").expect("a known domain");
    assert_eq!(instances.name(1), Some("b"));
}

#[test]
fn any_mix_in_the_callers_order() {
    let mut context = context(&shared(Dialect::Fixed, SOME));
    let names = [
        "d.twice",
        "t.one",
        "d.lost",
        "t.set",
        "event.flags",
        "d.sum",
        "d.twice",
        "e",
        "t.other",
        "t.one",
        "t.text",
    ];
    let list = list(&mut context, &names);
    let expected = [
        "0=20 1=40",
        "-1=1",
        "-12358",
        "0=10 1=20",
        "none",
        "-1=30",
        "0=20 1=40",
        "-1=hello",
        "0=1.5 1=2.5",
        "-1=1",
        "-1=hello",
    ];
    for _ in 0..3 {
        assert_eq!(fetch(&mut context, &list), expected);
    }
    let asked = context.source().feed().take_fetched();
    assert_eq!(asked.len(), 3, "one fetch each");
    let mut sorted: Vec<String> = asked[0].iter().map(|pmid| pmid.to_string()).collect();
    sorted.sort();
    assert_eq!(sorted, ["7.0.0", "7.0.1", "7.0.3", "7.0.4"], "each metric once, none derived");
    // Without derived metrics the source answers by itself.
    assert_eq!(fetch_names(&mut context, &["t.one", "t.set"]), ["-1=1", "0=10 1=20"]);
    let constants = fetch_names(&mut context, &["event.missed", "d.lost"]);
    assert_eq!(constants, ["none", "-12358"]);
}

#[test]
fn failures_of_operands_are_those_of_the_result() {
    let mut context = context(&shared(Dialect::Fixed, SOME));
    let list = list(&mut context, &["d.twice", "d.sum", "t.set"]);
    set(context.source(), "t.set", Values::Failed(PmStatus::AGAIN));
    assert_eq!(fetch(&mut context, &list), ["-12389", "-12389", "-12389"]);
    set(context.source(), "t.set", Values::U32(vec![]));
    assert_eq!(fetch(&mut context, &list), ["none", "-1=0", "none"]);
    set(context.source(), "t.set", Values::U32(vec![(5, 7)]));
    assert_eq!(fetch(&mut context, &list), ["5=14", "-1=7", "5=7"]);
}

#[test]
fn unusable_metrics_have_the_status_of_the_dialect() {
    for (dialect, names, expected) in [
        (Dialect::Fixed, &["d.lost", "t.one"][..], &["-12358", "-1=1"][..]),
        (Dialect::Pcp7_2, &["d.lost", "t.one"], &["-12358", "-1=1"]),
        (Dialect::Pcp6_0, &["d.lost", "t.one"], &["-12386", "-1=1"]),
        (Dialect::Pcp6_0, &["d.lost", "d.sum"], &["-12358", "-1=30"]),
    ] {
        let mut context = context(&shared(dialect, SOME));
        assert_eq!(fetch_names(&mut context, names), expected, "{dialect:?}");
    }
}

#[test]
fn the_domains_of_a_list_come_with_it() {
    let definitions = [("d.spread", "mkconst(5, indom=\"7.1\")"), ("d.sum", "sum(t.set)")];
    let mut context = context(&shared(Dialect::Fixed, &definitions));
    for name in ["d.spread", "d.sum"] {
        let pmids = vec![pmid(&mut context, name)];
        let list = FetchList::new(pmids, vec![InDom::new(7, 2), DOMAIN]);
        let mut batch = ResultBatch::default();
        for _ in 0..2 {
            context.fetch(&list, &mut batch).expect("memory does not fail");
            let domains: Vec<Result<usize, PmStatus>> = batch
                .domains
                .iter()
                .map(|domain| domain.as_ref().map(|domain| domain.len()).map_err(|e| *e))
                .collect();
            assert_eq!(domains, [Err(PmStatus::INDOM), Ok(2)], "{name}");
        }
    }
    assert_eq!(fetch_names(&mut context, &["d.spread"]), ["0=5 1=5"]);
}

#[test]
fn texts_and_labels() {
    let shared = shared(Dialect::Fixed, SOME);
    assert_eq!(shared.set_text("d.sum", TextKind::OneLine, "one line"), Ok(()));
    assert_eq!(shared.set_text("d.twice", TextKind::Help, "much help"), Ok(()));
    assert_eq!(changed(shared.set_text("d.sum", TextKind::OneLine, "other")), Err(PmStatus::TEXT));
    assert_eq!(changed(shared.set_text("t.other", TextKind::OneLine, "x")), Err(PmStatus::NAME));
    let mut context = context(&shared);
    let (one_line, help) = (TextKind::OneLine, TextKind::Help);
    let metadata = context.source().metadata();
    let one = TextSubject::Metric(Pmid::new(7, 0, 0));
    metadata.set_text(one, one_line, "one line of the source");
    metadata.set_text(one, help, "help of the source");
    metadata.set_text(TextSubject::Domain(DOMAIN), one_line, "a and b");
    // It is not asked about derived metrics, whatever it would say.
    for item in 0..100 {
        let derived = TextSubject::Metric(Pmid::new(511, 0, item));
        metadata.set_text(derived, one_line, "of nobody");
        metadata.set_text(derived, help, "of nobody");
    }
    for (name, expected_line, expected_help) in [
        ("d.sum", Ok("one line"), Ok("one line")),
        ("d.twice", Err(PmStatus::TEXT), Ok("much help")),
        ("d.rate", Err(PmStatus::TEXT), Err(PmStatus::TEXT)),
        ("t.one", Ok("one line of the source"), Ok("help of the source")),
    ] {
        let pmid = pmid(&mut context, name);
        assert_eq!(text(&mut context, pmid, one_line).as_deref(), expected_line.as_ref().copied());
        assert_eq!(text(&mut context, pmid, help).as_deref(), expected_help.as_ref().copied());
    }
    let flags = pmid(&mut context, "event.flags");
    assert_eq!(text(&mut context, flags, one_line).as_deref(), Ok("Flags for event records"));
    assert_eq!(text(&mut context, Pmid::new(511, 0, 99), help), Err(PmStatus::PMID));
    let of_domain = context.text(TextSubject::Domain(DOMAIN), one_line);
    let of_domain = of_domain.expect("memory does not fail");
    assert_eq!(of_domain.as_deref(), Ok("a and b"));
}

#[test]
fn labels_are_those_of_the_operands() {
    for (dialect, of_its_own, of_its_domain) in [
        (Dialect::Fixed, Ok(0), Ok(0)),
        (Dialect::Pcp7_2, Err(PmStatus::PMID), Err(PmStatus::NOAGENT)),
        (Dialect::Pcp6_0, Err(PmStatus::PMID), Err(PmStatus::NOAGENT)),
    ] {
        let mut context = context(&shared(dialect, SOME));
        let sum = pmid(&mut context, "d.sum");
        let levels = [
            (LabelLevel::Context, Ok(1)),
            (LabelLevel::Domain(511), of_its_domain),
            (LabelLevel::InDom(DOMAIN), Ok(1)),
            (LabelLevel::Cluster(sum), of_its_own),
            (LabelLevel::Item(sum), of_its_own),
            (LabelLevel::Instances(DOMAIN), Ok(1)),
            (LabelLevel::Item(Pmid::new(7, 0, 0)), Ok(1)),
        ];
        let asked = levels.map(|(level, _)| level);
        // The source has labels for all but the domain, and is not asked
        // about derived metrics.
        let set = LabelSet::parse(r#"{"place":"here"}"#, LabelFlags::default());
        let sets = vec![set.expect("a set of labels")];
        for level in asked.into_iter().filter(|level| *level != LabelLevel::Domain(511)) {
            context.source().metadata().set_labels(level, sets.clone());
        }
        let all = context.labels_of_each(&asked).expect("memory does not fail");
        for ((level, expected), answer) in levels.into_iter().zip(all) {
            assert_eq!(answer.map(|sets| sets.len()), expected, "{level:?}");
            let alone = context.labels(level).expect("memory does not fail");
            assert_eq!(alone.map(|sets| sets.len()), expected, "{level:?}");
        }
    }
}

/// Alternating lists share previous samples and keep their plans.
#[test]
fn lists_in_turn() {
    let definitions = [("d.a", "delta(t.set)"), ("d.b", "delta(t.counter)"), ("d.c", "t.one * 2")];
    let mut context = context(&shared(Dialect::Fixed, &definitions));
    let lists: Vec<FetchList> = [&["d.a", "d.b"][..], &["d.a"], &["d.c", "t.one"]]
        .iter()
        .map(|names| list(&mut context, names))
        .collect();
    let step = |context: &mut Context, value: u32| {
        set(context.source(), "t.set", Values::U32(vec![(0, value)]));
        set(context.source(), "t.counter", Values::U64(vec![(0, u64::from(value) * 10)]));
    };
    for (value, which, expected) in [
        (1, 0, &["none", "none"][..]),
        (2, 1, &["0=1"]),
        (4, 2, &["-1=2", "-1=1"]),
        (8, 0, &["0=6", "0=70"]),
        (16, 1, &["0=8"]),
        (32, 0, &["0=16", "0=240"]),
    ] {
        step(&mut context, value);
        assert_eq!(fetch(&mut context, &lists[which]), expected, "{value}");
    }
}

/// 20,000 derived metrics in one fetch, from an archive.
#[test]
fn twenty_thousand_of_an_archive() {
    const COUNT: u32 = 20_000;
    let mut text = String::new();
    for index in 0..COUNT {
        text.push_str(&format!("many.n{index} = s.i.u32 * 0 + {index}\n"));
    }
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Dialect::Fixed);
    let file = sources.add("many.conf", text);
    registry.add_text(file, &sources, &mut diagnostics);
    assert!(diagnostics.is_empty());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-types");
    let archive = ArchiveContext::open(path).expect("an archive of the repository");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let shared = Arc::new(Definitions::with(registry, sources));
    let mut context = Session::new(engine, shared, archive).expect("one language");
    let names = context.traverse("many").expect("an archive of the repository");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = context.lookup_names(&names).expect("an archive of the repository");
    let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
    assert_eq!(list.pmids().len(), COUNT as usize);
    let mut batch = ResultBatch::default();
    let mut records = 0;
    while context.fetch(&list, &mut batch).is_ok() {
        let values = batch.sets().map(|set| set.value(0));
        assert!(values.eq((0..COUNT).map(|number| Some(RawValueRef::InPlace(number)))));
        records += 1;
    }
    assert!(records > 5, "{records}");
}

/// A batch that is used again holds what a fresh one would, whatever it was used
/// for before.
#[test]
fn results_do_not_depend_on_those_before() {
    use ValueType::{F32, F64, I32, I64, U32, U64};
    let mut compared = 0;
    for name in ["own-fleet", "own-dyn", "own-dyn2", "own-types", "own-sample"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives").join(name);
        let mut archive = ArchiveContext::open(&path).expect("an archive of the repository");
        let names = archive.traverse("").expect("it has names");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let pmids = archive.lookup_names(&names).expect("they are its names");
        let pmids: Vec<Pmid> = pmids.into_iter().flatten().collect();
        let descs = archive.lookup_descs(&pmids).expect("it describes them");
        let shared = Definitions::new(Dialect::Fixed);
        let (mut base, mut derived) = (Vec::new(), Vec::new());
        for (number, ((name, pmid), desc)) in names.iter().zip(&pmids).zip(descs).enumerate() {
            let Ok(MetricDesc { value_type, semantics, .. }) = desc else { continue };
            if !matches!(value_type, I32 | U32 | I64 | U64 | F32 | F64) {
                continue;
            }
            let mut texts = vec![
                format!("delta({name}) + delta({name})"),
                format!("sum({name})"),
                format!("{name} > 7 ? {name} : 3"),
            ];
            if semantics == Semantics::Counter {
                texts.push(format!("rate({name})"));
            }
            for (kind, text) in texts.iter().enumerate() {
                let name = format!("d.n{number}.k{kind}");
                shared.register(&name, text).expect("a good definition");
                derived.push(name);
            }
            base.push(*pmid);
        }
        let shared = Arc::new(shared);
        let mut contexts = [(); 2].map(|()| {
            let archive = ArchiveContext::open(&path).expect("an archive of the repository");
            let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
            Session::new(engine, Arc::clone(&shared), archive).expect("one language")
        });
        let derived: Vec<&str> = derived.iter().map(String::as_str).collect();
        let derived = contexts[0].lookup_names(&derived).expect("they are known");
        let derived: Vec<Pmid> = derived.into_iter().flatten().collect();
        let mixed: Vec<Pmid> = base.iter().chain(&derived).copied().collect();
        let lists = [&derived[..1], &derived, &mixed, &derived[1..2]];
        let lists = lists.map(|pmids| FetchList::new(pmids.to_vec(), Vec::new()));
        let start = contexts[0].source().label().start;
        let end = contexts[0].source().end_time().expect("it has records");
        let span = (end.seconds_since(start) * 1e9) as i64;
        let mut kept = ResultBatch::default();
        for (from, step) in [(start, span / 90), (end, -span / 90), (start, 7_000_000)] {
            for context in &mut contexts {
                let mode = Mode::Interpolated { step };
                context.set_mode(mode, Some(from)).expect("archives have it");
            }
            for fetch in 0..120 {
                let list = &lists[fetch / 10 % lists.len()];
                let mut fresh = ResultBatch::default();
                let [one, other] = &mut contexts;
                match (one.fetch(list, &mut kept), other.fetch(list, &mut fresh)) {
                    (Ok(_), Ok(_)) => {}
                    (Err(error), Err(other)) => assert_eq!(error.status(), other.status()),
                    (one, other) => panic!("{name}: {one:?} {other:?}"),
                }
                let result = |batch| FetchResult::of_batch(batch, Default::default());
                assert_eq!(result(&kept), result(&fresh), "{name} {step} {fetch}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 1800);
}

#[test]
fn an_engine_and_definitions_of_two_languages_make_no_session() {
    let engine = Engine::new(Dialect::Pcp6_0, Backend::Interp);
    let error = Session::new(engine, Definitions::default(), LocalContext::new());
    assert_eq!(
        error.expect_err("two languages").to_string(),
        "the engine is for definitions in another language: it has the dialect of 6.0 without \
         extensions, the definitions have the default dialect without extensions"
    );
}
