//! Values of extensions over samples that are written out here: with both backends, and by the
//! general path alone.

use std::fmt::Write as _;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registry};
use pmderive_runtime::eval::{Value, Values, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::program::{OutputId, Status};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};

/// One fetch: when it is, in seconds, and what it delivers. A metric that is
/// not there has no values.
#[derive(Clone, Debug, Default)]
struct Sample {
    at: f64,
    values: Vec<(&'static str, Delivered)>,
    /// Data may have been missed before it.
    gap: bool,
}

#[derive(Clone, Debug)]
enum Delivered {
    Numbers(Vec<(InstId, f64)>),
    Texts(Vec<(InstId, &'static str)>),
    Failed,
}

impl Sample {
    fn at(at: f64) -> Sample {
        Sample { at, ..Sample::default() }
    }

    fn after_gap(self) -> Sample {
        Sample { gap: true, ..self }
    }

    fn with(mut self, metric: &'static str, values: &[(InstId, f64)]) -> Sample {
        self.values.push((metric, Delivered::Numbers(values.to_vec())));
        self
    }

    fn texts(mut self, metric: &'static str, values: &[(InstId, &'static str)]) -> Sample {
        self.values.push((metric, Delivered::Texts(values.to_vec())));
        self
    }

    fn failed(mut self, metric: &'static str) -> Sample {
        self.values.push((metric, Delivered::Failed));
        self
    }
}

/// Samples of a set, a second apart.
fn seconds(metric: &'static str, samples: &[&[(InstId, f64)]]) -> Vec<Sample> {
    let sample =
        |(at, values): (usize, &&[(InstId, f64)])| Sample::at(at as f64).with(metric, values);
    samples.iter().enumerate().map(sample).collect()
}

/// Names, types, whether they count, and whether they are over the domain.
const METRICS: [(&str, ValueType, Semantics, bool); 7] = [
    ("t.f", ValueType::F64, Semantics::Instant, true),
    ("t.i", ValueType::I32, Semantics::Instant, true),
    ("t.u", ValueType::U64, Semantics::Instant, true),
    ("t.c", ValueType::U64, Semantics::Counter, true),
    ("t.one", ValueType::F64, Semantics::Instant, false),
    ("t.text", ValueType::String, Semantics::Discrete, true),
    ("t.word", ValueType::String, Semantics::Discrete, false),
];
const DOMAIN: InDom = InDom::new(60, 1);

fn metadata() -> MemoryMetadata {
    let mut metadata = MemoryMetadata::default();
    for (item, (name, value_type, semantics, is_set)) in (0..).zip(METRICS) {
        let pmid = Pmid::new(60, 0, item);
        let indom = is_set.then_some(DOMAIN);
        let units = Units::NONE;
        metadata.add_metric(name, MetricDesc { pmid, value_type, indom, semantics, units });
    }
    metadata
}

/// Delivers one sample after the other.
struct Samples<'s>(std::slice::Iter<'s, Sample>);

impl Feed for Samples<'_> {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let sample = self.0.next().expect("as many samples as fetches");
        let stamp = Timestamp::new(1_000, (sample.at * 1e9) as i64);
        let mut writer = ResultWriter::new(batch.add_part(), stamp);
        for pmid in list.pmids() {
            let (name, value_type, ..) = METRICS[pmid.item() as usize];
            let values = sample.values.iter().find(|(metric, _)| *metric == name);
            match values.map(|(_, values)| values) {
                Some(Delivered::Failed) => writer.status(*pmid, PmStatus::AGAIN),
                None => writer.set(*pmid),
                Some(Delivered::Texts(texts)) => {
                    writer.set(*pmid);
                    for (id, text) in texts {
                        writer.block(*id, BlockValue::Text(text));
                    }
                }
                Some(Delivered::Numbers(numbers)) => {
                    writer.set(*pmid);
                    for (id, number) in numbers {
                        match value_type {
                            ValueType::F64 => writer.block(*id, BlockValue::F64(*number)),
                            ValueType::U64 => writer.block(*id, BlockValue::U64(*number as u64)),
                            _ => writer.in_place(*id, *number as i32 as u32),
                        }
                    }
                }
            }
        }
        Ok(FetchEvents { gap: sample.gap, ..FetchEvents::default() })
    }
}

/// `1=2.5 2=3`, without instances for single values; else why there is nothing.
fn describe(values: &Values<'_>) -> String {
    match values.status {
        Status::Values => {}
        Status::Empty(_) => return "none".to_string(),
        Status::Failed(status) => return status.to_string(),
    }
    let mut out = String::new();
    for (id, value) in values.iter() {
        let space = if out.is_empty() { "" } else { " " };
        let _ = write!(out, "{space}");
        if id >= 0 {
            let _ = write!(out, "{id}=");
        }
        let _ = match value {
            Value::F64(value) => write!(out, "{value}"),
            Value::F32(value) => write!(out, "{value}f"),
            Value::I32(value) => write!(out, "{value}i"),
            Value::U32(value) => write!(out, "{value}u"),
            Value::I64(value) => write!(out, "{value}il"),
            Value::U64(value) => write!(out, "{value}ul"),
            other => write!(out, "{other:?}"),
        };
    }
    out
}

/// Evaluates an expression over samples; what it gives at each.
fn evaluate(
    text: &str,
    samples: &[Sample],
    dialect: Dialect,
    backend: Backend,
    generally: bool,
) -> Vec<String> {
    let language = Language { dialect, extensions: true };
    let engine = Engine::new(language, backend);
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let registry = Registry::new(language);
    let source = sources.add("<test>", text);
    let parsed = registry.parse(source, &sources, &mut diagnostics);
    let parsed = parsed.unwrap_or_else(|_| panic!("{text}: {diagnostics:?}"));
    let mut source = MemorySource::new("samples", metadata(), Samples(samples.iter()));
    let compiled = engine.compile(&registry, &[&parsed], &mut source, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    let compiled = compiled.expect("memory does not fail");
    let mut evaluator = compiled.evaluator();
    if generally {
        evaluator.use_general_path();
    }
    let mut workspace = Workspace::default();
    samples
        .iter()
        .map(|_| {
            let (values, _) =
                evaluator.fetch(&mut source, &mut workspace).expect("memory does not fail");
            describe(&values.get(OutputId(0)))
        })
        .collect()
}

fn check(text: &str, samples: &[Sample], expected: &[&str]) {
    for (backend, generally) in
        [(Backend::Interp, false), (Backend::Interp, true), (Backend::Jit, false)]
    {
        let got = evaluate(text, samples, Dialect::Fixed, backend, generally);
        assert_eq!(got, expected, "{text}, {backend:?}, general path: {generally}");
    }
}

/// An expression with all edits that are certain, of which one may make room for another.
fn mended(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..4 {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let registry = Registry::new(Language::from(Dialect::Fixed));
        let source = sources.add("<test>", text.as_str());
        let _ = registry.parse(source, &sources, &mut diagnostics);
        match pmderive::diag::fixes::applied(&diagnostics, source, &sources) {
            Some((edited, _)) => text = edited,
            None => break,
        }
    }
    text
}

/// What is edited without a question has the value that its words have elsewhere.
#[test]
fn certain_edits_compute_what_was_written() {
    let samples = [Sample::at(0.0).with("t.one", &[(-1, 5.0)])];
    for (text, expected) in [
        ("2 - 4e0", "-2"),
        ("1e9 * 8", "8000000000"),
        ("0e9 - 1", "-1"),
        ("2 - 4f", "-2"),
        ("0x10 + 1_000", "1016u"),
        ("if(t.one > 2, 5, 6)", "5u"),
        ("if t.one > 7 then 5 else 6", "6u"),
        ("not t.one > 9", "1u"),
        ("not(t.one > 9) and t.one", "1u"),
        ("t.one between 3 and 9", "1u"),
        ("t.one not between 3 and 9", "0u"),
        ("t.one ** 2", "25"),
        ("100 / t.one ** 2", "4"),
        ("t.one is 5", "1u"),
        ("t.one * 2 = = 10", "1u"),
        ("t.one <> 5", "0u"),
        ("and(t.one > 3, t.one < 9)", "1u"),
        ("t.one > 3 and t.one < 9", "1u"),
        ("0,5 * t.one", "2.5"),
        ("'t.one' + 1", "6"),
    ] {
        let mended = mended(text);
        let [value] = &*evaluate(&mended, &samples, Dialect::Fixed, Backend::Interp, false) else {
            panic!("{text}: one sample has one value");
        };
        assert_eq!(value, expected, "{text}: {mended}");
    }
}

/// What may mean something else elsewhere is left alone.
#[test]
fn what_is_not_certain_stays() {
    for text in [
        "rate(t.c{mode=\"idle\"}[5m]) * 100",
        "(int) (t.one / 4)",
        "(double) t.one - 4",
        "div(7, 2)",
        "2 - 4i64",
        "2 - 4ul",
        "1e-400",
        "avg_over(t.one, 300)",
        "not(t.one > 4) + not(t.one > 1)",
        "not(t.one) * 5",
        "web1:t.one / web2:t.one",
        "t.one = t.two = 4",
        "max(t.one = 4)",
        "t.one ^ 2",
        "t.one between 1 - 1 and 2",
        "t.one between 1 and 2 + 1",
        "matchinst(\"sd*\", t.f)",
        "t.one%",
    ] {
        assert_eq!(mended(text), text);
    }
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn functions_of_numbers() {
    let floats: [(InstId, f64); 5] = [(1, -2.5), (2, 2.5), (3, NAN), (4, -INF), (5, 0.25)];
    let integers: [(InstId, f64); 3] = [(1, -7.0), (2, f64::from(i32::MIN)), (3, 9.0)];
    let samples = [Sample::at(0.0)
        .with("t.f", &floats)
        .with("t.i", &integers)
        .with("t.u", &[(1, 16.0), (2, 0.0)])
        .with("t.one", &[(-1, 2.0)])];
    for (text, expected) in [
        ("abs(t.f)", "1=2.5 2=2.5 3=NaN 4=inf 5=0.25"),
        ("floor(t.f)", "1=-3 2=2 3=NaN 4=-inf 5=0"),
        ("ceil(t.f)", "1=-2 2=3 3=NaN 4=-inf 5=1"),
        ("round(t.f)", "1=-3 2=3 3=NaN 4=-inf 5=0"),
        ("sqrt(t.f)", "1=NaN 2=1.5811388300841898 3=NaN 4=NaN 5=0.5"),
        ("log(t.f * 4)", "1=NaN 2=2.302585092994046 3=NaN 4=NaN 5=0"),
        ("pow(t.f, 2)", "1=6.25 2=6.25 3=NaN 4=inf 5=0.0625"),
        ("pow(t.f, 0)", "1=1 2=1 3=1 4=1 5=1"),
        ("pow(2, t.one)", "4"),
        ("clamp(t.f, -1, t.one)", "1=-1 2=2 3=NaN 4=-1 5=0.25"),
        // The least integer has no positive counterpart.
        ("abs(t.i)", "1=7i 2=-2147483648i 3=9i"),
        ("round(t.i)", "1=-7i 2=-2147483648i 3=9i"),
        ("clamp(t.i, 0, 8)", "1=0i 2=0i 3=8i"),
        ("sqrt(t.u)", "1=4 2=0"),
        ("log(t.u / 16)", "1=0 2=-inf"),
    ] {
        check(text, &samples, &[expected]);
    }
}

#[test]
fn ranked_instances_keep_their_order() {
    let samples = seconds(
        "t.f",
        &[
            &[(3, 5.0), (1, 9.0), (2, 7.0), (4, 9.0)],
            &[(3, 50.0), (1, 9.0), (2, 7.0), (4, 9.0)],
            &[(2, NAN), (7, -INF), (1, NAN)],
            &[(8, 1.0)],
            &[],
        ],
    );
    check("topk(2, t.f)", &samples, &["1=9 4=9", "3=50 1=9", "2=NaN 7=-inf", "8=1", "none"]);
    check("bottomk(2, t.f)", &samples, &["3=5 2=7", "1=9 2=7", "2=NaN 7=-inf", "8=1", "none"]);
    check(
        "topk(9, t.f)",
        &samples,
        &["3=5 1=9 2=7 4=9", "3=50 1=9 2=7 4=9", "2=NaN 7=-inf 1=NaN", "8=1", "none"],
    );
    check("count(topk(2, t.f))", &samples, &["2u", "2u", "2u", "1u", "0u"]);
    check("sum(topk(2, t.f)) - 1", &samples, &["17", "58", "NaN", "0", "-1"]);
}

#[test]
fn ranked_instances_meet_others_by_instance() {
    let samples = [Sample::at(0.0)
        .with("t.f", &[(1, 5.0), (2, 8.0), (3, 6.0)])
        .with("t.i", &[(3, 10.0), (2, 20.0), (9, 1.0)])];
    check("topk(2, t.f) * t.i", &samples, &["2=160 3=60"]);
    check("t.i - topk(1, t.f)", &samples, &["2=12"]);
    check("topk(1, t.f) + bottomk(1, t.i)", &samples, &["none"]);
    check("delta(topk(1, t.f))", &samples, &["none"]);
}

/// The operand has a past, which goes on however its values are ranked.
#[test]
fn ranked_rates_follow_their_counters() {
    let samples = seconds(
        "t.c",
        &[
            &[(1, 0.0), (2, 0.0), (3, 0.0)],
            &[(1, 10.0), (2, 20.0), (3, 30.0)],
            // One counter fell and has no rate.
            &[(1, 30.0), (2, 50.0), (3, 5.0)],
            &[(1, 30.0), (2, 50.0), (3, 6.0)],
            &[(1, 40.0), (4, 50.0), (3, 26.0)],
            &[(1, 41.0), (4, 52.0), (3, 29.0)],
            &[(1, 42.0), (4, 54.0), (3, 32.0)],
        ],
    );
    let expected = ["none", "2=20 3=30", "1=20 2=30", "1=0 3=1", "1=10 3=20", "4=2 3=3", "4=2 3=3"];
    check("topk(2, rate(t.c))", &samples, &expected);
}

/// A difference of rates has nothing to begin with when a counter has fallen.
#[test]
fn ranked_differences_recover_from_a_reset() {
    let counts = [0.0, 10.0, 30.0, 5.0, 15.0, 40.0, 70.0, 100.0];
    let samples: Vec<Sample> = (0..)
        .zip(counts)
        .map(|(at, count)| Sample::at(f64::from(at)).with("t.c", &[(1, count)]))
        .collect();
    let expected = ["none", "none", "1=10", "none", "none", "1=15", "1=5", "1=0"];
    check("topk(1, delta(rate(t.c)))", &samples, &expected);
    let counted = ["0u", "1u", "1u", "0u", "1u", "1u", "1u", "1u"];
    check("count(rate(t.c))", &samples, &counted);
}

#[test]
fn statistics_over_instances() {
    let samples = seconds(
        "t.f",
        &[
            &[(1, 2.0), (2, 4.0), (3, 4.0), (4, 4.0), (5, 5.0), (6, 5.0), (7, 7.0), (8, 9.0)],
            &[(1, 40.0), (2, 10.0), (3, 30.0), (4, 20.0)],
            &[(1, 3.0)],
            &[(1, 3.0), (2, NAN)],
            &[(1, 1.0), (2, INF), (3, INF)],
            &[],
        ],
    );
    check("stdev(t.f)", &samples, &["2", "11.180339887498949", "0", "NaN", "NaN", "none"]);
    check("quantile(0.5, t.f)", &samples, &["4.5", "25", "3", "NaN", "inf", "none"]);
    check("quantile(0.25, t.f) * 2", &samples, &["8", "35", "6", "NaN", "inf", "none"]);
    check("quantile(0, t.f)", &samples, &["2", "10", "3", "NaN", "1", "none"]);
    check("quantile(1, t.f)", &samples, &["9", "40", "3", "NaN", "inf", "none"]);
    // What filters leave is what counts.
    check("quantile(1, t.f > 8 ? t.f : novalue())", &samples[..2], &["9", "40"]);
    let one = [Sample::at(0.0).with("t.one", &[(-1, 6.0)])];
    check("quantile(0.3, t.one) + stdev(t.one)", &one, &["6"]);
}

#[test]
fn windows_slide_by_time() {
    let mut samples = seconds(
        "t.f",
        &[
            &[(1, 10.0), (2, 0.0)],
            &[(1, 20.0), (2, 4.0)],
            // One instance is away and begins anew.
            &[(1, 60.0)],
            &[(2, 8.0), (1, 40.0)],
        ],
    );
    samples.push(Sample::at(3.5).with("t.f", &[(2, 0.0), (1, 7.0)]));
    samples.push(Sample::at(4.0).with("t.f", &[(2, 1.0), (1, 100.0)]).after_gap());
    samples.push(Sample::at(5.0).failed("t.f"));
    samples.push(Sample::at(6.0).with("t.f", &[(1, 8.0), (2, 2.0)]));
    // A record of other metrics is no sample of this one.
    samples.push(Sample::at(7.0));
    samples.push(Sample::at(8.0).with("t.f", &[(1, 1.0), (2, 1.0)]));
    let failed = PmStatus::AGAIN.to_string();
    check(
        "avg_over(t.f, \"3 sec\")",
        &samples,
        &[
            "1=10 2=0",
            "1=15 2=2",
            "1=30",
            "2=8 1=40",
            "2=4 1=31.75",
            "2=1 1=100",
            &failed,
            "1=8 2=2",
            "none",
            "1=4.5 2=1.5",
        ],
    );
    check(
        "max_over(t.f, \"2 sec\") - min_over(t.f, \"2 sec\")",
        &samples,
        &[
            "1=0 2=0", "1=10 2=4", "1=40", "2=0 1=20", "2=8 1=53", "2=0 1=0", &failed, "1=0 2=0",
            "none", "1=0 2=0",
        ],
    );
    check(
        "ewma(t.f, \"1 sec\")",
        &samples[..4],
        &["1=10 2=0", "1=15 2=2", "1=37.5", "2=8 1=38.75"],
    );
}

#[test]
fn windows_begin_anew_after_a_gap_in_each_dialect() {
    let mut samples = seconds("t.f", &[&[(1, 10.0)], &[(1, 20.0)], &[(1, 60.0)], &[(1, 20.0)]]);
    samples[2] = samples[2].clone().after_gap();
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0] {
        let text = "avg_over(t.f, \"1 min\")";
        let got = evaluate(text, &samples, dialect, Backend::Interp, false);
        assert_eq!(got, ["1=10", "1=15", "1=60", "1=40"], "{dialect:?}");
    }
}

/// Extremes are in the operand's type, and exact; averages are not.
#[test]
fn windows_of_integers() {
    let samples = seconds("t.u", &[&[(1, 9.0)], &[(1, 4.0)], &[(1, 5.0)]]);
    check("max_over(t.u, \"2 sec\")", &samples, &["1=9ul", "1=9ul", "1=5ul"]);
    check("min_over(t.u, \"1 min\")", &samples, &["1=9ul", "1=4ul", "1=4ul"]);
    check("avg_over(t.u, \"1 min\")", &samples, &["1=9", "1=6.5", "1=6"]);
    // The window has its first sample when the rate has its first value.
    let counts =
        seconds("t.c", &[&[(1, 0.0)], &[(1, 8.0)], &[(1, 10.0)], &[(1, 3.0)], &[(1, 7.0)]]);
    let rates = ["none", "1=8", "1=5", "none", "1=4"];
    check("avg_over(rate(t.c), \"1 min\")", &counts, &rates);
    check("delta(avg_over(t.u, \"1 min\"))", &samples, &["none", "1=-2.5", "1=-0.5"]);
}

#[test]
fn texts_are_compared_byte_by_byte() {
    let samples = [
        Sample::at(0.0)
            .texts("t.text", &[(1, "up"), (2, "down"), (3, ""), (4, "Up")])
            .texts("t.word", &[(-1, "down")]),
        Sample::at(1.0).texts("t.text", &[(2, "up 7"), (1, "caf\u{e9}")]),
        Sample::at(2.0).failed("t.text").texts("t.word", &[(-1, "up")]),
    ];
    let failed = PmStatus::AGAIN.to_string();
    check("t.text == \"up\"", &samples, &["1=1u 2=0u 3=0u 4=0u", "2=0u 1=0u", &failed]);
    check("\"up\" != t.text", &samples, &["1=0u 2=1u 3=1u 4=1u", "2=1u 1=1u", &failed]);
    check("t.word == \"down\"", &samples, &["1u", "none", "0u"]);
    check("t.text == t.word", &samples, &["1=0u 2=1u 3=0u 4=0u", "none", &failed]);
    check("t.word != t.text", &samples, &["1=1u 2=0u 3=1u 4=1u", "none", &failed]);
    check("t.text == t.text", &samples, &["1=1u 2=1u 3=1u 4=1u", "2=1u 1=1u", &failed]);
    check("matchvalue(/[Uu]p/, t.text)", &samples, &["1=1u 2=0u 3=0u 4=1u", "2=1u 1=0u", &failed]);
    check(
        "matchvalue(!/^.{2}$/, t.text)",
        &samples,
        &["1=0u 2=1u 3=1u 4=0u", "2=1u 1=1u", &failed],
    );
    check("sum(t.text == \"up\") + 1", &samples, &["2u", "1u", &failed]);
}
