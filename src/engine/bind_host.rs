//! Binds to hosts without blocking: the questions go out as futures, and the
//! engine's own threads compile, once for all hosts of a class however many
//! wait.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pmderive_runtime::context::{AsyncHostContext, HostSpec};
use pmderive_runtime::source::SourceError;
use pmderive_runtime::transport::Transport;

use super::classes::{Class, Compiled};
use super::{Engine, Registered, Registry, Selection};
use crate::bind::{Found, ask_host};
use crate::diag::Diagnostics;

/// How far compiling for a class has come on the engine's threads.
#[derive(Debug, Default)]
pub(super) struct Flight {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    /// Nobody has asked for it.
    #[default]
    Grounded,
    /// Under way, and waited for.
    Flying(Vec<Waker>),
    /// It has ended: there is a program, unless the compiler panicked.
    Over,
}

impl Flight {
    /// Ready at the end; the first who asks begins with `start`.
    fn poll(&self, context: &Context<'_>, start: impl FnOnce()) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = || context.waker().clone();
        match &mut *state {
            State::Over => return Poll::Ready(()),
            State::Flying(waiting) => {
                if !waiting.iter().any(|one| one.will_wake(context.waker())) {
                    waiting.push(waker());
                }
                return Poll::Pending;
            }
            State::Grounded => *state = State::Flying(vec![waker()]),
        }
        drop(state);
        start();
        Poll::Pending
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Flying(waiting) = std::mem::replace(&mut *state, State::Over) {
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// Tells those who wait of the end, whatever it is.
struct Landing(Arc<Class>);

impl Drop for Landing {
    fn drop(&mut self) {
        self.0.flight().end();
    }
}

/// Asks a host in a boxed future: it is large and needed seldom, and the tasks
/// of thousands of hosts must not hold room for it all the time.
async fn ask_apart<T: Transport>(
    selection: &Selection,
    host: &mut AsyncHostContext<T>,
) -> Result<Vec<Found>, SourceError> {
    let mentions = selection.mentions();
    let found = Box::pin(ask_host(&mentions, host)).await?;
    host.settle();
    Ok(found)
}

impl Engine {
    /// [`Engine::bind`] for a host, without blocking: two round trips, and for
    /// the first host of its kind the time that compiling takes on another
    /// thread. When it is dropped nothing is lost but the answers.
    ///
    /// # Errors
    /// The host failed.
    pub async fn bind_host<T: Transport>(
        self: &Arc<Self>,
        selection: &Arc<Selection>,
        host: &mut AsyncHostContext<T>,
    ) -> Result<Arc<Compiled>, SourceError> {
        let found = ask_apart(selection, host).await?;
        self.compiled_elsewhere(selection, &found, host.spec()).await
    }

    /// [`Engine::compile`] for a host, without blocking: as
    /// [`Engine::bind_host`], and one round trip more where names are unknown,
    /// for those to suggest in their place.
    ///
    /// # Errors
    /// The host failed.
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
        let names = if compiled.misses_names() { host.traverse("").await? } else { Vec::new() };
        self.tell(&compiled, &found, &names, diagnostics);
        Ok(compiled)
    }

    /// What is compiled for sources with these answers; it is done on the
    /// engine's threads if nobody has.
    async fn compiled_elsewhere(
        self: &Arc<Self>,
        selection: &Arc<Selection>,
        found: &[Found],
        spec: &HostSpec,
    ) -> Result<Arc<Compiled>, SourceError> {
        let (class, identities) = self.class_of(selection, found, || spec.to_string())?;
        if !class.is_built() {
            let mut work = Some((found.to_vec(), identities.clone()));
            poll_fn(|context| {
                class.flight().poll(context, || {
                    let Some((found, identities)) = work.take() else { return };
                    let (engine, class) = (Arc::clone(self), Arc::clone(&class));
                    self.threads.run(Box::new(move || {
                        let landing = Landing(class);
                        let selection = landing.0.selection();
                        landing.0.build(|| engine.build(selection, &found, identities));
                    }));
                })
            })
            .await;
        }
        // Made here only if the thread could not, so that it is seen why.
        let make = || self.build(selection, found, identities.clone());
        Ok(class.compiled(class.build(make), identities))
    }
}
