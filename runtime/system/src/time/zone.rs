//! Time zones. Times are shown and dates are read in a zone.
//!
//! A zone is a value. libpcp has handles instead, one of which is the current
//! zone of the process (`pmUseZone(3)`, `pmWhichZone(3)`); here the caller's
//! variables do that. The environment is never changed.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pmderive_core::model::{PmStatus, Timestamp};
use pmderive_core::source::{MetadataSource, SourceError};

use super::broken_down::BrokenDown;
use super::posix::{Period, PosixZone};
use super::zoneinfo::{self, ZoneFile};

/// Longest text of a zone, in bytes. A longer text is not a zone.
const MAX_TEXT_BYTES: usize = 1024;

/// A time zone (`pmNewZone(3)`). Cheap to clone.
///
/// ```
/// use pmderive_core::model::Timestamp;
/// use pmderive_system::time::TimeZone;
///
/// let zone = TimeZone::parse("CET-1CEST,M3.5.0,M10.5.0/3");
/// let time = Timestamp::new(1_709_115_330, 250_000_000);
/// assert_eq!(zone.ctime(time), "Wed Feb 28 11:15:30 2024");
/// assert_eq!(zone.zoned(time), "2024-02-28T11:15:30.250000000+01:00");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TimeZone {
    text: Arc<str>,
    rules: Arc<Rules>,
}

#[derive(PartialEq, Eq)]
enum Rules {
    Posix(PosixZone),
    File(ZoneFile),
}

impl TimeZone {
    /// The zone of a text in the form of the `TZ` environment variable
    /// (`pmNewZone(3)` of PCP 6). The text is the name of a file in the
    /// system's zone folder, such as `Europe/Paris` or `:Etc/UTC`, or it is
    /// rules, such as `EST-11EST-10,87/2:00,297/2:00`. Text without a meaning
    /// is UTC.
    ///
    /// Three letters alone are a name for UTC, as in libpcp: `EST` is `EST+0`.
    /// Summer time without rules follows those of the USA.
    pub fn parse(text: &str) -> TimeZone {
        let text = if text.len() == 3 { format!("{text}+0") } else { text.to_owned() };
        if text.len() > MAX_TEXT_BYTES {
            return TimeZone::utc();
        }
        let name = text.strip_prefix(':').unwrap_or(&text);
        let file = if name.is_empty() { None } else { ZoneFile::open(name) };
        let rules = file.map_or_else(|| Rules::Posix(PosixZone::parse(name)), Rules::File);
        TimeZone { text: text.into(), rules: Arc::new(rules) }
    }

    /// Like [`TimeZone::parse`], but accepts only texts that `pmNewZone(3)` of
    /// PCP 7 accepts.
    ///
    /// # Errors
    /// The text is empty or too long, leads out of the zone folder, or has
    /// characters that no zone has. Text of allowed characters without a
    /// meaning is still UTC, see [`TimeZone::is_known`].
    pub fn parse_strict(text: &str) -> Result<TimeZone, TimeZoneError> {
        let problem = |problem| TimeZoneError { text: shortened(text), problem };
        if text.is_empty() {
            return Err(problem(TimeZoneProblem::Empty));
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(problem(TimeZoneProblem::TooLong));
        }
        if text.starts_with('/') || text.contains("..") {
            return Err(problem(TimeZoneProblem::Path));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/_+-.:,\"'".contains(c);
        if let Some(character) = text.chars().find(|c| !is_allowed(*c)) {
            return Err(problem(TimeZoneProblem::Character(character)));
        }
        Ok(TimeZone::parse(text))
    }

    /// Coordinated universal time.
    pub fn utc() -> TimeZone {
        TimeZone { text: "UTC+0".into(), rules: Arc::new(Rules::Posix(PosixZone::parse("UTC+0"))) }
    }

    /// The zone of this process: that of the `TZ` environment variable, or else
    /// of this machine. libpcp uses this zone until another is chosen.
    pub fn system() -> TimeZone {
        match std::env::var("TZ") {
            // Here three letters have their meaning in the C library.
            Ok(text) if text.len() == 3 => {
                let mut zone = TimeZone::parse(&format!(":{text}"));
                zone.text = text.into();
                zone
            }
            Ok(text) if !text.is_empty() => TimeZone::parse(&text),
            Ok(_) => TimeZone::utc(),
            Err(_) => TimeZone::parse(&format!(":{}", zoneinfo::LOCAL)),
        }
    }

    /// The text of [`TimeZone::system`] as other machines understand it, where this
    /// machine's file may be another zone. `None` if the file does not tell.
    pub fn portable() -> Option<String> {
        let zone = TimeZone::system();
        match zone.text.trim_start_matches(':').rsplit('/').next() {
            Some("localtime") => zoneinfo::portable(Path::new(zoneinfo::LOCAL)),
            _ => Some(zone.text.to_string()),
        }
    }

    /// The zone of a source's host (`pmNewContextZone(3)`).
    ///
    /// # Errors
    /// The source failed, or it has no zone to give (`PM_ERR_VALUE`).
    pub fn of_source<S: MetadataSource + ?Sized>(source: &mut S) -> Result<TimeZone, SourceError> {
        match source.time_zone()? {
            Some(text) => Ok(TimeZone::parse(&text)),
            None => Err(SourceError::Status { target: source.name(), status: PmStatus::VALUE }),
        }
    }

    /// The zone as text (the text of `pmWhichZone(3)`).
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// False for a text that names no zone and has no rules, and so became UTC.
    pub fn is_known(&self) -> bool {
        match &*self.rules {
            Rules::File(_) => true,
            Rules::Posix(rules) => rules.is_zone(),
        }
    }

    /// The offset, summer time and abbreviation at a second since the epoch.
    pub(super) fn at(&self, second: i64) -> Period<'_> {
        match &*self.rules {
            Rules::Posix(rules) => rules.at(second),
            Rules::File(file) => file.at(second),
        }
    }

    /// Abbreviation of the zone at a time: `CET` in winter, `CEST` in summer.
    /// Empty if the zone has none.
    pub fn abbreviation(&self, time: Timestamp) -> Cow<'_, str> {
        self.at(time.sec).abbreviation
    }

    /// Date and time of day (`pmLocaltime(3)`).
    pub fn local(&self, time: Timestamp) -> BrokenDown {
        let period = self.at(time.sec);
        BrokenDown::new(time, period.offset, period.is_dst)
    }

    /// Date and time of day as text, `Wed Feb 28 10:15:30 2024`
    /// (`pmCtime(3)`, without its newline).
    pub fn ctime(&self, time: Timestamp) -> String {
        self.local(time).to_string()
    }

    /// Date and time of day to the nanosecond with the offset from UTC, as in
    /// RFC 3339: `2024-02-28T11:15:30.250000000+01:00`.
    pub fn zoned(&self, time: Timestamp) -> String {
        let local = self.local(time);
        let BrokenDown { year, month, day, hour, minute, second, nanosecond, utc_offset, .. } =
            local;
        let sign = if utc_offset < 0 { '-' } else { '+' };
        // An offset in RFC 3339 has no seconds.
        let distance = utc_offset.unsigned_abs() / 60;
        format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanosecond:09}\
             {sign}{:02}:{:02}",
            distance / 60,
            distance % 60
        )
    }

    /// Time of day to the millisecond, `10:15:30.250` (`pmtimevalPrint(3)`,
    /// `pmPrintStamp(3)` before PCP 7). Finer digits are cut off.
    pub fn clock_millis(&self, time: Timestamp) -> String {
        let BrokenDown { hour, minute, second, .. } = self.local(time);
        format!("{hour:02}:{minute:02}:{second:02}.{:03}", time.nsec / 1_000_000)
    }

    /// Time of day to the nanosecond, `10:15:30.250000000`
    /// (`pmtimespecPrint(3)`, `pmPrintHighResStamp(3)` before PCP 7).
    pub fn clock_nanos(&self, time: Timestamp) -> String {
        let BrokenDown { hour, minute, second, .. } = self.local(time);
        format!("{hour:02}:{minute:02}:{second:02}.{:09}", time.nsec)
    }
}

/// Shows the text of the zone.
impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimeZone").field(&self.text).finish()
    }
}

/// The beginning of a text, short enough for a message.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A text that PCP 7 refuses as a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time zone \"{text}\": {problem}")]
pub struct TimeZoneError {
    /// The given text, or its beginning.
    pub text: String,
    /// The problem with the text.
    pub problem: TimeZoneProblem,
}

/// The problem with a time zone's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeZoneProblem {
    /// The text is empty.
    #[error("it is empty; give a name such as Europe/Paris or rules such as CET-1CEST")]
    Empty,
    /// The text is longer than that of any zone.
    #[error("it is too long")]
    TooLong,
    /// The text is a path that leads out of the zone folder.
    #[error("it must be a name in the system's folder of zones")]
    Path,
    /// The text has a character that no zone has.
    #[error("no time zone contains {0:?}")]
    Character(char),
}
