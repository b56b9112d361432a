//! Sources with wrong answers to a request. There is an error that names the source, and later
//! values are as before.

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Registry};
use pmderive_runtime::eval::{Evaluator, Value, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::program::{OutputId, Status};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{
    Answer, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, Question, SourceError,
};

const INDOM: InDom = InDom::new(400, 1);
const PMID: Pmid = Pmid::new(400, 0, 0);

/// Values of two instances that grow by one with each fetch, a second apart.
/// The second instance is not in the domain.
struct Growing(u32);

impl Feed for Growing {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.0 += 1;
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(i64::from(self.0), 0));
        for pmid in list.pmids() {
            writer.set(*pmid);
            writer.in_place(1, self.0);
            writer.in_place(2, self.0);
        }
        Ok(FetchEvents::default())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    NoSets,
    NoDomains,
    NoAnswers,
}

struct Source {
    memory: MemorySource<Growing>,
    wrong: Wrong,
}

impl MetadataSource for Source {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        let is_current = |q: &Question<'_>| matches!(q, Question::Domain(_, Freshness::Current));
        match self.wrong {
            Wrong::NoAnswers if questions.iter().any(is_current) => Ok(()),
            _ => self.memory.ask(questions, answers),
        }
    }

    fn name(&self) -> String {
        self.memory.name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.memory.metadata_epoch()
    }
}

impl FetchSource for Source {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let events = self.memory.fetch(list, batch)?;
        match self.wrong {
            Wrong::NoSets => {
                let domains = std::mem::take(&mut batch.domains);
                batch.clear();
                batch.domains = domains;
                ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
            }
            Wrong::NoDomains => batch.domains.clear(),
            Wrong::Nothing | Wrong::NoAnswers => {}
        }
        Ok(events)
    }
}

fn source() -> Source {
    let mut metadata = MemoryMetadata::default();
    metadata.set_instances(INDOM, vec![(1, "one".into())]);
    let desc = MetricDesc {
        pmid: PMID,
        value_type: ValueType::U32,
        indom: Some(INDOM),
        semantics: Semantics::Counter,
        units: Units::NONE,
    };
    metadata.add_metric("m", desc);
    Source { memory: MemorySource::new("growing", metadata, Growing(0)), wrong: Wrong::Nothing }
}

fn evaluator(source: &mut Source) -> Evaluator {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Dialect::Fixed);
    for (name, text) in
        [("d.filtered", "delta(matchinst(/o/, m))"), ("d.spread", "mkconst(2, indom=400.1)")]
    {
        let source = sources.add("<test>", text);
        registry.register(name, source, &sources, &mut diagnostics).expect("a good definition");
    }
    let engine = Engine::new(Dialect::Fixed, Backend::Interp);
    let compiled = engine.compile(&registry, &registry.all(), source, &mut diagnostics);
    let compiled = compiled.expect("memory does not fail");
    let binding = &compiled.binding;
    assert_eq!((binding.named_domains.len(), binding.fetched_domains.len()), (1, 1));
    compiled.evaluator()
}

#[test]
fn what_does_not_fit_together_is_an_error_of_the_source() {
    for (wrong, expected) in [
        (Wrong::NoSets, "growing: wrong number of value sets: 0 instead of 1"),
        (Wrong::NoDomains, "growing: wrong number of instance domains: 0 instead of 1"),
        (Wrong::NoAnswers, "growing: wrong number of answers about instances: 0 instead of 1"),
    ] {
        // At first there is no layout, later there is one.
        for good in 0..3 {
            let mut source = source();
            let mut evaluator = evaluator(&mut source);
            let mut workspace = Workspace::default();
            for _ in 0..good {
                evaluator.fetch(&mut source, &mut workspace).expect("values");
            }
            if wrong == Wrong::NoAnswers {
                // Nothing is asked anew without a change.
                source.memory.metadata().set_instances(INDOM, vec![(1, "other".into())]);
            }
            source.wrong = wrong;
            let error = evaluator.fetch(&mut source, &mut workspace).map(drop);
            let error = error.expect_err("it does not fit");
            assert!(matches!(error, SourceError::Malformed { .. }), "{error:?}");
            assert_eq!(error.to_string(), expected);
            assert_eq!(evaluator.evaluations(), good);

            source.wrong = Wrong::Nothing;
            let (values, _) = evaluator.fetch(&mut source, &mut workspace).expect("values");
            let list =
                |output| values.get(OutputId(output)).iter().collect::<Vec<(InstId, Value<'_>)>>();
            // The sample that was lost is in the difference of the next.
            let difference: &[_] = match good {
                0 => &[],
                _ => &[(1, Value::I64(2))],
            };
            assert_eq!(list(0), difference, "{wrong:?} behind {good}");
            assert_eq!(list(1), [(1, Value::U32(2))]);
        }
    }
}

/// Fetches a definition that renames the metrics, whose types are `own`, from a
/// source that writes their sets as `write` does.
fn fetch_once(
    own: &[ValueType],
    is_encoded: bool,
    write: impl Fn(&FetchList, &mut ResultWriter<'_>),
) -> Result<Vec<Status>, String> {
    let mut metadata = MemoryMetadata::default();
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Dialect::Fixed);
    for (item, value_type) in (0..).zip(own) {
        let (name, pmid) = (format!("m.v{item}"), Pmid::new(400, 0, item));
        let source = sources.add("<test>", &*name);
        registry
            .register(&format!("d.v{item}"), source, &sources, &mut diagnostics)
            .expect("a good definition");
        let (semantics, units) = (Semantics::Instant, Units::NONE);
        let desc = MetricDesc { pmid, value_type: *value_type, indom: None, semantics, units };
        metadata.add_metric(name, desc);
    }
    let feed = |list: &FetchList, _: &mut MemoryMetadata, batch: &mut ResultBatch| {
        write(list, &mut ResultWriter::new(batch.add_part(), Timestamp::new(1, 0)));
        if is_encoded {
            batch.encode();
        }
        Ok(FetchEvents::default())
    };
    let mut source = MemorySource::new("mistaken", metadata, feed);
    let engine = Engine::new(Dialect::Fixed, Backend::Interp);
    let compiled = engine.compile(&registry, &registry.all(), &mut source, &mut diagnostics);
    let mut evaluator = compiled.expect("memory does not fail").evaluator();
    let mut workspace = Workspace::default();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let fetched = evaluator.fetch(&mut source, &mut workspace);
        let (values, _) = fetched.map_err(|error| error.to_string())?;
        statuses = values.outputs().map(|(_, values)| values.status).collect();
    }
    Ok(statuses)
}

/// As in libpcp, the descriptor decides what a block of its size is, whatever type the
/// block says that it has.
#[test]
fn blocks_of_another_size_are_no_values() {
    use ValueType::{F32, F64, I32, I64, U32, U64};
    let written = [
        (BlockValue::I64(5), 8),
        (BlockValue::U64(5), 8),
        (BlockValue::F64(5.0), 8),
        (BlockValue::F32(5.0), 4),
        (BlockValue::Aggregate(&[0; 16]), 16),
    ];
    for (own, size) in [(I32, 4), (U32, 4), (F32, 4), (I64, 8), (U64, 8), (F64, 8)] {
        for is_encoded in [false, true] {
            for (value, bytes) in written {
                // A good metric beside it keeps its value.
                let statuses = fetch_once(&[own, U64], is_encoded, |list, writer| {
                    for (pmid, value) in list.pmids().iter().zip([value, BlockValue::U64(1)]) {
                        writer.set(*pmid);
                        writer.block(-1, value);
                    }
                });
                let statuses = statuses.expect("the fetch as a whole is good");
                let is_good = statuses[0] == Status::Values;
                assert_eq!(is_good, size == bytes, "{value:?} for {own}, encoded: {is_encoded}");
                assert_eq!(statuses[1], Status::Values);
            }
        }
    }
}

#[test]
fn value_sets_in_another_order_are_an_error_of_the_source() {
    for is_encoded in [false, true] {
        let outcome = fetch_once(&[ValueType::U32; 2], is_encoded, |list, writer| {
            for pmid in list.pmids().iter().rev() {
                writer.set(*pmid);
                writer.in_place(-1, pmid.item());
            }
        });
        let expected = "mistaken: value set 1 is of metric 400.0.1 instead of 400.0.0";
        assert_eq!(outcome, Err(expected.to_owned()));
    }
}
