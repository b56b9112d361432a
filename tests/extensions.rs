//! What goes beyond libpcp, from definitions to values: against plain models of
//! each function, with both backends, over the archives of `tests/archives`.
//!
//! The table for users, `grammar/extensions.md`, is held against the checker
//! here. Mistakes are in `tests/extensions/*.conf`, and what is said of them is
//! in the snapshots beside.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pmderive::check::describe;
use pmderive::check::typed::Desc;
use pmderive::diag::render::{Style, render};
use pmderive::diag::{Code, Diagnostics};
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Context, Engine, Metric, Registered, Registry, report_cycles};
use pmderive::source::SourceMap;
use pmderive::syntax::SIGNATURES;
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::{Value, Workspace};
use pmderive_runtime::program::Status;

const EXTENDED: Language = Language { dialect: Dialect::Fixed, extensions: true };

fn backends() -> Vec<Backend> {
    if cfg!(feature = "jit") { vec![Backend::Interp, Backend::Jit] } else { vec![Backend::Interp] }
}

fn archive(name: &str) -> ArchiveContext {
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    ArchiveContext::open(&archives.join(name)).expect("an archive of the repository")
}

/// Definitions with what was found wrong in their text.
fn read(definitions: &str, language: Language) -> (Registry, SourceMap, Diagnostics) {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(language);
    let source = sources.add("definitions", definitions);
    registry.add_text(source, &sources, &mut diagnostics);
    (registry, sources, diagnostics)
}

/// Values of a metric by instance, -1 for a single value; texts of others than numbers.
type Values = BTreeMap<i32, f64>;

/// What a fetch gives.
struct Sampled {
    /// True after a mark record, so that nothing before counts.
    begins_anew: bool,
    /// Parallel to the definitions.
    metrics: Vec<Values>,
}

/// Samples of the metrics that are defined.
fn evaluate(archive_name: &str, definitions: &str, backend: Backend) -> Vec<Sampled> {
    let (registry, _, mut diagnostics) = read(definitions, EXTENDED);
    let all = registry.all();
    let engine = Arc::new(Engine::new(EXTENDED, backend));
    let source = archive(archive_name);
    let context = Context::new(engine, source, &registry, &all, &mut diagnostics);
    let mut context = context.expect("a readable archive");
    assert!(diagnostics.is_empty(), "{definitions}: {diagnostics:?}");
    let mut workspace = Workspace::default();
    let mut samples = Vec::new();
    while let Ok(sample) = context.fetch(&mut workspace) {
        let begins_anew = sample.events.gap;
        let values = |metric: &Metric| {
            let values = sample.values.get(metric.output.expect("a usable metric"));
            match values.status {
                Status::Values => values.iter().map(|(id, value)| (id, number(value))).collect(),
                _ => Values::new(),
            }
        };
        let metrics = sample.metrics.iter().map(values).collect();
        samples.push(Sampled { begins_anew, metrics });
    }
    assert!(samples.len() > 2, "{archive_name} has records for {definitions}");
    samples
}

fn number(value: Value<'_>) -> f64 {
    match value {
        Value::I32(value) => f64::from(value),
        Value::U32(value) => f64::from(value),
        Value::I64(value) => value as f64,
        Value::U64(value) => value as f64,
        Value::F32(value) => f64::from(value),
        Value::F64(value) => value,
        other => panic!("{other:?} is no number"),
    }
}

fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

fn assert_same(what: &str, found: &Values, expected: &Values) {
    let agree = found.len() == expected.len()
        && found.iter().zip(expected).all(|((i, a), (j, b))| i == j && same(*a, *b));
    assert!(agree, "{what}: {found:?} instead of {expected:?}");
}

/// Compares a call with a model of it, sample by sample. The model sees all
/// samples of the operand from the last gap up to the one in question.
fn against(archive: &str, operand: &str, call: &str, model: impl Fn(&[Values]) -> Values) {
    let definitions = format!("t.operand = {operand}\nt.call = {call}\n");
    for backend in backends() {
        let samples = evaluate(archive, &definitions, backend);
        let operands: Vec<Values> =
            samples.iter().map(|sample| sample.metrics[0].clone()).collect();
        let known = operands.iter().filter(|values| !values.is_empty()).count();
        assert!(known > 1, "{operand} has values");
        let mut start = 0;
        for (at, sample) in samples.iter().enumerate() {
            if sample.begins_anew {
                start = at;
            }
            let expected = model(&operands[start..=at]);
            assert_same(
                &format!("{call} of sample {at} by {backend:?}"),
                &sample.metrics[1],
                &expected,
            );
        }
    }
}

/// A model of each instance by itself.
fn each(function: impl Fn(f64) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let now = samples.last().expect("a sample");
        now.iter().map(|(instance, value)| (*instance, function(*value))).collect()
    }
}

#[test]
fn functions_of_one_value() {
    for operand in ["a.i.f64", "delta(a.c.f32)", "-s.i.i32", "a.i.i32 / 7", "dyn"] {
        let (archive, operand) = match operand {
            "dyn" => ("own-dyn", "dyn.i.f64 - 100.5"),
            operand => ("own-types", operand),
        };
        // The least integer of its type has no magnitude there.
        let magnitude = |x: f64| if x == f64::from(i32::MIN) { x } else { x.abs() };
        against(archive, operand, &format!("abs({operand})"), each(magnitude));
        against(archive, operand, &format!("floor({operand})"), each(f64::floor));
        against(archive, operand, &format!("ceil({operand})"), each(f64::ceil));
        against(archive, operand, &format!("round({operand})"), each(f64::round));
        against(archive, operand, &format!("sqrt({operand})"), each(f64::sqrt));
        against(archive, operand, &format!("log({operand})"), each(f64::ln));
        against(archive, operand, &format!("pow({operand}, 2)"), each(|x| x.powf(2.0)));
        against(archive, operand, &format!("pow({operand}, -0.5)"), each(|x| x.powf(-0.5)));
        against(archive, operand, &format!("pow(1.5, {operand})"), each(|x| 1.5f64.powf(x)));
        let clamped = |x: f64| if x.is_nan() { x } else { x.clamp(-2.0, 30.5) };
        against(archive, operand, &format!("clamp({operand}, -2, 30.5)"), each(clamped));
    }
}

#[test]
fn types_are_wide_enough() {
    let fits = |call: &str, operand: &str, model: fn(f64) -> f64| {
        against("own-types", operand, call, each(model));
    };
    // A negative number meets an unsigned bound, and the other way round.
    fits("clamp(s.i.i32, 0, 10)", "s.i.i32", |x| x.clamp(0.0, 10.0));
    fits("clamp(s.i.u32, -5, 7)", "s.i.u32", |x| x.clamp(-5.0, 7.0));
    fits("clamp(s.i.u32, s.i.u32 * 0 - 5 / 1, 7)", "s.i.u32", |x| x.clamp(-5.0, 7.0));
    fits("floor(s.i.u64)", "s.i.u64", |x| x);
    fits("abs(s.i.i64)", "s.i.i64", |x| if x == i64::MIN as f64 { x } else { x.abs() });
}

fn statistic(function: impl Fn(&mut Vec<f64>) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let mut values: Vec<f64> = samples.last().expect("a sample").values().copied().collect();
        match values.len() {
            0 => Values::new(),
            _ => Values::from([(-1, function(&mut values))]),
        }
    }
}

/// A sum is there without instances too.
fn total_or_zero(function: impl Fn(&mut Vec<f64>) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let mut values: Vec<f64> = samples.last().expect("a sample").values().copied().collect();
        Values::from([(-1, function(&mut values))])
    }
}

fn quantile(q: f64, values: &mut Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = q * (values.len() - 1) as f64;
    let (below, share) = (values[rank as usize], rank.fract());
    let above = values[(rank as usize + 1).min(values.len() - 1)];
    below + (above - below) * share
}

fn deviation(values: &mut Vec<f64>) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

#[test]
fn functions_over_instances() {
    for operand in ["dyn.i.u32", "rate(dyn.c.u64)", "dyn.i.i32 * 2 - dyn.i.u32"] {
        for q in [0.0, 0.25, 0.5, 0.9, 1.0] {
            let call = format!("quantile({q:?}, {operand})");
            against("own-dyn", operand, &call, statistic(|values| quantile(q, values)));
        }
        against("own-dyn", operand, &format!("stdev({operand})"), statistic(deviation));
        for (k, name) in [(1, "topk"), (2, "topk"), (100, "topk"), (2, "bottomk")] {
            let call = format!("{name}({k}, {operand})");
            let definitions = format!("t.operand = {operand}\nt.call = {call}\n");
            for backend in backends() {
                for sample in evaluate("own-dyn", &definitions, backend) {
                    let (all, found) = (&sample.metrics[0], &sample.metrics[1]);
                    assert!(found.iter().all(|(instance, x)| all.get(instance) == Some(x)));
                    // Which of equal values count depends on the order, so values are compared.
                    let mut expected: Vec<f64> = all.values().copied().collect();
                    expected.sort_by(f64::total_cmp);
                    if name == "topk" {
                        expected.reverse();
                    }
                    expected.truncate(k);
                    expected.sort_by(f64::total_cmp);
                    let mut found: Vec<f64> = found.values().copied().collect();
                    found.sort_by(f64::total_cmp);
                    assert_eq!(found, expected, "{call}");
                }
            }
        }
        let total = |values: &mut Vec<f64>| values.iter().map(|value| value / 2.0).sum();
        against(
            "own-dyn",
            operand,
            &format!("scalar(topk(1, sum(({operand}) / 2)))"),
            total_or_zero(total),
        );
        let largest = |values: &mut Vec<f64>| values.iter().copied().fold(f64::MIN, f64::max);
        against("own-dyn", operand, &format!("max(({operand}) / 2) * 2"), statistic(largest));
    }
}

/// The samples of each instance since it came, which are a second apart.
fn window(length: usize, function: impl Fn(&[f64]) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let now = samples.last().expect("a sample");
        let past = |instance: &i32| -> Vec<f64> {
            let present = samples.iter().rev().map_while(|sample| sample.get(instance));
            let mut past: Vec<f64> = present.take(length).copied().collect();
            past.reverse();
            past
        };
        now.keys().map(|instance| (*instance, function(&past(instance)))).collect()
    }
}

#[test]
fn functions_over_time() {
    for operand in ["dyn.i.f64", "rate(dyn.c.u64)", "abs(dyn.i.i32)"] {
        let mean = |past: &[f64]| past.iter().sum::<f64>() / past.len() as f64;
        let call = format!("avg_over({operand}, \"1 hour\")");
        against("own-dyn", operand, &call, window(usize::MAX, mean));
        let greatest = |past: &[f64]| past.iter().copied().fold(f64::MIN, f64::max);
        let call = format!("max_over({operand}, \"1 hour\")");
        against("own-dyn", operand, &call, window(usize::MAX, greatest));
        let least = |past: &[f64]| past.iter().copied().fold(f64::MAX, f64::min);
        let call = format!("min_over({operand}, \"1 hour\")");
        against("own-dyn", operand, &call, window(usize::MAX, least));
        // Shorter than the time between two samples.
        let call = format!("avg_over({operand}, \"1 msec\")");
        against("own-dyn", operand, &call, window(1, |past| past[0]));
        let call = format!("ewma({operand}, \"1 usec\")");
        against("own-dyn", operand, &call, window(1, |past| past[0]));
    }
    // Records of own-types are one second apart.
    let decayed = |past: &[f64]| {
        past[1..].iter().fold(past[0], |average, value| average + (value - average) * 0.5)
    };
    let operand = "s.i.u32";
    against("own-types", operand, "ewma(s.i.u32, \"1 sec\")", window(usize::MAX, decayed));
    let mean = |past: &[f64]| past.iter().sum::<f64>() / past.len() as f64;
    against("own-types", operand, "avg_over(s.i.u32, \"2.5 sec\")", window(3, mean));
}

#[test]
fn texts_are_compared() {
    let definitions = "t.all = count(a.str)\n\
                       t.equal = a.str == a.str\n\
                       t.other = a.str != a.str\n\
                       t.any = matchvalue(/./, a.str)\n\
                       t.none = matchvalue(!/./, a.str)\n\
                       t.literal = s.strd == \"no such text\"\n\
                       t.not = \"no such text\" != s.strd\n\
                       t.single = a.str == s.strd\n\
                       t.half = (matchvalue(/^a/, a.str) || matchvalue(!/^a/, a.str)) * 2\n";
    for backend in backends() {
        for sample in evaluate("own-types", definitions, backend) {
            let [all, equal, other, any, none, literal, not, single, half] = &sample.metrics[..]
            else {
                panic!("nine metrics");
            };
            let ones = |values: &Values, wanted: f64| {
                assert!(values.values().all(|value| *value == wanted), "{values:?}");
            };
            assert_eq!(all[&-1] as usize, equal.len());
            ones(equal, 1.0);
            ones(other, 0.0);
            ones(any, 1.0);
            ones(none, 0.0);
            ones(literal, 0.0);
            ones(not, 1.0);
            ones(half, 2.0);
            assert!(single.values().all(|value| *value == 0.0 || *value == 1.0));
            assert_eq!(any.len(), none.len());
        }
    }
}

/// Nested definitions give what one gets by writing out their expressions.
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
    let context = Context::new(engine, source, &registry, &outer, &mut diagnostics);
    let mut context = context.expect("a readable archive");
    let mut workspace = Workspace::default();
    for (step, raw) in raw.windows(2).enumerate().map(|(step, raw)| (step, raw[1] - raw[0])).take(4)
    {
        if step == 0 {
            context.fetch(&mut workspace).expect("a record");
        }
        let selection = if step % 2 == 0 { &inner } else { &outer };
        context.recompile(&registry, selection, &mut diagnostics).expect("a readable archive");
        let sample = context.fetch(&mut workspace).expect("a record");
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
    let (after, ..) = read("t.outer = delta(t.inner)\nt.inner = s.c.u64 * 3\n", EXTENDED);
    let mut workspace = Workspace::default();
    let source = archive("own-types");
    let outer = before.get("t.outer").expect("a defined name");
    let context = Context::new(engine, source, &before, &[outer], &mut diagnostics);
    let mut context = context.expect("a readable archive");
    for _ in 0..2 {
        context.fetch(&mut workspace).expect("a record");
    }
    let outer = after.get("t.outer").expect("a defined name");
    context.recompile(&after, &[outer], &mut diagnostics).expect("a readable archive");
    let sample = context.fetch(&mut workspace).expect("a record");
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
    let context = Context::new(engine, source, &registry, &selection, &mut diagnostics);
    let mut context = context.expect("a readable archive");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let mut workspace = Workspace::default();
    let sample = context.fetch(&mut workspace).expect("a record");
    let value = |metric: usize| {
        let values = sample.values.get(sample.metrics[metric].output.expect("a usable metric"));
        number(values.get(0))
    };
    assert_eq!(value(0), value(1));
}

/// Without the switch nothing of all this is understood.
#[test]
fn the_switch_is_needed() {
    let definitions = "t.nested = t.a + 1\nt.a = s.i.u32\n";
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2] {
        let language = Language::from(dialect);
        let (registry, _, mut diagnostics) = read(definitions, language);
        let engine = Engine::new(language, Backend::Interp);
        let selection = [registry.get("t.nested").expect("a defined name")];
        let mut source = archive("own-types");
        let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
        assert!(compiled.expect("a readable archive").metrics[0].desc.is_err());
        let found: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(found, [Code::NestedDerived]);
    }
    for row in &SIGNATURES {
        let (registry, _, diagnostics) =
            read(&format!("t.a = {}\n", row.example), Dialect::Fixed.into());
        assert!(registry.get("t.a").is_none(), "{}", row.name);
        let help: Vec<_> = diagnostics.iter().filter_map(|one| one.help.as_deref()).collect();
        assert_eq!(help, [format!("`{}()` needs --extensions", row.name)]);
    }
}

/// Metadata of an expression over an archive.
fn desc_of(definitions: &str, archive_name: &str) -> Result<Desc, String> {
    let (registry, _, mut diagnostics) = read(definitions, EXTENDED);
    let engine = Engine::new(EXTENDED, Backend::Interp);
    let selection: Vec<&Registered> = registry.get("t.example").into_iter().collect();
    let mut source = archive(archive_name);
    let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
    let metrics = compiled.expect("a readable archive").metrics;
    match metrics.first().map(|metric| metric.desc) {
        Some(Ok(desc)) if diagnostics.is_empty() => Ok(desc),
        _ => Err(format!("{diagnostics:?}")),
    }
}

/// Each row of the table for users has an example, which gives what it says;
/// and each function has a row.
#[test]
fn the_table_tells_the_truth() {
    let text = include_str!("../grammar/extensions.md");
    let mut forms = Vec::new();
    for row in text.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [form, _, _, _, _, _, example, gives] = cells[..] else {
            panic!("eight cells in {row}");
        };
        let mut code = example.split('`').skip(1).step_by(2);
        let mut definitions = format!("t.example = {}\n", code.next().expect("an example"));
        for definition in code {
            definitions.push_str(definition);
            definitions.push('\n');
        }
        match desc_of(&definitions, "own-fleet") {
            Ok(desc) => assert_eq!(describe(&desc), gives, "{example}"),
            Err(mistakes) => panic!("{example}: {mistakes}"),
        }
        forms.extend(form.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    for row in &SIGNATURES {
        assert!(forms.iter().any(|form| form == row.usage), "no row for {}", row.usage);
    }
}

/// What is said of the mistakes in a file, with an archive as source.
fn mistakes(name: &str) -> (Vec<Code>, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions").join(name);
    let text = std::fs::read_to_string(path).expect("a file of the repository");
    let (registry, sources, mut diagnostics) = read(&text, EXTENDED);
    let engine = Engine::new(EXTENDED, Backend::Interp);
    let selection = registry.all();
    let mut source = archive("own-fleet");
    let compiled = engine.compile(&registry, &selection, &mut source, &mut diagnostics);
    for metric in compiled.expect("a readable archive").metrics {
        assert_eq!(metric.desc.is_ok(), metric.name.starts_with("good."), "{}", metric.name);
    }
    diagnostics.sort();
    let shown = diagnostics.iter().map(|one| render(one, &sources, Style::Plain));
    let shown: Vec<String> = shown.collect();
    (diagnostics.iter().map(|one| one.code).collect(), shown.join("\n"))
}

fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("extensions");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn mistakes_in_calls() {
    assert_snapshot("calls", &mistakes("calls.conf").1);
}

#[test]
fn mistakes_of_meaning() {
    assert_snapshot("meaning", &mistakes("meaning.conf").1);
}

#[test]
fn mistakes_of_nesting() {
    let (codes, text) = mistakes("nesting.conf");
    assert_snapshot("nesting", &text);
    assert!(codes.contains(&Code::DefinitionCycle) && codes.contains(&Code::UnusableOperand));
}

/// Cycles need no source to be found.
#[test]
fn cycles_are_found_offline() {
    let text = include_str!("extensions/nesting.conf");
    let (registry, _, _) = read(text, EXTENDED);
    let mut diagnostics = Diagnostics::default();
    report_cycles(&registry, &mut diagnostics);
    let codes: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, [Code::DefinitionCycle; 4], "{diagnostics:?}");
}
