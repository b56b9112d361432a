//! Random definitions over random samples. Fused kernels and layouts must agree
//! with the general path, whatever instances come and go and whatever fails. A
//! context that serves derived metrics must deliver the same values.

use std::sync::Arc;

use pmderive_runtime::eval::{
    Asked, Buffers, Evaluation, Evaluator, Step, Value, Values, Workspace,
};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, InstanceDomain, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units,
    ValueType,
};
use pmderive_runtime::program::{OutputId, Status};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultPart, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource, MetadataSource, SourceError};

use super::{Backend, Definitions, Engine, Registered, Registry, Session};
use crate::diag::Diagnostics;
use crate::dialect::{Dialect, Language};
use crate::text::SourceMap;

/// Choices from bytes. When the bytes run out, a fixed sequence continues.
#[derive(Clone)]
pub struct Choices {
    data: Vec<u8>,
    at: usize,
    state: u64,
}

impl Choices {
    /// Choices from bytes.
    pub fn new(data: &[u8]) -> Choices {
        Choices { data: data.to_vec(), at: 0, state: 0x9e37_79b9 }
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        let byte = match self.data.get(self.at) {
            Some(byte) => *byte,
            None => {
                self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                self.state.to_be_bytes()[0]
            }
        };
        self.at += 1;
        usize::from(byte) % limit.max(1)
    }

    /// One of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Types of operands.
pub const TYPES: [ValueType; 7] = [
    ValueType::I32,
    ValueType::U32,
    ValueType::I64,
    ValueType::U64,
    ValueType::F32,
    ValueType::F64,
    ValueType::String,
];
const DOMAIN: InDom = InDom::new(7, 1);
/// Names of instances.
pub const NAMES: [&str; 6] = ["sda", "sdb", "sdc 3", "dm-0", "eth0", "x"];

/// A feed with samples from the choices.
struct Samples {
    choices: Choices,
    step: i64,
    counters: Vec<u64>,
    content: Content,
}

/// The form of the parts of a fetch.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Columns,
    /// Encoded, as from pmcd.
    Wire,
    /// Columns for two fetches, encoded for the next two.
    ByTurns,
}

/// Metrics `s.0` to `s.6` (single values) and `m.0` to `m.6` (over one domain),
/// one of each type. Numbers at even positions are counters, and two metrics
/// have units of space.
fn metadata() -> MemoryMetadata {
    let mut metadata = MemoryMetadata::default();
    for (cluster, kind) in [(0, "s"), (1, "m")] {
        for (item, value_type) in (0..).zip(TYPES) {
            let counts = item % 2 == 0 && value_type != ValueType::String;
            let desc = MetricDesc {
                pmid: Pmid::new(7, cluster, item),
                value_type,
                indom: (cluster == 1).then_some(DOMAIN),
                semantics: if counts { Semantics::Counter } else { Semantics::Instant },
                units: match item {
                    1 => Units { dim_space: 1, scale_space: 1, ..Units::NONE },
                    4 => Units { dim_space: 1, scale_space: 2, ..Units::NONE },
                    _ => Units::NONE,
                },
            };
            metadata.add_metric(format!("{kind}.{item}"), desc);
        }
    }
    let instances = (0..).zip(NAMES).map(|(id, name)| (id, name.into())).collect();
    metadata.set_instances(DOMAIN, instances);
    metadata
}

impl Feed for Samples {
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.step += 1;
        let pause = self.choices.below(4) as i64;
        let stamp = Timestamp::new(1000 + self.step * 4 + pause, 250_000_000 * pause);
        let mut writer = ResultWriter::new(batch.add_part(), stamp);
        // Sometimes the fetch was split: metrics from `split` on have another
        // stamp.
        let split = match self.choices.below(8) {
            0 => self.choices.below(2 * TYPES.len()),
            _ => usize::MAX,
        };
        // Usually the same instances. Sometimes some leave, change places, or
        // come twice.
        let mut ids: Vec<InstId> = (0..4).collect();
        match self.choices.below(10) {
            0 => drop(ids.remove(self.choices.below(4))),
            1 => ids.push(4),
            2 => ids.reverse(),
            3 => ids.clear(),
            4 => ids.insert(self.choices.below(5), self.choices.below(4) as InstId),
            _ => {}
        }
        // All metrics, so that every list gets the same values, whichever
        // metrics it has.
        let samples: Vec<Sample> = (0..2 * TYPES.len()).map(|at| self.sample(at, &ids)).collect();
        let mut is_late = false;
        for pmid in list.pmids() {
            let at = pmid.cluster() as usize * TYPES.len() + pmid.item() as usize;
            if is_late != (at >= split) {
                is_late = !is_late;
                let later = Timestamp::new(1001 + self.step * 4 + pause, 0);
                let stamp = if is_late { later } else { stamp };
                writer = ResultWriter::new(batch.add_part(), stamp);
            }
            let values = match &samples[at] {
                Ok(values) => values,
                Err(status) => {
                    writer.status(*pmid, *status);
                    continue;
                }
            };
            writer.set(*pmid);
            for (id, value) in values.iter().copied() {
                match TYPES[at % TYPES.len()] {
                    ValueType::I64 => writer.block(id, BlockValue::I64(value as i64)),
                    ValueType::U64 => writer.block(id, BlockValue::U64(value)),
                    ValueType::F32 => writer.block(id, BlockValue::F32(value as f32 / 7.0)),
                    ValueType::F64 => writer.block(id, BlockValue::F64(value as f64 / 3.0)),
                    ValueType::String => {
                        writer.block(id, BlockValue::Text(&value.to_string()));
                    }
                    _ => writer.in_place(id, value as u32),
                }
            }
        }
        if self.content == Content::Wire || self.content == Content::ByTurns && self.step & 2 != 0 {
            batch.encode();
        }
        let domain = match self.choices.below(24) {
            0 => Err(PmStatus::AGAIN),
            1 => Ok(Arc::new(InstanceDomain::new(vec![(3, "x".into()), (0, "sda".into())]))),
            2 => Ok(Arc::new(InstanceDomain::new(vec![(1, "x".into()), (1, "sda".into())]))),
            _ => metadata.instances(DOMAIN),
        };
        batch.domains.extend(list.domains().iter().map(|_| domain.clone()));
        Ok(FetchEvents { gap: self.choices.below(20) == 0, ..FetchEvents::default() })
    }
}

/// Values of one metric, by instance, or its status.
type Sample = Result<Vec<(InstId, u64)>, PmStatus>;

impl Samples {
    /// The next sample of a metric. Single metrics come before those of the
    /// domain.
    fn sample(&mut self, at: usize, ids: &[InstId]) -> Sample {
        match self.choices.below(24) {
            0 => return Err(PmStatus::AGAIN),
            1 => return Ok(Vec::new()),
            _ => {}
        }
        let is_single = at < TYPES.len();
        let mut ids = if is_single { vec![-1] } else { ids.to_vec() };
        if !is_single && self.choices.below(12) == 0 {
            ids.pop();
        }
        let next = |id: InstId| {
            let counter = &mut self.counters[at * 8 + (id + 1) as usize];
            *counter = match self.choices.below(16) {
                0 => 0,
                1 => u64::MAX - 3,
                2 => 1 << 31,
                _ => counter.wrapping_add(self.choices.below(50) as u64),
            };
            (id, *counter)
        };
        Ok(ids.into_iter().map(next).collect())
    }
}

/// Number of definitions in one round.
pub const DEFINITIONS: usize = 6;

/// The dialects of fuzzed definitions.
pub const DIALECTS: [Dialect; 3] = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0];

/// A random expression, small enough to be valid fairly often.
pub fn expression(choices: &mut Choices, depth: usize, extensions: bool) -> String {
    let metric = |choices: &mut Choices| {
        if extensions && choices.below(8) == 0 {
            return format!("d.d{}", choices.below(DEFINITIONS));
        }
        let kind = choices.pick(&["s", "m", "m"]);
        // Most expressions cannot use text.
        let item = if choices.below(24) == 0 { 6 } else { choices.below(6) };
        format!("{kind}.{item}")
    };
    if depth == 0 {
        return match choices.below(5) {
            0 => choices.pick(&["0", "1", "7", "2.5"]).to_string(),
            1 => {
                format!("mkconst({}, type=double, semantics=instant, indom=7.1)", choices.below(9))
            }
            _ => metric(choices),
        };
    }
    let sub = |choices: &mut Choices| expression(choices, depth - 1, extensions);
    if extensions && choices.below(2) == 0 {
        return extension(choices, sub);
    }
    match choices.below(16) {
        0..4 => {
            let op = choices.pick(&[
                "+", "-", "*", "/", "+", "-", "*", "/", "<", "<=", "==", "!=", ">=", ">", "&&",
                "||",
            ]);
            format!("({} {op} {})", sub(choices), sub(choices))
        }
        4..6 => format!("delta({})", sub(choices)),
        6..8 => format!("rate({})", sub(choices)),
        8 => format!("({})[{}]", sub(choices), choices.pick(&NAMES)),
        9 => format!("matchinst({}/^s/, {})", choices.pick(&["", "!"]), sub(choices)),
        10 => format!("scalar({})", sub(choices)),
        11 => format!("instant({})", sub(choices)),
        12 => {
            let function = choices.pick(&["avg", "sum", "max", "min", "count"]);
            format!("{function}({})", metric(choices))
        }
        13 => format!("({} ? {} : {})", sub(choices), sub(choices), sub(choices)),
        14 => format!("({} ? {} : novalue())", sub(choices), sub(choices)),
        _ => format!("{}({})", choices.pick(&["-", "!", ""]), sub(choices)),
    }
}

/// An expression that only extensions allow.
fn extension(choices: &mut Choices, sub: impl Fn(&mut Choices) -> String) -> String {
    match choices.below(14) {
        // One of the first two definitions. A definition that uses itself is
        // refused.
        11 | 12 => format!("d.d{}", choices.below(2)),
        0..3 => {
            let function = choices.pick(&["abs", "floor", "ceil", "round", "sqrt", "log"]);
            format!("{function}({})", sub(choices))
        }
        3 => format!("pow({}, {})", sub(choices), sub(choices)),
        4 => format!("clamp({}, {}, {})", sub(choices), choices.below(9), sub(choices)),
        5..7 => {
            let function = choices.pick(&["topk", "topk", "bottomk"]);
            format!("{function}({}, {})", 1 + choices.below(4), sub(choices))
        }
        7 => format!("quantile(0.{}, {})", choices.below(10), sub(choices)),
        8 => {
            let function = choices.pick(&["stdev", "avg", "sum", "max", "min", "count"]);
            format!("{function}({})", sub(choices))
        }
        9..11 => {
            let function = choices.pick(&["avg_over", "max_over", "min_over", "ewma"]);
            let seconds = choices.pick(&[1, 9, 13, 60]);
            format!("{function}({}, \"{seconds} sec\")", sub(choices))
        }
        _ => {
            let text = |choices: &mut Choices| {
                choices.pick(&["s.6", "m.6", "m.6", "\"0\"", "\"49\""]).to_string()
            };
            match choices.below(3) {
                0 => format!("matchvalue({}/^[1-3]/, m.6)", choices.pick(&["", "!"])),
                _ => {
                    let op = choices.pick(&["==", "!="]);
                    format!("({} {op} {})", text(choices), text(choices))
                }
            }
        }
    }
}

/// Makes definitions and samples from the bytes. Evaluates them with fused
/// kernels (native or interpreted), on the general path, and in a context that
/// serves derived metrics. Values in columns must equal encoded values.
///
/// # Panics
/// If the results disagree.
#[doc(hidden)]
pub fn fuzz_eval(data: &[u8]) {
    // Native code takes longest, and `fuzz_kernel_diff` fuzzes it by itself.
    let is_native = data.get(1).is_some_and(|byte| byte.is_multiple_of(16));
    evaluate_random(data, if is_native { Backend::Jit } else { Backend::Interp });
}

fn evaluate_random(data: &[u8], backend: Backend) {
    let mut choices = Choices::new(data);
    let dialect = choices.pick(&DIALECTS);
    let extensions = data.first().is_some_and(|first| *first >= 0xc0);
    // These choices select the backend.
    choices.below(16);
    let mut texts = Vec::new();
    for _ in 0..DEFINITIONS {
        let depth = 1 + choices.below(3);
        texts.push(expression(&mut choices, depth, extensions));
    }
    evaluate_all_ways(Language { dialect, extensions }, backend, texts, &mut choices);
}

/// Reads the lines of a text as definitions over the metrics `s.0` to `s.6` and
/// `m.0` to `m.6`. The first byte selects the dialect and, from 192 on,
/// extensions. The samples depend on the text.
///
/// # Panics
/// If fused kernels and the general path disagree, or if a stage between text
/// and values panics.
#[doc(hidden)]
pub fn fuzz_compile(data: &[u8]) {
    let Some((first, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let dialect = DIALECTS[usize::from(*first) % DIALECTS.len()];
    let language = Language { dialect, extensions: *first >= 0xc0 };
    let texts = text.lines().take(DEFINITIONS).map(str::to_string).collect();
    let sum = data.iter().fold(1u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
    let mut choices = Choices { data: Vec::new(), at: 0, state: sum };
    evaluate_all_ways(language, Backend::Interp, texts, &mut choices);
}

fn evaluate_all_ways(
    language: Language,
    backend: Backend,
    texts: Vec<String>,
    choices: &mut Choices,
) {
    let engine = Arc::new(Engine::new(language, backend));
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(language);
    for (index, text) in texts.into_iter().enumerate() {
        let text = sources.add("<fuzz>", text);
        let _ = registry.register(&name_of(index), text, &sources, &mut diagnostics);
    }
    let mut selection = registry.all();
    let mut fused_source = source_of(choices, Content::Columns);
    let mut general_source = source_of(choices, Content::Wire);
    let mut stepped_source = source_of(choices, Content::ByTurns);
    let mut compiled = engine
        .compile(&registry, &selection, &mut fused_source, &mut diagnostics)
        .expect("memory does not fail");
    let evaluator = || compiled.evaluator();
    let (mut fused, mut general, mut stepped) = (evaluator(), evaluator(), evaluator());
    general.use_general_path();
    let (mut fused_space, mut general_space) = (Workspace::default(), Workspace::default());
    let (mut stepped_batch, mut stepped_buffers) = (ResultBatch::default(), Buffers::default());
    let shared = Arc::new(Definitions::with(registry.clone(), sources.clone()));
    let source = source_of(choices, Content::ByTurns);
    let mut face = Session::new(Arc::clone(&engine), shared, source).expect("one language");
    let mut asked = list_of(&selection);
    let mut batch = ResultBatch::default();
    for step in 0..12 {
        // Other metrics are needed for a while, then the first ones again.
        if step == 5 || step == 9 {
            let wanted = if step == 5 { choices.below(1 << DEFINITIONS) } else { usize::MAX };
            let definitions = registry.definitions().iter().enumerate();
            selection = definitions
                .filter(|(index, _)| wanted >> index & 1 == 1)
                .map(|(_, definition)| &**definition)
                .collect();
            compiled = engine
                .compile(&registry, &selection, &mut fused_source, &mut diagnostics)
                .expect("memory does not fail");
            for evaluator in [&mut fused, &mut general, &mut stepped] {
                compiled.put_into(evaluator);
            }
            general.use_general_path();
            asked = list_of(&selection);
        }
        fused_space.buffers.poison();
        fused.poison();
        let (a, _) =
            fused.fetch(&mut fused_source, &mut fused_space).expect("memory does not fail");
        let (b, _) =
            general.fetch(&mut general_source, &mut general_space).expect("memory does not fail");
        let what = |output| {
            let metric = compiled.metrics.iter().position(|m| m.output == Some(output));
            let text = metric.map(|m| &sources.get(selection[m].name_span.source).text);
            format!("step {step}, {language:?}, {backend:?}: {}", text.map_or("?", |text| text))
        };
        compare(&a, &b, what);
        stepped_buffers.poison();
        let fetched = (&mut stepped_source, &mut stepped_batch);
        let c = evaluate_in_steps(&mut stepped, fetched, &mut stepped_buffers, step % 3 == 1);
        compare(&a, &c, what);
        face.fetch(&asked, &mut batch).expect("memory does not fail");
        for (position, metric) in compiled.metrics.iter().enumerate() {
            let expected = metric.output.map(|output| a.get(output));
            // The metric is in the list twice.
            for entry in [position, selection.len() + position] {
                let what = || {
                    let text = &sources.get(selection[position].name_span.source).text;
                    format!("step {step}, {language:?}, {backend:?}, served: {text}")
                };
                compare_served(expected.as_ref(), &batch.parts()[0], entry, what);
            }
        }
    }
}

/// Fetches and evaluates step by step. Sometimes it drops an evaluation at the
/// first question, which must have no effect.
fn evaluate_in_steps<'w>(
    evaluator: &'w mut Evaluator,
    (source, batch): (&mut MemorySource<Samples>, &'w mut ResultBatch),
    buffers: &'w mut Buffers,
    is_given_up_first: bool,
) -> Evaluation<'w> {
    batch.clear();
    let events = source.fetch(evaluator.requests(), batch).expect("memory does not fail");
    if is_given_up_first && !evaluator.named_domains().is_empty() {
        let step = evaluator.evaluate(batch, events, buffers);
        assert!(matches!(step, Ok(Step::Needs(_))));
    }
    let mut step = evaluator.evaluate(batch, events, buffers);
    loop {
        match step.expect("what memory delivers fits together") {
            Step::Done(evaluation) => return evaluation,
            Step::Needs(mut pending) => {
                let Asked { questions, answers } = pending.asked();
                source.ask(&questions, answers).expect("memory does not fail");
                step = pending.proceed();
            }
        }
    }
}

/// Makes definitions and samples from the bytes. One evaluator sees all samples
/// and takes layouts from its cache. At each sample, a fresh evaluator sees
/// only that sample and the one before.
///
/// # Panics
/// If the two disagree.
#[doc(hidden)]
pub fn fuzz_cached(data: &[u8]) {
    let mut choices = Choices::new(data);
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let engine = Engine::new(Dialect::Fixed, Backend::Interp);
    let mut registry = Registry::new(Dialect::Fixed);
    for index in 0..DEFINITIONS {
        let depth = 1 + choices.below(3);
        let text = expression(&mut choices, depth, false);
        // A definition that needs more than one previous sample would differ.
        if text.matches("delta(").count() + text.matches("rate(").count() > 1 {
            continue;
        }
        let source = sources.add("<fuzz>", text);
        let _ = registry.register(&name_of(index), source, &sources, &mut diagnostics);
    }
    let selection = registry.all();
    let mut source = source_of(&choices, Content::ByTurns);
    let compiled = engine
        .compile(&registry, &selection, &mut source, &mut diagnostics)
        .expect("memory does not fail");
    let evaluator = || compiled.evaluator();
    let (mut cached, mut space) = (evaluator(), Workspace::default());
    let list =
        FetchList::new(compiled.binding.pmids.clone(), compiled.binding.fetched_domains.clone());
    for step in 0..12 {
        space.buffers.poison();
        cached.poison();
        let (a, _) = cached.fetch(&mut source, &mut space).expect("memory does not fail");
        let mut source = source_of(&choices, Content::Wire);
        let mut passed = ResultBatch::default();
        for _ in 1..step {
            passed.clear();
            source.fetch(&list, &mut passed).expect("memory does not fail");
        }
        let (mut cold, mut space) = (evaluator(), Workspace::default());
        if step > 0 {
            cold.fetch(&mut source, &mut space).expect("memory does not fail");
        }
        let (b, _) = cold.fetch(&mut source, &mut space).expect("memory does not fail");
        compare(&a, &b, |output| {
            let metric = compiled.metrics.iter().position(|m| m.output == Some(output));
            let text = metric.map(|m| &sources.get(selection[m].name_span.source).text);
            format!("step {step}: {}", text.map_or("?", |text| text))
        });
    }
}

/// Name of a definition. Expressions use it too.
fn name_of(index: usize) -> String {
    format!("d.d{index}")
}

/// A list with each definition twice.
fn list_of(selection: &[&Registered]) -> FetchList {
    let twice = selection.iter().chain(selection);
    FetchList::new(twice.filter_map(|one| one.pmid).collect(), Vec::new())
}

/// Compares computed values with the value set of a list's entry. A metric that
/// cannot be used has none.
fn compare_served(
    expected: Option<&Values<'_>>,
    part: &ResultPart,
    entry: usize,
    what: impl Fn() -> String,
) {
    let set = part.sets().nth(entry).expect("a set for each entry");
    let count = match expected.map(|values| (values.status, values.len())) {
        None => {
            assert!(set.count.is_err(), "{}", what());
            return;
        }
        Some((Status::Values, count)) => Ok(count),
        Some((Status::Empty(_), _)) => Ok(0),
        Some((Status::Failed(status), _)) => Err(status),
    };
    assert_eq!(set.count, count, "{}", what());
    let values = set.values().zip(expected.into_iter().flat_map(|values| values.iter()));
    for ((own, raw), (instance, value)) in values {
        assert_eq!(own, instance, "{}", what());
        let (mut room, word) = ([0; 8], raw.and_then(|raw| raw.number(ValueType::U32)));
        let word = (word.unwrap_or_default() as u32).to_be_bytes();
        let data = raw.expect("a value").encoded(&mut room).map_or(&word[..], |(_, data)| data);
        let same = match value {
            Value::I32(value) => data == value.to_be_bytes(),
            Value::U32(value) => data == value.to_be_bytes(),
            Value::I64(value) => data == value.to_be_bytes(),
            Value::U64(value) => data == value.to_be_bytes(),
            Value::F32(value) => {
                let got = data.try_into().map(f32::from_be_bytes).expect("4 bytes");
                got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan()
            }
            Value::F64(value) => {
                let got = data.try_into().map(f64::from_be_bytes).expect("8 bytes");
                got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan()
            }
            Value::Text(text) => data.strip_suffix(&[0]) == Some(text),
            Value::Bytes(bytes) => data == bytes,
        };
        assert!(same, "{value:?} as {data:?}, {}", what());
    }
}

fn source_of(choices: &Choices, content: Content) -> MemorySource<Samples> {
    let samples = Samples { choices: choices.clone(), step: 0, counters: vec![0; 128], content };
    MemorySource::new("memory", metadata(), samples)
}

/// Makes sure that two evaluations have the same outcomes.
///
/// # Panics
/// If they differ; `what` names the metric.
pub fn compare(a: &Evaluation<'_>, b: &Evaluation<'_>, what: impl Fn(OutputId) -> String) {
    assert_eq!(a.len(), b.len());
    for ((output, a), (_, b)) in a.outputs().zip(b.outputs()) {
        assert_eq!(
            std::mem::discriminant(&a.status),
            std::mem::discriminant(&b.status),
            "{:?} against {:?}, {}",
            a.status,
            b.status,
            what(output)
        );
        assert_eq!(a.instances, b.instances, "{}", what(output));
        let same = (0..a.len()).all(|lane| same_value(&a, &b, lane));
        assert!(same, "{:?} against {:?}, {}", list(&a), list(&b), what(output));
    }
}

fn list<'v>(values: &Values<'v>) -> Vec<Value<'v>> {
    values.iter().map(|(_, value)| value).collect()
}

fn same_value(a: &Values<'_>, b: &Values<'_>, lane: usize) -> bool {
    match (a.get(lane), b.get(lane)) {
        (Value::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Refused names would leave nothing to compare.
    #[test]
    fn definitions_have_names_that_are_taken() {
        for dialect in super::DIALECTS {
            let (mut sources, mut diagnostics) = Default::default();
            let mut registry = super::Registry::new(dialect);
            let text = super::SourceMap::add(&mut sources, "<fuzz>", "s.0 + m.0".to_owned());
            let name = super::name_of(super::DEFINITIONS - 1);
            let taken = registry.register(&name, text, &sources, &mut diagnostics);
            assert!(taken.is_ok(), "{diagnostics:?}");
        }
    }

    proptest! {
        // Inputs that fail are kept as inputs of the fuzz target.
        #![proptest_config(ProptestConfig {
            cases: 3000,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn fused_kernels_agree_with_the_general_path(
            data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            super::fuzz_eval(&data);
        }

        #[test]
        fn layouts_that_come_back_are_as_good_as_new_ones(
            data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            super::fuzz_cached(&data);
        }

        #[test]
        fn and_so_they_do_with_extensions(
            first in 0xc0u8..,
            mut data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            data.insert(0, first);
            super::fuzz_eval(&data);
        }
    }

    proptest! {
        // Each case compiles its own native code.
        #![proptest_config(ProptestConfig {
            cases: 120,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn native_kernels_agree_with_the_general_path(
            data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            super::evaluate_random(&data, super::Backend::Jit);
        }
    }
}
