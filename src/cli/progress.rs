//! Progress of a scan of an archive, as a line on standard error.
//!
//! Input: the times at which a scan begins and ends, and those that it reaches. Output: a bar,
//! on a terminal only. It appears once the scan has lasted a while, and vanishes when it ends.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pmderive_runtime::context::Context;
use pmderive_runtime::locks::lock;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::source::SourceError;

use super::terminal::shows_errors;

/// Shorter scans show nothing.
const DELAY: Duration = Duration::from_secs(1);

/// Steps of a whole scan; the clock is read once in a step.
const STEPS: u32 = 1000;

/// Updates of the terminal in a second.
const RATE: u8 = 10;

/// The bar on the terminal, for messages that are printed beside it.
static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Progress over a stretch of time; the default shows nothing.
#[derive(Default)]
pub struct Progress(Option<Line>);

struct Line {
    bar: ProgressBar,
    from: Timestamp,
    /// Length of the stretch in seconds; negative if time goes backward.
    span: f64,
    /// The step at which the clock is read next.
    next: f64,
    begun: Instant,
    delay: Duration,
    is_drawn: bool,
}

impl Progress {
    /// Follows a scan between two times, the earlier one first unless it goes backward. It
    /// shows a bar only if it is `visible` and standard error is a terminal. A scan whose rows
    /// go to the terminal is not `visible`.
    pub fn new((from, to): (Timestamp, Timestamp), visible: bool) -> Progress {
        if !visible || !shows_errors() {
            return Progress(None);
        }
        Progress::drawn_to(ProgressDrawTarget::stderr_with_hz(RATE), (from, to), DELAY)
    }

    /// Follows a scan of an archive from its present position to the last time of the scan, or
    /// else to the archive's end. Other sources have no known end, and show nothing. Otherwise
    /// as for [`Progress::new`].
    pub fn of(
        context: &mut Context,
        last: Option<Timestamp>,
        visible: bool,
    ) -> Result<Progress, SourceError> {
        let Context::Archive(archive) = context else { return Ok(Progress(None)) };
        // Finding an archive's end may be costly.
        if !visible || !shows_errors() {
            return Ok(Progress(None));
        }
        let last = match last {
            Some(last) => last,
            None => archive.end_time()?,
        };
        Ok(Progress::new((archive.origin(), last), visible))
    }

    fn drawn_to(
        target: ProgressDrawTarget,
        (from, to): (Timestamp, Timestamp),
        delay: Duration,
    ) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(STEPS.into()), target);
        // A test checks the template.
        if let Ok(style) = ProgressStyle::with_template("{percent:>3} % [{bar:30}] {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        let span = to.seconds_since(from);
        let begun = Instant::now();
        Progress(Some(Line { bar, from, span, next: 1.0, begun, delay, is_drawn: false }))
    }

    /// Notes that the scan has reached a time. It is cheap in every case.
    pub fn at(&mut self, time: Timestamp) {
        let Some(line) = &mut self.0 else { return };
        let step = time.seconds_since(line.from) / line.span * f64::from(STEPS);
        if step.is_nan() || step < line.next {
            return;
        }
        line.next = step.floor() + 1.0;
        if line.begun.elapsed() >= line.delay {
            line.show(step as u64);
        }
    }

    /// Ends the scan and removes the bar.
    pub fn finish(&mut self) {
        self.0 = None;
    }
}

impl Line {
    fn show(&mut self, step: u64) {
        self.is_drawn = true;
        let mut drawn = lock(&DRAWN);
        self.bar.set_position(step.min(STEPS.into()));
        drawn.get_or_insert_with(|| self.bar.clone());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Another bar may have replaced this one.
        if self.is_drawn {
            let mut drawn = lock(&DRAWN);
            *drawn = None;
            self.bar.finish_and_clear();
        }
    }
}

/// Writes to standard error beside the bar.
pub fn beside<T>(write: impl FnOnce() -> T) -> T {
    let drawn = lock(&DRAWN);
    match &*drawn {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Arc;

    use indicatif::TermLike;

    /// A terminal that keeps its picture.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("nobody panics").push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("|")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::new(1_700_000_000 + seconds, 0)
    }

    #[test]
    fn a_bar_grows_in_either_direction_and_goes() {
        for over in [(at(0), at(2000)), (at(2000), at(0))] {
            let paper = Paper::default();
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 255);
            let mut progress = Progress::drawn_to(target, over, Duration::ZERO);
            progress.at(over.0);
            assert_eq!(*paper.0.lock().expect("nobody panics"), "", "nothing has passed");
            progress.at(at(1000));
            let drawn = std::mem::take(&mut *paper.0.lock().expect("nobody panics"));
            assert!(drawn.contains(" 50 % [===============>"), "{drawn:?}");
            beside(|| drop(paper.write_str("a message")));
            let drawn = std::mem::take(&mut *paper.0.lock().expect("nobody panics"));
            let (before, after) = drawn.split_once("a message").expect("it was written");
            assert!(before.contains('|') && after.contains(" 50 %"), "{drawn:?}");
            progress.finish();
            let drawn = std::mem::take(&mut *paper.0.lock().expect("nobody panics"));
            assert!(drawn.ends_with('|') || drawn.trim().is_empty(), "{drawn:?}");
        }
    }

    #[test]
    fn short_and_invisible_scans_show_nothing() {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        let mut progress = Progress::drawn_to(target, (at(0), at(10)), DELAY);
        (0..=10).for_each(|second| progress.at(at(second)));
        progress.finish();
        assert_eq!(*paper.0.lock().expect("nobody panics"), "");
        assert!(Progress::new((at(0), at(10)), false).0.is_none());
        // An empty stretch lasts no time, which must not be a divisor.
        let mut progress = Progress::new((at(0), at(0)), true);
        progress.at(at(0));
    }
}
