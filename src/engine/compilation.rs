//! The progress of compiling, for tasks that wait for it without blocking.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use pmderive_runtime::locks::lock;

/// Progress of compiling for a class on the engine's threads.
#[derive(Debug, Default)]
pub(super) struct Compilation {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    /// Compiling was not requested.
    #[default]
    NotStarted,
    /// A thread compiles; these tasks wait.
    Running(Vec<Waker>),
    /// It has ended. There is a program unless the compiler panicked.
    Ended,
}

impl Compilation {
    /// Ready when compiling has ended. The first caller runs `start`.
    pub fn poll(&self, context: &Context<'_>, start: impl FnOnce()) -> Poll<()> {
        let mut state = lock(&self.state);
        let waker = || context.waker().clone();
        match &mut *state {
            State::Ended => return Poll::Ready(()),
            State::Running(waiting) => {
                if !waiting.iter().any(|one| one.will_wake(context.waker())) {
                    waiting.push(waker());
                }
                return Poll::Pending;
            }
            State::NotStarted => *state = State::Running(vec![waker()]),
        }
        drop(state);
        start();
        Poll::Pending
    }

    pub fn end(&self) {
        let mut state = lock(&self.state);
        if let State::Running(waiting) = std::mem::replace(&mut *state, State::Ended) {
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}
