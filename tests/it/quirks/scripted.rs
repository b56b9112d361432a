//! What happens to values when operands fail, vanish or run backwards, for
//! which no archive is needed: a source that delivers what a test writes down.

use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::EquivalentDomains;
use pmderive::engine::{Backend, Engine, Registered, Registry, Space};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};

use super::{DIALECTS, write_values};
use crate::choosing::choosing;

/// What a metric has in one fetch.
#[derive(Clone)]
enum Step {
    /// Values by instance, -1 for a single one.
    Values(Vec<(i32, f64)>),
    Nothing,
    Fails,
    /// A block of five bytes.
    Malformed,
    /// Values in place although the type does not fit there.
    InPlace,
}

use Step::{Fails, InPlace, Malformed, Nothing, Values};

fn one(value: f64) -> Step {
    Values(vec![(-1, value)])
}

/// Eight instances, numbered from `first`.
fn instances(first: i32) -> Vec<(i32, Box<str>)> {
    (0..8).map(|id| (first + id, format!("i{id}").into())).collect()
}

/// Metrics and their steps.
#[derive(Clone, Default)]
struct Script {
    metadata: MemoryMetadata,
    steps: Steps,
}

/// Steps by the metric's item, one second apart.
#[derive(Clone, Default)]
struct Steps {
    metrics: Vec<Vec<Step>>,
    at: usize,
    /// Before which fetch the instances of a domain get other numbers, and by
    /// how much those are greater.
    renumbered: Option<(usize, InDom, i32)>,
}

impl Script {
    /// Adds a metric; a domain has the instances `i0` to `i7`.
    fn with(
        mut self,
        name: &'static str,
        (value_type, semantics, indom): (ValueType, Semantics, Option<InDom>),
        steps: impl Into<Vec<Step>>,
    ) -> Script {
        let pmid = Pmid::new(250, 0, self.steps.metrics.len() as u32);
        let desc = MetricDesc { pmid, value_type, indom, semantics, units: Units::NONE };
        self.metadata.add_metric(name, desc);
        if let Some(indom) = indom {
            self.metadata.set_instances(indom, instances(0));
        }
        self.steps.metrics.push(steps.into());
        self
    }

    fn source(&self) -> MemorySource<Steps> {
        MemorySource::new("script", self.metadata.clone(), self.steps.clone())
    }
}

impl Feed for Steps {
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        if let Some((_, indom, more)) = self.renumbered.filter(|(at, ..)| *at == self.at) {
            metadata.set_instances(indom, instances(more));
        }
        let stamp = Timestamp::new(1_000 + self.at as i64, 0);
        let mut writer = ResultWriter::new(batch.add_part(), stamp);
        for pmid in list.pmids() {
            let Some(desc) = metadata.desc(*pmid) else {
                writer.status(*pmid, PmStatus::NOAGENT);
                continue;
            };
            writer.set(*pmid);
            match &self.metrics[pmid.item() as usize][self.at] {
                Fails => writer.fail(PmStatus::VALUE),
                Nothing => {}
                Malformed => writer.block(-1, BlockValue::Aggregate(&[0; 5])),
                InPlace => writer.in_place(-1, 7),
                Values(values) => {
                    for (id, value) in values {
                        match desc.value_type {
                            ValueType::I32 => writer.in_place(*id, *value as i32 as u32),
                            ValueType::U32 => writer.in_place(*id, *value as u32),
                            ValueType::I64 => writer.block(*id, BlockValue::I64(*value as i64)),
                            ValueType::U64 => writer.block(*id, BlockValue::U64(*value as u64)),
                            ValueType::F32 => writer.block(*id, BlockValue::F32(*value as f32)),
                            _ => writer.block(*id, BlockValue::F64(*value)),
                        }
                    }
                }
            }
        }
        self.at += 1;
        Ok(FetchEvents::default())
    }
}

/// Values of a selection of definitions, one text a fetch and metric.
fn evaluate(
    dialect: Dialect,
    equivalent: EquivalentDomains,
    definitions: &[(&str, &str)],
    selected: &[&str],
    script: &Script,
    fetches: usize,
) -> Vec<String> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(dialect);
    for (name, expr) in definitions {
        let source = sources.add("<script>", *expr);
        let outcome = registry.register(name, source, &sources, &mut diagnostics);
        if let Err(error) = outcome {
            return vec![format!("refused at {}", error.offset)];
        }
    }
    let engine =
        Arc::new(Engine::new(dialect, Backend::Interp).with_equivalent_domains(equivalent));
    let selection: Vec<&Registered> =
        selected.iter().map(|name| registry.get(name).expect("a definition")).collect();
    let mut session = choosing(engine, script.source(), &registry, &selection, &mut diagnostics)
        .expect("scripts do not fail");
    let mut texts: Vec<String> = session
        .metrics()
        .iter()
        .map(|metric| match &metric.desc {
            Ok(_) => String::new(),
            Err(status) => format!("unusable {}", status.0),
        })
        .collect();
    let mut space = Space::default();
    for fetch in 0..fetches {
        let sample = session.sample(&mut space).expect("scripts do not fail");
        for (text, metric) in texts.iter_mut().zip(sample.metrics) {
            let Some(output) = metric.output else { continue };
            if fetch > 0 {
                text.push_str("; ");
            }
            write_values(text, &sample.values, output);
        }
    }
    texts
}

fn values(dialect: Dialect, expr: &str, script: &Script) -> String {
    let fetches = script.steps.metrics[0].len();
    let none = EquivalentDomains::default();
    evaluate(dialect, none, &[("t.x", expr)], &["t.x"], script, fetches).remove(0)
}

/// Compares the values of an expression in 6.0, 7.2 and Fixed.
#[track_caller]
fn row(script: &Script, expr: &str, expected: [&str; 3]) {
    let found = DIALECTS.map(|(dialect, _)| values(dialect, expr, script));
    assert_eq!(found, expected, "{expr}");
}

const COUNTER: (ValueType, Semantics, Option<InDom>) = (ValueType::F64, Semantics::Counter, None);
const GAUGE: (ValueType, Semantics, Option<InDom>) = (ValueType::I32, Semantics::Instant, None);

/// Two metrics whose third fetch is `third`: a counter that grows by 1, 2, 4,
/// 8, and a constant.
fn failing(third: Step) -> Script {
    let sets = Some(InDom::new(250, 1));
    let bin = |_| Values((0..3).map(|id| (id, f64::from(id + 1) * 100.0)).collect());
    let mut bins: Vec<Step> = (0..5).map(bin).collect();
    bins[2] = third.clone();
    Script::default()
        .with("ms", COUNTER, [one(0.0), one(1.0), third.clone(), one(7.0), one(15.0)])
        .with("ten", GAUGE, [one(10.0), one(10.0), third, one(10.0), one(10.0)])
        .with("bin", (ValueType::I32, Semantics::Instant, sets), bins)
}

/// Q33: an error is no previous sample; libpcp gives it once more, or computes the
/// difference from the sample before it.
#[test]
fn after_an_error() {
    let script = failing(Fails);
    let e = PmStatus::VALUE.0;
    let bare = [
        &*format!("none; 1.0; {e}; {e}; 8.0"),
        &*format!("none; 1.0; {e}; {e}; 8.0"),
        &*format!("none; 1.0; {e}; none; 8.0"),
    ];
    row(&script, "delta(ms)", bare);
    row(&script, "rate(ms)", bare);
    let kept = format!("none; 2.0; {e}; 12.0; 16.0");
    let forgotten = format!("none; 2.0; {e}; none; 16.0");
    row(&script, "delta(ms + ms)", ["refused at 9", &kept, &forgotten]);
    // The rate's time goes on from the last success, too.
    let kept = format!("none; 2.0; {e}; 6.0; 16.0");
    row(&script, "rate(ms + ms)", ["refused at 8", &kept, &forgotten]);
    let counted = "1; 1; 0; 1; 1";
    row(&script, "count(ms)", [counted, counted, &format!("1; 1; {e}; 1; 1")]);
    for (expr, values) in [
        ("sum(ten)", format!("10; 10; {e}; 10; 10")),
        ("avg(ten)", format!("10.0; 10.0; {e}; 10.0; 10.0")),
        ("max(ten)", format!("10; 10; {e}; 10; 10")),
        ("ten + 1", format!("11; 11; {e}; 11; 11")),
        ("1 + ten", format!("11; 11; {e}; 11; 11")),
        ("ten[x]", format!("none; none; {e}; none; none")),
        ("ten ? ten : -ten", format!("10; 10; {e}; 10; 10")),
        ("scalar(bin)", format!("100; 100; {e}; 100; 100")),
        ("instant(ten)", format!("10; 10; {e}; 10; 10")),
        ("-ten", format!("-10; -10; {e}; -10; -10")),
    ] {
        row(&script, expr, [&values, &values, &values]);
    }
}

/// Q33: libpcp repeats the error also in a fetch without values.
#[test]
fn nothing_after_an_error() {
    let steps = [one(0.0), one(1.0), Fails, Nothing, one(7.0), one(15.0)];
    let script = Script::default().with("ms", COUNTER, steps);
    let e = PmStatus::VALUE.0;
    let repeated = &*format!("none; 1.0; {e}; {e}; none; 8.0");
    let forgotten = &*format!("none; 1.0; {e}; none; none; 8.0");
    for expr in ["delta(ms)", "rate(ms)"] {
        row(&script, expr, [repeated, repeated, forgotten]);
    }
}

/// The failure of a branch counts for more than a guard without values,
/// whether or not the choice is made already.
#[test]
fn failures_beside_empty_guards() {
    let script = Script::default().with("guard", GAUGE, [one(1.0), Nothing, Fails]).with(
        "branch",
        GAUGE,
        [one(5.0), Fails, one(7.0)],
    );
    let e = PmStatus::VALUE.0;
    let expected = format!("5; {e}; {e}");
    row(&script, "1 || guard ? branch : branch", [&expected; 3]);
    row(&script, "guard ? branch : branch", [&expected; 3]);
}

/// No values are no previous sample in every dialect, and nothing has no
/// extremes, but a sum and an average.
#[test]
fn after_nothing() {
    let script = failing(Nothing);
    for (expr, values) in [
        ("delta(ms)", "none; 1.0; none; none; 8.0"),
        ("rate(ms)", "none; 1.0; none; none; 8.0"),
        ("count(ms)", "1; 1; 0; 1; 1"),
        ("sum(ten)", "10; 10; 0; 10; 10"),
        ("avg(ten)", "10.0; 10.0; 0.0; 10.0; 10.0"),
        ("max(ten)", "10; 10; none; 10; 10"),
        ("min(bin)", "100; 100; none; 100; 100"),
        ("ten + 1", "11; 11; none; 11; 11"),
        ("ten ? ten : -ten", "10; 10; none; 10; 10"),
        ("scalar(bin)", "100; 100; none; 100; 100"),
    ] {
        row(&script, expr, [values; 3]);
    }
    for (expr, values) in [
        ("delta(ms + ms)", "none; 2.0; none; none; 16.0"),
        ("delta(count(bin))", "none; 0; -3; 3; 0"),
        ("delta(delta(ms))", "none; none; none; none; none"),
    ] {
        let [old, new, own] = DIALECTS.map(|(dialect, _)| self::values(dialect, expr, &script));
        assert!(old.starts_with("refused"), "{expr}: {old}");
        assert_eq!([&*new, &*own], [values; 2], "{expr}");
    }
}

/// Q42: what stands on the right of a failed operand goes on all the same. libpcp does not evaluate
/// it then, and has 6.0 after the failure, and a rate of 3.0.
#[test]
fn history_goes_on_beside_failures() {
    let script = Script::default()
        .with("ten", GAUGE, [one(1.0), one(1.0), Fails, one(1.0), one(1.0)])
        .with("ms", COUNTER, [one(0.0), one(1.0), one(3.0), one(7.0), one(15.0)]);
    let e = PmStatus::VALUE.0;
    let expected = format!("none; 1.0; {e}; 4.0; 8.0");
    row(&script, "ten * 0 + delta(ms)", [&expected; 3]);
    row(&script, "ten * rate(ms)", [&expected; 3]);
}

/// Counters that decrease have no rate; libpcp leaves out those of type 32.
#[test]
fn counters_that_decrease() {
    let counter = |value_type| (value_type, Semantics::Counter, None);
    let steps = [one(10.0), one(15.0), one(5.0), one(6.0)];
    let script = Script::default()
        .with("c32", counter(ValueType::I32), steps.clone())
        .with("cu32", counter(ValueType::U32), steps.clone())
        .with("cu64", counter(ValueType::U64), steps.clone())
        .with("cf64", counter(ValueType::F64), steps.clone())
        .with("g32", GAUGE, steps.clone())
        .with("gu32", (ValueType::U32, Semantics::Instant, None), steps);
    let dropped = "none; 5.0; none; 1.0";
    let negative = "none; 5.0; -10.0; 1.0";
    row(&script, "rate(c32)", [negative, negative, dropped]);
    row(&script, "rate(cu32)", ["none; 5.0; 4294967286.0; 1.0", dropped, dropped]);
    row(&script, "rate(cu64)", ["none; 5.0; 1.8446744073709552e19; 1.0", dropped, dropped]);
    row(&script, "rate(cf64)", [negative, dropped, dropped]);
    row(&script, "rate(g32)", [negative; 3]);
    let wrapped = "none; 5.0; 4294967286.0; 1.0";
    row(&script, "rate(gu32)", [wrapped, wrapped, negative]);
    row(&script, "delta(cu32)", ["none; 5; -10; 1"; 3]);
    // A guard that has no value leaves none, even if the choice is made already.
    let guarded = "none; 15; none; 6";
    let chosen = ["none; 15; 5; 6", guarded, guarded];
    row(&script, "1 || rate(cu32) > 0 ? gu32 : gu32", chosen);
}

/// Q25: a metric that is asked for twice in one fetch has the same value twice;
/// libpcp computes the second difference from the first one's sample.
#[test]
fn the_same_metric_twice() {
    let script = Script::default().with("ms", COUNTER, [one(0.0), one(1.0), one(3.0)]);
    for (dialect, _) in DIALECTS {
        let none = EquivalentDomains::default();
        let definitions = [("t.x", "delta(ms)")];
        let found = evaluate(dialect, none, &definitions, &["t.x", "t.x"], &script, 3);
        assert_eq!(found, ["none; 1.0; 2.0"; 2], "{dialect:?}");
    }
}

/// Q35: a selected instance is the one of that name now; libpcp goes on with
/// the number that the name had first.
#[test]
fn instances_with_other_numbers() {
    let indom = InDom::new(250, 1);
    let step = |more: i32| Values((0..3).map(|id| (id + more, f64::from(id) + 1.0)).collect());
    let mut script = Script::default().with(
        "bin",
        (ValueType::I32, Semantics::Instant, Some(indom)),
        [step(0), step(0), step(10), Nothing, step(10)],
    );
    script.steps.renumbered = Some((2, indom, 10));
    row(&script, "bin[i1]", ["1:2; 1:2; 11:2; none; 11:2"; 3]);
    row(
        &script,
        "matchinst(/i[01]/, bin)",
        ["0:1, 1:2; 0:1, 1:2; 10:1, 11:2; none; 10:1, 11:2"; 3],
    );
}

/// Values that are not of the metric's type.
#[test]
fn values_of_other_forms() {
    let script =
        Script::default().with("d", COUNTER, [one(1.0), Malformed, InPlace, one(2.0)]).with(
            "f",
            (ValueType::F32, Semantics::Instant, None),
            [one(1.0), Malformed, InPlace, one(2.0)],
        );
    let (conversion, record) = (PmStatus::CONV.0, PmStatus::LOGREC.0);
    row(&script, "d", [&format!("1.0; {conversion}; {record}; 2.0"); 3]);
    // Old archives have single precision in place.
    let bits = f32::from_bits(7);
    row(&script, "f", [&format!("1.0; {conversion}; {bits:?}; 2.0"); 3]);
}

/// Q15: derived metrics as operands. 6.0 binds them and has no values, 7.2 takes
/// one that is the whole expression, and both take their metadata. To 7.2
/// such a metric is unknown, to 6.0 one that no agent serves. `defined()` of one
/// that cannot be used fails.
#[test]
fn derived_metrics_as_operands() {
    let script = Script::default().with("ten", GAUGE, [one(10.0), one(10.0)]);
    let definitions = [
        ("t.a", "ten + 1"),
        ("t.same", "t.a"),
        ("t.more", "t.a + 1"),
        ("t.is", "defined(t.a)"),
        ("t.itself", "t.itself + 1"),
        ("t.dead", "1 ? ten : t.a"),
        ("t.is_not", "defined(t.later)"),
        ("t.later", "defined(t.itself) ? 1 : 2"),
    ];
    let all: Vec<&str> = definitions.iter().map(|(name, _)| *name).collect();
    let unusable = format!("unusable {}", PmStatus::BADDERIVE.0);
    let [agent, unknown] =
        [PmStatus::NOAGENT, PmStatus::PMID].map(|status| format!("{0}; {0}", status.0));
    let expected: [[&str; 8]; 3] = [
        ["11; 11", &agent, &agent, "1; 1", &unusable, &unusable, &unusable, &unusable],
        ["11; 11", &unknown, &unusable, &unusable, &unusable, &unusable, &unusable, &unusable],
        ["11; 11", &unusable, &unusable, &unusable, &unusable, &unusable, &unusable, &unusable],
    ];
    for ((dialect, name), expected) in DIALECTS.into_iter().zip(expected) {
        let none = EquivalentDomains::default();
        let found = evaluate(dialect, none, &definitions, &all, &script, 2);
        assert_eq!(found, expected, "{name}");
    }
    for dialect in [Dialect::Pcp7_2, Dialect::Fixed] {
        let none = EquivalentDomains::default();
        let definitions = [("t.x", "mkconst(5, meta=t.a, type=double)"), ("t.a", "ten + 1")];
        assert_eq!(evaluate(dialect, none, &definitions, &["t.x"], &script, 2), ["5.0; 5.0"]);
    }
}

/// Equivalent instance domains: operators pair by instance, also guards with
/// branches; branches themselves must have the same domain, and 6.0 knows none.
#[test]
fn equivalent_instance_domains() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("indom.conf");
    std::fs::write(&file, "250.1 250.2 # both are disks\n").expect("a file");
    let over = |serial| (ValueType::I32, Semantics::Instant, Some(InDom::new(250, serial)));
    let list = |values: &[(i32, f64)]| vec![Values(values.to_vec())];
    let script = Script::default()
        .with("a", over(1), list(&[(0, 1.0), (1, 2.0), (2, 3.0)]))
        .with("b", over(2), list(&[(2, 10.0), (1, 20.0)]))
        .with("c", over(3), list(&[(1, 1.0)]));
    let unusable = format!("unusable {}", PmStatus::BADDERIVE.0);
    let rows = [
        ("a + b", [&*unusable, "1:22, 2:13", "1:22, 2:13"]),
        ("b > a", [&*unusable, "2:1, 1:1", "2:1, 1:1"]),
        ("a + c", [&*unusable; 3]),
        ("a > 1 ? b : -b", ["1:20, 2:10"; 3]),
        ("b ? a : b", [&*unusable; 3]),
        ("c ? a : -a", ["1:2", "1:2", &*unusable]),
    ];
    for (expr, expected) in rows {
        let found = DIALECTS.map(|(dialect, _)| {
            let equivalent = EquivalentDomains::from_file(&file);
            evaluate(dialect, equivalent, &[("t.x", expr)], &["t.x"], &script, 1).remove(0)
        });
        assert_eq!(found, expected, "{expr}");
    }
}
