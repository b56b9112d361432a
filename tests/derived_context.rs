//! Derived metrics as any other metric of a context, over a source in memory
//! whose metadata and values the tests change.

#[path = "derived_context/table_source.rs"]
mod table_source;

use std::path::Path;
use std::sync::Arc;

use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, DerivedContext, Engine, Registry, SharedRegistry};
use pmderive::source::SourceMap;
use pmderive::syntax::ControlOption;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::{
    InDom, LabelLevel, MetricDesc, PmStatus, Pmid, Semantics, TextKind, TextSubject, ValueType,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource, SourceError};
use table_source::{TableSource, Values};

type Context = DerivedContext<TableSource>;

fn shared(dialect: Dialect, definitions: &[(&str, &str)]) -> Arc<SharedRegistry> {
    let shared = SharedRegistry::new(dialect);
    for (name, text) in definitions {
        shared.register(name, text).expect("a good definition");
    }
    Arc::new(shared)
}

fn context(shared: &Arc<SharedRegistry>) -> Context {
    let engine = Engine::new(shared.language(), Backend::Interp);
    DerivedContext::new(Arc::new(engine), Arc::clone(shared), TableSource::default())
}

fn pmid(context: &mut Context, name: &str) -> Pmid {
    lookup(context, name).expect("a known name")
}

fn lookup(context: &mut Context, name: &str) -> Result<Pmid, PmStatus> {
    context.lookup_names(&[name]).expect("memory does not fail")[0]
}

fn list(context: &mut Context, names: &[&str]) -> FetchList {
    FetchList::new(names.iter().map(|name| pmid(context, name)).collect(), Vec::new())
}

/// A fetch in words: for each entry its values, or its status.
fn fetch(context: &mut Context, list: &FetchList) -> Vec<String> {
    let mut batch = ResultBatch::default();
    context.fetch(list, &mut batch).expect("memory does not fail");
    let descs = context.lookup_descs(list.pmids()).expect("memory does not fail");
    let sets = table_source::decode(&batch, &descs);
    let pmids: Vec<Pmid> = sets.iter().map(|(pmid, _)| *pmid).collect();
    assert_eq!(pmids, list.pmids(), "exactly the caller's entries in the caller's order");
    sets.into_iter().map(|(_, values)| values).collect()
}

fn fetch_names(context: &mut Context, names: &[&str]) -> Vec<String> {
    let list = list(context, names);
    fetch(context, &list)
}

fn children(context: &mut Context, node: &str) -> Result<Vec<String>, PmStatus> {
    let children = context.children(node).expect("memory does not fail")?;
    let written = |child: &pmderive_runtime::source::Child| match child.is_leaf {
        true => child.name.to_string(),
        false => format!("{}.", child.name),
    };
    Ok(children.iter().map(written).collect())
}

fn name_of(context: &mut Context, pmid: Pmid) -> Result<String, PmStatus> {
    Ok(context.names_of(pmid).expect("memory does not fail")?.join(" "))
}

fn text(context: &mut Context, pmid: Pmid, kind: TextKind) -> Result<Box<str>, PmStatus> {
    context.text(TextSubject::Metric(pmid), kind).expect("memory does not fail")
}

const SOME: &[(&str, &str)] = &[
    ("d.sum", "sum(t.set)"),
    ("d.twice", "t.set * 2"),
    ("d.lost", "t.missing + 1"),
    ("t.set.more", "t.one"),
    ("t.one", "5"),
    ("d.rate", "rate(t.counter)"),
    ("e", "t.text"),
];

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
    let domain = Some(table_source::DOMAIN);
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
    let instances = context.instance_domain(table_source::DOMAIN, Freshness::Cached);
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
    let asked = context.source().take_fetched();
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
    context.source().set("t.set", Values::Failed(PmStatus::AGAIN));
    assert_eq!(fetch(&mut context, &list), ["-12389", "-12389", "-12389"]);
    context.source().set("t.set", Values::U32(vec![]));
    assert_eq!(fetch(&mut context, &list), ["none", "-1=0", "none"]);
    context.source().set("t.set", Values::U32(vec![(5, 7)]));
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
        let list = FetchList::new(pmids, vec![InDom::new(7, 2), table_source::DOMAIN]);
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
    assert_eq!(shared.set_text("d.sum", TextKind::OneLine, "other"), Err(PmStatus::TEXT));
    assert_eq!(shared.set_text("t.other", TextKind::OneLine, "x"), Err(PmStatus::NAME));
    let mut context = context(&shared);
    let (one_line, help) = (TextKind::OneLine, TextKind::Help);
    for (name, expected_line, expected_help) in [
        ("d.sum", Ok("one line"), Ok("one line")),
        ("d.twice", Err(PmStatus::TEXT), Ok("much help")),
        ("d.rate", Err(PmStatus::TEXT), Err(PmStatus::TEXT)),
        ("t.one", Ok("OneLine of 7.0.0"), Ok("Help of 7.0.0")),
    ] {
        let pmid = pmid(&mut context, name);
        assert_eq!(text(&mut context, pmid, one_line).as_deref(), expected_line.as_ref().copied());
        assert_eq!(text(&mut context, pmid, help).as_deref(), expected_help.as_ref().copied());
    }
    let flags = pmid(&mut context, "event.flags");
    assert_eq!(text(&mut context, flags, one_line).as_deref(), Ok("Flags for event records"));
    assert_eq!(text(&mut context, Pmid::new(511, 0, 99), help), Err(PmStatus::PMID));
    let of_domain = context.text(TextSubject::Domain(table_source::DOMAIN), one_line);
    let of_domain = of_domain.expect("memory does not fail");
    assert_eq!(of_domain.as_deref(), Ok("OneLine of domain 7.1"));
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
            (LabelLevel::InDom(table_source::DOMAIN), Ok(1)),
            (LabelLevel::Cluster(sum), of_its_own),
            (LabelLevel::Item(sum), of_its_own),
            (LabelLevel::Instances(table_source::DOMAIN), Ok(1)),
            (LabelLevel::Item(Pmid::new(7, 0, 0)), Ok(1)),
        ];
        let asked = levels.map(|(level, _)| level);
        let all = context.labels_of_each(&asked).expect("memory does not fail");
        for ((level, expected), answer) in levels.into_iter().zip(all) {
            assert_eq!(answer.map(|sets| sets.len()), expected, "{level:?}");
            let alone = context.labels(level).expect("memory does not fail");
            assert_eq!(alone.map(|sets| sets.len()), expected, "{level:?}");
        }
    }
}

#[test]
fn definitions_come_and_go_while_contexts_are_open() {
    let shared = shared(Dialect::Fixed, &[("d.a", "t.one + 1"), ("d.c", "delta(t.set)")]);
    let (mut first, mut second) = (context(&shared), context(&shared));
    let both = list(&mut first, &["d.a", "d.c"]);
    assert_eq!(fetch(&mut first, &both), ["-1=2", "none"]);

    // Registered late, seen at once (B30).
    let late = shared.register("d.late", "t.one + 2").expect("a good definition");
    assert_eq!(pmid(&mut first, "d.late"), late);
    assert_eq!(fetch_names(&mut second, &["d.late"]), ["-1=3"]);
    let unseen = shared.register("d.unseen", "1").expect("a good definition");

    // Replaced without a touch of what others remember.
    let replaced = shared.replace("d.a", "t.one + 10").expect("a good definition");
    first.source().set("t.set", Values::U32(vec![(0, 15), (1, 20)]));
    let list = FetchList::new(vec![replaced, both.pmids()[1], both.pmids()[0]], vec![]);
    let mut batch = ResultBatch::default();
    first.fetch(&list, &mut batch).expect("memory does not fail");
    let descs = first.lookup_descs(list.pmids()).expect("memory does not fail");
    let values: Vec<String> =
        table_source::decode(&batch, &descs).into_iter().map(|(_, values)| values).collect();
    assert_eq!(values, ["-1=11", "0=5 1=0", "-12358"], "the former identifier is unknown now");
    let refused = shared.replace("d.a", "t.one +").expect_err("no expression");
    assert_eq!(refused.status(), PmStatus::BADDERIVE);
    assert_eq!(pmid(&mut first, "d.a"), replaced, "the former definition stays");

    // How many contexts knew it (B34): both have looked since d.late came,
    // none since d.unseen did.
    assert_eq!(shared.unregister("d.late"), Ok(2));
    assert_eq!(lookup(&mut first, "d.late"), Err(PmStatus::NAME));
    assert_eq!(lookup(&mut second, "d.unseen"), Ok(unseen));
    drop(second);
    assert_eq!(shared.unregister("d.a"), Ok(1));
    assert_eq!(shared.unregister("d.a"), Err(PmStatus::NAME));
    let again = shared.register("d.a", "t.one").expect("the name is free again");
    assert!(again > unseen, "identifiers are not given again");
    assert_eq!(fetch_names(&mut first, &["d.a"]), ["-1=1"]);
}

#[test]
fn contexts_have_definitions_of_their_own() {
    let shared = shared(Dialect::Fixed, &[("d.a", "t.one + 1")]);
    let (mut first, mut second) = (context(&shared), context(&shared));
    let add = |context: &mut Context, name: &str, text: &str| {
        context.add_derived(name, text).expect("memory does not fail")
    };
    let global = pmid(&mut first, "d.a");
    let own = add(&mut first, "own.x", "t.one + 5").expect("a good definition");
    assert_eq!(own.to_string(), "511.2047.1023");
    assert_eq!(own.0 >> 31, 1, "the flag that is not printed");
    // Each context counts for itself (Q36).
    let other = add(&mut second, "own.y", "t.one + 6").expect("a good definition");
    assert_eq!(other, own);
    let masking = add(&mut first, "d.a", "t.one + 7").expect("it hides the global one");
    assert_eq!(masking.to_string(), "511.2047.1022");
    assert_eq!(fetch_names(&mut first, &["own.x", "d.a"]), ["-1=6", "-1=8"]);
    let list = FetchList::new(vec![global, masking], vec![]);
    assert_eq!(fetch(&mut first, &list), ["-1=2", "-1=8"], "the former identifier still works");
    assert_eq!(name_of(&mut first, global), Err(PmStatus::PMID));
    assert_eq!(fetch_names(&mut second, &["own.y", "d.a"]), ["-1=7", "-1=2"]);

    // Refusals leave no trace (Q18) and say why.
    for (name, text, words, message) in [
        ("own.x", "1", Some("Duplicate per-context derived metric name"), "is defined already"),
        ("bad name", "1", Some("illegal derived metric name (bad name)"), "cannot be the name"),
        ("own.z", "t.one +", Some("Arithmetic expression expected to follow PLUS"), ""),
        ("own.z", "t.missing", None, "unknown metric `t.missing`"),
        ("own.z", "t.text + 1", None, ""),
    ] {
        let refused = add(&mut first, name, text).expect_err(text);
        assert_eq!(refused.status(), PmStatus::BADDERIVE);
        let said = refused.error.as_ref().and_then(|error| error.message.as_deref());
        assert_eq!(said, words, "{name} = {text}");
        assert!(refused.to_string().contains(message), "{refused}");
        for diagnostic in &refused.diagnostics {
            assert_eq!(&*refused.sources.get(diagnostic.span.source).text, text);
        }
        assert_eq!(lookup(&mut first, "own.z"), Err(PmStatus::NAME));
    }
    let next = add(&mut first, "own.z", "t.one").expect("the name is free");
    assert_eq!(next.to_string(), "511.2047.1021", "no identifier was used up");
    assert_eq!(first.add_text("own.z", TextKind::Help, "mine"), Ok(()));
    assert_eq!(first.add_text("own.z", TextKind::Help, "mine"), Err(PmStatus::TEXT));
    assert_eq!(first.add_text("d.none", TextKind::Help, "x"), Err(PmStatus::NAME));
    assert_eq!(text(&mut first, next, TextKind::Help).as_deref(), Ok("mine"));

    // Metadata of another metric, derived or not (Q14).
    let like = add(&mut first, "own.like", "mkconst(3, meta=t.set)").expect("a good definition");
    let desc = first.lookup_descs(&[like]).expect("memory does not fail")[0];
    let desc = desc.expect("a usable metric");
    assert_eq!((desc.value_type, desc.indom), (ValueType::U32, Some(table_source::DOMAIN)));

    // Unregistering a name takes the contexts' own away as well.
    assert_eq!(shared.unregister("own.y"), Ok(1));
    assert_eq!(lookup(&mut second, "own.y"), Err(PmStatus::NAME));
    assert_eq!(shared.unregister("d.a"), Ok(2));
    assert_eq!(lookup(&mut first, "d.a"), Err(PmStatus::NAME));

    // After pmReconnectContext(3) only global ones are left (B31).
    first.rebind();
    assert_eq!(lookup(&mut first, "own.x"), Err(PmStatus::NAME));
    assert_eq!(first.traverse("own").map_err(|error| error.status()), Err(PmStatus::NAME));
}

/// Version 6 takes a definition of a context whose operand is missing.
#[test]
fn version_6_adds_what_cannot_be_looked_up() {
    let mut context = context(&shared(Dialect::Pcp6_0, &[("d.a", "t.one")]));
    assert_eq!(pmid(&mut context, "d.a").to_string(), "511.0.1");
    assert_eq!(pmid(&mut context, "event.flags").to_string(), "511.0.2");
    let added = context.add_derived("own.x", "t.missing").expect("memory does not fail");
    let added = added.expect("it is taken");
    let desc = context.lookup_descs(&[added]).expect("memory does not fail")[0];
    assert_eq!(desc, Err(PmStatus::BADDERIVE));
    let refused = context.add_derived("own.y", "t.text + 1").expect("memory does not fail");
    assert!(refused.is_err());
}

#[test]
fn limits_and_options() {
    let shared = shared(Dialect::Fixed, &[("d.a", "t.missing")]);
    use ControlOption::{ContextLimit, GlobalLimit, NoValue};
    let mut early = context(&shared);
    assert_eq!(shared.set_control(GlobalLimit, 2), Ok(()));
    assert_eq!(shared.set_control(ContextLimit, 2), Err(PmStatus::NOCONTEXT));
    shared.register("d.b", "1").expect("the second");
    let refused = shared.register("d.c", "1").expect_err("the third");
    let words = refused.error.and_then(|error| error.message);
    assert_eq!(words.as_deref(), Some("Too many global derived metrics"));
    assert_eq!(
        shared.register("d.c", "1").expect_err("again").to_string(),
        "GLOBAL_LIMIT allows no more than 2 definitions"
    );
    assert!(shared.replace("d.b", "2").is_ok());

    // A new context begins with the limit of all (C66).
    let mut late = context(&shared);
    assert_eq!((early.control(ContextLimit), late.control(ContextLimit)), (-1, 2));
    assert_eq!(late.set_control(ContextLimit, 0), Err(PmStatus::ARG));
    assert_eq!(late.set_control(ContextLimit, 1), Ok(()));
    for context in [&mut early, &mut late] {
        assert!(context.add_derived("own.a", "1").expect("memory does not fail").is_ok());
    }
    assert!(early.add_derived("own.b", "1").expect("memory does not fail").is_ok());
    let refused = late.add_derived("own.b", "1").expect("memory does not fail");
    let words = refused.expect_err("one is enough").error.and_then(|error| error.message);
    assert_eq!(words.as_deref(), Some("Too many per-context derived metrics"));

    // Missing operands become novalue() for definitions bound before, too (B7).
    assert_eq!(fetch_names(&mut early, &["d.a", "t.one"]), ["-12358", "-1=1"]);
    assert_eq!(early.set_control(NoValue, 1), Ok(()));
    assert_eq!(fetch_names(&mut early, &["d.a", "t.one"]), ["none", "-1=1"]);
    assert_eq!(late.control(NoValue), 1);
}

/// A missing operand as `novalue()`, wherever it stands.
#[test]
fn missing_operands_as_novalue() {
    let definitions = [
        ("n.bare", "t.missing"),
        ("n.sum", "t.missing + t.one"),
        ("n.average", "avg(t.missing)"),
        ("n.count", "count(t.missing)"),
        ("n.defined", "defined(t.missing)"),
        ("n.branch", "t.set > 10 ? t.set : t.missing"),
        ("n.other", "t.set > 10 ? t.missing : t.set"),
        ("n.guard", "t.missing ? t.one : t.one"),
        ("n.rate", "rate(t.missing)"),
        ("n.meta", "mkconst(7, meta=t.missing)"),
        ("n.nodesc", "t.text + 1"),
    ];
    let shared = shared(Dialect::Fixed, &definitions);
    let mut context = context(&shared);
    let names: Vec<&str> = definitions.iter().map(|(name, _)| *name).collect();
    let list = list(&mut context, &names);
    let before = ["-12358"; 11].map(|status| status.to_owned());
    let without = fetch(&mut context, &list);
    assert_eq!(without[4], "-1=0");
    assert!(without.iter().zip(&before).filter(|(value, lost)| value == lost).count() == 10);
    shared.set_control(ControlOption::NoValue, 1).expect("an option");
    let expected =
        ["none", "none", "-1=0", "-1=0", "-1=0", "1=20", "0=10", "none", "none", "-1=7", "-12358"];
    assert_eq!(fetch(&mut context, &list), expected);
    let pmids = list.pmids().to_vec();
    let desc = context.lookup_descs(&pmids[..1]).expect("memory does not fail")[0];
    let desc = desc.expect("usable now");
    assert_eq!(
        (desc.value_type, desc.indom, desc.semantics),
        (ValueType::I32, None, Semantics::Discrete)
    );
}

/// What is bound follows the source in the dialect that puts things right,
/// and keeps what it remembers of operands that stayed the same.
#[test]
fn bindings_follow_the_source() {
    let definitions = [
        ("d.has", "defined(t.later)"),
        ("d.uses", "t.later + 1"),
        ("d.delta", "delta(t.set)"),
        ("t.later2", "5"),
    ];
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2] {
        let follows = dialect == Dialect::Fixed;
        let mut context = context(&shared(dialect, &definitions));
        let list = list(&mut context, &["d.has", "d.uses", "d.delta", "t.later2"]);
        assert_eq!(fetch(&mut context, &list), ["-1=0", "-12358", "none", "-1=5"]);
        let epoch = context.metadata_epoch();
        let source = context.source();
        source.add("t.later", 20, ValueType::U32, None, Values::U32(vec![(-1, 41)]));
        source.add("t.later2", 21, ValueType::U32, None, Values::U32(vec![(-1, 42)]));
        source.set("t.set", Values::U32(vec![(0, 11), (1, 22)]));
        assert_ne!(context.metadata_epoch(), epoch);
        let expected = match follows {
            true => ["-1=1", "-1=42", "0=1 1=2", "-12358"],
            false => ["-1=0", "-12358", "0=1 1=2", "-1=5"],
        };
        assert_eq!(fetch(&mut context, &list), expected, "{dialect:?}");
        assert_eq!(lookup(&mut context, "t.later2").map(|pmid| pmid.is_derived()), Ok(!follows));
    }
}

#[test]
fn a_source_that_failed_is_bound_anew() {
    let mut context = context(&shared(Dialect::Fixed, &[("d.a", "t.one + 1")]));
    let list = list(&mut context, &["d.a"]);
    assert_eq!(fetch(&mut context, &list), ["-1=2"]);
    context.source().fail_next();
    let mut batch = ResultBatch::default();
    let failure = context.fetch(&list, &mut batch).expect_err("no answer");
    assert!(matches!(failure, SourceError::Timeout { .. }));
    // The one that answers now has other identifiers.
    context.source().renumber("t.one", 30);
    assert_eq!(fetch(&mut context, &list), ["-1=2"]);
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
        context.source().set("t.set", Values::U32(vec![(0, value)]));
        context.source().set("t.counter", Values::U64(vec![(0, u64::from(value) * 10)]));
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

/// With extensions definitions are operands of others, which follow them.
#[test]
fn nested_definitions_follow_each_other() {
    let language = Language { dialect: Dialect::Fixed, extensions: true };
    let shared = Arc::new(SharedRegistry::new(language));
    for (name, text) in [
        ("d.top", "d.middle * 2 + d.base"),
        ("d.middle", "d.base + t.one"),
        ("d.lost", "d.later + 1"),
        ("d.change", "delta(d.set) + 0 * d.base"),
        ("d.set", "t.set * 1"),
        ("d.base", "t.one * 10"),
    ] {
        shared.register(name, text).expect("a good definition");
    }
    let mut context = context(&shared);
    assert_eq!(fetch_names(&mut context, &["d.top"]), ["-1=32"]);
    // Bound in the order of need, fetched in any.
    let list_of_all =
        list(&mut context, &["d.change", "d.base", "d.lost", "d.top", "d.set", "t.one"]);
    let values = fetch(&mut context, &list_of_all);
    assert_eq!(values, ["none", "-1=10", "-12358", "-1=32", "0=10 1=20", "-1=1"]);
    let (mistakes, _) = context.mistakes("d.lost").expect("memory does not fail");
    assert_eq!(
        mistakes.iter().map(|one| &*one.message).collect::<Vec<_>>(),
        ["unknown metric `d.later`"]
    );

    shared.register("d.later", "d.top - 2").expect("a good definition");
    context.source().set("t.set", Values::U32(vec![(0, 11), (1, 22)]));
    let values = fetch(&mut context, &list_of_all);
    assert_eq!(values, ["0=1 1=2", "-1=10", "-1=31", "-1=32", "0=11 1=22", "-1=1"]);
    shared.replace("d.base", "t.one * 100").expect("a good definition");
    assert_eq!(fetch_names(&mut context, &["d.top", "d.lost"]), ["-1=302", "-1=301"]);
    let own = context.add_derived("own.x", "d.top / 2").expect("memory does not fail");
    let own = own.expect("a good definition");
    assert_eq!(fetch(&mut context, &FetchList::new(vec![own], vec![])), ["-1=151"]);
}

#[test]
fn contexts_move_between_threads() {
    fn moves<T: Send>() {}
    moves::<Context>();
    moves::<DerivedContext<ArchiveContext>>();
}

#[test]
fn mistakes_are_told_with_their_texts() {
    let mut context = context(&shared(Dialect::Fixed, SOME));
    let (diagnostics, sources) = context.mistakes("d.lost").expect("memory does not fail");
    let found: Vec<&str> = diagnostics.iter().map(|one| sources.slice(one.span)).collect();
    assert_eq!(found, ["t.missing"]);
    assert!(context.mistakes("d.sum").expect("memory does not fail").0.is_empty());
    assert!(context.mistakes("none").expect("memory does not fail").0.is_empty());
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
    let archive = ArchiveContext::open(&path).expect("an archive of the repository");
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let shared = Arc::new(SharedRegistry::with(registry, sources));
    let mut context = DerivedContext::new(engine, shared, archive);
    let names = context.traverse("many").expect("an archive of the repository");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = context.lookup_names(&names).expect("an archive of the repository");
    let list = FetchList::new(pmids.into_iter().flatten().collect(), Vec::new());
    assert_eq!(list.pmids().len(), COUNT as usize);
    let mut batch = ResultBatch::default();
    let mut records = 0;
    while context.fetch(&list, &mut batch).is_ok() {
        let values = batch.parts()[0].sets().map(|set| set.lanes().next().map(|lane| lane.word));
        assert!(values.eq((0..COUNT).map(Some)));
        records += 1;
    }
    assert!(records > 5, "{records}");
}

/// Contexts fetch while definitions are registered, replaced and taken away;
/// none is ever seen half made, and what stays gives its values throughout.
#[test]
fn contexts_fetch_while_others_register() {
    let shared = shared(Dialect::Fixed, &[("d.stays", "t.one + 1"), ("d.changes", "t.one * 2")]);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut context = context(&shared);
                    let stays = list(&mut context, &["d.stays"]);
                    let mut seen = 0;
                    while shared.control(ControlOption::DebugEval) == 0 || seen < 100 {
                        assert_eq!(fetch(&mut context, &stays), ["-1=2"]);
                        let changes = lookup(&mut context, "d.changes").expect("always there");
                        let list = FetchList::new(vec![changes], vec![]);
                        let value = &fetch(&mut context, &list)[0];
                        let is_one = ["-1=2", "-1=3"].contains(&value.as_str());
                        // It may have been replaced between the two calls.
                        assert!(is_one || value == "-12358", "{value}");
                        seen += 1;
                    }
                })
            })
            .collect();
        for round in 0..300 {
            let text = if round % 2 == 0 { "t.one * 3" } else { "t.one * 2" };
            shared.replace("d.changes", text).expect("a good definition");
            let name = format!("d.n{round}");
            shared.register(&name, "t.one").expect("a good definition");
            if round % 3 == 0 {
                shared.unregister(&name).expect("it was registered");
            }
        }
        shared.set_control(ControlOption::DebugEval, 1).expect("an option");
        for reader in readers {
            reader.join().expect("no panic");
        }
    });
    assert_eq!(shared.snapshot().registry.definitions().len(), 202);
}
