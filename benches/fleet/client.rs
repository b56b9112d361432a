//! One host of a fleet as a client has it: a connection, and an evaluator of
//! the definitions. This file has all that the program uses of the library for
//! a live host, so another way to do it replaces only this file.

use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::{Dialect, Language};
use pmderive::engine::{Backend, Compiled, Definitions, Engine, Registry, Selection};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostSpec};
use pmderive_runtime::eval::{Buffers, Evaluation, Evaluator, Step};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchEvents, MetadataSource, SourceError};
use pmderive_runtime::transport::AsyncSocket;

/// The language of the definitions.
pub const LANGUAGE: Language = Language { dialect: Dialect::Fixed, extensions: true };

/// Definitions for any number of hosts.
pub struct ClientDefinitions {
    /// The engine that compiles them.
    pub engine: Arc<Engine>,
    /// The definitions.
    pub registry: Registry,
    /// The same, for sessions.
    pub shared: Arc<Definitions>,
    /// All definitions.
    pub selection: Arc<Selection>,
    /// The options of connections to hosts.
    pub options: Arc<ConnectOptions>,
}

impl ClientDefinitions {
    /// # Panics
    /// There is a mistake in the text.
    pub fn new(text: &str, backend: Backend) -> ClientDefinitions {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let mut registry = Registry::new(LANGUAGE);
        let source = sources.add("fleet.conf", text);
        registry.add_text(source, &sources, &mut diagnostics);
        assert_eq!(diagnostics.errors(), 0, "{diagnostics:?}");
        let selection = Arc::new(Selection::new(&registry, &registry.all()));
        let engine = Arc::new(Engine::new(LANGUAGE, backend));
        let shared = Arc::new(Definitions::with(registry.clone(), sources));
        ClientDefinitions { engine, registry, shared, selection, options: Arc::default() }
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
    evaluator: Evaluator,
    /// The metadata that the evaluator was made for.
    epoch: u64,
}

impl Client {
    /// Connects, and compiles the definitions.
    pub async fn open(
        spec: &HostSpec,
        definitions: &ClientDefinitions,
    ) -> Result<Client, SourceError> {
        let options = Arc::clone(&definitions.options);
        let mut context = AsyncHostContext::open_with(spec, options).await?;
        let compiled = definitions.engine.bind_host(&definitions.selection, &mut context).await?;
        assert_eq!(compiled.diagnostics().errors(), 0, "{:?}", compiled.diagnostics());
        Ok(Client { evaluator: compiled.evaluator(), epoch: context.metadata_epoch(), context })
    }

    /// Compiles definitions for this host alone, by an engine that has seen no other.
    pub async fn compile_alone(
        &mut self,
        definitions: &ClientDefinitions,
    ) -> Result<Arc<Compiled>, SourceError> {
        let engine = Arc::new(Engine::new(LANGUAGE, Backend::Interp));
        engine.bind_host(&definitions.selection, &mut self.context).await
    }

    /// Fetches what the definitions need, on a new connection if there is none.
    /// If metadata may have changed, it first compiles them again.
    pub async fn fetch(
        &mut self,
        definitions: &ClientDefinitions,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        if !self.context.is_connected() {
            self.context.reconnect().await?;
        }
        if self.context.metadata_epoch() != self.epoch {
            let (engine, selection) = (&definitions.engine, &definitions.selection);
            let compiled = engine.bind_host(selection, &mut self.context).await?;
            compiled.put_into(&mut self.evaluator);
            self.epoch = self.context.metadata_epoch();
        }
        batch.clear();
        self.context.fetch(self.evaluator.requests(), batch).await
    }

    /// Evaluates what was fetched.
    pub fn evaluate<'w>(
        &'w mut self,
        batch: &'w ResultBatch,
        events: FetchEvents,
        buffers: &'w mut Buffers,
    ) -> Evaluation<'w> {
        evaluate(&mut self.evaluator, batch, events, buffers)
    }
}

/// Evaluates a batch. Definitions without filters ask for nothing.
///
/// # Panics
/// There are filters, or the batch is of another list.
pub fn evaluate<'w>(
    evaluator: &'w mut Evaluator,
    batch: &'w ResultBatch,
    events: FetchEvents,
    buffers: &'w mut Buffers,
) -> Evaluation<'w> {
    match evaluator.evaluate(batch, events, buffers) {
        Ok(Step::Done(evaluation)) => evaluation,
        Ok(Step::Needs(_)) => panic!("definitions without filters need no names"),
        Err(error) => panic!("{error}"),
    }
}
