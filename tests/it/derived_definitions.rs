//! Definitions of one context and of all contexts, as they come, change and go. The source is
//! in memory, and its metadata change too.

use std::sync::Arc;

use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Definitions, Engine, Reading, Registry, Session, Snapshot, Space};
use pmderive::syntax::ControlOption;
use pmderive::{Diagnostics, SourceId, SourceMap, Span};
use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{PmStatus, Semantics, TextKind, ValueType};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, SourceError};

use crate::table;
use table::*;

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
    set(first.source(), "t.set", Values::U32(vec![(0, 15), (1, 20)]));
    let list = FetchList::new(vec![replaced, both.pmids()[1], both.pmids()[0]], vec![]);
    let mut batch = ResultBatch::default();
    first.fetch(&list, &mut batch).expect("memory does not fail");
    let descs = first.lookup_descs(list.pmids()).expect("memory does not fail");
    let values: Vec<String> =
        decode(&batch, &descs).into_iter().map(|(_, values)| values).collect();
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
    assert_eq!(changed(shared.unregister("d.a")), Err(PmStatus::NAME));
    let again = shared.register("d.a", "t.one").expect("the name is free again");
    assert!(again > unseen, "identifiers are not given again");
    assert_eq!(fetch_names(&mut first, &["d.a"]), ["-1=1"]);
}

/// Q17: what is registered late goes with its own expression, whatever a
/// context has defined itself and whatever is gone; libpcp mixes them up.
#[test]
fn late_definitions_keep_their_expressions() {
    for dialect in [Dialect::Pcp6_0, Dialect::Pcp7_2, Dialect::Fixed] {
        let shared = shared(dialect, &[("d.a", "t.one + 1"), ("d.b", "t.one + 2")]);
        let mut context = context(&shared);
        let mut add = |name: &str, text: &str| {
            let added = context.add_derived(name, text).expect("memory does not fail");
            added.expect("a good definition");
        };
        add("own.x", "t.one + 30");
        add("own.y", "t.one + 40");
        assert_eq!(fetch_names(&mut context, &["d.a", "own.y"]), ["-1=2", "-1=41"]);
        shared.register("d.c", "t.one + 3").expect("a good definition");
        shared.unregister("d.a").expect("it was registered");
        shared.register("d.d", "t.one + 4").expect("a good definition");
        let names = ["own.x", "d.b", "d.c", "own.y", "d.d"];
        let expected = ["-1=31", "-1=3", "-1=4", "-1=41", "-1=5"];
        assert_eq!(fetch_names(&mut context, &names), expected, "{dialect:?}");
    }
}

/// A definition that another one takes its metadata from may come later.
#[test]
fn what_was_missing_may_come() {
    for (dialect, expected) in [(Dialect::Fixed, "-1=3"), (Dialect::Pcp7_2, "-12358")] {
        let definitions = [("d.like", "mkconst(3, meta=d.later)"), ("d.one", "t.one")];
        let shared = shared(dialect, &definitions);
        let mut context = context(&shared);
        let list = list(&mut context, &["d.like", "d.one"]);
        assert_eq!(fetch(&mut context, &list), ["-12358", "-1=1"]);
        shared.register("d.later", "t.one * 2").expect("a good definition");
        assert_eq!(fetch(&mut context, &list), [expected, "-1=1"], "{dialect:?}");
    }
}

/// What is replaced is forgotten, so that a definition that comes back begins anew.
#[test]
fn replaced_definitions_are_forgotten() {
    let shared = shared(Dialect::Fixed, &[("d.a", "delta(t.set)"), ("d.b", "delta(t.set)")]);
    let mut context = context(&shared);
    let mut step = |value: u32| {
        set(context.source(), "t.set", Values::U32(vec![(0, value)]));
        fetch_names(&mut context, &["d.a", "d.b"])
    };
    assert_eq!(step(1), ["none", "none"]);
    assert_eq!(step(2), ["0=1", "0=1"]);
    shared.replace("d.a", "t.set * 10").expect("a good definition");
    assert_eq!(step(4), ["0=40", "0=2"]);
    shared.replace("d.a", "delta(t.set)").expect("a good definition");
    assert_eq!(step(8), ["none", "0=4"]);
    assert_eq!(step(16), ["0=8", "0=8"]);
}

/// With extensions too, where what is not asked for is an operand.
#[test]
fn forgotten_definitions_have_no_samples() {
    let language = Language { dialect: Dialect::Fixed, extensions: true };
    let shared = Arc::new(Definitions::new(language));
    for (name, text) in [("d.a", "delta(t.set)"), ("d.top", "d.a + 0"), ("d.b", "delta(t.set)")] {
        shared.register(name, text).expect("a good definition");
    }
    let mut context = context(&shared);
    let step = |context: &mut Context, value: u32, names: &[&str]| {
        set(context.source(), "t.set", Values::U32(vec![(0, value)]));
        fetch_names(context, names)
    };
    for name in ["d.a", "d.top"] {
        step(&mut context, 1, &[name]);
        assert_eq!(step(&mut context, 2, &[name]), ["0=1"], "{name}");
        shared.unregister("d.a").expect("it is there");
        step(&mut context, 4, &["d.b"]);
        shared.register("d.a", "delta(t.set)").expect("a good definition");
        assert_eq!(step(&mut context, 8, &[name]), ["none"], "{name}");
    }
}

/// Old identifiers never lead to other metrics; what stays keeps its own.
#[test]
fn all_definitions_are_replaced() {
    let texts = |text: &str, language: Language| {
        let (mut registry, mut sources) = (Registry::new(language), SourceMap::default());
        let source = sources.add("shop.conf", text);
        registry.add_text(source, &sources, &mut Diagnostics::default());
        (registry, sources)
    };
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0] {
        let before = "shop.a = t.one * 1\nshop.b = t.one * 1000\nshop.c = t.one\n";
        let (registry, sources) = texts(before, dialect.into());
        let shared = Arc::new(Definitions::with(registry, sources));
        let mut context = context(&shared);
        let list_before = list(&mut context, &["shop.a", "shop.b", "shop.c"]);
        assert_eq!(fetch(&mut context, &list_before), ["-1=1", "-1=1000", "-1=1"]);
        let after = "shop.new = t.one * 7\nshop.a = t.one * 2\nshop.b = t.one * 1000\nshop.b(oneline) = is kept\n";
        let (registry, sources) = texts(after, dialect.into());
        shared.replace_all(registry.clone(), sources.clone()).expect("the same language");
        let mut batch = ResultBatch::default();
        context.fetch(&list_before, &mut batch).expect("memory does not fail");
        let counts: Vec<_> = batch.parts()[0].sets().map(|set| set.count).collect();
        assert_eq!(counts, [Err(PmStatus::PMID), Ok(1), Err(PmStatus::PMID)], "{dialect:?}");
        let names = ["shop.new", "shop.a", "shop.b"];
        assert_eq!(fetch_names(&mut context, &names), ["-1=7", "-1=2", "-1=1000"]);
        let kept = pmid(&mut context, "shop.b");
        assert_eq!(kept, list_before.pmids()[1]);
        assert_eq!(text(&mut context, kept, TextKind::OneLine).as_deref(), Ok("is kept"));
        // The same once more changes nothing.
        let before = shared.snapshot().registry.definitions().to_vec();
        shared.replace_all(registry.clone(), sources.clone()).expect("the same language");
        let again = shared.snapshot().registry;
        assert!(before.iter().zip(again.definitions()).all(|(one, other)| Arc::ptr_eq(one, other)));
        let other = Language { dialect, extensions: true };
        let (registry, sources) = texts(after, other);
        assert_eq!(changed(shared.replace_all(registry, sources)), Err(PmStatus::ARG));
    }
}

/// Texts of definitions may be in another map, and spans may be of one.
#[test]
fn texts_that_are_kept_elsewhere() {
    let (mut registry, mut sources) = (Registry::new(Dialect::Fixed), SourceMap::default());
    for (name, text) in [("b.x", "t.one"), ("b.y", "t.one * 2")] {
        let source = sources.add(name, text);
        registry.register(name, source, &sources, &mut Diagnostics::default()).expect("no mistake");
    }
    let shared = Definitions::from(registry);
    shared.register("c.x", "t.one * 3").expect("a good definition");
    shared.register("c.y", "t.one * 4").expect("a good definition");
    shared.unregister("b.x").expect("it is there");
    shared.replace("b.y", "1").expect("a good definition");
    let Snapshot { registry, sources: own } = shared.snapshot();
    let text = |name| own.slice(registry.get(name).expect("it is there").name_span);
    assert_eq!(["c.x", "c.y", "b.y"].map(text), ["t.one * 3", "t.one * 4", "1"]);
    let other = Span::new(SourceId(99), 3, 7);
    assert_eq!(
        (own.slice(other), own.slice(Span { source: SourceId(2), end: 99, ..other })),
        ("", "")
    );
}

/// The derived metrics of a source are operands, and are taken for no others.
#[test]
fn a_context_over_a_context() {
    let mut inner = context(&shared(Dialect::Fixed, &[("in.a", "t.one * 5")]));
    let inner_pmid = pmid(&mut inner, "in.a");
    let shared = shared(Dialect::Fixed, &[("out.a", "in.a * 1000")]);
    let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
    let mut outer = Session::new(engine, shared, inner).expect("one language");
    let found = outer.lookup_names(&["in.a", "out.a"]).expect("memory does not fail");
    assert_eq!(found, [Err(PmStatus::NAME), Ok(inner_pmid)]);
    let list = FetchList::new(vec![inner_pmid], vec![]);
    let mut space = Space::default();
    let readings = outer.read(&list, &mut space).expect("memory does not fail");
    let Reading::Computed(values) = readings.get(0) else { panic!("{readings:?}") };
    assert_eq!(values.iter().next(), Some((-1, Value::U32(5000))));
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
        ("own.z", "t.missing", None, "own.z: unknown metric `t.missing`"),
        ("own.z", "t.one + t.missing", None, "own.z: byte 8: unknown metric `t.missing`"),
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
    assert_eq!(changed(first.add_text("own.z", TextKind::Help, "mine")), Err(PmStatus::TEXT));
    assert_eq!(changed(first.add_text("d.none", TextKind::Help, "x")), Err(PmStatus::NAME));
    assert_eq!(text(&mut first, next, TextKind::Help).as_deref(), Ok("mine"));

    // Metadata of another metric, derived or not (Q14).
    let like = add(&mut first, "own.like", "mkconst(3, meta=t.set)").expect("a good definition");
    let desc = first.lookup_descs(&[like]).expect("memory does not fail")[0];
    let desc = desc.expect("a usable metric");
    assert_eq!((desc.value_type, desc.indom), (ValueType::U32, Some(DOMAIN)));

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
        "d.c: GLOBAL_LIMIT allows no more than 2 definitions"
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
        add(source, "t.later", 20, ValueType::U32, None, Values::U32(vec![(-1, 41)]));
        add(source, "t.later2", 21, ValueType::U32, None, Values::U32(vec![(-1, 42)]));
        set(source, "t.set", Values::U32(vec![(0, 11), (1, 22)]));
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
    context.source().feed().fail_next();
    let mut batch = ResultBatch::default();
    let failure = context.fetch(&list, &mut batch).expect_err("no answer");
    assert!(matches!(failure, SourceError::Timeout { .. }));
    // The one that answers now has other identifiers, and does not know of
    // the former ones.
    let epoch = context.metadata_epoch();
    *context.source() = table_from(30);
    assert_eq!(context.metadata_epoch(), epoch);
    assert_eq!(fetch(&mut context, &list), ["-1=2"]);
}

/// With extensions definitions are operands of others, which follow them.
#[test]
fn nested_definitions_follow_each_other() {
    let language = Language { dialect: Dialect::Fixed, extensions: true };
    let shared = Arc::new(Definitions::new(language));
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
    set(context.source(), "t.set", Values::U32(vec![(0, 11), (1, 22)]));
    let values = fetch(&mut context, &list_of_all);
    assert_eq!(values, ["0=1 1=2", "-1=10", "-1=31", "-1=32", "0=11 1=22", "-1=1"]);
    shared.replace("d.base", "t.one * 100").expect("a good definition");
    assert_eq!(fetch_names(&mut context, &["d.top", "d.lost"]), ["-1=302", "-1=301"]);
    let own = context.add_derived("own.x", "d.top / 2").expect("memory does not fail");
    let own = own.expect("a good definition");
    assert_eq!(fetch(&mut context, &FetchList::new(vec![own], vec![])), ["-1=151"]);
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

/// Q38: contexts fetch while definitions are registered, replaced and taken away;
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
