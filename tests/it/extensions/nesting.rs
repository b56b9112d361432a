//! Derived metrics as operands of others.

use std::sync::Arc;

use pmderive::diag::{Code, Diagnostics};
use pmderive::engine::{Backend, Definitions, Engine, Registered, Session, Space};
use pmderive_runtime::result::{FetchResult, ResultBatch};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};

use crate::choosing::choosing;
use crate::extensions::shared::{EXTENDED, archive, assert_same, backends, evaluate, number, read};

/// Q15: with extensions nested definitions give what one gets by writing out their expressions.
#[test]
fn nested_metrics_are_their_expressions() {
    let nested = "t.d = t.c > 0 ? t.c : t.b\n\
                  t.c = delta(dyn.c.u64) / 4 - t.b\n\
                  t.b = abs(t.a) + t.a\n\
                  t.a = delta(dyn.c.u64) * 2\n\
                  t.e = avg(t.a) + sum(t.b)\n\
                  t.f = delta(t.a)\n\
                  t.g = matchinst(/./, t.a) + scalar(t.a)\n\
                  t.h = defined(t.a) && !defined(t.nothing)\n\
                  t.i = mkconst(3, meta=t.a)\n\
                  t.j = t.a\n";
    let a = "(delta(dyn.c.u64) * 2)";
    let b = format!("(abs({a}) + {a})");
    let c = format!("(delta(dyn.c.u64) / 4 - {b})");
    let flat = format!(
        "t.d = {c} > 0 ? {c} : {b}\nt.c = {c}\nt.b = {b}\nt.a = {a}\n\
         t.e = avg({a}) + sum({b})\nt.f = delta({a})\nt.g = matchinst(/./, {a}) + scalar({a})\n\
         t.h = 1 && !0\nt.i = mkconst(3, indom=247.1, units=count, semantics=instant, type=double)\n\
         t.j = {a}\n"
    );
    let reversed: Vec<&str> = nested.lines().rev().collect();
    let reversed = reversed.join("\n") + "\n";
    for backend in backends() {
        let found = evaluate("own-dyn", nested, backend);
        let expected = evaluate("own-dyn", &flat, backend);
        let backwards = evaluate("own-dyn", &reversed, backend);
        assert_eq!(found.len(), expected.len());
        for ((found, expected), backwards) in found.iter().zip(&expected).zip(&backwards) {
            for (at, (found, expected)) in found.metrics.iter().zip(&expected.metrics).enumerate() {
                assert_same(&format!("definition {at}"), found, expected);
            }
            for (found, other) in found.metrics.iter().zip(backwards.metrics.iter().rev()) {
                assert_same("the order of definitions does not matter", found, other);
            }
        }
    }
}

/// Operands that are not in a list do not change what those in it have.
#[test]
fn operands_that_nobody_asked_for_are_not_missed() {
    let text = "t.a = delta(dyn.c.u64) * 2\nt.b = abs(t.a) + t.a\nt.c = sum(t.b) - avg(t.a)\n\
                t.d = delta(t.b) + t.a\nt.e = t.c > 0 ? t.d : t.b\n";
    let (registry, sources, _) = read(text, EXTENDED);
    let values = |names: &[&str]| {
        let engine = Arc::new(Engine::new(EXTENDED, Backend::Interp));
        let shared = Arc::new(Definitions::with(registry.clone(), sources.clone()));
        let mut session = Session::new(engine, shared, archive("own-dyn")).expect("one language");
        let pmids = session.lookup_names(names).expect("a readable archive");
        let pmids: Vec<_> = pmids.into_iter().map(|pmid| pmid.expect("a name")).collect();
        let (list, mut batch) = (FetchList::new(pmids, Vec::new()), ResultBatch::default());
        let mut samples = Vec::new();
        while session.fetch(&list, &mut batch).is_ok() {
            let sets = FetchResult::of_batch(&batch, Default::default()).sets;
            samples.push(sets.into_iter().map(|set| format!("{set:?}")).collect::<Vec<_>>());
        }
        samples
    };
    let names = ["t.a", "t.b", "t.c", "t.d", "t.e"];
    let all = values(&names);
    assert!(all.len() > 10);
    for some in [vec![4], vec![3, 2], vec![2, 4], vec![1, 3], vec![4, 0]] {
        let asked: Vec<&str> = some.iter().map(|at| names[*at]).collect();
        let of_all = |sets: &Vec<String>| some.iter().map(|at| sets[*at].clone()).collect();
        let expected: Vec<Vec<String>> = all.iter().map(of_all).collect();
        assert_eq!(values(&asked), expected, "{asked:?}");
    }
}

/// A metric that is an operand keeps its previous samples whether it is
/// asked for or not, and every fetch counts.
#[test]
fn nested_differences_advance_with_every_fetch() {
    let (registry, _, mut diagnostics) =
        read("t.raw = s.c.u64\nt.inner = delta(s.c.u64)\nt.outer = t.inner + 0\n", EXTENDED);
    let select = |names: &[&str]| -> Vec<&Registered> {
        names.iter().map(|name| registry.get(name).expect("a defined name")).collect()
    };
    let raw: Vec<f64> = evaluate("own-types", "t.raw = s.c.u64\n", Backend::Interp)
        .iter()
        .map(|sample| sample.metrics[0][&-1])
        .collect();
    let engine = Arc::new(Engine::new(EXTENDED, Backend::Interp));
    let (outer, inner) = (select(&["t.outer"]), select(&["t.inner"]));
    let source = archive("own-types");
    let session = choosing(engine, source, &registry, &outer, &mut diagnostics);
    let mut session = session.expect("a readable archive");
    let mut space = Space::default();
    for (step, raw) in raw.windows(2).enumerate().map(|(step, raw)| (step, raw[1] - raw[0])).take(4)
    {
        if step == 0 {
            session.sample(&mut space).expect("a record");
        }
        let selection = if step % 2 == 0 { &inner } else { &outer };
        session.choose(selection, &mut diagnostics).expect("a readable archive");
        let sample = session.sample(&mut space).expect("a record");
        let values = sample.values.get(sample.metrics[0].output.expect("a usable metric"));
        let found: Vec<f64> = values.iter().map(|(_, value)| number(value)).collect();
        assert_eq!(found, [raw], "after {step} changes of the selection");
    }
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
}

/// Previous samples of a metric whose operand has another definition now are
/// not those of the metric any more.
#[test]
fn a_changed_operand_begins_anew() {
    let engine = Arc::new(Engine::new(EXTENDED, Backend::Interp));
    let mut diagnostics = Diagnostics::default();
    let (before, ..) = read("t.outer = delta(t.inner)\nt.inner = s.c.u64 * 2\n", EXTENDED);
    let mut space = Space::default();
    let source = archive("own-types");
    let outer = before.get("t.outer").expect("a defined name");
    let session = choosing(engine, source, &before, &[outer], &mut diagnostics);
    let mut session = session.expect("a readable archive");
    for _ in 0..2 {
        session.sample(&mut space).expect("a record");
    }
    session.definitions().replace("t.inner", "s.c.u64 * 3").expect("a good definition");
    let after = session.definitions().snapshot().registry;
    let outer = after.get("t.outer").expect("a defined name");
    session.choose(&[outer], &mut diagnostics).expect("a readable archive");
    let sample = session.sample(&mut space).expect("a record");
    let values = sample.values.get(sample.metrics[0].output.expect("a usable metric"));
    assert!(values.is_empty(), "{:?}", values.status);
}

#[test]
fn many_levels_take_little() {
    // Written out, this would be 2 to the power of 60 operands.
    let doubling = |levels: usize| {
        let mut text = String::new();
        for level in 0..levels {
            text.push_str(&format!("t.m{level} = t.m{0} / 2 + t.m{0} / 2\n", level + 1));
        }
        text + &format!("t.m{levels} = s.i.u32 / 1\n")
    };
    let samples = evaluate("own-types", &doubling(60), Backend::Interp);
    for sample in &samples {
        assert_same("halves and halves", &sample.metrics[0], &sample.metrics[60]);
    }
    let (registry, _, mut diagnostics) = read(&doubling(5_100), EXTENDED);
    let engine = Engine::new(EXTENDED, Backend::Interp);
    let mut compile = |name: &str| {
        let selection = [registry.get(name).expect("a defined name")];
        let mut source = archive("own-types");
        let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
        compiled.expect("a readable archive").metrics[0].desc.is_ok()
    };
    assert!(compile("t.m3000"), "2,101 levels");
    assert!(!compile("t.m0"), "5,101 levels");
    let found: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert!(found.contains(&Code::TooComplex), "{found:?}");
}

/// A metric of the source counts in place of a definition of its name, in
/// other definitions too.
#[test]
fn metrics_of_the_source_hide_definitions() {
    let (registry, _, mut diagnostics) =
        read("s.i.u32 = s.i.u32 + 1\nt.a = s.i.u32\nt.raw = s.i.u32 * 1\n", EXTENDED);
    let engine = Arc::new(Engine::new(EXTENDED, Backend::Interp));
    let selection = ["t.a", "t.raw"].map(|name| registry.get(name).expect("a defined name"));
    let source = archive("own-types");
    let session = choosing(engine, source, &registry, &selection, &mut diagnostics);
    let mut session = session.expect("a readable archive");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let mut space = Space::default();
    let sample = session.sample(&mut space).expect("a record");
    let value = |metric: usize| {
        let values = sample.values.get(sample.metrics[metric].output.expect("a usable metric"));
        number(values.get(0))
    };
    assert_eq!(value(0), value(1));
}
