//! Limits the number of connection attempts at a time. Hosts that do not answer do not delay
//! the others.
//!
//! An attempt that hangs gives its turn back and goes on without it: it waits for the
//! network, and costs no more than its socket. Hosts that failed in their latest slot take
//! turns among themselves.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Semaphore;

/// Time for which an attempt keeps its turn.
const HOLD: Duration = Duration::from_millis(250);

/// Turns to connect.
#[derive(Debug)]
pub struct Turns {
    usual: Semaphore,
    after_failures: Semaphore,
}

impl Turns {
    /// Turns for this many attempts at once, and as many for hosts that failed.
    pub fn new(at_once: usize) -> Turns {
        let turns = || Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS));
        Turns { usual: turns(), after_failures: turns() }
    }

    /// Makes an attempt in its turn.
    pub async fn take<A: Future>(&self, has_failed: bool, attempt: A) -> A::Output {
        let turns = if has_failed { &self.after_failures } else { &self.usual };
        // The semaphore is never closed; if it were, attempts would go on without turns.
        let turn = turns.acquire().await;
        let mut attempt = pin!(attempt);
        if let Ok(outcome) = tokio::time::timeout(HOLD, &mut attempt).await {
            return outcome;
        }
        drop(turn);
        attempt.await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local};
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Time that an attempt waits for its turn behind `silent` attempts that hang.
    async fn wait(silent: u32, have_failed: bool, has_failed: bool) -> Duration {
        let turns = Rc::new(Turns::new(64));
        for _ in 0..silent {
            let turns = Rc::clone(&turns);
            spawn_local(async move { turns.take(have_failed, pending::<()>()).await });
        }
        sleep(Duration::from_millis(1)).await;
        let began = Instant::now();
        turns.take(has_failed, ready(())).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_that_hang_give_their_turns_back() {
        LocalSet::new()
            .run_until(async {
                let milliseconds = Duration::from_millis;
                assert_eq!(wait(63, false, false).await, Duration::ZERO);
                assert!(wait(64, false, false).await <= milliseconds(250));
                assert!(wait(300, false, false).await <= milliseconds(4 * 260));
                assert!(wait(300, false, false).await >= milliseconds(4 * 249));
                // Hosts that failed do not keep others from their turn.
                assert_eq!(wait(300, true, false).await, Duration::ZERO);
                assert_eq!(wait(300, false, true).await, Duration::ZERO);
            })
            .await;
    }
}
