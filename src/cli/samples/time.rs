//! The time options of commands that take sample after sample. They say which samples
//! are taken, and in which zone their times are shown.
//!
//! Their syntax is that of PCPIntro(1).

use std::time::Duration;

use clap::Args;
use pmderive_runtime::context::Context;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::source::{FetchSource, Mode, SourceError};
use pmderive_runtime::time::{
    ReportingError, ReportingOptions, TimeBounds, TimeWindow, TimeZone, WindowSpec, ZoneOption,
};

use super::window::{WindowOptions, ZoneOptions};
use crate::cli::args::interval;
use crate::cli::lines::Lines;
use crate::cli::messages::Messages;
use crate::cli::stop::Stop;

/// Options about time.
#[derive(Debug, Default, Args)]
pub struct TimeArguments {
    /// The time that is looked at.
    #[command(flatten)]
    pub window: WindowOptions,
    /// The zone of times.
    #[command(flatten)]
    pub zone: ZoneOptions,
    /// Take a sample every INTERVAL, such as 2, 500msec or 1min [default: 1sec]. Values of
    /// an archive are interpolated; without -t it is read record by record.
    #[arg(short = 't', long, value_name = "INTERVAL", value_parser = interval)]
    pub interval: Option<Duration>,
}

/// The samples that are taken from a source.
pub struct Course {
    /// The zone of times, if one was asked for.
    pub zone: Option<TimeZone>,
    /// Time between samples, if one was asked for.
    pub interval: Option<Duration>,
    /// The time in an archive to begin at; `None` keeps the position after opening.
    begin: Option<Timestamp>,
    /// True if the samples go towards the past.
    pub is_reverse: bool,
    /// The last time to take a sample of, in the direction of the samples;
    /// `None` for as long as there are any.
    pub last: Option<Timestamp>,
    /// Samples to take from a live source up to `last`.
    pub live_samples: Option<u64>,
}

impl TimeArguments {
    /// Chooses the samples of a source. With `is_reverse` they go from the end of an archive
    /// towards its start. Warns of an unknown zone and of an ignored alignment.
    ///
    /// # Errors
    /// One of the options makes no sense, or not for this source; the source
    /// failed.
    pub fn choose(
        &self,
        source: &mut Context,
        is_reverse: bool,
        messages: &Messages,
    ) -> Result<Course, Stop> {
        self.zone.warn_of_unknown(messages);
        let ZoneOptions { hostzone, timezone } = &self.zone;
        let zone = match (timezone, hostzone) {
            (Some(zone), _) => ZoneOption::Named(zone),
            (None, true) => ZoneOption::OfSource,
            (None, false) => ZoneOption::System,
        };
        let given = self.window.window();
        // Reverse, samples begin at the end unless another origin is given.
        let end = is_reverse.then_some("-0");
        let window = WindowSpec { origin: given.origin.or(end), ..given };
        // Records behind the last good one are met from there on, to be told as damaged.
        let is_from_end = is_reverse
            && self.interval.is_none()
            && [given.origin, given.finish, given.align].iter().all(Option::is_none);
        let is_archive = matches!(source, Context::Archive(_));
        if !is_archive && !window.is_live() {
            let wrong = "-S, -A, -O and --reverse choose a part of an archive (-a ARCHIVE)";
            return Err(Stop::Usage(wrong.to_owned()));
        }
        let is_whole = window.is_whole();
        let bounds = match is_whole {
            // No option needs the end, so nobody searches for it.
            true => TimeBounds::live(),
            false => source.time_bounds()?,
        };
        let chosen = ReportingOptions { zone, window }.choose(source, bounds);
        let chosen = chosen.map_err(|error| match error {
            ReportingError::Zone(error) => Stop::Source(error),
            ReportingError::Window(error) => {
                Stop::UsageLines(Lines::of(&[&"invalid time window:\n", &error]))
            }
        })?;
        let TimeWindow { start, end, origin, warning } = chosen.window;
        if let Some(warning) = warning {
            messages.warning_lines(&[&warning]);
        }
        let last = match is_reverse {
            true => Some(start),
            // An archive without -T goes on for as long as it grows.
            false => end.filter(|_| window.finish.is_some()),
        };
        let pace = self.interval.unwrap_or(DEFAULT_INTERVAL);
        let until = |last: Timestamp| 1 + (last.seconds_since(origin) / pace.as_secs_f64()) as u64;
        Ok(Course {
            zone: (zone != ZoneOption::System).then_some(chosen.zone),
            interval: self.interval,
            begin: (is_archive && !is_whole).then_some(if is_from_end {
                Timestamp::LATEST
            } else {
                origin
            }),
            is_reverse,
            last,
            live_samples: last.filter(|_| !is_archive).map(until),
        })
    }
}

/// Time between samples when none is given.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

impl Course {
    /// Makes an archive deliver the samples, from the first one on.
    pub fn begin(&self, source: &mut Context) -> Result<(), SourceError> {
        if !matches!(source, Context::Archive(_)) {
            return Ok(());
        }
        let step = self.interval.map(|step| i64::try_from(step.as_nanos()).unwrap_or(i64::MAX));
        let mode = match (step, self.is_reverse) {
            (Some(step), false) => Mode::Interpolated { step },
            (Some(step), true) => Mode::Interpolated { step: -step },
            (None, false) => Mode::Forward,
            (None, true) => Mode::Backward,
        };
        if mode == Mode::Forward && self.begin.is_none() {
            return Ok(());
        }
        source.set_mode(mode, self.begin)
    }

    /// True if only a part of the source's time is looked at.
    pub fn is_part(&self) -> bool {
        self.begin.is_some()
    }

    /// True if a sample of this time comes after the last one.
    pub fn is_over(&self, time: Timestamp) -> bool {
        match (self.last, self.is_reverse) {
            (None, _) => false,
            (Some(last), false) => time > last,
            (Some(last), true) => time < last,
        }
    }
}
