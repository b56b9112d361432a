//! Instances that come and go at every fetch, in short lists and in long ones, and metrics that
//! are delivered in turn. Kernels over columns that stay, move or change their lanes give the
//! same values as the general path, node by node.

use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Engine, Registered, Registry};
use pmderive_runtime::eval::{Evaluation, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::program::{OutputId, Status};
use pmderive_runtime::result::{ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};
use pmderive_testkit::mix;

use mix::mix;

/// Metrics and their types. The first two have the same instances, the third
/// lacks some now and then, the fourth one has a domain of its own, and the last two
/// have none.
const METRICS: [(&str, ValueType, u32); 6] = [
    ("m.long", ValueType::U64, 1),
    ("m.word", ValueType::U32, 1),
    ("m.some", ValueType::U64, 1),
    ("m.other", ValueType::U64, 2),
    ("m.one", ValueType::U64, 0),
    ("m.two", ValueType::U32, 0),
];
/// Some stand on others.
const TEXTS: [&str; 19] = [
    "rate(m.long)",
    "rate(m.some)",
    "delta(m.word)",
    "rate(m.long) * delta(m.word)",
    "rate(m.long + m.some)",
    "rate(m.long) / rate(m.some)",
    "sum(delta(m.some)) * count(m.word)",
    "rate(m.other) * 8",
    "delta(delta(m.long))",
    "m.word > 500 ? rate(m.long) : rate(m.some)",
    "sum(d.n0) + max(d.n4)",
    "d.n0 * 2 - d.n10",
    "delta(d.n11) + d.n10",
    "max(d.n12) > 3 ? d.n4 : d.n11",
    "d.n13",
    "rate(m.one)",
    "m.two * 8",
    "delta(m.two) + sum(delta(m.other))",
    "rate(m.word) * delta(m.two)",
];
const SEEDS: u64 = 12;
const FETCHES: u64 = 50;

/// Instance lists that change as the seed and the number of the fetch say.
struct Changing {
    seed: u64,
    fetch: u64,
    domains: [Vec<InstId>; 3],
    /// Groups of metrics. They take turns of one fetch or of two, and instances stay for
    /// some turns. A single group is in each fetch.
    groups: u64,
}

impl Changing {
    fn new(seed: u64, groups: u64) -> Changing {
        // Around lengths at which columns get more room, and short ones.
        let length = [3, 9, 130, 250, 290, 1_025][seed as usize % 6];
        let domains = [vec![-1], (0..length).collect(), (0..length / 2).collect()];
        Changing { seed, fetch: 0, domains, groups }
    }

    fn choice(&self, what: &[u64], of: u64) -> u64 {
        mix(&[&[self.seed, self.fetch], what].concat()) % of
    }

    fn change(&mut self, domain: usize) {
        let mut ids = std::mem::take(&mut self.domains[domain]);
        let choice = |what: u64, of: usize| self.choice(&[domain as u64, what], of as u64) as usize;
        // No two fetches have a new instance in common.
        let next = (10_000 + self.fetch * 100) as InstId;
        let at = choice(1, ids.len().max(1));
        match choice(0, 12) {
            // One leaves and one joins, in order or where the other one was.
            0 | 1 if !ids.is_empty() => {
                ids.remove(at);
                ids.push(next);
            }
            2 if !ids.is_empty() => ids[at] = next,
            3 => ids.insert(at, next),
            4 => ids.extend((0..9).map(|more| next + more)),
            5 => drop(ids.drain(at..(at + choice(2, 12)).min(ids.len()))),
            6 => ids.rotate_left(at),
            7 if choice(2, 4) == 0 => ids.reverse(),
            8 if choice(2, 6) == 0 => ids.clear(),
            _ => {}
        }
        self.domains[domain] = ids;
    }
}

impl Feed for Changing {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.fetch += 1;
        if self.groups == 1 || self.fetch.is_multiple_of(14) {
            self.change(1);
            self.change(2);
        }
        let turn = self.fetch / (1 + self.seed / 2 % 2);
        let stamp = Timestamp::new(1_000 + self.fetch.cast_signed() * 5, 0);
        let mut writer = ResultWriter::new(batch.add_part(), stamp);
        for pmid in list.pmids() {
            let item = pmid.item() as usize;
            let (_, value_type, domain) = METRICS[item];
            let is_in_turn = (turn + item as u64).is_multiple_of(self.groups);
            // Groups that fail now and then would hardly return.
            let fails = self.groups == 1 && self.choice(&[7, item as u64], 25) == 0;
            if fails || !is_in_turn && self.seed.is_multiple_of(2) {
                writer.status(*pmid, PmStatus::AGAIN);
                continue;
            }
            let mut ids = self.domains[domain as usize].clone();
            if !is_in_turn {
                ids.clear();
            }
            if item == 2 && self.choice(&[8], 3) == 0 && !ids.is_empty() {
                ids.remove(self.choice(&[9], ids.len() as u64) as usize);
            }
            writer.set(*pmid);
            let lanes = writer.numbers(value_type, false, ids.iter().copied());
            for (lane, id) in lanes.chunks_exact_mut(value_type.lane_bytes()).zip(&ids) {
                let value = self.fetch * 1_000 + mix(&[self.fetch, item as u64, *id as u64]) % 900;
                // Now and then a counter falls.
                let falls = self.choice(&[10, item as u64, *id as u64], 400) == 0;
                let value = if falls { 0 } else { value };
                match lane.len() {
                    4 => lane.copy_from_slice(&(value as u32).to_ne_bytes()),
                    _ => lane.copy_from_slice(&value.to_ne_bytes()),
                }
            }
        }
        Ok(FetchEvents::default())
    }
}

fn source(seed: u64, groups: u64) -> MemorySource<Changing> {
    let mut metadata = MemoryMetadata::default();
    for (item, (name, value_type, domain)) in (0..).zip(METRICS) {
        let desc = MetricDesc {
            pmid: Pmid::new(7, 0, item),
            value_type,
            indom: (domain > 0).then(|| InDom::new(7, domain)),
            semantics: Semantics::Counter,
            units: Units::NONE,
        };
        metadata.add_metric(name, desc);
    }
    MemorySource::new("memory", metadata, Changing::new(seed, groups))
}

fn compile(backend: Backend, source: &mut MemorySource<Changing>) -> Arc<Compiled> {
    let language = Language { dialect: Dialect::Fixed, extensions: true };
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(language);
    for (at, text) in TEXTS.iter().enumerate() {
        let text = sources.add("<test>", *text);
        let name = format!("d.n{at}");
        registry.register(&name, text, &sources, &mut diagnostics).expect("it is good");
    }
    let selection: Vec<&Registered> = registry.all();
    let engine = Engine::new(language, backend);
    let compiled = engine.compile(&registry, &selection, source, &mut diagnostics);
    assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
    compiled.expect("memory does not fail")
}

/// Status and values, with each bit.
fn words(values: &Evaluation<'_>, output: OutputId) -> String {
    let values = values.get(output);
    let lanes: Vec<(InstId, u64)> = values.numbers().into_iter().flatten().collect();
    format!("{:?} {lanes:x?}", values.status)
}

#[test]
fn columns_that_change_places_keep_their_values() {
    let with_values = share_with_values(1);
    assert!(with_values > 0.5, "{with_values}");
}

#[test]
fn metrics_that_take_turns_keep_their_values() {
    for groups in 2..=3 {
        let with_values = share_with_values(groups);
        // Expressions over several groups hardly ever have all operands.
        assert!(with_values > 0.05, "{groups} groups: {with_values}");
    }
}

/// Compares both ways to evaluate. Returns the share of the results that are values: a
/// test that compares nothing would pass as well.
fn share_with_values(groups: u64) -> f64 {
    let backends: &[Backend] = match cfg!(feature = "jit") {
        true => &[Backend::Interp, Backend::Jit],
        false => &[Backend::Interp],
    };
    let mut with_values = 0;
    for (seed, backend) in (0..SEEDS).flat_map(|seed| backends.iter().map(move |to| (seed, *to))) {
        let [mut source, mut other] = [(); 2].map(|()| self::source(seed, groups));
        let compiled = compile(backend, &mut source);
        let (mut evaluator, mut workspace) = (compiled.evaluator(), Workspace::default());
        let (mut general, mut room) = (compiled.evaluator(), Workspace::default());
        general.use_general_path();
        for fetch in 0..FETCHES {
            workspace.buffers.poison();
            evaluator.poison();
            let (got, _) = evaluator.fetch(&mut source, &mut workspace).expect("memory");
            let (expected, _) = general.fetch(&mut other, &mut room).expect("memory");
            for (output, text) in (0..).map(OutputId).zip(TEXTS) {
                let (have, want) = (words(&got, output), words(&expected, output));
                assert_eq!(have, want, "seed {seed}, fetch {fetch}, {backend:?}: {text}");
                with_values += usize::from(expected.get(output).status == Status::Values);
            }
        }
    }
    let all = SEEDS as usize * backends.len() * FETCHES as usize * TEXTS.len();
    with_values as f64 / all as f64
}
