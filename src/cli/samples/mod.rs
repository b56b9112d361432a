//! Samples of a source, one after the other.
//!
//! All commands that report on samples use one loop, [`Sampler`]. It waits between
//! samples, tries a live source again while it fails, and waits at the end of an archive
//! that is followed. Its caller fetches the sample and shows it. [`run`] uses it for `eval` and
//! `export`; `info`, `val` and `probe` are in `pcp`.
//!
//! `record` has a loop of its own, because it does not hurry after a failure: the next
//! sample waits for its time, and the archive gets a mark.

pub mod arguments;
pub mod following;
pub mod pace;
pub mod patience;
pub mod run;
pub mod time;
pub mod window;

use pmderive_runtime::context::Context;

use self::following::Follower;
use self::pace::{Clock, Pace, SystemClock};
use self::patience::Patience;
use super::messages::Messages;
use super::stop::Stop;

/// A source that a [`Sampler`] reads.
pub trait SampledSource {
    /// The source itself, without derived metrics.
    fn context(&mut self) -> &mut Context;

    /// Destination of messages about a source that fails.
    fn messages(&self) -> &Messages;
}

/// Takes samples.
pub struct Sampler {
    /// When samples are taken; `None` for one right after the other.
    pub pace: Option<Pace>,
    /// Present while an archive is followed.
    pub follower: Option<Follower>,
    /// The clock; it may stop the run.
    pub clock: Box<dyn Clock>,
    patience: Patience,
}

impl Sampler {
    /// Takes samples one right after the other. A live source that fails is
    /// tried again as long as patience lasts.
    pub fn new(patience: Patience) -> Sampler {
        Sampler { pace: None, follower: None, clock: Box::new(SystemClock), patience }
    }

    /// True if there are pauses between samples, so that somebody may wait for each.
    pub fn waits(&self) -> bool {
        self.pace.is_some() || self.follower.is_some()
    }

    /// Waits until the next sample is due.
    pub fn wait(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.wait(&*self.clock);
        }
    }

    /// Takes a sample. `None` at the end of an archive that is not followed, and once the clock is
    /// over.
    ///
    /// # Errors
    /// The error of `attempt`, unless another attempt may succeed.
    pub fn take<S: SampledSource, T>(
        &mut self,
        subject: &mut S,
        mut attempt: impl FnMut(&mut S) -> Result<T, Stop>,
    ) -> Result<Option<T>, Stop> {
        while !self.clock.is_over() {
            let error = match attempt(subject) {
                Err(Stop::Source(error)) => error,
                taken => {
                    self.patience.succeeded();
                    return taken.map(Some);
                }
            };
            let source = subject.context();
            let is_live = !matches!(source, Context::Archive(_));
            if error.is_end_of_archive() {
                let Some(follower) = &mut self.follower else { return Ok(None) };
                if !follower.wait(source, &*self.clock)? {
                    // The records withheld while following can be read now.
                    self.follower = None;
                }
            } else if is_live && error.is_transient() {
                self.patience.failed(error, &*self.clock, subject.messages())?;
            } else {
                return Err(error.into());
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pmderive_runtime::model::PmStatus;
    use pmderive_runtime::source::SourceError;

    use super::pace::tests::Made;
    use super::patience::{Retry, RetryArgument};
    use super::*;

    struct Live(Context, Messages);

    impl SampledSource for Live {
        fn context(&mut self) -> &mut Context {
            &mut self.0
        }

        fn messages(&self) -> &Messages {
            &self.1
        }
    }

    fn sampler(retry: Retry) -> (Sampler, Made, Live) {
        let clock = Made::new();
        let mut sampler = Sampler::new(Patience::new(retry));
        sampler.clock = Box::new(clock.clone());
        (sampler, clock, Live(Context::local(), Messages::to_standard_error()))
    }

    fn failure() -> Stop {
        SourceError::Timeout { target: "web1".to_owned(), seconds: 2.0 }.into()
    }

    #[test]
    fn pauses_double_to_the_longest_until_patience_ends() {
        let (mut sampler, clock, mut live) = sampler(Retry::Forever);
        sampler.patience = RetryArgument::default().patience();
        let taken = sampler.take::<_, ()>(&mut live, |_| Err(failure()));
        assert!(matches!(taken, Err(Stop::Source(SourceError::Timeout { .. }))), "{taken:?}");
        let expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0, 10.0, 7.3];
        assert_eq!(clock.pauses(), expected);
    }

    #[test]
    fn a_success_renews_patience() {
        let (mut sampler, clock, mut live) = sampler(Retry::For(Duration::from_millis(250)));
        let mut attempts = 0;
        for _ in 0..3 {
            let taken = sampler.take(&mut live, |_| {
                attempts += 1;
                if attempts % 3 == 0 { Ok(attempts) } else { Err(failure()) }
            });
            assert!(matches!(taken, Ok(Some(_))), "{taken:?}");
        }
        assert_eq!(clock.pauses(), [0.1, 0.15].repeat(3));
    }

    #[test]
    fn what_time_does_not_mend_ends_at_once() {
        let malformed =
            || SourceError::Malformed { target: "web1".to_owned(), source: "no".into() };
        let (mut forever, clock, mut live) = sampler(Retry::Forever);
        let taken = forever.take::<_, ()>(&mut live, |_| Err(malformed().into()));
        assert!(matches!(taken, Err(Stop::Source(SourceError::Malformed { .. }))));
        let taken = forever.take::<_, ()>(&mut live, |_| Err(Stop::Reported));
        assert!(matches!(taken, Err(Stop::Reported)));
        let end = || SourceError::Status { target: "web1".to_owned(), status: PmStatus::EOL };
        assert!(matches!(forever.take::<_, ()>(&mut live, |_| Err(end().into())), Ok(None)));
        let (mut once, _, _) = sampler(Retry::For(Duration::ZERO));
        let taken = once.take::<_, ()>(&mut live, |_| Err(failure()));
        assert!(matches!(taken, Err(Stop::Source(SourceError::Timeout { .. }))));
        assert_eq!(clock.pauses(), [0.0; 0]);
    }
}
