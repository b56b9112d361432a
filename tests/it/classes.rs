//! Similar sources share one program. The values, metadata and diagnostics of each are still
//! those of a compiler that has seen no other source.

use std::sync::Arc;
use std::time::Duration;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::EquivalentDomains;
use pmderive::engine::{Backend, Compiled, Engine, Registry, Selection};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions};
use pmderive_runtime::eval::{Value, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};

/// What a host calls its metrics: the same names, other numbers.
#[derive(Clone, Copy)]
struct Host {
    /// Distinguishes identifiers of metrics and of domains.
    pmids: u32,
    domains: u32,
    /// Distinguishes kinds of metadata.
    kind: u32,
    /// Both domains are one.
    one_domain: bool,
}

const PLAIN: Host = Host { pmids: 0, domains: 0, kind: 0, one_domain: false };
const NAMES: [&str; 5] = ["h.count", "h.load", "h.disk.ops", "h.disk.bytes", "h.net.bytes"];

const DEFINITIONS: &str = "
t.rate = rate(h.disk.ops)
t.size = delta(h.disk.bytes) / delta(h.disk.ops)
t.sum = sum(h.disk.bytes) + sum(h.net.bytes)
t.both = h.disk.bytes + h.net.bytes
t.one = h.disk.ops[two]
t.some = matchinst(/^t/, h.disk.bytes)
t.flat = mkconst(7, meta=h.disk.ops)
t.given = mkconst(7, type=u32, semantics=counter, indom=60.7) + h.disk.ops
t.guard = defined(h.fan) ? h.fan : h.load
t.wrong = h.load + h.nosuch
t.dims = h.load + h.disk.bytes
h.count = 1
";

impl Host {
    fn disks(self) -> InDom {
        InDom::new(60, 1 + self.domains)
    }

    fn interfaces(self) -> InDom {
        if self.one_domain { self.disks() } else { InDom::new(61, 5 + self.domains) }
    }

    fn desc(self, at: usize) -> MetricDesc {
        let bytes: Units = Units::parse("byte").expect("units").units;
        let (value_type, indom, semantics, units) = match at {
            0 => (ValueType::U32, None, Semantics::Counter, Units::NONE),
            1 => (ValueType::F64, None, Semantics::Instant, Units::NONE),
            2 => (ValueType::U32, Some(self.disks()), Semantics::Counter, Units::NONE),
            3 => (ValueType::U64, Some(self.disks()), Semantics::Counter, bytes),
            _ => (ValueType::U64, Some(self.interfaces()), Semantics::Counter, bytes),
        };
        let value_type = match (at, self.kind) {
            (3, kind) if kind % 2 == 1 => ValueType::I64,
            _ => value_type,
        };
        let semantics = if at == 2 && self.kind > 1 { Semantics::Instant } else { semantics };
        let pmid = Pmid::new(60, self.pmids, at as u32 + self.pmids % 3);
        MetricDesc { pmid, value_type, indom, semantics, units }
    }

    fn source(self) -> MemorySource<Values> {
        MemorySource::new("a host", self.metadata(), Values { host: self, tick: 0 })
    }

    fn metadata(self) -> MemoryMetadata {
        let mut metadata = MemoryMetadata::default();
        for (at, name) in NAMES.iter().enumerate() {
            metadata.add_metric(*name, self.desc(at));
        }
        if self.kind == 3 {
            let pmid = Pmid::new(60, self.pmids, 900);
            metadata.add_metric("h.fan", MetricDesc { pmid, ..self.desc(1) });
            metadata.add_metric(format!("h.nosuck{}", self.pmids), self.desc(0));
        }
        let instances = [(1, "one"), (2, "two"), (3, "three")];
        for indom in [self.disks(), self.interfaces(), InDom::new(60, 7)] {
            let list = instances.map(|(id, name)| (id, name.into()));
            metadata.set_instances(indom, list.to_vec());
        }
        metadata
    }
}

/// Values that depend on name, instance and time, not on identifiers.
struct Values {
    host: Host,
    tick: u64,
}

impl Feed for Values {
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.tick += 1;
        let time = Timestamp::new(1_000 + self.tick as i64, 0);
        let mut writer = ResultWriter::new(batch.add_part(), time);
        for pmid in list.pmids() {
            writer.set(*pmid);
            let at = (0..NAMES.len()).find(|at| self.host.desc(*at).pmid == *pmid).unwrap_or(1);
            let desc = self.host.desc(at);
            let instances: std::ops::RangeInclusive<i32> =
                if desc.indom.is_some() { 1..=3 } else { -1..=-1 };
            for instance in instances {
                let value = self.tick * (10 + at as u64) + u64::from(instance.unsigned_abs());
                match desc.value_type {
                    ValueType::U32 => writer.in_place(instance, value as u32),
                    ValueType::I64 => writer.block(instance, BlockValue::I64(value as i64)),
                    ValueType::U64 => writer.block(instance, BlockValue::U64(value)),
                    _ => writer.block(instance, BlockValue::F64(value as f64)),
                }
            }
        }
        batch.domains.extend(list.domains().iter().map(|indom| metadata.instances(*indom)));
        Ok(FetchEvents::default())
    }
}

fn registry() -> (Registry, SourceMap) {
    registry_of(DEFINITIONS)
}

fn registry_of(definitions: &str) -> (Registry, SourceMap) {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(Dialect::Fixed);
    let source = sources.add("<test>", definitions);
    registry.add_text(source, &sources, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    (registry, sources)
}

fn engine() -> Engine {
    Engine::new(Dialect::Fixed, Backend::Interp)
}

/// What three fetches give, in words.
fn values(compiled: &Arc<Compiled>, source: &mut MemorySource<impl Feed>) -> Vec<String> {
    let (mut evaluator, mut workspace) = (compiled.evaluator(), Workspace::default());
    let mut words = Vec::new();
    for _ in 0..3 {
        let (evaluation, _) =
            evaluator.fetch(source, &mut workspace).expect("memory does not fail");
        for metric in compiled.metrics.iter() {
            let values = metric.output.map(|output| evaluation.get(output));
            let status = values.as_ref().map(|values| values.status);
            let list: Vec<(i32, String)> = values
                .iter()
                .flat_map(|values| values.iter())
                .map(|(id, value)| (id, word(value)))
                .collect();
            words.push(format!("{} {:?} {status:?} {list:?}", metric.name, metric.desc));
        }
    }
    words
}

fn word(value: Value<'_>) -> String {
    format!("{value:?}")
}

/// Diagnostics as they are told.
fn told(diagnostics: &Diagnostics) -> Vec<String> {
    diagnostics.iter().map(|one| format!("{one:?}")).collect()
}

/// Definitions that look at no names of instances.
const PLAIN_DEFINITIONS: &str = "
s.rate = rate(h.disk.ops)
s.size = delta(h.disk.bytes) / delta(h.disk.ops)
s.both = h.disk.bytes + h.net.bytes
s.sum = sum(h.disk.bytes) + sum(h.net.bytes)
s.chosen = h.load > 1 ? h.disk.bytes : h.net.bytes
s.load = h.load + count(h.disk.ops)
";

/// Instances that a metric over a domain has at one time: none, some, in
/// another order, one of them twice.
const LISTS: [&[i32]; 7] = [&[1, 2, 3], &[1, 2, 3], &[3, 1, 2], &[2, 3], &[1], &[1, 2, 2], &[]];

/// Instances that a number chooses, for each metric anew with every fetch.
struct Chosen {
    values: Values,
    number: u32,
}

impl Feed for Chosen {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let Values { host, tick } = &mut self.values;
        *tick += 1;
        let time = Timestamp::new(1_000 + *tick as i64, 0);
        let mut writer = ResultWriter::new(batch.add_part(), time);
        for pmid in list.pmids() {
            let at = (0..NAMES.len()).find(|at| host.desc(*at).pmid == *pmid).unwrap_or(1);
            // A few numbers give all metrics the same, which is the common case.
            let key = match self.number % 3 {
                0 => u64::from(self.number / 3),
                _ => u64::from(self.number) * 31 + *tick * 7 + at as u64 * 5,
            };
            if key % 11 == 10 {
                writer.status(*pmid, PmStatus::AGAIN);
                continue;
            }
            writer.set(*pmid);
            let desc = host.desc(at);
            let instances = match desc.indom {
                Some(_) => LISTS[key as usize % LISTS.len()],
                None => &[-1],
            };
            for (place, instance) in (0u64..).zip(instances) {
                // Where an instance is there twice it matters which one counts.
                let value =
                    *tick * (10 + at as u64) * (1 + place) + u64::from(instance.unsigned_abs());
                match desc.value_type {
                    ValueType::U32 => writer.in_place(*instance, value as u32),
                    ValueType::U64 => writer.block(*instance, BlockValue::U64(value)),
                    _ => writer.block(*instance, BlockValue::F64(value as f64)),
                }
            }
        }
        Ok(FetchEvents::default())
    }
}

/// Whatever instances others had when they began.
#[test]
fn a_host_begins_with_what_it_has() {
    let (registry, _) = registry_of(PLAIN_DEFINITIONS);
    let chosen = registry.all();
    let shared = engine();
    let host = Host { one_domain: true, ..PLAIN };
    let source = |number| {
        let values = Values { host, tick: 0 };
        MemorySource::new("a host", host.metadata(), Chosen { values, number })
    };
    let compile = |engine: &Engine| {
        let mut diagnostics = Diagnostics::default();
        let compiled = engine.compile(&registry, &chosen, &mut source(0), &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        compiled.expect("memory does not fail")
    };
    let together = compile(&shared);
    // What one began with stays in use.
    let _user = together.evaluator();
    for number in 0..300 {
        let expected = values(&compile(&engine()), &mut source(number));
        assert_eq!(values(&together, &mut source(number)), expected, "host {number}");
    }
}

#[test]
fn sources_that_are_alike_share_a_program_and_nothing_else_changes() {
    let (registry, _) = registry();
    let chosen = registry.all();
    let shared = engine();
    let mut programs = Vec::new();
    let mut kept = Vec::new();
    for number in 0..24u32 {
        let (kind, one_domain) = (number % 4, number % 8 > 5);
        let host = Host { pmids: number * 7 % 11, domains: number % 5, kind, one_domain };
        let (mut own, mut together) = (Diagnostics::default(), Diagnostics::default());
        let fresh = engine().compile(&registry, &chosen, &mut host.source(), &mut own);
        let fresh = fresh.expect("memory does not fail");
        let compiled = shared.compile(&registry, &chosen, &mut host.source(), &mut together);
        let compiled = compiled.expect("memory does not fail");
        assert_eq!(told(&together), told(&own), "host {number}");
        assert!(!own.is_empty(), "there are mistakes to tell");
        assert_eq!(compiled.binding, fresh.binding, "host {number}");
        let expected = values(&fresh, &mut host.source());
        assert_eq!(values(&compiled, &mut host.source()), expected, "host {number}");
        let bound = shared.bind(&Arc::new(Selection::new(&registry, &chosen)), &mut host.source());
        let bound = bound.expect("memory does not fail");
        assert!(Arc::ptr_eq(&bound, &compiled), "host {number}");
        programs.push((kind, one_domain, Arc::as_ptr(&compiled.program)));
        kept.push(compiled);
    }
    for (kind, one_domain, program) in &programs {
        for (other_kind, other_one, other) in &programs {
            let alike = (kind, one_domain) == (other_kind, other_one);
            assert_eq!(program == other, alike, "{kind} {one_domain}, {other_kind} {other_one}");
        }
    }
    assert_eq!(shared.classes(), 6);
    drop(kept);
    assert_eq!(shared.classes(), 0, "nobody uses them any more");
}

#[test]
fn a_literal_domain_that_a_host_has_makes_a_class_of_its_own() {
    let (registry, _) = registry();
    let chosen = registry.all();
    let engine = engine();
    // The disks of the second host are the domain that `indom=` names.
    let hosts = [PLAIN, Host { domains: 6, ..PLAIN }];
    let compiled = hosts.map(|host| {
        let mut diagnostics = Diagnostics::default();
        let compiled = engine.compile(&registry, &chosen, &mut host.source(), &mut diagnostics);
        compiled.expect("memory does not fail")
    });
    assert!(!Arc::ptr_eq(&compiled[0].program, &compiled[1].program));
    let of_given = |compiled: &Compiled| compiled.metrics[7].desc.is_ok();
    assert_eq!(compiled.each_ref().map(|one| of_given(one)), [false, true]);
}

#[test]
fn equivalent_domains_are_part_of_what_is_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("indom.conf");
    std::fs::write(&file, "60.1 61.5\n").expect("a file");
    let (registry, _) = registry();
    let chosen = registry.all();
    let engine = engine().with_equivalent_domains(EquivalentDomains::from_file(&file));
    let hosts = [PLAIN, Host { domains: 1, ..PLAIN }, Host { pmids: 4, ..PLAIN }];
    let compiled = hosts.map(|host| {
        let mut diagnostics = Diagnostics::default();
        let compiled = engine.compile(&registry, &chosen, &mut host.source(), &mut diagnostics);
        compiled.expect("memory does not fail")
    });
    let both = compiled.each_ref().map(|compiled| compiled.metrics[3].desc.is_ok());
    assert_eq!(both, [true, false, true]);
    assert!(Arc::ptr_eq(&compiled[0].program, &compiled[2].program));
}

#[test]
fn other_definitions_and_controls_make_other_programs() {
    let (registry, mut sources) = registry();
    let engine = engine();
    let bind = |registry: &Registry, names: &[&str]| {
        let chosen: Vec<_> = names.iter().filter_map(|name| registry.get(name)).collect();
        let selection = Arc::new(Selection::new(registry, &chosen));
        engine.bind(&selection, &mut PLAIN.source()).expect("memory does not fail")
    };
    let one = bind(&registry, &["t.rate", "t.guard"]);
    assert!(Arc::ptr_eq(&one, &bind(&registry.clone(), &["t.rate", "t.guard"])));
    assert!(!Arc::ptr_eq(&one, &bind(&registry, &["t.guard", "t.rate"])), "another order");
    assert!(!Arc::ptr_eq(&one, &bind(&registry, &["t.rate"])));
    let mut other = registry.clone();
    let source = sources.add("t.rate", "rate(h.disk.ops) * 2");
    other.replace("t.rate", source, &sources, &mut Diagnostics::default()).expect("replaced");
    assert!(!Arc::ptr_eq(&one, &bind(&other, &["t.rate", "t.guard"])));
    let mut other = registry.clone();
    other.set_control(pmderive::syntax::ControlOption::NoValue, 1).expect("an option");
    assert!(!Arc::ptr_eq(&one, &bind(&other, &["t.rate", "t.guard"])));
}

#[test]
fn an_evaluator_keeps_what_like_sources_share() {
    let (registry, _) = registry();
    let engine = engine();
    let selection = Arc::new(Selection::new(&registry, &registry.all()));
    let bind = |host: Host| {
        let compiled = engine.bind(&selection, &mut host.source()).expect("memory does not fail");
        compiled.evaluator()
    };
    let first = bind(PLAIN);
    let second = bind(Host { pmids: 5, domains: 2, ..PLAIN });
    assert!(Arc::ptr_eq(first.program(), second.program()));
    drop(first);
    assert!(Arc::ptr_eq(bind(PLAIN).program(), second.program()));
    drop(second);
    assert_eq!(engine.classes(), 0);
}

/// A job that an application drops without running it is done by whoever needs
/// its program.
#[test]
fn a_job_that_is_dropped_keeps_nobody_waiting() {
    let mut world = World::new();
    world.add(Metric::new("h.load", Script::counter(1.5)));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let (registry, _) = registry();
    let selection = Arc::new(Selection::new(&registry, &registry.all()));
    let engine = Arc::new(engine().with_jobs_run_by(drop));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bound = runtime.expect("a runtime").block_on(async {
        let options = ConnectOptions::default();
        let host = AsyncHostContext::open_with(&pmcd.spec(), options).await;
        let mut host = host.expect("a connection");
        let bind = engine.bind_host(&selection, &mut host);
        tokio::time::timeout(Duration::from_secs(30), bind).await
    });
    let compiled = bound.expect("nobody waits for a job that is gone").expect("a host");
    assert!(compiled.metrics.iter().any(|metric| metric.desc.is_ok()), "{:?}", compiled.metrics);
}

/// Hosts that come up together: one compiles, all wait without blocking, and
/// one that goes away while it waits harms no other.
#[test]
fn async_hosts_of_a_kind_are_compiled_for_once() {
    let mut world = World::new();
    let disks = world.add_domain(&["one", "two", "three"]);
    world.add(Metric::new("h.load", Script::counter(1.5)));
    world.add(Metric::new("h.disk.ops", Script::counter(100.0)).per(disks));
    world.add(Metric::new("h.disk.bytes", Script::counter(7000.0)).per(disks));
    let world = Arc::new(world);
    let pmcd = FakePmcd::start(FakeHost::new(Arc::clone(&world)).named("web1"));
    let (registry, _) = registry();
    let selection = Arc::new(Selection::new(&registry, &registry.all()));
    let engine = Arc::new(engine());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let bound: Vec<Arc<Compiled>> = runtime.block_on(async {
        let mut tasks = Vec::new();
        for number in 0..40 {
            let (engine, selection) = (Arc::clone(&engine), Arc::clone(&selection));
            let spec = pmcd.spec();
            let bind = async move {
                let options = ConnectOptions::default();
                let mut host = AsyncHostContext::open_with(&spec, options).await?;
                engine.bind_host(&selection, &mut host).await
            };
            let task = tokio::spawn(bind);
            if number % 10 == 0 {
                tokio::task::yield_now().await;
                task.abort();
                continue;
            }
            tasks.push(task);
        }
        let mut bound = Vec::new();
        for task in tasks {
            bound.push(task.await.expect("no panic").expect("a host"));
        }
        bound
    });
    assert_eq!(bound.len(), 36);
    assert!(bound.iter().all(|one| Arc::ptr_eq(one, &bound[0])));
    assert_eq!(engine.classes(), 1);
    let usable = bound[0].metrics.iter().filter(|metric| metric.desc.is_ok()).count();
    assert!(usable >= 6, "{:?}", bound[0].metrics);
    assert!(!bound[0].diagnostics().is_empty());
}
