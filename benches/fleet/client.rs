//! One host of a fleet as a client has it: a connection and what evaluates the
//! definitions. All that the program uses of the library for a live host is
//! here, so that it can be replaced when the library has a better way.
//!
//! The evaluator asks its source for a fetch, and waits for it. An asynchronous
//! context is no such source: it fetches first, and [`Fetched`] hands over what
//! came.

use std::sync::Arc;

use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Engine, Registry, Selection};
use pmderive::source::SourceMap;
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostSpec};
use pmderive_runtime::eval::{Evaluation, Evaluator, Workspace};
use pmderive_runtime::model::{InDom, InstanceDomain, MetricDesc, PmStatus, Pmid};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};
use pmderive_runtime::transport::AsyncSocket;

/// What definitions are written in.
pub const LANGUAGE: Language = Language { dialect: Dialect::Fixed, extensions: true };

/// Definitions for any number of hosts.
pub struct Definitions {
    /// What compiles them.
    pub engine: Arc<Engine>,
    /// The definitions.
    pub registry: Registry,
    /// All of them.
    pub selection: Arc<Selection>,
}

impl Definitions {
    /// # Panics
    /// There is a mistake in the text.
    pub fn new(text: &str, backend: Backend) -> Definitions {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let mut registry = Registry::new(LANGUAGE);
        let source = sources.add("fleet.conf", text);
        registry.add_text(source, &sources, &mut diagnostics);
        assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
        let selection = Arc::new(Selection::new(&registry, &registry.all()));
        Definitions { engine: Arc::new(Engine::new(LANGUAGE, backend)), registry, selection }
    }

    /// Compiles them for a source.
    pub fn compile(&self, source: &mut dyn MetadataSource) -> Result<Arc<Compiled>, SourceError> {
        let mut diagnostics = Diagnostics::default();
        let selection = self.registry.all();
        let compiled = self.engine.compile(&self.registry, &selection, source, &mut diagnostics);
        if compiled.is_ok() {
            assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
        }
        compiled
    }
}

/// A host.
pub struct Client {
    context: AsyncHostContext<AsyncSocket>,
    /// What the evaluator needs.
    list: FetchList,
    evaluator: Evaluator,
    /// The metadata that the evaluator was made for.
    epoch: u64,
}

impl Client {
    /// Connects, and compiles the definitions.
    pub async fn open(spec: &HostSpec, definitions: &Definitions) -> Result<Client, SourceError> {
        let options = ConnectOptions::default();
        let mut context = AsyncHostContext::open_with(spec, options).await?;
        let compiled = definitions.engine.bind_host(&definitions.selection, &mut context).await?;
        assert_eq!(compiled.diagnostics().errors(), 0, "{:?}", compiled.diagnostics());
        Ok(Client {
            list: list_of(&compiled),
            evaluator: compiled.evaluator(),
            epoch: context.metadata_epoch(),
            context,
        })
    }

    /// Compiles definitions for this host alone, by an engine that has seen no other.
    pub async fn compile_alone(
        &mut self,
        definitions: &Definitions,
    ) -> Result<Arc<Compiled>, SourceError> {
        let engine = Engine::new(LANGUAGE, Backend::Interp);
        let Definitions { registry, .. } = definitions;
        let chosen = registry.all();
        let compile = |source: &mut dyn MetadataSource| {
            engine.compile(registry, &chosen, source, &mut Diagnostics::default())
        };
        self.context.with_metadata(compile).await
    }

    /// Fetches what the definitions need, on a new connection if there is none,
    /// and compiles them again before if metadata may have changed.
    pub async fn fetch(
        &mut self,
        definitions: &Definitions,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        if !self.context.is_connected() {
            self.context.reconnect().await?;
        }
        if self.context.metadata_epoch() != self.epoch {
            let (engine, selection) = (&definitions.engine, &definitions.selection);
            let compiled = engine.bind_host(selection, &mut self.context).await?;
            self.list = list_of(&compiled);
            let (program, binding) = (Arc::clone(&compiled.program), Arc::clone(&compiled.binding));
            self.evaluator.change_program(program, binding);
            self.epoch = self.context.metadata_epoch();
        }
        batch.clear();
        self.context.fetch(&self.list, batch).await
    }

    /// Evaluates what was fetched.
    pub fn evaluate<'w>(
        &'w mut self,
        batch: &mut ResultBatch,
        events: FetchEvents,
        workspace: &'w mut Workspace,
    ) -> Evaluation<'w> {
        evaluate(&mut self.evaluator, batch, events, workspace)
    }
}

fn list_of(compiled: &Compiled) -> FetchList {
    let binding = &compiled.binding;
    FetchList::new(binding.pmids.clone(), binding.fetched_domains.clone())
}

/// Evaluates a batch, whose content goes to the workspace. What the workspace
/// had goes to the batch.
pub fn evaluate<'w>(
    evaluator: &'w mut Evaluator,
    batch: &mut ResultBatch,
    events: FetchEvents,
    workspace: &'w mut Workspace,
) -> Evaluation<'w> {
    let outcome = evaluator.fetch(&mut Fetched { batch, events }, workspace);
    outcome.expect("definitions without filters ask for nothing").0
}

/// A fetch that is done.
struct Fetched<'b> {
    batch: &'b mut ResultBatch,
    events: FetchEvents,
}

impl Fetched<'_> {
    fn nothing<A>(&self) -> Result<A, SourceError> {
        Err(SourceError::Status { target: self.name(), status: PmStatus::AGAIN })
    }
}

impl MetadataSource for Fetched<'_> {
    fn lookup_names(&mut self, _: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        self.nothing()
    }

    fn lookup_descs(
        &mut self,
        _: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        self.nothing()
    }

    fn instance_domain(
        &mut self,
        _: InDom,
        _: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.nothing()
    }

    fn traverse(&mut self, _: &str) -> Result<Vec<String>, SourceError> {
        self.nothing()
    }

    fn name(&self) -> String {
        "a fetch that is done".to_owned()
    }

    fn metadata_epoch(&self) -> u64 {
        0
    }
}

impl FetchSource for Fetched<'_> {
    fn fetch(
        &mut self,
        _: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        std::mem::swap(batch, self.batch);
        Ok(self.events)
    }
}
