//! Definitions share the previous samples of their operands. This must have no effect: with any
//! other metrics, a definition gives the same values as alone.
//!
//! One evaluator has selections that change at random, so that definitions
//! come, go, come back and are replaced. Beside it each definition has an
//! evaluator of its own, which sees the samples that were fetched while the
//! definition was selected.

use std::collections::HashMap;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Engine, Registered, Registry};
use pmderive_runtime::eval::{Evaluation, Evaluator, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::program::OutputId;
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};
use pmderive_testkit::mix;

use mix::mix;

/// Many definitions of few operands.
const TEXTS: [&str; 14] = [
    "rate(m.0)",
    "delta(m.0)",
    "rate(m.0) * 100",
    "rate(m.0) + rate(m.1)",
    "scalar(rate(m.1))",
    "delta(m.1) / delta(m.0)",
    "rate(m.0 + m.1)",
    "delta(m.1 + m.0)",
    "rate(s.0)",
    "delta(s.0) + delta(s.1)",
    "rate(delta(m.0))",
    "delta(rate(s.1))",
    "delta(instant(m.1))",
    "rate(s.0) > 3 ? rate(m.0) : delta(m.1)",
];
/// Windows over few operands. The compatible dialects forget these alone at a
/// gap, which no evaluator sees that does not evaluate them.
const WINDOWS: [&str; 8] = [
    "avg_over(rate(m.0), \"40 sec\")",
    "avg_over(rate(m.0), \"40 sec\") * 2",
    "avg_over(rate(m.0), \"40 sec\") - avg_over(rate(m.0), \"15 sec\")",
    "max_over(instant(m.1), \"30 sec\")",
    "min_over(delta(m.1), \"30 sec\") + max_over(delta(m.1), \"30 sec\")",
    "rate(m.1) - min_over(rate(m.1), \"20 sec\")",
    "ewma(rate(s.0), \"60 sec\")",
    "ewma(rate(s.0), \"60 sec\") + avg_over(rate(m.0), \"40 sec\")",
];
const DOMAIN: InDom = InDom::new(7, 1);
const STEPS: u32 = 40;

/// Samples that depend on the seed, the number of the fetch and the metric
/// only, not on what else is fetched.
struct Samples {
    seed: u64,
    fetch: u64,
}

impl Samples {
    fn choice(&self, what: &[u64], of: u64) -> u64 {
        mix(&[&[self.seed, self.fetch], what].concat()) % of
    }

    fn instances(&self, pmid: Pmid) -> Vec<InstId> {
        if pmid.cluster() == 0 {
            return vec![-1];
        }
        let mut ids: Vec<InstId> = (0..4).collect();
        match self.choice(&[1], 8) {
            0 => ids.truncate(3),
            1 => ids.push(4),
            2 => ids.reverse(),
            3 if self.choice(&[2], 3) == 0 => ids.clear(),
            _ => {}
        }
        if self.choice(&[3, pmid.item().into()], 12) == 0 {
            ids.pop();
        }
        ids
    }
}

impl Feed for Samples {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        // Now and then no time has passed.
        let seconds = 1000 + self.fetch as i64 * 5 - self.choice(&[4], 6) as i64;
        let stamp = Timestamp::new(seconds, 0);
        let is_split = self.choice(&[5], 4) == 0;
        let mut writer = ResultWriter::new(batch.add_part(), stamp);
        for pmid in list.pmids() {
            let item = u64::from(pmid.item());
            if is_split {
                let stamp = Timestamp::new(seconds, 100_000_000 * (1 + item as i64));
                writer = ResultWriter::new(batch.add_part(), stamp);
            }
            if self.choice(&[6, item, pmid.cluster().into()], 10) == 0 {
                writer.status(*pmid, PmStatus::AGAIN);
                continue;
            }
            writer.set(*pmid);
            for id in self.instances(*pmid) {
                let more = self.choice(&[7, item, id as u64], 50);
                // Now and then a counter falls.
                let falls = self.choice(&[8, item, id as u64], 15) == 0;
                let base = if falls { 0 } else { self.fetch * 60 };
                writer.block(id, BlockValue::U64(base + more));
            }
        }
        Ok(FetchEvents { gap: self.choice(&[9], 16) == 0, ..FetchEvents::default() })
    }
}

/// The metrics `s.0`, `s.1`, `m.0` and `m.1`; `m.1` is another one from time to time.
fn metadata(other: bool) -> MemoryMetadata {
    let mut metadata = MemoryMetadata::default();
    for (cluster, kind) in [(0, "s"), (1, "m")] {
        for item in 0..2 {
            let is_other = other && kind == "m" && item == 1;
            let desc = MetricDesc {
                pmid: Pmid::new(7, cluster, if is_other { 9 } else { item }),
                value_type: ValueType::U64,
                indom: (cluster == 1).then_some(DOMAIN),
                semantics: Semantics::Counter,
                units: Units::NONE,
            };
            metadata.add_metric(format!("{kind}.{item}"), desc);
        }
    }
    metadata.set_instances(DOMAIN, (0..5).map(|id| (id, format!("i{id}").into())).collect());
    metadata
}

/// One definition by itself.
struct Alone {
    evaluator: Evaluator,
    workspace: Workspace,
    /// Whether it was bound to the other metrics.
    other: bool,
}

#[test]
fn a_definition_gives_what_it_gives_alone() {
    let mut compared = 0;
    let mut with_values = 0;
    for seed in 0..90 {
        let dialect = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0][seed as usize % 3];
        let (all, values) = run(seed, dialect);
        compared += all;
        with_values += values;
    }
    // A test that compares nothing would pass as well.
    assert!(compared > 10_000 && with_values * 4 > compared, "{with_values} of {compared}");
}

fn run(seed: u64, dialect: Dialect) -> (usize, usize) {
    let extensions = dialect == Dialect::Fixed;
    let language = Language { dialect, extensions };
    let all: Vec<&str> = match extensions {
        true => TEXTS.into_iter().chain(WINDOWS).collect(),
        false => TEXTS.into(),
    };
    let engine = Engine::new(language, Backend::Interp);
    let choice = |step: u32, what: u64, of: u64| mix(&[seed, 77, step.into(), what]) % of;
    let mut alone: HashMap<(usize, usize), Alone> = HashMap::new();
    let first = registry(language, &all, &vec![0; all.len()]);
    let mut source = MemorySource::new("all", metadata(false), Samples { seed, fetch: 0 });
    let compiled = compile(&engine, &first, &[], &mut source);
    let (mut together, mut workspace) = (compiled.evaluator(), Workspace::default());
    let mut usable = Vec::new();
    // Which text each name has: its own, or that of the next one.
    let mut texts = vec![0; all.len()];
    let (mut selected, mut other) = (Vec::new(), false);
    let (mut compared, mut with_values) = (0, 0);
    for step in 0..STEPS {
        if step == 0 || choice(step, 0, 3) == 0 {
            selected = (0..all.len()).filter(|at| choice(step, 100 + *at as u64, 3) > 0).collect();
            if choice(step, 1, 4) == 0 {
                let at = choice(step, 2, all.len() as u64) as usize;
                texts[at] = 1 - texts[at];
            }
            if choice(step, 3, 6) == 0 {
                other = !other;
            }
            *source.metadata() = metadata(other);
            let registry = registry(language, &all, &texts);
            selected.retain(|at| registry.get(&name(*at)).is_some());
            let compiled = compile(&engine, &registry, &selected, &mut source);
            usable = compiled.metrics.iter().map(|metric| metric.output).collect();
            compiled.put_into(&mut together);
        }
        source.feed().fetch = step.into();
        workspace.buffers.poison();
        together.poison();
        let (values, events) = together.fetch(&mut source, &mut workspace).expect("memory");
        if events.gap && dialect == Dialect::Fixed {
            // Samples of definitions that are not evaluated now do not outlive it either.
            alone.retain(|(at, text), _| selected.contains(at) && texts[*at] == *text);
        }
        for (output, at) in usable.iter().zip(&selected) {
            // Some are refused when they are bound.
            let Some(output) = *output else { continue };
            let mut own = MemorySource::new("one", metadata(other), Samples { seed, fetch: 0 });
            own.feed().fetch = step.into();
            let registry = || registry(language, &all, &texts);
            let one = alone.entry((*at, texts[*at])).or_insert_with(|| {
                let compiled = compile(&engine, &registry(), &[*at], &mut own);
                let workspace = Workspace::default();
                Alone { evaluator: compiled.evaluator(), workspace, other }
            });
            if one.other != other {
                let compiled = compile(&engine, &registry(), &[*at], &mut own);
                compiled.put_into(&mut one.evaluator);
                one.other = other;
            }
            let (expected, _) = one.evaluator.fetch(&mut own, &mut one.workspace).expect("memory");
            let text = all[(at + texts[*at]) % all.len()];
            let (got, expected) = (words(&values, output), words(&expected, OutputId(0)));
            assert_eq!(got, expected, "seed {seed}, step {step}, {dialect:?}: {text}");
            compared += 1;
            with_values += usize::from(got.starts_with("Values"));
        }
    }
    (compared, with_values)
}

fn name(at: usize) -> String {
    format!("d.n{at}")
}

fn registry(language: Language, all: &[&str], texts: &[usize]) -> Registry {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(language);
    for (at, next) in texts.iter().enumerate() {
        let text = sources.add("<test>", all[(at + next) % all.len()]);
        // Version 6 refuses some.
        let _ = registry.register(&name(at), text, &sources, &mut diagnostics);
    }
    registry
}

fn compile(
    engine: &Engine,
    registry: &Registry,
    selected: &[usize],
    source: &mut MemorySource<Samples>,
) -> std::sync::Arc<pmderive::engine::Compiled> {
    let definition = |at: &usize| registry.get(&name(*at)).expect("it is defined");
    let selection: Vec<&Registered> = selected.iter().map(definition).collect();
    let mut diagnostics = Diagnostics::default();
    let compiled = engine.compile(registry, &selection, source, &mut diagnostics);
    compiled.expect("memory does not fail")
}

/// Status and values in words, with each bit.
fn words(values: &Evaluation<'_>, output: OutputId) -> String {
    let values = values.get(output);
    let lanes: Vec<(InstId, u64)> = values.numbers().into_iter().flatten().collect();
    format!("{:?} {lanes:x?}", values.status)
}
