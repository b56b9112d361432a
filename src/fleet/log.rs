//! Limits the lines of the log: trouble of thousands of hosts at once does not take
//! thousands of lines.

use std::sync::Mutex;
use std::time::Duration;

use pmderive_runtime::locks::lock;
use tokio::time::Instant;

/// Lines that may come at once.
const BURST: u32 = 20;
/// Time until another line may come after that.
const EACH: Duration = Duration::from_millis(500);

/// Lets some lines through, and counts the others.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Lines that came lately, as of `at`.
    lately: u32,
    at: Option<Instant>,
    left_out: u64,
}

impl Limiter {
    /// Whether a line may come now; if so, how many were left out before it.
    pub fn pass(&self) -> Option<u64> {
        let mut state = lock(&self.0);
        let now = Instant::now();
        let since = *state.at.get_or_insert(now);
        let forgotten = (now - since).as_nanos() / EACH.as_nanos();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX);
        if forgotten > 0 {
            state.lately = state.lately.saturating_sub(forgotten);
            state.at = Some(now);
        }
        if state.lately >= BURST {
            state.left_out += 1;
            return None;
        }
        state.lately += 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_a_line_at_a_time() {
        let limiter = Limiter::default();
        let passed = |lines: u32| (0..lines).filter_map(|_| limiter.pass()).collect::<Vec<_>>();
        assert_eq!(passed(100), [0; 20]);
        tokio::time::advance(EACH).await;
        assert_eq!(passed(10), [80]);
        tokio::time::advance(EACH * 100).await;
        assert_eq!(passed(2), [9, 0]);
    }
}
