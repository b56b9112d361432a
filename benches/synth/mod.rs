//! Synthetic metrics in memory, and derived metrics over them.
//!
//! Input: the number of metrics of each type, and the number of instances. Output: a
//! source that delivers encoded results as a connection does, and evaluators over it. The
//! source's own time is measured, so benchmarks can subtract it.
#![allow(dead_code, reason = "each benchmark uses a part")]

pub mod kernel;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Engine, Registry};
use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::model::{
    InDom, InstId, InstanceDomain, MetricDesc, PmStatus, Pmid, Semantics, StateChange, Timestamp,
    Units, ValueType,
};
use pmderive_runtime::result::{
    BlockValue, Encoded, FetchResult, ResultBatch, ResultPart, ResultWriter, ValueSet,
};
use pmderive_runtime::source::{
    Answer, Fact, FetchEvents, FetchList, FetchSource, MetadataSource, Question, SourceError,
};
use pmderive_testkit::archives;

/// The language of the definitions.
pub const LANGUAGE: Language = Language { dialect: Dialect::Fixed, extensions: true };
const DOMAIN: u32 = 250;
const INDOM: InDom = InDom::new(DOMAIN, 1);

/// Types of the metrics; the name is the middle component of `synth.c64.m0`.
const TYPES: [(&str, ValueType, Semantics); 4] = [
    ("c64", ValueType::U64, Semantics::Counter),
    ("g64", ValueType::U64, Semantics::Instant),
    ("gd", ValueType::F64, Semantics::Instant),
    ("text", ValueType::String, Semantics::Discrete),
];
const COUNTER: u32 = 0;
const BYTES: Units = Units { dim_space: 1, ..Units::NONE };

/// Metrics `synth.TYPE.m0` and on, all over one instance domain, fetched a
/// second apart. Counters rise from fetch to fetch.
#[derive(Debug)]
pub struct Synth {
    metrics: u32,
    instances: InstId,
    /// Instances that leave at the front and join at the back per fetch.
    churn: InstId,
    record: i64,
    /// The list that `frame` answers.
    list: u64,
    frame: ResultPart,
    /// Offsets in the frame of the counters' values.
    counters: Vec<usize>,
    spent: Duration,
}

impl Synth {
    /// `metrics` of each type with `instances` each.
    pub fn new(metrics: u32, instances: InstId) -> Synth {
        Synth {
            metrics,
            instances,
            churn: 0,
            record: 0,
            list: u64::MAX,
            frame: ResultPart::default(),
            counters: Vec::new(),
            spent: Duration::ZERO,
        }
    }

    /// The same metrics with instances that leave and join at every fetch.
    pub fn with_churn(self, churn: InstId) -> Synth {
        Synth { churn, ..self }
    }

    /// Encodes the current record as the answer to a fetch of `list`.
    fn encode(&mut self, list: &FetchList) {
        let record = self.record as u64;
        let mut writer = ResultWriter::new(&mut self.frame, Timestamp::default());
        for pmid in list.pmids() {
            writer.set(*pmid);
            let first = self.churn * self.record as InstId;
            for id in first..first + self.instances {
                let base = 1_000_003 * u64::from(pmid.item() + 1) + 977 * id as u64;
                let gauge = (base + 7919 * record) % 1_000_000;
                if TYPES[pmid.cluster() as usize].1 == ValueType::String {
                    writer.block(id, BlockValue::Text(&format!("text {}", base % 7)));
                    continue;
                }
                writer.block(
                    id,
                    match TYPES[pmid.cluster() as usize].1 {
                        ValueType::F64 => BlockValue::F64(gauge as f64 * 0.5),
                        _ if pmid.cluster() == COUNTER => {
                            BlockValue::U64(base + record * (1000 + id as u64 % 97))
                        }
                        _ => BlockValue::U64(gauge),
                    },
                );
            }
        }
        self.frame.encode();
    }

    /// Encodes, and notes where the counters stand.
    fn prepare(&mut self, list: &FetchList) {
        self.encode(list);
        self.counters.clear();
        let size = |set: ValueSet<'_>| if set.is_empty() { 8 } else { 12 + 8 * set.len() };
        // The first block is behind all sets.
        let mut next: usize = self.frame.sets().map(size).sum();
        for set in self.frame.sets() {
            for (_, value) in set.values() {
                if set.pmid.cluster() == COUNTER {
                    self.counters.push(next + 4);
                }
                let bytes =
                    value.and_then(|value| value.encoded(&mut [0; 8]).map(|(_, b)| b.len()).ok());
                next += 4 + bytes.unwrap_or(0).next_multiple_of(4);
            }
        }
        self.list = list.id();
    }

    /// Increases the counters of the frame.
    fn advance(&mut self) {
        for (index, offset) in self.counters.iter().enumerate() {
            let value = &mut self.frame.wire_mut().expect("encoded").bytes[*offset..][..8];
            let count = u64::from_be_bytes(value.try_into().expect("eight bytes"));
            value.copy_from_slice(&(count + 1000 + index as u64 % 97).to_be_bytes());
        }
    }
}

impl MetadataSource for Synth {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        let find = |name: &str| {
            let (kind, item) = name.strip_prefix("synth.")?.split_once(".m")?;
            let cluster = TYPES.iter().position(|(name, ..)| *name == kind)?;
            let item = item.parse().ok().filter(|item| *item < self.metrics)?;
            Some(Pmid::new(DOMAIN, cluster as u32, item))
        };
        let desc = |pmid: Pmid| {
            let (_, value_type, semantics) = TYPES[pmid.cluster() as usize];
            let units = match value_type {
                ValueType::U64 => BYTES,
                _ => Units::NONE,
            };
            MetricDesc { pmid, value_type, indom: Some(INDOM), semantics, units }
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
        "synth".to_string()
    }

    fn metadata_epoch(&self) -> u64 {
        0
    }
}

impl FetchSource for Synth {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let begin = Instant::now();
        if self.churn != 0 {
            self.encode(list);
        } else if self.list == list.id() {
            self.advance();
        } else {
            self.prepare(list);
        }
        self.spent += begin.elapsed();
        let stamp = Timestamp::new(1_700_000_000 + self.record, 0);
        self.record += 1;
        let wire = self.frame.wire().expect("encoded");
        let encoded = Encoded {
            list: list.id(),
            bytes: &wire.bytes,
            first_set: wire.first_set,
            set_count: wire.set_count,
            block_origin: 0,
        };
        if batch.add_part_as_before(&encoded, stamp).is_none() {
            batch.notice(&encoded, || encoded.sets().map(|(pmid, at)| (pmid, Some(at))));
            // A connection receives into the part, and so copies nothing.
            let begin = Instant::now();
            let part = batch.add_part();
            part.timestamp = stamp;
            let to = part.set_wire();
            to.bytes.extend_from_slice(encoded.bytes);
            (to.first_set, to.set_count) = (encoded.first_set, encoded.set_count);
            self.spent += begin.elapsed();
        }
        Ok(FetchEvents::default())
    }
}

/// Writes an archive of the metrics that are numbers: so many records of them,
/// a second apart.
pub fn write_archive(base: &Path, mut source: Synth, records: u32) {
    let mut writer =
        ArchiveWriter::create(base, archives::options("synth", Timestamp::new(1_700_000_000, 0)))
            .expect("the folder is empty");
    let numbers = TYPES.iter().filter(|(_, value_type, _)| *value_type != ValueType::String);
    let names: Vec<String> = numbers
        .flat_map(|(kind, ..)| (0..source.metrics).map(move |item| format!("synth.{kind}.m{item}")))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = source.lookup_names(&names).expect("memory does not fail");
    let pmids: Vec<Pmid> = pmids.into_iter().flatten().collect();
    let descs = source.lookup_descs(&pmids).expect("memory does not fail");
    for (desc, name) in descs.iter().flatten().zip(&names) {
        writer.describe(desc, &[name]).expect("the descriptors are good");
    }
    let list = FetchList::new(pmids, Vec::new());
    let mut batch = ResultBatch::default();
    for record in 0..records {
        batch.clear();
        source.fetch(&list, &mut batch).expect("memory does not fail");
        if record == 0 || source.churn > 0 {
            let first = source.churn * record.cast_signed();
            let ids = first..first + source.instances;
            let instances = ids.map(|id| (id, format!("i{id}").into())).collect();
            let domain = InstanceDomain::new(instances);
            writer.instances(batch.timestamp(), INDOM, &domain).expect("the names are good");
        }
        let result = FetchResult::of_batch(&batch, StateChange::default());
        writer.record(&result).expect("there is room");
    }
    writer.finish().expect("there is room");
}

/// Kinds of derived metrics that `mix` rotates through.
const MIX: [&str; 8] = ["addd", "rate", "ratio", "sum", "tern", "rescale", "tree", "const"];

/// Expression of the `index`th derived metric of a kind over `metrics` per type.
pub fn expression(kind: &str, index: u32, metrics: u32) -> String {
    let kind = if kind == "mix" { MIX[index as usize % MIX.len()] } else { kind };
    let other = index + 1 + index / metrics;
    let name = |kind: &str, index: u32| format!("synth.{kind}.m{}", index % metrics);
    let [a, b, c, d] = [index, other, index + 2, other + 3].map(|index| name("gd", index));
    let [count, count2] = [index, other].map(|index| name("c64", index));
    match kind {
        "copy" => a,
        "addd" => format!("{a} + {b}"),
        "const" => format!("100 * {a}"),
        "rate" => format!("rate({count})"),
        "ratio" => format!("delta({count}) / delta({count2})"),
        "sum" => format!("sum({a})"),
        "tern" => format!("{a} > {b} ? {a} : {b}"),
        "rescale" => format!("rescale({}, \"Mbyte\")", name("g64", index)),
        "round" => format!("round({a} / 3)"),
        "log" => format!("log({a} + 1)"),
        "quantile" => format!("quantile(0.9, {a})"),
        "topk" => format!("topk(10, {a})"),
        "toprate" => format!("topk(10, rate({count}))"),
        "avg_over" => format!("avg_over({a}, \"1 min\")"),
        "max_over" => format!("max_over({a}, \"1 min\")"),
        "matchvalue" => format!("matchvalue(/[0-3]$/, {})", name("text", index)),
        "text" => format!("{} == \"text 3\"", name("text", index)),
        "ewma" => format!("ewma({a}, \"30 sec\")"),
        "tree" => format!("({a} + {b}) * ({c} - {d}) + ({b} * 3 + {c}) / ({d} + 1) - (-{a})"),
        other => panic!("no such kind: {other}"),
    }
}

/// Definition file of `count` derived metrics.
pub fn definitions(kind: &str, count: u32, metrics: u32) -> String {
    let line = |index: u32| {
        let expression = expression(kind, index, metrics);
        format!("derived.grp{}.metric{index} = {expression}\n", index / 100)
    };
    (0..count).map(line).collect()
}

/// Registers the definitions of a file.
pub fn register(text: &str) -> Registry {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(LANGUAGE);
    let source = sources.add("synth.conf", text);
    registry.add_text(source, &sources, &mut diagnostics);
    assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
    registry
}

/// Compiles all registered definitions in an engine of their own.
pub fn compile(registry: &Registry, source: &mut Synth, backend: Backend) -> Arc<Compiled> {
    compile_in(&Engine::new(LANGUAGE, backend), registry, source)
}

/// Compiles all registered definitions.
pub fn compile_in(engine: &Engine, registry: &Registry, source: &mut Synth) -> Arc<Compiled> {
    let selection = registry.all();
    let mut diagnostics = Diagnostics::default();
    let compiled = engine
        .compile(registry, &selection, source, &mut diagnostics)
        .expect("memory does not fail");
    assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
    compiled
}

/// Definitions under evaluation.
pub struct Rig {
    /// The source of the values.
    pub source: Synth,
    /// The evaluator.
    pub evaluator: Evaluator,
    /// Its buffers.
    pub workspace: Workspace,
}

impl Rig {
    /// Compiles definitions over a source and makes the first evaluations, in
    /// which buffers grow and samples get predecessors.
    pub fn new(text: &str, mut source: Synth, backend: Backend) -> Rig {
        let compiled = compile(&register(text), &mut source, backend);
        let evaluator = compiled.evaluator();
        let mut rig = Rig { source, evaluator, workspace: Workspace::default() };
        rig.fetch(3);
        rig
    }

    /// Fetches `times` times; returns the time without the source's.
    pub fn fetch(&mut self, times: u64) -> Duration {
        let before = self.source.spent;
        let begin = Instant::now();
        for _ in 0..times {
            self.evaluator
                .fetch(&mut self.source, &mut self.workspace)
                .expect("memory does not fail");
        }
        begin.elapsed() - (self.source.spent - before)
    }
}
