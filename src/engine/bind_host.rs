//! Binds definitions to hosts without blocking. Questions to hosts are futures.
//! The engine's threads compile once for all hosts of a class, however many
//! hosts wait.

use std::future::poll_fn;
use std::sync::Arc;

use pmderive_runtime::context::{AsyncHostContext, HostSpec};
use pmderive_runtime::source::SourceError;
use pmderive_runtime::transport::Transport;

use super::classes::{Class, Compiled};
use super::{Engine, Registered, Registry, Selection};
use crate::bind::{NameAnswer, ask_host};
use crate::diag::Diagnostics;

/// Wakes the waiting tasks when the job ends in any way, also if it never ran.
struct EndOnDrop(Arc<Class>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.compilation.end();
    }
}

/// Asks a host in a boxed future. The future is large and seldom needed. The
/// tasks of thousands of hosts must not reserve room for it.
async fn ask_apart<T: Transport>(
    selection: &Selection,
    host: &mut AsyncHostContext<T>,
) -> Result<Vec<NameAnswer>, SourceError> {
    let mentions = selection.mentions();
    let found = Box::pin(ask_host(mentions, host)).await?;
    host.settle();
    Ok(found)
}

impl Engine {
    /// [`Engine::bind`] for a host, without blocking. It needs two round trips
    /// and, for the first host of its kind, the time to compile on another
    /// thread. Dropping the future loses only the answers.
    ///
    /// # Errors
    /// The host failed, or the limit of kinds is reached ([`Engine::with_kind_limit`]).
    /// Mistakes in definitions are no errors.
    pub async fn bind_host<T: Transport>(
        self: &Arc<Self>,
        selection: &Arc<Selection>,
        host: &mut AsyncHostContext<T>,
    ) -> Result<Arc<Compiled>, SourceError> {
        let found = ask_apart(selection, host).await?;
        self.compiled_elsewhere(selection, &found, host.spec()).await
    }

    /// [`Engine::compile`] for a host, without blocking. It works as
    /// [`Engine::bind_host`]. If names are unknown, it needs one more round
    /// trip to find names to suggest.
    ///
    /// # Errors
    /// The host failed. Mistakes in definitions are in `diagnostics`.
    pub async fn compile_host<T: Transport>(
        self: &Arc<Self>,
        registry: &Registry,
        selection: &[&Registered],
        host: &mut AsyncHostContext<T>,
        diagnostics: &mut Diagnostics,
    ) -> Result<Arc<Compiled>, SourceError> {
        let selection = Arc::new(Selection::new(registry, selection));
        let found = ask_apart(&selection, host).await?;
        let compiled = self.compiled_elsewhere(&selection, &found, host.spec()).await?;
        let names = if compiled.needs_names() { host.traverse("").await? } else { Vec::new() };
        self.diagnose(&compiled, &found, &names, diagnostics);
        Ok(compiled)
    }

    /// The compiled definitions for sources with these answers. The engine's
    /// threads compile them unless they exist.
    async fn compiled_elsewhere(
        self: &Arc<Self>,
        selection: &Arc<Selection>,
        found: &[NameAnswer],
        spec: &HostSpec,
    ) -> Result<Arc<Compiled>, SourceError> {
        let (class, identities) =
            self.class_of(selection, found, self.kind_limit, || spec.to_string())?;
        if class.build.get().is_none() {
            let mut work = Some((found.to_vec(), identities.clone()));
            poll_fn(|context| {
                class.compilation.poll(context, || {
                    let Some((found, identities)) = work.take() else { return };
                    // The job owns the guard, so a job that is dropped unrun has
                    // ended too.
                    let guard = EndOnDrop(Arc::clone(&class));
                    let engine = Arc::clone(self);
                    self.threads.run(Box::new(move || {
                        let EndOnDrop(class) = &guard;
                        class
                            .build
                            .get_or_init(|| engine.build(&class.selection, &found, identities));
                    }));
                })
            })
            .await;
        }
        // Runs only if the job failed or was dropped. The failure then repeats
        // here and shows its cause.
        let make = || self.build(selection, found, identities.clone());
        Ok(class.compiled(class.build.get_or_init(make), identities))
    }
}
