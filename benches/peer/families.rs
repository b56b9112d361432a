//! Families of expressions, each with a kernel: those with loops in `loops.c`,
//! and metrics of the types that they need.

use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Engine, Registry};
use pmderive_runtime::model::{InDom, MetricDesc, PmStatus, Pmid, Semantics, Units, ValueType};
use pmderive_runtime::source::{Answer, Fact, MetadataSource, Question, SourceError};

/// Names of loops in `loops.c`, and an expression for each.
pub const FAMILIES: [(&str, &str); 39] = [
    ("add.f64", "f64.a + f64.b"),
    ("sub.f64", "f64.a - f64.b"),
    ("mul.f64", "f64.a * f64.b"),
    ("div.f64", "f64.a / f64.b"),
    ("scale.f64", "100 * f64.a"),
    ("gt.f64", "f64.a > f64.b"),
    ("choose.f64", "f64.a > f64.b ? f64.a : f64.b"),
    ("add.u64", "u64.a + u64.b"),
    ("sub.u64", "u64.a - u64.b"),
    ("mul.u64", "u64.a * u64.b"),
    ("div.u64", "u64.a / u64.b"),
    ("gt.u64", "u64.a > u64.b"),
    ("choose.u64", "u64.a > u64.b ? u64.a : u64.b"),
    ("add.i64", "i64.a + i64.b"),
    ("mul.i64", "i64.a * i64.b"),
    ("gt.i64", "i64.a > i64.b"),
    ("add.u32", "u32.a + u32.b"),
    ("mul.u32", "u32.a * u32.b"),
    ("div.u32", "u32.a / u32.b"),
    ("gt.u32", "u32.a > u32.b"),
    ("delta.f64", "delta(f64.a)"),
    ("delta.u64", "delta(c64.a)"),
    ("delta.u32", "delta(c32.a)"),
    ("rate.u64", "rate(c64.a)"),
    ("rate.u32", "rate(c32.a)"),
    ("ratio.u64", "delta(c64.a) / delta(c64.b)"),
    ("rescale.u64 1/2^20", "rescale(byte.a, \"Mbyte\")"),
    ("rescale.u64 1/1000", "rescale(msec.a, \"sec\")"),
    ("tree.f64", TREE),
    ("sum.f64", "sum(f64.a)"),
    ("sum.u64", "sum(u64.a)"),
    ("sum.u32", "sum(u32.a)"),
    ("avg.f64", "avg(f64.a)"),
    ("max.f64", "max(f64.a)"),
    ("avg.u64", "avg(u64.a)"),
    ("avg.u32", "avg(u32.a)"),
    ("min.f64", "min(f64.a)"),
    ("max.u64", "max(u64.a)"),
    ("min.u32", "min(u32.a)"),
];
/// Twenty nodes.
const TREE: &str =
    "(f64.a + f64.b) * (f64.c - f64.d) + (f64.b * 3 + f64.c) / (f64.d + 1) - (-f64.a)";

/// Metrics `TYPE.LETTER` with instances.
struct Metrics;

const DOMAIN: u32 = 250;
const TYPES: [(&str, ValueType, Semantics, Units); 8] = [
    ("f64", ValueType::F64, Semantics::Instant, Units::NONE),
    ("u64", ValueType::U64, Semantics::Instant, Units::NONE),
    ("i64", ValueType::I64, Semantics::Instant, Units::NONE),
    ("u32", ValueType::U32, Semantics::Instant, Units::NONE),
    ("c64", ValueType::U64, Semantics::Counter, Units::NONE),
    ("c32", ValueType::U32, Semantics::Counter, Units::NONE),
    ("byte", ValueType::U64, Semantics::Instant, Units { dim_space: 1, ..Units::NONE }),
    (
        "msec",
        ValueType::U64,
        Semantics::Instant,
        Units { dim_time: 1, scale_time: 2, ..Units::NONE },
    ),
];

impl MetadataSource for Metrics {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        let find = |name: &str| {
            let (kind, letter) = name.split_once('.')?;
            let cluster = TYPES.iter().position(|(name, ..)| *name == kind)?;
            let item = "abcd".find(letter)?;
            Some(Pmid::new(DOMAIN, cluster as u32, item as u32))
        };
        let desc = |pmid: Pmid| {
            let (_, value_type, semantics, units) = TYPES[pmid.cluster() as usize];
            MetricDesc { pmid, value_type, indom: Some(InDom::new(DOMAIN, 1)), semantics, units }
        };
        answers.extend(questions.iter().map(|question| match question {
            Question::Pmid(name) | Question::PmidIfAny(name) => {
                find(name).map(Fact::Pmid).ok_or(PmStatus::NAME)
            }
            Question::Desc(pmid) => Ok(Fact::Desc(desc(*pmid))),
            Question::MetricsBelow(_) => Ok(Fact::Names(Vec::new())),
            question => Err(question.status()),
        }));
        Ok(())
    }

    fn name(&self) -> String {
        "peer".to_string()
    }

    fn metadata_epoch(&self) -> u64 {
        0
    }
}

/// The program of an expression.
///
/// # Errors
/// The diagnostics, in words.
pub fn compiled(expression: &str, backend: Backend) -> Result<Arc<Compiled>, String> {
    let language = Language { dialect: Dialect::Fixed, extensions: false };
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(language);
    let source = sources.add("peer", format!("peer.metric = {expression}\n"));
    registry.add_text(source, &sources, &mut diagnostics);
    let compiled = Engine::new(language, backend)
        .compile(&registry, &registry.all(), &mut Metrics, &mut diagnostics)
        .map_err(|error| error.to_string())?;
    match diagnostics.errors() {
        0 => Ok(compiled),
        _ => Err(format!("{diagnostics:?}")),
    }
}
