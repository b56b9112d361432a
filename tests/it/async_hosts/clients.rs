//! The ways to fetch and evaluate, which must all give the same results.

use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Engine, Registry, Selection, Session, Space};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostContext, HostSpec};
use pmderive_runtime::eval::{
    Asked, Buffers, Evaluation, Evaluator, Step, Value, Values, Workspace,
};
use pmderive_runtime::model::{InstId, Timestamp};
use pmderive_runtime::program::{OutputId, Status};
use pmderive_runtime::source::{FetchEvents, Freshness, Question, SourceError};

use crate::choosing::choosing;

/// Those that all languages understand, all but that of version 6, and those
/// with extensions only. Constants are spread over links only: what comes along
/// with values is not asked for any more.
const OF_ALL: [&str; 10] = [
    "n.reads * 2",
    "rate(n.reads)",
    "n.reads[sdb]",
    "n.size[nvme0]",
    "n.size[sda] + n.size[sdb]",
    "matchinst(/^sd/, n.size)",
    "matchinst(!/^sda$/, n.size) * 2",
    "n.bytes[eth0] * 8",
    "count(n.reads) + max(n.size)",
    "n.level * n.size",
];
const OF_7: [&str; 7] = [
    "rate(n.reads[sdb])",
    "delta(n.bytes[eth0]) / delta(n.bytes)",
    "mkconst(3, meta=n.load)",
    "mkconst(2, type=double, semantics=instant, indom=60.2) + instant(n.bytes)",
    "n.load / mkconst(4, meta=n.load)",
    "delta(matchinst(/^(sd|x)/, n.reads) * 2)",
    "rate(n.bytes) > 500000 ? n.bytes : novalue()",
];
const EXTENDED: [&str; 9] = [
    "topk(2, rate(n.reads))",
    "avg_over(rate(n.reads), \"3 sec\")",
    "max_over(matchinst(/^sd/, n.size), \"4 sec\")",
    "ewma(n.level, \"2 sec\")",
    "d.m5 * 2",
    "rate(d.m0) + d.m1[sda]",
    "matchinst(/sd/, d.m17)",
    "quantile(0.5, d.m5)",
    "n.mode == \"busy\" && n.level > 20",
];

/// What is evaluated, and by what.
pub struct ClientDefinitions {
    engine: Arc<Engine>,
    registry: Registry,
    selection: Arc<Selection>,
}

impl ClientDefinitions {
    pub fn new(language: Language) -> ClientDefinitions {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let mut registry = Registry::new(language);
        let of_7 = if language.dialect.is_version_7() { &OF_7[..] } else { &[] };
        let extended = if language.extensions { &EXTENDED[..] } else { &[] };
        // Names go by the place in the whole list.
        let texts = OF_ALL.iter().chain(of_7).chain(extended);
        for (number, text) in texts.enumerate() {
            let source = sources.add("<test>", *text);
            let name = format!("d.m{number}");
            let registered = registry.register(&name, source, &sources, &mut diagnostics);
            assert!(registered.is_ok(), "{text}: {diagnostics:?}");
        }
        let engine = Arc::new(Engine::new(language, Backend::Interp));
        let selection = Arc::new(Selection::new(&registry, &registry.all()));
        ClientDefinitions { engine, registry, selection }
    }

    async fn bind(&self, host: &mut AsyncHostContext) -> Result<Arc<Compiled>, SourceError> {
        self.engine.bind_host(&self.selection, host).await
    }

    /// Whether the metadata of a host count when they change.
    fn binds_again(&self) -> bool {
        self.engine.dialect() == Dialect::Fixed
    }
}

/// The values of all metrics.
#[derive(Debug, PartialEq)]
pub struct Sampled {
    pub events: FetchEvents,
    pub timestamp: Timestamp,
    pub metrics: Vec<Metric>,
}

/// The values of a metric, with the bits of numbers.
#[derive(Debug, PartialEq)]
pub struct Metric {
    pub status: Status,
    pub instances: Vec<InstId>,
    pub values: Vec<Bits>,
}

#[derive(Debug, PartialEq)]
pub enum Bits {
    Number(u64),
    Bytes(Vec<u8>),
}

/// A sample, or that there is none. What a message says of a broken connection
/// depends on when the break is noticed.
pub type Outcome = Result<Sampled, ()>;

impl Sampled {
    fn new(values: &Evaluation<'_>, events: FetchEvents) -> Sampled {
        let bits = |value: Value<'_>| match value {
            Value::I32(value) => Bits::Number(u64::from(value.cast_unsigned())),
            Value::U32(value) => Bits::Number(value.into()),
            Value::I64(value) => Bits::Number(value.cast_unsigned()),
            Value::U64(value) => Bits::Number(value),
            Value::F32(value) => Bits::Number(value.to_bits().into()),
            Value::F64(value) => Bits::Number(value.to_bits()),
            Value::Text(bytes) | Value::Bytes(bytes) => Bits::Bytes(bytes.to_vec()),
        };
        let metric = |(_, values): (OutputId, Values<'_>)| {
            let (status, instances) = (values.status, values.instances.to_vec());
            Metric { status, instances, values: values.iter().map(|(_, v)| bits(v)).collect() }
        };
        let metrics = values.outputs().map(metric).collect();
        Sampled { events, timestamp: values.timestamp(), metrics }
    }
}

/// Calls that block.
pub struct Blocking {
    session: Session<HostContext>,
    space: Space,
}

impl Blocking {
    pub fn open(definitions: &ClientDefinitions, spec: &HostSpec) -> Blocking {
        let host = HostContext::open_with(spec, ConnectOptions::default()).expect("a connection");
        let ClientDefinitions { engine, registry, .. } = definitions;
        let diagnostics = &mut Diagnostics::default();
        let session = choosing(Arc::clone(engine), host, registry, &registry.all(), diagnostics);
        let session = session.expect("answers");
        assert_eq!(diagnostics.len(), 0, "{diagnostics:?}");
        Blocking { session, space: Space::default() }
    }

    pub fn sample(&mut self, definitions: &ClientDefinitions) -> Outcome {
        let registry = &definitions.registry;
        if self.session.is_stale() {
            let diagnostics = &mut Diagnostics::default();
            self.session.choose(&registry.all(), diagnostics).map_err(drop)?;
        }
        let sample = self.session.sample(&mut self.space).map_err(drop)?;
        Ok(Sampled::new(&sample.values, sample.events))
    }
}

/// A host whose calls are futures, with its evaluator.
pub struct Futures {
    pub host: AsyncHostContext,
    pub evaluator: Evaluator,
    pub workspace: Workspace,
    compiled: Arc<Compiled>,
    /// The metadata that the evaluator was made for; none after a failure.
    epoch: Option<u64>,
    /// Events of replies that were not used.
    before: FetchEvents,
}

impl Futures {
    pub async fn open(definitions: &ClientDefinitions, spec: &HostSpec) -> Futures {
        let opened = AsyncHostContext::open_with(spec, ConnectOptions::default()).await;
        let mut host = opened.expect("a connection");
        let compiled = definitions.bind(&mut host).await.expect("answers");
        let evaluator = compiled.evaluator();
        let epoch = Some(host.metadata_epoch());
        let (workspace, before) = (Workspace::default(), FetchEvents::default());
        Futures { host, evaluator, workspace, compiled, epoch, before }
    }

    async fn refresh(&mut self, definitions: &ClientDefinitions) -> Result<(), SourceError> {
        if definitions.binds_again() && self.epoch != Some(self.host.metadata_epoch()) {
            let compiled = definitions.bind(&mut self.host).await?;
            compiled.put_into(&mut self.evaluator);
            self.compiled = compiled;
            self.epoch = Some(self.host.metadata_epoch());
        }
        Ok(())
    }

    /// Fetches. A reply that announces changes is not used if it may be of other metrics.
    async fn fetch(&mut self, definitions: &ClientDefinitions) -> Result<FetchEvents, ()> {
        self.refresh(definitions).await.map_err(drop)?;
        for turn in 0..3 {
            let Futures { host, evaluator, workspace, epoch, .. } = self;
            let fetched = host.fetch(evaluator.requests(), &mut workspace.batch).await;
            let events = fetched.map_err(|error| forget(epoch, &error))?;
            let before = Arc::clone(&self.compiled);
            if turn < 2 && events.changes.concerns_metadata() {
                self.before = self.before.with(events);
                self.refresh(definitions).await.map_err(drop)?;
                if !Arc::ptr_eq(&before, &self.compiled) {
                    continue;
                }
            }
            return Ok(std::mem::take(&mut self.before).with(events));
        }
        unreachable!("the last turn returns")
    }

    pub async fn sample(&mut self, definitions: &ClientDefinitions) -> Outcome {
        let events = self.fetch(definitions).await?;
        let Futures { host, evaluator, workspace, epoch, .. } = self;
        let outcome = host
            .evaluate_fetched(events, evaluator, &workspace.batch, &mut workspace.buffers)
            .await;
        let values = outcome.map_err(|error| forget(epoch, &error))?;
        Ok(Sampled::new(&values, events))
    }
}

/// A host that failed may be another one now.
fn forget(epoch: &mut Option<u64>, error: &SourceError) {
    epoch.take_if(|_| error.is_transient());
}

/// A host whose calls are futures, with an evaluator that is asked step by
/// step and shares its buffers with others.
pub struct Stepwise {
    futures: Futures,
    /// How often domains were asked for that had changed.
    pub asked_anew: usize,
}

impl Stepwise {
    pub async fn open(definitions: &ClientDefinitions, spec: &HostSpec) -> Stepwise {
        let futures = Futures::open(definitions, spec).await;
        Stepwise { futures, asked_anew: 0 }
    }

    /// Gives the evaluation up behind so many questions and does it again.
    pub async fn sample(
        &mut self,
        definitions: &ClientDefinitions,
        buffers: &mut Buffers,
        gives_up: usize,
    ) -> Outcome {
        let events = self.futures.fetch(definitions).await?;
        let Futures { host, evaluator, workspace, epoch, .. } = &mut self.futures;
        let batch = &workspace.batch;
        let mut step = evaluator.evaluate(batch, events, buffers).map_err(drop)?;
        let mut questions = 0;
        loop {
            let mut pending = match step {
                Step::Done(values) => return Ok(Sampled::new(&values, events)),
                Step::Needs(pending) => pending,
            };
            questions += 1;
            if questions == gives_up {
                drop(pending);
                step = evaluator.evaluate(batch, events, buffers).map_err(drop)?;
                continue;
            }
            let Asked { questions, answers } = pending.asked();
            if let [Question::Domain(_, Freshness::Current), ..] = *questions {
                self.asked_anew += 1;
            }
            let answered = host.ask(&questions, answers).await;
            answered.map_err(|error| forget(epoch, &error))?;
            step = pending.proceed().map_err(drop)?;
        }
    }
}
