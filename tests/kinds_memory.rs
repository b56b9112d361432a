//! What a further kind of hosts takes: kinds that differ in the type of one
//! metric have what is equal in their programs, sections and plans in common, and
//! nothing of a kind is left once its last host is gone.
//!
//! Bytes are counted, so that this does not depend on the machine. The hosts and
//! definitions are those of `benches/fleet`, which measures the same from outside.

#[allow(dead_code)]
#[path = "../benches/fleet/definitions.rs"]
mod definitions;
#[allow(dead_code)]
#[path = "../benches/fleet/plan.rs"]
mod plan;

use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Engine, Registry, Selection};
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};
use pmderive_testkit::counting::{self, held_bytes};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const KINDS: u32 = 20;

/// Counts the fetches; every value ascends with them.
struct Values(u32);

impl Feed for Values {
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.0 += 1;
        let time = Timestamp::new(i64::from(self.0), 0);
        let mut writer = ResultWriter::new(batch.add_part(), time);
        for pmid in list.pmids() {
            writer.set(*pmid);
            let Some(desc) = metadata.desc(*pmid) else { continue };
            let instances: std::ops::Range<InstId> =
                if desc.indom.is_some() { 0..10 } else { -1..0 };
            for instance in instances {
                let value = self.0 * 100 + pmid.item();
                match desc.value_type {
                    ValueType::U32 => writer.in_place(instance, value),
                    ValueType::U64 => writer.block(instance, BlockValue::U64(value.into())),
                    _ => writer.block(instance, BlockValue::F64(value.into())),
                }
            }
        }
        Ok(FetchEvents::default())
    }
}

/// A host of a kind: one counter is of another type than in the first kind, and
/// identifiers of metrics are others.
fn host(kind: u32) -> MemorySource<Values> {
    let mut metadata = MemoryMetadata::default();
    let mut add = |name: String, value_type, semantics, indom: Option<InDom>, units| {
        let pmid = Pmid::new(60, 0, kind + metadata.len() as u32);
        metadata.add_metric(name, MetricDesc { pmid, value_type, indom, semantics, units });
    };
    let (counter, gauge) = (Semantics::Counter, Semantics::Instant);
    for number in 0..35 {
        let is_other = kind == number + 1;
        let value_type = if is_other { ValueType::U32 } else { ValueType::U64 };
        add(format!("fleet.c{number}"), value_type, counter, None, Units::NONE);
        add(format!("fleet.g{number}"), ValueType::F64, gauge, None, Units::NONE);
    }
    for number in 0..plan::DOMAINS {
        let indom = Some(definitions::domain(number));
        for name in ["c0", "c1", "g0", "g1", "b0"] {
            let units = Units { dim_space: i8::from(name == "b0"), ..Units::NONE };
            let name = format!("fleet.d{number}.{name}");
            match name.contains(".g") {
                true => add(name, ValueType::F64, gauge, indom, units),
                false => add(name, ValueType::U64, counter, indom, units),
            }
        }
    }
    MemorySource::new("a host", metadata, Values(0))
}

#[test]
fn a_further_kind_takes_little_and_goes_with_its_last_host() {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Language { dialect: Dialect::Fixed, extensions: true });
    let text = sources.add("fleet.conf", definitions::text());
    registry.add_text(text, &sources, &mut diagnostics);
    let selection = Arc::new(Selection::new(&registry, &registry.all()));
    let engine = Engine::new(registry.language(), Backend::Interp);
    let mut workspace = Workspace::default();
    let mut of_kind = |kind: u32| -> (Arc<Compiled>, Evaluator) {
        let mut host = host(kind);
        let compiled = engine.bind(&selection, &mut host).expect("memory does not fail");
        let mut evaluator = compiled.evaluator();
        for fetch in 0..3 {
            let fetched = evaluator.fetch(&mut host, &mut workspace);
            let (values, _) = fetched.expect("memory does not fail");
            let (_, last) = values.outputs().last().expect("there are metrics");
            assert_eq!(last.len(), usize::from(fetch > 0), "it is a difference");
        }
        (compiled, evaluator)
    };
    let first = of_kind(0);
    let before = held_bytes();
    let further: Vec<_> = (1..KINDS).map(&mut of_kind).collect();
    let each = (held_bytes() - before) / (KINDS as isize - 1);
    assert_eq!(engine.classes(), KINDS as usize);
    assert!(each < 220 << 10, "a further kind takes {each} bytes");
    // All of them are told apart: nobody has the program of another one.
    let programs = further.iter().map(|(compiled, _)| Arc::as_ptr(&compiled.program));
    let mut programs: Vec<_> = programs.chain([Arc::as_ptr(&first.0.program)]).collect();
    programs.sort_unstable();
    programs.dedup();
    assert_eq!(programs.len(), KINDS as usize);

    drop(further);
    assert_eq!(engine.classes(), 1);
    // A workspace finds out with the next program that others are gone.
    let next = of_kind(KINDS);
    let left = held_bytes() - before;
    assert!(left < 2 * each, "{left} bytes are left, {each} of each kind");
    drop((first, next));
}
