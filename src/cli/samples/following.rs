//! Archives that are still written: `--follow`.
//!
//! At the end of such an archive, a command waits for more as tail(1) does. A writer
//! does not say that it has finished. So the command ends once nothing was appended
//! for as long as the user said.

use std::time::{Duration, Instant};

use clap::Args;
use pmderive_runtime::context::Context;
use pmderive_runtime::model::PmStatus;

use super::pace::{Clock, Pace, SystemClock};
use crate::cli::args::interval;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::stop::Stop;
use crate::cli::terminal::is_output_closed;

/// Time between looks at the archive.
const LOOKS: Duration = Duration::from_millis(100);

/// Whether to follow an archive.
#[derive(Clone, Debug, Default, Args)]
pub struct FollowArgument {
    /// Wait for more at the end of an archive, for ever or until nothing was written for
    /// TIME. With -t a sample is printed when the record after it has arrived.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, value_parser = interval)]
    pub follow: Option<Option<Duration>>,
}

/// Waits for the writer of an archive.
pub struct Follower {
    /// How long to wait for new records; `None` for ever.
    limit: Option<Duration>,
    pace: Pace,
    /// When something was found last.
    found: Instant,
    /// True if the reader of the output has gone, so that waiting is useless.
    pub is_unread: Box<dyn Fn() -> bool>,
}

impl FollowArgument {
    /// Opens a source. While too little of an archive exists, it tries again, unless `is_unread`
    /// says that nobody reads the output any more.
    ///
    /// # Errors
    /// It cannot be opened for another reason.
    pub fn open<S>(
        &self,
        is_unread: &dyn Fn() -> bool,
        mut open: impl FnMut() -> Result<S, Stop>,
    ) -> Result<S, Stop> {
        let mut waiting = None;
        loop {
            let error = match open() {
                Err(Stop::Source(error)) => error,
                opened => return opened,
            };
            let is_early = matches!(error.status(), PmStatus::NODATA | PmStatus::LOGREC);
            let Some(limit) = self.follow.filter(|_| is_early) else {
                return Err(error.into());
            };
            let waiting = waiting.get_or_insert_with(|| Follower::new(limit, SystemClock.now()));
            if waiting.is_over(SystemClock.now()) {
                return Err(error.into());
            }
            refuse_without_readers(is_unread)?;
            waiting.pace.wait(&SystemClock);
        }
    }

    /// Refuses `--follow TIME` with a blank, because TIME would be read as a metric. It is
    /// written `--follow=TIME`.
    ///
    /// # Errors
    /// The first of the metrics is a time.
    pub fn refuse_time(&self, metrics: &[String]) -> Result<(), Stop> {
        match (self.follow, metrics.first()) {
            (Some(None), Some(time)) if interval(time).is_ok() => {
                Err(Stop::Usage(format!("write `--follow={time}`: the time is part of the option")))
            }
            _ => Ok(()),
        }
    }

    /// True if an archive is to be followed.
    pub fn is_given(&self) -> bool {
        self.follow.is_some()
    }

    /// Begins to follow the source, if that is wanted.
    ///
    /// # Errors
    /// It is no archive, or cannot be read.
    pub fn begin(
        &self,
        source: &mut Context,
        messages: &Messages,
    ) -> Result<Option<Follower>, Stop> {
        let Some(limit) = self.follow else { return Ok(None) };
        let Context::Archive(archive) = source else {
            let wrong = "--follow is for archives (-a ARCHIVE): other sources have no end";
            return Err(Stop::Usage(wrong.to_owned()));
        };
        if !archive.can_grow() {
            messages.warning(&"the archive is compressed, so nothing will be appended to it");
            return Ok(None);
        }
        archive.follow()?;
        Ok(Some(Follower::new(limit, SystemClock.now())))
    }
}

impl Follower {
    fn new(limit: Option<Duration>, now: Instant) -> Follower {
        let pace = Pace::new(LOOKS, now);
        Follower { limit, pace, found: now, is_unread: Box::new(is_output_closed) }
    }

    fn is_over(&self, now: Instant) -> bool {
        self.limit.is_some_and(|limit| now.saturating_duration_since(self.found) >= limit)
    }

    /// Waits until something was appended to the archive. Returns false if nothing was appended for
    /// too long, or if nothing can be any more. Then the archive is no longer followed, and the
    /// withheld records can be read. The wait also ends when the clock is over.
    ///
    /// # Errors
    /// The archive cannot be read, or nobody reads the output.
    pub fn wait(&mut self, source: &mut Context, clock: &dyn Clock) -> Result<bool, Stop> {
        let Context::Archive(archive) = source else { return Ok(false) };
        loop {
            if archive.look()? {
                self.found = clock.now();
                return Ok(true);
            }
            if self.is_over(clock.now()) || !archive.can_grow() {
                archive.stop_following()?;
                return Ok(false);
            }
            refuse_without_readers(&*self.is_unread)?;
            self.pace.wait(clock);
            if clock.is_over() {
                return Ok(true);
            }
        }
    }
}

/// Ends the wait if nobody reads the output; it may be long until a write would find out.
fn refuse_without_readers(is_unread: &dyn Fn() -> bool) -> Result<(), Stop> {
    match is_unread() {
        true => Err(Stop::OutputClosed(ExitStatus::Good)),
        false => Ok(()),
    }
}
