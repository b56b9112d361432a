//! Limits the lines of the log. Simultaneous trouble of thousands of hosts makes few lines. So
//! does trouble that goes on, or a mistake that many hosts share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive_runtime::locks::lock;
use rustc_hash::{FxBuildHasher, FxHashSet};
use tokio::time::Instant;

use crate::diag::Diagnostic;

/// Lines that may pass at once.
const BURST: u32 = 20;
/// Time until another line may pass after that.
const EACH: Duration = Duration::from_millis(500);

/// Lets some lines pass, and counts the others.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Recent lines, as of `at`.
    lately: u32,
    at: Option<Instant>,
    left_out: u64,
}

impl Limiter {
    /// Lets a line pass.
    ///
    /// # Errors
    /// The line is left out. The number counts lines left out since [`Limiter::take_left_out`],
    /// this one included.
    pub fn pass(&self) -> Result<(), u64> {
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
            return Err(state.left_out);
        }
        state.lately += 1;
        Ok(())
    }

    /// Takes the number of lines left out since the last call.
    pub fn take_left_out(&self) -> u64 {
        std::mem::take(&mut lock(&self.0).left_out)
    }
}

/// The mistakes that were logged already. Clones share them, as threads with hosts of one group
/// do.
#[derive(Clone, Debug, Default)]
pub struct ToldMistakes(Arc<Mutex<FxHashSet<u64>>>);

impl ToldMistakes {
    /// True for a mistake that was not logged before. From now on it counts as logged.
    pub fn is_news(&self, one: &Diagnostic) -> bool {
        self.is_new(&(one.span, one.code, &one.metric, &one.message))
    }

    /// Like [`ToldMistakes::is_news`], for anything else.
    pub fn is_new(&self, one: &impl Hash) -> bool {
        lock(&self.0).insert(FxBuildHasher.hash_one(one))
    }
}

/// Time between two lines about trouble of one kind that goes on.
const QUIET: Duration = Duration::from_secs(60);

/// Trouble of a single sink, by kind. The first trouble of a kind has a line at once; later ones
/// share a line now and then.
#[derive(Debug)]
pub struct Trouble<K> {
    told: BTreeMap<K, LastLine>,
    /// Number of troubles since the last success.
    since_success: u64,
    /// True if a line was logged about a kind that has an end.
    is_told: bool,
}

#[derive(Debug)]
struct LastLine {
    at: Instant,
    /// Troubles of the kind since then, without a line.
    more: u64,
}

impl<K> Default for Trouble<K> {
    fn default() -> Trouble<K> {
        Trouble { told: BTreeMap::new(), since_success: 0, is_told: false }
    }
}

impl<K: Ord> Trouble<K> {
    /// Notes trouble of a kind. If it `has_end`, its end deserves a line, too. If a line is
    /// due, returns the number without a line since the last one.
    pub fn happens(&mut self, kind: K, has_end: bool) -> Option<u64> {
        self.since_success += 1;
        let now = Instant::now();
        let more = match self.told.get_mut(&kind) {
            Some(told) if now - told.at < QUIET => {
                told.more += 1;
                return None;
            }
            told => told.map_or(0, |told| told.more),
        };
        self.is_told |= has_end;
        self.told.insert(kind, LastLine { at: now, more: 0 });
        Some(more)
    }

    /// Notes the end of the trouble. If a line is due, returns the number of failures since the
    /// last success. Trouble that comes again soon stays quiet, and so does its end.
    pub fn end(&mut self) -> Option<u64> {
        let count = std::mem::take(&mut self.since_success);
        std::mem::take(&mut self.is_told).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Code;
    use crate::text::{SourceId, Span};

    #[tokio::test(start_paused = true)]
    async fn each_kind_of_trouble_is_told_at_once_and_then_in_a_while() {
        let mut trouble = Trouble::default();
        let mut happens = |kind: u16| trouble.happens(kind, kind >= 500);
        assert_eq!([503, 503, 503].map(&mut happens), [Some(0), None, None]);
        assert_eq!(trouble.end(), Some(3));
        // Trouble that comes and goes is quiet, but another kind has its line.
        assert_eq!(trouble.happens(503, true), None);
        assert_eq!(trouble.end(), None);
        assert_eq!(trouble.happens(500, true), Some(0));
        assert_eq!(trouble.end(), Some(1));
        // A refusal is about one message, and so has no end.
        assert_eq!(trouble.happens(400, false), Some(0));
        assert_eq!(trouble.end(), None);
        assert_eq!(trouble.happens(400, false), None);
        tokio::time::advance(QUIET).await;
        let mut happens = |kind: u16| trouble.happens(kind, kind >= 500);
        assert_eq!([400, 503, 503].map(&mut happens), [Some(1), Some(3), None]);
        assert_eq!(trouble.end(), Some(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_a_line_at_a_time() {
        let limiter = Limiter::default();
        let passed = |lines: u32| (0..lines).filter(|_| limiter.pass().is_ok()).count();
        assert_eq!(passed(20), 20);
        assert_eq!([limiter.pass(), limiter.pass()], [Err(1), Err(2)]);
        tokio::time::advance(EACH).await;
        assert_eq!(passed(10), 1);
        assert_eq!([limiter.take_left_out(), limiter.take_left_out()], [11, 0]);
        tokio::time::advance(EACH * 100).await;
        assert_eq!(passed(100), 20);
    }

    #[test]
    fn each_mistake_is_told_once_to_all() {
        let mistake = |start, message: &str| {
            Diagnostic::error(Code::NotNumeric, Span::new(SourceId(0), start, 9), message)
        };
        let (told, mut news) = (ToldMistakes::default(), Vec::new());
        for (start, message) in [(1, "later"), (0, "first"), (1, "later"), (1, "other")] {
            news.push(told.clone().is_news(&mistake(start, message)));
        }
        assert_eq!(news, [true, true, false, true]);
    }
}
