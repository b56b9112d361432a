//! The time window of a tool, from its options `-S`, `-T`, `-A` and `-O`.

use std::fmt;

use pmderive_core::model::{Timestamp, parse_interval, write_fault};

use super::TimeZone;
use super::ctime_form::Fault;
use super::specification::{Reference, TimeFault};

/// The texts of the options of a time window, as given; see PCPIntro(1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSpec<'t> {
    /// `-S`: the start of the window.
    pub start: Option<&'t str>,
    /// `-T`: the end of the window.
    pub finish: Option<&'t str>,
    /// `-A`: start and origin are multiples of this interval, counted in UTC.
    pub align: Option<&'t str>,
    /// `-O`: the first time to look at within the window.
    pub origin: Option<&'t str>,
    /// Read dates just as libpcp: those of RFC 3339, `2024-02-29T18:30:00.5Z`, are refused or
    /// taken for others, and `@10:00:00.883562` may be a nanosecond less. A sum of nanoseconds that
    /// is exactly a second is not carried over, so `nsec` of a time may be 1,000,000,000.
    pub as_libpcp: bool,
}

impl WindowSpec<'_> {
    /// True if the options make sense for a live source, which has no past:
    /// they give at most the end of the window.
    pub fn is_live(&self) -> bool {
        [self.start, self.align, self.origin].iter().all(Option::is_none)
    }

    /// True if the options choose nothing.
    pub fn is_whole(&self) -> bool {
        self.is_live() && self.finish.is_none()
    }
}

/// A span of time, and a point in it at which to begin.
///
/// ```
/// use pmderive_core::model::Timestamp;
/// use pmderive_system::time::{TimeWindow, TimeZone, WindowSpec};
///
/// let archive = (Timestamp::new(1000, 0), Some(Timestamp::new(5000, 0)));
/// let spec = WindowSpec { start: Some("10min"), finish: Some("-1min"), ..WindowSpec::default() };
/// let window = TimeWindow::parse(&spec, archive, &TimeZone::utc())?;
/// assert_eq!((window.start.sec, window.end.map(|end| end.sec)), (1600, Some(4940)));
/// # Ok::<(), pmderive_system::time::WindowError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// Never before the first time of the source.
    pub start: Timestamp,
    /// Never after the last time of the source, but possibly before `start`.
    /// `None` if there is no end.
    pub end: Option<Timestamp>,
    /// The first time to look at. Without `-O` it is `start`.
    pub origin: Timestamp,
    /// A problem that tools report before they continue: the aligned time would
    /// be outside the window, so the alignment was ignored.
    pub warning: Option<WindowError>,
}

/// The options of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOption {
    /// `-S`
    Start,
    /// `-T`
    Finish,
    /// `-A`
    Align,
    /// `-O`
    Origin,
}

/// An option of a window that cannot be understood or applied. Shown as libpcp
/// shows it: the text, and the problem below its place, without the last
/// newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowError {
    /// The option at fault.
    pub option: WindowOption,
    /// The part of the option's text that was read, without `@`, `+` or `-`.
    pub text: String,
    /// Offset of the fault in `text`, in bytes.
    pub offset: usize,
    /// The problem there, in the words of libpcp.
    pub problem: &'static str,
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_fault(f, &self.text, self.offset, self.problem)
    }
}

impl std::error::Error for WindowError {}

impl WindowError {
    fn new(option: WindowOption, (text, (offset, problem)): TimeFault) -> WindowError {
        WindowError { option, text, offset, problem }
    }
}

const NOT_ALIGNED: &str = "alignment specified by -A switch could not be applied";

const NSEC_PER_SEC: i128 = 1_000_000_000;

/// Later than every real time.
const FOREVER: Timestamp = Timestamp { sec: i64::MAX, nsec: 999_999_999 };

impl TimeWindow {
    /// The window of some options (`pmParseTimeWindow(3)`,
    /// `pmParseHighResTimeWindow(3)`) within `bounds`: the first and the last
    /// time of an archive, or now and `None` for a live source. Dates are read
    /// in `zone`.
    ///
    /// # Errors
    /// A text is neither a time nor, for `-A`, an interval above zero.
    pub fn parse(
        spec: &WindowSpec<'_>,
        bounds: (Timestamp, Option<Timestamp>),
        zone: &TimeZone,
    ) -> Result<TimeWindow, WindowError> {
        TimeWindow::parse_at(spec, bounds, zone, Timestamp::now())
    }

    /// Like [`TimeWindow::parse`], with the time that texts such as `yesterday`
    /// are relative to.
    ///
    /// # Errors
    /// As for [`TimeWindow::parse`].
    pub fn parse_at(
        spec: &WindowSpec<'_>,
        bounds: (Timestamp, Option<Timestamp>),
        zone: &TimeZone,
        now: Timestamp,
    ) -> Result<TimeWindow, WindowError> {
        let (first, last) = (bounds.0, bounds.1.unwrap_or(FOREVER));
        let mut warning = None;
        let time = |option, text: Option<&str>, start, end, otherwise| {
            let Some(text) = text else { return Ok(otherwise) };
            let end = Some(end).filter(|end| *end != FOREVER);
            let reference = Reference { start, end, now, zone, as_libpcp: spec.as_libpcp };
            reference.parse(text).map_err(|misread| WindowError::new(option, misread))
        };
        let mut start = time(WindowOption::Start, spec.start, first, last, first)?.max(first);
        let step = spec.align.map(step).transpose()?;
        let not_aligned = || {
            let text = spec.align.unwrap_or_default().to_owned();
            WindowError::new(WindowOption::Align, (text, (0, NOT_ALIGNED)))
        };
        if let Some(step) = step {
            match from_nanoseconds(aligned(nanoseconds(start), step)) {
                Some(aligned) if (first..=last).contains(&aligned) => start = aligned,
                _ => warning = Some(not_aligned()),
            }
        }
        let end = time(WindowOption::Finish, spec.finish, start, last, last)?.min(last);
        let mut origin = time(WindowOption::Origin, spec.origin, start, end, start)?;
        if spec.origin.is_some() {
            // `clamp()` would panic: the end may be before the start.
            origin = if origin < start { start } else { origin.min(end) };
            if let Some(step) = step {
                let next = aligned(nanoseconds(origin), step);
                let next = if next > nanoseconds(end) { next - step } else { next };
                match from_nanoseconds(next) {
                    Some(aligned) if start <= aligned && aligned <= end => origin = aligned,
                    _ => warning = Some(not_aligned()),
                }
            }
        }
        Ok(TimeWindow { start, end: Some(end).filter(|end| *end != FOREVER), origin, warning })
    }
}

/// The interval of `-A` in nanoseconds.
fn step(text: &str) -> Result<i128, WindowError> {
    let error = |fault: Fault| WindowError::new(WindowOption::Align, (text.to_owned(), fault));
    let step = parse_interval(text).map_err(|e| error((e.offset, e.problem)))?;
    match i128::try_from(step.as_nanos()) {
        Ok(step) if step > 0 => Ok(step),
        _ => Err(error((0, NOT_ALIGNED))),
    }
}

/// The first multiple of `step` that is not before `time`.
fn aligned(time: i128, step: i128) -> i128 {
    let before = time / step * step;
    if before < time { before + step } else { before }
}

fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.sec) * NSEC_PER_SEC + i128::from(time.nsec)
}

fn from_nanoseconds(time: i128) -> Option<Timestamp> {
    let sec = i64::try_from(time.div_euclid(NSEC_PER_SEC)).ok()?;
    let nsec = u32::try_from(time.rem_euclid(NSEC_PER_SEC)).ok()?;
    Some(Timestamp { sec, nsec })
}
